/* Makes the heads of requests and answers that a proxy sends on (proxy_parts.h). */
#include "protocols/http/proxy_parts.h"

#include "protocols/http/fields.h"

#include <domus/endpoint.h>

#include <errno.h>
#include <stdio.h>

#define ADDRESS_SIZE 160u /* bytes of an endpoint's address as text, at most */

/* Write the client's address without its port, in the form that X-Forwarded-For has. */
static void write_address_of_client(const domus_endpoint *client, char text[ADDRESS_SIZE])
{
    size_t size = client != NULL ? domus_endpoint_text(client, text, ADDRESS_SIZE) : 0;
    char *colon = size != 0 && size < ADDRESS_SIZE ? strrchr(text, ':') : NULL;

    if (colon == NULL || strncmp(text, "unix:", 5) == 0) {
        (void)snprintf(text, ADDRESS_SIZE, "unknown");
        return;
    }
    *colon = '\0';
    if (text[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        memmove(text, text + 1, (size_t)(colon - text) - 1);
    }
}

/* --- fields that strangers may not set -------------------------------------------------------- */

/* Returns whether the name of a field begins with the word, or with `is_all` is equal to it. '_'
 * and '-' count as equal, because servers behind gateways such as CGI cannot tell them apart. */
static bool does_field_name_begin_with(domus_slice name, const char *word, bool is_all)
{
    const char *text = domus_slice_data(name);
    size_t size = strlen(word);

    if (name.size < size || (is_all && name.size != size))
        return false;
    for (size_t i = 0; i < size; i++) {
        char byte = text[i] == '_' ? '-' : domi_http_small_letter_of(text[i]);
        if (byte != word[i])
            return false;
    }
    return true;
}

/* Returns whether a field of a request names the client, or the way by which the request came. */
static bool is_forwarded_field_about_client(domus_slice name)
{
    return does_field_name_begin_with(name, "x-forwarded-", false) ||
           does_field_name_begin_with(name, "forwarded", true) ||
           does_field_name_begin_with(name, "x-real-ip", true);
}

/* Returns whether the proxy writes this field of a request itself, so that the client's field is
 * left out. */
static bool is_field_written_by_proxy_itself(domus_slice name)
{
    static const char *const names[] = {"host", "x-forwarded-for", "expect", "via", NULL};

    return domi_http_is_slice_any_word_of_list(name, names);
}

static bool is_field_of_proxy_or_about_client(domus_slice name)
{
    return is_field_written_by_proxy_itself(name) || is_forwarded_field_about_client(name);
}

/* --- fields that are added -------------------------------------------------------------------- */

/* Add a field whose value is a list: all values that a message has for this name, and one more. */
static void add_field_with_joined_values(domus_appender *to, domus_slice fields, const char *word,
                                         const char *name, const char *value)
{
    domus_appender text = {0};
    domus_http_line line;
    domus_slice joined;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, word) && line.value.size != 0) {
            (void)domus_append(&text, domus_slice_data(line.value), line.value.size);
            (void)domus_append(&text, ", ", 2);
        }
    }
    (void)domus_append(&text, value, strlen(value));
    if (domus_append_end(&text, &joined) != 0) {
        to->error = to->error != 0 ? to->error : -ENOMEM;
        return;
    }
    (void)domus_http_add_bytes(to, name, domus_slice_data(joined), joined.size);
    domus_slice_free(joined);
}

static void add_field_via(domus_appender *to, const domus_http_proxy *proxy, domus_slice fields,
                          unsigned minor)
{
    char via[128];

    (void)snprintf(via, sizeof via, "1.%u %s", minor, proxy->name != NULL ? proxy->name : "domus");
    add_field_with_joined_values(to, fields, "via", "Via", via);
}

/* Returns whether a query, even an empty one, follows the path that ends at `path_end`. */
static bool has_target_a_query(const domus_http_request *request, const char *path_end)
{
    const char *target = domus_slice_data(request->target);
    const char *mark = memchr(target, '?', request->target.size);

    return mark != NULL && (mark == path_end || domus_http_path(request).size == 0);
}

/* Returns how many bytes at the start of the text are `byte`, either itself or as its escape, whose
 * two digits are given in small letters; 0 if it does not begin so. */
static size_t count_bytes_of_char_or_its_escape(const char *text, size_t size, char byte,
                                                const char *escape)
{
    if (size != 0 && *text == byte)
        return 1;
    return size >= 3 && *text == '%' && domi_http_is_word_regardless_of_case(text + 1, 2, escape)
               ? 3
               : 0;
}

