/* A change of the pipeline while a body is open: the change is made behind the body of the peer's
 * request, or behind an answer that is sent in pieces; it is refused while a body of an ask to the
 * peer is open. */
#include "tests/runtime/clients.h"
#include "tests/runtime/uploads.h"
#include "tests/support/stages.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/connect.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- a service -------------------------------------------------------------------------------- */

static const domt_stream_options as_server = {.role = DOMUS_ROLE_SERVER, .cuts = true};
static const domus_pipeline stuffed = {
    .stages = (const domus_pipeline_stage[]){
        {&domt_stuff_stage, NULL}, {&domt_stream_stage, &as_server}, {NULL, NULL}}};

typedef struct change_frame {
    domt_line line;
    domus_slice bytes;
    bool ended;
} change_frame;

static const domt_line ok = {.text = "ok}"};
static int result;

static bool has_line_the_word(const change_frame *frame, const char *word)
{
    return strstr(frame->line.text, word) != NULL;
}

/* Handle a request "KIND HOW". With "up" in HOW the change of the pipeline is requested first. Then
 * the body is read ("read"), sent back as a stream ("echo"), or left. */
DOMUS_SEQUENCE(change, change_frame)
{
    DOMUS_BEGIN;
    frame->line = *(const domt_line *)message;
    if (has_line_the_word(frame, "up"))
        result = domus_channel_set_pipeline(stack, domus_channel_running(stack), &stuffed,
                                            has_line_the_word(frame, "clean") ? DOMUS_PIPELINE_CLEAN
                                                                              : 0);
    if (has_line_the_word(frame, "echo")) {
        DOMUS_AWAIT(domus_reply_begin(stack, &domt_line_type, &ok, then));
        ck_assert_int_eq(answer->error, 0);
    }
    while (!frame->ended &&
           (has_line_the_word(frame, "read") || has_line_the_word(frame, "echo"))) {
        DOMUS_AWAIT(domus_body_read(stack, frame->line.body, then));
        ck_assert_int_eq(answer->error, 0);
        frame->ended = ((const domus_piece *)answer->payload)->last;
        frame->bytes = ((const domus_piece *)answer->payload)->bytes;
        if (has_line_the_word(frame, "echo")) {
            ck_assert_int_eq(domus_take(stack), 0);
            DOMUS_AWAIT(domus_reply_write(stack, frame->bytes, then));
            ck_assert_int_eq(answer->error, 0);
        }
    }
    return has_line_the_word(frame, "echo") ? domus_reply_end(stack, NULL, NULL)
                                            : domus_reply(stack, &domt_line_type, &ok);
    DOMUS_END;
}

static const domus_behaviour service = {
    .name = "changing",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_stream_server,
    .on_peer = (const domus_on_peer[]){DOMUS_ON_PEER(&domt_line_type, change, 0), {.type = NULL}}};

/* Requests of the peer. Bytes behind the first body are stuffed: "}]" stands for '}'. */
static const char *const asked[] = {
    "L4 up read\n}~}~Q next}]\n", "L4 up\n}~}~Q next}]\n", "C up read\n2:}~2:}~0:Q next}]\n",
    "C up echo\n4:}~}~0:Q next}]\n", "Q x\nC up echo\n4:}~}~0:Q next}]\n"};
static const char *const answered[] = {"ok}\nok}]\n", "ok}\nok}]\n", "ok}\nok}]\n", NULL, NULL};

DOMT_TEST(a_change_takes_place_behind_the_body_of_its_request)
{
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        size_t size = strlen(asked[i]);
        for (size_t cut = 1; cut < size; cut++) {
            domus_testkit *kit = domt_streams_new_kit(NULL, &service);
            domus_peer *peer = domt_pipes_connect_peer(kit);
            result = 1;
            ck_assert_int_eq(domus_peer_send(peer, asked[i], cut), 0);
            ck_assert_int_eq(domus_testkit_run(kit), 0);
            ck_assert_int_eq(domus_peer_send(peer, asked[i] + cut, size - cut), 0);
            if (answered[i] != NULL) {
                domt_pipes_peer_expect(kit, peer, answered[i]);
            } else { /* the answer is a stream, whose pieces depend on how the request was cut */
                ck_assert_int_eq(domus_testkit_run(kit), 0);
                const char *got = domus_peer_got(peer, &size);
                ck_assert_uint_ge(size, 12);
                ck_assert_mem_eq(got + size - 7, "0:ok}]\n", 7);
                /* the stream was sent by the old stages, without stuffing */
                ck_assert_ptr_null(memmem(got, size - 7, "}]", 2));
                size = strlen(asked[i]);
            }
            ck_assert_int_eq(result, 0);
            domus_testkit_free(kit);
        }
    }
}

