/* An actor whose on_mount has failed: until its parent has decided, and for ever when it is
 * stopped, none of its functions is called, while the library goes on handling its internal
 * events. */
#include "house/dispatch/describe.h"
#include "house/dispatch/loan.h"
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/receive.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

#define MS    UINT64_C(1000000)
#define CHILD 4u
#define OTHER 9u /* an actor on home 1 outside of the family */

static const domus_supervision restarts = {.intensity = 100, .otherwise = DOMUS_RESTART};
static const domus_supervision stops = {.otherwise = DOMUS_STOP};
static uint64_t idle_ns; /* the idle time of the next child */
static domus_behaviour boss;
static domus_behaviour restarting, under;

/* Open a world with actor 1 on home 0 as the parent of the child on home 1. The parent is busy
 * while only home 1 takes turns. */
static void open_with(const domus_supervision *supervision)
{
    domt_kin_open(2);
    boss = domt_kin_boss(supervision);
    restarting = domt_kin_restarting(NULL);
    (void)domt_kin_root(1, 0, &boss);
    (void)domt_kin_root(OTHER, 1, &domt_kin_hearing);
}

static domi_house *child_house(void)
{
    return domt_kin_of[CHILD].address.house;
}

/* Spawn the child with `mounting` in its on_mount, which fails. The parent does not know of it
 * yet. */
static void bear_unmounted(const domus_behaviour *behaviour,
                           int (*mounting)(domus_stack *stack, void *context))
{
    const domus_spawn_options there = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .passivate_after_ns = idle_ns};
    const domt_kin state = {CHILD, DOMT_WORTH};

    domt_kin_let_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = mounting;
    ck_assert_int_eq(domi_house_spawn_child(domt_kin_world.managers[0],
                                            domt_kin_of[1].address.house,
                                            domt_kin_world.managers[1], behaviour, &state, &there,
                                            &domt_kin_of[CHILD].address),
                     0);
    domt_kin_turn(1);
    ck_assert_uint_eq(domt_kin_of[CHILD].bad_mounts, 1);
    ck_assert_uint_ne(child_house()->marks & DOMI_MARK_UNMOUNTED, 0);
}

/* Run the child, and then restart it, which fails. */
static void restart_in_vain(int (*mounting)(domus_stack *stack, void *context))
{
    domt_kin_let_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = mounting;
    domt_kin_tell(CHILD, &domt_kin_fail, -EIO);
    domt_kin_turn(1);
    domt_kin_turn(0); /* the parent has decided to restart the child */
    domt_kin_turn(1);
    ck_assert_uint_ne(child_house()->marks & DOMI_MARK_UNMOUNTED, 0);
}

/* Let `ms` of turns of home 1 pass alone; then it must have nothing to do, so its thread would
 * sleep. */
static void pass_there(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i++) {
        domt_jump(&domt_kin_world, MS);
        domt_kin_turn(1);
    }
    for (int i = 0; i < 10; i++)
        domt_kin_turn(1);
    ck_assert_uint_eq(domt_iterate(domt_kin_world.managers[1]), 0);
    ck_assert_int_eq(child_house()->state, DOMI_WAITING);
}

static void record_child(int times)
{
    for (int i = 0; i < times; i++)
        domt_kin_tell(CHILD, &domt_kin_note, 0);
}

