/* Runs the program of domus_main() from the start of its system to the exit status.
 *
 * The main thread waits for signals, which are blocked in all other threads. When one ends the
 * program, the main thread stops the system, because the program's hooks run there, and a thread of
 * its own waits for signals meanwhile. No signal handler runs, so nothing here has to be safe in
 * one. Neither thread writes anything itself, because the reader of standard error may have stopped
 * reading: they hand everything to the sink (config/sink.h), whose thread writes. */
#include "config/main_parts.h"

#include "config/descriptors.h"
#include "config/sink.h"

#include <domus/cpu_profile.h>
#include <domus/trace.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds after a first signal within which a second one does not count: supervisors may send a
 * signal twice within milliseconds and mean one. */
#define SAME_NS UINT64_C(1000000000)
/* Nanoseconds that a program which ends at once, after a second signal, waits for its last line to
 * be written. */
#define LAST_WORDS_NS UINT64_C(100000000)
/* Most nanoseconds that the thread which answers signals in the drain sleeps at a time. */
#define DRAIN_LOOK_NS 100000000L
/* bytes of the text of a dump, besides those for each thread */
#define DUMP_BYTES (1024u * 1024)
#define ERROR_SIZE 512

/* These three variables belong to the process, because a process has one domus_main() at a time.
 * `quit_status` is -1 until somebody asks to quit. `waiter` is the thread that waits for signals;
 * it gets the signals, because the other threads block them. */
static atomic_int quit_status = -1;
static _Atomic pthread_t waiter;
static atomic_bool has_waiter;

typedef struct running {
    const struct domi_arguments *arguments; /* the command line of the program */
    const domus_program *program; /* the description of the program, an argument of domus_main() */
    const domus_yaml *read;       /* the reader with the configuration of the start */
    const domus_config *given;    /* the values of the configuration that were read */
    domus_system *system;         /* the system that runs the program */
    domi_sink *sink;              /* sink that gets the program's log lines */
    /* source from which viewers read log lines; all 0: there is none */
    domus_log_source log;
    sigset_t signals; /* the set of signals for which domus_main() waits */
    /* warning that there are too few descriptors; "" if there are enough */
    char warning[256];
    int stopped; /* result of domus_system_stop(): the number of cut channels, or an error */
    /* time at which the drain began, set before the thread of handle_signals_in_drain() is made */
    uint64_t drain_began_ns;
    atomic_bool has_stopped; /* whether the thread of handle_signals_in_drain() has to end */
    uint64_t cut_before;     /* number of channels that had been cut before the drain began */
} running;

/* Send SIGTERM to the thread that waits for signals, or is about to: all block it, so it ends none.
 * A filter of system calls may refuse tgkill, and then the process gets the signal. If it refuses
 * getpid the number is -1, by which kill() would end all processes of this user. */
static void interrupt_thread_that_awaits_signals(pthread_t thread)
{
    pid_t process = getpid();

    if (pthread_kill(thread, SIGTERM) != 0 && process > 0) // NOLINT(*-kill-thread,cert-pos44-c)
        (void)kill(process, SIGTERM);
}

void domus_main_quit(int status)
{
    int none = -1;

    /* exit() uses 8 bits of a status, too; so the stored status is never -1, and the call is
     * remembered */
    if (status < 0)
        status &= 0xff;

    /* The accesses to `quit_status` and `waiter` here and in let_quit_send_signal_from_now_on() are
     * seq_cst. So either this call sees the waiter, or the waiter sees the status. A call that
     * comes before domus_main() is therefore remembered. */
    if (atomic_compare_exchange_strong(&quit_status, &none, status) && atomic_load(&has_waiter))
        interrupt_thread_that_awaits_signals(atomic_load(&waiter));
}

/* --- what is printed -------------------------------------------------------------------------- */

/* Returns the configuration of the system that holds now. */
static domus_config get_present_config(const running *own)
{
    domus_config config;

    domus_system_config_now(own->system, &config);
    return config;
}

static void print_profile(const running *own)
{
    size_t size = domus_system_profile_table(own->system, NULL, 0) + 4096;
    char *text = malloc(size);

    if (text == NULL)
        return;
    (void)domus_system_profile_table(own->system, text, size);
    domi_sink_add_text(own->sink, text);
}

