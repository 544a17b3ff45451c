/* A mailbox may have a bound of its own, from 1 on, which holds on both lanes, and for its actor
 * alone. Watches of room: a sender that was refused gets one event, as soon as the mailbox is less
 * than half full. */
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

/* Open a world in which the mailbox of actor 1 on home 0 takes at most `most` messages. */
static void open_world_with_mailbox_bound(uint32_t most)
{
    const domus_spawn_options options = {.mailbox_max = most};

    domt_kin_open_world(2);
    domt_kin_spawn_root_with_options(1, 0, &options);
    domt_settle_world(&domt_kin_world);
}

/* Put `count` notes for actor 1. Returns how many are taken. */
static uint32_t put_notes(domi_manager *from, uint32_t count)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < count; i++) {
        int result = domt_send_notice(from, domt_kin_of[1].address, &domt_kin_note, "payload");
        ck_assert(result == 0 || result == -ENOBUFS);
        taken += result == 0;
    }
    return taken;
}

DOMT_TEST(own_bound_of_a_mailbox_holds_on_each_lane)
{
    static const uint32_t bounds[] = {1, 2, 3, 7, 100, 5000, 65535};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        for (uint32_t from = 0; from < 3; from++) {
            open_world_with_mailbox_bound(bounds[i]);
            ck_assert_uint_eq(put_notes(domt_kin_world.managers[from], bounds[i] + 10), bounds[i]);
            ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, refusals), 10);
            domt_settle_world(&domt_kin_world);
            ck_assert_uint_eq(domt_kin_of[1].notes, bounds[i]);
            domt_kin_close_world();
        }
    }
}

DOMT_TEST(own_bound_may_be_above_the_default)
{
    open_world_with_mailbox_bound(0);
    uint32_t most = domt_kin_world.config.scheduler.mailbox_max;
    ck_assert_uint_lt(most, 65535);
    /* a bound of 0 stands for the default of the configuration */
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[0], 65535), most);
    domt_kin_close_world();
    open_world_with_mailbox_bound(65535);
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[0], 65536), 65535);
    domt_kin_close_world();
}

DOMT_TEST(full_mailbox_with_any_bound_takes_messages_again)
{
    for (uint32_t most = 1; most < 70; most++) {
        for (uint32_t from = 0; from < 3; from++) {
            open_world_with_mailbox_bound(most);
            for (unsigned round = 1; round < 4; round++) {
                ck_assert_uint_eq(put_notes(domt_kin_world.managers[from], most + 1), most);
                domt_settle_world(&domt_kin_world);
                ck_assert_uint_eq(domt_kin_of[1].notes, round * most);
            }
            domt_kin_close_world();
        }
    }
}

DOMT_TEST(full_mailbox_takes_mail_again_below_half)
{
    open_world_with_mailbox_bound(400);
    domi_manager *home = domt_kin_world.managers[0];
    ck_assert_uint_eq(put_notes(home, 401), 400);
    /* a run handles 64 messages: 336, then 272, then 208 are left */
    for (int run = 1; run < 4; run++) {
        ck_assert_uint_eq(domt_run_state_queue(home), 1);
        ck_assert_uint_eq(put_notes(home, 1), 0);
    }
    (void)domt_run_state_queue(home);
    ck_assert_uint_lt(domt_kin_of[1].address.house->mail, 200);
    ck_assert_uint_eq(put_notes(home, 1), 1);
    domt_kin_close_world();
}

DOMT_TEST(full_mailbox_can_be_stopped)
{
    for (uint32_t from = 0; from < 3; from++) {
        open_world_with_mailbox_bound(1);
        ck_assert_uint_eq(put_notes(domt_kin_world.managers[from], 5), 1);
        domt_kin_stop_actor_by_manager(domt_kin_world.managers[from], 1);
        ck_assert(!domt_kin_is_alive(1));
        domt_kin_close_world();
    }
}

