/* This bench measures each step of a message by itself; decisions/message-cost has the figures.
 *
 * Two managers without threads are stepped by hand: a home and another one. A step is a function
 * that does one thing BATCH times, to BATCH houses or envelopes; it is timed alone, and the median
 * of ROUNDS rounds is printed for one house or envelope. In the second column the other manager's
 * steps run on a second CPU, so each cache line that the two share has to come from there.
 *
 * For counts of instructions: valgrind --tool=callgrind bench_steps 200 alone; each step is a
 * function of its own (step_...), whose inclusive cost is to be divided by BATCH and by its calls.
 * `further` is the cost of each message to a house after the first one.
 *
 * bench_steps [ROUNDS [alone]]. stdout: lines `name value unit`. */
#include "bench/steps_actors.h"
#include "bench/support/measure.h"

#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/pool.h"
#include "house/message/sign.h"

#include <domus/domus.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#define BATCH      64u
#define FURTHER    8u
#define ROUNDS     3000u
#define ROUNDS_MAX 100000u

static domi_manager *managers[2];
static domi_manager *home, *other;
static domus_address sinks[BATCH];
static domus_address askers[BATCH];
static domus_address answerers[BATCH];
static domi_house *senders[2]; /* for each of the two managers, one house that sends */
static domi_envelope *envelopes[BATCH];
static domi_house *ready[BATCH];
static int wake_fd;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "steps: %s\n", what);
    exit(1);
}

/* --- the steps -------------------------------------------------------------------------------- */

#define STEP __attribute__((noinline)) static void

static void build_batch_of_messages(domi_manager *manager)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        uint64_t number = 1;
        envelopes[i] = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + steps_note.size);
        domi_envelope_set_type_and_sender(envelopes[i], &steps_note, senders[manager->index]);
        domi_payload_copy(envelopes[i]->payload, &number, sizeof number);
    }
}

static void put_message_to_house(domi_manager *manager, const domus_address *to)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        if (domi_mailbox_put(manager, to[i], &envelopes[i]->node, DOMI_NOTICE) != 0)
            exit_with_error("a put was refused");
    }
}

static void put_message_to_each_house(domi_manager *manager)
{
    put_message_to_house(manager, sinks);
}

STEP step_build_messages(void)
{
    build_batch_of_messages(home);
}

STEP step_build_messages_at_other(void)
{
    build_batch_of_messages(other);
}

/* Put a message to each house. The houses are WAITING, so each put also makes its house ready and
 * queues it. */
STEP step_put_to_waiting_houses(void)
{
    put_message_to_each_house(home);
}

/* Put a message to each house. The houses are ready already, so each put only appends. */
STEP step_put_to_ready_houses(void)
{
    put_message_to_each_house(home);
}

STEP step_take_ready_houses(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        ready[i] = domi_queue_take_house(&home->schedule.ready[DOMUS_STATE]);
}

STEP step_run_houses(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        (void)domi_house_run_and_settle(home, ready[i]);
}

/* Run each house, which has FURTHER messages in its mailbox besides the first. */
STEP step_run_houses_with_more_messages(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        (void)domi_house_run_and_settle(home, ready[i]);
}

static void run_ready_houses(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        (void)domi_house_run_and_settle(home, ready[i]);
}

/* Run each asker: it handles a notice, asks for the first time, and parks. */
STEP step_run_askers_to_first_ask(void)
{
    run_ready_houses();
}

/* Run each answerer: it handles an ask, and replies. */
STEP step_run_answerers(void)
{
    run_ready_houses();
}

/* Run each asker: it goes on with the answer, asks again, and parks again. */
STEP step_run_askers_to_second_ask(void)
{
    run_ready_houses();
}

/* Run each asker: it goes on with the answer, and its conversation ends. */
STEP step_run_askers_to_their_end(void)
{
    run_ready_houses();
}

STEP step_free_envelopes(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        domi_pool_free_object(home, &envelopes[i]->node);
}

/* Put messages from the other manager. Each inbox is empty, so a put also links the house into the
 * arrivals and looks at home's park word. */
STEP step_put_into_empty_inboxes(void)
{
    put_message_to_each_house(other);
}

STEP step_put_into_inboxes_not_empty(void)
{
    put_message_to_each_house(other);
}

