/* house/message/belt.c and house/dispatch/carry.c: small notices between homes, one step after
 * another. tests/house/belts_stress_test.c has real threads. Home is manager 0. */
#include "house/message/belt.h"

#include "base/memory.h"
#include "house/dispatch/carry.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/recorder.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define TICK UINT64_C(1000000)

static domt_world world;
static domt_log logs[4];
static domus_address actor; /* of manager 0 */

static void open_world(uint32_t slots)
{
    memset(logs, 0, sizeof logs);
    domt_world_init(&world, 3);
    world.config.scheduler.belt_slots = slots;
    ck_assert_int_eq(domt_world_start(&world), 0);
    actor = domt_recorder_new(&world, 0, &logs[0]);
}

static domi_manager *at(uint32_t index)
{
    return world.managers[index];
}

static domi_belt *belt(void)
{
    return at(1)->belts.to[0];
}

/* Send a note as domus_notice() does, in the name of nobody. */
static int note(uint32_t from, domus_address to, int64_t number)
{
    domi_envelope *envelope = domi_message_new(at(from), sizeof *envelope);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = &domt_note;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memcpy(envelope->payload, &number, sizeof number);
    int error = domi_mailbox_put_copied(at(from), to, &envelope->node);
    if (error != 0)
        domi_pool_free(at(from), &envelope->node);
    return error;
}

static uint64_t inbox(void)
{
    return atomic_load(&actor.house->inbox);
}

static uint64_t belted(uint32_t from)
{
    return domi_counter_read(&at(from)->counters.belted);
}

