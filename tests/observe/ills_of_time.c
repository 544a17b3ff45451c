/* Programs that share their time badly. */
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

static int read_slowly(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domt_use_cpu_for_ns(100 * US);
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour slow_channel = {
    .name = "slow channel", .kind = DOMUS_CHANNELS, .on_read = {read_slowly, 0}};

static int read_fast(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour fast_channel = {
    .name = "fast channel", .kind = DOMUS_CHANNELS, .on_read = {read_fast, 0}};

static void one_thread(domus_config *config)
{
    config->system.threads = 1;
}

static void much_for_io(domus_config *config)
{
    one_thread(config);
    config->scheduler.io_ratio = 95;
    config->scheduler.deadline_check_every = 1;
}

static void little_for_io(domus_config *config)
{
    one_thread(config);
    config->scheduler.io_ratio = 1;
}

static void many_workers(domt_ill_run *run)
{
    domt_ill_spawn_workers(run->system, 0, 64, 10 * US);
}

/* --- long runs -------------------------------------------------------------------------------- */

/* Actors that each have many messages, and handle them in one run. */
static void workers_with_mail(domt_ill_run *run)
{
    uint64_t work_ns = 50 * US;

    for (int i = 0; i < 4; i++) {
        domt_ill_spawn_workers(run->system, 0, 1, work_ns);
    }
}

static int work_in_bulk(domus_stack *stack, void *self, const void *payload)
{
    domt_use_cpu_for_ns(200 * US);
    return domus_notice(stack, domus_self(stack), &domt_work_type, payload);
}

static const domus_behaviour bulk = {
    .name = "bulk", .on = (const domus_on[]){{&domt_work_type, work_in_bulk, 0}, {0}}};

static void bulk_workers(domt_ill_run *run)
{
    uint64_t none = 0;

    workers_with_mail(run);
    for (int i = 0; i < 4; i++)
        domt_send_notice(run->system, domt_spawn(run->system, 0, &bulk, NULL), &domt_work_type,
                         &none);
}

/* --- balance ---------------------------------------------------------------------------------- */

static void one_worker(domt_ill_run *run)
{
    domt_ill_spawn_workers(run->system, 0, 1, 50 * US);
}

#define NEAR 16

struct dispatcher {
    domus_address workers[NEAR];
};

static int work_once(domus_stack *stack, void *self, const void *payload)
{
    domt_use_cpu_for_ns(*(const uint64_t *)payload);
    return 0;
}

static const domus_behaviour near_worker = {
    .name = "near worker", .on = (const domus_on[]){{&domt_work_type, work_once, 0}, {0}}};

static int dispatch(domus_stack *stack, void *self, const void *payload)
{
    struct dispatcher *to = self;
    uint64_t work_ns = 200 * US;

    for (int i = 0; i < NEAR; i++)
        (void)domus_notice(stack, to->workers[i], &domt_work_type, &work_ns);
    return 0;
}

static int begin_to_dispatch(domus_stack *stack, void *self)
{
    struct dispatcher *to = self;
    int error = 0;

    for (int i = 0; i < NEAR && error == 0; i++)
        error = domus_spawn(stack, &near_worker, NULL, &to->workers[i]);
    return error != 0 ? error : domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour dispatcher = {.name = "dispatcher",
                                           .state_size = sizeof(struct dispatcher),
                                           .on_mount = begin_to_dispatch,
                                           .on =
                                               (const domus_on[]){{&tick_type, dispatch, 0}, {0}}};

static void near_workers(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &dispatcher, NULL);
}

static void no_steals(domus_config *config)
{
    config->scheduler.steal.enabled = false;
}

#define PASSERS 512

static const domus_type next_type = {.name = "next", .size = sizeof(domus_address)};

static void eager_steals(domus_config *config)
{
    config->scheduler.steal.min_run_ns = 0;
    config->scheduler.steal.floor = 1;
    config->scheduler.steal.aggression = 1;
}

/* Forward a message to the next actor: each run is as short as it can be. */
static int pass_on(domus_stack *stack, void *self, const void *payload)
{
    domus_address *next = self;

    if (next->house == NULL) {
        *next = *(const domus_address *)payload;
        return 0;
    }
    return domus_notice(stack, *next, &next_type, next);
}

static const domus_behaviour passer = {.name = "passer",
                                       .state_size = sizeof(domus_address),
                                       .on = (const domus_on[]){{&next_type, pass_on, 0}, {0}}};

static void spawn_circle(domt_ill_run *run, uint32_t thread)
{
    static domus_address all[PASSERS];

    for (int i = 0; i < PASSERS; i++)
        all[i] = domt_spawn(run->system, thread, &passer, NULL);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < PASSERS; i++)
            domt_send_notice(run->system, all[i], &next_type, &all[(i + 1) % PASSERS]);
}

static void tiny_workers(domt_ill_run *run)
{
    spawn_circle(run, 0);
}

/* --- pools ------------------------------------------------------------------------------------ */

static void small_pool(domus_config *config)
{
    static const domus_pool_config pool = {.name = "work", .runners = 1};

    config->pools = &pool;
    config->pool_count = 1;
}

static int begin_in_pool(domus_stack *stack, void *self)
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
    .name = "boss", .on_mount = begin_in_pool, .on = (const domus_on[]){{0}}};

