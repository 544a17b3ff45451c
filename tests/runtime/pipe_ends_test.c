/* io/pipelines/: requests that fail or expire, wrong bytes, and channels that end while requests
 * are under way, through the peer, a handler, the actor or the system. */
#include "runtime/network/ready.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- failures --------------------------------------------------------------------------------- */

static const domus_pipeline hasty = {
    .stages = (const domus_pipeline_stage[]){{&domt_pipe_stage, NULL}, {NULL, NULL}},
    .request_timeout_ns = 20 * MS};

DOMT_TEST(requests_expire_and_late_answers_do_no_harm)
{
    domus_peer *peer = domt_pipe_begin_kit_with_pipeline(&hasty);

    domt_pipe_peer_send_text(peer,
                             "sleep 100 a\nffar 100 b\nkeep 100 c\nfar 100 d\nnow 0 e\nkfwd 100 f\n"
                             "!sleep 50 g\nsleep 5 h\nfar 5 i\nffar 5 j\nkeep 5 k\nkffar 40 l\n");
    domt_pipe_peer_expect_text(peer, "error ETIMEDOUT\nerror ETIMEDOUT\nerror ETIMEDOUT\n"
                                     "error ETIMEDOUT\ne\nerror ETIMEDOUT\nerror ETIMEDOUT\n"
                                     "h\ni\nj\nk\nerror ETIMEDOUT\n");
    ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
    domt_pipe_peer_send_and_expect(peer, "now 0 z\nsleep 1 y\n", "z\ny\n");
    domt_pipe_finish_peer_and_end_kit(peer);
}

DOMT_TEST(asks_inherit_the_time_of_their_request)
{
    static const char *const hows[] = {"far", "near", "ffar", "kffar"};
    domus_peer *peer = domt_pipe_begin_kit_with_pipeline(&hasty);
    char asked[64];

    /* two requests, so that later ones have other numbers than in the helper's own channel */
    domt_pipe_peer_send_text(peer, "now 0 x\nnow 0 y\n");
    domt_pipe_peer_expect_text(peer, "x\ny\n");
    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        uint64_t from_ns = domus_testkit_now_ns(domt_pipe_kit);
        domt_pipes_now.deadline_ns = 0;
        snprintf(asked, sizeof asked, "%s 5 text\n", hows[i]);
        domt_pipe_peer_send_and_expect(peer, asked, "text\n");
        ck_assert_uint_ge(domt_pipes_now.deadline_ns, from_ns + 20 * MS);
        ck_assert_uint_le(domt_pipes_now.deadline_ns, from_ns + 25 * MS);
    }
    domt_pipe_close_peer_and_end_kit(peer);
}

static const domt_pipe_options failless = {.no_fail = true}, polite = {.hello = "hello\n"};
static const domus_pipeline without_fail = {
    .stages = (const domus_pipeline_stage[]){{&domt_pipe_stage, &failless}, {NULL, NULL}}};
static const domus_pipeline greeting = {
    .stages = (const domus_pipeline_stage[]){{&domt_pipe_stage, &polite}, {NULL, NULL}}};

enum ending {
    /* the peer sends FIN when it has got all answers, and then gets the end of the channel */
    FINISHES,
    /* the peer sends FIN before the answers, and then gets the end of the channel */
    FINISHES_FIRST,
    SEES_END, /* the peer gets the end of the channel before it closes */
    SEES_RESET,
};

