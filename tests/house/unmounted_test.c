/* An actor whose on_mount has failed is unmounted: until its parent has decided, and for ever if it
 * is stopped, none of its functions is called, while the library goes on handling its internal
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
static uint64_t idle_ns; /* the idle time that the next child is spawned with */
static domus_behaviour boss;
static domus_behaviour restarting, under;

/* Open a world with actor 1 on home 0 as the parent of the child on home 1. The parent decides
 * nothing while a test steps home 1 alone. */
static void open_world_of_parent_with_rules(const domus_supervision *supervision)
{
    domt_kin_open_world(2);
    boss = domt_kin_behaviour_of_boss(supervision);
    restarting = domt_kin_behaviour_with_restart(NULL);
    (void)domt_kin_spawn_root(1, 0, &boss);
    (void)domt_kin_spawn_root(OTHER, 1, &domt_kin_hearing);
}

static domi_house *house_of_child(void)
{
    return domt_kin_of[CHILD].address.house;
}

/* Spawn the child, whose on_mount calls `mounting` and fails. The parent is not told of the failure
 * yet. */
static void spawn_child_that_fails_mount(const domus_behaviour *behaviour,
                                         int (*mounting)(domus_stack *stack, void *context))
{
    const domus_spawn_options there = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .passivate_after_ns = idle_ns};
    const domt_kin state = {CHILD, DOMT_WORTH};

    domt_kin_let_mounts_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = mounting;
    ck_assert_int_eq(domi_house_spawn_child(domt_kin_world.managers[0],
                                            domt_kin_of[1].address.house,
                                            domt_kin_world.managers[1], behaviour, &state, &there,
                                            &domt_kin_of[CHILD].address),
                     0);
    domt_kin_run_iteration_of_home(1);
    ck_assert_uint_eq(domt_kin_of[CHILD].bad_mounts, 1);
    ck_assert_uint_ne(house_of_child()->marks & DOMI_MARK_UNMOUNTED, 0);
}

/* Let a handler of the child fail: its parent restarts it, and that restart fails, too. */
static void let_restart_of_child_fail(int (*mounting)(domus_stack *stack, void *context))
{
    domt_kin_let_mounts_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = mounting;
    domt_kin_send_notice(CHILD, &domt_kin_fail, -EIO);
    domt_kin_run_iteration_of_home(1);
    domt_kin_run_iteration_of_home(0); /* the parent decides to restart the child */
    domt_kin_run_iteration_of_home(1);
    ck_assert_uint_ne(house_of_child()->marks & DOMI_MARK_UNMOUNTED, 0);
}

/* Let so many ms of home 1 pass, with turns of home 1 alone; then that home must have nothing to
 * do, so its thread would sleep. */
static void pass_ms_on_home_1(uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i++) {
        domt_advance_time_without_runs(&domt_kin_world, MS);
        domt_kin_run_iteration_of_home(1);
    }
    for (int i = 0; i < 10; i++)
        domt_kin_run_iteration_of_home(1);
    ck_assert_uint_eq(domt_iterate_home(domt_kin_world.managers[1]), 0);
    ck_assert_int_eq(house_of_child()->state, DOMI_WAITING);
}

static void send_notes_to_child(int times)
{
    for (int i = 0; i < times; i++)
        domt_kin_send_notice(CHILD, &domt_kin_note, 0);
}