static void pooled_workers(domt_ill_run *run)
{
    run->actor = domt_spawn(run->system, 0, &boss, NULL);
}

/* --- the machine ------------------------------------------------------------------------------ */

static void threads_beyond(domus_config *config)
{
    config->system.threads = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) + 1;
}

static void worker_on_each(domt_ill_run *run)
{
    for (uint32_t i = 0; i < domus_system_threads(run->system); i++)
        domt_ill_spawn_workers(run->system, i, 2, 50 * US);
}

static void by_epoll(domus_config *config)
{
    config->io.backend = DOMUS_BACKEND_EPOLL;
}

static void *spin(void *argument)
{
    for (;;)
        domt_use_cpu_for_ns(DOMT_MS);
    return argument;
}

/* Let other threads run on the program's only CPU. */
static void with_others(domt_ill_run *run)
{
    cpu_set_t one;
    pthread_t thread;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    domt_ill_spawn_workers(run->system, 0, 1, 50 * US);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&thread, NULL, spin, NULL), 0);
        ck_assert_int_eq(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    }
}

static void on_one_cpu(domus_config *config)
{
    one_thread(config);
    config->system.cpus = "0";
}

/* --- descriptors ------------------------------------------------------------------------------ */

static void few_descriptors(domt_ill_run *run)
{
    domus_machine machine;

    domus_system_machine(run->system, &machine);
    const struct rlimit limit = {machine.files_open + 1, machine.files_open + 1};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* --- waits ------------------------------------------------------------------------------------ */

#define CIRCLE 40

/* Actors that send a message to themselves by way of another actor, so that each of them waits for
 * all others. */
static int answer_slowly(domus_stack *stack, void *self, const void *payload)
{
    /* sleeps without using the CPU, so the time is the same on any machine */
    domt_pause_ns(3 * DOMT_MS);
    return domus_notice(stack, *(const domus_address *)payload, &next_type,
                        &(domus_address){domus_self(stack).house, domus_self(stack).lease});
}

static const domus_behaviour slow_partner = {
    .name = "slow partner", .on = (const domus_on[]){{&next_type, answer_slowly, 0}, {0}}};

static void slow_pairs(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2 * CIRCLE; i++) {
        domus_address one = domt_spawn(run->system, i % 2, &slow_partner, NULL);
        domus_address other = domt_spawn(run->system, i % 2, &slow_partner, NULL);
        domt_send_notice(run->system, one, &next_type, &other);
    }
}

static void stalling(domt_ill_run *run)
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
     .configure = much_for_io,
     .begin = many_workers},
    {.rule = "state-starves-io",
     .channel = &fast_channel,
     .clients = 8,
     .configure = little_for_io,
     .begin = many_workers},
    {.rule = "long-runs", .configure = one_thread, .begin = bulk_workers},
    {.rule = "hot-actor", .begin = one_worker},
    {.rule = "all-near", .begin = near_workers},
    {.rule = "steal-unreached", .begin = near_workers},
    {.rule = "steal-off", .configure = no_steals, .begin = near_workers},
    {.rule = "steal-costly", .configure = eager_steals, .begin = tiny_workers},
    {.rule = "pool-full", .configure = small_pool, .begin = pooled_workers},
    {.rule = "threads-over-cpus", .configure = threads_beyond, .begin = worker_on_each},
    {.rule = "epoll", .configure = by_epoll, .begin = one_worker},
    {.rule = "mail-waits", .begin = slow_pairs},
    {.rule = "stalls", .begin = stalling},
    {.rule = NULL},
};

const domt_ill domt_ills_of_process[] = {
    {.rule = "cpu-denied", .configure = on_one_cpu, .begin = with_others},
    {.rule = "files-full", .begin = few_descriptors},
    {.rule = NULL},
};

/* --- programs that are well ------------------------------------------------------------------- */

static void circles(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2; i++)
        spawn_circle(run, i);
}

static void workers_everywhere(domt_ill_run *run)
{
    for (uint32_t i = 0; i < 2; i++)
        domt_ill_spawn_workers(run->system, i, 8, 5 * US);
}

static void whole_pool(domus_config *config)
{
    static const domus_pool_config pool = {.name = "work", .runners = 2};

    config->pools = &pool;
    config->pool_count = 1;
}

const domt_ill domt_wells[] = {
    {.rule = "messages", .begin = circles},
    {.rule = "workers", .begin = workers_everywhere},
    {.rule = "pool", .configure = whole_pool, .begin = pooled_workers},
    {.rule = "echo", .channel = &fast_channel, .clients = 32},
    {.rule = NULL},
};
