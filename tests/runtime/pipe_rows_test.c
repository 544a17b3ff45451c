/* io/pipelines/: the rows of on_peer, with marks, with sequences and without a type; large answers;
 * requests at their limit. */
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static void pass(domus_testkit *kit, uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(kit, ns), 0);
}

/* --- rows ------------------------------------------------------------------------------------- */

static int answer_any(domus_stack *stack, void *self, const void *payload)
{
    domus_packet packet;

    int error = domus_slice_copy("any", 3, &packet.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &packet);
}

DOMT_TEST(a_row_without_a_type_takes_the_others)
{
    const domus_on_peer rows[] = {domt_pipe_plain.on_peer[0], {.type = NULL, .handle = answer_any}};
    domus_behaviour behaviour = domt_pipe_plain;
    behaviour.on_peer = rows;
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "now 0 a\n?now 0 b\nfar 1 c\n?x\n");
    domt_pipes_expect(kit, peer, "a\nany\nc\nany\n");
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

static uint32_t no_marks(const void *payload)
{
    return 0;
}

/* The marks of a message come to those of its row. */
DOMT_TEST(a_row_has_its_marks_whatever_its_messages_have)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = DOMUS_ALONE | DOMUS_OUTLIVES;
    rows[0].marks_of = no_marks;
    behaviour.on_peer = rows;
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "sleep 10 a\nsleep 10 b\nnow 0 c\n");
    pass(kit, 5 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    pass(kit, 10 * MS);
    ck_assert_uint_eq(domt_pipes_now.begun, 2);
    domt_pipes_expect(kit, peer, "a\nb\nc\n");
    domt_pipes_send(kit, peer, "sleep 10 d\n");
    pass(kit, 5 * MS);
    domus_peer_reset(peer);
    pass(kit, 10 * MS);
    ck_assert_uint_eq(domt_pipes_now.resumed, 3);
    domt_pipes_end(kit);
}

static _Atomic uint32_t ends_heard;

static int hear_end(domus_stack *stack, void *self, const void *payload)
{
    ends_heard++;
    return 0;
}

/* A peer finishes while a request of its is alone, and has sent another one behind it. */
static void finish_behind_one_alone(uint32_t marks, const char *text, uint32_t heard_early,
                                    uint32_t heard)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = marks;
    behaviour.on_peer = rows;
    behaviour.on_end = (domus_call){hear_end, 0};
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    ends_heard = 0;
    domt_pipes_send(kit, peer, text);
    domus_peer_finish(peer);
    pass(kit, 50 * MS);
    ck_assert_uint_eq(ends_heard, heard_early);
    /* the actor has closed nothing */
    domt_pipes_expect(kit, peer, strchr(text, 'b') != NULL ? "a\nb\n" : "a\n");
    pass(kit, 50 * MS);
    ck_assert_uint_eq(ends_heard, heard);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_TEST(a_request_alone_may_hear_of_the_end_before_what_is_behind_it)
{
    finish_behind_one_alone(DOMUS_ALONE, "sleep 100 a\nnow 0 b\n", 0, 1);
    finish_behind_one_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\nnow 0 b\n", 1, 2);
    finish_behind_one_alone(DOMUS_ALONE, "sleep 100 a\n", 1, 1);
    finish_behind_one_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\n", 1, 2);
    finish_behind_one_alone(DOMUS_ALONE | DOMUS_HEARS_END, "sleep 100 a\nsleep 100 b\n", 1, 3);
}

/* A peer finishes while its request is under way: the channel ends, and its conversations do. */
static void finish_and_end(uint32_t marks, const char *text, bool hears)
{
    domus_on_peer rows[] = {domt_pipe_framed.on_peer[0], {.type = NULL}};
    domus_behaviour behaviour = domt_pipe_framed;
    rows[0].marks = marks;
    behaviour.on_peer = rows;
    if (hears)
        behaviour.on_end = (domus_call){hear_end, 0};
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    ends_heard = 0;
    domt_pipes_send(kit, peer, text);
    pass(kit, 10 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 0);
    domus_peer_finish(peer);
    pass(kit, 10 * MS);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_uint_eq(domt_pipes_now.cancelled, (marks & DOMUS_OUTLIVES) != 0 ? 0 : 1);
    ck_assert_uint_eq(domt_pipes_now.begun, 1);
    ck_assert_uint_eq(ends_heard, 0);
    ck_assert(domus_peer_has_end(peer));
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_TEST(a_request_alone_may_end_with_its_peer)
{
    const uint32_t marks = DOMUS_ALONE | DOMUS_ENDS_WITH_PEER;

    finish_and_end(marks, "sleep 100 a\n", false);
    finish_and_end(marks, "sleep 100 a\nnow 0 b\n", false);
    finish_and_end(marks, "sleep 100 a\n", true);
    finish_and_end(marks | DOMUS_OUTLIVES, "sleep 100 a\nnow 0 b\n", true);
    finish_behind_one_alone(marks, "now 0 a\n", 1, 1); /* it is answered: nothing is lost */
}

/* --- sequences -------------------------------------------------------------------------------- */

static _Atomic uint32_t ended, cancelled;

struct steps {
    domus_packet packet;
    uint32_t step;
};

/* Three waits, of each kind one; the answer is what the last actor has said. */
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

static domus_behaviour stepping(const domus_on_peer *rows)
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
    domus_behaviour behaviour = stepping(rows);
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "x 9 a\nx 1 b\nx 0 c\nferr 0 d\nx 3 e\n");
    domt_pipes_expect(kit, peer, "a\nb\nc\nerror EBADMSG\ne\n");
    domt_pipes_send(kit, peer, "x 9 f\nx 1 g\n");
    pass(kit, 7 * MS);
    domus_peer_reset(peer);
    pass(kit, SECOND);
    ck_assert_uint_eq(ended, 5);
    ck_assert_uint_eq(cancelled, 2);
    domt_pipes_end(kit);
}

