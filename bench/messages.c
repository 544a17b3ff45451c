/* The message bench compares domus with the bare C limit of the same work (limits.h), in
 * turn, in one process.
 *
 * Each row runs ROUNDS times, the limit and domus alternating, and prints the first round (cold
 * pools), the median, and the median of the ratios taken round by round. Every run checks its own
 * counts. The rows on one thread are ping-pong by notice and by ask, and counting. On two threads
 * that spin instead of parking the rows are ping-pong, and many senders to one receiver. The row on
 * two threads that park is ping-pong.
 *
 * stdout: lines `name value unit`. stderr: progress. Exit 1 on a wrong count, never on
 * a missed goal. */
#include "bench/limits.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"

#include <domus/domus.h>

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS        12
#define PING_PONGS    5000000u
#define ASKS          1000000u
#define COUNTS        10000000u
#define CROSS_ROUNDS  200000u
#define PARKED_ROUNDS 20000u
#define N_TO_1        4000000u
#define SENDERS       4u
#define CREDIT        1024u /* messages of one sender that may be under way */
#define SPIN_NS       UINT64_C(1000000000)

/* The results of a run, which the main thread reads after `done` was posted. */
static struct run {
    sem_t done;
    uint64_t began_ns;
    uint64_t ended_ns;
    uint64_t handled;
} run;

static const domus_type go_type = {.name = "go", .size = sizeof(uint64_t)};
static const domus_type ball_type = {.name = "ball", .size = sizeof(uint64_t)};
static const domus_type peer_type = {.name = "peer", .size = sizeof(domus_address)};
static const domus_type credit_type = {.name = "credit"};

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "messages: wrong result: %s\n", what);
    exit(1);
}

static void end_run_and_wake_main(uint64_t handled)
{
    run.ended_ns = measure_now_ns();
    run.handled = handled;
    sem_post(&run.done);
}

/* --- ping-pong: two players that return the ball until it is spent ---------------------------- */

struct player {
    domus_address peer;
    uint64_t handled;
};

static int set_player_peer(domus_stack *stack, void *self, const void *peer)
{
    (void)stack;
    ((struct player *)self)->peer = *(const domus_address *)peer;
    return 0;
}

static int start_clock_and_send_first_ball(domus_stack *stack, void *self, const void *balls)
{
    struct player *player = self;

    player->handled = 0;
    run.began_ns = measure_now_ns();
    return domus_notice(stack, player->peer, &ball_type, balls);
}

static int send_ball_back(domus_stack *stack, void *self, const void *ball)
{
    struct player *player = self;
    uint64_t left = *(const uint64_t *)ball;

    player->handled++;
    if (left != 0) {
        left--;
        return domus_notice(stack, player->peer, &ball_type, &left);
    }
    end_run_and_wake_main(player->handled);
    player->handled = 0;
    return 0;
}

static const domus_behaviour player = {
    .name = "player",
    .state_size = sizeof(struct player),
    .on = (const domus_on[]){{&ball_type, send_ball_back, 0},
                             {&go_type, start_clock_and_send_first_ball, 0},
                             {&peer_type, set_player_peer, 0},
                             {NULL, NULL, 0}},
};

/* --- asks: one conversation that asks again and again ----------------------------------------- */

static int ask_again_after_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct player *asker = self;

    if (answer->error != 0)
        exit_with_error("an ask failed");
    uint64_t left = *(const uint64_t *)answer->payload;
    asker->handled++;
    if (left == 0) {
        end_run_and_wake_main(asker->handled);
        return 0;
    }
    left--;
    return domus_ask(stack, asker->peer, &ball_type, &left, ask_again_after_answer);
}

static int start_asks_one_by_one(domus_stack *stack, void *self, const void *balls)
{
    struct player *asker = self;

    asker->handled = 0;
    run.began_ns = measure_now_ns();
    return domus_ask(stack, asker->peer, &ball_type, balls, ask_again_after_answer);
}

