/* A client of HTTP whose requests leave in pieces (domus_request_begin()), over a channel and over
 * a pool; requests that are the last of their connection; and a client and a server that change to
 * another protocol although the connection was to end. All tests run in a test kit. */
#include "tests/http/caller.h"
#include "tests/http/served.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S

static const domus_http_options as_client = {.role = DOMUS_ROLE_CLIENT, .host = "a"};
static const domus_type *const encodes[] = {&domus_http_request_type, NULL};
static const domus_pipeline asking = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &as_client}, {NULL, NULL}},
    .encodes = encodes,
};
static const domus_behaviour connection = {
    .name = "connection", .kind = DOMUS_CHANNELS, .pipeline = &asking};

/* An actor that answers every ask. */
static int reply_with_empty_outcome(domus_stack *stack, void *self, const void *payload)
{
    static const domt_outcome nothing = {0};

    return domus_reply(stack, &domt_outcome_type, &nothing);
}

static const domus_behaviour answering = {
    .name = "answering", .on = (const domus_on[]){{NULL, reply_with_empty_outcome, 0}}};

/* --- the kit ---------------------------------------------------------------------------------- */

static domus_testkit *kit;
static domus_probe *probes[4];
static domus_address callers[4];

static void begin_service_and_callers(bool pooled)
{
    const domus_pool_options options = {
        .behaviour = &connection, .connections_max = 2, .connections_min = 1};

    kit = domt_served_start_kit(NULL, &domt_served_by_streams, 1);
    domt_caller_connect_or_open_pool(kit, DOMT_SERVED_AT, pooled ? &options : NULL, &connection);
    domt_served_advance_kit(kit, 10 * MS);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(
            domus_outside_spawn_on(domus_testkit_system(kit), 2, &domt_caller, NULL, &callers[i]),
            0);
        ck_assert_int_eq(domus_probe_new(kit, &probes[i]), 0);
    }
}

static domt_outcome expect_outcome_of_caller(int which)
{
    return domt_caller_await_outcome(kit, probes[which]);
}

static domt_outcome upload_and_expect_outcome(const domt_call_up *what)
{
    ck_assert_int_eq(domus_probe_ask(probes[0], callers[0], &domt_up_type, what), 0);
    return expect_outcome_of_caller(0);
}

static void begin_get_of_caller(int which, const char *path, bool close)
{
    domt_call_up what = {.path = path, .close = close, .method = DOMUS_HTTP_GET};

    ck_assert_int_eq(domus_probe_ask(probes[which], callers[which], &domt_whole_type, &what), 0);
}

static void check_upload_succeeded(domt_outcome got, const char *body)
{
    ck_assert_msg(got.error == 0, "%s", strerrorname_np(-got.error));
    ck_assert_uint_eq(got.status, 200);
    ck_assert_str_eq(got.body, body);
}

#define UP(...)                                                                                    \
    upload_and_expect_outcome(                                                                     \
        &(domt_call_up){.path = "/bytes", .method = DOMUS_HTTP_PUT, __VA_ARGS__})

/* --- uploads ---------------------------------------------------------------------------------- */

/* Check that one more upload succeeds after the failed ones, and end the kit. */
static void check_further_upload_and_end_kit(void)
{
    domt_served_advance_kit(kit, 10 * SECOND);
    check_upload_succeeded(UP(.up = 3000), "3000\n");
    domt_served_end_kit(kit);
}

DOMT_TEST(bodies_leave_by_length_and_in_chunks)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        begin_service_and_callers(pooled);
        check_upload_succeeded(UP(.length = 5000, .up = 5000), "5000\n");
        check_upload_succeeded(UP(.up = 900000), "900000\n");
        check_upload_succeeded(UP(.up = 0), "0\n");
        check_upload_succeeded(UP(.up = 3000, .trailers = true), "3000\n");
        check_upload_succeeded(UP(.length = 2000, .up = 2000, .close = true), "2000\n");
        if (pooled) /* a pool makes another connection after the closed one */
            check_upload_succeeded(UP(.up = 1000), "1000\n");
        else
            ck_assert_int_eq(UP(.up = 1000).error, -ESTALE);
        domt_served_end_kit(kit);
    }
}

DOMT_TEST(a_length_that_is_not_met_fails_and_ends_the_connection)
{
    begin_service_and_callers(true);
    ck_assert_int_eq(UP(.length = 5000, .up = 3000).error, -EINVAL);
    domt_outcome more = UP(.length = 1000, .up = 3000);
    ck_assert_int_eq(more.write_error, -EMSGSIZE);
    ck_assert_int_eq(more.error, -EPIPE);
    ck_assert_int_eq(UP(.length = 5000, .up = 3000, .cuts = true).error, -EPIPE);
    ck_assert_int_eq(UP(.up = 3000, .cuts = true).error, -EPIPE);
    check_further_upload_and_end_kit();
}

