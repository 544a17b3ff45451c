/* A thread that was held up handles what arrived meanwhile before it fires overdue timers. */
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stepped.h"

#include "io/channels/channel.h"
#include "io/channels/state.h"
#include "io/channels/table.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* number of descriptors, far more than completions that the kernel shows in one enter */
#define COUNT    200u
#define PAUSE_NS (60 * DOMT_MS)

static int fds[COUNT];
static _Atomic uint32_t watched, readies, before_timer, timers;

static const domus_type pause_type = {.name = "pause"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type mute_type = {.name = "mute"};
static const domus_type ask_type = {.name = "ask", .size = sizeof(domus_address)};

static int count_ready_event(domus_stack *stack, void *self, const void *ready_)
{
    const domus_ready *ready = ready_;
    (void)self;
    ck_assert_int_eq(ready->error, 0);
    atomic_fetch_add(&readies, 1);
    return 0;
}

static int count_ticks_after_events(domus_stack *stack, void *self, const void *nothing)
{
    atomic_store(&before_timer, atomic_load(&readies));
    atomic_fetch_add(&timers, 1);
    return 0;
}

static int ignore_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int sleep_for_an_hour(domus_stack *stack, void *self, const void *nothing)
{
    return domus_sleep(stack, 3600 * 1000 * DOMT_MS, ignore_end_of_sleep);
}

static int watch_all_descriptors(domus_stack *stack, void *self)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        domus_fd_watch watch;
        ck_assert_int_eq(domus_watch_fd(stack, fds[i], POLLIN, &watch), 0);
    }
    atomic_store(&watched, 1);
    return 0;
}

/* Make all watched descriptors readable, and block the thread for a while. */
static void make_descriptors_ready_and_block(void)
{
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_int_eq(eventfd_write(fds[i], 1), 0);
    domt_pause_ns(PAUSE_NS);
}

/* Handle a message by arming a timer and working until after it is due. */
static int arm_timer_and_block_past_it(domus_stack *stack, void *self, const void *nothing)
{
    int result = domus_after(stack, DOMT_MS, &tick_type, NULL, NULL);
    make_descriptors_ready_and_block();
    return result;
}

static const domus_behaviour watcher = {
    .name = "watcher",
    .on = (const domus_on[]){{&domus_ready_type, count_ready_event, 0},
                             {&pause_type, arm_timer_and_block_past_it, 0},
                             {&tick_type, count_ticks_after_events, 0},
                             {&mute_type, sleep_for_an_hour, 0},
                             {0}},
    .on_mount = watch_all_descriptors};

static int expect_ask_timed_out(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ETIMEDOUT);
    return count_ticks_after_events(stack, self, NULL);
}

/* Handle a message by sending an ask and working until after its time-out. */
static int ask_and_block_past_time_out(domus_stack *stack, void *self, const void *whom)
{
    int result = domus_ask_within(stack, *(const domus_address *)whom, &mute_type, NULL,
                                  2 * DOMT_MS, expect_ask_timed_out);
    make_descriptors_ready_and_block();
    return result;
}

static const domus_behaviour asker = {
    .name = "asker", .on = (const domus_on[]){{&ask_type, ask_and_block_past_time_out, 0}, {0}}};

/* Send an ask with a time-out of an hour, so that the thread's nearest deadline is not the overdue
 * one. */
static int ask_with_time_out_of_hour(domus_stack *stack, void *self, const void *whom)
{
    return domus_ask_within(stack, *(const domus_address *)whom, &mute_type, NULL,
                            3600 * 1000 * DOMT_MS, ignore_end_of_sleep);
}

static const domus_behaviour patient = {
    .name = "patient", .on = (const domus_on[]){{&ask_type, ask_with_time_out_of_hour, 0}, {0}}};

