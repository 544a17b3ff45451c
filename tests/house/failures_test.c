/* Failures beside other events: sequences and processes that fail while they are mounted, by the
 * rules of unmounted_test.c; a failure that meets a restart which another failure has begun; and
 * what a restart gives back. */
#include "house/directory/name_table.h"
#include "house/directory/router.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/process.h>
#include <domus/timer.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const domus_supervision restarts = {.intensity = 100, .otherwise = DOMUS_RESTART};
static const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 1};
static domus_behaviour boss;
static domus_address child;
static unsigned fails;  /* number of the child's next mounts that will fail */
static unsigned begins; /* calls of the child's on_mount or `init` */
static unsigned events; /* messages and events that the child has handled */
static unsigned closes;

/* Open a family in which actor 1 on home 0 is the parent; while a test steps only home 1, the
 * parent decides nothing. */
static void let_boss_spawn_failing_child(int (*spawn)(domus_stack *stack, void *context))
{
    domt_kin_open_world_with_boss(2, &restarts);
    fails = 1;
    begins = events = closes = 0;
    domt_kin_send_function_to_run(domt_kin_world.managers[0], 1, spawn, NULL);
    domt_kin_run_iteration_of_home(0);
    domt_kin_run_iteration_of_home(1);
}

static void send_note_to_child(void)
{
    const uint64_t nothing = 0;

    ck_assert_int_eq(
        domt_send_notice(domt_outside_manager(&domt_kin_world), child, &domt_kin_note, &nothing),
        0);
}

static void check_child_handles_nothing(void)
{
    ck_assert_uint_eq(begins, 1);
    ck_assert_uint_ne(child.house->marks & DOMI_MARK_UNMOUNTED, 0);
    send_note_to_child();
    for (int i = 0; i < 10; i++) {
        domt_advance_time_without_runs(&domt_kin_world, MS);
        domt_kin_run_iteration_of_home(1);
    }
    ck_assert_uint_eq(domt_iterate_home(domt_kin_world.managers[1]), 0);
    ck_assert_uint_eq(events, 0);
}

/* --- a sequence as on_mount ------------------------------------------------------------------ */

static int count_message(domus_stack *stack, void *self, const void *payload)
{
    events++;
    return 0;
}

typedef struct mounting {
    unsigned steps;
} mounting;

DOMUS_SEQUENCE(mount, mounting)
{
    DOMUS_BEGIN
    begins++;
    if (domus_every(stack, MS, &domt_kin_tick, NULL, NULL) != 0)
        return -ENOMEM;
    if (fails != 0) {
        fails--;
        return -EPERM;
    }
    for (frame->steps = 0; frame->steps < 2; frame->steps++)
        DOMUS_SLEEP(MS);
    DOMUS_END;
}

static const domus_behaviour sequential = {
    .name = "sequential",
    .on = (const domus_on[]){{&domt_kin_note, count_message, 0},
                             {&domt_kin_tick, count_message, 0},
                             {0}},
    DOMUS_ON_MOUNT(mount)};

static int spawn_sequential(domus_stack *stack, void *unused)
{
    return domus_spawn_with(stack, &sequential, NULL, &there, &child);
}

DOMT_TEST(sequence_that_fails_in_its_first_step_leaves_it_unmounted)
{
    let_boss_spawn_failing_child(spawn_sequential);
    check_child_handles_nothing();
    domt_pass_time(&domt_kin_world, 5 * MS);
    ck_assert_uint_eq(begins, 2);
    ck_assert_uint_ge(events, 3); /* handled: the notice that had waited, and ticks */
    domt_kin_close_world();
}

/* --- a process ------------------------------------------------------------------------------- */

static int init_process(domus_stack *stack, void *self, const char *method, const domus_type *type,
                        const void *input)
{
    begins++;
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    if (fails == 0)
        return 0;
    fails--;
    return -EPERM;
}

static int count_events_of_step(domus_stack *stack, void *self, const domus_process_event *with,
                                uint32_t number, domus_process_output *out)
{
    events += number;
    return 0;
}

static void close_process(domus_stack *stack, void *self)
{
    closes++;
}

static const domus_process process = {.name = "process",
                                      .state_size = 8,
                                      .init = init_process,
                                      .step = count_events_of_step,
                                      .close = close_process};

