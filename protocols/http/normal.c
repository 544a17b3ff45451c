/* Changes the paths of targets to their normal form (texts.h). Any thread. */
#include "protocols/http/texts.h"

#include "protocols/http/chars.h"

static bool is_escape_of_url(const char *text, size_t size)
{
    return size >= 3 && domi_http_value_of_hex_digit(text[1]) >= 0 &&
           domi_http_value_of_hex_digit(text[2]) >= 0;
}

static char capital_hexadecimal_digit(char digit)
{
    return digit >= 'a' && digit <= 'f' ? (char)(digit - 'a' + 'A') : digit;
}

/* Write the normal form of an escape for `byte` to `to`, which may be the place of the escape
 * itself. Returns where it ends. */
static char *put_normal_form_of_escape(char *to, const char *escape, char byte, bool decodes)
{
    if (decodes) {
        *to++ = byte;
        return to;
    }
    *to++ = '%';
    *to++ = capital_hexadecimal_digit(escape[1]);
    *to++ = capital_hexadecimal_digit(escape[2]);
    return to;
}

size_t domi_http_normalize_path_of_target(char *target, size_t size)
{
    const char *mark = size != 0 ? memchr(target, '?', size) : NULL;
    size_t path = mark != NULL ? (size_t)(mark - target) : size;
    char *to = target;
    /* hexadecimal digits that are missing behind an invalid '%' just before: "%%341" would become
     * "%41" if the escape "%34" were decoded, and "%41" would be decoded once more */
    unsigned lacks = 0;

    for (size_t at = 0; at < path; at++) {
        char byte = target[at];
        if (byte == '%' && is_escape_of_url(target + at, path - at)) {
            byte = (char)(domi_http_value_of_hex_digit(target[at + 1]) * 16 +
                          domi_http_value_of_hex_digit(target[at + 2]));
            bool is_digit = domi_http_value_of_hex_digit(byte) >= 0;
            bool decodes =
                domi_http_is_byte_of_class(byte, DOMI_HTTP_PLAIN) && (lacks == 0 || !is_digit);
            to = put_normal_form_of_escape(to, target + at, byte, decodes);
            lacks = 0;
            at += 2;
            continue;
        }
        *to++ = byte;
        if (byte == '%')
            lacks = 2;
        else
            lacks = lacks != 0 && domi_http_value_of_hex_digit(byte) >= 0 ? lacks - 1 : 0;
    }
    if (path != size)
        memmove(to, target + path, size - path);
    return (size_t)(to - target) + size - path;
}