static int reply_with_ball(domus_stack *stack, void *self, const void *ball)
{
    (void)self;
    return domus_reply(stack, &ball_type, ball);
}

static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(struct player),
    .on = (const domus_on[]){{&go_type, start_asks_one_by_one, 0},
                             {&peer_type, set_player_peer, 0},
                             {NULL, NULL, 0}},
};

static const domus_behaviour answerer = {
    .name = "answerer",
    .on = (const domus_on[]){{&ball_type, reply_with_ball, 0}, {NULL, NULL, 0}},
};

/* --- counting: one producer in batches, as in the limit; many senders with credit ------------- */

struct producer {
    domus_address counter;
    uint64_t left;
};

static int send_messages_of_producer(domus_stack *stack, struct producer *producer, uint64_t most)
{
    for (; producer->left != 0 && most != 0; most--) {
        producer->left--;
        if (domus_notice(stack, producer->counter, &ball_type, &producer->left) != 0)
            exit_with_error("a message was refused");
    }
    return 0;
}

static int set_producer_peer(domus_stack *stack, void *self, const void *peer)
{
    (void)stack;
    ((struct producer *)self)->counter = *(const domus_address *)peer;
    return 0;
}

static int start_producer(domus_stack *stack, void *self, const void *count)
{
    struct producer *producer = self;

    producer->left = *(const uint64_t *)count;
    return send_messages_of_producer(stack, producer, LIMIT_BATCH);
}

static int send_next_batch_for_credit(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return send_messages_of_producer(stack, self, LIMIT_BATCH);
}

static const domus_behaviour producer = {
    .name = "producer",
    .state_size = sizeof(struct producer),
    .on = (const domus_on[]){{&credit_type, send_next_batch_for_credit, 0},
                             {&go_type, start_producer, 0},
                             {&peer_type, set_producer_peer, 0},
                             {NULL, NULL, 0}},
};

struct counter {
    uint64_t expected;
    uint64_t handled;
};

static int reset_counter_and_start_clock(domus_stack *stack, void *self, const void *expected)
{
    (void)stack;
    *(struct counter *)self = (struct counter){.expected = *(const uint64_t *)expected};
    run.began_ns = measure_now_ns();
    return 0;
}

/* Count a message. Every sender numbers its messages down to 0, so the counter finds each CREDIT-th
 * message by its number, and sends the sender new credit. */
static int count_ball(domus_stack *stack, void *self, const void *ball)
{
    struct counter *counter = self;

    counter->handled++;
    if (*(const uint64_t *)ball % CREDIT == 0)
        (void)domus_notice(stack, domus_sender(stack), &credit_type, NULL);
    if (counter->handled == counter->expected)
        end_run_and_wake_main(counter->handled);
    return 0;
}

static const domus_behaviour counter = {
    .name = "counter",
    .state_size = sizeof(struct counter),
    .on = (const domus_on[]){{&ball_type, count_ball, 0},
                             {&go_type, reset_counter_and_start_clock, 0},
                             {NULL, NULL, 0}},
};

/* --- running a row ---------------------------------------------------------------------------- */

static void require_success(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "messages: %s: %s\n", what, strerror(-error));
    exit(1);
}

static domus_system *get_new_system(uint32_t threads, uint64_t spin_ns)
{
    domus_config config;
    domus_system *system;
    char error[256];

    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = threads == 1 ? "0" : "0,1";
    config.scheduler.idle.spin_ns = spin_ns;
    if (domus_system_new(&config, error, sizeof error, &system) != 0) {
        fprintf(stderr, "messages: %s\n", error);
        exit(1);
    }
    require_success(domus_system_start(system), domus_system_error(system));
    return system;
}

static domus_address spawn_on_thread(domus_system *system, uint32_t thread,
                                     const domus_behaviour *behaviour)
{
    domus_address address;

    require_success(domus_outside_spawn_on(system, thread, behaviour, NULL, &address), "spawn");
    return address;
}

