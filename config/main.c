/* domus_main(): options, a system, signals; see domus/main.h.
 *
 * Signals are waited for on the main thread, with them blocked everywhere else: no handler runs,
 * so nothing here has to be safe in one. */
#include <domus/main.h>
#include <domus/yaml.h>

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* -1: nobody has asked to quit. One program in a process at a time, so one word, and the thread
 * that waits for signals: they are sent to it, because other threads may not block them. */
static atomic_int quit_status = -1;
static _Atomic pthread_t waiter;

void domus_main_quit(int status)
{
    int none = -1;

    if (atomic_compare_exchange_strong(&quit_status, &none, status))
        /* It does not end the thread, which blocks it and waits for it. */
        (void)pthread_kill(atomic_load(&waiter), SIGTERM); // NOLINT(*-kill-thread,cert-pos44-c)
}

static void usage(FILE *to, const char *name)
{
    fprintf(to,
            "usage: %s [--config FILE] [--set KEY=VALUE ...]\n"
            "  --config FILE    read the configuration (YAML); without it the defaults hold\n"
            "  --set KEY=VALUE  set one key over it, such as scheduler.ioRatio=60\n"
            "  --help           print this\n",
            name);
}

/* All that is wrong with options and configuration is told before anything starts. Files are read
 * before --set, wherever it stands. Returns -1, or the exit status. */
static int read_options(int argc, char **argv, const char *name, domus_yaml *yaml)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"set", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool wrong = false;
    int option;

    optind = 1;
    while ((option = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout, name);
            return STATUS_OK;
        }
        if (option == '?') {
            usage(stderr, name);
            return STATUS_USAGE;
        }
        if (option != 'c')
            continue;
        int result = domus_yaml_load(yaml, optarg);
        if (result != 0 && result != -EINVAL)
            fprintf(stderr, "%s: %s: %s\n", name, optarg, strerror(-result));
        wrong = wrong || result != 0;
    }
    if (optind < argc) {
        fprintf(stderr, "%s: unexpected argument: %s\n", name, argv[optind]);
        usage(stderr, name);
        return STATUS_USAGE;
    }
    optind = 1;
    while ((option = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
        if (option == 's')
            wrong = domus_yaml_set(yaml, optarg) != 0 || wrong;
    }
    if (!wrong)
        wrong = domus_yaml_finish(yaml) != 0;
    fputs(domus_yaml_errors(yaml), stderr);
    return wrong ? STATUS_USAGE : -1;
}

static void print_profile(const domus_system *system)
{
    size_t size = domus_system_profile_table(system, NULL, 0) + 4096;
    char *text = malloc(size);

    if (text == NULL)
        return;
    (void)domus_system_profile_table(system, text, size);
    fputs(text, stderr);
    free(text);
}

#define DUMP_BYTES (1024u * 1024)

static void print_dump(domus_system *system)
{
    size_t size = DUMP_BYTES + domus_system_threads(system) * (size_t)DOMUS_DUMP_BYTES_MIN;
    char *text = malloc(size);
    int result = text != NULL ? domus_dump(system, text, size) : -ENOMEM;

    if (result == 0)
        fputs(text, stderr);
    else
        fprintf(stderr, "no dump: %s\n", strerror(-result));
    free(text);
}

static void *stop_system(void *system)
{
    static int reset;

    reset = domus_system_stop(system);
    (void)pthread_kill(atomic_load(&waiter),
                       SIGUSR2); /* wakes the main thread, which waits for a second signal too */
    return &reset;
}

/* Drain, but let a second SIGTERM or SIGINT end the process at once. What the process sent itself
 * is none: the end of the drain, or a domus_main_quit() by what drains. */
static void drain(domus_system *system, const char *name, const sigset_t *signals)
{
    pthread_t thread;
    siginfo_t info;
    void *reset = NULL;

    if (pthread_create(&thread, NULL, stop_system, system) != 0) {
        (void)domus_system_stop(system);
        return;
    }
    for (;;) {
        int number = sigwaitinfo(signals, &info);
        bool own = number > 0 && info.si_pid == getpid(); /* glibc folds SI_TKILL into SI_USER */
        if (own && number == SIGUSR2)
            break;
        if (!own && (number == SIGTERM || number == SIGINT)) {
            fprintf(stderr, "%s: a second signal: ending at once\n", name);
            (void)pthread_detach(thread); /* nobody is going to ask how it ended */
            _exit(128 + number);
        }
    }
    pthread_join(thread, &reset);
    if (*(int *)reset > 0)
        fprintf(stderr, "%s: %d channels had not drained and were reset\n", name, *(int *)reset);
}

