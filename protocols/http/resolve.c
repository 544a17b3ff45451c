/* Resolves URL references by the steps of RFC 3986 5.2.2, without the RFC's exception for
 * references that have the same scheme as their base. */
#include "protocols/http/chars.h"

#include <domus/http_url.h>

#include <errno.h>

/* A part of a URL, such as its scheme or its path, as a text that is owned elsewhere. */
typedef struct part {
    /* text of the part; NULL: the URL has no such part, which differs from an empty one */
    const char *text;
    size_t size;
} part;

typedef struct parts {
    part scheme;
    part authority;
    part path; /* path of the URL, which is always there */
    part query;
    part fragment;
} parts;

/* Cut the part that begins at `at` out of `text`, up to the first byte that is in `ends`. */
static part part_of_url_up_to_any_end(const char *text, size_t size, size_t at, const char *ends)
{
    size_t end = at;

    while (end < size && strchr(ends, text[end]) == NULL)
        end++;
    return (part){text + at, end - at};
}

/* Returns whether a part of a URL is a scheme: a letter, followed by letters, digits, '+', '-' and
 * '.'. */
static bool is_valid_scheme(part scheme)
{
    for (size_t i = 0; i < scheme.size; i++) {
        char byte = scheme.text[i];
        bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
        bool is_other = (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.';
        if (!is_letter && (i == 0 || !is_other))
            return false;
    }
    return scheme.size != 0;
}

/* Split a URL into its parts, as RFC 3986 does in appendix B. Returns 0; -EINVAL; -EMSGSIZE. */
static int split_url_into_parts(const char *text, size_t size, parts *ret_parts)
{
    parts found = {.path = {"", 0}};
    size_t at = 0;

    if (size > DOMUS_HTTP_URL_MAX)
        return -EMSGSIZE;
    for (size_t i = 0; i < size; i++) {
        if (!domi_http_is_byte_of_class(text[i], DOMI_HTTP_TARGET) && text[i] != '#')
            return -EINVAL;
    }
    part first = part_of_url_up_to_any_end(text, size, 0, ":/?#");
    if (first.size < size && text[first.size] == ':') {
        if (!is_valid_scheme(first))
            return -EINVAL;
        found.scheme = first;
        at = first.size + 1;
    }
    if (size - at >= 2 && text[at] == '/' && text[at + 1] == '/') {
        found.authority = part_of_url_up_to_any_end(text, size, at + 2, "/?#");
        at += 2 + found.authority.size;
    }
    if (size != 0)
        found.path = part_of_url_up_to_any_end(text, size, at, "?#");
    at += found.path.size;
    if (at < size && text[at] == '?') {
        found.query = part_of_url_up_to_any_end(text, size, at + 1, "#");
        at += 1 + found.query.size;
    }
    if (at < size)
        found.fragment = (part){text + at + 1, size - at - 1};
    *ret_parts = found;
    return 0;
}

static char *put_part_of_url(char *to, part from)
{
    if (from.size != 0)
        memcpy(to, from.text, from.size);
    return to + from.size;
}

/* Remove "." and ".." from the path at `path` (RFC 3986 5.2.4), in place, because the result is
 * never longer. Returns where it ends. */
static char *remove_dot_segments_of_path(char *path, const char *end)
{
    const char *from = path;
    char *to = path;

    while (from < end) {
        size_t segment = 0; /* bytes of the current segment, without the '/' before it */
        bool has_slash = *from == '/';
        const char *name = from + has_slash;
        while (name + segment < end && name[segment] != '/')
            segment++;
        bool is_one = segment == 1 && name[0] == '.';
        bool is_two = segment == 2 && name[0] == '.' && name[1] == '.';
        bool is_last = name + segment == end;
        if (!is_one && !is_two) {
            memmove(to, from, has_slash + segment);
            to += has_slash + segment;
            from = name + segment;
            continue;
        }
        if (is_two && has_slash) {
            while (to > path && *--to != '/')
                ;
        }
        from = name + segment;
        if (!has_slash && !is_last)
            from++; /* a "./" or "../" at the start of a path is removed with its '/' */
        if (has_slash && is_last)
            *to++ = '/';
    }
    return to;
}

/* Write the path of `base` up to its last '/', and behind it the path of `reference`. */
static char *put_path_of_reference_behind_base(char *to, const parts *base, const parts *reference)
{
    size_t kept = base->path.size;

    while (kept != 0 && base->path.text[kept - 1] != '/')
        kept--;
    if (base->authority.text != NULL && base->path.size == 0)
        *to++ = '/';
    to = put_part_of_url(to, (part){base->path.text, kept});
    return put_part_of_url(to, reference->path);
}

/* Write the path of the resolved URL, made of those of `base` and `reference`. Returns where it
 * ends. */
static char *put_path_of_resolved_url(char *path, const parts *base, const parts *reference)
{
    bool is_own = reference->scheme.text != NULL || reference->authority.text != NULL;
    char *end;

    if (!is_own && reference->path.size == 0)
        return put_part_of_url(path, base->path);
    if (is_own || *reference->path.text == '/')
        end = put_part_of_url(path, reference->path);
    else
        end = put_path_of_reference_behind_base(path, base, reference);
    return remove_dot_segments_of_path(path, end);
}

static char *put_resolved_url(char *to, const parts *base, const parts *reference)
{
    const parts *of_scheme = reference->scheme.text != NULL ? reference : base;
    bool is_own = reference->scheme.text != NULL || reference->authority.text != NULL;
    const parts *of_authority = is_own ? reference : base;
    bool has_base_query = !is_own && reference->path.size == 0 && reference->query.text == NULL;
    part query = has_base_query ? base->query : reference->query;

    to = put_part_of_url(to, of_scheme->scheme);
    *to++ = ':';
    if (of_authority->authority.text != NULL) {
        to = put_part_of_url(to, (part){"//", 2});
        to = put_part_of_url(to, of_authority->authority);
    }
    to = put_path_of_resolved_url(to, base, reference);
    if (query.text != NULL) {
        *to++ = '?';
        to = put_part_of_url(to, query);
    }
    if (reference->fragment.text != NULL) {
        *to++ = '#';
        to = put_part_of_url(to, reference->fragment);
    }
    return to;
}

int domus_http_url_resolve(const char *base, size_t base_size, const char *reference,
                           size_t reference_size, domus_appender *to)
{
    parts of_base, of_reference;
    int error = split_url_into_parts(base, base_size, &of_base);

    if (error == 0)
        error = split_url_into_parts(reference, reference_size, &of_reference);
    if (error == 0 && of_base.scheme.text == NULL)
        error = -EINVAL;
    if (error != 0)
        return error;
    /* Each part and each divider of the result comes from one of the two URLs; only one '/' may be
     * added. */
    char *begin = domus_append_room(to, base_size + reference_size + 1);
    if (begin == NULL)
        return to->error;
    char *end = put_resolved_url(begin, &of_base, &of_reference);
    domus_append_written(to, (size_t)(end - begin));
    return to->error;
}