/* The notes of actor 0 are `count` and in order, from `first` on. */
static void expect_notes(int64_t first, uint32_t count)
{
    ck_assert_uint_eq(logs[0].count, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_int_eq(logs[0].entries[i].number, first + i);
}

static void close_world(void)
{
    domt_settle(&world);
    ck_assert_ptr_null(at(0)->belts.held);
    domt_world_end(&world);
}

/* --- the way ---------------------------------------------------------------------------------- */

START_TEST(small_notice_of_another_home_touches_neither_inbox_nor_arrivals)
{
    open_world(64);
    ck_assert_ptr_null(belt());          /* a pair that never talked takes a pointer */
    ck_assert_ptr_null(at(3)->belts.to); /* foreign threads have none */
    ck_assert_int_eq(note(1, actor, 7), 0);
    ck_assert_uint_eq(inbox(), 0);
    ck_assert_ptr_null(atomic_load(&at(0)->mail.arrivals));
    ck_assert_uint_eq(belted(1), 1);
    ck_assert(domi_manager_has_work(at(0)));
    ck_assert_uint_eq(domi_manager_take_arrivals(at(0)), 1);
    ck_assert_uint_eq(actor.house->mail, 1);
    close_world();
    expect_notes(7, 1);
}
END_TEST

START_TEST(belt_wakes_a_sleeper_once_and_nobody_while_it_is_on)
{
    open_world(64);
    atomic_store(&at(0)->park, DOMI_PARK_SLEEPING);
    world.wakes[0] = 0;
    ck_assert_int_eq(note(1, actor, 0), 0);
    ck_assert_uint_eq(world.wakes[0], 1);
    ck_assert_int_eq(note(1, actor, 1), 0);
    atomic_store(&at(0)->park, DOMI_PARK_RUNNING);
    ck_assert_ptr_eq(atomic_load(&at(0)->belts.linked), belt());
    ck_assert_uint_eq(domi_manager_take_arrivals(at(0)), 2);
    ck_assert_ptr_null(atomic_load(&at(0)->belts.linked));
    ck_assert_int_eq(note(1, actor, 2), 0);
    ck_assert_ptr_null(atomic_load(&at(0)->belts.linked));
    ck_assert(domi_manager_has_work(at(0)));
    ck_assert_uint_eq(world.wakes[0], 1);
    close_world();
    expect_notes(0, 3);
}
END_TEST

START_TEST(belt_is_turned_off_after_empty_looks_and_on_again)
{
    open_world(64);
    ck_assert_int_eq(note(1, actor, 0), 0);
    for (int i = 0; i < 100; i++)
        (void)domt_iterate(at(0));
    ck_assert_uint_eq(atomic_load(&belt()->power), DOMI_BELT_OFF);
    ck_assert_ptr_null(at(0)->belts.on);
    ck_assert(!domi_manager_has_work(at(0)));
    ck_assert_int_eq(note(1, actor, 1), 0);
    ck_assert_uint_eq(atomic_load(&belt()->power), DOMI_BELT_ON);
    ck_assert_ptr_nonnull(atomic_load(&at(0)->belts.linked));
    close_world();
    expect_notes(0, 2);
}
END_TEST

START_TEST(park_turns_belts_off_unless_something_has_come)
{
    open_world(64);
    ck_assert_int_eq(note(1, actor, 0), 0);
    ck_assert_int_eq(note(2, actor, 1), 0);
    (void)domt_iterate(at(0));
    ck_assert_int_eq(note(1, actor, 2), 0);
    ck_assert(!domi_belts_rest(at(0)));
    ck_assert_uint_eq(atomic_load(&belt()->power), DOMI_BELT_ON);
    ck_assert(domi_manager_has_work(at(0)));
    (void)domt_iterate(at(0));
    ck_assert(domi_belts_rest(at(0)));
    ck_assert_ptr_null(at(0)->belts.on);
    ck_assert_uint_eq(atomic_load(&belt()->power), DOMI_BELT_OFF);
    ck_assert_uint_eq(atomic_load(&at(2)->belts.to[0]->power), DOMI_BELT_OFF);
    close_world();
    ck_assert_uint_eq(logs[0].count, 3);
}
END_TEST

START_TEST(full_belt_grows_and_then_the_inbox_takes_the_rest_in_order)
{
    open_world(256);
    for (int64_t i = 0; i < 400; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    ck_assert_uint_eq(belt()->filled.mask, 255);
    ck_assert_uint_eq(belted(1), 253); /* a ring of 256, and two slots that named larger rings */
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 400 - 253);
    (void)domi_manager_take_arrivals(at(0));
    (void)domi_manager_take_arrivals(at(0));
    ck_assert_uint_eq(inbox(), 0);
    ck_assert_int_eq(note(1, actor, 400), 0);
    ck_assert_uint_eq(belted(1), 254);
    close_world();
    expect_notes(0, 401);
}
END_TEST

/* The look that takes 64 messages leaves the others, and the inbox must not overtake these. */
START_TEST(inbox_waits_for_all_that_the_belts_hold)
{
    open_world(1024);
    for (int64_t i = 0; i < 200; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    domt_note_to(at(1), actor, 200); /* by the inbox */
    ck_assert_int_eq(note(1, actor, 201), 0);
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 2);
    (void)domi_manager_take_arrivals(at(0));
    ck_assert_uint_eq(actor.house->mail, 202);
    close_world();
    expect_notes(0, 202);
}
END_TEST

/* --- who may not use it ----------------------------------------------------------------------- */

static int stop_there(domus_stack *stack, void *unused)
{
    (void)unused;
    return domus_stop(stack, domus_self(stack));
}

START_TEST(house_that_may_refuse_is_reached_by_its_inbox)
{
    open_world(64);
    domi_mailbox_mark_full(actor.house);
    ck_assert_int_eq(note(1, actor, 0), -ENOBUFS);
    atomic_fetch_and(&actor.house->life, ~DOMI_LIFE_FULL);
    atomic_fetch_or(&actor.house->life, DOMI_LIFE_NODE);
    ck_assert_int_eq(note(1, actor, 0), 0);
    atomic_fetch_and(&actor.house->life, ~DOMI_LIFE_NODE);
    ck_assert_uint_eq(belted(1), 0);
    at(1)->memory.busy = true;
    ck_assert_int_eq(note(1, actor, 0), -EBUSY);
    at(1)->memory.busy = false;
    ck_assert_int_eq(note(3, actor, 1), 0); /* foreign threads */
    ck_assert_uint_eq(belted(3), 0);
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 2);
    domt_do(&world, actor, stop_there, NULL);
    ck_assert_int_eq(note(1, actor, 1), -ESTALE);
    close_world();
    expect_notes(0, 2);
}
END_TEST

START_TEST(notices_of_a_lent_house_go_by_inboxes_also_at_the_thief)
{
    open_world(64);
    ck_assert_int_eq(note(1, actor, 0), 0);
    domi_manager_set_lent(at(0), true); /* the house that has sent that runs here */
    ck_assert_int_eq(note(0, actor, 1), 0);
    domi_manager_set_lent(at(0), false);
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 1);
    domus_address other = domt_recorder_new(&world, 0, &logs[1]); /* its inbox is empty */
    domi_manager_set_lent(at(2), true);
    ck_assert_int_eq(note(2, actor, 2), 0);
    ck_assert_int_eq(note(2, other, 3), 0);
    domi_manager_set_lent(at(2), false);
    ck_assert_uint_eq(belted(2), 0);
    close_world();
    expect_notes(0, 3);
}
END_TEST

static domus_address sender;

static int send_number(domus_stack *stack, void *number)
{
    return domus_notice(stack, actor, &domt_note, number);
}

/* A house of home 1 sends at home, as a loan of the receiver's home, and as one of a
 * third thread. */