static void print_dump(const running *own)
{
    size_t size = DUMP_BYTES + domus_system_threads(own->system) * (size_t)DOMUS_DUMP_BYTES_MIN;
    char *text = malloc(size);
    int result = text != NULL ? domus_dump(own->system, text, size) : -ENOMEM;

    if (result != 0) {
        domi_sink_add_line(own->sink, "no dump: %s", strerror(-result));
        free(text);
        return;
    }
    /* keep only the bytes of the dump in use, because the text may wait in the sink for a long
     * time */
    char *fitting = realloc(text, strlen(text) + 1);
    domi_sink_add_text(own->sink, fitting != NULL ? fitting : text);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void block_signals(sigset_t *ret_signals)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
    struct sigaction action;

    sigemptyset(ret_signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(ret_signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
    /* The reader of the log or of the output may go away. With SIGPIPE ignored a write then fails,
     * which is enough. */
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        (void)sigaction(SIGPIPE, &action, NULL);
    }
}

/* Answer a signal by what it asks for (a profile, a dump, a line), without ending the program. */
static void answer_signal_without_ending(const running *own, int number)
{
    if (number == SIGUSR1)
        print_profile(own);
    else if (number == SIGUSR2 || number == SIGQUIT)
        print_dump(own);
    else if (number == SIGHUP)
        domi_sink_add_line(own->sink, "SIGHUP: the program is ending: nothing is changed");
}

/* Answer signals until one comes that says that the program has to stop. */
static void handle_signals_until_end(running *own)
{
    int number = 0;
    int result;

    while ((result = sigwait(&own->signals, &number)) == 0 && number != SIGTERM &&
           number != SIGINT) {
        if (number == SIGHUP) {
            domi_main_notify_send_reloading();
            domi_main_notify_send_reloaded(
                domi_reload_config(own->arguments, own->system, own->read, own->sink));
        } else {
            answer_signal_without_ending(own, number);
        }
        if (number == SIGQUIT)
            return;
    }
    /* a filter of system calls refuses sigtimedwait(), so the program has to end */
    if (result != 0) {
        domi_sink_add_line(own->sink, "it cannot wait for signals, and ends: rt_sigtimedwait: %s",
                           strerror(result));
        domus_main_quit(DOMI_STATUS_FAILED);
    }
}

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void exit_at_second_signal(const running *own, int number)
{
    domi_sink_add_line(own->sink, "a second signal: ending at once");
    domi_sink_close(own->sink, LAST_WORDS_NS);
    _exit(128 + number);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Answer signals until the main thread has stopped the system. A second SIGTERM or SIGINT ends the
 * process, unless it comes within SAME_NS of the first or the process sent it itself. */
static void *handle_signals_in_drain(void *own_)
{
    static const struct timespec look = {.tv_nsec = DRAIN_LOOK_NS};
    running *own = own_;
    siginfo_t info;

    while (!atomic_load(&own->has_stopped)) {
        /* Signals are awaited with a time-out, because a filter of system calls may refuse the
         * signal that wakes this thread. */
        int number = sigtimedwait(&own->signals, &info, &look);
        if (number < 0 && errno != EINTR && errno != EAGAIN)
            return NULL;
        /* a signal of the process itself is told by `si_pid`, because glibc changes the si_code
         * SI_TKILL to SI_USER */
        bool is_own = number > 0 && info.si_pid == getpid();

        if (number < 0 || (is_own && (number == SIGTERM || number == SIGINT)))
            continue;
        if (number != SIGTERM && number != SIGINT) {
            if (!atomic_load(&own->has_stopped))
                answer_signal_without_ending(own, number);
        } else if (read_monotonic_ns() - own->drain_began_ns >= SAME_NS) {
            exit_at_second_signal(own, number);
        }
    }
    return NULL;
}

/* Returns how many channels were cut by the stop; with `and_open`, channels that are still open are
 * added. */
static uint64_t count_cut_channels(const running *own, bool and_open)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < domus_system_threads(own->system); i++) {
        domus_profile profile;
        if (domus_system_profile(own->system, i, &profile) != 0)
            continue;
        sum += profile.channels_cut;
        if (and_open && profile.channels_opened > profile.channels_closed)
            sum += profile.channels_opened - profile.channels_closed;
    }
    return sum;
}

/* Call the program's hooks of the end, and stop the system between them. */
static void stop_system_with_hooks(running *own)
{
    const domus_program *program = own->program;

    domi_main_observe_set_program_not_ready(program);
    if (program->stop != NULL)
        program->stop(own->system, program->argument);
    domi_main_cluster_leave(program);
    own->stopped = domus_system_stop(own->system);
    if (program->end != NULL)
        program->end(own->system, program->argument);
    domi_main_observe_close_port(program);
}