DOMT_TEST(sequences_have_the_marks_of_their_rows)
{
    static const domus_on_peer rows[] = {
        DOMUS_ON_PEER(&domus_packet_type, take_steps, DOMUS_ALONE | DOMUS_OUTLIVES),
        {.type = NULL}};
    domus_behaviour behaviour = stepping(rows);
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "x 0 a\nx 0 b\n");
    pass(kit, 7 * MS);
    ck_assert_uint_eq(ended, 0);
    domt_pipes_expect(kit, peer, "a\n");
    ck_assert_uint_eq(ended, 1);
    domt_pipes_expect(kit, peer, "b\n");
    domt_pipes_send(kit, peer, "x 0 c\n");
    pass(kit, 7 * MS);
    domus_peer_reset(peer);
    pass(kit, SECOND);
    ck_assert_uint_eq(ended, 3);
    ck_assert_uint_eq(cancelled, 0);
    domt_pipes_end(kit);
}

/* --- ids -------------------------------------------------------------------------------------- */

DOMT_TEST(a_request_that_waited_to_be_alone_keeps_its_id)
{
    domus_behaviour behaviour = domt_pipe_framed;
    behaviour.pipeline = &domt_pipe_by_id;
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "7:sleep 10 a\n8:now 0 b\n9:!sleep 5 c\n10:now 0 d\n");
    domt_pipes_expect(kit, peer, "8:b\n7:a\n9:c\n10:d\n");
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

/* One request hangs, and those behind it are answered up to 65,536 from the first one. */
DOMT_TEST(requests_behind_one_that_hangs_have_a_limit)
{
    enum { MOST = 65536, MORE = 100 };
    domus_behaviour behaviour = domt_pipe_framed;
    behaviour.pipeline = &domt_pipe_by_id;
    domus_testkit *kit = domt_pipes_kit(NULL, &behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);
    char text[64];

    domt_pipes_send(kit, peer, "0:sleep 60000 a\n");
    for (uint32_t i = 1; i < MOST + MORE; i++) {
        domt_pipes_send(kit, peer, "1:now 0 b\n");
        if (i % 1000 == 0)
            ck_assert_int_eq(domus_testkit_run(kit), 0);
    }
    pass(kit, SECOND);
    ck_assert_uint_eq(domt_pipes_now.begun, MOST);
    for (uint32_t i = 1; i < MOST; i++)
        domt_pipes_expect(kit, peer, "1:b\n");
    snprintf(text, sizeof text, "0:a\n1:b\n");
    ck_assert_int_eq(domus_peer_expect(peer, text, strlen(text), 120 * SECOND), 0);
    for (uint32_t i = 1; i < MORE; i++)
        domt_pipes_expect(kit, peer, "1:b\n");
    ck_assert_uint_eq(domt_pipes_now.begun, MOST + MORE);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

/* --- large answers ---------------------------------------------------------------------------- */

/* They are more than a buffer takes, sent at once and behind another one. */
DOMT_TEST(huge_answers_are_whole)
{
    domus_config config;
    domt_pipes_configure(&config);
    config.channel.send_max_bytes = UINT64_C(4) * DOMT_PIPE_HUGE;
    domus_testkit *kit = domt_pipes_kit(&config, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);
    char *huge = malloc(DOMT_PIPE_HUGE + 2);

    ck_assert_ptr_nonnull(huge);
    for (size_t i = 0; i < DOMT_PIPE_HUGE; i++)
        huge[i] = (char)('a' + i / 1000 % 26);
    memcpy(huge + DOMT_PIPE_HUGE, "\n", 2);
    domt_pipes_send(kit, peer, "now 0 huge\nnow 0 a\n");
    domt_pipes_expect(kit, peer, huge);
    domt_pipes_expect(kit, peer, "a\n");
    domt_pipes_send(kit, peer, "sleep 20 b\nnow 0 huge\nfar 1 huge\nnow 0 c\n");
    domt_pipes_expect(kit, peer, "b\n");
    domt_pipes_expect(kit, peer, huge);
    domt_pipes_expect(kit, peer, huge);
    domt_pipes_expect(kit, peer, "c\n");
    free(huge);
    domus_peer_close(peer);
    domt_pipes_end(kit);
}

DOMT_SUITE(120)