static uint64_t count_dead_letters(void)
{
    return DOMT_SUM(&domt_kin_world, dead_letters);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Arm all kinds of events that the layer house/ lets an actor request for itself. */
static int arm_all_kinds_of_events(domus_stack *stack, void *unused)
{
    /* an address with the lease of no actor that lives */
    const domus_address nobody = {domt_kin_of[1].address.house, 77};

    ck_assert_int_eq(domus_after(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_repeat(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, nobody, NULL), 0);
    ck_assert_int_eq(domus_watch_room(stack, nobody, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, domt_kin_of[OTHER].address, NULL), 0);
    return 0;
}

static void check_child_handles_nothing(void)
{
    send_notes_to_child(3);
    pass_ms_on_home_1(10);
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "");
    ck_assert_uint_eq(domt_kin_of[CHILD].ticks, 0);
    ck_assert_uint_eq(house_of_child()->mail, 3);
    ck_assert_uint_eq(domi_house_count_events(house_of_child()), 0);
    ck_assert_uint_eq(domt_kin_world.managers[1]->timing.timers, 0);
    /* dead letters: the events about actors that had already ended */
    ck_assert_uint_eq(count_dead_letters(), 2);
}

/* The parent decides nothing, because its thread does other things. */
DOMT_TEST(events_of_a_mount_that_failed_are_not_handled)
{
    open_world_of_parent_with_rules(&restarts);
    (void)domt_kin_read_and_clear_trail();
    spawn_child_that_fails_mount(&domt_kin_hearing, arm_all_kinds_of_events);
    check_child_handles_nothing();
    domt_kin_of[CHILD].mounting = NULL;
    domt_settle_world(&domt_kin_world);
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "m4 n4 n4 n4 ");
    domt_kin_close_world();
}

DOMT_TEST(events_of_a_restart_that_failed_are_not_handled)
{
    for (int by_restart = 0; by_restart < 2; by_restart++) {
        open_world_of_parent_with_rules(&restarts);
        (void)domt_kin_spawn_child(1, CHILD, 1, by_restart != 0 ? &restarting : &domt_kin_hearing);
        (void)domt_kin_read_and_clear_trail();
        let_restart_of_child_fail(arm_all_kinds_of_events);
        ck_assert_str_eq(domt_kin_read_and_clear_trail(), by_restart != 0 ? "" : "s4 ");
        check_child_handles_nothing();
        domt_kin_of[CHILD].mounting = NULL;
        domt_settle_world(&domt_kin_world);
        ck_assert_str_eq(domt_kin_read_and_clear_trail(), "m4 n4 n4 n4 ");
        if (by_restart != 0)
            domt_kin_of[CHILD].mounts--; /* on_restart has ended the first life of the child */
        domt_kin_close_world();
    }
}

static int watch_other_actor(domus_stack *stack, void *unused)
{
    return domus_watch_actor(stack, domt_kin_of[OTHER].address, NULL);
}

static int link_to_other_actor(domus_stack *stack, void *unused)
{
    return domus_link_actor(stack, domt_kin_of[OTHER].address, NULL);
}

static void end_other_actor(void)
{
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[OTHER].address),
                     0);
    pass_ms_on_home_1(1);
    ck_assert(!domt_kin_is_alive(OTHER));
}

DOMT_TEST(unmounted_actor_hears_of_no_watched_end)
{
    for (int linked = 0; linked < 2; linked++) {
        open_world_of_parent_with_rules(&restarts);
        spawn_child_that_fails_mount(&domt_kin_hearing,
                                     linked != 0 ? link_to_other_actor : watch_other_actor);
        uint64_t letters = count_dead_letters();
        end_other_actor();
        ck_assert_uint_eq(count_dead_letters() - letters, 1);
        ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
        domt_kin_of[CHILD].mounting = NULL;
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
        ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
        domt_kin_close_world();
    }
}

/* The link of the unmounted actor holds: when the linked actor ends, an actor without a row for
 * ends is stopped, and a restart comes too late. */
