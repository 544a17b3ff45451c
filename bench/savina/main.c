/* savina_domus ROW SIZE THREADS ROUNDS [near|spread|POLICY]: one row of the Savina benches, on
 * domus.
 *
 * The program prints `round_seconds` for each round, then `messages` and `result`, as lines
 * `name value`, and exits with 3 if the result is wrong. bench/savina.c runs it beside the peers
 * in bench/peers/, which take the same arguments and print the same lines. The root of a round
 * lives on the first thread. Its children are placed near it (the library's default) or spread
 * over the threads. With the name of a policy instead (domus/policy.h) all actors are in a pool
 * that has THREADS runners. */
#include "bench/savina/rows.h"
#include "bench/savina_rows.h"
#include "bench/support/measure.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const domus_type go_type = {.name = "go", .size = sizeof(uint64_t)};

/* The state of a round. Its root writes this, and the main thread reads it after it has waited for
 * the semaphores. */
static struct {
    sem_t told;
    sem_t left;
    uint64_t result;
    uint32_t threads;
    /* where a root's children are spawned: their placement, or the address of the pool */
    domus_spawn_options options;
} stage;

int stage_end_root_with_result(domus_stack *stack, uint64_t result)
{
    stage.result = result;
    sem_post(&stage.told);
    return domus_stop(stack, domus_self(stack));
}

void stage_on_stop_of_root(domus_stack *stack, void *self)
{
    (void)stack, (void)self;
    sem_post(&stage.left);
}

domus_address stage_spawn_child_of_root(domus_stack *stack, const domus_behaviour *behaviour,
                                        const void *state)
{
    domus_address address;

    stage_must_succeed(domus_spawn_with(stack, behaviour, state, &stage.options, &address),
                       "spawn");
    return address;
}

void stage_send_notice(domus_stack *stack, domus_address to, const domus_type *type,
                       const void *payload)
{
    stage_must_succeed(domus_notice(stack, to, type, payload), type->name);
}

domus_address stage_spawn_without_root(domus_system *system, uint32_t thread,
                                       const domus_behaviour *behaviour, const void *state)
{
    const domus_spawn_options options = {
        .placement = DOMUS_ON_THREAD, .thread = thread, .pool = stage.options.pool};
    domus_address address;

    stage_must_succeed(domus_outside_spawn_with(system, behaviour, state, &options, &address),
                       "spawn");
    return address;
}

domus_spawn_options stage_options_for_far_spawn(void)
{
    return (domus_spawn_options){
        .placement = DOMUS_ON_THREAD, .thread = stage.threads - 1, .pool = stage.options.pool};
}

void stage_print_latencies(const struct histogram *latencies)
{
    printf("latency_ns %.0f %.0f %.0f\n", histogram_value_at_share(latencies, 0.5),
           histogram_value_at_share(latencies, 0.99), histogram_value_at_share(latencies, 0.999));
}

static void wait_for_semaphore(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        continue;
}

/* Run a round by its root. The clock runs from before the first spawn until the main thread knows
 * the result. */
static uint64_t run_round_of_root(domus_system *system, const domus_behaviour *root, uint64_t size)
{
    uint64_t began_ns = measure_now_ns();
    domus_address address = stage_spawn_without_root(system, 0, root, NULL);

    stage_must_succeed(domus_outside_notice(system, address, &go_type, &size), "go");
    wait_for_semaphore(&stage.told);
    printf("round_seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
    wait_for_semaphore(&stage.left);
    return stage.result;
}

static void run_all_rounds(domus_system *system, const struct stage_row *row, uint64_t size,
                           uint64_t rounds)
{
    const struct savina_row *known = savina_find_row_by_name(row->name);
    uint64_t expected = savina_expected_result_of_round(known, size);
    uint64_t messages = savina_message_count_of_round(known, size);
    uint64_t result = 0;

    while (rounds-- > 0) {
        if (row->prepare != NULL)
            row->prepare(size);
        result =
            row->run != NULL ? row->run(system, size) : run_round_of_root(system, row->root, size);
        if (row->finish != NULL)
            result = row->finish(result, &messages);
        if (result != expected)
            stage_exit_with_wrong_result(row->name);
    }
    printf("messages %" PRIu64 "\n", messages);
    printf("result %" PRIu64 "\n", result);
}

/* With a pool, all actors are in the pool, and the system's loop has nothing to do. If it handled
 * messages, some actors were not in the pool. */
static void check_that_pool_did_the_work(const domus_system *system)
{
    domus_profile profile;

    stage_must_succeed(domus_system_profile(system, 0, &profile), "profile");
    if (profile.notices + profile.asks + profile.replies != 0)
        stage_exit_with_wrong_result("actors that are not in the pool");
}

static const struct stage_row *find_behaviour_of_row(const char *name)
{
    static const struct stage_row *const rows[] = {
        &row_pingpong,   &row_counting,  &row_fjthrput,  &row_fjcreate,
        &row_threadring, &row_chameneos, &row_big,       &row_bndbuffer,
        &row_banking,    &row_fib,       &row_quicksort, &row_skynet,
        &row_mailbox,    &row_wake,      &row_idle,      &row_fair,
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct stage_row *row = argc < 5 ? NULL : find_behaviour_of_row(argv[1]);
    uint64_t size = argc < 5 ? 0 : strtoull(argv[2], NULL, 10);
    uint32_t threads = argc < 5 ? 0 : (uint32_t)strtoul(argv[3], NULL, 10);
    uint64_t rounds = argc < 5 ? 0 : strtoull(argv[4], NULL, 10);
    const char *placement = argc == 6 ? argv[5] : "near";
    domus_system *system;

    if (row == NULL || argc > 6 || size == 0 || threads == 0 || rounds == 0 ||
        sem_init(&stage.told, 0, 0) != 0 || sem_init(&stage.left, 0, 0) != 0) {
        fprintf(stderr, "usage: savina_domus ROW SIZE THREADS ROUNDS [near|spread|POLICY]\n");
        return 2;
    }
    stage.threads = threads;
    if (strcmp(placement, "spread") == 0)
        stage.options.placement = DOMUS_SPREAD;
    if (strcmp(placement, "near") == 0 || strcmp(placement, "spread") == 0)
        system = stage_start_system(threads);
    else
        system = stage_start_system_with_pool(threads, placement, &stage.options.pool);
    run_all_rounds(system, row, size, rounds);
    if (stage.options.pool != NULL)
        check_that_pool_did_the_work(system);
    domus_system_free(system);
    return 0;
}
