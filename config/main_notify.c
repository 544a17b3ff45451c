/* Tells a supervisor the states of a program of domus_main() (main_parts.h).
 *
 * A message is never waited for. The supervisor may be slow to read, so a state that it has to
 * know, such as READY=1, is owed until it was sent: the main thread tries at once, and a thread of
 * its own, which blocks all signals, tries again.
 *
 * That thread looks at the threads of the system (domus/watchdog.h), too, and feeds the watchdog of
 * the supervisor when all of them have shown life. So the supervisor ends a program of which one
 * thread hangs, although the others, the main one and this one go on. It sends the line of the
 * status, if it is another one than the last, and it asks for more time as long as the program
 * stops, because nobody knows beforehand how long a handler that hangs and the hooks of the
 * program hold up the end. */
#include "config/main_parts.h"

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

#define STATUS_NS   (5 * SECOND) /* time between two status lines that are sent to the supervisor */
#define FIRST_NS    SECOND       /* time from the program's start to the first status line */
#define LOOK_MAX_NS (5 * SECOND) /* longest time between two looks at the threads of the system */
#define LOOK_MIN_NS MS
/* number of looks at the threads within the time of the supervisor's watchdog */
#define LOOKS 8u
/* number of looks at the threads in the watchdog's time while a thread shows no life, so that the
 * end of its run is seen */
#define LOOKS_SILENT 64u
/* While a program stops, it asks the supervisor for EXTEND_NS more again and again, so a thread
 * that gets no CPU for a while is no harm. */
#define EXTEND_NS       (10 * SECOND)
#define EXTEND_EVERY_NS (500 * MS)
/* first time between two tries to send an owed message; it doubles */
#define RETRY_MIN_NS (10 * MS)
#define RETRY_MAX_NS SECOND
/* time after which the log gets a line of a message that is still owed */
#define OWED_TOLD_NS SECOND
/* the longest wait for owed messages to be sent at the end of the program */
#define LAST_WAIT_NS SECOND

static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", NULL};

static domi_notify to = {.fd = -1};
static char warning[160]; /* fault of the supervisor's environment variables; "": there is none */
static uint64_t watchdog_ns; /* longest silence of the program that the supervisor allows; 0: any */

/* The next variables are constant while the notifying thread runs. */
static domus_system *system_told;
static domi_sink *log_told;
static domus_watchdog *watchdog; /* NULL: the supervisor's watchdog is not fed */
static pthread_t thread;
static bool has_thread;

/* The mutex guards all variables below, and is held while the system is looked at. The notifying
 * thread sleeps on `changed`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct state {
    bool is_ready;
    bool is_stopping;
    bool is_over;    /* whether the system must not be looked at any more */
    bool is_closing; /* whether the notifying thread has to end */
    bool is_refused; /* whether the last reload of the configuration was refused */
    /* whether a state message has brought a status since the thread sent its own status line */
    bool is_stale;
    /* times at which the next look at the threads, status line and request for more time are due */
    uint64_t look_ns, status_ns, extend_ns;
} is;

/* The messages that are owed to the supervisor, to be sent in this order. "": there is none of this
 * kind. */
static struct owed {
    char reloading[64];
    char ready[128];
    char stopping[96];
    char alive[16];
    uint64_t since_ns; /* time of the first try to send that failed; 0: none has */
    uint64_t retry_ns; /* time of the next try to send what is owed */
    bool is_told;      /* whether the log has a line about this failure */
} owed;

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* --- the start -------------------------------------------------------------------------------- */

/* Read the time of the supervisor's watchdog, which counts only for the process that its variable
 * names. */
static void read_watchdog_time(void)
{
    uint64_t us = 0;
    int is_own = domi_environment_names_this_process("WATCHDOG_PID");
    int result = domi_environment_read_number("WATCHDOG_USEC", UINT64_MAX / 1000, &us);

    if (is_own == 0 || result == -ENOENT)
        return;
    if (is_own == -EINVAL || result != 0)
        snprintf(warning, sizeof warning,
                 "WATCHDOG_USEC or WATCHDOG_PID is no number: no "
                 "watchdog is fed");
    else
        /* a time of 0 means that there is no watchdog, as in sd_watchdog_enabled(3) */
        watchdog_ns = us * 1000;
}