DOMT_TEST(links_end_an_unmounted_actor_and_its_partner)
{
    open_world_of_parent_with_rules(&restarts);
    spawn_child_that_fails_mount(&domt_kin_deaf, link_to_other_actor);
    ck_assert_int_eq(domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[OTHER].address),
                     0);
    pass_ms_on_home_1(1);
    /* the child is asked to stop while its failure is still under way */
    ck_assert(domi_house_is_asked_to_stop(house_of_child()));
    domt_settle_world(&domt_kin_world);
    ck_assert(!domt_kin_is_alive(CHILD));
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts + domt_kin_of[CHILD].stops, 0);
    domt_kin_close_world();

    open_world_of_parent_with_rules(&stops);
    (void)domt_kin_spawn_root(OTHER + 1, 1, &domt_kin_deaf);
    domt_kin_of[OTHER].address = domt_kin_of[OTHER + 1].address;
    spawn_child_that_fails_mount(&domt_kin_deaf, link_to_other_actor);
    /* the parent decides to stop the child, which ends the linked actor */
    domt_settle_world(&domt_kin_world);
    ck_assert(!domt_kin_is_alive(CHILD) && !domt_kin_is_alive(OTHER + 1));
    domt_kin_close_world();
}

/* An actor whose parent has no rules is stopped at once when its on_mount fails, and does not
 * handle messages that already wait. */
DOMT_TEST(actor_that_the_root_ends_handles_nothing_on_the_way)
{
    open_world_of_parent_with_rules(&restarts);
    (void)domt_kin_read_and_clear_trail();
    domt_kin_let_mounts_fail(CHILD, 1, -EPERM);
    domt_kin_of[CHILD].mounting = arm_all_kinds_of_events;
    (void)domt_kin_spawn_root(CHILD, 0, &domt_kin_hearing);
    ck_assert(!domt_kin_is_alive(CHILD));
    ck_assert_str_eq(domt_kin_read_and_clear_trail(), "");
    ck_assert_uint_eq(count_dead_letters(), 2);
    domt_kin_close_world();
}

/* --- mail ------------------------------------------------------------------------------------ */

DOMT_TEST(mail_of_an_unmounted_actor_is_dead_when_it_is_stopped)
{
    open_world_of_parent_with_rules(&stops);
    spawn_child_that_fails_mount(&domt_kin_hearing, NULL);
    send_notes_to_child(3);
    domt_kin_send_function_to_run(domt_kin_world.managers[1], OTHER, domt_kin_ask_address_for_ever,
                                  &domt_kin_of[CHILD].address);
    pass_ms_on_home_1(3);
    ck_assert_uint_eq(house_of_child()->mail, 4);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, 1);
    uint64_t letters = count_dead_letters();
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(count_dead_letters() - letters, 4);
    ck_assert_uint_eq(domt_kin_releases, 3);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, -ESTALE);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes + domt_kin_of[CHILD].stops, 0);
    domt_kin_close_world();
}

static domus_conversation asking;

static int ask_and_remember(domus_stack *stack, void *address)
{
    int result = domt_kin_ask_address_for_ever(stack, address);

    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return result;
}

static int cancel_remembered_conversation(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_cancel(stack, asking), 0);
    return 0;
}

DOMT_TEST(ask_that_waits_for_an_unmounted_actor_can_be_cancelled)
{
    open_world_of_parent_with_rules(&restarts);
    spawn_child_that_fails_mount(&domt_kin_hearing, NULL);
    domt_kin_send_function_to_run(domt_kin_world.managers[1], OTHER, ask_and_remember,
                                  &domt_kin_of[CHILD].address);
    pass_ms_on_home_1(1);
    ck_assert_uint_eq(house_of_child()->mail, 1);
    domt_kin_send_function_to_run(domt_kin_world.managers[1], OTHER, cancel_remembered_conversation,
                                  NULL);
    pass_ms_on_home_1(1);
    ck_assert_uint_eq(house_of_child()->mail, 0);
    ck_assert_int_eq(domt_kin_of[OTHER].answer, -ECANCELED);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
    domt_kin_close_world();
}

static const domus_pattern any = {.types = NULL};

static int begin_receive_and_fail_mount(domus_stack *stack, void *unused)
{
    return domus_receive_add(stack, &any, DOMUS_FOR_EVER, 1);
}

