/* Evaluates conditional requests by tags and dates. */
#include "protocols/http/fields.h"

#include <domus/http_condition.h>
#include <domus/http_date.h>

/* Skip the "W/" of a weak tag. Returns whether it was there. */
static bool skip_weak(const char **tag, size_t *size)
{
    if (*size < 2 || memcmp(*tag, "W/", 2) != 0)
        return false;
    *tag += 2;
    *size -= 2;
    return true;
}

/* Returns the bytes of a tag at the start of a text, with its quotes; 0 if there is none. */
static size_t size_of_tag(const char *text, size_t size)
{
    const char *bare = text;
    size_t left = size;

    (void)skip_weak(&bare, &left);
    if (left < 2 || *bare != '"')
        return 0;
    const char *end = memchr(bare + 1, '"', left - 1);
    return end != NULL ? (size_t)(end - text) + 1 : 0;
}

static bool is_same_tag(const char *one, size_t one_size, const char *other, size_t other_size,
                        bool weakly)
{
    bool is_weak = skip_weak(&one, &one_size);

    is_weak |= skip_weak(&other, &other_size);
    return (weakly || !is_weak) && one_size == other_size && memcmp(one, other, one_size) == 0;
}

bool domus_http_has_etag(domus_slice list, const char *etag, bool weakly)
{
    const char *text = domus_slice_data(list);
    size_t size = list.size;

    if (size == 1 && *text == '*')
        return true;
    while (size != 0) {
        size_t tag = size_of_tag(text, size);
        if (tag != 0 && is_same_tag(text, tag, etag, strlen(etag), weakly))
            return true;
        /* skip commas, spaces, and any other byte that begins no tag */
        size_t step = tag != 0 ? tag : 1;
        text += step;
        size -= step;
    }
    return false;
}

/* Returns whether the resource is newer than the date of a field. An invalid date counts as no
 * date. */
static bool is_newer(domus_slice date, const domus_http_version *version, bool otherwise)
{
    int64_t seconds;

    if (version->modified == 0 ||
        !domus_http_read_date(domus_slice_data(date), date.size, &seconds))
        return otherwise;
    return version->modified > seconds;
}

/* Returns whether a list of tags contains the tag of the version. */
static bool is_version_in_list(domus_slice list, const domus_http_version *version, bool weakly)
{
    if (list.size == 1 && *domus_slice_data(list) == '*')
        return true;
    return version->etag != NULL && domus_http_has_etag(list, version->etag, weakly);
}

/* Returns whether a list in any field of this name contains the tag of the version. */
static bool is_version_in_fields(domus_slice fields, const char *name,
                                 const domus_http_version *version, bool weakly)
{
    domus_http_line line;
    uint32_t at = 0;

    while (version->is_there && domus_http_next(fields, &at, &line)) {
        if (domi_http_slice_is(line.name, name) && is_version_in_list(line.value, version, weakly))
            return true;
    }
    return false;
}

unsigned domus_http_check_conditions(const domus_http_request *request,
                                     const domus_http_version *version)
{
    bool reads = request->method == DOMUS_HTTP_GET || request->method == DOMUS_HTTP_HEAD;
    domus_slice value;

    if (domus_http_field(request->fields, "if-match", &value)) {
        if (!is_version_in_fields(request->fields, "if-match", version, false))
            return 412;
    } else if (domus_http_field(request->fields, "if-unmodified-since", &value)) {
        if (is_newer(value, version, false))
            return 412;
    }
    if (domus_http_field(request->fields, "if-none-match", &value)) {
        if (is_version_in_fields(request->fields, "if-none-match", version, true))
            return reads ? 304 : 412;
    } else if (reads && domus_http_field(request->fields, "if-modified-since", &value)) {
        if (version->is_there && !is_newer(value, version, true))
            return 304;
    }
    return 0;
}

bool domus_http_may_range(const domus_http_request *request, const domus_http_version *version)
{
    domus_slice value;
    int64_t seconds;

    if (request->method != DOMUS_HTTP_GET)
        return false;
    if (!domus_http_field(request->fields, "if-range", &value))
        return true;
    if (domus_http_read_date(domus_slice_data(value), value.size, &seconds))
        return version->modified != 0 && version->modified == seconds;
    return version->etag != NULL && value.size > 1 &&
           domus_http_has_etag(value, version->etag, false);
}
