/* runtime/outside/blocking.c: the end of blocking work resumes its conversation, whatever becomes
 * of the actor meanwhile. Three things come too late: the end of work whose asker takes no
 * messages any more, the change of a level of memory while a handler runs, and a look at a thread
 * that has just gone on. */
#include "house/conversation/stack.h"

#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "base/memory.h"
#include "house/conversation/promise.h"
#include "runtime/system/stall.h"

#include <domus/blocking.h>
#include <domus/dump.h>

#include <errno.h>
#include <pthread.h>

static const domus_type go_type = {.name = "go"};
static const domus_type stop_type = {.name = "stop"};

static _Atomic uint32_t resumed, wrong, begun, stopped, returned;
static _Atomic int last_error;
static _Atomic bool hold;

/* The frame of a conversation with blocking work. It records its own address, which the helper
 * thread got as the argument of the work. */
typedef struct work {
    int number;
    const void *address;
} work;

static int block_worker_while_held(void *argument)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 20000 && atomic_load(&hold); i++)
        domt_pause_ns(DOMT_MS);
    int number = *(const int *)argument;
    atomic_fetch_add(&returned, 1);
    return number;
}

static int check_end_of_blocking_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    const work *own = domus_frame(stack);

    atomic_store(&last_error, answer->error);
    if (own->address != own || domi_stack_get_house(stack)->asks != 0)
        atomic_fetch_add(&wrong, 1);
    if (answer->error == 0 &&
        (answer->type != &domus_blocking_type || *(const int *)answer->payload != own->number))
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

/* Begin blocking work, whose argument lies in the frame, because the frame lasts as long as the
 * conversation. */
static int begin_blocking_work(domus_stack *stack, void *self, const void *payload)
{
    work *own = domus_frame(stack);

    *own = (work){.number = *(const int *)self, .address = own};
    int result =
        domus_blocking(stack, block_worker_while_held, &own->number, check_end_of_blocking_work);
    /* blocking work must not count as an ask of the actor */
    if (domi_stack_get_house(stack)->asks != 0)
        atomic_fetch_add(&wrong, 1);
    return result;
}

static int stop_own_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, domus_self(stack));
}

static void count_stopped_actor(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(int),
    .on = (const domus_on[]){{&go_type, begin_blocking_work, sizeof(work)},
                             {&stop_type, stop_own_actor, 0},
                             {0}},
    .on_stop = count_stopped_actor};

static void clear_counts_of_work(void)
{
    atomic_store(&resumed, 0);
    atomic_store(&wrong, 0);
    atomic_store(&begun, 0);
    atomic_store(&returned, 0);
    atomic_store(&stopped, 0);
    atomic_store(&last_error, 1);
    atomic_store(&hold, false);
}

DOMT_TEST(result_of_blocking_work_resumes_the_actor)
{
    int number = 42;

    clear_counts_of_work();
    domus_system *system = domt_start_system_of_threads(2);
    for (uint32_t i = 0; i < 200; i++) {
        domus_address one = domt_spawn(system, i % 2, &worker, &number);
        for (int k = 0; k < 10; k++)
            domt_send_notice(system, one, &go_type, NULL);
    }
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 2000);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    domt_end_system(system);
}

DOMT_TEST(negative_end_of_blocking_work_is_the_error)
{
    int number = -EIO;

    clear_counts_of_work();
    domus_system *system = domt_start_system_of_threads(1);
    domt_send_notice(system, domt_spawn(system, 0, &worker, &number), &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EIO);
    domt_end_system(system);
}

DOMT_TEST(blocking_work_at_its_limit_fails_with_eagain)
{
    domus_config config = domt_config_of_threads(1);
    int number = 1;

    config.blocking.threads_max = 1;
    config.blocking.queue_max = 1;
    clear_counts_of_work();
    atomic_store(&hold, true);
    domus_system *system = domt_start_system(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_send_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    domt_send_notice(system, one, &go_type, NULL);
    domt_send_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 3);
    domt_end_system(system);
}

