/* domus_channel_open_rest() says why the rest of the peer's bytes can be no body. Tunnels
 * themselves are those of http_tunnel_test.c. */
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <domus/http.h>

#include <errno.h>
#include <string.h>

static domus_channel *first; /* the channel of the connection that came first */
static int on_open_result, results[5];
static domus_body body;

static int note_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    first = first == NULL ? event->channel : first;
    on_open_result = domus_channel_open_rest(stack, event->channel, NULL);
    return 0;
}

static int note_close(domus_stack *stack, void *self, const void *payload)
{
    first = NULL;
    return 0;
}

static const domus_pipeline web = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};

/* Do what the path says, and note the results. */
static int on_request(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    char how = domus_slice_data(domus_http_path(payload))[1];

    if (how == 'c')
        (void)domus_channel_close(stack, channel);
    if (how == 's')
        (void)domus_channel_set_pipeline(stack, channel, &web, 0);
    if (how == 'f')
        channel = first;
    results[0] = domus_channel_open_rest(stack, channel, NULL);
    results[1] = domus_channel_open_rest(stack, channel, &body);
    results[2] = domus_channel_open_rest(stack, channel, &body);
    int error = domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 204});
    results[3] = domus_channel_open_rest(stack, channel, NULL);
    return error;
}

static uint32_t marks_of(const void *payload)
{
    return domus_slice_data(domus_http_path(payload))[1] == 'n' ? 0 : DOMUS_ALONE;
}

static const domus_behaviour service = {
    .name = "rest",
    .kind = DOMUS_CHANNELS,
    .pipeline = &web,
    .on_open = {note_open, 0},
    .on_close = {note_close, 0},
    .on_peer = (const domus_on_peer[]){{&domus_http_request_type, on_request, 0, 0, marks_of},
                                       {.type = NULL}}};

/* Ask for a path on a connection of its own. */
static void ask(domus_testkit *kit, const char *request)
{
    domus_peer *peer = domt_pipes_peer(kit);

    memset(results, 1, sizeof results);
    body.number = 0;
    domt_pipes_send(kit, peer, request);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_peer_close(peer);
}

static void expect(int checked, int opened, int again, int answered)
{
    const int expected[] = {checked, opened, again, answered};

    for (int i = 0; i < 4; i++)
        ck_assert_msg(results[i] == expected[i], "%d: %d", i, results[i]);
    ck_assert((body.number != 0) == (opened == 0));
}

#define GET(path) "GET /" path " HTTP/1.1\r\nHost: a\r\n\r\n"

DOMT_TEST(the_rest_is_opened_once_behind_a_request_that_is_alone)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &service, 1);

    domus_peer *peer = domt_pipes_peer(kit);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(on_open_result, -EINVAL);
    ask(kit, GET("a"));
    expect(0, 0, -EBUSY, -EALREADY);
    ask(kit, GET("n"));
    expect(-EPERM, -EPERM, -EPERM, -EALREADY);
    ask(kit, GET("s"));
    expect(-EBUSY, -EBUSY, -EBUSY, -EALREADY);
    ask(kit, GET("c"));
    expect(-EPIPE, -EPIPE, -EPIPE, -EPIPE);
    ck_assert_ptr_null(first);
    domus_peer_close(peer);
    peer = domt_pipes_peer(kit);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_ptr_nonnull(first);
    ask(kit, GET("f"));
    expect(-EPERM, -EPERM, -EPERM, -EPERM);
    ask(kit, "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nb");
    expect(0, 0, -EBUSY, -EALREADY);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_SUITE(20)
