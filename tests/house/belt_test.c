/* house/message/belt.c and house/dispatch/carry.c: small notices between homes, one step after
 * another; also beside stops, without memory, and while the other thread does nothing. */
#include "base/memory.h"
#include "house/dispatch/incoming.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/belt_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define TICK UINT64_C(1000000)

/* --- the way ---------------------------------------------------------------------------------- */

DOMT_TEST(small_notice_of_another_home_touches_neither_inbox_nor_arrivals)
{
    domt_belts_open_world(64);
    /* a pair of managers without a belt between them costs one pointer */
    ck_assert_ptr_null(domt_belts_belt_from_1_to_0());
    ck_assert_ptr_null(domt_belts_manager_of_home(3)->belts.to); /* foreign threads have no belts */
    domt_belts_send_notes(1, 7, 1);
    ck_assert_uint_eq(domt_belts_inbox_word_of_actor(), 0);
    ck_assert_ptr_null(atomic_load(&domt_belts_manager_of_home(0)->mail.arrivals));
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 1);
    ck_assert(domi_manager_has_work(domt_belts_manager_of_home(0)));
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 1);
    domt_belts_close_and_expect_notes(7, 1);
}

DOMT_TEST(belt_wakes_a_sleeper_once_and_nobody_while_it_is_on)
{
    domt_belts_open_world(64);
    atomic_store(&domt_belts_manager_of_home(0)->park, DOMI_PARK_SLEEPING);
    domt_belts.world.wakes[0] = 0;
    domt_belts_send_notes(1, 0, 1);
    ck_assert_uint_eq(domt_belts.world.wakes[0], 1);
    domt_belts_send_notes(1, 1, 1);
    atomic_store(&domt_belts_manager_of_home(0)->park, DOMI_PARK_RUNNING);
    ck_assert_ptr_eq(atomic_load(&domt_belts_manager_of_home(0)->belts.linked),
                     domt_belts_belt_from_1_to_0());
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 2);
    ck_assert_ptr_null(atomic_load(&domt_belts_manager_of_home(0)->belts.linked));
    domt_belts_send_notes(1, 2, 1);
    ck_assert_ptr_null(atomic_load(&domt_belts_manager_of_home(0)->belts.linked));
    ck_assert(domi_manager_has_work(domt_belts_manager_of_home(0)));
    ck_assert_uint_eq(domt_belts.world.wakes[0], 1);
    domt_belts_close_and_expect_notes(0, 3);
}

/* Home takes 40 notes in one look, and one more note in the next one: the sender has no more to
 * send, or it is slow. */
static void send_and_take_40_notes_then_1_more(bool run_between)
{
    domt_belts_send_notes(1, 0, 40);
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 40);
    ck_assert_uint_eq(domt_belts_belt_from_1_to_0()->looks_without_wait, 0);
    if (run_between)
        (void)domt_run_state_queue(domt_belts_manager_of_home(0));
    domt_belts_send_notes(1, 40, 1);
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 1);
}

DOMT_TEST(home_waits_once_in_vain_for_the_rest_of_a_stream)
{
    domt_belts_open_world(64);
    send_and_take_40_notes_then_1_more(true);
    /* home has waited for the slow sender in vain */
    ck_assert_uint_gt(domt_belts_belt_from_1_to_0()->looks_without_wait, 0);
    domt_belts_close_and_expect_notes(0, 41);
}

DOMT_TEST(home_with_ready_actors_does_not_wait_for_a_slow_sender)
{
    domt_belts_open_world(64);
    send_and_take_40_notes_then_1_more(false);
    ck_assert_uint_eq(domt_belts_belt_from_1_to_0()->looks_without_wait, 0);
    domt_belts_close_and_expect_notes(0, 41);
}

