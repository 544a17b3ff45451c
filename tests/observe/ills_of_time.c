/* Programs that share the time of their threads badly. */
#include "tests/observe/ills.h"

#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)

static const domus_type tick_type = {.name = "tick"};

/* --- io and state actors ---------------------------------------------------------------------- */

static int echo_bytes_after_long_work(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domt_use_cpu_for_ns(100 * US);
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour slow_channel = {
    .name = "slow channel", .kind = DOMUS_CHANNELS, .on_read = {echo_bytes_after_long_work, 0}};

static int echo_bytes_at_once(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour fast_channel = {
    .name = "fast channel", .kind = DOMUS_CHANNELS, .on_read = {echo_bytes_at_once, 0}};

static void limit_system_to_one_thread(domus_config *config)
{
    config->system.threads = 1;
}

static void give_most_time_to_io(domus_config *config)
{
    limit_system_to_one_thread(config);
    config->scheduler.io_ratio = 95;
    config->scheduler.deadline_check_every = 1;
}

static void give_little_time_to_io(domus_config *config)
{
    limit_system_to_one_thread(config);
    config->scheduler.io_ratio = 1;
}

static void spawn_many_workers(domt_ill_run *run)
{
    domt_ill_spawn_workers(run->system, 0, 64, 10 * US);
}

/* --- long runs -------------------------------------------------------------------------------- */

/* Spawn actors that each have many messages, and handle them in one run. */
static void spawn_workers_with_many_messages(domt_ill_run *run)
{
    uint64_t work_ns = 50 * US;

    for (int i = 0; i < 4; i++) {
        domt_ill_spawn_workers(run->system, 0, 1, work_ns);
    }
}

static int work_for_each_message(domus_stack *stack, void *self, const void *payload)
{
    domt_use_cpu_for_ns(200 * US);
    return domus_notice(stack, domus_self(stack), &domt_work_type, payload);
}

static const domus_behaviour bulk = {
    .name = "bulk", .on = (const domus_on[]){{&domt_work_type, work_for_each_message, 0}, {0}}};

static void spawn_bulk_workers(domt_ill_run *run)
{
    uint64_t none = 0;

    spawn_workers_with_many_messages(run);
    for (int i = 0; i < 4; i++)
        domt_send_notice(run->system, domt_spawn(run->system, 0, &bulk, NULL), &domt_work_type,
                         &none);
}

/* --- balance ---------------------------------------------------------------------------------- */

static void spawn_one_worker(domt_ill_run *run)
{
    domt_ill_spawn_workers(run->system, 0, 1, 50 * US);
}

#define NEAR 16

struct dispatcher {
    domus_address workers[NEAR];
};

static int use_cpu_for_message(domus_stack *stack, void *self, const void *payload)
{
    domt_use_cpu_for_ns(*(const uint64_t *)payload);
    return 0;
}

static const domus_behaviour near_worker = {
    .name = "near worker",
    .on = (const domus_on[]){{&domt_work_type, use_cpu_for_message, 0}, {0}}};

static int send_work_to_near_workers(domus_stack *stack, void *self, const void *payload)
{
    struct dispatcher *to = self;
    uint64_t work_ns = 200 * US;

    for (int i = 0; i < NEAR; i++)
        (void)domus_notice(stack, to->workers[i], &domt_work_type, &work_ns);
    return 0;
}

static int begin_to_send_work(domus_stack *stack, void *self)
{
    struct dispatcher *to = self;
    int error = 0;

    for (int i = 0; i < NEAR && error == 0; i++)
        error = domus_spawn(stack, &near_worker, NULL, &to->workers[i]);
    return error != 0 ? error : domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour dispatcher = {
    .name = "dispatcher",
    .state_size = sizeof(struct dispatcher),
    .on_mount = begin_to_send_work,
    .on = (const domus_on[]){{&tick_type, send_work_to_near_workers, 0}, {0}}};

static void spawn_dispatcher_with_workers(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &dispatcher, NULL);
}

static void disable_stealing(domus_config *config)
{
    config->scheduler.steal.enabled = false;
}

#define PASSERS 512

static const domus_type next_type = {.name = "next", .size = sizeof(domus_address)};

static void make_stealing_eager(domus_config *config)
{
    config->scheduler.steal.min_run_ns = 0;
    config->scheduler.steal.floor = 1;
    config->scheduler.steal.aggression = 1;
}

/* Forward a message to the next actor of the circle, so each run is as short as it can be. */
static int forward_message_in_circle(domus_stack *stack, void *self, const void *payload)
{
    domus_address *next = self;

    if (next->house == NULL) {
        *next = *(const domus_address *)payload;
        return 0;
    }
    return domus_notice(stack, *next, &next_type, next);
}

static const domus_behaviour passer = {
    .name = "passer",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&next_type, forward_message_in_circle, 0}, {0}}};

