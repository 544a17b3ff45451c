/* A client of HTTP whose requests leave in pieces (domus_request_begin()), over a channel and over
 * a pool; requests that are the last of their connection; and a client and a server that change to
 * another protocol although the connection was to end. All of it in a test kit. */
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

/* --- the caller ------------------------------------------------------------------------------- */

/* An upload: `bytes` in pieces of 1,000. */
typedef struct upload {
    const char *path;
    uint64_t length; /* length of the body; 0: it is sent in chunks */
    uint64_t bytes;
    bool trailers;
    bool cuts;  /* cuts the request at its end */
    bool close; /* the request is the last of its connection */
    bool expects;
    uint8_t method;
} upload;

typedef struct outcome {
    int error;       /* the error of the request */
    int write_error; /* the error of the last write that failed */
    unsigned status;
    bool close;
    char body[64];
} outcome;

static const domus_type upload_type = {.name = "upload", .size = sizeof(upload)};
static const domus_type ask_type = {.name = "ask", .size = sizeof(upload)};
static const domus_type outcome_type = {.name = "outcome", .size = sizeof(outcome)};

static domus_address to; /* the actor that the caller asks */

static outcome outcome_of(const domus_answer *answer, int write_error)
{
    outcome made = {.error = answer->error, .write_error = write_error};

    if (answer->error != 0)
        return made;
    ck_assert_ptr_eq(answer->type, &domus_http_response_type);
    const domus_http_response *response = answer->payload;
    made.status = response->status;
    made.close = response->close;
    snprintf(made.body, sizeof made.body, "%.*s", (int)response->body.size,
             response->body.size != 0 ? domus_slice_data(response->body) : "");
    return made;
}

static domus_http_request head_of(const upload *what)
{
    domus_http_request head = {.method = what->method,
                               .length = what->length,
                               .close = what->close,
                               .expects = what->expects};

    ck_assert_int_eq(domus_slice_copy(what->path, strlen(what->path), &head.target), 0);
    return head;
}

static domus_slice slice_of(const char *text, size_t size)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, size, &slice), 0);
    return slice;
}

typedef struct upload_frame {
    upload what;
    uint64_t written;
    domus_request request;
    int write_error;
    domus_http_request head;
    domus_http_trailers trailers;
} upload_frame;

DOMUS_SEQUENCE(send_up, upload_frame)
{
    static const char zeros[1000];

    DOMUS_BEGIN;
    frame->what = *(const upload *)message;
    frame->head = head_of(&frame->what);
    DOMUS_AWAIT(
        domus_request_begin(stack, to, &domus_http_request_type, &frame->head, 20 * SECOND, then));
    if (answer->error != 0) {
        outcome failed = {.error = answer->error};
        return domus_reply(stack, &outcome_type, &failed);
    }
    frame->request = *(const domus_request *)answer->payload;
    while (frame->write_error == 0 && frame->written < frame->what.bytes) {
        frame->written += sizeof zeros;
        DOMUS_AWAIT(
            domus_request_write(stack, frame->request, slice_of(zeros, sizeof zeros), then));
        frame->write_error = answer->error;
    }
    if (frame->what.cuts || frame->write_error != 0) {
        DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    } else if (frame->what.trailers) {
        frame->trailers.fields = slice_of("X: y\r\n", 6);
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domus_http_trailers_type,
                                      &frame->trailers, then));
    } else {
        DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    }
    outcome made = outcome_of(answer, frame->write_error);
    return domus_reply(stack, &outcome_type, &made);
    DOMUS_END;
}

DOMUS_SEQUENCE(ask_whole, upload_frame)
{
    DOMUS_BEGIN;
    frame->head = head_of(message);
    DOMUS_ASK(to, &domus_http_request_type, &frame->head);
    outcome made = outcome_of(answer, 0);
    return domus_reply(stack, &outcome_type, &made);
    DOMUS_END;
}

static const domus_behaviour caller = {
    .name = "caller",
    .on = (const domus_on[]){DOMUS_ON(&upload_type, send_up),
                             DOMUS_ON(&ask_type, ask_whole),
                             {NULL, NULL, 0}},
};

/* An actor that answers whatever it gets. */
static int answer_all(domus_stack *stack, void *self, const void *payload)
{
    static const outcome nothing = {0};

    return domus_reply(stack, &outcome_type, &nothing);
}