/* Wake home from the other manager. This step is done once, not BATCH times. */
STEP step_wake_home_from_other_manager(void)
{
    domi_manager_notify_of_push(other, home);
}

STEP step_sort_arrivals(void)
{
    (void)domi_manager_take_arrivals(home);
}

STEP step_sort_arrivals_of_many_a_house(void)
{
    (void)domi_manager_take_arrivals(home);
}

/* Free envelopes of the other manager's pool by home. */
STEP step_free_envelopes_of_other(void)
{
    for (uint32_t i = 0; i < BATCH; i++)
        domi_pool_free_object(home, &envelopes[i]->node);
}

STEP step_flush_returns_to_other(void)
{
    domi_pool_push_chains_to_owners(home);
}

STEP step_collect_returns_at_other(void)
{
    envelopes[0] = domi_pool_take_object_slow(other, DOMI_SLAB_64);
}

/* --- running the steps ------------------------------------------------------------------------ */

static pthread_t helper;
static bool apart; /* the other manager's steps run on the helper thread, on a second CPU */
static _Atomic(void (*)(void)) job;
static uint64_t job_ns;

static uint64_t measure_time_of_step(void (*step)(void))
{
    uint64_t began_ns = measure_now_ns();

    step();
    return measure_now_ns() - began_ns;
}

static void do_nothing_at_end_of_phase(void)
{
}

static void *run_steps_on_helper(void *nothing)
{
    (void)nothing;
    (void)measure_pin_thread_to_cpu(1);
    /* from now on the helper owns this manager; in the rounds before, the first thread did */
    domi_manager_become_owner(other);
    for (;;) {
        void (*step)(void) = atomic_load_explicit(&job, memory_order_acquire);
        if (step == do_nothing_at_end_of_phase)
            return NULL;
        if (step == NULL)
            continue;
        job_ns = measure_time_of_step(step);
        /* release: pairs with the acquire in measure_time_of_step_on_helper(). */
        atomic_store_explicit(&job, NULL, memory_order_release);
    }
}

static uint64_t measure_time_of_step_on_helper(void (*step)(void))
{
    if (!apart)
        return measure_time_of_step(step);
    /* release: pairs with the acquire in run_steps_on_helper(). */
    atomic_store_explicit(&job, step, memory_order_release);
    while (atomic_load_explicit(&job, memory_order_acquire) != NULL)
        continue;
    return job_ns;
}

/* --- rows ------------------------------------------------------------------------------------- */

enum row {
    BUILD,
    PUT_READY,
    PUT_WAITING,
    TAKE,
    RUN,
    RUN_FURTHER,
    ASK,
    ANSWER,
    ASK_AGAIN,
    ASK_END,
    FREE,
    INBOX_PUT,
    INBOX_PUT_FURTHER,
    WAKE,
    SORT,
    SORT_FURTHER,
    REMOTE_FREE,
    REMOTE_FLUSH,
    REMOTE_COLLECT,
    ROWS,
};

static const char *const names[ROWS] = {
    [BUILD] = "build",
    [PUT_READY] = "put_ready",
    [PUT_WAITING] = "put_waiting",
    [TAKE] = "take",
    [RUN] = "run",
    [RUN_FURTHER] = "run_further",
    [ASK] = "ask",
    [ANSWER] = "answer",
    [ASK_AGAIN] = "ask_again",
    [ASK_END] = "ask_end",
    [FREE] = "free",
    [INBOX_PUT] = "inbox_put",
    [INBOX_PUT_FURTHER] = "inbox_put_further",
    [WAKE] = "wake",
    [SORT] = "sort",
    [SORT_FURTHER] = "sort_further",
    [REMOTE_FREE] = "remote_free",
    [REMOTE_FLUSH] = "remote_flush",
    [REMOTE_COLLECT] = "remote_collect",
};

static double values[ROWS][ROUNDS_MAX];
static double clock_ns; /* ns that a measurement by itself takes, which are subtracted */

static void store_figure_of_step(enum row row, uint32_t round, uint64_t ns, double count)
{
    values[row][round] = ((double)ns - clock_ns) / count;
}

