/* Tells a supervisor how the program is; see the header.
 *
 * The main thread sends the changes of state itself. A thread of its own, which blocks all signals,
 * looks at the threads of the system (domus/watchdog.h) and feeds the watchdog of the supervisor
 * when all of them have shown life. So the supervisor ends a program of which one thread hangs,
 * although the others, the main one and this one go on. The same thread sends the line of the
 * status, if it is another one than the last. */
#include "config/main_notify.h"

#include "config/environment.h"
#include "config/notify.h"
#include "config/rates.h"

#include <domus/watchdog.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

#define STATUS_NS   (5 * SECOND) /* between two lines of the status */
#define FIRST_NS    SECOND       /* from the start to the first one */
#define LOOK_MAX_NS (5 * SECOND) /* between two looks at the threads */
#define LOOK_MIN_NS MS
#define LOOKS       8u /* in the time of the watchdog */
/* what the end takes beside the drain: hooks of the program, the table of the profile, the log */
#define LAST_NS (5 * SECOND)

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", NULL};

static domi_notify to = {.fd = -1};
static char warning[160];    /* what is wrong with the variables; "": nothing */
static uint64_t watchdog_ns; /* the longest silence that is allowed; 0: any */

/* These are the thread's, and constant while it runs. */
static domus_system *system_told;
static domi_sink *log_told;
static domus_watchdog *watchdog; /* NULL: none is fed */
static pthread_t thread;
static bool has_thread;

/* The mutex guards these. The thread sleeps on `changed`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool is_ending;
static bool is_stopping;
static bool is_refused; /* the last reload was */
static bool is_stale;   /* the main thread has sent a status since the thread sent one */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* --- the start -------------------------------------------------------------------------------- */

/* Read the time of the watchdog, which counts only for the process that is named. */
static void read_watchdog(void)
{
    uint64_t us = 0;
    int is_own = domi_environment_is_own("WATCHDOG_PID");
    int result = domi_environment_number("WATCHDOG_USEC", UINT64_MAX / 1000, &us);

    if (is_own == 0 || result == -ENOENT)
        return;
    if (is_own == -EINVAL || result != 0 || us == 0)
        snprintf(warning, sizeof warning,
                 "WATCHDOG_USEC or WATCHDOG_PID is no number: no "
                 "watchdog is fed");
    else
        watchdog_ns = us * 1000;
}

void domi_main_notify_read(void)
{
    const char *address = getenv("NOTIFY_SOCKET");
    int result = address != NULL ? domi_notify_open(address, &to) : 0;

    warning[0] = '\0';
    watchdog_ns = 0;
    is_ending = is_stopping = is_refused = false;
    is_stale = true;
    if (result != 0)
        snprintf(warning, sizeof warning, "NOTIFY_SOCKET '%.100s': %s", address,
                 result == -EINVAL ? "is no path, and no @name" : strerror(-result));
    else if (address != NULL)
        read_watchdog();
    domi_environment_forget(variables);
}

/* Report a message that could not be sent. */
static void note_sent(int result, const char *what)
{
    if (result != 0)
        domi_sink_add_line(log_told, "warning: the supervisor was not told %s: %s", what,
                           strerror(-result));
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Sleep until `until_ns`, or the end. Returns whether the thread goes on. Under the mutex. */
static bool sleep_until(uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND),
                                   .tv_nsec = (long)(until_ns % SECOND)};

    while (!is_ending && pthread_cond_timedwait(&changed, &mutex, &until) != ETIMEDOUT)
        continue;
    return !is_ending;
}

/* Send the line of the status, if it is another one than what was sent last. */
static void tell_status(domi_rates *rates)
{
    static char last[DOMI_NOTIFY_MAX];
    char line[DOMI_NOTIFY_MAX], shown[256];

    domi_rates_write(rates, system_told, shown, sizeof shown);
    pthread_mutex_lock(&mutex);
    snprintf(line, sizeof line, "STATUS=%s%s%s", is_stopping ? "stopping: " : "", shown,
             is_refused ? "; the last reload was refused, see the log" : "");
    bool is_new = is_stale || strcmp(line, last) != 0;
    is_stale = false;
    pthread_mutex_unlock(&mutex);
    if (is_new && domi_notify_send(&to, false, "%s", line) == 0)
        memcpy(last, line, sizeof last);
}

