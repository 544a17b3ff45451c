/* Signals drain, dump or end a program as its documentation says, and a log that nobody reads
 * cannot hold up its end. Each program is a child process. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time within which a program must end here; it is far longer than the second that the last
 * lines of the log get. */
#define SOON_NS (10000 * DOMT_MS)

static const domus_type block_type = {.name = "block", .size = sizeof(int)};

static int print_that_program_is_ready(domus_system *system, void *argument)
{
    printf("ready\n");
    fflush(stdout);
    return 0;
}

static const domus_program idle = {.name = "idle", .start = print_that_program_is_ready};

/* --- signals ---------------------------------------------------------------------------------- */

static int block_in_handler_for_ms(domus_stack *stack, void *self, const void *payload)
{
    printf("blocked\n");
    fflush(stdout);
    domt_pause_ns((uint64_t) * (const int *)payload * DOMT_MS);
    return 0;
}

static const domus_behaviour blocker = {
    .name = "blocker", .on = (const domus_on[]){{&block_type, block_in_handler_for_ms, 0}, {0}}};

/* Let an actor block in a handler for so many milliseconds, so that a drain has to wait for it. */
static int let_actor_block_for_ms(domus_system *system, void *ms)
{
    domus_address address;
    int result = domus_outside_spawn(system, &blocker, NULL, &address);

    return result != 0 ? result : domus_outside_notice(system, address, &block_type, ms);
}

static int two_seconds_ms = 2000;
static int long_ms = 100000;

static const domus_program blocking = {
    .name = "blocking", .start = let_actor_block_for_ms, .argument = &two_seconds_ms};

/* Supervisors may send the same signal twice within milliseconds, which must not end the drain. */
DOMT_TEST(a_second_signal_within_a_second_counts_as_the_first)
{
    domt_program own;

    domt_program_start_and_read(&own, &blocking, domt_no_arguments, NULL, "blocked\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    /* wait, because two signals of a kind that are pending count as one */
    domt_pause_ns(50 * DOMT_MS);
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_program_end_by_signal(&own, SIGINT, 0);
    ck_assert_ptr_null(strstr(own.err_text, "second signal"));
    /* the program has drained and printed its profile, as after one signal */
    domt_must_contain(own.err_text, "iterations");
}

DOMT_TEST(a_later_signal_ends_at_once)
{
    const domus_program stuck = {
        .name = "stuck", .start = let_actor_block_for_ms, .argument = &long_ms};
    domt_program own;

    domt_program_start_and_read(&own, &stuck, domt_no_arguments, NULL, "blocked\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_pause_ns(1500 * DOMT_MS);
    uint64_t began_ns = domt_now_ns();
    domt_program_end_by_signal(&own, SIGTERM, 128 + SIGTERM);
    ck_assert_uint_lt(domt_now_ns() - began_ns, 5000 * DOMT_MS);
    domt_must_contain(own.err_text, "a second signal: ending at once\n");
}

static void print_profile_level(domus_system *system, void *argument)
{
    printf("level %d\n", (int)domus_system_profile_level(system));
    fflush(stdout);
}

static struct own_settings {
    uint32_t number;
} own_settings;
static const domus_config_key own_keys[] = {
    {DOMUS_KEY("number", COUNT, struct own_settings, number, 0, 9, 5)}, {.path = NULL}};
static const domus_section own_section = {
    .name = "own", .keys = own_keys, .size = sizeof own_settings};

/* At SIGHUP, a program without a reload function follows only the keys that domus_main() changes by
 * itself. */
DOMT_TEST(sighup_changes_the_level_of_any_program)
{
    const domus_program program = {.name = "idle",
                                   .start = print_that_program_is_ready,
                                   .stop = print_profile_level,
                                   .section = &own_section,
                                   .settings = &own_settings};
    domt_program own;
    domt_tree tree;
    char file[PATH_MAX];

    domt_tree_make(&tree);
    snprintf(file, sizeof file, "%s/a.yaml", tree.root);
    domt_tree_write(&tree, "a.yaml", "profile: {level: counters}\n");
    domt_program_start_and_read(&own, &program, (const char *const[]){"--config", file, NULL}, NULL,
                                "ready\n");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "idle: SIGHUP: the configuration was read again", 1);
    ck_assert_ptr_null(strstr(own.err_text, "not taken"));
    domt_tree_write(&tree, "a.yaml", "profile: {level: off}\nown: {number: 6}\n");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own,
                                   "idle: SIGHUP: these keys count at a start: own: nothing is", 1);
    domt_tree_write(&tree, "a.yaml", "profile: {level: spans}\n");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "idle: SIGHUP: the configuration was read again", 2);
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_program_read_stdout_until(&own, "level 3\n");
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    domt_tree_remove_copy(&tree);
}