DOMT_TEST(stop_waits_for_work_that_runs_and_withdraws_what_does_not)
{
    domus_config config = domt_config_of_threads(1);
    int number = 1;

    config.blocking.threads_max = 1;
    clear_counts_of_work();
    atomic_store(&hold, true);
    domus_system *system = domt_start_system(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_send_notice(system, one, &go_type, NULL);
    domt_send_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    domt_send_notice(system, one, &stop_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    /* the work that had not begun was cancelled */
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&stopped), 0);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&resumed), 2);
    ck_assert_uint_eq(atomic_load(&begun), 1);
    domt_end_system(system);
}

/* The argument of the work lies in the frame, and the work still reads it after the actor and the
 * system have ended. */
DOMT_TEST(work_that_outlasts_the_actor_timeout_is_abandoned_and_said)
{
    int number = 1;

    domus_config config = domt_config_of_threads(1);

    config.shutdown.actor_timeout_ns = 20 * DOMT_MS;
    clear_counts_of_work();
    atomic_store(&hold, true);
    domus_system *system = domt_start_system(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_send_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_ptr_nonnull(strstr(domus_system_left(system), "worker"));
    ck_assert_ptr_nonnull(strstr(domus_system_left(system), "1 conversations"));
    /* on_stop is not called for an actor that was abandoned */
    ck_assert_uint_eq(atomic_load(&stopped), 0);
    /* domus_system_free() frees nothing, because the abandoned work still uses the frame */
    domus_system_free(system);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&returned) == 1);
    domt_pause_ns(20 * DOMT_MS);
    domus_system_free(system);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
}

/* --- what comes too late ---------------------------------------------------------------------- */

/* --- blocking work ---------------------------------------------------------------------------- */

static domus_system *system_;
static domus_address worker_;
static _Atomic bool go_on;
static _Atomic int heard = 1;

static int block_worker_until_go_on(void *argument)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 20000 && !atomic_load(&go_on); i++)
        domt_pause_ns(DOMT_MS / 2);
    return 0;
}

static int record_error_of_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard, answer->error);
    return 0;
}

static int begin_work_until_go_on(domus_stack *stack, void *self, const void *nothing)
{
    return domus_blocking(stack, block_worker_until_go_on, NULL, record_error_of_work);
}

/* End blocking work by hand: its answer got lost with its message, so the test completes its
 * promise. */
static int fail_promise_of_lost_work(domus_stack *stack, void *self, const void *nothing)
{
    domi_promise *promise = worker_.house->stacks->waiting;

    promise->work = NULL;
    domi_promise_fail(stack->manager, promise, -EIO);
    return 0;
}

static const domus_type end_it = {.name = "end it"};
static const domus_behaviour working = {
    .name = "working",
    .on = (const domus_on[]){
        {&go_type, begin_work_until_go_on, 0}, {&end_it, fail_promise_of_lost_work, 0}, {0}}};

/* A life cannot end while its blocking work lasts, so the test sets the marks of an ended life by
 * hand. */
DOMT_TEST(end_of_work_for_a_gone_actor_is_a_dead_letter)
{
    char text[4 * DOMUS_DUMP_BYTES_MIN];

    system_ = domt_start_system_of_threads(1);
    worker_ = domt_spawn(system_, 0, &working, NULL);
    domus_address other = domt_spawn(system_, 0, &working, NULL);
    domt_send_notice(system_, worker_, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    /* Another actor of the same thread makes the dump, so after it the run that began the work is
     * over. */
    ck_assert_int_eq(domus_dump_actor(system_, worker_, text, sizeof text), 0);
    uint64_t dead = domi_counter_read(&system_->outside.counters.dead_letters);
    atomic_fetch_or(&worker_.house->life, DOMI_LIFE_CLOSED);
    atomic_store(&go_on, true);
    DOMT_WAIT_FOR(20, domi_counter_read(&system_->outside.counters.dead_letters) == dead + 1);
    atomic_fetch_and(&worker_.house->life, ~(uint64_t)DOMI_LIFE_CLOSED);
    domt_send_notice(system_, other, &end_it, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&heard) == -EIO);
    domt_end_system(system_);
}

/* --- memory ----------------------------------------------------------------------------------- */

static domt_stepped world;

