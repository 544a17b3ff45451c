/* io/pipelines/: the rows of on_peer, with marks, with sequences and without a type; large answers;
 * and the limit of requests. A wrong pipeline is refused when an actor with it is spawned, in each
 * way in which that can happen; a right one is checked then, and not again for each channel. */
#include "tests/runtime/pipes.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/pool.h>
#include <domus/testkit.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- rows ------------------------------------------------------------------------------------- */

static int reply_with_text_any(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;
    int error = domus_slice_copy("any", 3, &packet.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

DOMT_TEST(row_without_type_takes_all_other_messages)
{
    const domus_on_peer rows[] = {domt_pipe_plain.on_peer[0],
                                  {.type = NULL, .handle = reply_with_text_any}};
    domus_behaviour behaviour = domt_pipe_plain;
    behaviour.on_peer = rows;
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);
    domt_pipe_peer_send_and_expect(peer, "now 0 a\n?now 0 b\nfar 1 c\n?x\n", "a\nany\nc\nany\n");
    domt_pipe_close_peer_and_end_kit(peer);
}

static uint32_t give_no_marks(const void *payload)
{
    return 0;
}

/* A message gets the marks of its own row, and none that a message before it has got. */
DOMT_TEST(a_row_has_its_own_marks_and_not_those_of_messages)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = DOMUS_ALONE | DOMUS_OUTLIVES;
    rows[0].marks_of = give_no_marks;
    behaviour.on_peer = rows;
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);

    domt_pipe_peer_send_text(peer, "sleep 10 a\nsleep 10 b\nnow 0 c\n");
    domt_pipe_pass_time(5 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    domt_pipe_pass_time(10 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 2);
    domt_pipe_peer_expect_text(peer, "a\nb\nc\n");
    domt_pipe_peer_send_text(peer, "sleep 10 d\n");
    domt_pipe_pass_time(5 * MS);
    domus_peer_reset(peer);
    domt_pipe_pass_time(10 * MS);
    ck_assert_uint_eq(domt_pipes_now.resumed, 3);
    domt_pipe_end_kit();
}

static _Atomic uint32_t ends_heard;

static int count_end_heard(domus_stack *stack, void *self, const void *payload)
{
    ends_heard++;
    return 0;
}

/* Let a peer send requests, the first of which is handled alone, and then FIN. Check how often
 * on_end was called: `heard_early` while the first request is handled, and `heard` at the end. */
static void check_end_behind_request_alone(uint32_t marks, const char *text, uint32_t heard_early,
                                           uint32_t heard)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = marks;
    behaviour.on_peer = rows;
    behaviour.on_end = (domus_call){count_end_heard, 0};
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);

    ends_heard = 0;
    domt_pipe_peer_send_text(peer, text);
    domus_peer_finish(peer);
    domt_pipe_pass_time(50 * MS);
    ck_assert_uint_eq(ends_heard, heard_early);
    /* on_end of this service closes nothing, so all answers still come. */
    domt_pipe_peer_expect_text(peer, strchr(text, 'b') != NULL ? "a\nb\n" : "a\n");
    domt_pipe_pass_time(50 * MS);
    ck_assert_uint_eq(ends_heard, heard);
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_TEST(request_alone_may_hear_of_fin_before_what_is_behind_it)
{
    check_end_behind_request_alone(DOMUS_ALONE, "sleep 100 a\nnow 0 b\n", 0, 1);
    check_end_behind_request_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\nnow 0 b\n", 1, 2);
    check_end_behind_request_alone(DOMUS_ALONE, "sleep 100 a\n", 1, 1);
    check_end_behind_request_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\n", 1, 2);
    check_end_behind_request_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\nsleep 100 b\n", 1,
                                   3);
}

/* Let a peer send FIN while its request is handled: the channel ends at once, and its conversations
 * end, too, unless they outlive the connection. */
static void check_conversations_end_at_fin(uint32_t marks, const char *text, bool hears)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = marks;
    behaviour.on_peer = rows;
    if (hears)
        behaviour.on_end = (domus_call){count_end_heard, 0};
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);

    ends_heard = 0;
    domt_pipe_peer_send_text(peer, text);
    domt_pipe_pass_time(10 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 0);
    domus_peer_finish(peer);
    domt_pipe_pass_time(10 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.cancelled, (marks & DOMUS_OUTLIVES) != 0 ? 0 : 1);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    ck_assert_uint_eq(ends_heard, 0);
    ck_assert(domus_peer_has_end(peer));
    domt_pipe_close_peer_and_end_kit(peer);
}

