/* The ring that shows the completions it is given and checks M3, and the iterations of threads that
 * do not exist. */
#include "tests/runtime/stepped.h"
#include "runtime/control/life.h"
#include "runtime/loop/steal.h"
#include "runtime/loop/steps.h"

#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "io/completions/setup.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/system/logs.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

static domt_stepped *current;

uint64_t domt_stepped_now_ns(const domt_stepped *stepped)
{
    return domi_clock_now(&stepped->system->clock);
}

void domt_stepped_advance(domt_stepped *stepped, uint64_t by_ns)
{
    domi_clock_advance(&stepped->system->clock, by_ns);
}

/* --- the ring --------------------------------------------------------------------------------- */

static int ring_open(const domus_config *config, char *error, size_t error_size, void **ret_ring)
{
    for (uint32_t i = 0; i < current->system->count; i++) {
        if (current->rings[i].thread != NULL)
            continue;
        current->rings[i].thread = &current->system->threads[i];
        *ret_ring = &current->rings[i];
        return 0;
    }
    ck_abort_msg("more rings than threads");
}

static int ring_start(void *ring)
{
    return 0;
}

static void ring_close(void *ring)
{
}

/* Check M3 from the outside: each thing that a thread might forget when it goes to sleep. */
static void check_nothing_left(const domt_ring *ring, uint64_t timeout_ns)
{
    domi_thread *thread = ring->thread;
    domi_manager *manager = &thread->manager;
    uint64_t now_ns = domt_stepped_now_ns(current);
    uint64_t due_ns = domi_wheel_next_ns(&manager->timing.wheel);

    ck_assert_uint_eq(manager->schedule.ready[DOMUS_STATE].count, 0);
    ck_assert_uint_eq(manager->schedule.ready[DOMUS_CHANNELS].count, 0);
    ck_assert_ptr_null(manager->schedule.mounting.head);
    ck_assert_ptr_null(atomic_load(&manager->mail.arrivals));
    /* the objects that other threads wait for have gone home */
    ck_assert_uint_eq(manager->pool.chained, 0);
    ck_assert_uint_eq(ring->completions, 0);
    ck_assert_ptr_null(thread->io.dirty);
    ck_assert(thread->io.wake_armed);
    ck_assert(domi_park_is_at_rest(atomic_load(&manager->park)));
    ck_assert_uint_eq(atomic_load(&thread->system->orders), thread->orders);
    ck_assert(!domi_thread_is_waking(thread));
    ck_assert_uint_le(timeout_ns, UINT64_C(1000000000)); /* the cap of a sleep */
    ck_assert(due_ns > now_ns);
    ck_assert(due_ns == UINT64_MAX || timeout_ns <= due_ns - now_ns);
}

static int ring_enter(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    domt_ring *ring = ring_;

    ring->enters++;
    ring->queued = false;
    if (min_complete == 0)
        return 0;
    check_nothing_left(ring, timeout_ns);
    ring->sleeps++;
    ring->sleep_ns = timeout_ns;
    if (current->on_sleep != NULL)
        current->on_sleep(current, ring->thread->manager.index);
    else
        domt_stepped_advance(current, timeout_ns);
    return 0;
}

/* Show completions that mean nothing: their kind and slot say "the end of a wake poll". */
static uint32_t ring_reap(void *ring_, domi_completion *completions, uint32_t max)
{
    domt_ring *ring = ring_;
    uint32_t count = 0;

    for (; count < max && ring->completions != 0; ring->completions--)
        completions[count++] = (domi_completion){
            .user_data = domi_op_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX),
        };
    for (; count < max && ring->wake_completions != 0; ring->wake_completions--)
        completions[count++] = (domi_completion){
            .user_data = domi_op_data(DOMI_OP_WAKE, 0, 0),
            .flags = DOMI_MORE,
        };
    if (count != 0)
        domt_stepped_advance(current, ring->reap_takes_ns);
    return count;
}

static bool ring_ready(const void *ring)
{
    return ((const domt_ring *)ring)->completions + ((const domt_ring *)ring)->wake_completions !=
           0;
}

static bool ring_pending(void *ring)
{
    return ((domt_ring *)ring)->queued;
}

static void ring_poll(void *ring, int fd, uint64_t user_data)
{
    ((domt_ring *)ring)->queued = true;
    ((domt_ring *)ring)->polls++;
    if (current->on_poll != NULL)
        current->on_poll(current, ((domt_ring *)ring)->thread->manager.index);
}

static void ring_forget(void *ring, int fd)
{
}

