/* An idle service uses almost no CPU: at most 10 ms in a minute. The test measures for some
 * seconds, and for a minute if DOMT_LONG is 1. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_MS 200

static domt_service service;

static uint32_t ms_to_measure(void)
{
    const char *long_form = getenv("DOMT_LONG");

    return long_form != NULL && strcmp(long_form, "1") == 0 ? 60000 : 2000;
}

/* On a busy machine each wake-up costs more, so the limit of CPU time allows some on top. A timer
 * that wakes the service again and again shows in the number of sleeps, which does not depend on
 * the machine. It is enough that one of a few spans of time is quiet: a cause within the service
 * wakes it in each span, and a paused machine does not. The threads and checks of sanitizers are
 * not measured. */
#define SPANS      3u
#define STOP_STEPS 5u
#define SLACK_MS   2.0
/* largest number of times in a second that a service looks at its memory limits */
#define LOOKS_MAX 16u
#define STEPS_MAX 20u /* largest number of parks during start and stop */

/* Wait for the time of a measurement, and return its length in ms. */
static uint32_t check_cpu_use_of_idle_service(void)
{
    uint32_t ms = ms_to_measure(), span = 0;
    double limit_ms = (10.0 * ms / 60000 + SLACK_MS) * DOMT_SCALE(1, 20);
    double used_ms = INFINITY;

    domt_sleep_ms(SETTLE_MS);
    for (; used_ms > limit_ms && span < SPANS; span++) {
        uint64_t before_ns = domt_service_cpu_ns(&service);
        domt_sleep_ms(ms);
        used_ms = (double)(domt_service_cpu_ns(&service) - before_ns) / 1e6;
    }
    ck_assert_msg(used_ms <= limit_ms, "%.2f ms of CPU in %u ms", used_ms, ms);
    return span * ms;
}

DOMT_TEST(a_service_without_connections_sleeps)
{
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS());
    uint32_t ms = check_cpu_use_of_idle_service();
    domt_service_stop(&service);
    /* A thread may see a step of the stop before it is woken for that step; the wake-up then counts
     * as empty. */
    ck_assert_uint_le(domt_service_count_in_profile(&service, "wake-ups empty"), STOP_STEPS);
    ck_assert_uint_le(domt_service_count_in_profile(&service, "parks"),
                      LOOKS_MAX * ms / 1000 + STEPS_MAX);
}

/* largest number of timers of all threads in 2 s: those that the first request has started */
#define TIMERS_MAX 4u

/* Let the service print its profile. Returns how many timers have fired since its start. */
static uint64_t count_fired_timers(domt_service *service_)
{
    domt_service_signal(service_, SIGUSR1);
    domt_sleep_ms(SETTLE_MS);
    domt_service_read_error(service_);
    return domt_service_count_in_profile(service_, "timers fired");
}

/* Idle time-outs of connections that are not due wake no thread. */
DOMT_TEST(a_service_with_silent_connections_sleeps)
{
    enum { COUNT = 100 };
    int fds[COUNT];

    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "channel.idleTimeout=1h", ));
    for (int i = 0; i < COUNT; i++) {
        fds[i] = domt_connect_to_port(service.port);
        ck_assert(domt_send_and_get_echo(fds[i], "hello"));
    }
    (void)check_cpu_use_of_idle_service();
    for (int i = 0; i < COUNT; i++)
        ck_assert(domt_send_and_get_echo(fds[i], "still there?"));
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
    domt_service_stop(&service);
}

/* Without users and viewers, neither the key-value store nor the pages of the site have a timer. */
DOMT_TEST(a_site_that_nobody_uses_fires_no_timers)
{
    static domt_site site;

    domt_site_start_program(&site, (const char *const[]){NULL});
    domt_site_expect_answer(&site, "PUT /kv/a", "one", 204, NULL);
    domt_sleep_ms(SETTLE_MS);
    uint64_t before = count_fired_timers(&site.service);
    domt_sleep_ms(2000);
    uint64_t fired = count_fired_timers(&site.service) - before;
    ck_assert_msg(fired <= TIMERS_MAX, "%llu timers fired in 2 s", (unsigned long long)fired);
    domt_site_stop_program(&site);
}

DOMT_SUITE(400)