static void spawn_circle_on_thread(domt_ill_run *run, uint32_t thread)
{
    static domus_address all[PASSERS];

    for (int i = 0; i < PASSERS; i++)
        all[i] = domt_spawn(run->system, thread, &passer, NULL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < PASSERS; i++)
            domt_send_notice(run->system, all[i], &next_type, &all[(i + 1) % PASSERS]);
}

static void spawn_circles_of_tiny_runs(domt_ill_run *run)
{
    spawn_circle_on_thread(run, 0);
}

/* --- pools ------------------------------------------------------------------------------------ */

static void configure_small_pool(domus_config *config)
{
    static const domus_pool_config pool = {.name = "work", .runners = 1};

    config->pools = &pool;
    config->pool_count = 1;
}

static int begin_to_work_in_pool(domus_stack *stack, void *self)
{
    const domus_spawn_options options = {.pool = domus_pool_find(stack, "work")};
    uint64_t work_ns = 50 * US;
    domus_address address;

    for (int i = 0; i < 4; i++) {
        int error = domus_spawn_with(stack, &near_worker, NULL, &options, &address);
        for (int k = 0; k < 20000 && error == 0; k++)
            error = domus_notice(stack, address, &domt_work_type, &work_ns);
        if (error != 0)
            return error;
    }
    return 0;
}

static const domus_behaviour boss = {
    .name = "boss", .on_mount = begin_to_work_in_pool, .on = (const domus_on[]){{0}}};

static void spawn_pooled_workers(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &boss, NULL);
}

/* --- the machine ------------------------------------------------------------------------------ */

static void configure_more_threads_than_cpus(domus_config *config)
{
    config->system.threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
}

static void spawn_worker_on_each_thread(domt_ill_run *run)
{
    for (uint32_t i = 0; i < domus_system_threads(run->system); i++)
        domt_ill_spawn_workers(run->system, i, 2, 50 * US);
}

static void choose_epoll_backend(domus_config *config)
{
    config->io.backend = DOMUS_BACKEND_EPOLL;
}

static void *use_cpu_without_end(void *argument)
{
    for (;;)
        domt_use_cpu_for_ns(DOMT_MS);
    return argument;
}

/* Let other threads run on the only CPU of the program. */
static void let_other_threads_share_cpu(domt_ill_run *run)
{
    cpu_set_t one;
    pthread_t thread;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    domt_ill_spawn_workers(run->system, 0, 1, 50 * US);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&thread, NULL, use_cpu_without_end, NULL), 0);
        ck_assert_int_eq(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    }
}