DOMT_TEST(next_life_in_a_slot_has_no_bound_of_its_own)
{
    open_world_with_mailbox_bound(2);
    domi_house *house = domt_kin_of[1].address.house;
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[1], 3), 2);
    domt_kin_stop_actor(1);
    domt_kin_of[1].address = domt_spawn(domt_kin_world.managers[0], domt_kin_world.managers[0],
                                        &domt_kin_hearing, &(domt_kin){1, DOMT_WORTH});
    ck_assert_ptr_eq(domt_kin_of[1].address.house, house);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[1], 100), 100);
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[0], 100), 100);
    domt_kin_close_world();
}

DOMT_TEST(bound_outlives_a_restart)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
    static domus_behaviour boss;
    const domus_spawn_options options = {.mailbox_max = 3};

    boss = domt_kin_behaviour_of_boss(&restarts);
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(2, 0, &boss);
    ck_assert_int_eq(domt_kin_let_parent_spawn(2, 1, &domt_kin_hearing, &options), 0);
    domt_kin_fail_actor(1, -EIO);
    ck_assert_uint_eq(domt_kin_of[1].mounts, 2);
    ck_assert_uint_eq(put_notes(domt_kin_world.managers[1], 5), 3);
    domt_kin_close_world();
}

/* --- room ------------------------------------------------------------------------------------- */

static domus_watch last;
static int result;

static int try_to_watch_room(domus_stack *stack, void *address)
{
    result = domus_watch_room(stack, *(domus_address *)address, &last);
    return 0;
}

static int try_to_unwatch(domus_stack *stack, void *unused)
{
    result = domus_unwatch(stack, last);
    return 0;
}

/* Open a world in which the mailbox of actor 1 on `home` takes `most` messages. Actor 1 waits
 * behind its own barrier until it is woken; actor 2 on home 0 watches for room there. */
static void open_world_with_bound_and_barrier(uint32_t home, uint32_t most)
{
    const domus_spawn_options options = {.mailbox_max = most};

    domt_kin_open_world(2);
    domt_kin_spawn_root_with_options(1, home, &options);
    (void)domt_kin_spawn_root(2, 0, &domt_kin_hearing);
    while (domt_send_notice(domt_outside_manager(&domt_kin_world), domt_kin_of[1].address,
                            &domt_kin_note, "payload") == 0)
        ;
}

/* Let actor 2 ask for room before actor 1 has run: the test steps home 0 by hand. */
static void let_actor_2_watch_room(uint32_t home)
{
    domi_manager *here = domt_kin_world.managers[0];

    result = 1;
    (void)domi_manager_take_arrivals(domt_kin_world.managers[home]);
    ck_assert_int_eq(domt_send_notice(here, domt_kin_of[2].address, &domt_call_type,
                                      &(domt_call){try_to_watch_room, &domt_kin_of[1].address}),
                     0);
    for (uint32_t i = here->schedule.ready[DOMUS_STATE].count; i > 0 && result == 1; i--) {
        domi_house *house = domi_queue_take_house(&here->schedule.ready[DOMUS_STATE]);
        if (house == domt_kin_of[2].address.house)
            (void)domi_house_run_and_settle(here, house);
        else
            domi_queue_put_house(&here->schedule.ready[DOMUS_STATE], house);
    }
    ck_assert_int_eq(result, 0);
}

DOMT_TEST(room_is_told_once_below_half)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_with_bound_and_barrier(home, 200);
        let_actor_2_watch_room(home);
        domi_manager *there = domt_kin_world.managers[home];
        /* a run handles 64 messages of the full mailbox */
        for (uint32_t left = 200; left >= 100;) {
            ck_assert_uint_eq(domt_kin_of[2].rooms, 0);
            ck_assert_uint_le(domi_house_count_events(domt_kin_of[1].address.house), 0);
            (void)domi_manager_take_arrivals(there);
            (void)domi_house_run_and_settle(
                there, domi_queue_take_house(&there->schedule.ready[DOMUS_STATE]));
            left = domt_kin_of[1].address.house->mail;
        }
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
        ck_assert_int_eq(domt_kin_of[2].down.reason, 0);
        ck_assert_ptr_eq(domt_kin_of[2].down.who.house, domt_kin_of[1].address.house);
        domt_kin_send_note(1);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(room_is_reported_with_any_bound)
{
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t most = 1; most < 10; most++) {
            open_world_with_bound_and_barrier(home, most);
            let_actor_2_watch_room(home);
            domt_settle_world(&domt_kin_world);
            ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
            ck_assert_int_eq(domt_kin_of[2].down.reason, 0);
            domt_kin_close_clean_world();
        }
    }
}

