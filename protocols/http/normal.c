/* Brings paths into their normal form; see the header. Any thread. */
#include "protocols/http/normal.h"

#include "protocols/http/chars.h"

static bool is_escape(const char *text, size_t size)
{
    return size >= 3 && domi_http_hex(text[1]) >= 0 && domi_http_hex(text[2]) >= 0;
}

static char capital(char digit)
{
    return digit >= 'a' && digit <= 'f' ? (char)(digit - 'a' + 'A') : digit;
}

/* Put what an escape becomes to `to`, which may be the place of the escape. Returns its end. */
static char *put_escape(char *to, const char *escape, bool may_decode)
{
    char first = escape[1];
    char second = escape[2];
    char byte = (char)(domi_http_hex(first) * 16 + domi_http_hex(second));

    if (may_decode && domi_http_is(byte, DOMI_HTTP_PLAIN)) {
        *to++ = byte;
        return to;
    }
    *to++ = '%';
    *to++ = capital(first);
    *to++ = capital(second);
    return to;
}

size_t domi_http_normalize_target(char *target, size_t size)
{
    const char *mark = size != 0 ? memchr(target, '?', size) : NULL;
    size_t path = mark != NULL ? (size_t)(mark - target) : size;
    char *to = target;
    /* bytes that a wrong '%' before them still lacks to be an escape; an escape that is decoded
     * there could become its digit, and "%%341" would be "%41", which is decoded once more */
    unsigned lacks = 0;

    for (size_t at = 0; at < path; at++) {
        if (target[at] != '%') {
            *to++ = target[at];
            lacks -= lacks != 0;
        } else if (!is_escape(target + at, path - at)) {
            *to++ = '%';
            lacks = 2;
        } else {
            to = put_escape(to, target + at, lacks == 0);
            lacks = 0;
            at += 2;
        }
    }
    if (path != size)
        memmove(to, target + path, size - path);
    return (size_t)(to - target) + size - path;
}