DOMT_TEST(belt_is_turned_off_after_empty_looks_and_on_again)
{
    domt_belts_open_world(64);
    domt_belts_send_notes(1, 0, 1);
    for (int i = 0; i < 100; i++)
        (void)domt_iterate_home(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(atomic_load(&domt_belts_belt_from_1_to_0()->power), DOMI_BELT_OFF);
    ck_assert_ptr_null(domt_belts_manager_of_home(0)->belts.on);
    ck_assert(!domi_manager_has_work(domt_belts_manager_of_home(0)));
    domt_belts_send_notes(1, 1, 1);
    ck_assert_uint_eq(atomic_load(&domt_belts_belt_from_1_to_0()->power), DOMI_BELT_ON);
    ck_assert_ptr_nonnull(atomic_load(&domt_belts_manager_of_home(0)->belts.linked));
    domt_belts_close_and_expect_notes(0, 2);
}

DOMT_TEST(park_turns_belts_off_unless_something_has_come)
{
    domt_belts_open_world(64);
    ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, 0), 0);
    ck_assert_int_eq(domt_belts_send_note(2, domt_belts.actor, 1), 0);
    (void)domt_iterate_home(domt_belts_manager_of_home(0));
    domt_belts_send_notes(1, 2, 1);
    ck_assert(!domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
    ck_assert_uint_eq(atomic_load(&domt_belts_belt_from_1_to_0()->power), DOMI_BELT_ON);
    ck_assert(domi_manager_has_work(domt_belts_manager_of_home(0)));
    (void)domt_iterate_home(domt_belts_manager_of_home(0));
    ck_assert(domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
    ck_assert_ptr_null(domt_belts_manager_of_home(0)->belts.on);
    ck_assert_uint_eq(atomic_load(&domt_belts_belt_from_1_to_0()->power), DOMI_BELT_OFF);
    ck_assert_uint_eq(atomic_load(&domt_belts_manager_of_home(2)->belts.to[0]->power),
                      DOMI_BELT_OFF);
    domt_belts_close_world();
    ck_assert_uint_eq(domt_belts.logs[0].count, 3);
}

DOMT_TEST(full_belt_grows_and_then_the_inbox_takes_the_rest_in_order)
{
    domt_belts_open_world(256);
    domt_belts_send_notes(1, 0, 400);
    ck_assert_uint_eq(domt_belts_belt_from_1_to_0()->filled.mask, 255);
    /* of the belt's 256 slots, two lead to the larger rings, and one stays free to lead to the
     * next */
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 253);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 400 - 253);
    (void)domi_manager_take_arrivals(domt_belts_manager_of_home(0));
    (void)domi_manager_take_arrivals(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(domt_belts_inbox_word_of_actor(), 0);
    domt_belts_send_notes(1, 400, 1);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 254);
    domt_belts_close_and_expect_notes(0, 401);
}

/* A look takes 64 messages off the belt and leaves the others; a message in the inbox must not
 * overtake these. */
DOMT_TEST(inbox_waits_for_all_that_the_belts_hold)
{
    domt_belts_open_world(1024);
    domt_belts_send_notes(1, 0, 200);
    domt_send_note(domt_belts_manager_of_home(1), domt_belts.actor,
                   200); /* this note goes by the inbox */
    domt_belts_send_notes(1, 201, 1);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 2);
    (void)domi_manager_take_arrivals(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(domt_belts.actor.house->mail, 202);
    domt_belts_close_and_expect_notes(0, 202);
}

/* --- who may not use it ----------------------------------------------------------------------- */

static int stop_itself(domus_stack *stack, void *unused)
{
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(house_that_may_refuse_gets_notices_by_inbox_and_not_by_belt)
{
    domt_belts_open_world(64);
    domi_mailbox_mark_full(domt_belts.actor.house);
    ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, 0), -ENOBUFS);
    atomic_fetch_and(&domt_belts.actor.house->life, ~DOMI_LIFE_FULL);
    atomic_fetch_or(&domt_belts.actor.house->life, DOMI_LIFE_NODE);
    domt_belts_send_notes(1, 0, 1);
    atomic_fetch_and(&domt_belts.actor.house->life, ~DOMI_LIFE_NODE);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 0);
    domt_belts_manager_of_home(1)->memory.busy = true;
    ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, 0), -EBUSY);
    domt_belts_manager_of_home(1)->memory.busy = false;
    /* foreign threads use the inbox */
    ck_assert_int_eq(domt_belts_send_note(3, domt_belts.actor, 1), 0);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(3), 0);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 2);
    domt_run_as_actor(&domt_belts.world, domt_belts.actor, stop_itself, NULL);
    ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, 1), -ESTALE);
    domt_belts_close_and_expect_notes(0, 2);
}

DOMT_TEST(notices_of_a_lent_house_go_by_inboxes_also_at_the_thief)
{
    domt_belts_open_world(64);
    domus_address other = domt_spawn_recorder(&domt_belts.world, 0, &domt_belts.logs[1]);
    domt_belts_send_notes(1, 0, 1);
    /* home 0 says that its running house is lent, so what that house sends is no home mail */
    domi_manager_set_runs_lent_house(domt_belts_manager_of_home(0), true);
    domt_belts_send_notes(0, 1, 1);
    domi_manager_set_runs_lent_house(domt_belts_manager_of_home(0), false);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 1);
    domi_manager_set_runs_lent_house(domt_belts_manager_of_home(2), true);
    domt_belts_send_notes(2, 2, 1);
    /* the inbox of `other` is empty, and still the note goes there */
    ck_assert_int_eq(domt_belts_send_note(2, other, 3), 0);
    domi_manager_set_runs_lent_house(domt_belts_manager_of_home(2), false);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(2), 0);
    domt_belts_close_and_expect_notes(0, 3);
}

