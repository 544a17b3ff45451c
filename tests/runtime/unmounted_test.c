/* An actor's on_mount fails while its parent is busy on another thread: no event that the actor has
 * armed comes to it, and its thread sleeps. */
#include "tests/runtime/running.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROUNDS  3u
#define BUSY_NS (50 * DOMT_MS)
#define TURNS_MAX                                                                                  \
    200u /* most iterations of a thread that sleeps within BUSY_NS; the actor's timer would tick   \
            50 times meanwhile */

static _Atomic unsigned mounts;      /* number of mounts that have failed */
static _Atomic unsigned good_mounts; /* number of mounts that have succeeded */
/* number of events and messages that came although the mount had failed */
static _Atomic unsigned early;
static _Atomic unsigned notes;
static _Atomic unsigned ticks;
static _Atomic bool is_busy;
static _Atomic bool may_go_on;

static const domus_type tick_type = {.name = "tick"};
static const domus_type note_type = {.name = "note"};
static const domus_type bear_type = {.name = "bear"};

static domus_address child; /* address of the actor; set before `mounts` grows */
static int readable;        /* descriptor of a file that is always readable */
static bool is_detached;    /* true: the actor is detached; false: it is on a thread of the loop */

static int begin_events_and_fail_mount(domus_stack *stack, void *self)
{
    const domus_address nobody = {domus_self(stack).house, domus_self(stack).lease + 1};
    domus_group group;

    ck_assert_int_eq(domus_every(stack, DOMT_MS, &tick_type, NULL, NULL), 0);
    ck_assert_int_eq(domus_after(stack, DOMT_MS, &tick_type, NULL, NULL), 0);
    ck_assert_int_eq(domus_watch_actor(stack, nobody, NULL), 0);
    ck_assert_int_eq(domus_group_open(stack, "group", &group), 0);
    /* A detached actor can neither join a group nor watch a descriptor. */
    int none = is_detached ? -EOPNOTSUPP : 0;
    ck_assert_int_eq(domus_group_join(stack, group), none);
    ck_assert_int_eq(domus_watch_fd(stack, readable, POLLIN, NULL), none);
    if (atomic_load(&mounts) == ROUNDS) {
        atomic_fetch_add(&good_mounts, 1);
        return 0;
    }
    child = domus_self(stack);
    atomic_fetch_add(&mounts, 1);
    return -EPERM;
}

static int count_event_and_if_early(_Atomic unsigned *of)
{
    if (atomic_load(&good_mounts) == 0)
        atomic_fetch_add(&early, 1);
    atomic_fetch_add(of, 1);
    return 0;
}

static int count_tick(domus_stack *stack, void *self, const void *payload)
{
    return count_event_and_if_early(&ticks);
}

/* Count the event, and read the descriptor, which would otherwise stay ready for ever. */
static int count_ready_descriptor(domus_stack *stack, void *self, const void *payload)
{
    uint64_t value;
    ck_assert_int_eq(read(readable, &value, sizeof value), sizeof value);
    return count_event_and_if_early(&ticks);
}

static int count_note(domus_stack *stack, void *self, const void *payload)
{
    return count_event_and_if_early(&notes);
}

static const domus_behaviour failing = {
    .name = "failing",
    .on = (const domus_on[]){{&tick_type, count_tick, 0},
                             {&note_type, count_note, 0},
                             {&domus_down_type, count_tick, 0},
                             {&domus_ready_type, count_ready_descriptor, 0},
                             {0}},
    .on_mount = begin_events_and_fail_mount};

/* Spawn the actor on the other thread, and stay in this handler until the test lets it return. */
static int spawn_and_stay_in_handler(domus_stack *stack, void *self, const void *payload)
{
    const domus_spawn_options there = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .detached = is_detached};
    domus_address address;

    ck_assert_int_eq(domus_spawn_with(stack, &failing, NULL, &there, &address), 0);
    atomic_store(&is_busy, true);
    while (!atomic_load(&may_go_on))
        domt_pause_ns(DOMT_MS);
    atomic_store(&is_busy, false);
    return 0;
}

static const domus_supervision supervision = {.intensity = 100, .otherwise = DOMUS_RESTART};
static const domus_behaviour boss = {
    .name = "boss",
    .on = (const domus_on[]){{&bear_type, spawn_and_stay_in_handler, 0}, {0}},
    .supervision = &supervision};

static void reset_counts_and_open_descriptors(bool detached)
{
    atomic_store(&mounts, 0);
    atomic_store(&good_mounts, 0);
    atomic_store(&early, 0);
    atomic_store(&notes, 0);
    atomic_store(&ticks, 0);
    atomic_store(&is_busy, false);
    atomic_store(&may_go_on, false);
    is_detached = detached;
    readable = eventfd(1, EFD_CLOEXEC);
    ck_assert_int_ge(readable, 0);
}

/* Check that no event comes to the actor after its mount has failed, as long as its parent has not
 * decided. Three notices and a publication wait for it. */
static void check_no_event_after_failed_mount(domus_system *system)
{
    domus_group group;

    for (int i = 0; i < 3; i++)
        domt_send_notice(system, child, &note_type, NULL);
    ck_assert_int_eq(domus_outside_group_open(system, "group", &group), 0);
    ck_assert_int_eq(domus_outside_publish(system, group, &note_type, NULL), 0);
    uint64_t turns = domt_profile_of_thread(system, 1).iterations;
    domt_pause_ns(BUSY_NS);
    turns = domt_profile_of_thread(system, 1).iterations - turns;
    ck_assert_uint_eq(atomic_load(&early), 0);
    ck_assert_uint_lt(turns, TURNS_MAX);
}

DOMT_TEST(nothing_comes_to_an_actor_whose_mount_failed_while_its_parent_is_busy)
{
    for (int detached = 0; detached < 2; detached++) {
        domus_config config = domt_config_of_threads(2);

        reset_counts_and_open_descriptors(detached != 0);
        domus_system *system = domt_start_system(&config);
        domus_address parent = domt_spawn(system, 0, &boss, NULL);
        domt_send_notice(system, parent, &bear_type, NULL);
        DOMT_WAIT_FOR(30, atomic_load(&mounts) == 1 && atomic_load(&is_busy));
        check_no_event_after_failed_mount(system);

        atomic_store(&may_go_on, true);
        DOMT_WAIT_FOR(30, atomic_load(&notes) == (is_detached ? 3 : 4) && atomic_load(&ticks) >= 3);
        ck_assert_uint_eq(atomic_load(&early), 0);
        ck_assert_uint_eq(atomic_load(&mounts), ROUNDS);
        ck_assert_uint_eq(atomic_load(&good_mounts), 1);
        domt_end_system(system);
        (void)close(readable);
    }
}

DOMT_SUITE(60)