static const domus_behaviour answering = {.name = "answering",
                                          .on = (const domus_on[]){{NULL, answer_all, 0}}};

/* --- the kit ---------------------------------------------------------------------------------- */

static domus_testkit *kit;
static domus_probe *probes[4];
static domus_address callers[4];

static int connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    to = ((const domus_connected *)answer->payload)->channel;
    return 0;
}

static int connect_on_mount(domus_stack *stack, void *self)
{
    return domus_connect(stack, DOMT_SERVED_AT, &(domus_connect_options){.behaviour = &connection},
                         connected);
}

static const domus_behaviour connector = {
    .name = "connector", .kind = DOMUS_CHANNELS, .on_mount = connect_on_mount};

static void start(bool pooled)
{
    kit = domt_served_start(NULL, &domt_served_by_streams, 1);
    domus_system *system = domus_testkit_system(kit);
    domus_address made;

    if (pooled) {
        const domus_pool_options options = {
            .behaviour = &connection, .connections_max = 2, .connections_min = 1};
        ck_assert_int_eq(domus_outside_pool_open(system, DOMT_SERVED_AT, &options, &to), 0);
    } else {
        ck_assert_int_eq(domus_outside_spawn_on(system, 1, &connector, NULL, &made), 0);
    }
    domt_served_pass(kit, 10 * MS);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(domus_outside_spawn_on(system, 2, &caller, NULL, &callers[i]), 0);
        ck_assert_int_eq(domus_probe_new(kit, &probes[i]), 0);
    }
}

static outcome expect(int which)
{
    outcome got;

    ck_assert_msg(domus_probe_expect(probes[which], &outcome_type, 30 * SECOND, &got) == 0, "%s",
                  domus_testkit_error(kit));
    return got;
}

static outcome up(const upload *what)
{
    ck_assert_int_eq(domus_probe_ask(probes[0], callers[0], &upload_type, what), 0);
    return expect(0);
}

static void begin_ask(int which, const char *path, bool close)
{
    upload what = {.path = path, .close = close, .method = DOMUS_HTTP_GET};

    ck_assert_int_eq(domus_probe_ask(probes[which], callers[which], &ask_type, &what), 0);
}

static void hold(outcome got, const char *body)
{
    ck_assert_msg(got.error == 0, "%s", strerrorname_np(-got.error));
    ck_assert_uint_eq(got.status, 200);
    ck_assert_str_eq(got.body, body);
}

#define UP(...) up(&(upload){.path = "/bytes", .method = DOMUS_HTTP_PUT, __VA_ARGS__})

/* --- uploads ---------------------------------------------------------------------------------- */

/* Check that an upload goes well after those that did not, and end. */
static void hold_that_another_goes(void)
{
    domt_served_pass(kit, 10 * SECOND);
    hold(UP(.bytes = 3000), "3000\n");
    domt_served_end(kit);
}

DOMT_TEST(bodies_leave_by_length_and_in_chunks)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        start(pooled);
        hold(UP(.length = 5000, .bytes = 5000), "5000\n");
        hold(UP(.bytes = 900000), "900000\n");
        hold(UP(.bytes = 0), "0\n");
        hold(UP(.bytes = 3000, .trailers = true), "3000\n");
        hold(UP(.length = 2000, .bytes = 2000, .close = true), "2000\n");
        if (pooled) /* on another connection */
            hold(UP(.bytes = 1000), "1000\n");
        else
            ck_assert_int_eq(UP(.bytes = 1000).error, -ESTALE);
        domt_served_end(kit);
    }
}

DOMT_TEST(a_length_that_is_not_met_fails_and_ends_the_connection)
{
    start(true);
    ck_assert_int_eq(UP(.length = 5000, .bytes = 3000).error, -EINVAL);
    outcome more = UP(.length = 1000, .bytes = 3000);
    ck_assert_int_eq(more.write_error, -EMSGSIZE);
    ck_assert_int_eq(more.error, -EPIPE);
    ck_assert_int_eq(UP(.length = 5000, .bytes = 3000, .cuts = true).error, -EPIPE);
    ck_assert_int_eq(UP(.bytes = 3000, .cuts = true).error, -EPIPE);
    hold_that_another_goes();
}

