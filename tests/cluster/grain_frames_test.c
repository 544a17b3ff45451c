/* Messages to grains go to another node, which returns them, confirms late or never, or is full.
 * Messages keep their order, none waits for ever, and asks end. The test plays that other node. */
#include "tests/cluster/holder.h"
#include "tests/support/suite.h"

#include <domus/domus.h>

#include <errno.h>

/* --- a node that is full ------------------------------------------------------------------------
 */

/* The link to the other node is full when the second message is sent, and the first message is
 * returned later. */
DOMT_TEST(what_comes_back_goes_before_a_message_that_had_no_room)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(1);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 3, 3000);
    ck_assert_uint_eq(domt_holder_count_waiting(), 3);
    domt_holder_fill_link_to_stranger();
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(50 * DOMT_MS);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(domt_holder_count_waiting(), 2);
    domt_holder_return_message(&domt_holder.heard[0].envelope);
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1);
    ck_assert_uint_eq(domt_holder_count_waiting(), 3);
    domt_holder.is_deaf = false;
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1, 1, 2, 3);
    ck_assert_uint_eq(domt_holder_count_waiting(), 0);
    domt_holder_end_world();
}

/* Two messages come back when no message waits. The link is full then, and a third message is sent
 * before the gateway has looked at the table of parts, or between two looks. */
DOMT_TEST(what_is_sent_goes_behind_what_came_back_and_had_no_room)
{
    for (uint64_t later_ns = 0; later_ns <= 150 * DOMT_MS; later_ns += 50 * DOMT_MS) {
        domt_holder_begin_world();
        domt_holder_give_part_to_stranger(0);
        domt_holder_give_part_to_stranger(1);
        domt_holder_advance_and_send(50 * DOMT_MS);
        domt_holder_order_user(DOMT_NOTICE, 0, 1, 2, 100);
        DOMT_HOLD_HEARD(1, 2);
        domt_holder_fill_link_to_stranger();
        domt_holder_order_user(DOMT_NOTICE, 1, 0, 1, 3000);
        domt_holder_return_message(&domt_holder.heard[0].envelope);
        domt_holder_return_message(&domt_holder.heard[1].envelope);
        domt_holder_advance_and_send(10 * DOMT_MS);
        domt_holder_advance_and_send(later_ns);
        ck_assert_uint_eq(domt_holder_count_waiting(), 2);
        domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 100);
        ck_assert_uint_eq(domt_holder_count_waiting(), 3);
        domt_holder.is_deaf = false;
        domt_holder_advance_and_send(200 * DOMT_MS);
        DOMT_HOLD_HEARD(1, 2, 1, 2, 3);
        ck_assert_uint_eq(domt_holder_count_waiting(), 0);
        domt_holder_end_world();
    }
}

DOMT_TEST(what_is_not_taken_goes_back_unless_its_sender_is_full)
{
    domt_holder_begin_world();
    domt_holder_give_part_to_stranger(0);
    domt_holder_give_part_to_stranger(1);
    domt_holder_advance_and_send(50 * DOMT_MS);
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 100);
    domi_wire_envelope notice = domt_holder.heard[0].envelope, question = notice;
    question.kind = DOMI_TO_GRAIN_ASK;
    question.id = 5;
    domt_holder_queue_envelope(&question);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert(domt_holder.answers[DOMI_TO_RETURN] == 1 &&
              domt_holder.last.error == DOMI_TO_GRAIN_ASK);
    domt_holder_queue_envelope(&notice);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert(domt_holder.answers[DOMI_TO_RETURN] == 2 &&
              domt_holder.last.error == DOMI_TO_GRAIN_NOTICE);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).dropped, 0);
    domt_holder_fill_link_to_stranger();
    domt_holder_order_user(DOMT_NOTICE, 1, 0, 1, 3000);
    domt_holder_queue_envelope(&notice);
    domt_holder_queue_envelope(&question);
    domt_holder_advance_and_send(50 * DOMT_MS);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_RETURN], 2);
    ck_assert_uint_eq(domt_holder.answers[DOMI_TO_FAIL], 1);
    ck_assert(domt_holder.last.error == -ENOBUFS && domt_holder.last.id == 5);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).dropped, 1);
    domt_holder_end_world();
}

/* --- messages that wait -------------------------------------------------------------------------
 */

DOMT_TEST(messages_that_wait_are_bounded_in_bytes_and_in_time)
{
    domt_holder_begin_world();
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 100, 1000);
    uint64_t held = domt_holder_count_waiting();
    ck_assert(held > 50 && held < 65);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 100 - held);
    domt_holder_order_user(DOMT_ASK, 0, 1, 1, 1000);
    ck_assert_int_eq(domt_holder.error, -ENOBUFS);
    domt_holder_advance_and_send(DOMT_DOWN_NS - 2 * DOMT_BEAT_NS);
    ck_assert_uint_eq(domt_holder_count_waiting(), held);
    domt_holder_advance_and_send(4 * DOMT_BEAT_NS);
    ck_assert_uint_eq(domt_holder_count_waiting(), 0);
    ck_assert_uint_eq(domus_cluster_count(domt_holder.cluster).refused, 101);
    domt_holder_end_world();
}

/* The other node returns an ask each time that it comes; when it is asked for its fence, it answers
 * in some rounds and not in others. */
DOMT_TEST(message_that_comes_back_waits_no_longer_than_others)
{
    for (uint32_t fenced = 0; fenced < 2; fenced++) {
        domt_holder_begin_world();
        domt_holder.answers_fences = fenced == 1;
        domt_holder.returns = true;
        domt_holder_give_part_to_stranger(0);
        domt_holder_advance_and_send(50 * DOMT_MS);
        domt_holder_order_user(DOMT_ASK, 0, 1, 1, 10);
        domt_holder_advance_and_send(DOMT_DOWN_NS - 2 * DOMT_BEAT_NS);
        ck_assert_int_eq(domt_holder.error, 1);
        domt_holder_advance_and_send(5 * DOMT_BEAT_NS);
        ck_assert_int_eq(domt_holder.error, -EHOSTDOWN);
        ck_assert_uint_eq(domt_holder_count_waiting(), 0);
        /* the ask was sent once in each look of the gateway at its table of parts */
        if (fenced == 1)
            ck_assert(domt_holder.count >= 10 && domt_holder.count <= 30);
        else
            ck_assert_uint_eq(domt_holder.count, 1);
        domt_holder_end_world();
    }
}

DOMT_TEST(ask_that_waits_and_is_cancelled_leaves_the_others)
{
    domt_holder_begin_world();
    domt_holder_order_user(DOMT_NOTICE, 0, 1, 1, 10);
    domt_holder_order_user(DOMT_ASK, 0, 2, 1, 10);
    ck_assert_uint_eq(domt_holder_count_waiting(), 2);
    domt_holder_order_user(DOMT_CANCEL, 0, 0, 0, 0);
    ck_assert_int_eq(domt_holder.error, -ECANCELED);
    ck_assert_uint_eq(domt_holder_count_waiting(), 1);
    domt_holder_order_user(DOMT_NOTICE, 0, 3, 1, 10);
    domt_holder_give_part_to_stranger(0);
    domt_holder_advance_and_send(200 * DOMT_MS);
    DOMT_HOLD_HEARD(1, 3);
    domt_holder_end_world();
}

DOMT_SUITE(60)
