/* Splits URLs of HTTP into their parts. A URL is read once from start to end, and each part may
 * only have the bytes that its syntax allows. */
#include <domus/http_url.h>

#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

#include <arpa/inet.h>
#include <errno.h>

#define PORT_DIGITS_MAX 5u

/* Read the scheme of a URL with its "://". Returns how many bytes it has; 0 if it is neither http
 * nor https. */
static size_t read_scheme_of_url(const char *text, size_t size, bool *ret_secure)
{
    if (size >= 7 && domi_http_is_same_regardless_of_case(text, "http://", 7)) {
        *ret_secure = false;
        return 7;
    }
    *ret_secure = true;
    return size >= 8 && domi_http_is_same_regardless_of_case(text, "https://", 8) ? 8 : 0;
}

/* Returns whether a text begins with a scheme other than http and https. */
static bool has_text_other_scheme(const char *text, size_t size)
{
    const char *end = size != 0 ? memchr(text, ':', size) : NULL;
    size_t scheme = end != NULL ? (size_t)(end - text) : 0;

    return scheme != 0 && !(scheme == 4 && domi_http_is_same_regardless_of_case(text, "http", 4)) &&
           !(scheme == 5 && domi_http_is_same_regardless_of_case(text, "https", 5));
}

/* Returns whether a resolver could read the last label of a name as a number: such a host is an
 * IPv4 address, perhaps in an unusual notation. */
static bool does_host_end_with_number(const char *host, size_t size)
{
    size_t at = size;

    while (at != 0 && host[at - 1] != '.')
        at--;
    const char *label = host + at;
    size_t rest = size - at;
    if (rest >= 2 && label[0] == '0' && (label[1] | 0x20) == 'x')
        return domi_http_count_bytes_of_classes(label + 2, rest - 2, DOMI_HTTP_HEX) == rest - 2;
    for (size_t i = 0; i < rest; i++) {
        if (label[i] < '0' || label[i] > '9')
            return false;
    }
    return rest != 0;
}

/* Read the host of a URL. Returns how many bytes it has; 0 if there is none, or it is invalid. */
static size_t read_host_of_url(const char *text, size_t size)
{
    if (size != 0 && *text == '[')
        return domi_http_size_of_address_in_brackets(text, size);
    size_t host = domi_http_count_bytes_of_classes(text, size, DOMI_HTTP_HOST);
    if (host == 0 || *text == '.')
        return 0;
    size_t name = host - (text[host - 1] == '.');
    return does_host_end_with_number(text, name) &&
                   !domi_http_is_address_of_family(AF_INET, text, host)
               ? 0
               : host;
}

/* Read the port of a URL, such as ":1234". Returns how many bytes it has; 0 if it is invalid. */
static size_t read_port_of_url(const char *text, size_t size, uint16_t *ret_port)
{
    uint32_t port = 0;
    size_t at = 1;

    while (at < size && at <= PORT_DIGITS_MAX && text[at] >= '0' && text[at] <= '9')
        port = port * 10 + (uint32_t)(text[at++] - '0');
    if (port == 0 || port > UINT16_MAX || text[1] == '0')
        return 0;
    *ret_port = (uint16_t)port;
    return at;
}

/* Read the path and the query of a URL, and check its fragment. Returns 0; -EINVAL. */
static int read_path_and_query_of_url(const char *text, size_t size, domus_http_url *url)
{
    size_t target = domi_http_count_bytes_of_classes(text, size, DOMI_HTTP_TARGET);

    if (target != 0 && *text != '/' && *text != '?')
        return -EINVAL;
    if (target < size) {
        size_t at = target + 1;
        if (text[target] != '#' ||
            at + domi_http_count_bytes_of_classes(text + at, size - at, DOMI_HTTP_TARGET) != size)
            return -EINVAL;
    }
    url->target = text;
    url->target_size = (uint32_t)target;
    return 0;
}

int domus_http_url_parse(const char *text, size_t size, domus_http_url *ret_url)
{
    domus_http_url url = {0};
    size_t at = read_scheme_of_url(text, size, &url.secure);

    if (size > DOMUS_HTTP_URL_MAX)
        return -EMSGSIZE;
    if (at == 0)
        return has_text_other_scheme(text, size) ? -EPROTONOSUPPORT : -EINVAL;
    size_t host = read_host_of_url(text + at, size - at);
    if (host == 0)
        return -EINVAL;
    if (host > DOMUS_HTTP_HOST_MAX)
        return -EMSGSIZE;
    url.host = text + at;
    url.host_size = (uint32_t)host;
    url.port = url.secure ? 443 : 80;
    at += host;
    if (at < size && text[at] == ':') {
        size_t port = read_port_of_url(text + at, size - at, &url.port);
        if (port == 0)
            return -EINVAL;
        at += port;
    }
    int error = read_path_and_query_of_url(text + at, size - at, &url);
    if (error == 0)
        *ret_url = url;
    return error;
}

bool domus_http_url_same_origin(const domus_http_url *one, const domus_http_url *other)
{
    return one->secure == other->secure && one->port == other->port &&
           one->host_size == other->host_size &&
           domi_http_is_same_regardless_of_case(one->host, other->host, one->host_size);
}
