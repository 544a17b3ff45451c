/* The test whether a request is meant for this site, by the host that it names. A page of any site
 * can lead its own name to 127.0.0.1 when it was loaded (DNS rebinding), and then read what is
 * served there as its own. So a site on loopback answers to the names of loopback alone. */
#include "web.h"

bool web_may_request_name_this_host(const domus_channel *channel, const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);
    domus_endpoint local;

    /* a request without a host comes from no browser, because browsers always name one */
    if (!web_settings.checks_host || host.size == 0)
        return true;
    return domus_http_host_is_loopback(host) || domus_channel_local(channel, &local) != 0 ||
           !domus_endpoint_is_loopback(&local);
}