static void run_round_of_local_steps(uint32_t round)
{
    store_figure_of_step(BUILD, round, measure_time_of_step(step_build_messages), BATCH);
    store_figure_of_step(FREE, round, measure_time_of_step(step_free_envelopes), BATCH);
    build_batch_of_messages(home);
    store_figure_of_step(PUT_WAITING, round, measure_time_of_step(step_put_to_waiting_houses),
                         BATCH);
    store_figure_of_step(TAKE, round, measure_time_of_step(step_take_ready_houses), BATCH);
    store_figure_of_step(RUN, round, measure_time_of_step(step_run_houses), BATCH);

    build_batch_of_messages(home);
    put_message_to_each_house(home);
    for (uint32_t i = 0; i < FURTHER; i++) {
        build_batch_of_messages(home);
        store_figure_of_step(PUT_READY, round, measure_time_of_step(step_put_to_ready_houses),
                             BATCH);
    }
    step_take_ready_houses();
    store_figure_of_step(RUN_FURTHER, round,
                         measure_time_of_step(step_run_houses_with_more_messages), BATCH);
    values[RUN_FURTHER][round] = (values[RUN_FURTHER][round] - values[RUN][round]) / FURTHER;
}

static void measure_round_of_asks(uint32_t round)
{
    build_batch_of_messages(home);
    put_message_to_house(home, askers);
    step_take_ready_houses();
    store_figure_of_step(ASK, round, measure_time_of_step(step_run_askers_to_first_ask), BATCH);
    step_take_ready_houses();
    store_figure_of_step(ANSWER, round, measure_time_of_step(step_run_answerers), BATCH);
    step_take_ready_houses();
    store_figure_of_step(ASK_AGAIN, round, measure_time_of_step(step_run_askers_to_second_ask),
                         BATCH);
    step_take_ready_houses();
    run_ready_houses();
    step_take_ready_houses();
    store_figure_of_step(ASK_END, round, measure_time_of_step(step_run_askers_to_their_end), BATCH);
}

static void run_ready_and_return_envelopes_to_other(void)
{
    step_take_ready_houses();
    run_ready_houses();
    domi_pool_push_chains_to_owners(home);
}

/* Measure the collecting of freed envelopes. The other manager's slab is put aside, so that its
 * allocations come from `remote`. */
static void measure_round_of_remote_frees(uint32_t round)
{
    domi_slab *slab = &other->pool.slabs[DOMI_SLAB_64];

    (void)measure_time_of_step_on_helper(step_build_messages_at_other);
    void *aside = slab->free;
    slab->free = NULL;
    store_figure_of_step(REMOTE_FREE, round, measure_time_of_step(step_free_envelopes_of_other),
                         BATCH);
    store_figure_of_step(REMOTE_FLUSH, round, measure_time_of_step(step_flush_returns_to_other),
                         BATCH);
    store_figure_of_step(REMOTE_COLLECT, round,
                         measure_time_of_step_on_helper(step_collect_returns_at_other), BATCH);
    domi_pool_free_object(other, &envelopes[0]->node);
    void **last = &slab->free;
    while (*last != NULL)
        last = *last;
    *last = aside;
}

static void measure_round_of_remote_puts(uint32_t round)
{
    (void)measure_time_of_step_on_helper(step_build_messages_at_other);
    store_figure_of_step(INBOX_PUT, round,
                         measure_time_of_step_on_helper(step_put_into_empty_inboxes), BATCH);
    store_figure_of_step(SORT, round, measure_time_of_step(step_sort_arrivals), BATCH);
    run_ready_and_return_envelopes_to_other();
    (void)measure_time_of_step_on_helper(step_build_messages_at_other);
    (void)measure_time_of_step_on_helper(step_put_into_empty_inboxes);
    for (uint32_t i = 0; i < FURTHER; i++) {
        (void)measure_time_of_step_on_helper(step_build_messages_at_other);
        store_figure_of_step(INBOX_PUT_FURTHER, round,
                             measure_time_of_step_on_helper(step_put_into_inboxes_not_empty),
                             BATCH);
    }
    store_figure_of_step(SORT_FURTHER, round,
                         measure_time_of_step(step_sort_arrivals_of_many_a_house), BATCH);
    values[SORT_FURTHER][round] = (values[SORT_FURTHER][round] - values[SORT][round]) / FURTHER;
    run_ready_and_return_envelopes_to_other();

    atomic_store(&home->park, DOMI_PARK_SLEEPING);
    store_figure_of_step(WAKE, round,
                         measure_time_of_step_on_helper(step_wake_home_from_other_manager), 1);
    atomic_store(&home->park, DOMI_PARK_RUNNING);
    measure_round_of_remote_frees(round);
}

