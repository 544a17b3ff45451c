/* Reads the cookies of a request, and sets cookies by an answer. */
#include "protocols/http/fields.h"
#include "protocols/http/write.h"

#include <domus/http_cookie.h>

#include <inttypes.h>

/* Find a cookie by its name in the value of one field Cookie: "a=b; c=d". */
static bool find_cookie_in_field(domus_slice value, const char *name, domus_slice *ret_value)
{
    const char *data = domus_slice_data(value);
    size_t name_size = strlen(name);

    for (size_t at = 0; at < value.size;) {
        const char *end = memchr(data + at, ';', value.size - at);
        const char *pair = data + at;
        size_t size = end != NULL ? (size_t)(end - pair) : value.size - at;
        at += size + 1;
        domi_http_trim_spaces_and_tabs(&pair, &size);
        if (size <= name_size || pair[name_size] != '=' || memcmp(pair, name, name_size) != 0)
            continue;
        const char *from = pair + name_size + 1;
        size -= name_size + 1;
        if (size >= 2 && *from == '"' && from[size - 1] == '"') {
            from++;
            size -= 2;
        }
        *ret_value = domi_http_borrow_part_of_slice(value, (size_t)(from - data), size);
        return true;
    }
    return false;
}

bool domus_http_cookie(domus_slice fields, const char *name, domus_slice *ret_value)
{
    domus_http_line line;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, "cookie") &&
            find_cookie_in_field(line.value, name, ret_value))
            return true;
    }
    return false;
}

static bool has_only_bytes_of_classes(const char *text, unsigned classes)
{
    return text == NULL ||
           domi_http_count_bytes_of_classes(text, strlen(text), classes) == strlen(text);
}

/* Append an attribute of a cookie and the attribute's value, unless the value is NULL. */
static void add_attribute_of_cookie(domus_appender *to, const char *attribute, const char *value)
{
    if (value != NULL)
        (void)domus_append_text(to, "; %s=%s", attribute, value);
}

int domus_http_add_cookie(domus_appender *fields, const domus_http_set_cookie *cookie)
{
    static const char *const sites[] = {NULL, "Lax", "Strict", "None"};
    bool is_right = *cookie->name != '\0' &&
                    has_only_bytes_of_classes(cookie->name, DOMI_HTTP_TOKEN) &&
                    has_only_bytes_of_classes(cookie->value, DOMI_HTTP_COOKIE) &&
                    has_only_bytes_of_classes(cookie->path, DOMI_HTTP_COOKIE) &&
                    has_only_bytes_of_classes(cookie->domain, DOMI_HTTP_COOKIE) &&
                    cookie->site <= DOMUS_HTTP_SITE_NONE &&
                    (cookie->site != DOMUS_HTTP_SITE_NONE || cookie->secure);

    if (!is_right)
        return domi_http_fail_appender_of_fields(fields);
    (void)domus_append_text(fields, "Set-Cookie: %s=%s", cookie->name, cookie->value);
    add_attribute_of_cookie(fields, "Path", cookie->path);
    add_attribute_of_cookie(fields, "Domain", cookie->domain);
    if (cookie->max_age != 0)
        (void)domus_append_text(fields, "; Max-Age=%" PRId64,
                                cookie->max_age > 0 ? cookie->max_age : 0);
    add_attribute_of_cookie(fields, "SameSite", sites[cookie->site % 4]);
    return domus_append_text(fields, "%s%s\r\n", cookie->secure ? "; Secure" : "",
                             cookie->http_only ? "; HttpOnly" : "");
}