DOMT_TEST(an_early_answer_is_heard)
{
    start(true);
    outcome early = up(&(upload){.path = "/piece", .method = DOMUS_HTTP_PUT, .bytes = 90000000});
    ck_assert_int_eq(early.write_error, -EALREADY);
    hold(early, "piece\n");
    hold_that_another_goes();
}

/* The server says 100 when it reads: /sleep never does, and answers later than the client waits. */
DOMT_TEST(bodies_wait_until_they_are_wanted)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        start(pooled);
        for (int i = 0; i < 2; i++) {
            hold(UP(.length = 5000, .bytes = 5000, .expects = true), "5000\n");
            hold(UP(.bytes = 900000, .expects = true), "900000\n");
            hold(UP(.bytes = 0, .expects = true), "0\n");
            hold(UP(.bytes = 1000, .trailers = true, .expects = true), "1000\n");
        }
        ck_assert_uint_eq(domt_served_now.closed, 0);
        outcome slept = up(&(upload){.path = "/sleep/3000",
                                     .method = DOMUS_HTTP_PUT,
                                     .length = 3000,
                                     .bytes = 3000,
                                     .expects = true});
        hold(slept, "slept\n");
        ck_assert_int_eq(slept.write_error, 0);
        domt_served_end(kit);
    }
}

DOMT_TEST(the_writer_of_a_body_that_is_not_wanted_hears_of_it)
{
    for (int pooled = 0; pooled < 2; pooled++) {
        start(pooled);
        outcome early = up(&(upload){
            .path = "/sleep/100", .method = DOMUS_HTTP_PUT, .bytes = 90000, .expects = true});
        ck_assert_int_eq(early.write_error, -EALREADY);
        hold(early, "slept\n");
        domt_served_pass(kit, SECOND);
        ck_assert_uint_eq(domt_served_now.closed, 1);
        if (pooled)
            hold_that_another_goes();
        else
            domt_served_end(kit);
    }
}

/* --- the last request of a connection --------------------------------------------------------- */

DOMT_TEST(nothing_is_asked_behind_the_last_request)
{
    start(false);
    begin_ask(0, "/sleep/20", false);
    begin_ask(1, "/sleep/10", true);
    domt_served_pass(kit, 5 * MS);
    begin_ask(2, "/now", false);
    ck_assert_int_eq(expect(2).error, -ENOTCONN);
    hold(expect(0), "slept\n");
    outcome last = expect(1);
    hold(last, "slept\n");
    ck_assert(last.close);
    domt_served_pass(kit, 10 * MS);
    ck_assert_uint_eq(domt_served_now.closed, 1);
    ck_assert_uint_eq(domt_served_now.begun, 2);
    domt_served_end(kit);
}

DOMT_TEST(a_pool_asks_another_connection_then)
{
    start(true);
    begin_ask(0, "/sleep/30", true);
    domt_served_pass(kit, 5 * MS);
    begin_ask(1, "/now", false);
    begin_ask(2, "/now", true);
    begin_ask(3, "/now", false);
    for (int i = 1; i < 4; i++)
        hold(expect(i), "now\n");
    hold(expect(0), "slept\n");
    domt_served_end(kit);
}

DOMT_TEST(an_actor_that_answers_everything_is_no_peer)
{
    start(false);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 0, &answering, NULL, &to),
                     0);
    ck_assert_int_eq(UP(.bytes = 1000).error, -EOPNOTSUPP);
    domt_served_end(kit);
}

/* --- another protocol ------------------------------------------------------------------------- */

#define UPGRADE(path)                                                                              \
    "GET " path " HTTP/1.1\r\nHost: a\r\nConnection: close, upgrade\r\nUpgrade: lines\r\n\r\n"
#define SWITCHED "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: lines\r\n\r\n"

DOMT_TEST(a_request_that_was_to_be_the_last_may_change_the_protocol)
{
    static const char *const sent[] = {UPGRADE("/up") "hello\n", UPGRADE("/upped") "hello\n"};

    kit = domt_served_start(NULL, &domt_served_by_whole, 1);
    for (size_t i = 0; i < 2; i++) {
        domus_peer *peer = domt_served_peer(kit);
        domt_served_send(peer, sent[i]);
        domt_served_expect(kit, peer, SWITCHED "hello\n");
        domt_served_send(peer, "again\n");
        domt_served_expect(kit, peer, "again\n");
        domus_peer_finish(peer);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
        domus_peer_close(peer);
    }
    domt_served_end(kit);
}

DOMT_SUITE(20)