static const struct {
    const char *name;
    const domus_pipeline *pipeline;
    const char *said, *heard;
    enum ending ending;
    uint32_t begun; /* number of the dialogue's requests that handlers get */
} dialogues[] = {
    {"failure without a text", &without_fail, "far 5 a\nerr 0 b\n", "", SEES_RESET, 2},
    {"wrong bytes without one", &without_fail, "now 0 a\n$x\n", "", SEES_RESET, 1},
    {"odd answer without one", &without_fail, "now 0 a\nodd 0 b\n", "", SEES_RESET, 2},
    {"failed forward without one", &without_fail, "ferr 0 a\n", "", SEES_RESET, 1},
    {"no row, without one", &without_fail, "?now 0 a\n", "", SEES_RESET, 0},
    {"late failure without one", &without_fail, "late 5 b\n", "", SEES_RESET, 1},
    {"wrong bytes are told behind earlier answers", &domt_pipe_pipeline,
     "ffar 50 a\nnow 0 b\n$x\nnow 0 c\n$y\n", "a\nb\nwrong EPROTO\n", SEES_END, 2},
    {"wrong bytes wait for what is alone", &domt_pipe_pipeline, "sleep 10 a\n!sleep 10 b\n$x\n",
     "a\nb\nwrong EPROTO\n", SEES_END, 2},
    {"part of a message at the end", &domt_pipe_pipeline, "ffar 5 a\nnow 0 b\nnow",
     "a\nb\nwrong EPIPE\n", FINISHES_FIRST, 2},
    {"part behind one alone", &domt_pipe_pipeline, "sleep 5 a\n!now 0 b\nn", "a\nb\nwrong EPIPE\n",
     FINISHES_FIRST, 2},
    {"part behind a kept one alone", &domt_pipe_pipeline, "now 0 a\n!keep 3 b\nnow",
     "a\nb\nwrong EPIPE\n", FINISHES_FIRST, 2},
    {"bytes of open and decode go out at once", &greeting, "sleep 10 a\n&now 0 b\n",
     "hello\n&\na\nb\n", FINISHES, 2},
    {"requests alone follow each other", &domt_pipe_pipeline,
     "!now 0 a\n!far 5 b\n!err 0 c\n!none 0 d\n!sleep 5 e\n!ffar 1 f\n!keep 2 g\n?now 0 h\n"
     "now 0 i\n",
     "a\nb\nerror EBADMSG\nerror ENOMSG\ne\nf\ng\nerror EOPNOTSUPP\ni\n", FINISHES, 8},
    {"with ids answers leave as they come", &domt_pipe_by_id,
     "7:sleep 30 a\n5:sleep 10 b\n9:err 0 c\n1:far 20 d\n2:now 0 e\n",
     "9:error EBADMSG\n2:e\n5:b\n1:d\n7:a\n", FINISHES, 5},
    {"one that waited to be alone keeps its id", &domt_pipe_by_id,
     "7:sleep 10 a\n8:now 0 b\n9:!sleep 5 c\n10:now 0 d\n", "8:b\n7:a\n9:c\n10:d\n", FINISHES, 4},
};

DOMT_TEST(each_dialogue_gets_its_answers_and_its_way_to_end)
{
    for (size_t i = 0; i < sizeof dialogues / sizeof dialogues[0]; i++) {
        enum ending ending = dialogues[i].ending;
        domus_peer *peer = domt_pipe_begin_kit_with_pipeline(dialogues[i].pipeline);
        domt_pipe_peer_send_text(peer, dialogues[i].said);
        if (ending == FINISHES_FIRST)
            domus_peer_finish(peer);
        domt_pipe_peer_expect_text(peer, dialogues[i].heard);
        if (ending == FINISHES)
            domus_peer_finish(peer);
        int result = ending == SEES_RESET ? domus_peer_expect_reset(peer, SECOND)
                                          : domus_peer_expect_end(peer, SECOND);
        domt_pipe_run_kit();
        ck_assert_msg(result == 0 && domt_pipes_now.begun == dialogues[i].begun &&
                          domt_pipes_now.closed == (ending != SEES_END),
                      "%s: %d, %u begun, %u closed", dialogues[i].name, result,
                      domt_pipes_now.begun, domt_pipes_now.closed);
        domt_pipe_close_peer_and_end_kit(peer);
    }
}

/* --- the handler ends the channel ------------------------------------------------------------- */

static const char *const behind[] = {"", "now 0 b\n", "now 0 b\nnow"};

DOMT_TEST(a_handler_resets_its_channel_and_still_sees_the_request)
{
    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
        char asked[64];

        snprintf(asked, sizeof asked, "reset 0 text\n%s", behind[i]);
        domt_pipe_peer_send_text(peer, asked);
        ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
        ck_assert_uint_eq(domt_pipes_now.begun, 1);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(a_handler_closes_its_channel_and_still_sees_the_request)
{
    for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
        char asked[64];

        snprintf(asked, sizeof asked, "now 0 a\nclose 0 text\n%s", behind[i]);
        domt_pipe_peer_send_and_expect(peer, asked,
                                       "a\n"); /* behind a close, no further answer is sent */
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
        ck_assert_uint_eq(domt_pipes_now.begun, 2);
        domt_pipe_close_peer_and_end_kit(peer);
    }
}

/* Returns how many provided buffers the channels of a kit hold. */
static uint32_t count_held_buffers(void)
{
    const domus_system *system = domt_pipe_system_of_kit();
    uint32_t held = 0;

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        held += io->config->io.buffers.count - domi_io_count_free_buffers(io);
    }
    return held;
}