static uint64_t count_dead_letters(void)
{
    return DOMT_SUM(&domt_kin_world, dead_letters);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Arm all kinds of events that an actor can request for itself in house/. */
static int arm_all(domus_stack *stack, void *unused)
{
    /* an address whose actor has ended */
    const domus_address nobody = {domt_kin_of[1].address.house, 77};

    ck_assert_int_eq(domus_after(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_repeat(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, nobody, NULL), 0);
    ck_assert_int_eq(domus_watch_room(stack, nobody, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[OTHER].address, NULL), 0);
    return 0;
}

static void check_silence(void)
{
    record_child(3);
    pass_there(10);
    ck_assert_str_eq(domt_kin_trail(), "");
    ck_assert_uint_eq(domt_kin_of[CHILD].ticks, 0);
    ck_assert_uint_eq(child_house()->mail, 3);
    ck_assert_uint_eq(domi_house_count_events(child_house()), 0);
    ck_assert_uint_eq(domt_kin_world.managers[1]->timing.timers, 0);
    ck_assert_uint_eq(count_dead_letters(), 2); /* the events about actors that had already ended */
}

/* The parent is busy on another thread. */
DOMT_TEST(events_of_a_mount_that_failed_are_not_handled)
{
    open_with(&restarts);
    (void)domt_kin_trail();
    bear_unmounted(&domt_kin_hearing, arm_all);
    check_silence();
    domt_kin_of[CHILD].mounting = NULL;
    domt_settle(&domt_kin_world);
    ck_assert_str_eq(domt_kin_trail(), "m4 n4 n4 n4 ");
    domt_kin_close();
}

DOMT_TEST(events_of_a_restart_that_failed_are_not_handled)
{
    for (int by_restart = 0; by_restart < 2; by_restart++) {
        open_with(&restarts);
        (void)domt_kin_child(1, CHILD, 1, by_restart != 0 ? &restarting : &domt_kin_hearing);
        (void)domt_kin_trail();
        restart_in_vain(arm_all);
        ck_assert_str_eq(domt_kin_trail(), by_restart != 0 ? "" : "s4 ");
        check_silence();
        domt_kin_of[CHILD].mounting = NULL;
        domt_settle(&domt_kin_world);
        ck_assert_str_eq(domt_kin_trail(), "m4 n4 n4 n4 ");
        if (by_restart != 0)
            domt_kin_of[CHILD].mounts--; /* on_restart ended the first life of the child */
        domt_kin_close();
    }
}

static int watch_other(domus_stack *stack, void *unused)
{
    return domus_watch_actor(stack, domt_kin_of[OTHER].address, NULL);
}

static int link_other(domus_stack *stack, void *unused)
{
    return domus_link_actor(stack, domt_kin_of[OTHER].address, NULL);
}

static void end_other(void)
{
    ck_assert_int_eq(domi_house_stop(domt_kin_world.managers[1], domt_kin_of[OTHER].address), 0);
    pass_there(1);
    ck_assert(!domt_kin_lives(OTHER));
}

DOMT_TEST(ends_that_it_watches_come_to_nobody)
{
    for (int linked = 0; linked < 2; linked++) {
        open_with(&restarts);
        bear_unmounted(&domt_kin_hearing, linked != 0 ? link_other : watch_other);
        uint64_t letters = count_dead_letters();
        end_other();
        ck_assert_uint_eq(count_dead_letters() - letters, 1);
        ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
        domt_kin_of[CHILD].mounting = NULL;
        domt_settle(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
        ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
        domt_kin_close();
    }
}

/* The link holds: the actor that has no row for ends is stopped, and a restart comes too late. */
DOMT_TEST(links_stop_it_and_the_other_end)
{
    open_with(&restarts);
    bear_unmounted(&domt_kin_deaf, link_other);
    ck_assert_int_eq(domi_house_stop(domt_kin_world.managers[1], domt_kin_of[OTHER].address), 0);
    pass_there(1);
    /* the failure of the child is still under way */
    ck_assert(domi_house_is_asked_to_stop(child_house()));
    domt_settle(&domt_kin_world);
    ck_assert(!domt_kin_lives(CHILD));
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts + domt_kin_of[CHILD].stops, 0);
    domt_kin_close();

    open_with(&stops);
    (void)domt_kin_root(OTHER + 1, 1, &domt_kin_deaf);
    domt_kin_of[OTHER].address = domt_kin_of[OTHER + 1].address;
    bear_unmounted(&domt_kin_deaf, link_other);
    domt_settle(&domt_kin_world); /* the parent decides to stop the child */
    ck_assert(!domt_kin_lives(CHILD) && !domt_kin_lives(OTHER + 1));
    domt_kin_close();
}

/* Without a parent that has rules the actor is stopped at once, and messages that already wait are
 * not handled meanwhile. */
DOMT_TEST(actor_that_the_root_ends_handles_nothing_on_the_way)
{
    open_with(&restarts);
    (void)domt_kin_trail();
    domt_kin_let_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = arm_all;
    (void)domt_kin_root(CHILD, 0, &domt_kin_hearing);
    ck_assert(!domt_kin_lives(CHILD));
    ck_assert_str_eq(domt_kin_trail(), "");
    ck_assert_uint_eq(count_dead_letters(), 2);
    domt_kin_close();
}

/* --- mail ------------------------------------------------------------------------------------ */

DOMT_TEST(mail_waits_and_is_dead_when_it_is_stopped)
{
    open_with(&stops);
    bear_unmounted(&domt_kin_hearing, NULL);
    record_child(3);
    domt_kin_send(domt_kin_world.managers[1], OTHER, domt_kin_do_ask, &domt_kin_of[CHILD].address);
    pass_there(3);
    ck_assert_uint_eq(child_house()->mail, 4);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, 1);
    uint64_t letters = count_dead_letters();
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(count_dead_letters() - letters, 4);
    ck_assert_uint_eq(domt_kin_releases, 3);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, -ESTALE);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes + domt_kin_of[CHILD].stops, 0);
    domt_kin_close();
}