START_TEST(order_holds_while_the_sender_is_lent)
{
    static int64_t numbers[] = {0, 1, 2, 3};

    open_world(64);
    sender = domt_spawn(at(1), at(1), &domt_agent, NULL);
    domt_settle(&world);
    for (uint32_t i = 0; i < 4; i++) {
        domi_queue *ready = &at(1)->schedule.ready[DOMUS_STATE];
        domt_send(at(1), sender, send_number, &numbers[i]);
        if (i == 0 || i == 3) {
            (void)domt_run_state(at(1));
            continue;
        }
        ck_assert_uint_eq(domi_loans_expose(at(1), ready, 1), 1);
        domi_manager *thief = at(i == 1 ? 0 : 2);
        domi_loan *loan = domi_loan_take(thief, at(1));
        ck_assert_ptr_nonnull(loan);
        domi_loan_run(thief, loan);
        ck_assert_uint_eq(domi_loans_settle(at(1)), 1);
    }
    ck_assert_uint_eq(belted(1), 1);
    ck_assert_uint_eq(belted(2), 0);
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 3);
    close_world();
    expect_notes(0, 4);
}
END_TEST

/* --- exposed houses --------------------------------------------------------------------------- */

START_TEST(messages_for_an_exposed_house_wait_and_come_before_its_inbox)
{
    open_world(64);
    domus_address other = domt_recorder_new(&world, 0, &logs[1]);
    ck_assert_int_eq(note(1, actor, 0), 0);
    (void)domi_manager_take_arrivals(at(0));
    ck_assert_uint_eq(domi_loans_expose(at(0), &at(0)->schedule.ready[DOMUS_STATE], 1), 1);
    ck_assert_int_eq(note(1, actor, 1), 0);
    ck_assert_int_eq(note(1, other, 9), 0);
    ck_assert_int_eq(note(1, actor, 2), 0);
    domt_note_to(at(1), actor, 3);
    ck_assert_int_eq(note(1, actor, 4), 0);
    (void)domi_manager_take_arrivals(at(0));
    ck_assert_uint_eq(actor.house->mail, 1);
    ck_assert_uint_eq(other.house->mail, 1);
    domi_loan *loan = domi_loan_take(at(2), at(0));
    ck_assert_ptr_nonnull(loan);
    domi_loan_run(at(2), loan);
    ck_assert_uint_eq(domi_loans_settle(at(0)), 1);
    ck_assert_uint_eq(actor.house->mail, 4);
    domt_settle(&world);
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    close_world();
    expect_notes(0, 5);
}
END_TEST

/* --- ends ------------------------------------------------------------------------------------- */

static void send_counted(uint32_t from)
{
    domi_envelope *envelope = domi_message_new(at(from), sizeof *envelope);

    envelope->type = &domt_counted;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memset(envelope->payload, 0, 8);
    ck_assert_int_eq(domi_mailbox_put_copied(at(from), actor, &envelope->node), 0);
}

START_TEST(message_that_comes_late_is_a_dead_letter_and_is_released_once)
{
    open_world(64);
    domt_releases = 0;
    uint64_t dead = DOMT_SUM(&world, dead_letters);
    send_counted(1);
    (void)domi_house_stop(at(0), actor);
    (void)domt_run_state(at(0));
    ck_assert_uint_eq(logs[0].stops, 1);
    domt_settle(&world);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), dead + 1);
    ck_assert_uint_eq(domt_releases, 1);
    close_world();
}
END_TEST

START_TEST(end_releases_what_is_on_belts)
{
    open_world(128);
    domt_releases = 0;
    for (int i = 0; i < 100; i++)
        send_counted(1);
    domt_world_end(&world);
    ck_assert_uint_eq(domt_releases, 100);
}
END_TEST

static int stop_behind_mail(domus_stack *stack, void *unused)
{
    (void)unused;
    return domus_stop_after_mail(stack, actor);
}

/* A neighbour of the receiver ends it behind its mail, of which some is on a belt. */
START_TEST(stop_behind_mail_comes_behind_what_is_on_belts)
{
    open_world(64);
    domus_address neighbour = domt_spawn(at(0), at(0), &domt_agent, NULL);
    domt_settle(&world);
    ck_assert_int_eq(note(1, actor, 0), 0);
    domt_send(at(0), neighbour, stop_behind_mail, NULL);
    (void)domt_run_state(at(0));
    domt_settle(&world);
    ck_assert_uint_eq(logs[0].stops, 1);
    expect_notes(0, 1);
    close_world();
}
END_TEST

/* --- memory ----------------------------------------------------------------------------------- */