DOMT_TEST(a_channel_that_waits_for_its_peer_to_close_holds_no_received_bytes)
{
    static const char *const asked[] = {"$x\nmore\n", "close 0 text\nmore\n", "now 0 a\n$x\nmore"};

    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

        domt_pipe_peer_send_text(peer, asked[i]);
        domt_pipe_pass_time(5 * MS);
        ck_assert_int_ne(domus_peer_has_end(peer), 0);
        ck_assert_uint_eq(domt_pipes_now.closed, 0);
        ck_assert_uint_eq(count_held_buffers(), 0);
        domt_pipe_close_peer_and_end_kit(peer);
    }
}

DOMT_TEST(a_request_that_fails_after_a_close_does_not_reset_the_channel)
{
    domus_peer *peer = domt_pipe_begin_kit_with_pipeline(&without_fail);

    domt_pipe_peer_send_and_expect(peer, "now 0 a\nlate 5 b\nclose 0 text\n", "a\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipe_pass_time(50 * MS);
    ck_assert_uint_eq(domt_pipes_now.resumed, 1);
    ck_assert_uint_eq(domt_pipes_now.closed, 0);
    domus_peer_close(peer);
    domt_pipe_pass_time(50 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_int_eq(domt_pipes_now.close_error, 0);
    domt_pipe_end_kit();
}

DOMT_TEST(after_a_finish_requests_are_handled_and_not_answered)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "finish 0 text\n&now 0 b\n&sleep 1 c\nffar 1 d\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(domt_pipes_now.begun, 4);
    domt_pipe_peer_send_text(peer, "!&now 0 b\n");
    domus_peer_finish(peer);
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(domt_pipes_now.begun, 5);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_int_eq(domt_pipes_now.close_error, 0);
    domt_pipe_end_kit();
}

/* --- the peer goes ---------------------------------------------------------------------------- */

static const domus_type nothing_type = {.name = "nothing"};

static bool is_actor_gone(domus_address address)
{
    return domus_outside_notice(domt_pipe_system_of_kit(), address, &nothing_type, NULL) == -ESTALE;
}

DOMT_TEST(a_peer_that_goes_cancels_the_conversations)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(
        peer, "sleep 50 a\nffar 50 b\nfar 50 c\nkeep 50 d\nkfwd 50 e\nkffar 50 f\nsleep 60 g\n");
    domt_pipe_pass_time(5 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 7);
    domus_peer_reset(peer);
    domt_pipe_run_kit();
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.cancelled, 2);
    domt_pipe_pass_time(5 * MS);
    ck_assert(is_actor_gone(domt_pipes_now.channel));
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(domt_pipes_now.resumed, 0);
    domt_pipe_end_kit();
}

DOMT_TEST(conversation_that_outlives_the_connection_goes_on_to_its_end)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "+sleep 50 a\nsleep 50 b\n+far 60 c\n+keep 40 d\n+ffar 10 e\n");
    domt_pipe_pass_time(5 * MS);
    domus_peer_reset(peer);
    domt_pipe_pass_time(5 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.cancelled, 1);
    ck_assert(!is_actor_gone(domt_pipes_now.channel));
    domt_pipe_pass_time(45 * MS);
    ck_assert_uint_eq(domt_pipes_now.resumed, 1);
    ck_assert(!is_actor_gone(domt_pipes_now.channel));
    domt_pipe_pass_time(45 * MS);
    ck_assert(is_actor_gone(domt_pipes_now.channel));
    ck_assert_uint_eq(domt_pipes_now.cancelled, 1);
    domt_pipe_end_kit();
}

/* A kept request whose connection has ended can still be answered, although nobody gets the answer;
 * to forward it fails. The behaviours have conversations with frames, conversations without frames,
 * and a time-out for requests. */