void domi_main_notify_read_variables(void)
{
    const char *address = getenv("NOTIFY_SOCKET");
    int result = address != NULL ? domi_notify_open_socket(address, &to) : 0;

    warning[0] = '\0';
    watchdog_ns = 0;
    is = (struct state){.is_stale = true};
    owed = (struct owed){.since_ns = 0};
    if (result != 0)
        snprintf(warning, sizeof warning, "NOTIFY_SOCKET '%.100s': %s", address,
                 result == -EINVAL ? "is no path, and no @name" : strerror(-result));
    else if (address != NULL)
        read_watchdog_time();
    domi_environment_remove_variables(variables);
}

/* --- what is owed ----------------------------------------------------------------------------- */

/* Record that a try to send an owed message has failed. */
static void record_failed_send_of_message(int error)
{
    uint64_t now = read_monotonic_ns();

    if (owed.since_ns == 0)
        owed.since_ns = now;
    uint64_t pause_ns = now - owed.since_ns;
    if (pause_ns < RETRY_MIN_NS)
        pause_ns = RETRY_MIN_NS;
    owed.retry_ns = now + (pause_ns < RETRY_MAX_NS ? pause_ns : RETRY_MAX_NS);
    if (owed.is_told || is.is_over || now - owed.since_ns < OWED_TOLD_NS)
        return;
    owed.is_told = true;
    domi_sink_add_line(log_told,
                       "warning: the supervisor ($NOTIFY_SOCKET) takes no message: %s; it is "
                       "tried again",
                       strerror(-error));
}

/* Send one owed message to the supervisor. Returns whether it was sent, or is empty. */
static bool send_owed_message(char *text)
{
    int result = text[0] != '\0' ? domi_notify_send_message(&to, false, "%s", text) : 0;

    if (result != 0)
        record_failed_send_of_message(result);
    else
        text[0] = '\0';
    return result == 0;
}

/* Send the owed messages to the supervisor, in their order. Returns whether all were sent. Under
 * the mutex. */
static bool send_owed_messages(void)
{
    if (!send_owed_message(owed.reloading) || !send_owed_message(owed.ready) ||
        !send_owed_message(owed.stopping) || !send_owed_message(owed.alive))
        return false;
    owed.since_ns = 0;
    owed.is_told = false;
    return true;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Send the status line to the supervisor, if it differs from the one that was sent last. */
static void send_status_line_if_new(domi_rates *rates)
{
    static char last[DOMI_NOTIFY_MAX];
    char line[DOMI_NOTIFY_MAX], shown[256];

    domi_rates_write_line(rates, system_told, shown, sizeof shown);
    snprintf(line, sizeof line, "STATUS=%s%s%s", is.is_stopping ? "stopping: " : "", shown,
             is.is_refused ? "; the last reload was refused, see the log" : "");
    bool is_new = is.is_stale || strcmp(line, last) != 0;
    is.is_stale = false;
    if (is_new && domi_notify_send_message(&to, false, "%s", line) == 0)
        memcpy(last, line, sizeof last);
}

static uint64_t get_time_between_looks_at_system(bool is_silent)
{
    uint64_t between_ns = watchdog_ns / (is_silent ? LOOKS_SILENT : LOOKS);

    if (between_ns > LOOK_MAX_NS)
        return LOOK_MAX_NS;
    return between_ns < LOOK_MIN_NS ? LOOK_MIN_NS : between_ns;
}

/* Feed the supervisor's watchdog if all threads of the system have shown life since it was fed
 * last. Returns whether they have. */
static bool feed_supervisors_watchdog(void)
{
    if (domus_watchdog_look(watchdog) != 0)
        return false;
    snprintf(owed.alive, sizeof owed.alive, "WATCHDOG=1");
    (void)send_owed_messages();
    return true;
}

static void ask_supervisor_for_more_time(const char *more)
{
    snprintf(owed.stopping, sizeof owed.stopping, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64 "%s",
             EXTEND_NS / 1000, more);
    (void)send_owed_messages();
    is.extend_ns = read_monotonic_ns() + EXTEND_EVERY_NS;
}

/* Send the messages to the supervisor that are due, and set the times of the next ones. Returns the
 * earliest of these times. */
static uint64_t send_due_messages(domi_rates *rates, uint64_t now)
{
    bool looks = is.is_ready && !is.is_over, feeds = looks && watchdog != NULL;

    if (owed.since_ns != 0 && now >= owed.retry_ns)
        (void)send_owed_messages();
    if (feeds && now >= is.look_ns)
        is.look_ns = now + get_time_between_looks_at_system(!feed_supervisors_watchdog());
    if (looks && now >= is.status_ns) {
        send_status_line_if_new(rates);
        is.status_ns = now + STATUS_NS;
    }
    if (is.is_stopping && now >= is.extend_ns)
        ask_supervisor_for_more_time("");
    const uint64_t due_ns[] = {feeds ? is.look_ns : UINT64_MAX, looks ? is.status_ns : UINT64_MAX,
                               is.is_stopping ? is.extend_ns : UINT64_MAX,
                               owed.since_ns != 0 ? owed.retry_ns : UINT64_MAX};
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < sizeof due_ns / sizeof due_ns[0]; i++)
        next_ns = due_ns[i] < next_ns ? due_ns[i] : next_ns;
    return next_ns;
}

