/* config/main_notify.c: a program tells systemd of its states, feeds its watchdog as long as all
 * its threads go on, and removes systemd's variables from the environment of its children. Each
 * program is a child process, and a socket of the test stands for the one of systemd. */
#include <domus/main.h>

#include "config/rates.h"
#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/runtime/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WATCHDOG_MS 100

static const domus_type hang_type = {.name = "hang"};
static const domus_type tick_type = {.name = "tick"};
static domus_address resident;

static int hang_for_ever(domus_stack *stack, void *self, const void *nothing)
{
    for (;;)
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour actor = {.name = "hanging",
                                      .on = (const domus_on[]){{&hang_type, hang_for_ever, 0},
                                                               {&tick_type, domt_ignore_message, 0},
                                                               {0}}};

static const char *text_whether_variable_is_set(const char *name)
{
    return getenv(name) != NULL ? "set" : "unset";
}

static int print_whether_variables_are_set(domus_system *system, void *argument)
{
    printf("variables: %s %s %s\n", text_whether_variable_is_set("NOTIFY_SOCKET"),
           text_whether_variable_is_set("WATCHDOG_USEC"),
           text_whether_variable_is_set("WATCHDOG_PID"));
    fflush(stdout);
    return domus_outside_spawn(system, &actor, NULL, &resident);
}

static int refuse_every_reload(domus_system *system, const void *settings, void *argument)
{
    return -EDOM;
}

static int let_actor_hang_for_ever(domus_system *system, const void *settings, void *argument)
{
    return domus_outside_notice(system, resident, &hang_type, NULL);
}

static const domus_program program = {.name = "told", .start = print_whether_variables_are_set};
static const domus_program refusing = {
    .name = "told", .start = print_whether_variables_are_set, .reload = refuse_every_reload};
static const domus_program hanging = {
    .name = "told", .start = print_whether_variables_are_set, .reload = let_actor_hang_for_ever};

static void set_watchdog_variables(void)
{
    char text[32];

    snprintf(text, sizeof text, "%d", WATCHDOG_MS * 1000);
    setenv("WATCHDOG_USEC", text, 1);
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("WATCHDOG_PID", text, 1);
}

static uint64_t number_of_message_field(const char *message, const char *name)
{
    const char *at = strstr(message, name);

    ck_assert_msg(at != NULL && at[strlen(name)] == '=', "no %s in '%s'", name, message);
    return strtoull(at + strlen(name) + 1, NULL, 10);
}

static void expect_end_by_sigterm(domt_program *own)
{
    ck_assert_int_eq(kill(own->pid, SIGTERM), 0);
    (void)domt_supervisor_expect_message("STOPPING=1\n");
    ck_assert_int_eq(domt_program_read_to_end(own), 0);
    domt_supervisor_close();
}

/* --- states ----------------------------------------------------------------------------------- */

DOMT_TEST(program_reports_ready_reload_and_stop)
{
    static const char *const arguments[] = {"--set", "shutdown.drainTimeout=7s", "--set",
                                            "shutdown.actorTimeout=2s", NULL};
    domt_program own;

    domt_supervisor_listen(true);
    domt_program_start(&own, &program, arguments, set_watchdog_variables);
    (void)domt_supervisor_expect_message("READY=1\nSTATUS=started");
    domt_program_read_stdout_until(&own, "variables: unset unset unset\n");
    uint64_t before_us = domt_now_ns() / 1000;
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    uint64_t reload_us =
        number_of_message_field(domt_supervisor_expect_message("RELOADING=1\n"), "MONOTONIC_USEC");
    ck_assert_uint_ge(reload_us, before_us);
    ck_assert_uint_le(reload_us, domt_now_ns() / 1000);
    (void)domt_supervisor_expect_message("READY=1\nSTATUS=the configuration was read again");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    const char *last = domt_supervisor_expect_message("STOPPING=1\n");
    ck_assert_uint_eq(number_of_message_field(last, "EXTEND_TIMEOUT_USEC"), 10000000u);
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    domt_supervisor_close();
}

static void expect_asks_for_more_time(void)
{
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(number_of_message_field(domt_supervisor_expect_message("STOPPING=1\n"),
                                                  "EXTEND_TIMEOUT_USEC"),
                          10000000u);
}

/* The drain is over at once, but a handler hangs for longer than any configured time, so the
 * program asks for more time again and again. */
DOMT_TEST(a_stop_with_a_handler_that_hangs_asks_for_time_again)
{
    static const char *const arguments[] = {"--set", "shutdown.drainTimeout=1ms", NULL};
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start(&own, &hanging, arguments, NULL);
    (void)domt_supervisor_expect_message("READY=1\n");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    (void)domt_supervisor_expect_message("READY=1\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    expect_asks_for_more_time();
    ck_assert_int_eq(kill(own.pid, SIGKILL), 0);
    ck_assert_int_eq(domt_program_wait_for_end(&own), 128 + SIGKILL);
    close(own.out);
    close(own.err);
    domt_supervisor_close();
}

static void fill_pipe_of_log(void)
{
    char bytes[512] = "";
    int flags = fcntl(STDERR_FILENO, F_GETFL);

    (void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    while (write(STDERR_FILENO, bytes, sizeof bytes) > 0)
        continue;
    (void)fcntl(STDERR_FILENO, F_SETFL, flags);
}

/* Nobody reads the log, so its end takes until long after the system was freed. */
DOMT_TEST(program_asks_for_time_while_log_is_written)
{
    static const char *const arguments[] = {"--set", "log.flushTimeout=1200ms", NULL};
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start(&own, &program, arguments, fill_pipe_of_log);
    (void)domt_supervisor_expect_message("READY=1\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    expect_asks_for_more_time();
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    domt_supervisor_close();
}

DOMT_TEST(state_that_the_supervisor_did_not_take_is_sent_again)
{
    domt_program own;

    domt_supervisor_listen(false);
    domt_supervisor_fill_socket();
    domt_program_start_and_read(&own, &program, domt_no_arguments, set_watchdog_variables,
                                "variables");
    domt_program_read_stderr_until(&own, "SIGUSR2 all actors", 1);
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "SIGHUP: the configuration was read again", 1);
    domt_program_read_stderr_until(
        &own, "warning: the supervisor ($NOTIFY_SOCKET) takes no message: ", 1);
    (void)domt_supervisor_expect_message("RELOADING=1\n");
    (void)domt_supervisor_expect_message("READY=1\nSTATUS=the configuration was read again");
    (void)domt_supervisor_expect_message("WATCHDOG=1");
    expect_end_by_sigterm(&own);
}

/* --- starts that fail ------------------------------------------------------------------------- */

/* From now on let each pthread_create() with the default attributes fail, by a default stack that
 * is too large. */
static void forbid_new_threads(void)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 46);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

static int accept_any_config(const domus_config *config, char *error, size_t size)
{
    return 0;
}

static int forbid_threads_in_open(domus_system *system, char *error, size_t size, void **ret_state,
                                  uint16_t *ret_port)
{
    forbid_new_threads();
    *ret_state = NULL;
    return 0;
}

DOMT_TEST(start_without_thread_of_notifier_fails)
{
    static const domus_observer forbidding = {.check = accept_any_config,
                                              .open = forbid_threads_in_open};
    static const domus_program observed = {
        .name = "told", .start = print_whether_variables_are_set, .observe = &forbidding};
    static const char *const arguments[] = {"--set", "observe.listen=127.0.0.1:1", NULL};
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start(&own, &observed, arguments, set_watchdog_variables);
    ck_assert_int_eq(domt_program_read_to_end(&own), 1);
    domt_must_contain(own.err_text, "no thread tells the supervisor of this program: ");
    /* the program has printed nothing, so its start function was not called */
    ck_assert_str_eq(own.out_text, "");
    ck_assert_uint_eq(domt_supervisor_count_messages("READY=1", 1), 0);
    domt_supervisor_close();
}

static void run_main_and_count_descriptors(void)
{
    char *argv[] = {(char *)(uintptr_t) "program", NULL};
    int before = dup(STDOUT_FILENO);

    close(before);
    forbid_new_threads();
    int status = domus_main(1, argv, &program);
    int after = dup(STDOUT_FILENO);
    _exit(status == 1 && before == after ? 0 : 99);
}

DOMT_TEST(a_start_without_a_log_leaves_no_socket_open)
{
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start(&own, &program, domt_no_arguments, run_main_and_count_descriptors);
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    domt_must_contain(own.err_text, "no thread for the log");
    domt_supervisor_close();
}

static void expect_reload_is_refused(const domus_program *of, const char *const *arguments)
{
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start(&own, of, arguments, NULL);
    (void)domt_supervisor_expect_message("READY=1\n");
    if (arguments[0] != NULL)
        ck_assert_int_eq(unlink(arguments[1]), 0);
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    (void)domt_supervisor_expect_message("RELOADING=1\n");
    (void)domt_supervisor_expect_message("READY=1\nSTATUS=the reload was refused");
    if (arguments[0] != NULL) /* the next status with rates tells of the refused reload, too */
        domt_must_contain(domt_supervisor_expect_message(" messages/s, "),
                          "; the last reload was refused");
    expect_end_by_sigterm(&own);
}

DOMT_TEST(a_reload_that_is_refused_ends_and_is_told)
{
    char path[] = "/tmp/domus-notify-XXXXXX";
    const char *const arguments[] = {"--config", path, NULL};
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    expect_reload_is_refused(&program, arguments);
    expect_reload_is_refused(&refusing, domt_no_arguments);
}

/* --- the watchdog ----------------------------------------------------------------------------- */

/* When the watchdog gets no more messages, systemd sends SIGABRT, and the trace of the crash names
 * the behaviour whose handler hangs. */
DOMT_TEST(a_thread_that_hangs_starves_the_watchdog)
{
    char path[64], trace[65536];
    const char *arguments[] = {"--set", path, "--set", "profile.level=spans", NULL};
    domt_program own;

    snprintf(path, sizeof path, "profile.crashFile=/tmp/domus-notify-%d", (int)getpid());
    domt_supervisor_listen(false);
    domt_program_start(&own, &hanging, arguments, set_watchdog_variables);
    (void)domt_supervisor_expect_message("READY=1\n");
    for (int i = 0; i < 4; i++) /* the program feeds the watchdog although all its threads sleep */
        (void)domt_supervisor_expect_message("WATCHDOG=1");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    (void)domt_supervisor_expect_message("READY=1\n");
    /* On a busy machine, the message for the period before the hang may come late, so wait for a
     * period without messages. */
    DOMT_WAIT_FOR(10, domt_supervisor_count_messages("WATCHDOG=1", 2 * WATCHDOG_MS) == 0);
    ck_assert_uint_eq(domt_supervisor_count_messages("WATCHDOG=1", 2 * WATCHDOG_MS), 0);
    ck_assert_int_eq(kill(own.pid, SIGABRT), 0);
    ck_assert_int_eq(domt_program_wait_for_end(&own), 128 + SIGABRT);
    FILE *file = fopen(strchr(path, '=') + 1, "re");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(trace, 1, sizeof trace, file);
    fclose(file);
    ck_assert_ptr_nonnull(memmem(trace, size, "SIGABRT", 7));
    ck_assert_ptr_nonnull(memmem(trace, size, "hanging", 7));
    unlink(strchr(path, '=') + 1);
    domt_supervisor_close();
}

/* --- variables -------------------------------------------------------------------------------- */

static const struct variables {
    const char *socket; /* value of NOTIFY_SOCKET; NULL: the socket of the test */
    const char *usec;   /* value of WATCHDOG_USEC; NULL: it is not set */
    /* value of WATCHDOG_PID; NULL: it is not set, "own": the pid of the program */
    const char *pid;
    const char *complains; /* part of the error that the program must print; NULL: no error */
    bool is_fed;
} table[] = {
    {NULL, "100000", "own", NULL, true},
    /* without WATCHDOG_PID, the watchdog is meant for any process */
    {NULL, "100000", NULL, NULL, true},
    {NULL, "100000", "1", NULL, false},
    {NULL, NULL, "own", NULL, false},
    {NULL, "0", "own", NULL, false}, /* a WATCHDOG_USEC of 0 means that there is no watchdog */
    {NULL, "+5", "own", "warning: WATCHDOG_USEC or WATCHDOG_PID is no number", false},
    {NULL, "100000", "me", "warning: WATCHDOG_USEC or WATCHDOG_PID is no number", false},
    {NULL, "18446744073709551616", NULL, "warning: WATCHDOG_USEC or WATCHDOG_PID", false},
    {"vsock:2:1234", "100000", NULL, "warning: NOTIFY_SOCKET 'vsock:2:1234': is no path", false},
    {"", "100000", NULL, "warning: NOTIFY_SOCKET '': is no path, and no @name", false},
};
static const struct variables *row;

static void set_variables_of_row(void)
{
    char own[32];

    snprintf(own, sizeof own, "%d", (int)getpid());
    if (row->socket != NULL)
        setenv("NOTIFY_SOCKET", row->socket, 1);
    if (row->usec != NULL)
        setenv("WATCHDOG_USEC", row->usec, 1);
    if (row->pid != NULL)
        setenv("WATCHDOG_PID", strcmp(row->pid, "own") == 0 ? own : row->pid, 1);
}

static void check_variables_of_row(void)
{
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start_and_read(&own, &program, domt_no_arguments, set_variables_of_row,
                                "variables: unset unset unset\n");
    if (row->complains != NULL)
        domt_program_read_stderr_until(&own, row->complains, 1);
    if (row->socket == NULL)
        (void)domt_supervisor_expect_message("READY=1\n");
    if (row->is_fed)
        (void)domt_supervisor_expect_message("WATCHDOG=1");
    else
        ck_assert_uint_eq(domt_supervisor_count_messages("WATCHDOG=1", WATCHDOG_MS / 2), 0);
    domt_program_end_by_signal(&own, SIGTERM, 0);
    ck_assert_int_eq(strstr(own.err_text, "warning: WATCHDOG") != NULL ||
                         strstr(own.err_text, "warning: NOTIFY") != NULL,
                     row->complains != NULL);
    domt_supervisor_close();
}

DOMT_TEST(notify_and_watchdog_variables_are_read_strictly)
{
    for (row = table; row < table + sizeof table / sizeof table[0]; row++)
        check_variables_of_row();
}

/* If nobody reads the supervisor's socket, the program's other threads go on, and its end is held
 * up only for a moment. */
DOMT_TEST(a_supervisor_that_does_not_read_holds_up_no_end)
{
    domt_program own;

    domt_supervisor_listen(false);
    domt_program_start_and_read(&own, &program, domt_no_arguments, set_watchdog_variables,
                                "variables");
    /* Messages wait by then that the socket does not take, because its queue has room for 10
     * (net.unix.max_dgram_qlen). */
    domt_pause_ns(300 * DOMT_MS);
    uint64_t began_ns = domt_now_ns();
    domt_program_end_by_signal(&own, SIGTERM, 0);
    /* the end waits about a second for the supervisor, and not longer */
    ck_assert_uint_lt(domt_now_ns() - began_ns, 5000 * DOMT_MS);
    domt_supervisor_close();
}

/* Returns whether the program has a thread that reports to the supervisor. */
static bool has_program_notifier_thread(const domt_program *own)
{
    char pattern[64], comm[32];
    glob_t found;
    bool has = false;

    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/comm", (int)own->pid);
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "re");
        has = has || (file != NULL && fgets(comm, sizeof comm, file) != NULL &&
                      strcmp(comm, "domus-notify\n") == 0);
        if (file != NULL)
            fclose(file);
    }
    globfree(&found);
    return has;
}