static domus_conversation asking;

static int ask_and_remember(domus_stack *stack, void *address)
{
    int result = domt_kin_do_ask(stack, address);

    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return result;
}

static int cancel_remembered(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_cancel(stack, asking), 0);
    return 0;
}

DOMT_TEST(ask_that_waits_for_it_can_be_cancelled)
{
    open_with(&restarts);
    bear_unmounted(&domt_kin_hearing, NULL);
    domt_kin_send(domt_kin_world.managers[1], OTHER, ask_and_remember, &domt_kin_of[CHILD].address);
    pass_there(1);
    ck_assert_uint_eq(child_house()->mail, 1);
    domt_kin_send(domt_kin_world.managers[1], OTHER, cancel_remembered, NULL);
    pass_there(1);
    ck_assert_uint_eq(child_house()->mail, 0);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, -ECANCELED);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
    domt_kin_close();
}

static const domus_pattern any = {.types = NULL};

static int receive_and_fail(domus_stack *stack, void *unused)
{
    return domus_receive_add(stack, &any, DOMUS_FOR_EVER, 1);
}

DOMT_TEST(receive_of_a_mount_that_failed_takes_nothing)
{
    open_with(&restarts);
    bear_unmounted(&domt_kin_hearing, receive_and_fail);
    record_child(2);
    pass_there(2);
    ck_assert_uint_eq(child_house()->mail, 2);
    domt_kin_of[CHILD].mounting = NULL;
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 2);
    domt_kin_close();
}

/* --- family ---------------------------------------------------------------------------------- */

static int bear_two(domus_stack *stack, void *unused)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 0};

    ck_assert_int_eq(domt_kin_spawn(stack, 5, &domt_kin_hearing, NULL), 0);
    ck_assert_int_eq(domt_kin_spawn(stack, 6, &domt_kin_hearing, &there), 0);
    return 0;
}

/* A restart and a stop both wait for the ends of children, which are events. */
DOMT_TEST(ends_of_its_children_still_come)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        open_with(stopped != 0 ? &stops : &restarts);
        bear_unmounted(&domt_kin_hearing, bear_two);
        domt_kin_of[CHILD].mounting = NULL;
        pass_there(2);
        ck_assert(domt_kin_lives(5));
        domt_settle(&domt_kin_world);
        ck_assert(!domt_kin_lives(5) && !domt_kin_lives(6));
        ck_assert_uint_eq(domt_kin_of[CHILD].mounts, stopped != 0 ? 0 : 1);
        ck_assert(domt_kin_lives(CHILD) == (stopped == 0));
        domt_kin_close();
    }
}

DOMT_TEST(failures_of_its_children_are_still_decided)
{
    open_with(&restarts);
    under = domt_kin_boss(&restarts);
    bear_unmounted(&under, bear_two);
    domt_kin_of[CHILD].mounting = NULL;
    domt_kin_turn(1); /* actor 5 is mounted */
    domt_kin_tell(5, &domt_kin_fail, -EIO);
    pass_there(2);
    ck_assert_uint_eq(domt_kin_of[5].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[5].stops, 1);
    domt_settle(&domt_kin_world);
    domt_kin_close();
}