static uint64_t time_between_looks(void)
{
    uint64_t between_ns = watchdog_ns / LOOKS;

    if (watchdog == NULL)
        return UINT64_MAX;
    if (between_ns > LOOK_MAX_NS)
        return LOOK_MAX_NS;
    return between_ns < LOOK_MIN_NS ? LOOK_MIN_NS : between_ns;
}

/* Feed the supervisor's watchdog if all threads have shown life since it was fed. */
static void feed_watchdog(void)
{
    if (watchdog != NULL && domus_watchdog_look(watchdog) == 0)
        (void)domi_notify_send(&to, false, "WATCHDOG=1");
}

/* Do what is due, and set the times at which it is due again. */
static void look(domi_rates *rates, uint64_t now, uint64_t *look_ns, uint64_t *status_ns)
{
    if (now >= *look_ns) {
        feed_watchdog();
        *look_ns = now + time_between_looks();
    }
    if (now >= *status_ns) {
        tell_status(rates);
        *status_ns = now + STATUS_NS;
    }
}

static void *run_notifier(void *rates)
{
    uint64_t look_ns = watchdog != NULL ? now_ns() : UINT64_MAX;
    uint64_t status_ns = now_ns() + FIRST_NS;

    pthread_mutex_lock(&mutex);
    while (sleep_until(look_ns < status_ns ? look_ns : status_ns)) {
        pthread_mutex_unlock(&mutex);
        look(rates, now_ns(), &look_ns, &status_ns);
        pthread_mutex_lock(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int begin_thread(void)
{
    static domi_rates rates;
    pthread_condattr_t attributes;
    sigset_t all, before;

    domi_rates_begin(&rates, system_told);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, run_notifier, &rates);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        (void)pthread_setname_np(thread, "domus-notify");
    return -error;
}

/* --- the states ------------------------------------------------------------------------------- */

void domi_main_notify_ready(domus_system *system, domi_sink *sink)
{
    system_told = system;
    log_told = sink;
    if (warning[0] != '\0')
        domi_sink_add_line(sink, "warning: %s", warning);
    if (to.fd < 0)
        return;
    note_sent(domi_notify_send(&to, true, "READY=1\nSTATUS=started"), "that the program is ready");
    int result = watchdog_ns != 0 ? domus_watchdog_new(system, &watchdog) : 0;
    if (result == 0)
        result = begin_thread();
    has_thread = result == 0;
    if (!has_thread)
        domi_sink_add_line(sink, "warning: no thread tells the supervisor of this program: %s",
                           strerror(-result));
}

void domi_main_notify_reloading(void)
{
    if (to.fd >= 0)
        note_sent(
            domi_notify_send(&to, true, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns() / 1000),
            "of a reload");
}

void domi_main_notify_reloaded(bool is_taken)
{
    if (to.fd < 0)
        return;
    pthread_mutex_lock(&mutex);
    is_refused = !is_taken;
    is_stale = true;
    pthread_mutex_unlock(&mutex);
    note_sent(domi_notify_send(&to, true, "READY=1\nSTATUS=%s",
                               is_taken ? "the configuration was read again"
                                        : "the reload was refused, see the log"),
              "of the end of a reload");
}

/* Returns how long the end may take: the system waits for a thread that is stuck when it is
 * stopped, and once more when it is freed. */
static uint64_t time_of_end(const domus_config *config)
{
    return config->shutdown.drain_timeout_ns + 2 * config->shutdown.actor_timeout_ns +
           config->log.flush_timeout_ns + LAST_NS;
}

void domi_main_notify_stopping(void)
{
    if (to.fd < 0)
        return;
    pthread_mutex_lock(&mutex);
    is_stopping = is_stale = true;
    pthread_mutex_unlock(&mutex);
    note_sent(domi_notify_send(&to, true,
                               "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=%" PRIu64,
                               time_of_end(domus_system_config(system_told)) / 1000),
              "that the program stops");
}

void domi_main_notify_end(void)
{
    if (has_thread) {
        pthread_mutex_lock(&mutex);
        is_ending = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&mutex);
        pthread_join(thread, NULL);
        pthread_cond_destroy(&changed);
    }
    has_thread = false;
    domus_watchdog_free(watchdog);
    watchdog = NULL;
    domi_notify_close(&to);
}