DOMT_TEST(a_program_without_supervisor_has_no_thread_for_it)
{
    domt_program own;

    domt_program_start_and_read(&own, &program, domt_no_arguments, NULL, "variables");
    ck_assert_int_eq(kill(own.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&own, "SIGHUP: the configuration was read again", 1);
    ck_assert(!has_program_notifier_thread(&own));
    domt_program_end_by_signal(&own, SIGTERM, 0);
    domt_supervisor_listen(false);
    domt_program_start(&own, &program, domt_no_arguments, NULL);
    DOMT_WAIT_FOR(20, has_program_notifier_thread(&own));
    expect_end_by_sigterm(&own);
}

/* --- rates ------------------------------------------------------------------------------------ */

DOMT_TEST(status_line_counts_since_the_last_one)
{
    static const domus_pool_config work = {.name = "work", .runners = 1, .policy = "deques"};
    domus_config config = domt_config_of_threads(1);
    char line[128];
    double rate = -1;
    domi_rates rates;

    config.pools = &work;
    config.pool_count = 1;
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &actor, NULL);
    domi_rates_begin_counting(&rates, system);
    for (int i = 0; i < 1000; i++)
        domt_send_notice(system, address, &tick_type, NULL);
    DOMT_WAIT_FOR(20, domt_profile_of_all_threads(system).notices >= 1000);
    uint64_t began_ns = rates.at_ns;
    domi_rates_write_line(&rates, system, line, sizeof line);
    ck_assert_int_eq(sscanf(line, "%lf messages/s, 0 connections, memory ", &rate), 1);
    double expected = 1000.0 * 1e9 / (double)(rates.at_ns - began_ns);
    ck_assert(rate > 0.99 * expected - 1 && rate < 1.1 * expected + 50);
    domt_must_contain(line, ", 0 connections, memory normal (");
    domt_pause_ns(DOMT_MS);
    domi_rates_write_line(&rates, system, line, sizeof line);
    domt_must_contain(line, "0 messages/s, 0 connections, ");
    domt_end_system(system);
}

DOMT_SUITE(30)
