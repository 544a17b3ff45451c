/* actors_domus ROW SIZE THREADS: one row of the actor benches, on domus.
 *
 * The program prints `seconds` and `cpu_seconds` of the work alone, as lines `name value`, and
 * exits with 3 if the result is wrong. bench/actors.c and bench/ring.c run it beside the peers in
 * bench/peers/, which take the same arguments and print the same lines. */
#include "bench/actors/rows.h"
#include "bench/support/measure.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const domus_type go_type = {.name = "go"};

static struct {
    sem_t done;
    uint64_t began_ns;
    uint64_t began_cpu_ns;
    uint64_t taken_ns;
    uint64_t taken_cpu_ns;
} stage;

void stage_begin_clocks(void)
{
    stage.began_cpu_ns = measure_process_cpu_ns();
    stage.began_ns = measure_now_ns();
}

void stage_end_clocks(void)
{
    stage.taken_ns = measure_now_ns() - stage.began_ns;
    stage.taken_cpu_ns = measure_process_cpu_ns() - stage.began_cpu_ns;
}

void stage_let_main_thread_return(void)
{
    sem_post(&stage.done);
}

void stage_wait_and_print_times(void)
{
    while (sem_wait(&stage.done) != 0)
        continue;
    printf("seconds %.9f\n", (double)stage.taken_ns / 1e9);
    printf("cpu_seconds %.9f\n", (double)stage.taken_cpu_ns / 1e9);
}

domus_address stage_spawn_child_of_root(domus_system *system, uint32_t thread,
                                        const domus_behaviour *behaviour, const void *state)
{
    domus_address address;

    stage_must_succeed(domus_outside_spawn_on(system, thread % domus_system_threads(system),
                                              behaviour, state, &address),
                       "spawn");
    return address;
}

void stage_spawn_and_notify(domus_system *system, domus_address to, const domus_type *type,
                            const void *payload)
{
    stage_must_succeed(domus_outside_notice(system, to, type, payload), "notice");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(domus_system *system, uint64_t size);
    } rows[] = {
        {"ask", row_run_asks_one_by_one},
        {"ask_cross", row_run_asks_one_by_one},
        {"fan_out", row_run_asks_all_at_once},
        {"spawn_stop", row_run_spawns_and_stops},
        {"timers", row_run_timers_that_fire},
        {"timers_cancel", row_run_timers_cancelled_at_once},
        {"ring", row_run_ring},
        {"ring_shuffled", row_run_ring_in_shuffled_order},
    };
    uint64_t size = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    uint32_t threads = argc == 4 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;

    if (size == 0 || threads == 0 || sem_init(&stage.done, 0, 0) != 0) {
        fprintf(stderr, "usage: actors_domus ROW SIZE THREADS\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(argv[1], rows[i].name) != 0)
            continue;
        domus_system *system = stage_start_system(threads);
        rows[i].run(system, size);
        domus_system_free(system);
        return 0;
    }
    fprintf(stderr, "actors_domus: no row %s\n", argv[1]);
    return 2;
}