static domus_address sender;

static int send_number_to_recorder(domus_stack *stack, void *number)
{
    return domus_notice(stack, domt_belts.actor, &domt_note, number);
}

/* The house of a sender sends on its own home, as a loan on the receiver's home, and as a loan on a
 * third thread. */
DOMT_TEST(order_holds_while_the_sender_is_lent)
{
    static int64_t numbers[] = {0, 1, 2, 3};

    domt_belts_open_world(64);
    sender =
        domt_spawn(domt_belts_manager_of_home(1), domt_belts_manager_of_home(1), &domt_agent, NULL);
    domt_settle_world(&domt_belts.world);
    for (uint32_t i = 0; i < 4; i++) {
        domi_queue *ready = &domt_belts_manager_of_home(1)->schedule.ready[DOMUS_STATE];
        domt_send_function_to_call(domt_belts_manager_of_home(1), sender, send_number_to_recorder,
                                   &numbers[i]);
        if (i == 0 || i == 3) {
            (void)domt_run_state_queue(domt_belts_manager_of_home(1));
            continue;
        }
        ck_assert_uint_eq(domi_loans_expose_houses(domt_belts_manager_of_home(1), ready, 1), 1);
        domi_manager *thief = domt_belts_manager_of_home(i == 1 ? 0 : 2);
        domi_loan *loan = domi_loan_take_exposed_house(thief, domt_belts_manager_of_home(1));
        ck_assert_ptr_nonnull(loan);
        domi_loan_run_house_and_return(thief, loan);
        ck_assert_uint_eq(domi_loans_settle_returned_houses(domt_belts_manager_of_home(1)), 1);
    }
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 1);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(2), 0);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 3);
    domt_belts_close_and_expect_notes(0, 4);
}

/* --- exposed houses --------------------------------------------------------------------------- */

DOMT_TEST(messages_for_an_exposed_house_wait_and_come_before_its_inbox)
{
    domt_belts_open_world(64);
    domus_address other = domt_spawn_recorder(&domt_belts.world, 0, &domt_belts.logs[1]);
    domt_belts_send_notes(1, 0, 1);
    (void)domi_manager_take_arrivals(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(
        domi_loans_expose_houses(domt_belts_manager_of_home(0),
                                 &domt_belts_manager_of_home(0)->schedule.ready[DOMUS_STATE], 1),
        1);
    domt_belts_send_notes(1, 1, 1);
    ck_assert_int_eq(domt_belts_send_note(1, other, 9), 0);
    domt_belts_send_notes(1, 2, 1);
    domt_send_note(domt_belts_manager_of_home(1), domt_belts.actor, 3);
    domt_belts_send_notes(1, 4, 1);
    (void)domi_manager_take_arrivals(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(domt_belts.actor.house->mail, 1);
    ck_assert_uint_eq(other.house->mail, 1);
    domi_loan *loan =
        domi_loan_take_exposed_house(domt_belts_manager_of_home(2), domt_belts_manager_of_home(0));
    ck_assert_ptr_nonnull(loan);
    domi_loan_run_house_and_return(domt_belts_manager_of_home(2), loan);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(domt_belts_manager_of_home(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 4);
    domt_settle_world(&domt_belts.world);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_belts.world), 0);
    domt_belts_close_and_expect_notes(0, 5);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void send_payload_with_counted_release(uint32_t from)
{
    domi_envelope *envelope = domi_message_new(domt_belts_manager_of_home(from), sizeof *envelope);

    envelope->type = &domt_counted;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memset(envelope->payload, 0, 8);
    ck_assert_int_eq(domi_mailbox_put_copied_notice(domt_belts_manager_of_home(from),
                                                    domt_belts.actor, &envelope->node),
                     0);
}

DOMT_TEST(message_that_comes_late_is_a_dead_letter_and_is_released_once)
{
    domt_belts_open_world(64);
    domt_releases = 0;
    uint64_t dead = DOMT_SUM(&domt_belts.world, dead_letters);
    send_payload_with_counted_release(1);
    (void)domi_house_ask_to_stop(domt_belts_manager_of_home(0), domt_belts.actor);
    (void)domt_run_state_queue(domt_belts_manager_of_home(0));
    ck_assert_uint_eq(domt_belts.logs[0].stops, 1);
    domt_settle_world(&domt_belts.world);
    ck_assert_uint_eq(DOMT_SUM(&domt_belts.world, dead_letters), dead + 1);
    ck_assert_uint_eq(domt_releases, 1);
    domt_belts_close_world();
}

DOMT_TEST(end_releases_what_is_on_belts)
{
    domt_belts_open_world(128);
    domt_releases = 0;
    for (int i = 0; i < 100; i++)
        send_payload_with_counted_release(1);
    domt_world_end(&domt_belts.world);
    ck_assert_uint_eq(domt_releases, 100);
}

static int stop_recorder_after_mail(domus_stack *stack, void *unused)
{
    return domus_stop_after_mail(stack, domt_belts.actor);
}

/* A neighbour of the receiver on its home stops it behind its messages, while some of these are on
 * a belt. */
DOMT_TEST(stop_behind_mail_comes_behind_what_is_on_belts)
{
    domt_belts_open_world(64);
    domus_address neighbour =
        domt_spawn(domt_belts_manager_of_home(0), domt_belts_manager_of_home(0), &domt_agent, NULL);
    domt_settle_world(&domt_belts.world);
    domt_belts_send_notes(1, 0, 1);
    domt_send_function_to_call(domt_belts_manager_of_home(0), neighbour, stop_recorder_after_mail,
                               NULL);
    (void)domt_run_state_queue(domt_belts_manager_of_home(0));
    domt_settle_world(&domt_belts.world);
    ck_assert_uint_eq(domt_belts.logs[0].stops, 1);
    domt_belts_expect_notes(0, 1);
    domt_belts_close_world();
}

/* --- memory ----------------------------------------------------------------------------------- */

DOMT_TEST(without_memory_for_a_belt_the_inbox_takes_the_message)
{
    domt_belts_open_world(128);
    domt_belts_send_notes(0, 0, 1);
    domi_envelope *envelope = domi_message_new(domt_belts_manager_of_home(1), sizeof *envelope);
    domi_pool_free_object(domt_belts_manager_of_home(1), &envelope->node);
    domi_memory_fail_allocation_after(0, 1);
    domt_belts_send_notes(1, 1, 1);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 0);
    for (int64_t i = 2; i < 100; i++)
        ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, i), 0);
    domt_belts_close_and_expect_notes(0, 100);
}