DOMT_TEST(fin_of_the_peer_cancels_a_request_alone)
{
    const uint32_t marks = DOMUS_ALONE | DOMUS_ENDS_WITH_PEER;
    check_conversations_end_at_fin(marks, "sleep 100 a\n", false);
    check_conversations_end_at_fin(marks, "sleep 100 a\nnow 0 b\n", false);
    check_conversations_end_at_fin(marks, "sleep 100 a\n", true);
    check_conversations_end_at_fin(marks | DOMUS_OUTLIVES, "sleep 100 a\nnow 0 b\n", true);
    /* the request was answered before the FIN, so nothing is lost */
    check_end_behind_request_alone(marks, "now 0 a\n", 1, 1);
}

/* --- sequences -------------------------------------------------------------------------------- */

static _Atomic uint32_t ended, cancelled;

struct steps {
    domus_packet packet;
    uint32_t step;
};

/* Wait three times, each time in another way, and answer with what the last actor has answered. */
DOMUS_SEQUENCE(take_steps, struct steps)
{
    DOMUS_BEGIN;
    if (domus_slice_keep(((const domus_packet *)message)->bytes, &frame->packet.bytes) != 0)
        return -ENOMEM;
    for (frame->step = 0; frame->step < 2; frame->step++) {
        DOMUS_SLEEP(5 * MS);
        if (answer->error != 0) {
            cancelled++;
            domus_slice_free(frame->packet.bytes);
            return answer->error;
        }
    }
    DOMUS_ASK(frame->step % 2 == 0 ? domt_pipes_now.far : domt_pipes_now.near, &domus_packet_type,
              &frame->packet);
    ended++;
    if (answer->error != 0)
        return answer->error;
    if (domus_slice_keep(((const domus_packet *)answer->payload)->bytes, &frame->packet.bytes) != 0)
        return -ENOMEM;
    return domus_reply(stack, &domus_packet_type, &frame->packet);
    DOMUS_END;
}

static domus_behaviour make_behaviour_with_rows(const domus_on_peer *rows)
{
    domus_behaviour behaviour = domt_pipe_plain;
    ended = cancelled = 0;
    behaviour.on_peer = rows;
    return behaviour;
}

DOMT_TEST(sequences_answer_in_the_order_of_requests)
{
    static const domus_on_peer rows[] = {DOMUS_ON_PEER(&domus_packet_type, take_steps, 0),
                                         {.type = NULL}};
    domus_behaviour behaviour = make_behaviour_with_rows(rows);
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);

    domt_pipe_peer_send_and_expect(peer, "x 9 a\nx 1 b\nx 0 c\nferr 0 d\nx 3 e\n",
                                   "a\nb\nc\nerror EBADMSG\ne\n");
    domt_pipe_peer_send_text(peer, "x 9 f\nx 1 g\n");
    domt_pipe_pass_time(7 * MS);
    domus_peer_reset(peer);
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(ended, 5);
    ck_assert_uint_eq(cancelled, 2);
    domt_pipe_end_kit();
}

DOMT_TEST(sequences_have_the_marks_of_their_rows)
{
    static const domus_on_peer rows[] = {
        DOMUS_ON_PEER(&domus_packet_type, take_steps, DOMUS_ALONE | DOMUS_OUTLIVES),
        {.type = NULL}};
    domus_behaviour behaviour = make_behaviour_with_rows(rows);
    domus_peer *peer = domt_pipe_begin_kit(NULL, &behaviour, 1);

    domt_pipe_peer_send_text(peer, "x 0 a\nx 0 b\n");
    domt_pipe_pass_time(7 * MS);
    ck_assert_uint_eq(ended, 0);
    domt_pipe_peer_expect_text(peer, "a\n");
    ck_assert_uint_eq(ended, 1);
    domt_pipe_peer_expect_text(peer, "b\n");
    domt_pipe_peer_send_text(peer, "x 0 c\n");
    domt_pipe_pass_time(7 * MS);
    domus_peer_reset(peer);
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(ended, 3);
    ck_assert_uint_eq(cancelled, 0);
    domt_pipe_end_kit();
}

/* --- ids -------------------------------------------------------------------------------------- */