static void pin_one_thread_to_one_cpu(domus_config *config)
{
    limit_system_to_one_thread(config);
    config->system.cpus = "0";
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void limit_descriptors_of_process(domt_ill_run *run)
{
    domus_machine machine;

    domus_system_machine(run->system, &machine);
    const struct rlimit limit = {machine.files_open + 1, machine.files_open + 1};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* --- waits ------------------------------------------------------------------------------------ */

#define CIRCLE 40

/* An actor sends a message to itself by way of another actor and is slow in handling, so each actor
 * waits for all others. */
static int send_back_slowly(domus_stack *stack, void *self, const void *payload)
{
    /* The pause uses no CPU, so its time is the same on any machine. */
    domt_pause_ns(3 * DOMT_MS);
    return domus_notice(stack, *(const domus_address *)payload, &next_type,
                        &(domus_address){domus_self(stack).house, domus_self(stack).lease});
}

static const domus_behaviour slow_partner = {
    .name = "slow partner", .on = (const domus_on[]){{&next_type, send_back_slowly, 0}, {0}}};

static void spawn_slow_pairs(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2 * CIRCLE; i++) {
        domus_address one = domt_spawn(run->system, i % 2, &slow_partner, NULL);
        domus_address other = domt_spawn(run->system, i % 2, &slow_partner, NULL);
        domt_send_notice(run->system, one, &next_type, &other);
    }
}

static void send_long_work_to_actor(domt_ill_run *run)
{
    uint64_t work_ns = 60 * DOMT_MS;

    run->actor = domt_spawn(run->system, 0, &near_worker, NULL);
    for (int i = 0; i < 20; i++)
        domt_send_notice(run->system, run->actor, &domt_work_type, &work_ns);
}

const domt_ill domt_ills_of_time[] = {
    {.rule = "io-starves-state",
     .channel = &slow_channel,
     .clients = 32,
     .configure = give_most_time_to_io,
     .begin = spawn_many_workers},
    {.rule = "state-starves-io",
     .channel = &fast_channel,
     .clients = 8,
     .configure = give_little_time_to_io,
     .begin = spawn_many_workers},
    {.rule = "long-runs", .configure = limit_system_to_one_thread, .begin = spawn_bulk_workers},
    {.rule = "hot-actor", .begin = spawn_one_worker},
    {.rule = "all-near", .begin = spawn_dispatcher_with_workers},
    {.rule = "steal-unreached", .begin = spawn_dispatcher_with_workers},
    {.rule = "steal-off", .configure = disable_stealing, .begin = spawn_dispatcher_with_workers},
    {.rule = "steal-costly", .configure = make_stealing_eager, .begin = spawn_circles_of_tiny_runs},
    {.rule = "pool-full", .configure = configure_small_pool, .begin = spawn_pooled_workers},
    {.rule = "threads-over-cpus",
     .configure = configure_more_threads_than_cpus,
     .begin = spawn_worker_on_each_thread},
    {.rule = "epoll", .configure = choose_epoll_backend, .begin = spawn_one_worker},
    {.rule = "mail-waits", .begin = spawn_slow_pairs},
    {.rule = "stalls", .begin = send_long_work_to_actor},
    {.rule = NULL},
};

const domt_ill domt_ills_of_process[] = {
    {.rule = "cpu-denied",
     .configure = pin_one_thread_to_one_cpu,
     .begin = let_other_threads_share_cpu},
    {.rule = "files-full", .begin = limit_descriptors_of_process},
    {.rule = NULL},
};

/* --- programs that are well ------------------------------------------------------------------- */

static void spawn_circle_on_both_threads(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2; i++)
        spawn_circle_on_thread(run, i);
}

static void spawn_workers_on_all_threads(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2; i++)
        domt_ill_spawn_workers(run->system, i, 8, 5 * US);
}

static void configure_pool_of_two_runners(domus_config *config)
{
    static const domus_pool_config pool = {.name = "work", .runners = 2};

    config->pools = &pool;
    config->pool_count = 1;
}

const domt_ill domt_wells[] = {
    {.rule = "messages", .begin = spawn_circle_on_both_threads},
    {.rule = "workers", .begin = spawn_workers_on_all_threads},
    {.rule = "pool", .configure = configure_pool_of_two_runners, .begin = spawn_pooled_workers},
    {.rule = "echo", .channel = &fast_channel, .clients = 32},
    {.rule = NULL},
};
