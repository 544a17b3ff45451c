/* Makes the heads of a proxy; see the header. */
#include "protocols/http/forward.h"

#include "protocols/http/fields.h"

#include <domus/endpoint.h>

#include <errno.h>
#include <stdio.h>

#define ADDRESS_SIZE 160u /* of the text of an endpoint */

/* Write the client's address without its port, as X-Forwarded-For has it. */
static void write_address(const domus_endpoint *client, char text[ADDRESS_SIZE])
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

/* Add a field with the values of all that a message has of this name, and one more. */
static void add_joined(domus_appender *to, domus_slice fields, const char *word, const char *name,
                       const char *value)
{
    domus_appender text = {0};
    domus_http_line line;
    domus_slice joined;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_slice_is(line.name, word) && line.value.size != 0) {
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

static void add_via(domus_appender *to, const domus_http_proxy *proxy, domus_slice fields,
                    unsigned minor)
{
    char via[128];

    (void)snprintf(via, sizeof via, "1.%u %s", minor, proxy->name != NULL ? proxy->name : "domus");
    add_joined(to, fields, "via", "Via", via);
}

/* Whether a query follows the path that ends there, also an empty one. */
static bool has_query(const domus_http_request *request, const char *path_end)
{
    const char *target = domus_slice_data(request->target);
    const char *mark = memchr(target, '?', request->target.size);

    return mark != NULL && (mark == path_end || domus_http_path(request).size == 0);
}

/* Make the target: the path without the proxy's own, and the query. */
static int make_target(const domus_http_proxy *proxy, const domus_http_request *request,
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
    if (has_query(request, path_end)) {
        (void)domus_append(&target, "?", 1);
        (void)domus_append(&target, domus_slice_data(query), query.size);
    }
    return domus_append_end(&target, ret_target);
}

int domi_http_forward_request(const domus_http_proxy *proxy, const domus_http_request *request,
                              const domus_endpoint *client, domus_http_request *ret_request)
{
    domus_http_request made = {.method = request->method, .length = request->length};
    domus_slice host = domus_http_host(request);
    static const char *const made_anew[] = {"host", "x-forwarded-for", "expect", "via", NULL};
    domus_appender fields = {0};
    char address[ADDRESS_SIZE];

    if (proxy->host != NULL)
        (void)domus_http_add(&fields, "Host", proxy->host);
    else if (host.size != 0)
        (void)domus_http_add_bytes(&fields, "Host", domus_slice_data(host), host.size);
    else
        (void)domus_http_add(&fields, "Host", "localhost");
    write_address(client, address);
    (void)domi_http_add_others(&fields, request->fields, made_anew);
    add_joined(&fields, request->fields, "x-forwarded-for", "X-Forwarded-For", address);
    add_via(&fields, proxy, request->fields, request->minor);
    int error = domus_append_end(&fields, &made.fields);
    if (error == 0)
        error = make_target(proxy, request, &made.target);
    if (error == 0 && request->stream.number == 0)
        error = domus_slice_keep(request->body, &made.body);
    if (error == 0)
        *ret_request = made;
    else
        domus_http_request_type.release(&made);
    return error;
}

int domi_http_forward_response(const domus_http_proxy *proxy, const domus_http_response *response,
                               domus_http_response *ret_response)
{
    domus_http_response made = {.status = response->status, .length = response->length};
    static const char *const made_anew[] = {"via", NULL};
    domus_appender fields = {0};

    (void)domi_http_add_others(&fields, response->fields, made_anew);
    add_via(&fields, proxy, response->fields, response->minor);
    int error = domus_append_end(&fields, &made.fields);
    if (error == 0 && response->stream.number == 0)
        error = domus_slice_keep(response->body, &made.body);
    if (error == 0)
        *ret_response = made;
    else
        domus_slice_free(made.fields);
    return error;
}
