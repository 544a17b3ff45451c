/* house/message/belt.c and house/dispatch/carry.c: belts beside stops, without memory, and without
 * use; rings are made and given back. */
#include "tests/house/belt_world.h"

#include "base/memory.h"
#include "house/dispatch/carry.h"
#include "house/dispatch/deliver.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define TICK UINT64_C(1000000)

/* --- ends ------------------------------------------------------------------------------------- */

static void send_counted(uint32_t from)
{
    domi_envelope *envelope = domi_message_new(domt_belts_at(from), sizeof *envelope);

    envelope->type = &domt_counted;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    memset(envelope->payload, 0, 8);
    ck_assert_int_eq(
        domi_mailbox_put_copied(domt_belts_at(from), domt_belts.actor, &envelope->node), 0);
}

DOMT_TEST(message_that_comes_late_is_a_dead_letter_and_is_released_once)
{
    domt_belts_open(64);
    domt_releases = 0;
    uint64_t dead = DOMT_SUM(&domt_belts.world, dead_letters);
    send_counted(1);
    (void)domi_house_stop(domt_belts_at(0), domt_belts.actor);
    (void)domt_run_state(domt_belts_at(0));
    ck_assert_uint_eq(domt_belts.logs[0].stops, 1);
    domt_settle(&domt_belts.world);
    ck_assert_uint_eq(DOMT_SUM(&domt_belts.world, dead_letters), dead + 1);
    ck_assert_uint_eq(domt_releases, 1);
    domt_belts_close();
}

DOMT_TEST(end_releases_what_is_on_belts)
{
    domt_belts_open(128);
    domt_releases = 0;
    for (int i = 0; i < 100; i++)
        send_counted(1);
    domt_world_end(&domt_belts.world);
    ck_assert_uint_eq(domt_releases, 100);
}

static int stop_behind_mail(domus_stack *stack, void *unused)
{
    return domus_stop_after_mail(stack, domt_belts.actor);
}

/* A neighbour of the receiver ends it behind its mail, of which some is on a belt. */
DOMT_TEST(stop_behind_mail_comes_behind_what_is_on_belts)
{
    domt_belts_open(64);
    domus_address neighbour = domt_spawn(domt_belts_at(0), domt_belts_at(0), &domt_agent, NULL);
    domt_settle(&domt_belts.world);
    ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, 0), 0);
    domt_send(domt_belts_at(0), neighbour, stop_behind_mail, NULL);
    (void)domt_run_state(domt_belts_at(0));
    domt_settle(&domt_belts.world);
    ck_assert_uint_eq(domt_belts.logs[0].stops, 1);
    domt_belts_expect(0, 1);
    domt_belts_close();
}

/* --- memory ----------------------------------------------------------------------------------- */

DOMT_TEST(without_memory_for_a_belt_the_inbox_takes_the_message)
{
    domt_belts_open(128);
    ck_assert_int_eq(domt_belts_note(0, domt_belts.actor, 0), 0);
    domi_envelope *envelope = domi_message_new(domt_belts_at(1), sizeof *envelope);
    domi_pool_free(domt_belts_at(1), &envelope->node);
    domi_memory_fail_after(0, 1);
    ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, 1), 0);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(domt_belts_count(1), 0);
    for (int64_t i = 2; i < 100; i++)
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
    domt_belts_close();
    domt_belts_expect(0, 100);
}

/* Home has no memory for what is on the belt: it stays there, and so do the notices of the inbox.
 */
DOMT_TEST(without_memory_messages_stay_in_their_slots_and_nothing_overtakes_them)
{
    domt_belts_open(64);
    domt_note_to(domt_belts_at(0), domt_belts.actor, -1);
    domt_settle(&domt_belts.world);
    domt_belts.logs[0].count = 0;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
    domt_note_to(domt_belts_at(1), domt_belts.actor, 3);
    ck_assert_int_eq(domt_belts_note(2, (domus_address){NULL, 0}, 0),
                     -ESTALE); /* it has envelopes now */
    domi_memory_fail_after(0, 1);
    while (domi_pool_take(domt_belts_at(0), DOMI_SLAB_64) != NULL)
        ;
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_at(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 0);
    domt_note_to(domt_belts_at(2), domt_belts.actor, 4);
    ck_assert_uint_eq(domi_manager_take_arrivals(domt_belts_at(0)), 1);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 0);
    ck_assert(domi_belts_rest(domt_belts_at(0)));
    ck_assert(atomic_load(&domt_belts_at(0)->belts.is_short));
    ck_assert_int_eq(domt_belts_note(2, domt_belts.actor, 5), 0);
    domi_memory_fail_after(-1, 0);
    domi_belts_look_at_memory(domt_belts_at(0));
    ck_assert(!atomic_load(&domt_belts_at(0)->belts.is_short));
    domt_settle(&domt_belts.world);
    domt_belts_expect(0, 6);
    domt_world_end(&domt_belts.world);
}

