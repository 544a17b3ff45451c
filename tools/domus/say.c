/* Prints errors of domus, and texts of programs that are not trusted (say.h). */
#include "tools/domus/say.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

static volatile sig_atomic_t noted;

void say_print_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("domus: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}

void escape_name_to_ascii(const char *name, size_t length, char *ret_text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)name[i];
        bool is_plain = byte >= ' ' && byte <= '~';
        size_t wanted = is_plain ? 1 : 4;
        if (used + wanted >= size)
            break;
        if (is_plain)
            ret_text[used] = (char)byte;
        else
            snprintf(ret_text + used, size - used, "\\x%02X", byte);
        used += wanted;
    }
    ret_text[used] = '\0';
}

/* Read the UTF-8 character that begins at `text`. Returns the number of its bytes; 0 if it is
 * invalid. */
static size_t read_utf8_character(const unsigned char *text, size_t size, uint32_t *ret_code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t bytes = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;

    if (bytes > size || (text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4)
        return 0;
    uint32_t code = bytes == 1 ? text[0] : text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *ret_code = code;
    return bytes;
}

/* Returns whether a character is printed unchanged. Characters that change the direction of text,
 * or end a line, could make a line look like another one, so they are escaped. */
static bool is_character_shown_unchanged(uint32_t code)
{
    if (code < 0xa0)
        return code == '\n' || code == '\t' || (code >= ' ' && code <= '~');
    return !(code == 0x61c || (code >= 0x200b && code <= 0x200f) ||
             (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
             code == 0xfeff || (code >= 0xe000 && code <= 0xf8ff) || code >= 0xe0000);
}

void say_print_untrusted_text(FILE *out, const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0; i < size;) {
        uint32_t code = 0;
        size_t bytes = read_utf8_character(at + i, size - i, &code);
        if (bytes != 0 && is_character_shown_unchanged(code)) {
            (void)fwrite(at + i, 1, bytes, out);
            i += bytes;
        } else {
            (void)fprintf(out, "\\x%02X", at[i]);
            i++;
        }
    }
}

static void on_signal_note_its_number(int number)
{
    noted = number;
}

void say_begin_to_note_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal_note_its_number};

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

int say_get_noted_signal(void)
{
    return noted;
}
