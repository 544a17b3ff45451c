/* Fairness on a real thread: beside each load (tests/runtime/load.h) and at each ioRatio, a
 * connection is echoed, a timer fires, and a light actor answers, within so many iterations of the
 * loop and so many milliseconds.
 *
 * The machine is shared, so medians are checked, and their bounds are many times what the design
 * gives: an actor that starves waits for ever, or as long as the load lasts. */
#include "tests/runtime/load.h"
#include "tests/support/crowd.h"

#include "house/conversation/stack.h"
#include "runtime/system/thread.h"

#include <domus/channel.h>

#include <stdio.h>
#include <unistd.h>

#define SAMPLES (DOMT_SANITIZED ? 5u : 11u)
#define WAIT_MS (DOMT_SANITIZED ? 1000u : 250u)

/* Most iterations until an answer: one in which the bytes are read, one more in which an answer may
 * be read late, and one in which the question just came too late. */
#define ITERATIONS_MAX 3u

/* An echo whose median time is shorter than this may take more iterations, because the send itself
 * takes about as long. */
#define SHORT_NS DOMT_MS

/* The ratios that are tested; under a sanitizer only the first two, because a load uses its CPU for
 * as long as it is measured. */
static const uint32_t ratios[] = {1, 100, DOMUS_IO_RATIO_AUTO, 50, 99};

static const domus_type hello_type = {.name = "hello"};
static const domus_type tick_type = {.name = "tick"};

static struct {
    /* number of the thread's iteration in which the connection was last read */
    _Atomic uint64_t iteration;
    /* number of ticks of the timer of the witness (the actor that is watched) */
    _Atomic uint64_t ticks;
    /* for the last ticks of the witness's timer, how many ns each was late */
    _Atomic uint64_t late_ns[SAMPLES];
} seen;

static uint64_t iterations_of_thread(const domus_stack *stack)
{
    const domi_thread *thread = stack->manager->thread;

    return domi_counter_read(&thread->counters.iterations);
}

static int echo_and_record_iteration(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    atomic_store(&seen.iteration, iterations_of_thread(stack));
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echoer = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {echo_and_record_iteration, 0}};

static int reply_hello(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &hello_type, NULL);
}

