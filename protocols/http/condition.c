/* Evaluates conditional requests (If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since)
 * by tags and dates. */
#include "protocols/http/fields.h"

#include <domus/http_condition.h>
#include <domus/http_date.h>

/* Skip the "W/" of a weak entity tag. Returns whether it was there. */
static bool skip_mark_of_weak_tag(const char **tag, size_t *size)
{
    if (*size < 2 || memcmp(*tag, "W/", 2) != 0)
        return false;
    *tag += 2;
    *size -= 2;
    return true;
}

/* Returns how many bytes an entity tag at the start of a text has, with its quotes and a "W/"
 * before them; 0 if there is none. */
static size_t size_of_entity_tag(const char *text, size_t size)
{
    const char *bare = text;
    size_t left = size;

    (void)skip_mark_of_weak_tag(&bare, &left);
    if (left < 2 || *bare != '"')
        return 0;
    const char *end = memchr(bare + 1, '"', left - 1);
    return end != NULL ? (size_t)(end - text) + 1 : 0;
}

static bool are_tags_equal(const char *one, size_t one_size, const char *other, size_t other_size,
                           bool weakly)
{
    bool is_weak = skip_mark_of_weak_tag(&one, &one_size);

    is_weak |= skip_mark_of_weak_tag(&other, &other_size);
    return (weakly || !is_weak) && one_size == other_size && memcmp(one, other, one_size) == 0;
}

bool domus_http_has_etag(domus_slice list, const char *etag, bool weakly)
{
    const char *text = domus_slice_data(list);
    size_t size = list.size;

    if (size == 1 && *text == '*')
        return true;
    while (size != 0) {
        size_t tag = size_of_entity_tag(text, size);
        if (tag != 0 && are_tags_equal(text, tag, etag, strlen(etag), weakly))
            return true;
        /* skip the tag; or a comma, a space, or any other byte that begins no tag */
        size_t step = tag != 0 ? tag : 1;
        text += step;
        size -= step;
    }
    return false;
}

/* Returns whether the resource is newer than the date in a field of the request; `otherwise` if the
 * date is invalid, or the time of the resource's last change is unknown. */
static bool is_resource_newer_than_date(domus_slice date, const domus_http_version *version,
                                        bool otherwise)
{
    int64_t seconds;

    if (version->modified == 0 ||
        !domus_http_read_date(domus_slice_data(date), date.size, &seconds))
        return otherwise;
    return version->modified > seconds;
}

/* Returns whether a list of entity tags is "*", or contains the tag of the resource's version. */
static bool is_tag_of_version_in_list(domus_slice list, const domus_http_version *version,
                                      bool weakly)
{
    if (list.size == 1 && *domus_slice_data(list) == '*')
        return true;
    return version->etag != NULL && domus_http_has_etag(list, version->etag, weakly);
}

/* Returns whether a list in any field with this name contains the tag of the resource's version. */
static bool is_tag_of_version_in_fields(domus_slice fields, const char *name,
                                        const domus_http_version *version, bool weakly)
{
    domus_http_line line;
    uint32_t at = 0;

    while (version->is_there && domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, name) &&
            is_tag_of_version_in_list(line.value, version, weakly))
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
        if (!is_tag_of_version_in_fields(request->fields, "if-match", version, false))
            return 412;
    } else if (domus_http_field(request->fields, "if-unmodified-since", &value)) {
        if (is_resource_newer_than_date(value, version, false))
            return 412;
    }
    if (domus_http_field(request->fields, "if-none-match", &value)) {
        if (is_tag_of_version_in_fields(request->fields, "if-none-match", version, true))
            return reads ? 304 : 412;
    } else if (reads && domus_http_field(request->fields, "if-modified-since", &value)) {
        if (version->is_there && !is_resource_newer_than_date(value, version, true))
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