static void note_from_another(void *payload)
{
    domt_note_to(domt_belts_at(2), domt_belts.actor, 4);
}

static const domus_type late = {.name = "late", .size = 8, .release = note_from_another};

/* A note comes while those of the inbox wait for the belt: all of them are put back below it. The
 * first message of the belt is for an actor that has ended, and its release sends that note. Home
 * has a single envelope, which serves for this message and the next one. */
DOMT_TEST(what_comes_while_notices_wait_lies_above_all_of_them)
{
    domt_belts_open(64);
    domt_note_to(domt_belts_at(0), domt_belts.actor, -1); /* home has envelopes now */
    domt_settle(&domt_belts.world);
    domt_belts.logs[0].count = 0;
    domus_address gone = domt_recorder_new(&domt_belts.world, 0, &domt_belts.logs[1]);
    domi_envelope *envelope = domi_message_new(domt_belts_at(1), sizeof *envelope);
    envelope->type = &late;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    ck_assert_int_eq(domi_mailbox_put_copied(domt_belts_at(1), gone, &envelope->node), 0);
    (void)domi_house_stop(domt_belts_at(0), gone);
    (void)domt_run_state(domt_belts_at(0));
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
    ck_assert_uint_eq(domt_belts_count(1), 3);
    domt_note_to(domt_belts_at(1), domt_belts.actor, 2);
    domt_note_to(domt_belts_at(1), domt_belts.actor, 3);
    ck_assert_int_eq(domt_belts_note(2, (domus_address){NULL, 0}, 0),
                     -ESTALE); /* it has envelopes now */
    domi_memory_fail_after(0, 1);
    domi_node *last = NULL;
    for (void *taken; (taken = domi_pool_take(domt_belts_at(0), DOMI_SLAB_64)) != NULL;)
        last = taken;
    domi_pool_free(domt_belts_at(0), last);
    ck_assert_uint_eq(domi_inboxes_sort(domt_belts_at(0),
                                        atomic_exchange(&domt_belts_at(0)->mail.arrivals, NULL)),
                      1);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(domt_belts.actor.house->mail, 1);
    domi_belts_look_at_memory(domt_belts_at(0));
    domt_settle(&domt_belts.world);
    domt_belts_expect(0, 5);
    domt_world_end(&domt_belts.world);
}

static int64_t charged(void)
{
    return atomic_load(&domt_belts_at(0)->pool.heap_bytes);
}

DOMT_TEST(ring_that_is_not_used_is_given_back_and_made_anew)
{
    domt_belts_open(256);
    for (int64_t i = 0; i < 200; i++)
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
    ck_assert_int_ge(charged(), 256 * 64);
    domt_settle(&domt_belts.world);
    for (int i = 0; i < 3; i++) {
        domt_jump(&domt_belts.world, 10 * 1000 * TICK);
        domi_belts_trim(domt_belts_at(1));
    }
    ck_assert_int_ge(charged(), 256 * 64); /* the belt is on */
    ck_assert(domi_belts_rest(domt_belts_at(0)));
    domt_jump(&domt_belts.world, 10 * 1000 * TICK);
    domi_belts_trim(domt_belts_at(1));
    ck_assert_int_eq(charged(), 0);
    for (int64_t i = 200; i < 400; i++)
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
    ck_assert_int_ge(charged(), 256 * 64);
    domt_belts_close();
    domt_belts_expect(0, 400);
}

DOMT_TEST(ring_in_use_is_not_given_back)
{
    domt_belts_open(64);
    ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, 0), 0);
    domt_settle(&domt_belts.world);
    ck_assert(domi_belts_rest(domt_belts_at(0)));
    for (int64_t i = 1; i < 4; i++) {
        ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, i), 0);
        domt_settle(&domt_belts.world);
        ck_assert(domi_belts_rest(domt_belts_at(0)));
        domt_jump(&domt_belts.world, 10 * 1000 * TICK);
        domi_belts_trim(domt_belts_at(1));
        ck_assert_ptr_nonnull(domt_belts_belt()->filled.slots);
    }
    domt_belts_close();
    domt_belts_expect(0, 4);
}

DOMT_TEST(without_slots_there_are_no_belts)
{
    domt_belts_open(0);
    ck_assert_ptr_null(domt_belts_at(1)->belts.to);
    ck_assert_int_eq(domt_belts_note(1, domt_belts.actor, 0), 0);
    ck_assert_uint_eq(domi_mailbox_depth(domt_belts.actor.house), 1);
    domt_belts_close();
    domt_belts_expect(0, 1);
}

DOMT_SUITE(30)