static int record_delay_of_tick(domus_stack *stack, void *self, const void *nothing)
{
    uint64_t *due_ns = self;
    uint64_t now_ns = domt_now_ns();
    uint64_t late_ns = now_ns > *due_ns ? now_ns - *due_ns : 0;

    atomic_store(&seen.late_ns[atomic_load(&seen.ticks) % SAMPLES], late_ns);
    atomic_fetch_add(&seen.ticks, 1);
    *due_ns = now_ns + 2 * DOMT_MS;
    return domus_after(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static int begin_ticking_in_mount(domus_stack *stack, void *self)
{
    *(uint64_t *)self = domt_now_ns() + 2 * DOMT_MS;
    return domus_after(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour light = {.name = "light",
                                      .state_size = sizeof(uint64_t),
                                      .on =
                                          (const domus_on[]){{&hello_type, reply_hello, 0},
                                                             {&tick_type, record_delay_of_tick, 0},
                                                             {0}},
                                      .on_mount = begin_ticking_in_mount};

static int compare_numbers_by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

static uint64_t find_median_of_samples(uint64_t *values)
{
    qsort(values, SAMPLES, sizeof *values, compare_numbers_by_size);
    return values[SAMPLES / 2];
}

static void check_median_of_times(const char *what, domt_load load, uint32_t ratio, uint64_t *ns)
{
    uint64_t took_ns = find_median_of_samples(ns);

    ck_assert_msg(took_ns <= WAIT_MS * DOMT_MS, "beside %s, ioRatio %u: %s after %lu us",
                  domt_load_names[load], ratio, what, (unsigned long)(took_ns / 1000));
    if (getenv("DOMT_VERBOSE") != NULL)
        printf("%-45s ratio %3u %-6s %8lu us (longest %lu)\n", domt_load_names[load], ratio, what,
               (unsigned long)(took_ns / 1000), (unsigned long)(ns[SAMPLES - 1] / 1000));
}

static void check_echo_is_in_time(domus_system *system, uint16_t port, domt_load load,
                                  uint32_t ratio)
{
    uint64_t ns[SAMPLES];
    uint64_t iterations[SAMPLES];
    int fd = domt_connect_to_port(port);

    /* after the first echo the channel is open */
    ck_assert(domt_send_and_get_echo(fd, "first"));
    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint64_t began_ns = domt_now_ns();
        uint64_t iteration = domt_profile_of_thread(system, 0).iterations;
        ck_assert(domt_send_and_get_echo(fd, "hello"));
        iterations[i] = atomic_load(&seen.iteration) - iteration;
        ns[i] = domt_now_ns() - began_ns;
    }
    (void)close(fd);
    check_median_of_times("echo", load, ratio, ns);
    uint64_t took = find_median_of_samples(iterations);
    ck_assert_msg(took <= ITERATIONS_MAX || find_median_of_samples(ns) <= SHORT_NS,
                  "beside %s, ioRatio %u: read after %lu iterations", domt_load_names[load], ratio,
                  (unsigned long)took);
}

static void check_answer_is_in_time(domus_system *system, domus_address witness, domt_load load,
                                    uint32_t ratio)
{
    uint64_t ns[SAMPLES];

    for (uint32_t i = 0; i < SAMPLES; i++) {
        domus_outside_reply reply = {0};
        uint64_t began_ns = domt_now_ns();
        ck_assert_int_eq(domus_outside_ask(system, witness, &hello_type, NULL, 0, &reply), 0);
        ns[i] = domt_now_ns() - began_ns;
    }
    check_median_of_times("answer", load, ratio, ns);
}

static void check_timer_rings_in_time(domt_load load, uint32_t ratio)
{
    uint64_t ns[SAMPLES];
    uint64_t before = atomic_load(&seen.ticks);

    DOMT_WAIT_FOR(20, atomic_load(&seen.ticks) >= before + SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++)
        ns[i] = atomic_load(&seen.late_ns[i]);
    check_median_of_times("timer", load, ratio, ns);
}

static void check_service_at_io_ratio(domt_load load, uint32_t ratio)
{
    const domus_listener_config listener = {
        .name = "echo", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config_of_threads(1);
    uint16_t port = 0;

    config.scheduler.io_ratio = ratio;
    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(domus_serve(system, "echo", &echoer, NULL, &port), 0);
    domus_address witness = domt_spawn(system, 0, &light, NULL);
    domt_load_spawn_actors_and_begin(system, load);
    DOMT_WAIT_FOR(20, atomic_load(&domt_load_handled) > 2000);
    uint64_t before = atomic_load(&domt_load_handled);
    check_echo_is_in_time(system, port, load, ratio);
    check_answer_is_in_time(system, witness, load, ratio);
    check_timer_rings_in_time(load, ratio);
    /* the load has worked during the whole measurement */
    ck_assert_uint_gt(atomic_load(&domt_load_handled), before);
    if (load == DOMT_FLOOD_OF_ASKS || load == DOMT_FLOOD_OF_NOTICES)
        ck_assert_uint_gt(atomic_load(&domt_load_ticks), 0);
    domt_load_end();
    domt_end_system(system);
}

static void check_service_beside_load(domt_load load)
{
    size_t count = DOMT_SANITIZED ? 2 : sizeof ratios / sizeof ratios[0];

    for (size_t i = 0; i < count; i++)
        check_service_at_io_ratio(load, ratios[i]);
}

DOMT_TEST(flood_of_notices_delays_nobody_for_long)
{
    check_service_beside_load(DOMT_FLOOD_OF_NOTICES);
}

DOMT_TEST(flood_of_asks_delays_nobody_for_long)
{
    check_service_beside_load(DOMT_FLOOD_OF_ASKS);
}

DOMT_TEST(state_actors_that_answer_each_other_delay_nobody_for_long)
{
    check_service_beside_load(DOMT_STATE_PING);
}

DOMT_TEST(channels_actors_that_answer_each_other_delay_nobody_for_long)
{
    check_service_beside_load(DOMT_CHANNELS_PING);
    check_service_beside_load(DOMT_CHANNELS_RING);
}

DOMT_TEST(self_senders_delay_nobody_for_long)
{
    check_service_beside_load(DOMT_STATE_SELF);
    check_service_beside_load(DOMT_CHANNELS_SELF);
}

DOMT_TEST(hundred_thousand_ready_delay_nobody_for_long)
{
    check_service_beside_load(DOMT_MANY_READY);
}

DOMT_SUITE(60)