static void ring_cancel(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    ((domt_ring *)ring)->queued = true;
    ((domt_ring *)ring)->cancels++;
}

static void ring_give(void *ring, uint16_t index, void *data, uint32_t size)
{
}

static void ring_publish(void *ring)
{
}

/* The stepped system has no connections, so an accept on its ring is a bug. */
static void never_accept(void *ring, int fd, uint64_t user_data)
{
    ck_abort_msg("an accept in the stepped ring");
}

static void never_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    ck_abort_msg("a receive in the stepped ring");
}

static void never_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    ck_abort_msg("a send in the stepped ring");
}

static void never_send_message(void *ring, int fd, const struct msghdr *message, uint64_t user_data)
{
    ck_abort_msg("a send of a message in the stepped ring");
}

const domi_backend domt_stepped_ring = {
    .name = "stepped",
    .sockets = &domi_kernel_sockets,
    .open = ring_open,
    .start = ring_start,
    .close = ring_close,
    .enter = ring_enter,
    .reap = ring_reap,
    .ready = ring_ready,
    .pending = ring_pending,
    .accept = never_accept,
    .receive = never_receive,
    .poll = ring_poll,
    .send = never_send,
    .send_message = never_send_message,
    .cancel = ring_cancel,
    .forget = ring_forget,
    .give = ring_give,
    .publish = ring_publish,
};

/* --- the system ------------------------------------------------------------------------------- */

/* Record that a sleeper's word has changed; the test runs the sleeper itself. */
static void count_wake(domi_manager *manager)
{
    current->rings[manager->index].wakes++;
}

const domi_runtime_hooks domt_hooks_of_stepped = {.wake = count_wake,
                                                  .log = domi_log_happening,
                                                  .warn = domi_log_mistake,
                                                  .say = domi_log_text,
                                                  .spawn_detached = domi_detached_spawn,
                                                  .withdraw = domi_blocking_withdraw,
                                                  .read_memory = domi_pressure_read,
                                                  .read_clock = domi_system_read_clock};

void domt_stepped_init(domt_stepped *stepped, const domus_config *config)
{
    char error[256] = "";
    domus_system *system = NULL;

    *stepped = (domt_stepped){0};
    ck_assert_msg(domus_system_new(config, error, sizeof error, &system) == 0, "%s", error);
    stepped->system = system;
    stepped->rings = calloc(system->count, sizeof *stepped->rings);
    ck_assert_ptr_nonnull(stepped->rings);
    current = stepped;

    domi_clock_init_virtual(&system->clock, DOMT_START_NS);
    system->managers[system->count] = &system->outside;
    system->thread_hooks = &domt_hooks_of_stepped;
    const domi_manager_options options = {
        .index = system->count,
        .count = system->count + 1,
        .managers = system->managers,
        .config = &system->config,
        .now_ns = DOMT_START_NS,
    };
    ck_assert_int_eq(domi_manager_init(&system->outside, &options), 0);
    for (uint32_t i = 0; i < system->count; i++) {
        domi_thread *thread = &system->threads[i];

        system->managers[i] = &thread->manager;
        ck_assert_int_eq(
            domi_thread_init(thread, system, i, -1, &domt_stepped_ring, error, sizeof error), 0);
        ck_assert_int_eq(domi_io_start(&thread->io), 0);
    }
    system->stage = DOMI_STAGE_RUNNING;
}

void domt_stepped_begin(domt_stepped *stepped, uint32_t threads)
{
    domus_config config;
    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = "none";
    config.io.buffers.count = 16; /* the ring of this file needs no buffers */
    domt_stepped_init(stepped, &config);
}

void domt_stepped_fini(domt_stepped *stepped)
{
    for (uint32_t i = 0; i < stepped->system->count; i++)
        domi_manager_end_actors(&stepped->system->threads[i].manager);
    for (uint32_t i = 0; i < stepped->system->count; i++)
        (void)domi_manager_take_arrivals(&stepped->system->threads[i].manager);
    stepped->system->stage = DOMI_STAGE_STOPPED;
    domus_system_free(stepped->system);
    free(stepped->rings);
    current = NULL;
}

domi_thread *domt_stepped_thread(domt_stepped *stepped, uint32_t index)
{
    return &stepped->system->threads[index];
}

void domt_stepped_iterate(domt_stepped *stepped, uint32_t index, bool rest)
{
    domi_thread *thread = domt_stepped_thread(stepped, index);
    domi_phase_io(thread);
    domi_phase_channels(thread);
    domi_phase_state(thread);
    if (rest)
        domi_thread_rest(thread);
}