/* Returns how many bytes at the start of the text divide segments of a path; 0 if it does not
 * begin with a divider. Many servers treat an escaped slash as a divider, and some treat a
 * backslash so. */
static size_t count_bytes_of_segment_divider(const char *text, size_t size)
{
    size_t slash = count_bytes_of_char_or_its_escape(text, size, '/', "2f");

    return slash != 0 ? slash : count_bytes_of_char_or_its_escape(text, size, '\\', "5c");
}

/* Returns whether a path has a segment "." or "..", also with a parameter behind ';', which some
 * servers remove. (Received paths have no escaped dots.) Honest clients resolve such segments;
 * another one wants the server to find a path that is not the one which the proxy has checked. */
static bool has_path_dot_segments(domus_slice path)
{
    const char *text = domus_slice_data(path);
    /* dots that the segment has so far, and nothing else; 3: the segment has other bytes, or more
     * dots */
    unsigned dots = 0;

    for (size_t at = 0; at < path.size;) {
        size_t divider = count_bytes_of_segment_divider(text + at, path.size - at);
        if ((divider != 0 || text[at] == ';') && (dots == 1 || dots == 2))
            return true;
        if (divider != 0)
            dots = 0;
        else
            dots = text[at] == '.' && dots < 2 ? dots + 1 : 3;
        at += divider != 0 ? divider : 1;
    }
    return dots == 1 || dots == 2;
}

/* Make the target for the server: the path without the proxy's own prefix, and the query. */
static int make_target_without_path_of_proxy(const domus_http_proxy *proxy,
                                             const domus_http_request *request,
                                             domus_slice *ret_target)
{
    const char *text = domus_slice_data(request->target);
    domus_slice path = domus_http_path(request);
    domus_slice query = domus_http_query(request);
    size_t own = proxy->path != NULL ? strlen(proxy->path) : 0;
    const char *from = domus_slice_data(path);
    const char *path_end = from + path.size;
    domus_appender target = {0};

    if (request->target.size == 1 && *text == '*')
        return domus_slice_keep(request->target, ret_target);
    if (has_path_dot_segments(path))
        return -EPROTO; /* refused, and the client is answered by 400 */
    bool is_own = own <= path.size &&
                  memcmp(from, proxy->path != NULL ? proxy->path : "", own) == 0 &&
                  (own == path.size || own == 0 || from[own] == '/' || from[own - 1] == '/');
    if (is_own) {
        from += own;
        path.size -= (uint32_t)own;
    }
    if (path.size == 0 || *from != '/')
        (void)domus_append(&target, "/", 1);
    (void)domus_append(&target, from, path.size);
    if (has_target_a_query(request, path_end)) {
        (void)domus_append(&target, "?", 1);
        (void)domus_append(&target, domus_slice_data(query), query.size);
    }
    return domus_append_end(&target, ret_target);
}

/* Add a field to the head that is sent on, if the message has no field with its name. */
static void add_field_if_missing(domus_appender *to, domus_slice fields, const char *word,
                                 const char *name, domus_slice value)
{
    domus_slice found;

    if (value.size != 0 && !domus_http_field(fields, word, &found))
        (void)domus_http_add_bytes(to, name, domus_slice_data(value), value.size);
}

/* Add the fields that name the client, and the way by which its request came. */
static void add_fields_about_client(domus_appender *to, const domus_http_proxy *proxy,
                                    const domus_http_request *request, const domus_endpoint *client)
{
    const domus_page scheme = {proxy->secure ? "https" : "http"};
    const domus_slice nothing = {NULL, 0, 0};
    domus_slice known = proxy->trusts_clients ? request->fields : nothing;
    char address[ADDRESS_SIZE];

    write_address_of_client(client, address);
    add_field_with_joined_values(to, known, "x-forwarded-for", "X-Forwarded-For", address);
    add_field_if_missing(to, known, "x-forwarded-proto", "X-Forwarded-Proto",
                         (domus_slice){&scheme, 0, (uint32_t)strlen(scheme.data)});
    add_field_if_missing(to, known, "x-forwarded-host", "X-Forwarded-Host",
                         domus_http_host(request));
}

