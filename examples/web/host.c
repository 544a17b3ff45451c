/* Whether a request is meant for this site, by the host that it names. A page of any site can lead
 * its own name to 127.0.0.1 when it was loaded (DNS rebinding), and then read what is served there
 * as its own. So a site on loopback answers to the names of loopback alone. */
#include "web.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

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

/* Whether a name is one of loopback: localhost, or an address. */
static bool is_loopback_name(const char *name, size_t size)
{
    const char *end = memchr(name, *name == '[' ? ']' : ':', size);
    size_t bare = end != NULL ? (size_t)(end - name) + (*name == '[') : size;
    domus_endpoint named;
    char text[64];

    if (is_local_name(name, bare))
        return true;
    int length = snprintf(text, sizeof text, "%.*s:1", (int)bare, name);
    return length < (int)sizeof text && domus_endpoint_parse(text, &named) == 0 &&
           is_loopback(&named);
}

bool web_is_own_host(const domus_channel *channel, const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);
    domus_endpoint local;

    if (!web_settings.checks_host || host.size == 0) /* browsers name one always */
        return true;
    return is_loopback_name(domus_slice_data(host), host.size) ||
           domus_channel_local(channel, &local) != 0 || !is_loopback(&local);
}
