/* /proxy/: requests that another server answers (docs/http.md). "/proxy/a?b" goes to web.upstream
 * as "/a?b", with its method and body, and the answer comes back. */
#include "web.h"

#include <domus/http_proxy.h>
#include <domus/tls.h>

#include <string.h>

/* The proxies for clients that come by http, and by https. They are constant while requests are
 * served. */
static domus_http_proxy proxy = {.path = "/proxy"};
static domus_http_proxy secure_proxy = {.path = "/proxy", .secure = true};

int web_open_proxy_pool(domus_system *system)
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
    int error = domus_outside_pool_open(system, web_settings.upstream, &options, &proxy.upstream);
    if (error == 0)
        error = domus_outside_pool_open(system, web_settings.upstream, &options, &proxy.tunnels);
    secure_proxy.upstream = proxy.upstream;
    secure_proxy.tunnels = proxy.tunnels;
    return error;
}

static int serve_proxied_request(domus_stack *stack, void *self, const void *payload)
{
    domus_tls_info info;

    (void)self;
    if (web_settings.upstream[0] == '\0')
        return web_answer_with_line(stack, 404, "there is no web.upstream\n");
    bool is_secure = domus_tls_info_of(stack, domus_channel_running(stack), &info) == 0;
    return domus_http_pass(stack, payload, is_secure ? &secure_proxy : &proxy);
}

uint32_t web_proxy_marks_of_request(const void *payload)
{
    static const char begin[] = "/proxy/";
    domus_slice path = domus_http_path(payload);
    bool is_ours = path.size >= sizeof begin - 1 &&
                   memcmp(domus_slice_data(path), begin, sizeof begin - 1) == 0;

    return is_ours ? DOMUS_HTTP_PROXY_MARKS : 0;
}

const domus_call web_serve_proxy = {serve_proxied_request, DOMUS_HTTP_PROXY_FRAME};
