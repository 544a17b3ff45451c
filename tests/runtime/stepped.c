/* The ring that shows only the completions that a test has set and checks M3 (docs/contract.md),
 * and the iterations of threads that do not exist (tests/runtime/stepped.h). */
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

void domt_stepped_advance_clock(domt_stepped *stepped, uint64_t by_ns)
{
    domi_clock_advance_virtual(&stepped->system->clock, by_ns);
}

/* --- the ring --------------------------------------------------------------------------------- */

static int stepped_open_ring(const domus_config *config, char *error, size_t error_size,
                             void **ret_ring)
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

static int stepped_start_ring(void *ring)
{
    return 0;
}

static void stepped_close_ring(void *ring)
{
}

/* Check M3 before a sleep: the thread has forgotten none of the things that it has to do. */
static void check_nothing_left_to_do(const domt_ring *ring, uint64_t timeout_ns)
{
    domi_thread *thread = ring->thread;
    domi_manager *manager = &thread->manager;
    uint64_t now_ns = domt_stepped_now_ns(current);
    uint64_t due_ns = domi_wheel_next_ns(&manager->timing.wheel);

    ck_assert_uint_eq(manager->schedule.ready[DOMUS_STATE].count, 0);
    ck_assert_uint_eq(manager->schedule.ready[DOMUS_CHANNELS].count, 0);
    ck_assert_ptr_null(manager->schedule.mounting.head);
    ck_assert_ptr_null(atomic_load(&manager->mail.arrivals));
    /* objects of other threads have been sent back to their homes */
    ck_assert_uint_eq(manager->pool.chained, 0);
    ck_assert_uint_eq(ring->completions, 0);
    ck_assert_ptr_null(thread->io.dirty);
    ck_assert(thread->io.wake_armed);
    ck_assert(domi_park_is_word_of_sleeper(atomic_load(&manager->park)));
    ck_assert_uint_eq(atomic_load(&thread->system->orders), thread->orders);
    ck_assert(!domi_thread_is_woken_to_steal(thread));
    ck_assert_uint_le(timeout_ns, UINT64_C(1000000000)); /* no sleep is longer than the cap */
    ck_assert(due_ns > now_ns);
    ck_assert(due_ns == UINT64_MAX || timeout_ns <= due_ns - now_ns);
}

static int stepped_enter_ring(void *ring_, uint32_t min_complete, uint64_t timeout_ns)
{
    domt_ring *ring = ring_;

    ring->enters++;
    ring->queued = false;
    if (min_complete == 0)
        return 0;
    check_nothing_left_to_do(ring, timeout_ns);
    ring->sleeps++;
    ring->sleep_ns = timeout_ns;
    if (current->on_sleep != NULL)
        current->on_sleep(current, ring->thread->manager.index);
    else
        domt_stepped_advance_clock(current, timeout_ns);
    return 0;
}

/* Show the completions that the test has set: completions of a cancel, which nobody waits for, and
 * then completions of the wake poll. */
static uint32_t stepped_reap_completions(void *ring_, domi_completion *completions, uint32_t max)
{
    domt_ring *ring = ring_;
    uint32_t count = 0;

    for (; count < max && ring->completions != 0; ring->completions--)
        completions[count++] = (domi_completion){
            .user_data = domi_op_user_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX),
        };
    for (; count < max && ring->wake_completions != 0; ring->wake_completions--)
        completions[count++] = (domi_completion){
            .user_data = domi_op_user_data(DOMI_OP_WAKE, 0, 0),
            .flags = DOMI_MORE,
        };
    if (count != 0)
        domt_stepped_advance_clock(current, ring->reap_takes_ns);
    return count;
}

static bool stepped_ready_to_reap(const void *ring)
{
    return ((const domt_ring *)ring)->completions + ((const domt_ring *)ring)->wake_completions !=
           0;
}

static bool stepped_pending_operations(void *ring)
{
    return ((domt_ring *)ring)->queued;
}

static void stepped_poll_wake_descriptor(void *ring, int fd, uint64_t user_data)
{
    ((domt_ring *)ring)->queued = true;
    ((domt_ring *)ring)->polls++;
    if (current->on_poll != NULL)
        current->on_poll(current, ((domt_ring *)ring)->thread->manager.index);
}

static void stepped_forget_nothing(void *ring, int fd)
{
}

static void stepped_cancel_operation(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    ((domt_ring *)ring)->queued = true;
    ((domt_ring *)ring)->cancels++;
}

static void stepped_give_no_buffer(void *ring, uint16_t index, void *data, uint32_t size)
{
}

static void stepped_publish_no_buffers(void *ring)
{
}

/* The stepped system has no connections, so an accept, a receive or a send on its ring is a bug. */
static void abort_on_accept(void *ring, int fd, uint64_t user_data)
{
    ck_abort_msg("an accept in the stepped ring");
}

static void abort_on_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    ck_abort_msg("a receive in the stepped ring");
}

static void abort_on_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    ck_abort_msg("a send in the stepped ring");
}

static void abort_on_send_message(void *ring, int fd, const struct msghdr *message,
                                  uint64_t user_data)
{
    ck_abort_msg("a send of a message in the stepped ring");
}

const domi_backend domt_stepped_ring = {
    .name = "stepped",
    .sockets = &domi_kernel_sockets,
    .open = stepped_open_ring,
    .start = stepped_start_ring,
    .close = stepped_close_ring,
    .enter = stepped_enter_ring,
    .reap = stepped_reap_completions,
    .ready = stepped_ready_to_reap,
    .pending = stepped_pending_operations,
    .accept = abort_on_accept,
    .receive = abort_on_receive,
    .poll = stepped_poll_wake_descriptor,
    .send = abort_on_send,
    .send_message = abort_on_send_message,
    .cancel = stepped_cancel_operation,
    .forget = stepped_forget_nothing,
    .give = stepped_give_no_buffer,
    .publish = stepped_publish_no_buffers,
};

/* --- the system ------------------------------------------------------------------------------- */

/* Count that a sleeping thread was woken; the test itself runs that thread. */
static void count_wake_of_thread(domi_manager *manager)
{
    current->rings[manager->index].wakes++;
}

const domi_runtime_hooks domt_hooks_of_stepped = {.wake = count_wake_of_thread,
                                                  .log = domi_log_what_happened_to_actor,
                                                  .warn = domi_log_mistake_of_user,
                                                  .say = domi_log_text_for_manager,
                                                  .spawn_detached = domi_detached_spawn_actor,
                                                  .withdraw = domi_blocking_withdraw_work,
                                                  .read_memory = domi_pressure_read_levels,
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
        ck_assert_int_eq(domi_io_start_ring(&thread->io), 0);
    }
    system->stage = DOMI_STAGE_RUNNING;
}

void domt_stepped_init_default(domt_stepped *stepped, uint32_t threads)
{
    domus_config config;
    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = "none";
    config.io.buffers.count = 16; /* few buffers, because the stepped ring uses none */
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
    domi_thread_run_phase_io(thread);
    domi_thread_run_phase_channels(thread);
    domi_thread_run_phase_state(thread);
    if (rest)
        domi_thread_rest_until_work(thread);
}
