/* Strings of JSON; see the header. */
#include "protocols/observe/json.h"

#include <domus/text.h>

#include <string.h>

#define SHOWN_SIZE 1024

void domi_json_append_string(domus_appender *json, const char *text)
{
    char shown[SHOWN_SIZE];
    const char *at = shown;

    (void)domus_text_escape(text, strlen(text), shown, sizeof shown);
    (void)domus_append(json, "\"", 1);
    while (*at != '\0') {
        size_t plain = strcspn(at, "\"\\");
        (void)domus_append(json, at, plain);
        at += plain;
        if (*at != '\0')
            (void)domus_append_text(json, "\\%c", *at++);
    }
    (void)domus_append(json, "\"", 1);
}