DOMT_TEST(kept_requests_may_be_answered_after_their_connection)
{
    domus_pipeline patient = domt_pipe_pipeline;
    domus_behaviour timed = domt_pipe_framed;
    const domus_behaviour *const behaviours[] = {&domt_pipe_framed, &domt_pipe_plain, &timed};

    patient.request_timeout_ns = 10 * SECOND;
    timed.pipeline = &patient;
    for (size_t i = 0; i < 3; i++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, behaviours[i], 1);

        domt_pipe_peer_send_text(peer, "keep 10 a\n+keep 40 b\n+kffar 30 c\n+keep 20 d\n");
        domt_pipe_pass_time(5 * MS);
        domus_peer_reset(peer);
        domt_pipe_pass_time(10 * MS);
        ck_assert_uint_eq(domt_pipes_now.closed, 1);
        ck_assert_uint_eq(domt_pipes_now.kept_replies, 0);
        ck_assert(!is_actor_gone(domt_pipes_now.channel));
        domt_pipe_pass_time(20 * MS);
        ck_assert_uint_eq(domt_pipes_now.kept_replies, 1);
        ck_assert(!is_actor_gone(domt_pipes_now.channel));
        domt_pipe_pass_time(20 * MS);
        ck_assert_uint_eq(domt_pipes_now.kept_replies, 2);
        ck_assert(is_actor_gone(domt_pipes_now.channel));
        ck_assert_uint_eq(domt_pipes_now.helped, 0);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(time_outs_of_requests_end_with_their_connection)
{
    domus_behaviour behaviour = domt_pipe_framed;
    behaviour.pipeline = &hasty;

    for (int round = 0; round < 2; round++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);
        domt_pipe_peer_send_text(peer, "ffar 50 a\nfhang 0 b\nkffar 15 c\nsleep 100 d\n");
        domt_pipe_pass_time(5 * MS);
        domus_peer_reset(peer);
        domt_pipe_pass_time(5 * MS);
        ck_assert(is_actor_gone(domt_pipes_now.channel));
        domus_peer *others[6];
        /* in the second round, one of these channels lives in the slot of the channel that was
         * reset */
        for (int i = 0; i < 6 * round; i++) {
            others[i] = domt_pipe_connect_peer();
            domt_pipe_peer_send_text(others[i], "sleep 15 w\nsleep 15 x\nsleep 15 y\nsleep 15 z\n");
        }
        for (int i = 0; i < 6 * round; i++)
            domt_pipe_peer_expect_text(others[i], "w\nx\ny\nz\n");
        domt_pipe_pass_time(SECOND);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(the_last_requests_of_a_peer_that_has_finished_are_answered)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer, "sleep 5 a\nffar 15 b\nkeep 25 c\nnow 0 d\n!sleep 5 e\n");
    domus_peer_finish(peer);
    domt_pipe_peer_expect_text(peer, "a\nb\nc\nd\ne\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    peer = domt_pipe_connect_peer();
    domt_pipe_peer_send_text(peer, "sleep 5 a\nffar 15 b\nkeep 25 c\n");
    domus_peer_finish(peer);
    domt_pipe_peer_expect_text(peer, "a\nb\nc\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    ck_assert_int_eq(domt_pipes_now.close_error, 0);
    domt_pipe_end_kit();
}

DOMT_TEST(a_channel_that_is_stopped_ends_its_requests)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);

    domt_pipe_peer_send_text(peer,
                             "sleep 50 a\n+sleep 50 b\nffar 50 c\nkeep 50 d\nfar 50 e\n!now 0 f\n");
    domt_pipe_pass_time(5 * MS);
    domt_pipe_stop_channel();
    domt_pipe_pass_time(SECOND);
    ck_assert_int_ne(domus_peer_has_end(peer), 0);
    ck_assert_uint_eq(domt_pipes_now.cancelled, 2);
    domus_peer_close(peer);
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    domt_pipe_end_kit();
}

/* --- drains ----------------------------------------------------------------------------------- */

/* Stop the system after some steps, and check that each request that was read is answered first. */
static void check_stop_answers_requests_first(const char *asked, const char *answers)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, seed);
        size_t size;

        domt_pipe_peer_send_text(peer, asked);
        domt_pipe_run_kit();
        ck_assert_int_eq(domus_testkit_stop(domt_pipe_kit), 0);
        const char *got = domus_peer_got(peer, &size);
        ck_assert_msg(size == strlen(answers) && memcmp(got, answers, size) == 0, "seed %u: %.*s",
                      (unsigned)seed, (int)size, got);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(a_drain_waits_for_forwarded_requests)
{
    check_stop_answers_requests_first("ffar 50 a\n", "a\n");
    check_stop_answers_requests_first("fnear 50 a\nffar 20 b\nkffar 5 c\n", "a\nb\nc\n");
}

DOMT_TEST(a_drain_waits_for_what_is_read_and_not_begun)
{
    check_stop_answers_requests_first("sleep 20 a\n!ffar 20 b\nnow 0 c\n", "a\nb\nc\n");
    check_stop_answers_requests_first("!ffar 20 a\n!ffar 20 b\nffar 0 c\n!now 0 d\n",
                                      "a\nb\nc\nd\n");
}

DOMT_TEST(drain_waits_for_conversations_of_channels)
{
    check_stop_answers_requests_first("sleep 20 a\nfar 30 b\nkeep 10 c\n", "a\nb\nc\n");
    check_stop_answers_requests_first("now 0 a\n", "a\n");
}

DOMT_SUITE(120)
