/* runtime/loop/trim.c: a thread that is never idle gives memory back all the same. */
#include "tests/runtime/pressed.h"

static domus_system *system_;
static _Atomic uint64_t handled;
static const domus_type note = {.name = "note"};
static const domus_type beat_it = {.name = "beat it"};

static int count_one(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return 0;
}

static const domus_behaviour counting = {
    .name = "counting",
    .on = (const domus_on[]){{&note, count_one, 0}, {NULL, NULL, 0}},
};

#define FLOOD 600000u /* to ten actors: each has room for a tenth */

static int beat(domus_stack *stack, void *self, const void *payload)
{
    return domus_notice(stack, domus_self(stack), &beat_it, NULL);
}

static domus_address counters[10];

static int flood_once(domus_stack *stack, void *self)
{
    for (uint32_t i = 0; i < FLOOD; i++)
        ck_assert_int_eq(domus_notice(stack, counters[i % 10], &note, NULL), 0);
    return domus_after(stack, DOMT_MS, &beat_it, NULL, NULL);
}

static const domus_behaviour beating = {
    .name = "beating",
    .on = (const domus_on[]){{&beat_it, beat, 0}, {NULL, NULL, 0}},
    .on_mount = flood_once,
};

DOMT_TEST(a_busy_thread_gives_back_the_memory_of_a_flood)
{
    system_ = domt_pressed_start(true, NULL);
    for (uint32_t i = 0; i < 10; i++)
        counters[i] = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 0, &beating, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&handled) >= FLOOD);
    domt_pressed_use(85);
    DOMT_WAIT_FOR(10, domt_pressed_memory().level == DOMUS_MEMORY_HIGH);
    DOMT_WAIT_FOR(10, domt_profile(system_, 0).trimmed_bytes > FLOOD * 32);
    domt_pressed_end();
}

static domus_address target;
static _Atomic int large_error;
static _Atomic bool has_filled;
static const domus_type small_one = {.name = "small one", .size = 8};
static const domus_type large_one = {.name = "large one", .size = 200};

static int take(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_behaviour taking = {
    .name = "taking",
    .on = (const domus_on[]){{&small_one, take, 0}, {&large_one, take, 0}, {NULL, NULL, 0}},
};

static int go_on(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[200];

    int result = domus_notice(stack, domus_self(stack), &note, NULL);
    if (!atomic_load(&has_filled)) {
        while (domus_notice(stack, target, &small_one, bytes) == 0)
            continue;
        atomic_store(&has_filled, true);
    }
    atomic_store(&large_error, domus_notice(stack, target, &large_one, bytes));
    return result == 0 ? 0 : domus_after(stack, DOMT_MS, &note, NULL, NULL);
}

static const domus_behaviour busy_one = {
    .name = "busy one",
    .on = (const domus_on[]){{&note, go_on, 0}, {NULL, NULL, 0}},
};

/* All that filled the thread's memory is handled; it is never idle. */
DOMT_TEST(a_busy_thread_at_its_bound_gives_back_what_it_does_not_use)
{
    domus_config config = domt_config(1);

    config.memory.thread_max_bytes = (1024 * 1024);
    system_ = domt_start(&config);
    target = domt_spawn(system_, 0, &taking, NULL);
    domus_address one = domt_spawn(system_, 0, &busy_one, NULL);
    domt_notice(system_, one, &note, NULL);
    DOMT_WAIT_FOR(5, atomic_load(&has_filled));
    DOMT_WAIT_FOR(8, atomic_load(&large_error) == 0);
    ck_assert_int_eq(domus_outside_stop(system_, one), 0);
    domt_end(system_);
}

DOMT_SUITE(60)