/* While a handler runs, another thread finds out that memory is short. The handler learns of the
 * new level when it allocates memory. */
DOMT_TEST(handler_that_allocates_learns_a_new_memory_level)
{
    domus_config config = domt_config_of_threads(1);

    domt_stepped_init(&world, &config);
    domi_pressure *pressure = &world.system->pressure;
    domi_manager *manager = &domt_stepped_thread(&world, 0)->manager;
    domi_thread_manager = manager;
    domi_meter *before = domi_memory_set_meter(&pressure->meter);
    /* the loop's own thread must not look at memory itself */
    atomic_store(&pressure->meter.look_at, INT64_MAX);
    atomic_store(&pressure->meter.tight, 1);
    atomic_store(&pressure->own_level, DOMUS_MEMORY_CRITICAL);
    ck_assert_uint_eq(manager->memory.pressure_seen, DOMUS_MEMORY_NORMAL);
    void *memory = domi_memory_new(256 * 1024);
    ck_assert_uint_eq(manager->memory.pressure_seen, DOMUS_MEMORY_CRITICAL);
    domi_memory_free(memory);
    atomic_store(&pressure->own_level, DOMUS_MEMORY_NORMAL);
    atomic_store(&pressure->meter.tight, 0);
    domi_manager_reread_memory_level(manager);
    (void)domi_memory_set_meter(before);
    domi_thread_manager = NULL;
    domt_stepped_fini(&world);
}

/* --- stalls ----------------------------------------------------------------------------------- */

/* A thread that runs without a pause between two runs; the behaviour of each run is chosen by the
 * run's number modulo 2. */
static const domus_behaviour run_by_number[2] = {{.name = "even"}, {.name = "odd"}};
static _Atomic bool over;

static void *switch_shown_run_until_over(void *manager_)
{
    domi_manager *manager = manager_;

    for (uint64_t run = 0; !atomic_load(&over); run++) {
        atomic_store(&manager->activity.running, NULL);
        atomic_store(&manager->counters.runs, run);
        atomic_store(&manager->activity.running, &run_by_number[run % 2]);
        /* some runs last for longer than two looks take */
        for (uint64_t i = run % 64 * 128; i > 0; i--)
            atomic_signal_fence(memory_order_seq_cst);
    }
    return NULL;
}

/* The clock of the test advances by the threshold with each look, so two looks at the same run make
 * a stall. The report must name the behaviour of that run, although the thread goes on to other
 * runs all the time. */
DOMT_TEST(stall_report_names_the_behaviour_of_the_stalled_run)
{
    domus_config config = domt_config_of_threads(1);
    uint64_t until_ns = domt_now_ns() + 3000 * DOMT_MS;
    uint64_t found = 0;
    pthread_t runner;

    config.stall.threshold_ns = DOMT_MS;
    config.stall.signal = 0;
    domt_stepped_init(&world, &config);
    domt_stepped_iterate(&world, 0, false);
    domi_thread *thread = domt_stepped_thread(&world, 0);
    atomic_store(&thread->manager.counters.runs, 0);
    uint64_t first = domi_thread_count_beats(thread);
    domi_stalls_forget_last_looks(world.system);
    ck_assert_int_eq(pthread_create(&runner, NULL, switch_shown_run_until_over, &thread->manager),
                     0);
    while (found < 20000 && domt_now_ns() < until_ns) {
        uint64_t before = domi_counter_read(&thread->stall.counts.count);
        domt_stepped_advance_clock(&world, DOMT_MS);
        (void)domi_stalls_look_at_all_threads(world.system);
        if (domi_counter_read(&thread->stall.counts.count) == before)
            continue;
        found++;
        const domus_behaviour *told = thread->stall.behaviour;
        ck_assert(told == NULL || told == &run_by_number[(thread->stall.beat - first) % 2]);
    }
    atomic_store(&over, true);
    ck_assert_int_eq(pthread_join(runner, NULL), 0);
    ck_assert_uint_gt(found, 100);
    atomic_store(&thread->manager.activity.running, NULL);
    domt_stepped_fini(&world);
}

DOMT_SUITE(60)