DOMT_TEST(an_answer_before_the_end_of_an_upload_is_heard)
{
    begin_service_and_callers(true);
    domt_outcome early = upload_and_expect_outcome(
        &(domt_call_up){.path = "/piece", .method = DOMUS_HTTP_PUT, .up = 90000000});
    ck_assert_int_eq(early.write_error, -EALREADY);
    check_upload_succeeded(early, "piece\n");
    check_further_upload_and_end_kit();
}

/* The server sends 100 Continue when its handler reads: /sleep never reads, and answers later than
 * the client waits. */
DOMT_TEST(bodies_wait_for_100_continue_until_the_handler_reads)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        begin_service_and_callers(pooled);
        for (int i = 0; i < 2; i++) {
            check_upload_succeeded(UP(.length = 5000, .up = 5000, .expects = true), "5000\n");
            check_upload_succeeded(UP(.up = 900000, .expects = true), "900000\n");
            check_upload_succeeded(UP(.up = 0, .expects = true), "0\n");
            check_upload_succeeded(UP(.up = 1000, .trailers = true, .expects = true), "1000\n");
        }
        ck_assert_uint_eq(domt_served_now.closed, 0);
        domt_outcome slept = upload_and_expect_outcome(&(domt_call_up){.path = "/sleep/3000",
                                                                       .method = DOMUS_HTTP_PUT,
                                                                       .length = 3000,
                                                                       .up = 3000,
                                                                       .expects = true});
        check_upload_succeeded(slept, "slept\n");
        ck_assert_int_eq(slept.write_error, 0);
        domt_served_end_kit(kit);
    }
}

DOMT_TEST(writer_of_an_unwanted_body_is_told)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        begin_service_and_callers(pooled);
        domt_outcome early = upload_and_expect_outcome(&(domt_call_up){
            .path = "/sleep/100", .method = DOMUS_HTTP_PUT, .up = 90000, .expects = true});
        ck_assert_int_eq(early.write_error, -EALREADY);
        check_upload_succeeded(early, "slept\n");
        domt_served_advance_kit(kit, SECOND);
        ck_assert_uint_eq(domt_served_now.closed, 1);
        if (pooled)
            check_further_upload_and_end_kit();
        else
            domt_served_end_kit(kit);
    }
}

/* --- the last request of a connection --------------------------------------------------------- */

DOMT_TEST(no_request_is_sent_behind_the_last_one)
{
    begin_service_and_callers(false);
    begin_get_of_caller(0, "/sleep/20", false);
    begin_get_of_caller(1, "/sleep/10", true);
    domt_served_advance_kit(kit, 5 * MS);
    begin_get_of_caller(2, "/now", false);
    ck_assert_int_eq(expect_outcome_of_caller(2).error, -ENOTCONN);
    check_upload_succeeded(expect_outcome_of_caller(0), "slept\n");
    domt_outcome last = expect_outcome_of_caller(1);
    check_upload_succeeded(last, "slept\n");
    ck_assert(last.close);
    domt_served_advance_kit(kit, 10 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 1);
    ck_assert_uint_eq(domt_served_now.begun, 2);
    domt_served_end_kit(kit);
}

DOMT_TEST(a_pool_uses_another_connection_after_a_last_request)
{
    begin_service_and_callers(true);
    begin_get_of_caller(0, "/sleep/30", true);
    domt_served_advance_kit(kit, 5 * MS);
    begin_get_of_caller(1, "/now", false);
    begin_get_of_caller(2, "/now", true);
    begin_get_of_caller(3, "/now", false);
    for (int i = 1; i < 4; i++)
        check_upload_succeeded(expect_outcome_of_caller(i), "now\n");
    check_upload_succeeded(expect_outcome_of_caller(0), "slept\n");
    domt_served_end_kit(kit);
}

DOMT_TEST(upload_to_an_actor_that_is_no_client_is_refused)
{
    begin_service_and_callers(false);
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), 0, &answering, NULL, &domt_caller_to), 0);
    ck_assert_int_eq(UP(.up = 1000).error, -EOPNOTSUPP);
    domt_served_end_kit(kit);
}

/* --- another protocol ------------------------------------------------------------------------- */

#define UPGRADE(path)                                                                              \
    "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: lines\r\n\r\n"
#define SWITCHED "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\n"

DOMT_TEST(a_request_that_was_to_be_the_last_may_change_the_protocol)
{
    static const char *const sent[] = {UPGRADE("/up") "hello\n", UPGRADE("/upped") "hello\n"};

    kit = domt_served_start_kit(NULL, &domt_served_by_whole, 1);
    for (size_t i = 0; i < 2; i++) {
        domus_peer *peer = domt_served_connect_peer(kit);
        domt_served_send_text(peer, sent[i]);
        domt_served_expect_text(kit, peer, SWITCHED "hello\n");
        domt_served_send_text(peer, "again\n");
        domt_served_expect_text(kit, peer, "again\n");
        domus_peer_finish(peer);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
        domus_peer_close(peer);
    }
    domt_served_end_kit(kit);
}

DOMT_SUITE(20)
