/* Sequences and processes that fail while they are mounted, by the rules of unmounted_test.c. */
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/process.h>
#include <domus/timer.h>

#include <errno.h>

#define MS UINT64_C(1000000)

static const domus_supervision restarts = {.intensity = 100, .otherwise = DOMUS_RESTART};
static const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 1};
static domus_behaviour boss;
static domus_address child;
static unsigned fails;  /* how many of the next mounts will fail */
static unsigned begins; /* calls of on_mount and of `init` */
static unsigned events; /* messages and events that were handled */
static unsigned closes;

/* 1 on home 0 is the parent; it is busy while only home 1 takes turns. */
static void begin(int (*spawn)(domus_stack *stack, void *context))
{
    domt_kin_open(2);
    boss = domt_kin_boss(&restarts);
    (void)domt_kin_root(1, 0, &boss);
    fails = 1;
    begins = events = closes = 0;
    domt_kin_send(domt_kin_world.managers[0], 1, spawn, NULL);
    domt_kin_turn(0);
    domt_kin_turn(1);
}

static void note_child(void)
{
    const uint64_t nothing = 0;

    ck_assert_int_eq(domt_notice(domt_outside(&domt_kin_world), child, &domt_kin_note, &nothing),
                     0);
}

static void hold_unmounted(void)
{
    ck_assert_uint_eq(begins, 1);
    ck_assert_uint_ne(child.house->marks & DOMI_MARK_UNMOUNTED, 0);
    note_child();
    for (int i = 0; i < 10; i++) {
        domt_jump(&domt_kin_world, MS);
        domt_kin_turn(1);
    }
    ck_assert_uint_eq(domt_iterate(domt_kin_world.managers[1]), 0);
    ck_assert_uint_eq(events, 0);
}

/* --- a sequence as on_mount ------------------------------------------------------------------ */

static int count(domus_stack *stack, void *self, const void *payload)
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
    .on =
        (const domus_on[]){{&domt_kin_note, count, 0}, {&domt_kin_tick, count, 0}, {NULL, NULL, 0}},
    DOMUS_ON_MOUNT(mount),
};

static int spawn_sequential(domus_stack *stack, void *unused)
{
    return domus_spawn_with(stack, &sequential, NULL, &there, &child);
}

DOMT_TEST(sequence_that_fails_in_its_first_step_leaves_it_unmounted)
{
    begin(spawn_sequential);
    hold_unmounted();
    domt_pass(&domt_kin_world, 5 * MS);
    ck_assert_uint_eq(begins, 2);
    ck_assert_uint_ge(events, 3); /* the notice that waited, and ticks */
    domt_kin_close();
}

/* --- a process ------------------------------------------------------------------------------- */

static int init(domus_stack *stack, void *self, const char *method, const domus_type *type,
                const void *input)
{
    begins++;
    ck_assert_int_eq(domus_every(stack, MS, &domt_kin_tick, NULL, NULL), 0);
    if (fails == 0)
        return 0;
    fails--;
    return -EPERM;
}

static int step(domus_stack *stack, void *self, const domus_process_event *with, uint32_t number,
                domus_process_output *out)
{
    events += number;
    return 0;
}

static void close_process(domus_stack *stack, void *self)
{
    closes++;
}

static const domus_process process = {
    .name = "process", .state_size = 8, .init = init, .step = step, .close = close_process};

static int spawn_process(domus_stack *stack, void *unused)
{
    return domus_process_spawn(stack, &process, NULL, NULL, NULL, &there, &child);
}

DOMT_TEST(process_whose_init_fails_makes_no_step)
{
    begin(spawn_process);
    ck_assert_uint_eq(closes, 1);
    hold_unmounted();
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, dead_letters), 0);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(begins, 2);
    ck_assert_uint_eq(events, 1); /* the notice that waited */
    domt_kin_close();
    ck_assert_uint_eq(closes, 2);
}

DOMT_SUITE(30)
