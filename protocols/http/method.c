/* The methods of requests by their names, and the form of hosts. */
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

#include <arpa/inet.h>
#include <string.h>

static const char *const names[DOMUS_HTTP_METHODS] = {
    [DOMUS_HTTP_GET] = "GET",
    [DOMUS_HTTP_HEAD] = "HEAD",
    [DOMUS_HTTP_POST] = "POST",
    [DOMUS_HTTP_PUT] = "PUT",
    [DOMUS_HTTP_DELETE] = "DELETE",
    [DOMUS_HTTP_OPTIONS] = "OPTIONS",
    [DOMUS_HTTP_PATCH] = "PATCH",
    [DOMUS_HTTP_TRACE] = "TRACE",
    [DOMUS_HTTP_CONNECT] = "CONNECT",
    [DOMUS_HTTP_COPY] = "COPY",
    [DOMUS_HTTP_LOCK] = "LOCK",
    [DOMUS_HTTP_MKCOL] = "MKCOL",
    [DOMUS_HTTP_MOVE] = "MOVE",
    [DOMUS_HTTP_PROPFIND] = "PROPFIND",
    [DOMUS_HTTP_PROPPATCH] = "PROPPATCH",
    [DOMUS_HTTP_REPORT] = "REPORT",
    [DOMUS_HTTP_SEARCH] = "SEARCH",
    [DOMUS_HTTP_UNLOCK] = "UNLOCK",
    [DOMUS_HTTP_PURGE] = "PURGE",
};

const char *domus_http_method_name(domus_http_method method)
{
    return method < DOMUS_HTTP_METHODS ? names[method] : NULL;
}

domus_http_method domi_http_find_method(const char *name, size_t size)
{
    int i = 0;

    if (size == 3 && memcmp(name, "GET", 3) == 0)
        return DOMUS_HTTP_GET;
    while (i < DOMUS_HTTP_METHODS &&
           (strlen(names[i]) != size || memcmp(name, names[i], size) != 0))
        i++;
    return (domus_http_method)i;
}

/* Returns whether a text is the number of a port: 1 to 5 digits, up to 65535. */
static bool is_port_number(const char *text, size_t size)
{
    unsigned port = 0;

    if (size == 0 || size > 5)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535;
}

bool domi_http_is_address_of_family(int family, const char *text, size_t size)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char bytes[16];

    if (size == 0 || size >= sizeof copy || memchr(text, '\0', size) != NULL)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    return inet_pton(family, copy, bytes) == 1;
}

size_t domi_http_size_of_address_in_brackets(const char *text, size_t size)
{
    const char *last = memchr(text, ']', size);

    if (last == NULL ||
        !domi_http_is_address_of_family(AF_INET6, text + 1, (size_t)(last - text) - 1))
        return 0;
    return (size_t)(last - text) + 1;
}

bool domi_http_is_valid_host(const char *text, size_t size)
{
    size_t end = size != 0 && *text == '['
                     ? domi_http_size_of_address_in_brackets(text, size)
                     : domi_http_count_bytes_of_classes(text, size, DOMI_HTTP_HOST);

    if (end == 0 || end == size)
        return end != 0;
    return text[end] == ':' && is_port_number(text + end + 1, size - end - 1);
}