static int spawn_process(domus_stack *stack, void *unused)
{
    return domus_process_spawn(stack, &process, NULL, NULL, NULL, &there, &child);
}

DOMT_TEST(process_whose_init_fails_makes_no_step)
{
    let_boss_spawn_failing_child(spawn_process);
    ck_assert_uint_eq(closes, 1);
    check_child_handles_nothing();
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, dead_letters), 0);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(begins, 2);
    ck_assert_uint_eq(events, 1); /* the child has handled the notice that had waited */
    domt_kin_close_world();
    ck_assert_uint_eq(closes, 2);
}

/* --- restarts --------------------------------------------------------------------------------- */

static domus_behaviour boss;

/* Put an event whose handler will fail behind the messages that wait for child `number`, as its
 * home does. */
static void put_failing_event(uint32_t home, uint32_t number, int error)
{
    domi_manager *manager = domt_kin_world.managers[home];
    domi_envelope *event = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + domt_kin_fail.size);

    ck_assert_ptr_nonnull(event);
    event->type = &domt_kin_fail;
    event->sender = NULL;
    event->sender_lease = 0;
    memcpy(event->payload, &error, sizeof error);
    ck_assert_int_eq(
        domi_mailbox_put(manager, domt_kin_of[number].address, &event->node, DOMI_EVENT), 0);
}

/* 1. Child 3 fails, and its parent restarts 2 as well. 2. Before child 2 begins anew, an event's
 * handler fails in it, and its parent is told. 3. Child 2 begins anew, and its on_mount fails. 4.
 * The parent decides on the first failure: to resume. An actor that is not mounted cannot. */
DOMT_TEST(mount_that_fails_while_an_earlier_failure_is_undecided_ends_the_actor)
{
    static const domus_rule rules[] = {{.error = -EIO, .directive = DOMUS_RESTART}};
    static const domus_supervision all = {
        .all_for_one = true, .rules = rules, .rules_count = 1, .otherwise = DOMUS_RESUME};

    domt_kin_open_world_with_boss(2, &all);
    (void)domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
    (void)domt_kin_spawn_child(1, 3, 0, &domt_kin_hearing);
    domt_kin_let_mounts_fail(2, 1, -EPERM);
    domt_kin_send_notice(3, &domt_kin_fail, -EIO);
    /* home 0 takes several turns, so that the parent's directive is on its way to child 2 */
    for (int i = 0; i < 3; i++)
        domt_kin_run_iteration_of_home(0);
    put_failing_event(1, 2, -EPIPE);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[3].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[2].bad_mounts, 1);
    ck_assert(!domt_kin_is_alive(2));
    ck_assert_uint_eq(domt_kin_count_houses(), 2);
    domt_kin_close_world();
}

/* --- what it had ----------------------------------------------------------------------------- */

static int spawn_named_router(domus_stack *stack, void *self)
{
    domus_spawn_options options = {.name = "pool"};
    domus_address pool;

    return domus_spawn_many(stack, &domt_agent, NULL, 3, NULL, &options, &pool);
}

DOMT_TEST(restart_gives_the_routers_and_their_names_back)
{
    static const uint64_t key[2] = {1, 2};
    domi_names names;
    domi_routers routers;

    domt_kin_open_world(2);
    ck_assert_int_eq(domi_names_init(&names, 8, key), 0);
    domi_routers_init(&routers, 8, 8);
    for (uint32_t i = 0; i < 3; i++) {
        domt_kin_world.managers[i]->directory.names = &names;
        domt_kin_world.managers[i]->directory.routers = &routers;
    }
    boss = domt_kin_behaviour_of_boss(&restarts);
    (void)domt_kin_spawn_root(1, 0, &boss);
    domt_kin_of[2].mounting = spawn_named_router;
    (void)domt_kin_spawn_child(1, 2, 0, &domt_kin_hearing);
    (void)domt_kin_read_and_clear_trail();
    domt_kin_fail_actor(2, -EIO);
    ck_assert_uint_eq(routers.count, 1);
    ck_assert_uint_eq(domi_names_count(&names), 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, restarts), 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    ck_assert(domt_kin_is_alive(2));
    domt_kin_close_world();
    domi_routers_fini(&routers);
    domi_names_fini(&names);
}

DOMT_SUITE(30)
