/* The fairness bench: how long light actors and middlemen wait beside actors that always have work.
 *
 * - light_near, light_cross: one actor is flooded with notices by another one on its thread. A
 *   third actor on that thread answers asks, one after the other, which come from the same thread
 *   or from a second one, which spins.
 * - middlemen: LEAVES actors always have work of their own (each message costs WORK_STEPS steps of
 *   some ns), and MIDDLEMEN actors ask a leaf for each ask that they get. CLIENTS asks are under
 *   way. A middleman that waits for its answer has normal priority, a leaf has high priority. So
 *   scheduler.normalEvery decides how many runs each gets.
 * - middlemen_alone: as middlemen, but without the leaves' own work, for comparison.
 *
 * Each row runs ROUNDS times for ROUND_NS in one system and prints the medians of p50, p99, p99.9
 * of the asks' latency, and rates. stdout: lines `name value unit`. stderr: progress.
 *
 * bench_fairness [ROW ...]: without a name all rows run. */
#include "bench/support/histogram.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"

#include <domus/domus.h>

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS     7
#define ROUND_NS   UINT64_C(500000000)
#define LEAVES     200u
#define MIDDLEMEN  100u
#define CLIENTS    64u
#define WORK_STEPS 100u
#define SPIN_NS    UINT64_C(1000000000)

static const domus_type go_type = {.name = "go"};
static const domus_type work_type = {.name = "work"};
static const domus_type question_type = {.name = "question"};

static sem_t done;

/* The results of a round. The thread of the actor that asks writes them; the main thread reads them
 * after `done`. */
static struct histogram latencies;
static uint64_t round_began_ns, round_ended_ns;

/* How many runs the actor that always has work has had. Its thread writes this. */
static _Atomic uint64_t worked;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "fairness: %s\n", what);
    exit(1);
}

static void require_success(int error, const char *what)
{
    if (error != 0) {
        fprintf(stderr, "fairness: %s: %s\n", what, strerror(-error));
        exit(1);
    }
}

static void use_cpu_for_work_steps(void)
{
    static volatile uint32_t sink;

    for (uint32_t i = 0; i < WORK_STEPS; i++)
        sink = sink + i;
    /* Only one thread writes `worked`, so its load and its store need not be one atomic
     * operation. */
    atomic_store_explicit(&worked, atomic_load_explicit(&worked, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

/* --- the flooded actor and its flooder
 * -------------------------------------------------------------- */

static int handle_notice_of_flood(domus_stack *stack, void *self, const void *nothing)
{
    (void)stack, (void)self, (void)nothing;
    use_cpu_for_work_steps();
    return 0;
}

static const domus_behaviour flooded = {
    .name = "flooded",
    .on = (const domus_on[]){{&work_type, handle_notice_of_flood, 0}, {NULL, NULL, 0}},
};

static int flood_busy_actor_again(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    for (uint32_t i = 0; i < 128; i++)
        (void)domus_notice(stack, *(domus_address *)self, &work_type, NULL);
    return domus_notice(stack, domus_self(stack), &go_type, NULL);
}

static const domus_behaviour flooder = {
    .name = "flooder",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&go_type, flood_busy_actor_again, 0}, {NULL, NULL, 0}},
};

/* --- the leaves: always busy, and asked too --------------------------------------------------- */

static int do_work_of_leaf_again(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    use_cpu_for_work_steps();
    return domus_notice(stack, domus_self(stack), &work_type, NULL);
}

static int answer_ask(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    return domus_reply(stack, &question_type, NULL);
}

static const domus_behaviour leaf = {
    .name = "leaf",
    .on = (const domus_on[]){{&question_type, answer_ask, 0},
                             {&work_type, do_work_of_leaf_again, 0},
                             {NULL, NULL, 0}},
};

/* --- middlemen -------------------------------------------------------------------------------- */

static int reply_with_answer_of_leaf(domus_stack *stack, void *self, const domus_answer *reply)
{
    (void)self;
    return reply->error != 0 ? reply->error : domus_reply(stack, &question_type, NULL);
}

static int ask_leaf_as_middleman(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return domus_ask(stack, *(domus_address *)self, &question_type, NULL,
                     reply_with_answer_of_leaf);
}

static const domus_behaviour middleman = {
    .name = "middleman",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&question_type, ask_leaf_as_middleman, 0}, {NULL, NULL, 0}},
};

/* --- the asker, which measures ---------------------------------------------------------------- */

struct client {
    domus_address *targets;
    uint32_t targets_count;
    uint32_t clients;
    uint32_t next;
    uint64_t asked_ns[CLIENTS];
};

static int handle_answer_to_client(domus_stack *stack, void *self, const domus_answer *reply);

static void send_ask_of_client(domus_stack *stack, struct client *client, uint64_t which)
{
    domus_address to = client->targets[client->next++ % client->targets_count];

    client->asked_ns[which] = measure_now_ns();
    require_success(domus_ask_add(stack, to, &question_type, NULL, 0, which), "ask");
}

static int handle_answer_to_client(domus_stack *stack, void *self, const domus_answer *reply)
{
    struct client *client = self;
    uint64_t now_ns = measure_now_ns();

    require_success(reply->error, "an answer");
    histogram_add_value(&latencies, now_ns - client->asked_ns[reply->tag]);
    if (now_ns - round_began_ns < ROUND_NS) {
        send_ask_of_client(stack, client, reply->tag);
    } else if (domus_pending(stack) == 0) {
        round_ended_ns = now_ns;
        sem_post(&done);
        return 0;
    }
    return domus_wait_first(stack, handle_answer_to_client);
}

