/* /proxy/: requests that another server answers (docs/http.md). "/proxy/a?b" goes to web.upstream
 * as
 * "/a?b", with its method and body, and the answer comes back. */
#include "web.h"

#include <domus/http_proxy.h>

#include <string.h>

static domus_http_proxy proxy = {.path = "/proxy"}; /* constant while requests are served */

int web_proxy_begin(domus_system *system)
{
    static const domus_channel_options channel = {.idle_timeout_ns = 15 * UINT64_C(1000000000),
                                                  .answer_timeout_ns = 60 * UINT64_C(1000000000)};
    static const domus_pool_options options = {.behaviour = &domus_http_streaming_connection,
                                               .connections_max = 32,
                                               .repeatable = domus_http_repeatable,
                                               .per_thread = true,
                                               .on_demand = true,
                                               .channel = &channel};

    if (web_settings.upstream[0] == '\0')
        return 0;
    return domus_outside_pool_open(system, web_settings.upstream, &options, &proxy.upstream);
}

static int serve(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    if (web_settings.upstream[0] == '\0')
        return web_say(stack, 404, "there is no web.upstream\n");
    return domus_http_pass(stack, payload, &proxy);
}

uint32_t web_proxy_marks(const void *payload)
{
    static const char begin[] = "/proxy/";
    domus_slice path = domus_http_path(payload);
    bool is_ours = path.size >= sizeof begin - 1 &&
                   memcmp(domus_slice_data(path), begin, sizeof begin - 1) == 0;

    return is_ours ? DOMUS_HTTP_PROXY_MARKS : 0;
}

const domus_call web_serve_proxy = {serve, DOMUS_HTTP_PROXY_FRAME};