static int run(domus_system *system, const domus_program *program, const sigset_t *signals)
{
    int number = 0;
    int result = domus_system_start(system);

    if (result != 0) {
        fprintf(stderr, "%s: %s\n", program->name, domus_system_error(system));
        return STATUS_FAILED;
    }
    if (domus_system_warning(system)[0] != '\0')
        fprintf(stderr, "%s: warning: %s\n", program->name, domus_system_warning(system));
    result = program->start != NULL ? program->start(system, program->argument) : 0;
    if (result < 0) {
        const char *why = domus_system_error(system);
        fprintf(stderr, "%s: %s\n", program->name, why[0] != '\0' ? why : strerror(-result));
        (void)domus_system_stop(system);
        return STATUS_FAILED;
    }
    while (sigwait(signals, &number) == 0 && number != SIGTERM && number != SIGINT) {
        if (number == SIGUSR1)
            print_profile(system);
        else if (number == SIGUSR2)
            print_dump(system);
    }
    drain(system, program->name, signals);
    print_profile(system);
    int status = atomic_load(&quit_status);
    return status >= 0 ? status : STATUS_OK;
}

/* What the library says: one line, to stderr. */
static void print_line(void *name, domus_log_level level, uint32_t thread, const char *text)
{
    static const char *const words[] = {"error", "warning", "info"};

    if (thread == DOMUS_LOG_OUTSIDE)
        fprintf(stderr, "%s: %s: %s\n", (const char *)name, words[level], text);
    else
        fprintf(stderr, "%s: %s: thread %u: %s\n", (const char *)name, words[level], thread, text);
}

/* A system that says where a stuck thread is. When the program has the signal for something else,
 * it says that it cannot. */
static int make_system(const domus_config *config, const char *name, char *error, size_t error_size,
                       domus_system **ret_system)
{
    const domus_hooks hooks = {.log = print_line, .log_context = (void *)(uintptr_t)name};

    if (config->stall.threshold_ns != 0 && config->stall.signal != 0)
        (void)domus_stall_signal((int)config->stall.signal);
    return domus_system_new_with(config, &hooks, error, error_size, ret_system);
}

int domus_main(int argc, char **argv, const domus_program *program)
{
    domus_system *system = NULL;
    domus_yaml *yaml = NULL;
    char error[256] = "";
    sigset_t signals;

    if (domus_yaml_new(&yaml) != 0) {
        fprintf(stderr, "%s: out of memory\n", program->name);
        return STATUS_FAILED;
    }
    int status = read_options(argc, argv, program->name, yaml);
    if (status >= 0)
        goto done;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    atomic_store(&waiter, pthread_self());
    int result = make_system(domus_yaml_config(yaml), program->name, error, sizeof error, &system);
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", program->name, error);
        status = result == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
        goto done;
    }
    status = run(system, program, &signals);
    domus_system_free(system);
    /* What was sent while it drained is answered; nobody else shall meet it. */
    while (sigtimedwait(&signals, NULL, &(const struct timespec){0}) > 0)
        continue;
    atomic_store(&quit_status, -1);
done:
    domus_yaml_free(yaml);
    return status;
}

static const char *address_of(const domus_config *config, const char *name)
{
    for (size_t i = 0; i < config->listener_count; i++) {
        if (strcmp(config->listeners[i].name, name) == 0)
            return config->listeners[i].address;
    }
    return "";
}

int domus_main_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                     const void *state)
{
    uint16_t port = 0;
    int result = domus_serve(system, name, behaviour, state, &port);

    if (result != 0)
        return result;
    const char *address = address_of(domus_system_config(system), name);
    const char *colon = strrchr(address, ':');
    printf("listening %s %.*s:%u\n", name, colon != NULL ? (int)(colon - address) : 0, address,
           port);
    fflush(stdout);
    return 0;
}