/* Stop the system while another thread answers signals. Without memory for that thread nobody
 * answers them. */
static void stop_system_while_handling_signals(running *own)
{
    pthread_t thread;

    domi_main_notify_send_stopping();
    own->cut_before = count_cut_channels(own, false);
    own->drain_began_ns = read_monotonic_ns();
    bool is_answered = pthread_create(&thread, NULL, handle_signals_in_drain, own) == 0;
    stop_system_with_hooks(own);
    if (!is_answered)
        return;
    atomic_store(&own->has_stopped, true);
    /* The thread that answers signals blocks this signal and waits for it in sigwait(). */
    (void)pthread_kill(thread, SIGUSR2);
    pthread_join(thread, NULL);
}

/* --- the program ------------------------------------------------------------------------------ */

/* Start the system, log its warnings, and call the program's hook `start`. Returns 0, or the exit
 * status. */
static int start_system_and_call_hook(const running *own)
{
    const domus_program *program = own->program;
    char error[ERROR_SIZE] = "";
    uint16_t port = 0;
    int result = domus_system_start(own->system);

    if (result == 0 && domus_system_warning(own->system)[0] != '\0')
        domi_sink_add_line(own->sink, "warning: %s", domus_system_warning(own->system));
    if (result == 0 && own->warning[0] != '\0')
        domi_sink_add_line(own->sink, "warning: %s", own->warning);
    if (result == 0)
        result = domi_fronts_start_reader(own->system, own->sink);
    if (result == 0)
        result = domi_main_observe_open_port(program, own->system, &own->log, error, sizeof error);
    if (result == 0)
        domi_main_observe_show_config(program, own->system, own->read, own->read);
    if (result == 0)
        result = domi_main_cluster_open(program, own->system, error, sizeof error);
    if (result == 0)
        result = domi_main_notify_begin_thread(own->system, own->sink, error, sizeof error);
    if (result == 0 && program->start != NULL)
        result = program->start(own->system, program->argument);
    if (result >= 0) {
        domi_main_log_unserved_listeners(own->system, own->given, own->sink);
        if (domi_main_observe_set_program_ready(program, &port))
            domi_main_print_listening("observe", domi_main_observe_get_address_of_port(own->given),
                                      port);
        domi_sink_add_line(own->sink,
                           "pid %d: SIGUSR1 prints a profile, SIGUSR2 all actors; SIGTERM ends it",
                           (int)getpid());
        domi_main_notify_send_ready();
        return DOMI_STATUS_OK;
    }
    const char *why = error[0] != '\0' ? error : domus_system_error(own->system);
    domi_sink_add_line(own->sink, "%s", why[0] != '\0' ? why : strerror(-result));
    return DOMI_STATUS_FAILED;
}

/* Returns whether channels were cut, or will be cut when the process ends, because a handler that
 * does not return holds up the thread of these channels. */
static bool has_cut_channels(const running *own)
{
    return own->stopped > 0 ||
           (own->stopped == -ETIMEDOUT && count_cut_channels(own, true) > own->cut_before);
}

/* Returns the exit status of the program after a drain. A status other than 0 that the program
 * asked for comes first, then the one for channels that were cut. */
static int choose_exit_status(const running *own)
{
    int status = atomic_load(&quit_status);

    if (status <= DOMI_STATUS_OK && has_cut_channels(own))
        status = (int)get_present_config(own).shutdown.cut_status;
    return status >= 0 ? status : DOMI_STATUS_OK;
}

static int run_system_to_exit_status(running *own)
{
    int status = start_system_and_call_hook(own);

    if (status != DOMI_STATUS_OK) {
        domi_main_cluster_leave(own->program);
        own->stopped = domus_system_stop(own->system);
        domi_main_cluster_close(own->program, own->stopped == -ETIMEDOUT);
        domi_main_observe_close_port(own->program);
        return status;
    }
    handle_signals_until_end(own);
    stop_system_while_handling_signals(own);
    if (get_present_config(own).profile.at_exit)
        print_profile(own); /* print the profile of the system, with the figures of the cluster */
    domi_main_cluster_close(own->program, own->stopped == -ETIMEDOUT);
    if (own->stopped < 0 &&
        /* the ring of a thread has failed, perhaps during the drain, so the stop returned an
         * error */
        own->stopped != -ETIMEDOUT) {
        status = atomic_load(&quit_status);
        return status > 0 ? status : DOMI_STATUS_FAILED;
    }
    return choose_exit_status(own);
}