/* Home has no memory for envelopes: messages stay on the belt, and notices of the inbox wait behind
 * them. */
DOMT_TEST(without_memory_messages_stay_in_their_slots_and_nothing_overtakes_them)
{
    domt_belts_open_world(64);
    domt_send_note(domt_belts_manager_of_home(0), domt_belts.actor, -1);
    domt_settle_world(&domt_belts.world);
    domt_belts.logs[0].count = 0;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, i), 0);
    domt_send_note(domt_belts_manager_of_home(1), domt_belts.actor, 3);
    /* -ESTALE is the answer for nobody's address; home has envelopes now */
    ck_assert_int_eq(domt_belts_send_note(2, (domus_address){NULL, 0}, 0), -ESTALE);
    domi_memory_fail_allocation_after(0, 1);
    while (domi_pool_take_object(domt_belts_manager_of_home(0), DOMI_SLAB_64) != NULL)
        ;
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 0);
    domt_send_note(domt_belts_manager_of_home(2), domt_belts.actor, 4);
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_manager_of_home(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 0);
    ck_assert(domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
    ck_assert(atomic_load(&domt_belts_manager_of_home(0)->belts.is_short));
    domt_belts_send_notes(2, 5, 1);
    domi_memory_fail_allocation_after(-1, 0);
    domi_belts_allow_when_memory_is_back(domt_belts_manager_of_home(0));
    ck_assert(!atomic_load(&domt_belts_manager_of_home(0)->belts.is_short));
    domt_settle_world(&domt_belts.world);
    domt_belts_expect_notes(0, 6);
    domt_world_end(&domt_belts.world);
}

static void send_note_from_home_2_on_release(void *payload)
{
    domt_send_note(domt_belts_manager_of_home(2), domt_belts.actor, 4);
}

static const domus_type late = {
    .name = "late", .size = 8, .release = send_note_from_home_2_on_release};

/* A note comes while those of the inbox wait for the belt, and lies above all of them. The first
 * message of the belt is for an actor that has ended, and its release sends that note. Home has a
 * single envelope, which serves for this message and the next one. */