int domi_http_make_forwarded_request(const domus_http_proxy *proxy,
                                     const domus_http_request *request,
                                     const domus_endpoint *client, const char *upgrade,
                                     domus_http_request *ret_request)
{
    domus_http_request made = {.method = request->method,
                               .length = request->length,
                               .upgrade = upgrade != NULL,
                               .tunnels = upgrade != NULL};
    domus_slice host = domus_http_host(request);
    domus_appender fields = {0};

    if (proxy->host != NULL)
        (void)domus_http_add(&fields, "Host", proxy->host);
    else if (host.size != 0)
        (void)domus_http_add_bytes(&fields, "Host", domus_slice_data(host), host.size);
    else
        (void)domus_http_add(&fields, "Host", "localhost");
    (void)domi_http_add_end_to_end_fields_except(&fields, request->fields,
                                                 proxy->trusts_clients
                                                     ? is_field_written_by_proxy_itself
                                                     : is_field_of_proxy_or_about_client);
    if (upgrade != NULL)
        (void)domus_http_add(&fields, "Upgrade", upgrade);
    add_fields_about_client(&fields, proxy, request, client);
    add_field_via(&fields, proxy, request->fields, request->minor);
    int error = domus_append_end(&fields, &made.fields);
    if (error == 0)
        error = make_target_without_path_of_proxy(proxy, request, &made.target);
    if (error == 0 && request->stream.number == 0)
        error = domus_slice_keep(request->body, &made.body);
    if (error == 0)
        *ret_request = made;
    else
        domus_http_request_type.release(&made);
    return error;
}

/* --- the answer ------------------------------------------------------------------------------- */

static bool is_field_via(domus_slice name)
{
    return domi_http_is_slice_word_in_any_case(name, "via");
}

static bool is_field_via_or_location(domus_slice name)
{
    return is_field_via(name) || domi_http_is_slice_word_in_any_case(name, "location");
}

/* Returns whether a field of an answer whose body was decompressed is left out: Via and Location,
 * which the proxy writes anew, or a field that describes the compressed bytes. */
static bool is_field_of_compressed_answer(domus_slice name)
{
    static const char *const names[] = {"content-encoding", "etag",     "digest", "content-digest",
                                        "content-md5",      "location", NULL};

    return is_field_via(name) || domi_http_is_slice_any_word_of_list(name, names);
}

int domi_http_forward_response(const domus_http_proxy *proxy, const domus_http_request *request,
                               const domus_http_response *response,
                               domus_http_response *ret_response)
{
    domus_http_response made = {.status = response->status, .length = response->length};
    domus_appender fields = {0};
    domus_slice location, upgrade;
    bool has_location = domus_http_field(response->fields, "location", &location);

    (void)domi_http_add_end_to_end_fields_except(&fields, response->fields,
                                                 response->unzipped ? is_field_of_compressed_answer
                                                                    : is_field_via_or_location);
    if (has_location && proxy->keeps_location)
        (void)domus_http_add_bytes(&fields, "Location", domus_slice_data(location), location.size);
    else if (has_location)
        domi_http_add_location_behind_proxy(&fields, proxy, request, location);
    if (response->status == 101 && domus_http_field(response->fields, "upgrade", &upgrade))
        (void)domus_http_add_bytes(&fields, "Upgrade", domus_slice_data(upgrade), upgrade.size);
    add_field_via(&fields, proxy, response->fields, response->minor);
    int error = domus_append_end(&fields, &made.fields);
    if (error == 0 && response->stream.number == 0)
        error = domus_slice_keep(response->body, &made.body);
    if (error == 0)
        *ret_response = made;
    else
        domus_slice_free(made.fields);
    return error;
}

/* --- trailers --------------------------------------------------------------------------------- */

/* Returns whether a field must not be a trailer, because it has a meaning only before the body: a
 * reader that accepts it behind the body would do what nobody has checked (RFC 9110 6.5.1). */
static bool is_forbidden_as_trailer(domus_slice name)
{
    static const char *const names[] = {"age",
                                        "authorization",
                                        "authentication-info",
                                        "cache-control",
                                        "cookie",
                                        "date",
                                        "expect",
                                        "expires",
                                        "host",
                                        "location",
                                        "max-forwards",
                                        "pragma",
                                        "proxy-authenticate",
                                        "proxy-authorization",
                                        "proxy-authentication-info",
                                        "range",
                                        "retry-after",
                                        "set-cookie",
                                        "vary",
                                        "via",
                                        "warning",
                                        "www-authenticate",
                                        NULL};

    return domi_http_is_slice_any_word_of_list(name, names) ||
           does_field_name_begin_with(name, "content-", false) ||
           does_field_name_begin_with(name, "if-", false) || is_forwarded_field_about_client(name);
}

int domi_http_forward_trailers(const domus_http_proxy *proxy, domus_slice fields,
                               domus_http_trailers *ret_trailers)
{
    domus_appender made = {0};

    if (proxy->passes_trailers)
        (void)domi_http_add_end_to_end_fields_except(&made, fields, is_forbidden_as_trailer);
    return domus_append_end(&made, &ret_trailers->fields);
}
