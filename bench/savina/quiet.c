/* wake: measures the time until a sleeping system works again. idle: measures the CPU time of a
 * system that has nothing to do. */
#include "bench/savina/rows.h"
#include "bench/support/measure.h"

#include <stdio.h>
#include <unistd.h>

#define QUIET_US 1000u
#define SLEEPERS 1000u

static const domus_type number_type = {.name = "number", .size = sizeof(uint64_t)};

static int reply_with_asked_number(domus_stack *stack, void *self, const void *number)
{
    (void)self;
    return domus_reply(stack, &number_type, number);
}

static const domus_behaviour echo = {
    .name = "echo",
    .on = (const domus_on[]){{.type = &number_type, .handle = reply_with_asked_number},
                             {.type = NULL}},
};

static bool is_ask_answered_with_number(domus_system *system, domus_address to, uint64_t number)
{
    uint64_t answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    stage_must_succeed(domus_outside_ask(system, to, &number_type, &number, 0, &reply), "ask");
    return answer == number;
}

static uint64_t measure_latency_of_wakes(domus_system *system, uint64_t asks)
{
    static struct histogram latencies;
    uint64_t answered = 0;
    uint64_t began_ns = measure_now_ns();
    domus_address to = stage_spawn_without_root(system, 0, &echo, NULL);

    for (uint64_t i = 0; i < asks; i++) {
        usleep(QUIET_US);
        uint64_t asked_ns = measure_now_ns();
        answered += is_ask_answered_with_number(system, to, i);
        histogram_add_value(&latencies, measure_now_ns() - asked_ns);
    }
    printf("round_seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
    stage_print_latencies(&latencies);
    stage_must_succeed(domus_outside_stop(system, to), "stop");
    return answered;
}

const struct stage_row row_wake = {.name = "wake", .run = measure_latency_of_wakes};

static uint64_t measure_cpu_of_idle_sleepers(domus_system *system, uint64_t seconds)
{
    /* the actors that sleep; in a pool, the choice of a thread has no effect */
    domus_address sleepers[SLEEPERS];
    uint64_t answered = 0;

    for (uint32_t i = 0; i < SLEEPERS; i++) {
        sleepers[i] =
            stage_spawn_without_root(system, i % domus_system_threads(system), &echo, NULL);
        if (!is_ask_answered_with_number(system, sleepers[i], i))
            stage_exit_with_wrong_result("an answer");
    }
    uint64_t began_cpu_ns = measure_process_cpu_ns();
    uint64_t began_ns = measure_now_ns();
    sleep((unsigned int)seconds);
    uint64_t cpu_ns = measure_process_cpu_ns() - began_cpu_ns;
    printf("round_seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
    printf("cpu_seconds %.9f\n", (double)cpu_ns / 1e9);
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        answered += is_ask_answered_with_number(system, sleepers[i], i);
        stage_must_succeed(domus_outside_stop(system, sleepers[i]), "stop");
    }
    return answered;
}

const struct stage_row row_idle = {.name = "idle", .run = measure_cpu_of_idle_sleepers};
