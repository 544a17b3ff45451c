/* Whether a request is meant for this site, by the host that it names. A page of any site can lead
 * its own name to 127.0.0.1 when it was loaded (DNS rebinding), and then read what is served there
 * as its own. So a site on loopback answers to the names of loopback alone. */
#include "web.h"

#include <string.h>
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

bool web_is_own_host(const domus_channel *channel, const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);
    domus_endpoint local;

    if (!web_settings.checks_host || host.size == 0) /* browsers name one always */
        return true;
    return domus_http_host_is_loopback(host) || domus_channel_local(channel, &local) != 0 ||
           !is_loopback(&local);
}