static void send_notice_to_actor(domus_system *system, domus_address to, const domus_type *type,
                                 const void *payload)
{
    require_success(domus_outside_notice(system, to, type, payload), "notice");
}

/* Wait for the end of the run that was just begun. Returns how many nanoseconds it took. */
static double wait_for_run_and_get_its_time(uint64_t expected, const char *what)
{
    while (sem_wait(&run.done) != 0)
        continue;
    if (run.handled != expected)
        exit_with_error(what);
    return (double)(run.ended_ns - run.began_ns);
}

struct row {
    const char *name;
    const char *unit;
    double limit[ROUNDS];
    double ours[ROUNDS];
};

/* Print the figures of a row. `more` says whether a greater figure is better; the ratio is domus
 * divided by the limit in both cases. */
static void print_figures_of_row(struct row *row)
{
    double ratio[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        ratio[i] = row->ours[i] / row->limit[i];
    printf("messages.%s.first %.4g %s\n", row->name, row->ours[0], row->unit);
    printf("messages.%s.median %.4g %s\n", row->name,
           measure_sort_and_get_median(row->ours, ROUNDS), row->unit);
    printf("messages.%s.limit %.4g %s\n", row->name,
           measure_sort_and_get_median(row->limit, ROUNDS), row->unit);
    printf("messages.%s.ratio %.3f ratio\n", row->name, measure_sort_and_get_median(ratio, ROUNDS));
    fflush(stdout);
}

static void run_ping_pong(void)
{
    static struct row row = {.name = "ping_pong", .unit = "messages/s"};
    domus_system *system = get_new_system(1, 0);
    domus_address one = spawn_on_thread(system, 0, &player);
    domus_address two = spawn_on_thread(system, 0, &player);

    send_notice_to_actor(system, one, &peer_type, &two);
    send_notice_to_actor(system, two, &peer_type, &one);
    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_ping_pong(PING_PONGS);
        send_notice_to_actor(system, one, &go_type, &(uint64_t){2 * PING_PONGS - 1});
        row.ours[i] =
            2.0 * PING_PONGS / wait_for_run_and_get_its_time(PING_PONGS, "ping-pong") * 1e9;
    }
    domus_system_free(system);
    print_figures_of_row(&row);
}

/* Measure asks. There is no bare limit of an ask, so the ratio is to the limit of ping-pong,
 * because an ask is one message each way. */
static void measure_asks(void)
{
    static struct row row = {.name = "ask", .unit = "messages/s"};
    domus_system *system = get_new_system(1, 0);
    domus_address one = spawn_on_thread(system, 0, &asker);
    domus_address two = spawn_on_thread(system, 0, &answerer);

    send_notice_to_actor(system, one, &peer_type, &two);
    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_ping_pong(PING_PONGS);
        send_notice_to_actor(system, one, &go_type, &(uint64_t){ASKS - 1});
        row.ours[i] = 2.0 * ASKS / wait_for_run_and_get_its_time(ASKS, "asks") * 1e9;
    }
    domus_system_free(system);
    print_figures_of_row(&row);
}

static void measure_counting(void)
{
    static struct row row = {.name = "count", .unit = "messages/s"};
    domus_system *system = get_new_system(1, 0);
    domus_address to = spawn_on_thread(system, 0, &counter);
    domus_address from = spawn_on_thread(system, 0, &producer);

    send_notice_to_actor(system, from, &peer_type, &to);
    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_counting(COUNTS);
        send_notice_to_actor(system, to, &go_type, &(uint64_t){COUNTS});
        send_notice_to_actor(system, from, &go_type, &(uint64_t){COUNTS});
        row.ours[i] = COUNTS / wait_for_run_and_get_its_time(COUNTS, "counting") * 1e9;
    }
    domus_system_free(system);
    print_figures_of_row(&row);
}