static int begin_round_of_client(domus_stack *stack, void *self, const void *nothing)
{
    struct client *client = self;

    (void)nothing;
    latencies = (struct histogram){0};
    round_began_ns = measure_now_ns();
    for (uint64_t i = 0; i < client->clients; i++)
        send_ask_of_client(stack, client, i);
    return domus_wait_first(stack, handle_answer_to_client);
}

static const domus_behaviour client = {
    .name = "client",
    .state_size = sizeof(struct client),
    .on = (const domus_on[]){{&go_type, begin_round_of_client, 0}, {NULL, NULL, 0}},
};

/* --- rounds ----------------------------------------------------------------------------------- */

static domus_system *make_and_start_system(uint32_t threads)
{
    domus_config config;
    domus_system *system;
    char error[256];

    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = threads == 1 ? "0" : "0,1";
    config.scheduler.steal.enabled = false;
    config.scheduler.idle.spin_ns = threads == 1 ? 0 : SPIN_NS;
    if (domus_system_new(&config, error, sizeof error, &system) != 0)
        exit_with_error(error);
    require_success(domus_system_start(system), domus_system_error(system));
    return system;
}

static domus_address spawn_on_thread(domus_system *system, uint32_t thread,
                                     const domus_behaviour *behaviour, const void *state)
{
    domus_address address;

    require_success(domus_outside_spawn_on(system, thread, behaviour, state, &address), "spawn");
    return address;
}

static void print_figures_of_row(const char *row, const char *what, double *values,
                                 const char *unit)
{
    printf("fairness.%s.%s %.4g %s\n", row, what, measure_sort_and_get_median(values, ROUNDS),
           unit);
}

static void measure_rounds_of_row(const char *row, domus_system *system, domus_address who)
{
    double p50[ROUNDS], p99[ROUNDS], p999[ROUNDS], asks[ROUNDS], works[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = atomic_load(&worked);
        require_success(domus_outside_notice(system, who, &go_type, NULL), "go");
        while (sem_wait(&done) != 0)
            continue;
        double seconds = (double)(round_ended_ns - round_began_ns) / 1e9;
        works[i] = (double)(atomic_load(&worked) - before) / seconds;
        asks[i] = (double)latencies.count / seconds;
        p50[i] = histogram_value_at_share(&latencies, 0.50) / 1e3;
        p99[i] = histogram_value_at_share(&latencies, 0.99) / 1e3;
        p999[i] = histogram_value_at_share(&latencies, 0.999) / 1e3;
    }
    print_figures_of_row(row, "p50", p50, "us");
    print_figures_of_row(row, "p99", p99, "us");
    print_figures_of_row(row, "p99.9", p999, "us");
    print_figures_of_row(row, "asks", asks, "asks/s");
    print_figures_of_row(row, "work", works, "messages/s");
    fflush(stdout);
}

static void measure_light_actor_beside_flood(const char *row, uint32_t prober_thread)
{
    domus_system *system = make_and_start_system(prober_thread + 1);
    domus_address sink = spawn_on_thread(system, 0, &flooded, NULL);
    domus_address target = spawn_on_thread(system, 0, &leaf, NULL);
    domus_address source = spawn_on_thread(system, 0, &flooder, &sink);
    struct client state = {.targets = &target, .targets_count = 1, .clients = 1};

    require_success(domus_outside_notice(system, source, &go_type, NULL), "flood");
    measure_rounds_of_row(row, system, spawn_on_thread(system, prober_thread, &client, &state));
    domus_system_free(system);
}

static void measure_light_load_on_same_thread(const char *row)
{
    measure_light_actor_beside_flood(row, 0);
}

static void measure_light_load_from_other_thread(const char *row)
{
    measure_light_actor_beside_flood(row, 1);
}

static void measure_middlemen_with_leaves(const char *row, bool busy)
{
    domus_system *system = make_and_start_system(1);
    static domus_address leaves[LEAVES], men[MIDDLEMEN];
    struct client state = {.targets = men, .targets_count = MIDDLEMEN, .clients = CLIENTS};

    for (uint32_t i = 0; i < LEAVES; i++) {
        leaves[i] = spawn_on_thread(system, 0, &leaf, NULL);
        if (busy)
            require_success(domus_outside_notice(system, leaves[i], &work_type, NULL), "work");
    }
    for (uint32_t i = 0; i < MIDDLEMEN; i++)
        men[i] = spawn_on_thread(system, 0, &middleman, &leaves[i % LEAVES]);
    measure_rounds_of_row(row, system, spawn_on_thread(system, 0, &client, &state));
    domus_system_free(system);
}

static void measure_middlemen_with_busy_leaves(const char *row)
{
    measure_middlemen_with_leaves(row, true);
}

static void measure_middlemen_with_idle_leaves(const char *row)
{
    measure_middlemen_with_leaves(row, false);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *row);
    } rows[] = {
        {"light_near", measure_light_load_on_same_thread},
        {"light_cross", measure_light_load_from_other_thread},
        {"middlemen", measure_middlemen_with_busy_leaves},
        {"middlemen_alone", measure_middlemen_with_idle_leaves},
    };

    if (sem_init(&done, 0, 0) != 0)
        exit_with_error("no semaphore");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!options_is_name_wanted(argc - 1, argv + 1, rows[i].name))
            continue;
        fprintf(stderr, "fairness: %s\n", rows[i].name);
        rows[i].run(rows[i].name);
    }
    return 0;
}