DOMT_TEST(receive_of_a_mount_that_failed_takes_nothing)
{
    open_world_of_parent_with_rules(&restarts);
    spawn_child_that_fails_mount(&domt_kin_hearing, begin_receive_and_fail_mount);
    send_notes_to_child(2);
    pass_ms_on_home_1(2);
    ck_assert_uint_eq(house_of_child()->mail, 2);
    domt_kin_of[CHILD].mounting = NULL;
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 2);
    domt_kin_close_world();
}

/* --- family ---------------------------------------------------------------------------------- */

static int spawn_two_children(domus_stack *stack, void *unused)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 0};

    ck_assert_int_eq(domt_kin_spawn_in_handler(stack, 5, &domt_kin_hearing, NULL), 0);
    ck_assert_int_eq(domt_kin_spawn_in_handler(stack, 6, &domt_kin_hearing, &there), 0);
    return 0;
}

/* A restart and a stop of the unmounted actor both wait for events: the ends of its children. */
DOMT_TEST(ends_of_children_of_an_unmounted_actor_are_heard)
{
    for (int stopped = 0; stopped < 2; stopped++) {
        open_world_of_parent_with_rules(stopped != 0 ? &stops : &restarts);
        spawn_child_that_fails_mount(&domt_kin_hearing, spawn_two_children);
        domt_kin_of[CHILD].mounting = NULL;
        pass_ms_on_home_1(2);
        ck_assert(domt_kin_is_alive(5));
        domt_settle_world(&domt_kin_world);
        ck_assert(!domt_kin_is_alive(5) && !domt_kin_is_alive(6));
        ck_assert_uint_eq(domt_kin_of[CHILD].mounts, stopped != 0 ? 0 : 1);
        ck_assert(domt_kin_is_alive(CHILD) == (stopped == 0));
        domt_kin_close_world();
    }
}

DOMT_TEST(failures_of_children_of_an_unmounted_actor_are_decided)
{
    open_world_of_parent_with_rules(&restarts);
    under = domt_kin_behaviour_of_boss(&restarts);
    spawn_child_that_fails_mount(&under, spawn_two_children);
    domt_kin_of[CHILD].mounting = NULL;
    domt_kin_run_iteration_of_home(1); /* home 1 mounts actor 5, a child of the unmounted actor */
    domt_kin_send_notice(5, &domt_kin_fail, -EIO);
    pass_ms_on_home_1(2);
    ck_assert_uint_eq(domt_kin_of[5].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[5].stops, 1);
    domt_settle_world(&domt_kin_world);
    domt_kin_close_world();
}

DOMT_TEST(idle_time_does_not_pass_before_the_mount)
{
    open_world_of_parent_with_rules(&restarts);
    idle_ns = 3 * MS;
    spawn_child_that_fails_mount(&domt_kin_hearing, NULL);
    idle_ns = 0;
    pass_ms_on_home_1(10);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 0);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].mounts, 1);
    domt_pass_time(&domt_kin_world,
                   10 * MS); /* the idle time begins with the mount, and is over now */
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, passivations), 1);
    domt_kin_close_world();
}

/* --- who counts as mounted ------------------------------------------------------------------- */

static int arm_ticks_and_sleep(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    return domt_kin_sleep_for_a_day(stack, unused);
}

DOMT_TEST(actor_whose_mount_has_parked_handles_everything)
{
    open_world_of_parent_with_rules(&restarts);
    domt_kin_of[CHILD].mounting = arm_ticks_and_sleep;
    (void)domt_kin_spawn_child(1, CHILD, 1, &domt_kin_hearing);
    ck_assert_uint_eq(house_of_child()->marks & DOMI_MARK_UNMOUNTED, 0);
    send_notes_to_child(1);
    domt_pass_time(&domt_kin_world, 3 * MS);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 1);
    ck_assert_uint_ge(domt_kin_of[CHILD].ticks, 2);
    domt_kin_close_world();
}