/* Let two players play on two threads of a system that is made for this row alone, because its
 * spinning threads would disturb the measurement of the limit. */
static double measure_ping_pong_on_two_threads(uint64_t spin_ns, uint32_t rounds)
{
    domus_system *system = get_new_system(2, spin_ns);
    domus_address one = spawn_on_thread(system, 0, &player);
    domus_address two = spawn_on_thread(system, 1, &player);

    send_notice_to_actor(system, one, &peer_type, &two);
    send_notice_to_actor(system, two, &peer_type, &one);
    send_notice_to_actor(system, one, &go_type, &(uint64_t){2 * rounds - 1});
    double ns = wait_for_run_and_get_its_time(rounds, "cross ping-pong") / (2.0 * rounds);
    domus_system_free(system);
    return ns;
}

static void run_cross_ping_pong(void)
{
    static struct row row = {.name = "cross_ping_pong", .unit = "ns"};

    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_cross_ping_pong(CROSS_ROUNDS, 0, 1);
        row.ours[i] = measure_ping_pong_on_two_threads(SPIN_NS, CROSS_ROUNDS);
    }
    print_figures_of_row(&row);
}

/* Run the row in which each message finds its receiver's thread asleep. */
static void run_parked_ping_pong(void)
{
    static struct row row = {.name = "parked_ping_pong", .unit = "ns"};

    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_parked_ping_pong(PARKED_ROUNDS, 0, 1);
        row.ours[i] = measure_ping_pong_on_two_threads(0, PARKED_ROUNDS);
    }
    print_figures_of_row(&row);
}

static void run_many_to_one(void)
{
    static struct row row = {.name = "n_to_1", .unit = "messages/s"};
    const int cpus[] = {0, 1};

    for (int i = 0; i < ROUNDS; i++) {
        row.limit[i] = limit_measure_many_senders_to_one(N_TO_1, 1, cpus);
        domus_system *system = get_new_system(2, SPIN_NS);
        domus_address to = spawn_on_thread(system, 0, &counter);
        send_notice_to_actor(system, to, &go_type, &(uint64_t){N_TO_1});
        for (uint32_t sender = 0; sender < SENDERS; sender++) {
            domus_address from = spawn_on_thread(system, 1, &producer);
            send_notice_to_actor(system, from, &peer_type, &to);
            send_notice_to_actor(system, from, &go_type, &(uint64_t){N_TO_1 / SENDERS});
        }
        row.ours[i] = N_TO_1 / wait_for_run_and_get_its_time(N_TO_1, "N:1") * 1e9;
        domus_system_free(system);
    }
    print_figures_of_row(&row);
}

/* Run the wanted rows: bench_messages [ROW ...]; without a name all rows run. */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        /* the limit is measured on the main thread, and domus uses the same CPU in its turn */
        bool pinned;
    } rows[] = {
        {"ping_pong", run_ping_pong, true},
        {"ask", measure_asks, true},
        {"count", measure_counting, true},
        {"cross_ping_pong", run_cross_ping_pong, false},
        {"parked_ping_pong", run_parked_ping_pong, false},
        {"n_to_1", run_many_to_one, false},
    };
    cpu_set_t all;

    if (sem_init(&run.done, 0, 0) != 0 || sched_getaffinity(0, sizeof all, &all) != 0)
        exit_with_error("no semaphore, or no affinity");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!options_is_name_wanted(argc - 1, argv + 1, rows[i].name))
            continue;
        fprintf(stderr, "messages: %s\n", rows[i].name);
        if (rows[i].pinned)
            require_success(measure_pin_thread_to_cpu(0), "pinning to CPU 0");
        else
            require_success(sched_setaffinity(0, sizeof all, &all) != 0 ? -EPERM : 0,
                            "pinning to all CPUs");
        rows[i].run();
    }
    return 0;
}