/* Let the notifying thread sleep until `until_ns`, or until something has changed. Under the
 * mutex. */
static void sleep_until_time_or_change(uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND),
                                   .tv_nsec = (long)(until_ns % SECOND)};

    (void)pthread_cond_timedwait(&changed, &mutex, &until);
}

static void *run_thread_of_notifier(void *rates)
{
    pthread_mutex_lock(&mutex);
    while (!is.is_closing) {
        uint64_t next_ns = send_due_messages(rates, read_monotonic_ns());
        sleep_until_time_or_change(next_ns);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static int begin_notifying_thread(void)
{
    static domi_rates rates;
    pthread_condattr_t attributes;
    sigset_t all, before;

    domi_rates_begin_counting(&rates, system_told);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, run_thread_of_notifier, &rates);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    has_thread = error == 0;
    if (has_thread)
        (void)pthread_setname_np(thread, "domus-notify");
    else
        pthread_cond_destroy(&changed);
    return -error;
}

/* --- the states ------------------------------------------------------------------------------- */

int domi_main_notify_begin_thread(domus_system *system, domi_sink *sink, char *error,
                                  size_t error_size)
{
    system_told = system;
    log_told = sink;
    if (warning[0] != '\0')
        domi_sink_add_line(sink, "warning: %s", warning);
    if (to.fd < 0)
        return 0;
    int result = watchdog_ns != 0 ? domus_watchdog_new(system, &watchdog) : 0;
    if (result == 0)
        result = begin_notifying_thread();
    if (result != 0)
        snprintf(error, error_size, "no thread tells the supervisor of this program: %s",
                 strerror(-result));
    return result;
}

/* Let the notifying thread see what the caller has changed, and unlock the mutex. */
static void wake_thread_and_unlock(void)
{
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

void domi_main_notify_send_ready(void)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&mutex);
    snprintf(owed.ready, sizeof owed.ready, "READY=1\nSTATUS=started");
    (void)send_owed_messages();
    is.is_ready = true;
    is.look_ns = read_monotonic_ns();
    is.status_ns = is.look_ns + FIRST_NS;
    wake_thread_and_unlock();
}

void domi_main_notify_send_reloading(void)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&mutex);
    /* an owed READY=1 is left out, because another one follows after the reload */
    owed.ready[0] = '\0';
    snprintf(owed.reloading, sizeof owed.reloading, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             read_monotonic_ns() / 1000);
    (void)send_owed_messages();
    wake_thread_and_unlock();
}

void domi_main_notify_send_reloaded(bool is_taken)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&mutex);
    is.is_refused = !is_taken;
    is.is_stale = true;
    snprintf(owed.ready, sizeof owed.ready, "READY=1\nSTATUS=%s",
             is_taken ? "the configuration was read again" : "the reload was refused, see the log");
    (void)send_owed_messages();
    wake_thread_and_unlock();
}

void domi_main_notify_send_stopping(void)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&mutex);
    is.is_stopping = is.is_stale = true;
    ask_supervisor_for_more_time("\nSTATUS=stopping");
    wake_thread_and_unlock();
}

void domi_main_notify_end_looks_at_system(void)
{
    uint64_t until_ns = read_monotonic_ns() + LAST_WAIT_NS;

    if (has_thread) {
        pthread_mutex_lock(&mutex);
        owed.alive[0] = '\0';
        while (!send_owed_messages() && read_monotonic_ns() < until_ns)
            sleep_until_time_or_change(read_monotonic_ns() + RETRY_MIN_NS);
        is.is_over = true;
        wake_thread_and_unlock();
    }
    domus_watchdog_free(watchdog);
    watchdog = NULL;
}

void domi_main_notify_close(void)
{
    if (has_thread) {
        pthread_mutex_lock(&mutex);
        is.is_closing = true;
        wake_thread_and_unlock();
        pthread_join(thread, NULL);
        pthread_cond_destroy(&changed);
    }
    has_thread = false;
    domi_notify_close(&to);
}