/* An actor that waits for a decision after a handler failed is not unmounted: its state is whole,
 * and its timers go on. */
DOMT_TEST(actor_whose_handler_has_failed_handles_events_meanwhile)
{
    open_world_of_parent_with_rules(&restarts);
    domt_kin_of[CHILD].mounting = domt_kin_arm_ticks_of_1_ms;
    (void)domt_kin_spawn_child(1, CHILD, 1, &domt_kin_hearing);
    domt_kin_send_notice(CHILD, &domt_kin_fail, -EIO);
    domt_kin_run_iteration_of_home(1);
    ck_assert_uint_ne(house_of_child()->marks & DOMI_MARK_SUSPENDED, 0);
    pass_ms_on_home_1(3);
    ck_assert_uint_eq(domt_kin_of[CHILD].ticks, 3);
    domt_kin_close_world();
}

static int fail_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return -EIO;
}

static int sleep_then_fail(domus_stack *stack, void *unused)
{
    return domus_sleep(stack, MS, fail_after_sleep);
}

/* A failure after on_mount has parked counts as that of a handler: the actor goes on if its
 * parent's rules say so, and its on_stop runs. */
DOMT_TEST(mount_that_fails_after_it_has_parked_is_a_handler_that_fails)
{
    static const domus_supervision resumes = {.otherwise = DOMUS_RESUME};

    open_world_of_parent_with_rules(&resumes);
    domt_kin_of[CHILD].mounting = sleep_then_fail;
    (void)domt_kin_spawn_child(1, CHILD, 1, &domt_kin_hearing);
    domt_pass_time(&domt_kin_world, 3 * MS);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    send_notes_to_child(1);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[CHILD].notes, 1);
    domt_kin_close_world(); /* checks that on_stop has run */
}

/* --- elsewhere ------------------------------------------------------------------------------- */

/* An event has made the unmounted actor ready, and a thief runs it. */
DOMT_TEST(thief_calls_no_function_of_an_unmounted_actor)
{
    domi_manager *home;

    open_world_of_parent_with_rules(&restarts);
    home = domt_kin_world.managers[1];
    spawn_child_that_fails_mount(&domt_kin_hearing, watch_other_actor);
    ck_assert_int_eq(domi_house_ask_to_stop(home, domt_kin_of[OTHER].address), 0);
    (void)domt_run_state_queue(
        home); /* the other actor ends, and the child gets the event of that end */
    ck_assert_int_eq(house_of_child()->state, DOMI_READY);
    ck_assert_uint_eq(domi_loans_expose_houses(home, &home->schedule.ready[DOMUS_STATE], 1), 1);
    domi_loan *loan = domi_loan_take_exposed_house(domt_outside_manager(&domt_kin_world), home);
    ck_assert_ptr_nonnull(loan);
    domi_loan_run_house_and_return(domt_outside_manager(&domt_kin_world), loan);
    ck_assert_uint_eq(domi_loans_settle_returned_houses(home), 1);
    ck_assert_uint_eq(domt_kin_of[CHILD].downs, 0);
    ck_assert_int_eq(house_of_child()->state, DOMI_WAITING);
    domt_settle_world(&domt_kin_world);
    domt_kin_close_world();
}

DOMT_TEST(dump_says_that_an_actor_is_not_mounted)
{
    char words[4096];
    domi_text text = {words, sizeof words, 0};

    open_world_of_parent_with_rules(&restarts);
    spawn_child_that_fails_mount(&domt_kin_hearing, NULL);
    domi_house_describe(domt_kin_world.managers[1], house_of_child(), &text);
    ck_assert_ptr_nonnull(strstr(words, "not mounted"));
    domt_settle_world(&domt_kin_world);
    text.length = 0;
    domi_house_describe(domt_kin_world.managers[1], house_of_child(), &text);
    ck_assert_ptr_null(strstr(words, "not mounted"));
    domt_kin_close_world();
}

DOMT_SUITE(30)