/* While the first request hangs, the requests behind it are answered, up to the 65,536th. */
DOMT_TEST(requests_behind_one_that_hangs_have_a_limit)
{
    enum { MOST = 65536, MORE = 100 };
    domus_peer *peer = domt_pipe_begin_kit_with_pipeline(&domt_pipe_by_id);
    char text[64];

    domt_pipe_peer_send_text(peer, "0:sleep 60000 a\n");
    for (uint32_t i = 1; i < MOST + MORE; i++) {
        domt_pipe_peer_send_text(peer, "1:now 0 b\n");
        if (i % 1000 == 0)
            domt_pipe_run_kit();
    }
    domt_pipe_pass_time(SECOND);
    ck_assert_uint_eq(domt_pipes_now.begun, MOST);
    for (uint32_t i = 1; i < MOST; i++)
        domt_pipe_peer_expect_text(peer, "1:b\n");
    snprintf(text, sizeof text, "0:a\n1:b\n");
    ck_assert_int_eq(domus_peer_expect(peer, text, strlen(text), 120 * SECOND), 0);
    for (uint32_t i = 1; i < MORE; i++)
        domt_pipe_peer_expect_text(peer, "1:b\n");
    ck_assert_uint_eq(domt_pipes_now.begun, MOST + MORE);
    domt_pipe_close_peer_and_end_kit(peer);
}

/* --- large answers ---------------------------------------------------------------------------- */

/* The answers are longer than a buffer, and are whole, whether they are sent at once or have to
 * wait. */
DOMT_TEST(huge_answers_of_channel_come_whole)
{
    domus_config config = domt_pipe_default_config();
    config.channel.send_max_bytes = UINT64_C(4) * DOMT_PIPE_HUGE;
    domus_peer *peer = domt_pipe_begin_kit(&config, &domt_pipe_framed, 1);
    char *huge = malloc(DOMT_PIPE_HUGE + 2);

    ck_assert_ptr_nonnull(huge);
    for (size_t i = 0; i < DOMT_PIPE_HUGE; i++)
        huge[i] = (char)('a' + i / 1000 % 26);
    memcpy(huge + DOMT_PIPE_HUGE, "\n", 2);
    domt_pipe_peer_send_and_expect(peer, "now 0 huge\nnow 0 a\n", huge);
    domt_pipe_peer_expect_text(peer, "a\n");
    domt_pipe_peer_send_and_expect(peer, "sleep 20 b\nnow 0 huge\nfar 1 huge\nnow 0 c\n", "b\n");
    domt_pipe_peer_expect_text(peer, huge);
    domt_pipe_peer_expect_text(peer, huge);
    domt_pipe_peer_expect_text(peer, "c\n");
    free(huge);
    domt_pipe_close_peer_and_end_kit(peer);
}

/* --- a stage that counts how often it is checked ---------------------------------------------- */

static _Atomic uint32_t checks;

/* A check of a stage whose options contain the result of the check. */
static int count_check_of_options(const void *options)
{
    atomic_fetch_add(&checks, 1);
    return *(const int *)options;
}

static int decode_to_exclamation_mark(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, "!", 1) == 0 ? (int)size : -ENOMEM;
}

static int encode_nothing(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                          const void *payload)
{
    return 0;
}

static const domus_stage stage = {.name = "checked",
                                  .check = count_check_of_options,
                                  .decode = decode_to_exclamation_mark,
                                  .encode = encode_nothing};

static const int right = 0, wrong = -EDOM, odd = 1;

#define PIPELINE(options)                                                                          \
    {                                                                                              \
        .stages = (const domus_pipeline_stage[])                                                   \
        {                                                                                          \
            {&stage, options}, {NULL, NULL},                                                       \
        }                                                                                          \
    }
static const domus_pipeline right_pipeline = PIPELINE(&right);
static const domus_pipeline wrong_pipeline = PIPELINE(&wrong);
static const domus_pipeline odd_pipeline = PIPELINE(&odd);

static const domus_behaviour right_channel = {
    .name = "right", .kind = DOMUS_CHANNELS, .pipeline = &right_pipeline};
static const domus_behaviour wrong_channel = {
    .name = "wrong", .kind = DOMUS_CHANNELS, .pipeline = &wrong_pipeline};
static const domus_behaviour odd_channel = {
    .name = "odd", .kind = DOMUS_CHANNELS, .pipeline = &odd_pipeline};
static const domus_behaviour of_wrong = {
    .name = "of wrong", .kind = DOMUS_CHANNELS, .channel = &wrong_channel};

/* --- the ways of an actor --------------------------------------------------------------------- */

enum { SPAWN, SPAWN_OWNER, CONNECT, POOL, DATAGRAM, BECOME, WAYS };

static int results[WAYS];

