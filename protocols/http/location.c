/* Rewrites the field Location of answers that come through a proxy. A server knows neither the path
 * prefix that the proxy has removed nor, often, the name by which clients reach it, so a URL of its
 * own is useless for the client. It becomes a path of the proxy without a host, which each client
 * resolves with the scheme and host that it has used. Any thread. */
#include "protocols/http/proxy_parts.h"

#include "protocols/http/fields.h"

#include <domus/http_url.h>

#include <stdio.h>

/* The URL of a server, and its host as one text. */
typedef struct place {
    char text[sizeof "https://" + DOMUS_HTTP_HOST_MAX + sizeof ":65535"];
    domus_http_url url;
} place;

/* Returns whether the host of a URL is `name`, perhaps with a port. */
static bool is_host_of_url_same_as_name(const domus_http_url *url, const char *name, size_t size)
{
    place made;
    int length = snprintf(made.text, sizeof made.text, "%s%.*s",
                          url->secure ? "https://" : "http://", (int)size, name);

    return size != 0 && size < sizeof made.text && length < (int)sizeof made.text &&
           domus_http_url_parse(made.text, (size_t)length, &made.url) == 0 &&
           made.url.target_size == 0 && domus_http_url_same_origin(url, &made.url);
}

static bool has_url_host_in_text(const domus_http_url *url, const char *name)
{
    return name != NULL && is_host_of_url_same_as_name(url, name, strlen(name));
}

/* Find where the path begins in a URL that names the server behind the proxy; `*ret_kept` bytes
 * before it stay for the client. Returns 0 for a URL of something else. An https URL of a server
 * that is reached by http is not a name of it, unless the client knows that name: then the server
 * has sent the client to https, and the URL must stay. */
static size_t find_path_of_server_url(const domus_http_proxy *proxy,
                                      const domus_http_request *request, const char *text,
                                      size_t size, size_t *ret_kept)
{
    domus_slice host = domus_http_host(request);
    domus_http_url url;

    if (domus_http_url_parse(text, size, &url) != 0)
        return 0;
    size_t path = (size_t)(url.target - text);
    bool is_known = is_host_of_url_same_as_name(&url, domus_slice_data(host), host.size);
    bool is_own = is_known || has_url_host_in_text(&url, proxy->host) ||
                  has_url_host_in_text(&url, proxy->origin);
    if (url.secure && !proxy->secure) {
        *ret_kept = path;
        return is_known ? path : 0;
    }
    *ret_kept = 0;
    return is_own ? path : 0;
}

/* Returns whether a path lies below the proxy's own path already, because the server knows the
 * prefix. */
static bool is_path_below_proxy_path(const char *path, size_t size, const char *own,
                                     size_t own_size)
{
    if (size < own_size || memcmp(path, own, own_size) != 0)
        return false;
    char next = size != own_size ? path[own_size] : '/';
    return next == '/' || next == '?' || next == '#';
}

/* Add a path of the server as a path of the proxy, behind the `kept` bytes. The result must not
 * turn into something else: "//name" would be a host, and so would "/\\name" for browsers. */
static void add_path_behind_proxy(domus_appender *to, const domus_http_proxy *proxy,
                                  domus_slice kept, domus_slice path)
{
    size_t own = proxy->path != NULL ? strlen(proxy->path) : 0;
    const char *rest = domus_slice_data(path);
    bool has_root = path.size != 0 && *rest == '/';

    while (own != 0 && proxy->path[own - 1] == '/')
        own--;
    (void)domus_append(to, domus_slice_data(kept), kept.size);
    if (own != 0 && !is_path_below_proxy_path(rest, path.size, proxy->path, own))
        (void)domus_append(to, proxy->path, own);
    if (!has_root)
        (void)domus_append(to, "/", 1);
    if (kept.size == 0 && own == 0 && path.size > 1 && has_root &&
        (rest[1] == '/' || rest[1] == '\\'))
        /* "/." keeps "//" from being read as a host, and disappears when a client resolves the
         * location */
        (void)domus_append(to, "/.", 2);
    (void)domus_append(to, rest, path.size);
}

void domi_http_add_location_behind_proxy(domus_appender *to, const domus_http_proxy *proxy,
                                         const domus_http_request *request, domus_slice value)
{
    const char *text = domus_slice_data(value);
    bool is_path = value.size != 0 && *text == '/' && (value.size == 1 || text[1] != '/');
    domus_appender made = {0};
    domus_slice location;
    size_t kept = 0;
    size_t at = is_path ? 0 : find_path_of_server_url(proxy, request, text, value.size, &kept);

    if (!is_path && at == 0) {
        (void)domus_http_add_bytes(to, "Location", text, value.size);
        return;
    }
    add_path_behind_proxy(&made, proxy, domi_http_borrow_part_of_slice(value, 0, kept),
                          domi_http_borrow_part_of_slice(value, at, value.size - at));
    int error = domus_append_end(&made, &location);
    if (error != 0) {
        to->error = to->error != 0 ? to->error : error;
        return;
    }
    (void)domus_http_add_bytes(to, "Location", domus_slice_data(location), location.size);
    domus_slice_free(location);
}