/* Quit the program because a thread has failed, as the hook `failed`. The log has a line that says
 * why. */
static void quit_because_thread_failed(void *context, int error)
{
    (void)context, (void)error;
    domus_main_quit(DOMI_STATUS_FAILED);
}

/* Quit the program because an actor has called domus_quit(), as the hook `quit`. */
static void quit_because_actor_asked(void *context)
{
    (void)context;
    domus_main_quit(DOMI_STATUS_OK);
}

/* Make the system with the hooks of the log. The stall signal is installed, so that a stall
 * report shows where a stuck thread is, and SIGPROF, so that CPU profiles can be taken; if the
 * program uses such a signal itself, reports come without that, and there are no profiles. Crashes
 * leave a trace if the configuration names its file. */
static int make_system_with_hooks(running *own, const domus_config *config)
{
    const domus_hooks hooks = {
        .log = domi_sink_add_log_line,
        .log_context = own->sink,
        .log_dropped = domi_sink_count_dropped_lines,
        .failed = quit_because_thread_failed,
        .quit = quit_because_actor_asked,
    };
    char error[256] = "";

    if (config->stall.signal != 0)
        (void)domus_stall_signal((int)config->stall.signal);
    (void)domus_cpu_profile_signal();
    if (config->profile.crash_file != NULL && config->profile.crash_file[0] != '\0')
        (void)domus_trace_crash_signals(config->profile.crash_file);
    int result = domus_system_new_with(config, &hooks, error, sizeof error, &own->system);
    if (result != 0)
        domi_sink_add_line(own->sink, "%s", error[0] != '\0' ? error : strerror(-result));
    return result;
}

/* Let domus_main_quit() send a signal from here on. If it was called before, the signal is sent
 * now, and the program ends as soon as it waits for signals. */
static void let_quit_send_signal_from_now_on(void)
{
    atomic_store(&waiter, pthread_self());
    atomic_store(&has_waiter, true);
    if (atomic_load(&quit_status) != -1)
        interrupt_thread_that_awaits_signals(
            /* the signal that ends the wait stays pending until sigwait() takes it */
            pthread_self());
}

int domi_main_run_program(const struct domi_arguments *arguments, const domus_yaml *yaml)
{
    const domus_program *program = arguments->program;
    const domus_config *given = domus_yaml_config(yaml);
    running own = {
        .arguments = arguments,
        .program = program,
        .read = yaml,
        .given = given,
    };
    domus_config config = *given;
    uint64_t flush_timeout_ns = given->log.flush_timeout_ns;
    int status;

    domi_main_notify_read_variables();
    block_signals(&own.signals);
    domi_descriptors_raise_limit(&config, own.warning, sizeof own.warning);
    int result = domi_sink_open(program->name, STDERR_FILENO, config.log.queue_max,
                                domi_main_observe_is_wanted(given) ? &own.log : NULL, &own.sink);
    if (result != 0) {
        fprintf(stderr, "%s: no thread for the log: %s%s\n", program->name, strerror(-result),
                result == -EPERM ? " (a filter of system calls has to refuse clone3 by ENOSYS)"
                                 : "");
        domi_fronts_close(false);
        domi_main_notify_close();
        return DOMI_STATUS_FAILED;
    }
    /* from here on every way leads to the end of this function, which stops the wait for signals */
    let_quit_send_signal_from_now_on();
    result = make_system_with_hooks(&own, &config);
    if (result == 0)
        status = run_system_to_exit_status(&own);
    else
        status = result == -EINVAL ? DOMI_STATUS_USAGE : DOMI_STATUS_FAILED;
    if (own.system != NULL)
        flush_timeout_ns = get_present_config(&own).log.flush_timeout_ns;
    domi_main_notify_end_looks_at_system();
    domus_system_free(own.system);
    domi_fronts_close(own.stopped == -ETIMEDOUT);
    domi_sink_close(own.sink, flush_timeout_ns);
    if (own.stopped != -ETIMEDOUT)
        /* after -ETIMEDOUT a thread that is stuck in a handler may still log, so the sink is not
         * freed */
        domi_sink_free(own.sink);
    domi_main_notify_close();
    atomic_store(&has_waiter, false);
    /* Take signals that are still pending, so that they do not hit the process after domus_main()
     * has returned. */
    while (sigtimedwait(&own.signals, NULL, &(const struct timespec){0}) > 0)
        continue;
    atomic_store(&quit_status, -1);
    return status;
}