static void print_medians_of_steps(enum row first, enum row behind, const char *where,
                                   uint32_t rounds)
{
    for (enum row row = first; row < behind; row++)
        printf("steps.%s%s %.2f ns\n", names[row], where,
               measure_sort_and_get_median(values[row], rounds));
}

/* --- the two managers and their actors
 * ---------------------------------------------------------- */

static void wake_by_eventfd(domi_manager *manager)
{
    (void)manager;
    if (eventfd_write(wake_fd, 1) != 0)
        exit_with_error("eventfd");
}

static const domi_runtime_hooks hooks = {.wake = wake_by_eventfd};

static void make_managers_and_houses(domus_config *config)
{
    for (uint32_t i = 0; i < 2; i++) {
        managers[i] = aligned_alloc(alignof(domi_manager), sizeof(domi_manager));
        if (managers[i] == NULL)
            exit_with_error("no memory");
        *managers[i] = (domi_manager){0};
    }
    for (uint32_t i = 0; i < 2; i++) {
        domus_address address;
        const domi_manager_options options = {
            .index = i,
            .count = 2,
            .managers = managers,
            .config = config,
            .now_ns = 1,
            .hooks = &hooks,
        };
        if (domi_manager_init(managers[i], &options) != 0 ||
            domi_house_spawn_without_parent(managers[i], managers[i], &steps_sender, NULL,
                                            &address) != 0)
            exit_with_error("no manager");
        (void)domi_manager_mount_actors(managers[i]);
        senders[i] = address.house;
    }
    home = managers[0];
    other = managers[1];
    for (uint32_t i = 0; i < BATCH; i++) {
        struct steps_asker state = {.answered = 0};
        if (domi_house_spawn_without_parent(home, home, &steps_sink, NULL, &sinks[i]) != 0 ||
            domi_house_spawn_without_parent(home, home, &steps_answerer, NULL, &answerers[i]) != 0)
            exit_with_error("no house");
        state.peer = answerers[i];
        if (domi_house_spawn_without_parent(home, home, &steps_asker, &state, &askers[i]) != 0)
            exit_with_error("no house");
    }
    (void)domi_manager_mount_actors(home);
}

static void empty_function_to_measure_clock(void)
{
}

int main(int argc, char **argv)
{
    uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : ROUNDS;
    domus_config config;

    domus_config_init(&config);
    wake_fd = eventfd(0, EFD_CLOEXEC);
    if (rounds == 0 || rounds > ROUNDS_MAX || wake_fd < 0)
        exit_with_error("usage: bench_steps [ROUNDS [alone]]");
    make_managers_and_houses(&config);
    (void)measure_pin_thread_to_cpu(0);
    for (uint32_t i = 0; i < rounds; i++)
        values[0][i] = (double)measure_time_of_step(empty_function_to_measure_clock);
    clock_ns = measure_sort_and_get_median(values[0], rounds);
    for (uint32_t i = 0; i < rounds; i++) {
        run_round_of_local_steps(i);
        measure_round_of_asks(i);
        measure_round_of_remote_puts(i);
    }
    print_medians_of_steps(0, ROWS, "", rounds);

    /* with `alone` there is no helper: valgrind runs one thread at a time, and the two threads
     * would spin */
    if (argc > 2)
        return 0;
    if (pthread_create(&helper, NULL, run_steps_on_helper, NULL) != 0)
        exit_with_error("no thread");
    apart = true;
    for (uint32_t i = 0; i < rounds; i++)
        measure_round_of_remote_puts(i);
    atomic_store(&job, do_nothing_at_end_of_phase);
    (void)pthread_join(helper, NULL);
    print_medians_of_steps(INBOX_PUT, ROWS, ".apart", rounds);
    return steps_handled != 0 ? 0 : 1;
}
