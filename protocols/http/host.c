/* Whether a host that a request names is this machine, as seen from itself. */
#include <domus/endpoint.h>
#include <domus/http.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define ADDRESS_MAX 64 /* bytes of an address with its port and a NUL */

static bool is_loopback(const domus_endpoint *endpoint)
{
    static const unsigned char v6[16] = {[15] = 1};
    static const unsigned char mapped[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};

    if (endpoint->family == AF_INET)
        return endpoint->bytes[0] == 127;
    return endpoint->family == AF_INET6 && (memcmp(endpoint->bytes, v6, sizeof v6) == 0 ||
                                            memcmp(endpoint->bytes, mapped, sizeof mapped) == 0);
}

/* Whether a host without its port is "localhost", or a name below it, as browsers see it. */
static bool is_local_name(const char *host, size_t size)
{
    static const char name[] = "localhost";
    const size_t length = sizeof name - 1;

    if (size < length || strncasecmp(host + size - length, name, length) != 0)
        return false;
    return size == length || host[size - length - 1] == '.';
}

bool domus_http_host_is_loopback(domus_slice host)
{
    const char *name = domus_slice_data(host);
    const char *end = host.size != 0 ? memchr(name, *name == '[' ? ']' : ':', host.size) : NULL;
    size_t bare = end != NULL ? (size_t)(end - name) + (*name == '[') : host.size;
    domus_endpoint named;
    char text[ADDRESS_MAX];

    if (is_local_name(name, bare))
        return true;
    int length = snprintf(text, sizeof text, "%.*s:1", (int)bare, name);
    return length < (int)sizeof text && domus_endpoint_parse(text, &named) == 0 &&
           is_loopback(&named);
}