DOMT_TEST(idle_time_does_not_pass_before_it_is_mounted)
{
    open_with(&restarts);
    idle_ns = 3 * MS;
    bear_unmounted(&domt_kin_hearing, NULL);
    idle_ns = 0;
    pass_there(10);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 0);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
    domt_pass(&domt_kin_world, 10 * MS); /* now the actor's timer fires */
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 1);
    domt_kin_close();
}

/* --- who counts as mounted ------------------------------------------------------------------- */

static int sleep_and_arm(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    return domt_kin_do_sleep(stack, unused);
}

DOMT_TEST(actor_whose_mount_has_parked_handles_everything)
{
    open_with(&restarts);
    domt_kin_of[CHILD].mounting = sleep_and_arm;
    (void)domt_kin_child(1, CHILD, 1, &domt_kin_hearing);
    ck_assert_uint_eq(child_house()->marks & DOMI_MARK_UNMOUNTED, 0);
    record_child(1);
    domt_pass(&domt_kin_world, 3 * MS);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 1);
    ck_assert_uint_ge(domt_kin_of[CHILD].ticks, 2);
    domt_kin_close();
}

/* A suspended actor is not unmounted: its state is whole, and its timers go on. */
DOMT_TEST(actor_whose_handler_has_failed_handles_events_meanwhile)
{
    open_with(&restarts);
    domt_kin_of[CHILD].mounting = domt_kin_do_tick;
    (void)domt_kin_child(1, CHILD, 1, &domt_kin_hearing);
    domt_kin_tell(CHILD, &domt_kin_fail, -EIO);
    domt_kin_turn(1);
    ck_assert_uint_ne(child_house()->marks & DOMI_MARK_SUSPENDED, 0);
    pass_there(3);
    ck_assert_uint_eq(domt_kin_of[CHILD].ticks, 3);
    domt_kin_close();
}

static int fail_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    return -EIO;
}

static int sleep_and_fail(domus_stack *stack, void *unused)
{
    return domus_sleep(stack, MS, fail_on);
}

/* A later failure counts as one of a handler: the actor goes on if its rules say so, and its
 * on_stop runs. */
DOMT_TEST(mount_that_fails_after_it_has_parked_is_a_handler_that_fails)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESUME};

    open_with(&resumes);
    domt_kin_of[CHILD].mounting = sleep_and_fail;
    (void)domt_kin_child(1, CHILD, 1, &domt_kin_hearing);
    domt_pass(&domt_kin_world, 3 * MS);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    record_child(1);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 1);
    domt_kin_close(); /* the close checks that on_stop has run */
}

/* --- elsewhere ------------------------------------------------------------------------------- */

/* An event has made the actor ready, and a thief runs it. */
DOMT_TEST(thief_that_runs_it_calls_none_of_its_functions)
{
    domi_manager *home;

    open_with(&restarts);
    home = domt_kin_world.managers[1];
    bear_unmounted(&domt_kin_hearing, watch_other);
    ck_assert_int_eq(domi_house_stop(home, domt_kin_of[OTHER].address), 0);
    (void)domt_run_state(home); /* the other actor ends, and its end is reported */
    ck_assert_int_eq(child_house()->state, DOMI_READY);
    ck_assert_uint_eq(domi_loans_expose(home, &home->schedule.ready[DOMUS_STATE], 1), 1);
    domi_loan *loan = domi_loan_take(domt_outside(&domt_kin_world), home);
    ck_assert_ptr_nonnull(loan);
    domi_loan_run(domt_outside(&domt_kin_world), loan);
    ck_assert_uint_eq(domi_loans_settle(home), 1);
    ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
    ck_assert_int_eq(child_house()->state, DOMI_WAITING);
    domt_settle(&domt_kin_world);
    domt_kin_close();
}

DOMT_TEST(dump_says_that_it_is_not_mounted)
{
    char words[4096];
    domi_text text = {words, sizeof words, 0};

    open_with(&restarts);
    bear_unmounted(&domt_kin_hearing, NULL);
    domi_house_describe(domt_kin_world.managers[1], child_house(), &text);
    ck_assert_ptr_nonnull(strstr(words, "not mounted"));
    domt_settle(&domt_kin_world);
    text.length = 0;
    domi_house_describe(domt_kin_world.managers[1], child_house(), &text);
    ck_assert_ptr_null(strstr(words, "not mounted"));
    domt_kin_close();
}

DOMT_SUITE(30)