static int return_error_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int try_wrong_behaviour_in_each_way(domus_stack *stack, void *self)
{
    const domus_pool_options pool = {.behaviour = &wrong_channel};
    const domus_connect_options connect = {.behaviour = &wrong_channel};
    const domus_datagram_options datagram = {.behaviour = &right_channel};
    domus_endpoint at;
    domus_address made;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    results[SPAWN] = domus_spawn(stack, &wrong_channel, NULL, &made);
    results[SPAWN_OWNER] = domus_spawn(stack, &of_wrong, NULL, &made);
    results[CONNECT] = domus_connect(stack, "127.0.0.1:1", &connect, return_error_of_connect);
    results[POOL] = domus_pool_open(stack, "127.0.0.1:1", &pool, &made);
    results[DATAGRAM] = domus_datagram_open(stack, &at, &datagram, &made, NULL);
    results[BECOME] = domus_become(stack, &wrong_channel);
    return 0;
}

static const domus_behaviour trier = {
    .name = "trier", .kind = DOMUS_CHANNELS, .on_mount = try_wrong_behaviour_in_each_way};

DOMT_TEST(a_wrong_pipeline_is_refused_when_an_actor_is_made)
{
    (void)domt_pipes_new_kit(NULL, &domt_pipe_plain, 1);
    domus_system *system = domt_pipe_system_of_kit();
    domus_address made;

    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &wrong_channel, NULL, &made), -EDOM);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &odd_channel, NULL, &made), -EINVAL);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &trier, NULL, &made), 0);
    domt_pipe_run_kit();
    for (int i = 0; i < WAYS; i++)
        ck_assert_msg(results[i] == (i == DATAGRAM ? -EOPNOTSUPP : -EDOM), "way %d: %d", i,
                      results[i]);
    domt_pipe_end_kit();
}

/* --- listeners -------------------------------------------------------------------------------- */

static void make_kit_that_listens(const domus_behaviour *behaviour, int expected)
{
    domus_config config = domt_pipe_default_config();
    config.system.threads = 1;
    domt_pipe_kit = domt_kit_new_listening(&config, "pipe", DOMT_PIPE_AT, 1);
    ck_assert_int_eq(domus_serve(domt_pipe_system_of_kit(), "pipe", behaviour, NULL, NULL),
                     expected);
    domt_pipe_run_kit();
}

DOMT_TEST(a_listener_with_a_wrong_pipeline_is_not_served)
{
    make_kit_that_listens(&wrong_channel, -EDOM);
    domt_pipe_free_kit();
    make_kit_that_listens(&of_wrong, -EDOM);
    domt_pipe_free_kit();
}

DOMT_TEST(a_pipeline_is_not_checked_for_each_channel)
{
    atomic_store(&checks, 0);
    make_kit_that_listens(&right_channel, 0);
    uint32_t made = atomic_load(&checks);

    ck_assert_uint_ge(made, 1);
    for (int i = 0; i < 10; i++) {
        domus_peer *peer = domt_pipe_connect_peer();
        domt_pipe_peer_send_and_expect(peer, "a", "!");
        domus_peer_close(peer);
    }
    ck_assert_uint_eq(atomic_load(&checks), made);
    domt_pipe_free_kit();
}

/* --- behaviours that change ------------------------------------------------------------------- */

static const domus_behaviour raw = {.name = "raw", .kind = DOMUS_CHANNELS};
static int become_raw, become_right;

static int change_behaviour_on_open(domus_stack *stack, void *self, const void *payload)
{
    become_raw = domus_become(stack, &raw);
    become_right = domus_become(stack, &right_channel);
    return 0;
}

static const domus_behaviour changing = {.name = "changing",
                                         .kind = DOMUS_CHANNELS,
                                         .pipeline = &right_pipeline,
                                         .on_open = {change_behaviour_on_open, 0}};
static const domus_behaviour changing_raw = {
    .name = "changing raw", .kind = DOMUS_CHANNELS, .on_open = {change_behaviour_on_open, 0}};

DOMT_TEST(become_keeps_a_channel_to_messages_or_to_bytes)
{
    make_kit_that_listens(&changing, 0);
    domus_peer *peer = domt_pipe_connect_peer();

    domt_pipe_peer_send_and_expect(peer, "a", "!");
    ck_assert_int_eq(become_raw, -EINVAL);
    ck_assert_int_eq(become_right, 0);
    domt_pipe_free_kit();
    make_kit_that_listens(&changing_raw, 0);
    (void)domt_pipe_connect_peer();
    domt_pipe_run_kit();
    ck_assert_int_eq(become_raw, 0);
    ck_assert_int_eq(become_right, -EINVAL);
    domt_pipe_free_kit();
}

DOMT_SUITE(120)