DOMT_TEST(a_clean_change_looks_behind_the_body)
{
    static const char *const sent[] = {"L4 up clean read\n}~}~", "L4 up clean read\n}~}~Q"};

    for (size_t i = 0; i < 2; i++) {
        domus_testkit *kit = domt_streams_new_kit(NULL, &service);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domt_pipes_peer_send(kit, peer, sent[i]);
        if (i == 0) {
            domt_pipes_peer_expect(kit, peer, "ok}\n");
            domt_pipes_peer_send(kit, peer, "Q next}]\n");
            domt_pipes_peer_expect(kit, peer, "ok}]\n");
        } else {
            ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
        }
        domus_testkit_free(kit);
    }
}

/* --- a client --------------------------------------------------------------------------------- */

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT, .cuts = true};
static const domus_pipeline before = {.stages = domt_upload_stages, .encodes = domt_upload_encodes};
static const domus_pipeline behind = {
    .stages = (const domus_pipeline_stage[]){{&domt_stuff_stage, NULL},
                                             {&domt_stream_stage, &as_client},
                                             {NULL, NULL}},
    .encodes = domt_upload_encodes};
static const domus_type change_type = {.name = "change"}, connect_type = {.name = "connect"};

static int set_pipeline_in_handler(domus_stack *stack, void *self, const void *payload)
{
    result = domus_channel_set_pipeline(stack, domus_channel_running(stack), &behind, 0);
    return 0;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .pipeline = &before,
    .on = (const domus_on[]){{&change_type, set_pipeline_in_handler, 0}, {0}}};

static int record_connected_channel(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_uploads_now.to = ((const domus_connected *)answer->payload)->channel;
    return 0;
}

static int connect_to_peer(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line};
    return domus_connect(stack, "10.0.0.9:1", &options, record_connected_channel);
}

static const domus_behaviour dialler = {
    .name = "dialler",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&connect_type, connect_to_peer, 0}, {0}}};

static int let_channel_change_pipeline(domus_testkit *kit)
{
    result = 1;
    ck_assert_int_eq(
        domus_outside_notice(domus_testkit_system(kit), domt_uploads_now.to, &change_type, NULL),
        0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    return result;
}

static void send_text_of_peer(domus_testkit *kit, domus_peer *peer, const char *text)
{
    domt_net_check_ok(kit, domus_peer_send(peer, text, strlen(text)));
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

DOMT_TEST(a_client_does_not_change_within_bodies_of_asks)
{
    domus_peer_listener *listener;
    domus_address address, uploader;
    domus_peer *peer;
    domt_line question = {.text = "read 1000 50"};
    domus_testkit *kit = domt_net_new_echo_kit("10.0.0.3:80", 7);
    domus_system *system = domus_testkit_system(kit);
    domus_probe *probe = domt_new_probe(kit);

    domt_net_check_ok(kit, domus_peer_listen(kit, "10.0.0.9:1", 0, &listener));
    ck_assert_int_eq(domus_outside_spawn(system, &dialler, NULL, &address), 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &connect_type, NULL), 0);
    domt_net_check_ok(kit, domus_peer_accept(listener, SECOND, &peer));
    domt_net_check_ok(kit, domus_testkit_run(kit));
    ck_assert_int_eq(domus_outside_spawn(system, &domt_uploader, NULL, &uploader), 0);
    ck_assert_int_eq(domus_probe_ask(probe, uploader, &domt_line_type, &question), 0);
    domt_net_check_ok(kit, domus_peer_expect(peer, "put+\n", 5, SECOND));
    /* the change is refused, because the body of the request is open */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    send_text_of_peer(kit, peer, "early+\n2:hi");
    /* the change is refused, because only the begin of an early answer has come, so the ask is not
     * over */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    domt_net_check_ok(kit, domus_testkit_advance(kit, 60 * MS));
    /* the change is refused, because the body of the answer is open */
    ck_assert_int_eq(let_channel_change_pipeline(kit), -EBUSY);
    send_text_of_peer(kit, peer, "0:");
    domt_net_check_ok(kit, domus_probe_expect(probe, &domt_line_type, SECOND, &question));
    ck_assert_int_eq(let_channel_change_pipeline(kit), 0);
    size_t size;
    (void)domus_peer_got(peer, &size);
    domus_peer_take(peer, size);
    snprintf(question.text, sizeof question.text, "}");
    ck_assert_int_eq(domus_probe_ask(probe, domt_uploads_now.to, &domt_line_type, &question), 0);
    domt_net_check_ok(kit, domus_peer_expect(peer, "}]\n", 3, SECOND));
    domus_testkit_free(kit);
}

DOMT_SUITE(120)
