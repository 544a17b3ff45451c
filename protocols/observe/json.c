/* Writes strings of JSON (texts.h). */
#include "protocols/observe/texts.h"

#include <domus/text.h>

#include <string.h>

#define PIECE_MAX 256u /* bytes of a string that are escaped at a time */
/* bytes of such a piece of a string after escaping, at most */
#define SHOWN_SIZE (4 * PIECE_MAX + 1)

static void append_escaped_piece(domus_appender *json, const char *at)
{
    while (*at != '\0') {
        size_t plain = strcspn(at, "\"\\");
        (void)domus_append(json, at, plain);
        at += plain;
        if (*at != '\0')
            (void)domus_append_text(json, "\\%c", *at++);
    }
}

void domi_json_append_string(domus_appender *json, const char *text)
{
    char shown[SHOWN_SIZE];
    size_t left = strlen(text);

    (void)domus_append(json, "\"", 1);
    while (left > 0) {
        size_t piece = left < PIECE_MAX ? left : PIECE_MAX;
        (void)domus_text_escape(text, piece, shown, sizeof shown);
        append_escaped_piece(json, shown);
        text += piece;
        left -= piece;
    }
    (void)domus_append(json, "\"", 1);
}