static const domus_behaviour noted = {.name = "noted"};

static int spawn_noted_actor_and_print_ready(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn(system, &noted, NULL, &address);

    return result != 0 ? result : print_that_program_is_ready(system, argument);
}

DOMT_TEST(sigquit_prints_the_dump_and_drains)
{
    const domus_program program = {.name = "quitting", .start = spawn_noted_actor_and_print_ready};
    domt_program own;

    domt_program_start_and_read(&own, &program, domt_no_arguments, NULL, "ready\n");
    domt_program_end_by_signal(&own, SIGQUIT, 0);
    const char *dump = strstr(own.err_text, " noted: WAITING");
    ck_assert_msg(dump != NULL, "%s", own.err_text);
    domt_must_contain(dump, "iterations"); /* the program's profile comes after the dump */
}

static int raise_sigusr2_in_blocked_handler(domus_stack *stack, void *self, const void *payload)
{
    printf("blocked\n");
    fflush(stdout);
    domt_pause_ns(500 * DOMT_MS);
    (void)kill(getpid(), SIGUSR2);
    domt_pause_ns(60000 * DOMT_MS);
    return 0;
}

static const domus_behaviour signalling = {
    .name = "signalling",
    .on = (const domus_on[]){{&block_type, raise_sigusr2_in_blocked_handler, 0}, {0}}};

static int let_actor_signal_own_process(domus_system *system, void *ms)
{
    domus_address address;
    int result = domus_outside_spawn(system, &signalling, NULL, &address);

    return result != 0 ? result : domus_outside_notice(system, address, &block_type, ms);
}

/* A program may send itself a signal for a dump. That signal does not end the wait for its drain,
 * but a second SIGTERM does. */
DOMT_TEST(signal_of_the_program_does_not_end_the_drain)
{
    const domus_program program = {
        .name = "signalling", .start = let_actor_signal_own_process, .argument = &long_ms};
    const char *const arguments[] = {"--set", "shutdown.actorTimeout=30s", NULL};
    domt_program own;

    domt_program_start_and_read(&own, &program, arguments, NULL, "blocked\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_program_read_stderr_until(&own, "dump", 1);
    domt_pause_ns(1500 * DOMT_MS);
    domt_program_end_by_signal(&own, SIGTERM, 128 + SIGTERM);
}

/* A dump and a profile are printed during a drain, too, where they matter most. */
DOMT_TEST(signals_that_print_print_in_a_drain_too)
{
    domt_program own;

    domt_program_start_and_read(&own, &blocking, domt_no_arguments, NULL, "blocked\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
    domt_program_read_stderr_until(&own, "iterations", 1);
    ck_assert_int_eq(kill(own.pid, SIGQUIT), 0);
    domt_program_read_stderr_until(&own, "dump", 1);
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "SIGHUP", 1);
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    domt_program_read_stderr_until(&own, "iterations", 2);
}

/* --- who reads the log ------------------------------------------------------------------------ */

/* Fill the pipe of the log, so that it takes not even one byte more. */
static void fill_pipe_of_stderr(void)
{
    char bytes[4096];

    memset(bytes, '.', sizeof bytes);
    /* a small pipe, so that the test can later read all of it */
    ck_assert_int_ge(fcntl(STDERR_FILENO, F_SETPIPE_SZ, 16384), 16384);
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), 0);
    while (write(STDERR_FILENO, bytes, sizeof bytes) > 0)
        continue;
    while (write(STDERR_FILENO, bytes, 1) > 0)
        continue;
    ck_assert_int_eq(fcntl(STDERR_FILENO, F_SETFL, 0), 0);
}

/* Send all signals that print while nobody reads the log, and at last the signal `last`; the
 * program must go on, and then end in time. */
static void check_program_survives_full_log(int last)
{
    domt_program own;

    domt_program_start_and_read(&own, &idle, domt_no_arguments, fill_pipe_of_stderr, "ready\n");
    for (int i = 0; i < 20; i++) { /* these signals print more lines than may wait for the log */
        ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
        ck_assert_int_eq(kill(own.pid, SIGUSR2), 0);
        ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
        domt_pause_ns(10 * DOMT_MS);
    }
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(kill(own.pid, last), 0);
    ck_assert_int_eq(domt_program_wait_for_end(&own), 0);
    ck_assert_uint_lt(domt_now_ns() - began_ns, SOON_NS);
    close(own.out);
    close(own.err);
}

DOMT_TEST(a_log_that_nobody_reads_holds_up_no_signal)
{
    check_program_survives_full_log(SIGTERM);
    check_program_survives_full_log(SIGINT);
    check_program_survives_full_log(SIGQUIT);
}