static void check_events_come_before_timer(const domus_behaviour *behaviour)
{
    domus_config config = domt_config_of_threads(1);
    /* a run may handle so many messages that the watcher handles all events in one run */
    config.scheduler.messages_per_run_max = 2 * COUNT;
    domus_system *system = domt_start_system(&config);

    for (uint32_t i = 0; i < COUNT; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
        ck_assert_int_ge(fds[i], 0);
    }
    domus_address actor = domt_spawn(system, 0, &watcher, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&watched) == 1);
    if (behaviour == &watcher)
        domt_send_notice(system, domt_spawn(system, 0, &patient, NULL), &ask_type, &actor);
    /* wait, because the polls are armed by the enter of the next park */
    domt_pause_ns(5 * DOMT_MS);
    if (behaviour == &watcher)
        domt_send_notice(system, actor, &pause_type, NULL);
    else
        domt_send_notice(system, domt_spawn(system, 0, behaviour, NULL), &ask_type, &actor);
    DOMT_WAIT_FOR(10, atomic_load(&timers) == 1);
    /* At least one event of each descriptor came before the timer; on a slow thread more, because
     * the descriptors stay readable. */
    ck_assert_uint_ge(atomic_load(&before_timer), COUNT);
    domt_end_system(system);
    for (uint32_t i = 0; i < COUNT; i++)
        close(fds[i]);
}

DOMT_TEST(events_that_arrived_during_a_pause_come_before_the_timer)
{
    check_events_come_before_timer(&watcher);
}

DOMT_TEST(events_that_arrived_during_a_pause_come_before_an_ask_expires)
{
    check_events_come_before_timer(&asker);
}

/* --- on a virtual clock ----------------------------------------------------------------------- */

static const domus_behaviour serving = {.name = "serving", .kind = DOMUS_CHANNELS};

/* Run a phase of the stepped thread that reaps `completions`, while `takes_ns` pass on the
 * clock. */
static void reap_completions_for_time(domt_stepped *stepped, uint32_t completions,
                                      uint64_t takes_ns, void (*phase)(domi_thread *thread))
{
    stepped->rings[0].completions = completions;
    stepped->rings[0].reap_takes_ns = takes_ns;
    phase(domt_stepped_thread(stepped, 0));
}

/* Bytes of a channel count as having come at the thread's last known time. If the thread was
 * blocked since then, that time is long ago, so for bytes that were just reaped the time must be
 * read anew. */
DOMT_TEST(bytes_reaped_after_a_pause_count_as_come_after_it)
{
    domus_config config = domt_config_of_threads(1);
    domt_stepped stepped;

    config.io.ring_entries = 16;
    config.io.completion_entries = 32;
    domt_stepped_init(&stepped, &config);
    domi_thread *thread = domt_stepped_thread(&stepped, 0);
    domus_address actor = domt_spawn(stepped.system, 0, &serving, NULL);
    domt_stepped_iterate(&stepped, 0, false);
    atomic_fetch_add(&thread->io.connections, 1);
    ck_assert_int_eq(
        domi_channel_adopt_connection(&thread->io, actor.house,
                                      &(domi_connection){.fd = eventfd(0, EFD_CLOEXEC)}),
        0);
    domus_channel *channel = thread->io.slots[0].channel;
    channel->paused = true; /* paused, because the stepped ring has no receives */

    /* Bytes can be reaped in three ways: in phase 1, by a timer that is due, and by a timer that
     * has to wait because there are more completions than one reap takes. */
    for (uint32_t way = 0; way < 3; way++) {
        void (*phase)(domi_thread *) =
            way != 0 ? domi_thread_run_phase_channels : domi_thread_run_phase_io;
        for (uint32_t ms = 5; ms <= 20; ms += 15) {
            uint64_t before_ns = thread->manager.now_ns;
            if (way != 0)
                domi_wheel_arm_node(&thread->io.wheel, &channel->timer.node, before_ns);
            channel->active_ns = before_ns;
            thread->next_tick_ns = 0;
            reap_completions_for_time(&stepped, way == 2 ? 33 : 1, ms * DOMT_MS, phase);
            ck_assert_uint_eq(thread->manager.now_ns, before_ns + ms * DOMT_MS);
            ck_assert_uint_eq(channel->active_ns, before_ns + (ms > 10 ? ms * DOMT_MS : 0));
            domi_wheel_disarm_node(&thread->io.wheel, &channel->timer.node);
        }
        channel->active_ns = 1; /* a time so long ago that no pause of the thread explains it */
        reap_completions_for_time(&stepped, 1, 20 * DOMT_MS, domi_thread_run_phase_io);
        ck_assert_uint_eq(channel->active_ns, 1);
    }
    domi_channel_end_at_once(channel, -ECONNABORTED, true);
    domt_stepped_iterate(&stepped, 0, false);
    ck_assert_uint_eq(thread->io.open, 0);
    domt_stepped_fini(&stepped);
}

DOMT_SUITE(30)