/* The mailbox is half full, but no sender was refused, so runs of the actor do not look for watches
 * of room yet. */
DOMT_TEST(room_is_told_also_where_nobody_was_refused)
{
    const domus_spawn_options options = {.mailbox_max = 8};

    for (uint32_t home = 0; home < 2; home++) {
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(2, 0, &domt_kin_hearing);
        domt_kin_spawn_root_with_options(1, home, &options);
        for (int i = 0; i < 6; i++)
            domt_kin_send_notice(1, &domt_kin_note, i);
        let_actor_2_watch_room(home);
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[1].notes, 6);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
        ck_assert_int_eq(domt_kin_of[2].down.reason, 0);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(room_that_is_there_is_told_at_once)
{
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t most = 1; most < 10; most++) {
            open_world_with_bound_and_barrier(home, most);
            domt_settle_world(&domt_kin_world);
            domt_kin_run_in_handler(2, try_to_watch_room, &domt_kin_of[1].address);
            ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
            ck_assert_int_eq(domt_kin_of[2].down.reason, 0);
            domt_kin_close_world();
        }
    }
}

DOMT_TEST(watcher_of_room_hears_estale_when_the_actor_ends)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_with_bound_and_barrier(home, 20);
        let_actor_2_watch_room(home);
        domt_kin_stop_actor(1);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
        ck_assert_int_eq(domt_kin_of[2].down.reason, -ESTALE);
        /* actor 2 asks for room at an actor that has already ended */
        domt_kin_run_in_handler(2, try_to_watch_room, &domt_kin_of[1].address);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 2);
        ck_assert_int_eq(domt_kin_of[2].down.reason, -ESTALE);
        domus_address nobody = {NULL, 0};
        domt_kin_run_in_handler(2, try_to_watch_room, &nobody);
        ck_assert_int_eq(result, -EINVAL);
        domt_kin_close_clean_world();
    }
}

/* The actor that ends waits for its child's end: its mailbox is empty, but takes nothing any
 * more. */
DOMT_TEST(actor_that_is_about_to_end_has_no_room)
{
    open_world_with_bound_and_barrier(0, 20);
    domt_settle_world(&domt_kin_world);
    (void)domt_kin_spawn_child(1, 3, 1, &domt_kin_hearing);
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[0], domt_kin_of[1].address), 0);
    domt_kin_run_iteration_of_home(0);
    domt_kin_send_function_to_run(domt_kin_world.managers[0], 2, try_to_watch_room,
                                  &domt_kin_of[1].address);
    domt_kin_run_iteration_of_home(0);
    domt_kin_run_iteration_of_home(0);
    ck_assert_uint_eq(domt_kin_of[2].rooms, 0);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
    ck_assert_int_eq(domt_kin_of[2].down.reason, -ESTALE);
    domt_kin_close_world();
}

DOMT_TEST(watch_of_room_that_was_taken_back_is_not_told)
{
    for (uint32_t home = 0; home < 2; home++) {
        open_world_with_bound_and_barrier(home, 20);
        let_actor_2_watch_room(home);
        domt_kin_send_function_to_run(domt_kin_world.managers[0], 2, try_to_unwatch, NULL);
        domt_settle_world(&domt_kin_world);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_eq(domt_kin_of[2].rooms, 0);
        domt_kin_close_clean_world();
    }
}

DOMT_TEST(watch_of_the_end_is_not_touched_by_room)
{
    open_world_with_bound_and_barrier(1, 20);
    let_actor_2_watch_room(1);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
    ck_assert_uint_eq(domt_kin_of[2].downs, 0);
    domt_kin_stop_actor(1);
    ck_assert_uint_eq(domt_kin_of[2].rooms, 1);
    ck_assert_uint_eq(domt_kin_of[2].downs, 0);
    domt_kin_close_world();
}

DOMT_SUITE(30)
