/* The site: its routes, and the channels that take requests. A function of a route runs on the
 * thread of its connection. */
#include "web.h"

#include <domus/http2.h>
#include <domus/websocket.h>

#include <errno.h>
#include <stddef.h>

enum { PAGE, JSON, HELLO, ECHO, KEY, EVENTS, SOCKET, STATIC, PROXY };

#define EVERY                                                                                      \
    (DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(HEAD) | DOMUS_HTTP_ON(POST) | DOMUS_HTTP_ON(PUT) |         \
     DOMUS_HTTP_ON(PATCH) | DOMUS_HTTP_ON(DELETE) | DOMUS_HTTP_ON(OPTIONS))

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", PAGE},
    {DOMUS_HTTP_ON(GET), "/json", JSON},
    {DOMUS_HTTP_ON(GET), "/hello", HELLO},
    {DOMUS_HTTP_ON(POST), "/echo", ECHO},
    {DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(PUT) | DOMUS_HTTP_ON(DELETE), "/kv/{key}", KEY},
    {DOMUS_HTTP_ON(GET), "/events", EVENTS},
    {DOMUS_HTTP_ON(GET), "/socket", SOCKET},
    {DOMUS_HTTP_ON(GET), "/static/{path*}", STATIC},
    {EVERY, "/proxy/{path*}", PROXY},
    {0, NULL, 0},
};

static const domus_call *const functions[] = {
    [PAGE] = &web_serve_page,     [JSON] = &web_serve_json,     [HELLO] = &web_serve_hello,
    [ECHO] = &web_serve_echo,     [KEY] = &web_serve_key,       [EVENTS] = &web_serve_events,
    [SOCKET] = &web_serve_socket, [STATIC] = &web_serve_static, [PROXY] = &web_serve_proxy,
};

domus_slice web_value_of_path_segment(const domus_http_request *request, const char *name)
{
    domus_http_match match = domus_http_find_route(routes, request);

    return domus_http_route_value(&match, name);
}

int web_answer_with_line(domus_stack *stack, uint16_t status, const char *line)
{
    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){status, WEB_PLAIN, line});
}

int web_answer_200_with_uncached_body(domus_stack *stack, const char *media, domus_slice body)
{
    domus_http_response response = {.status = 200, .media = media, .body = body};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "X-Content-Type-Options", "nosniff");
    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    int error = domus_append_end(&fields, &response.fields);
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

/* Answer a request that no route of the site takes: 404, 405, or the answer to OPTIONS. */
static int answer_404_405_or_options(domus_stack *stack, const domus_http_match *match)
{
    domus_http_response response;
    int error = domus_http_unrouted(match, &response);

    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_http_response_type.release(&response);
    return error;
}

static int check_host_and_handle_by_route(domus_stack *stack, void *self, const void *payload)
{
    domus_http_match match = domus_http_find_route(routes, payload);

    web_count_request();
    if (!web_may_request_name_this_host(domus_channel_running(stack), payload))
        return web_answer_with_line(stack, 421, "this site has another name\n");
    if (match.route == NULL)
        return answer_404_405_or_options(stack, &match);
    return functions[match.route->id]->handle(stack, self, payload);
}

static domus_http_gzip gzip;
static domus_http_options http = {.streams = true};
static const domus_http2_options http2 = {.websockets = true};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, &http2}, {&domus_http_stage, &http}, {NULL, NULL}}};

static void free_places_of_visitor_at_stop(domus_stack *stack, void *self)
{
    (void)stack;
    web_free_event_place_of_visitor(self);
    web_free_guest_of_visitor(self);
}

static const domus_behaviour visitor = {
    .name = "visitor",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct web_visitor),
    .pipeline = &pipeline,
    .on = (const domus_on[]){{&rooms_said_type, web_send_line_to_browser, 0}, {NULL, NULL, 0}},
    .on_peer = (const domus_on_peer[]){{.type = &domus_http_request_type,
                                        .handle = check_host_and_handle_by_route,
                                        .peer_frame_size = WEB_FRAME_MAX,
                                        .marks_of = web_proxy_marks_of_request},
                                       {.type = &domus_websocket_message_type,
                                        .handle = web_publish_line_of_browser_to_room},
                                       {.type = NULL}},
    .on_stop = free_places_of_visitor_at_stop,
};

const domus_behaviour web_site = {.name = "site", .kind = DOMUS_CHANNELS, .channel = &visitor};

int web_set_up_site(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (functions[i]->call_frame_size > WEB_FRAME_MAX)
            return -EMSGSIZE;
    }
    http.body_max = web_settings.body_max_bytes;
    gzip.streams_max = web_settings.gzip_streams;
    http.gzip = web_settings.gzip_streams != 0 ? &gzip : NULL;
    web_set_up_keys();
    return 0;
}

void web_free_site(void)
{
    domus_http_gzip_trim(&gzip);
}
