/* The rows of timers: one actor arms all of them at once. In the first row each timer fires 1 to
 * 100 ms later and brings an event to that actor. In the second row all are armed for 10 s later
 * and cancelled, in the order in which they were armed. */
#include "bench/actors/rows.h"

#include <errno.h>
#include <stdlib.h>

#define MILLISECOND UINT64_C(1000000)

static const domus_type due_type = {.name = "due", .size = sizeof(uint64_t)};

struct armer {
    uint64_t timers;
    uint64_t handled;
    uint64_t sum;
    domus_timer *armed; /* the timers that were armed; NULL in the row that does not cancel them */
};

static int count_timer_that_fired(domus_stack *stack, void *self, const void *number)
{
    struct armer *armer = self;

    (void)stack;
    armer->sum += *(const uint64_t *)number;
    if (++armer->handled != armer->timers)
        return 0;
    stage_end_clocks();
    if (armer->sum != armer->timers * (armer->timers - 1) / 2)
        stage_exit_with_wrong_result("the sum of the timers");
    stage_let_main_thread_return();
    return 0;
}

static int arm_all_timers(domus_stack *stack, void *self, const void *nothing)
{
    struct armer *armer = self;

    (void)nothing;
    stage_begin_clocks();
    for (uint64_t i = 0; i < armer->timers; i++) {
        uint64_t delay_ns = (1 + i % TIMER_SPREAD_MS) * MILLISECOND;
        stage_must_succeed(domus_after(stack, delay_ns, &due_type, &i, NULL), "timer");
    }
    return 0;
}

static const domus_behaviour armer_behaviour = {
    .name = "armer",
    .state_size = sizeof(struct armer),
    .on = (const domus_on[]){{.type = &go_type, .handle = arm_all_timers},
                             {.type = &due_type, .handle = count_timer_that_fired},
                             {.type = NULL}},
};

void row_run_timers_that_fire(domus_system *system, uint64_t timers)
{
    struct armer state = {.timers = timers};

    stage_spawn_and_notify(system, stage_spawn_child_of_root(system, 0, &armer_behaviour, &state),
                           &go_type, NULL);
    stage_wait_and_print_times();
}

static int fail_for_uncancelled_timer(domus_stack *stack, void *self, const void *number)
{
    (void)stack, (void)self, (void)number;
    stage_exit_with_wrong_result("a timer that was cancelled");
}

static int arm_and_cancel_all_timers(domus_stack *stack, void *self, const void *nothing)
{
    struct armer *armer = self;

    (void)nothing;
    stage_begin_clocks();
    for (uint64_t i = 0; i < armer->timers; i++) {
        uint64_t delay_ns = (CANCEL_AFTER_MS + 1 + i % TIMER_SPREAD_MS) * MILLISECOND;
        stage_must_succeed(domus_after(stack, delay_ns, &due_type, &i, &armer->armed[i]), "timer");
    }
    for (uint64_t i = 0; i < armer->timers; i++) {
        if (domus_timer_cancel(stack, armer->armed[i]) != 0)
            stage_exit_with_wrong_result("a timer that was not there");
    }
    stage_end_clocks();
    stage_let_main_thread_return();
    return 0;
}

static const domus_behaviour canceller_behaviour = {
    .name = "canceller",
    .state_size = sizeof(struct armer),
    .on = (const domus_on[]){{.type = &go_type, .handle = arm_and_cancel_all_timers},
                             {.type = &due_type, .handle = fail_for_uncancelled_timer},
                             {.type = NULL}},
};

void row_run_timers_cancelled_at_once(domus_system *system, uint64_t timers)
{
    stage_must_succeed(timers > SIZE_MAX / sizeof(domus_timer) ? -ENOMEM : 0, "timers");
    struct armer state = {.timers = timers, .armed = malloc((size_t)timers * sizeof(domus_timer))};

    stage_must_succeed(state.armed == NULL ? -ENOMEM : 0, "timers");
    stage_spawn_and_notify(
        system, stage_spawn_child_of_root(system, 0, &canceller_behaviour, &state), &go_type, NULL);
    stage_wait_and_print_times();
    free(state.armed);
}