START_TEST(without_memory_for_a_belt_the_inbox_takes_the_message)
{
    open_world(128);
    ck_assert_int_eq(note(0, actor, 0), 0);
    domi_envelope *envelope = domi_message_new(at(1), sizeof *envelope);
    domi_pool_free(at(1), &envelope->node);
    domi_memory_fail_after(0, 1);
    ck_assert_int_eq(note(1, actor, 1), 0);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(belted(1), 0);
    for (int64_t i = 2; i < 100; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    close_world();
    expect_notes(0, 100);
}
END_TEST

/* Home has no memory for what is on the belt: it stays there, and so do the notices
 * of the inbox. */
START_TEST(without_memory_messages_stay_in_their_slots_and_nothing_overtakes_them)
{
    open_world(64);
    domt_note_to(at(0), actor, -1);
    domt_settle(&world);
    logs[0].count = 0;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    domt_note_to(at(1), actor, 3);
    ck_assert_int_eq(note(2, (domus_address){NULL, 0}, 0), -ESTALE); /* it has envelopes now */
    domi_memory_fail_after(0, 1);
    while (domi_pool_take(at(0), DOMI_SLAB_64) != NULL)
        ;
    ck_assert_uint_eq(domi_manager_take_arrivals(at(0)), 1);
    ck_assert_uint_eq(actor.house->mail, 0);
    domt_note_to(at(2), actor, 4);
    ck_assert_uint_eq(domi_manager_take_arrivals(at(0)), 1);
    ck_assert_uint_eq(actor.house->mail, 0);
    ck_assert(domi_belts_rest(at(0)));
    ck_assert(atomic_load(&at(0)->belts.is_short));
    ck_assert_int_eq(note(2, actor, 5), 0);
    domi_memory_fail_after(-1, 0);
    domi_belts_look_at_memory(at(0));
    ck_assert(!atomic_load(&at(0)->belts.is_short));
    domt_settle(&world);
    expect_notes(0, 6);
    domt_world_end(&world);
}
END_TEST

static int64_t charged(void)
{
    return atomic_load(&at(0)->pool.heap_bytes);
}

START_TEST(ring_that_is_not_used_is_given_back_and_made_anew)
{
    open_world(256);
    for (int64_t i = 0; i < 200; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    ck_assert_int_ge(charged(), 256 * 64);
    domt_settle(&world);
    for (int i = 0; i < 3; i++) {
        domt_jump(&world, 10 * 1000 * TICK);
        domi_belts_trim(at(1));
    }
    ck_assert_int_ge(charged(), 256 * 64); /* the belt is on */
    ck_assert(domi_belts_rest(at(0)));
    domt_jump(&world, 10 * 1000 * TICK);
    domi_belts_trim(at(1));
    ck_assert_int_eq(charged(), 0);
    for (int64_t i = 200; i < 400; i++)
        ck_assert_int_eq(note(1, actor, i), 0);
    ck_assert_int_ge(charged(), 256 * 64);
    close_world();
    expect_notes(0, 400);
}
END_TEST

START_TEST(ring_in_use_is_not_given_back)
{
    open_world(64);
    ck_assert_int_eq(note(1, actor, 0), 0);
    domt_settle(&world);
    ck_assert(domi_belts_rest(at(0)));
    for (int64_t i = 1; i < 4; i++) {
        ck_assert_int_eq(note(1, actor, i), 0);
        domt_settle(&world);
        ck_assert(domi_belts_rest(at(0)));
        domt_jump(&world, 10 * 1000 * TICK);
        domi_belts_trim(at(1));
        ck_assert_ptr_nonnull(belt()->filled.slots);
    }
    close_world();
    expect_notes(0, 4);
}
END_TEST

START_TEST(without_slots_there_are_no_belts)
{
    open_world(0);
    ck_assert_ptr_null(at(1)->belts.to);
    ck_assert_int_eq(note(1, actor, 0), 0);
    ck_assert_uint_eq(domi_mailbox_depth(actor.house), 1);
    close_world();
    expect_notes(0, 1);
}
END_TEST

DOMT_MAIN("belt", 30, small_notice_of_another_home_touches_neither_inbox_nor_arrivals,
          belt_wakes_a_sleeper_once_and_nobody_while_it_is_on,
          belt_is_turned_off_after_empty_looks_and_on_again,
          park_turns_belts_off_unless_something_has_come,
          full_belt_grows_and_then_the_inbox_takes_the_rest_in_order,
          inbox_waits_for_all_that_the_belts_hold, house_that_may_refuse_is_reached_by_its_inbox,
          notices_of_a_lent_house_go_by_inboxes_also_at_the_thief,
          order_holds_while_the_sender_is_lent,
          messages_for_an_exposed_house_wait_and_come_before_its_inbox,
          message_that_comes_late_is_a_dead_letter_and_is_released_once,
          end_releases_what_is_on_belts, stop_behind_mail_comes_behind_what_is_on_belts,
          without_memory_for_a_belt_the_inbox_takes_the_message,
          without_memory_messages_stay_in_their_slots_and_nothing_overtakes_them,
          ring_that_is_not_used_is_given_back_and_made_anew, ring_in_use_is_not_given_back,
          without_slots_there_are_no_belts)