DOMT_TEST(note_that_comes_while_inbox_notes_wait_for_a_belt_comes_last)
{
    domt_belts_open_world(64);
    /* the handling of this note leaves free envelopes at home */
    domt_send_note(domt_belts_manager_of_home(0), domt_belts.actor, -1);
    domt_settle_world(&domt_belts.world);
    domt_belts.logs[0].count = 0;
    domus_address gone = domt_spawn_recorder(&domt_belts.world, 0, &domt_belts.logs[1]);
    domi_envelope *envelope = domi_message_new(domt_belts_manager_of_home(1), sizeof *envelope);
    envelope->type = &late;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    ck_assert_int_eq(
        domi_mailbox_put_copied_notice(domt_belts_manager_of_home(1), gone, &envelope->node), 0);
    (void)domi_house_ask_to_stop(domt_belts_manager_of_home(0), gone);
    (void)domt_run_state_queue(domt_belts_manager_of_home(0));
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, i), 0);
    ck_assert_uint_eq(domt_belts_count_sent_by_belt(1), 3);
    domt_send_note(domt_belts_manager_of_home(1), domt_belts.actor, 2);
    domt_send_note(domt_belts_manager_of_home(1), domt_belts.actor, 3);
    /* -ESTALE is the answer for nobody's address; home has envelopes now */
    ck_assert_int_eq(domt_belts_send_note(2, (domus_address){NULL, 0}, 0), -ESTALE);
    domi_memory_fail_allocation_after(0, 1);
    domi_node *last = NULL;
    for (void *taken;
         (taken = domi_pool_take_object(domt_belts_manager_of_home(0), DOMI_SLAB_64)) != NULL;)
        last = taken;
    domi_pool_free_object(domt_belts_manager_of_home(0), last);
    ck_assert_uint_eq(domi_inboxes_sort_all_of_list(
                          domt_belts_manager_of_home(0),
                          atomic_exchange(&domt_belts_manager_of_home(0)->mail.arrivals, NULL)),
                      1);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 1);
    domi_belts_allow_when_memory_is_back(domt_belts_manager_of_home(0));
    domt_settle_world(&domt_belts.world);
    domt_belts_expect_notes(0, 5);
    domt_world_end(&domt_belts.world);
}

static int64_t bytes_charged_to_home(void)
{
    return atomic_load(&domt_belts_manager_of_home(0)->pool.heap_bytes);
}

DOMT_TEST(ring_that_is_not_used_is_given_back_and_made_anew)
{
    domt_belts_open_world(256);
    domt_belts_send_notes(1, 0, 200);
    ck_assert_int_ge(bytes_charged_to_home(), 256 * 64);
    domt_settle_world(&domt_belts.world);
    for (int i = 0; i < 3; i++) {
        domt_advance_time_without_runs(&domt_belts.world, 10 * 1000 * TICK);
        domi_belts_free_unused_rings(domt_belts_manager_of_home(1));
    }
    /* the belt was used since the last trim, so its ring stays */
    ck_assert_int_ge(bytes_charged_to_home(), 256 * 64);
    ck_assert(domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
    domt_advance_time_without_runs(&domt_belts.world, 10 * 1000 * TICK);
    domi_belts_free_unused_rings(domt_belts_manager_of_home(1));
    ck_assert_int_eq(bytes_charged_to_home(), 0);
    for (int64_t i = 200; i < 400; i++)
        ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, i), 0);
    ck_assert_int_ge(bytes_charged_to_home(), 256 * 64);
    domt_belts_close_and_expect_notes(0, 400);
}

DOMT_TEST(ring_in_use_is_not_given_back)
{
    domt_belts_open_world(64);
    domt_belts_send_notes(1, 0, 1);
    domt_settle_world(&domt_belts.world);
    ck_assert(domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
    for (int64_t i = 1; i < 4; i++) {
        ck_assert_int_eq(domt_belts_send_note(1, domt_belts.actor, i), 0);
        domt_settle_world(&domt_belts.world);
        ck_assert(domi_belts_turn_all_off(domt_belts_manager_of_home(0)));
        domt_advance_time_without_runs(&domt_belts.world, 10 * 1000 * TICK);
        domi_belts_free_unused_rings(domt_belts_manager_of_home(1));
        ck_assert_ptr_nonnull(domt_belts_belt_from_1_to_0()->filled.slots);
    }
    domt_belts_close_and_expect_notes(0, 4);
}

DOMT_TEST(without_slots_there_are_no_belts)
{
    domt_belts_open_world(0);
    ck_assert_ptr_null(domt_belts_manager_of_home(1)->belts.to);
    domt_belts_send_notes(1, 0, 1);
    ck_assert_uint_eq(domi_mailbox_depth_of_inbox(domt_belts.actor.house), 1);
    domt_belts_close_and_expect_notes(0, 1);
}

DOMT_SUITE(30)