DOMT_TEST(a_log_whose_reader_has_gone_kills_nobody)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP};
    domt_program own;

    domt_program_start_and_read(&own, &idle, domt_no_arguments, NULL, "ready\n");
    close(own.err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        ck_assert_int_eq(kill(own.pid, numbers[i]), 0);
        domt_pause_ns(100 * DOMT_MS);
        ck_assert_int_eq(kill(own.pid, 0), 0);
    }
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    ck_assert_int_eq(domt_program_wait_for_end(&own), 0);
    close(own.out);
}

static int write_to_pipe_without_reader(domus_system *system, void *argument)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    ck_assert_int_eq(write(ends[1], ".", 1), -1);
    return print_that_program_is_ready(system, NULL);
}

static void catch_signal_and_do_nothing(int number)
{
}

static void set_own_handler_of_sigpipe(void)
{
    ck_assert_int_eq(sigaction(SIGPIPE,
                               &(const struct sigaction){.sa_handler = catch_signal_and_do_nothing},
                               NULL),
                     0);
}

static int fail_unless_sigpipe_handler_is_kept(domus_system *system, void *argument)
{
    struct sigaction action;

    ck_assert_int_eq(sigaction(SIGPIPE, NULL, &action), 0);
    return action.sa_handler == catch_signal_and_do_nothing
               ? print_that_program_is_ready(system, NULL)
               : -EINVAL;
}

DOMT_TEST(sigpipe_is_ignored_unless_the_program_has_it)
{
    const domus_program writing = {.name = "writing", .start = write_to_pipe_without_reader};
    const domus_program handling = {.name = "handling",
                                    .start = fail_unless_sigpipe_handler_is_kept};
    domt_program own;

    domt_program_start_and_read(&own, &writing, domt_no_arguments, NULL, "ready\n");
    domt_program_end_by_signal(&own, SIGTERM, 0);
    domt_program_start_and_read(&own, &handling, domt_no_arguments, set_own_handler_of_sigpipe,
                                "ready\n");
    domt_program_end_by_signal(&own, SIGTERM, 0);
}

/* The program reports how many lines were dropped while nobody read the log, as soon as somebody
 * reads again. */
DOMT_TEST(lines_that_were_dropped_are_told_of)
{
    domt_program own;
    int told = 0;

    domt_program_start_and_read(&own, &idle,
                                (const char *const[]){"--set", "log.queueMax=16", NULL},
                                fill_pipe_of_stderr, "ready\n");
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
        domt_pause_ns(5 * DOMT_MS);
    }
    domt_program_read_stderr_until(&own, "log lines were dropped\n", 1);
    const char *line = strstr(own.err_text, "idle: warning: ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(line, "idle: warning: %d log lines were dropped\n", &told), 1);
    ck_assert_int_gt(told, 0);
    /* lines for which the log had room have come, so fewer were dropped */
    ck_assert_int_le(told, 101 - 16);
    domt_program_end_by_signal(&own, SIGTERM, 0);
    const char *row = strstr(own.err_text, "log lines dropped");
    ck_assert_ptr_nonnull(row);
    /* the row has the sum before the rate, which ends in "/s" */
    const char *end = strstr(row, "/s\n");
    ck_assert_ptr_nonnull(end);
    while (end[-1] != ' ')
        end--;
    while (end[-1] == ' ')
        end--;
    while (end[-1] != ' ')
        end--;
    ck_assert_int_eq(strtol(end, NULL, 10), told);
}

/* --- no thread for the log -------------------------------------------------------------------- */

/* Call domus_main_quit() after domus_main() has returned, and print whether that has sent a
 * signal. */
static void quit_after_main_has_returned(void)
{
    sigset_t pending;

    domus_main_quit(3);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    printf(sigismember(&pending, SIGTERM) == 1 ? "signalled\n" : "quiet\n");
    fflush(stdout);
}

/* From now on let each pthread_create() with the default attributes fail, by a default stack that
 * is too large. */
static void forbid_new_threads(void)
{
    pthread_attr_t attributes;

    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, (size_t)1 << 47) != 0 ||
        pthread_setattr_default_np(&attributes) != 0 || atexit(quit_after_main_has_returned) != 0)
        abort();
    (void)pthread_attr_destroy(&attributes);
}

DOMT_TEST(without_a_thread_for_the_log_nobody_waits_for_a_quit)
{
    domt_program own;

    domt_program_start(&own, &idle, domt_no_arguments, forbid_new_threads);
    ck_assert_int_eq(domt_program_read_to_end(&own), 1);
    domt_must_contain(own.err_text, "idle: no thread for the log: ");
    ck_assert_str_eq(own.out_text, "quiet\n");
}

DOMT_SUITE(60)
