/* Requests in pieces through a pool: none is repeated that has begun, and other asks
 * go round them. */
#include "tests/runtime/clients.h"
#include "tests/runtime/uploads.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static domus_testkit *kit;
static domus_probe *probe, *other;
static domus_peer_listener *listener;
static domus_address uploader;

static const domus_pipeline pipeline = {
    .stages = domt_upload_stages, .encodes = domt_upload_encodes, .inflight_max = 1};
static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .pipeline = &pipeline};

static void begin(uint32_t connections)
{
    const domus_pool_options options = {
        .behaviour = &line, .connections_min = connections, .repeatable = domt_upload_encodes};

    kit = domt_net_kit("10.0.0.3:80", 7);
    probe = domt_new_probe(kit);
    other = domt_new_probe(kit);
    domus_system *system = domus_testkit_system(kit);
    domt_net_ok(kit, domus_peer_listen(kit, "10.0.0.9:1", 0, &listener));
    ck_assert_int_eq(domus_outside_pool_open(system, "10.0.0.9:1", &options, &domt_uploads_now.to),
                     0);
    ck_assert_int_eq(domus_outside_spawn_on(system, 1, &domt_uploader, NULL, &uploader), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static domus_peer *take_peer(void)
{
    domus_peer *peer;

    domt_net_ok(kit, domus_peer_accept(listener, 20 * SECOND, &peer));
    domt_net_ok(kit, domus_testkit_run(kit));
    return peer;
}

static void ask(domus_probe *by, domus_address to, const char *text)
{
    domt_line question = {.body = {{NULL, 0}, 0}};

    snprintf(question.text, sizeof question.text, "%s", text);
    ck_assert_int_eq(domus_probe_ask(by, to, &domt_line_type, &question), 0);
    domt_net_ok(kit, domus_testkit_run(kit));
}

static void expect_sent(domus_peer *peer, const char *text)
{
    domt_net_ok(kit, domus_peer_expect(peer, text, strlen(text), SECOND));
}

static void answer(domus_peer *peer, domus_probe *by, const char *text)
{
    domt_line line_got;

    domt_net_ok(kit, domus_peer_send(peer, text, strlen(text)));
    domt_net_ok(kit, domus_probe_expect(by, &domt_line_type, SECOND, &line_got));
    ck_assert_int_eq(strncmp(line_got.text, text, strlen(text) - 1), 0);
}

DOMT_TEST(a_request_goes_through_a_pool)
{
    begin(1);
    domus_peer *peer = take_peer();
    ask(probe, uploader, "put 3");
    expect_sent(peer, "put+\n3:abc0:");
    answer(peer, probe, "one\n");
    domus_testkit_free(kit);
}

DOMT_TEST(other_asks_go_to_another_connection)
{
    begin(2);
    domus_peer *one = take_peer(), *two = take_peer();
    ask(probe, uploader, "put 3 1000");
    expect_sent(one, "put+\n");
    for (int i = 0; i < 3; i++) { /* the second one has more to do, and gets them all the same */
        ask(other, domt_uploads_now.to, "a");
    }
    expect_sent(two, "a\n");
    for (int i = 0; i < 3; i++) {
        answer(two, other, "x\n");
        if (i < 2)
            expect_sent(two, "a\n");
    }
    expect_sent(one, "3:abc0:");
    answer(one, probe, "y\n");
    domus_testkit_free(kit);
}

DOMT_TEST(a_request_that_has_begun_is_not_repeated)
{
    begin(1);
    domus_peer *peer = take_peer();
    ask(probe, uploader, "put 3 1000");
    expect_sent(peer, "put+\n");
    domus_peer_reset(peer);
    domt_net_ok(kit, domus_probe_expect_error(probe, -EPIPE, 5 * SECOND));
    peer = take_peer();
    ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(a_request_that_has_not_begun_goes_to_the_next_connection)
{
    begin(1);
    domus_peer *peer = take_peer();
    ask(other, domt_uploads_now.to, "a");
    ask(probe, uploader, "put 3");
    expect_sent(peer, "a\n");
    domus_peer_reset(peer);
    peer = take_peer();
    /* "a" is repeatable, and the request was not sent */
    domt_net_ok(kit, domus_testkit_run(kit));
    size_t size;
    const char *got = domus_peer_got(peer, &size);
    if (size != 0 && got[0] == 'a') {
        expect_sent(peer, "a\n");
        answer(peer, other, "x\n");
        expect_sent(peer, "put+\n3:abc0:");
        answer(peer, probe, "y\n");
    } else {
        expect_sent(peer, "put+\n3:abc0:");
        answer(peer, probe, "y\n");
        expect_sent(peer, "a\n");
        answer(peer, other, "x\n");
    }
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
