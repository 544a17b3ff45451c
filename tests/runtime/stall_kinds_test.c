/* The stall watch reports code of an actor in each kind of callback, says when the code that is
 * stuck is not an actor's, and says why a report has no backtrace. */
#include "tests/runtime/stalls.h"
#include "tests/support/crowd.h"

#include <domus/main.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SIGNAL 50

static const domus_type begin_type = {.name = "begin"};
static const domus_type question_type = {.name = "question"};
static const domus_type answer_type = {.name = "answered"};
static const domus_type ring_type = {.name = "ring"};

static domus_config config_with_stall_signal(void)
{
    domus_config config = domt_config_of_threads(1);
    config.stall.threshold_ns = 25 * DOMT_MS;
    config.stall.signal = SIGNAL;
    return config;
}

static domus_system *start_system_that_logs_stalls(const domus_config *config)
{
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    return domt_start_logging_system(config);
}

/* Wait until a stall whose line contains `part` was logged, and end the system. On a busy machine
 * there may be other stalls, outside of handlers. */
static void end_system_when_stall_is_logged(domus_system *system, const char *part)
{
    uint64_t until_ns = domt_now_ns() + 30000 * DOMT_MS;
    for (; domt_count_log_lines(part, NULL) != 1 || !domt_backtrace_shows_stay();
         domt_pause_ns(DOMT_MS))
        ck_assert_msg(domt_now_ns() < until_ns, "waited in vain for: %s", part);
    DOMT_WAIT_FOR(30, domt_profile_of_thread(system, 0).stalls == domt_count_ended_stalls(system));
    ck_assert_uint_eq(domt_count_log_lines(part, NULL), 1);
    domt_end_system(system);
}

/* --- what code is called for ------------------------------------------------------------------ */

static int doze_in_mount(domus_stack *stack, void *self)
{
    domt_stay_asleep(60 * DOMT_MS, "in mounter, handling on_mount");
    return 0;
}

static void doze_in_stop(domus_stack *stack, void *self)
{
    domt_stay_asleep(60 * DOMT_MS, "in stopper, handling on_stop");
}

static const domus_behaviour mounter = {.name = "mounter", .on_mount = doze_in_mount};
static const domus_behaviour stopper = {.name = "stopper", .on_stop = doze_in_stop};

static int doze_in_handler_of_timer(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_asleep(60 * DOMT_MS, "in sleeper, handling ring");
    return 0;
}

static int arm_timer_in_mount(domus_stack *stack, void *self, const void *payload)
{
    return domus_after(stack, 10 * DOMT_MS, &ring_type, NULL, NULL);
}

static const domus_behaviour sleeper = {
    .name = "sleeper",
    .on = (const domus_on[]){
        {&begin_type, arm_timer_in_mount, 0}, {&ring_type, doze_in_handler_of_timer, 0}, {0}}};

static int reply_to_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &answer_type, NULL);
}

static int doze_in_resumed_handler(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    domt_stay_asleep(60 * DOMT_MS, "in asker, handling answered");
    return 0;
}

static int ask_other_actor(domus_stack *stack, void *self, const void *payload)
{
    return domus_ask(stack, *(const domus_address *)self, &question_type, NULL,
                     doze_in_resumed_handler);
}

static const domus_behaviour answerer = {
    .name = "answerer", .on = (const domus_on[]){{&question_type, reply_to_ask, 0}, {0}}};

static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&begin_type, ask_other_actor, 0}, {0}}};

static int doze_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_stay_asleep(60 * DOMT_MS, "in waker, which was resumed without a message");
    return 0;
}

static int sleep_before_stall(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, 5 * DOMT_MS, doze_after_sleep);
}

static const domus_behaviour waker = {
    .name = "waker", .on = (const domus_on[]){{&begin_type, sleep_before_stall, 0}, {0}}};

static const struct {
    const domus_behaviour *behaviour;
    const char *told;
    /* set by the test: what this case begins with, and whether its actor is stopped */
    bool is_begun, is_stopped;
} cases[] = {
    {&mounter, "in mounter, handling on_mount", false, false},
    {&stopper, "in stopper, handling on_stop", false, true},
    {&sleeper, "in sleeper, handling ring", true, false},
    {&asker, "in asker, handling answered", true, false},
    {&waker, "in waker, which was resumed without a message", true, false},
};

DOMT_TEST(stall_is_reported_in_each_kind_of_callback)
{
    domus_config config = config_with_stall_signal();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_system *system = start_system_that_logs_stalls(&config);
        domus_address whom = domt_spawn(system, 0, &answerer, NULL);
        domus_address address = domt_spawn(system, 0, cases[i].behaviour, &whom);
        if (cases[i].is_begun)
            domt_send_notice(system, address, &begin_type, NULL);
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).spawns == 2);
        if (cases[i].is_stopped)
            ck_assert_int_eq(domus_outside_stop(system, address), 0);
        end_system_when_stall_is_logged(system, cases[i].told);
    }
}

static int doze_in_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domt_stay_asleep(60 * DOMT_MS, "in reader, handling on_read");
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour reader = {
    .name = "reader", .kind = DOMUS_CHANNELS, .on_read = {doze_in_read, 0}};

DOMT_TEST(stall_in_on_read_of_channel_is_reported)
{
    domus_config config = config_with_stall_signal();
    domt_add_front_listener(&config);
    domus_system *system = start_system_that_logs_stalls(&config);

    uint16_t port = domt_serve_front_listener(system, &reader, NULL);
    int fd = domt_connect_to_port(port);
    ck_assert(domt_send_and_get_echo(fd, "hello"));
    close(fd);
    end_system_when_stall_is_logged(system, "in reader, handling on_read");
}

/* --- nobody's --------------------------------------------------------------------------------- */

static int fail_with_eproto(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static const domus_behaviour failing = {
    .name = "failing", .on = (const domus_on[]){{&begin_type, fail_with_eproto, 0}, {0}}};

static int spawn_failing_child(domus_stack *stack, void *self, const void *payload)
{
    domus_address child;
    ck_assert_int_eq(domus_spawn(stack, &failing, NULL, &child), 0);
    return domus_notice(stack, child, &begin_type, NULL);
}

static const domus_supervision once = {.intensity = 1, .otherwise = DOMUS_RESTART};

static const domus_behaviour parent = {
    .name = "parent",
    .on = (const domus_on[]){{&begin_type, spawn_failing_child, 0}, {0}},
    .supervision = &once};

/* The log hook, which the thread calls between two runs, does not return. */
DOMT_TEST(stall_outside_of_handlers_is_reported_as_such)
{
    domus_config config = config_with_stall_signal();
    domus_system *system = start_system_that_logs_stalls(&config);

    domt_block_log_at_line("is restarted");
    domt_send_notice(system, domt_spawn(system, 0, &parent, NULL), &begin_type, NULL);
    DOMT_WAIT_FOR(20, domt_count_log_lines(" ms in no handler; ", NULL) == 1);
    domt_let_stays_and_log_go_on();
    domt_end_system(system);
}

/* --- without a backtrace ---------------------------------------------------------------------- */

static const domus_type stay_type = {.name = "stay"};

static int burn_cpu_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_busy(60 * DOMT_MS, "in stuck, handling stay");
    return 0;
}

static const domus_behaviour stuck = {
    .name = "stuck", .on = (const domus_on[]){{&stay_type, burn_cpu_in_handler, 0}, {0}}};

static void expect_report_without_backtrace(domus_system *system, const char *why)
{
    domt_send_notice(system, domt_spawn(system, 0, &stuck, NULL), &stay_type, NULL);
    DOMT_WAIT_FOR(30, domt_count_log_lines("in stuck, handling stay", why) == 1);
    ck_assert_uint_eq(domt_count_log_lines(" #0 ", NULL), 0);
    domt_end_system(system);
}

static void ignore_signal_of_program(int number)
{
}

DOMT_TEST(report_says_why_backtrace_is_missing)
{
    domus_config config = config_with_stall_signal();
    const struct sigaction none = {.sa_handler = SIG_DFL};

    expect_report_without_backtrace(domt_start_logging_system(&config),
                                    "has not called domus_stall_signal()");
    domus_system *system = domt_start_logging_system(&config);
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    expect_report_without_backtrace(system, "was called after the start");
    config.stall.signal = 0;
    expect_report_without_backtrace(domt_start_logging_system(&config), "stall.signal is 0");
    config.stall.signal = SIGNAL;
    system = domt_start_logging_system(&config);
    /* the default action of the signal, which would end the process */
    ck_assert_int_eq(sigaction(SIGNAL, &none, NULL), 0);
    expect_report_without_backtrace(system, "has not called domus_stall_signal()");
}

static int block_signals_and_stay(domus_stack *stack, void *self, const void *payload)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return burn_cpu_in_handler(stack, self, payload);
}

static const domus_behaviour deaf = {
    .name = "stuck", .on = (const domus_on[]){{&stay_type, block_signals_and_stay, 0}, {0}}};

DOMT_TEST(stall_of_a_thread_with_blocked_signals_is_reported)
{
    domus_config config = config_with_stall_signal();
    domus_system *system = start_system_that_logs_stalls(&config);
    domt_send_notice(system, domt_spawn(system, 0, &deaf, NULL), &stay_type, NULL);
    DOMT_WAIT_FOR(30,
                  domt_count_log_lines("in stuck, handling stay", "does not take the signal") == 1);
    domt_end_system(system);
}

DOMT_TEST(stall_signal_must_be_a_real_time_one_that_is_unused)
{
    struct sigaction action = {.sa_handler = ignore_signal_of_program};

    ck_assert_int_eq(domus_stall_signal(0), -EINVAL);
    ck_assert_int_eq(domus_stall_signal(-1), -EINVAL);
    ck_assert_int_eq(domus_stall_signal(SIGTERM), -EINVAL);
    ck_assert_int_eq(domus_stall_signal(SIGRTMAX + 1), -EINVAL);
    ck_assert_int_eq(sigaction(SIGNAL, &action, NULL), 0);
    ck_assert_int_eq(domus_stall_signal(SIGNAL), -EBUSY);
    action.sa_handler = SIG_IGN;
    ck_assert_int_eq(sigaction(SIGNAL, &action, NULL), 0);
    ck_assert_int_eq(domus_stall_signal(SIGNAL), -EBUSY);
    ck_assert_int_eq(domus_stall_signal(SIGNAL + 1), 0);
    ck_assert_int_eq(domus_stall_signal(SIGNAL + 1), 0);
    errno = 77;
    /* raised on this thread, which is no thread of a system */
    ck_assert_int_eq(raise(SIGNAL + 1), 0);
    ck_assert_int_eq(errno, 77);
}

/* --- domus_main() ----------------------------------------------------------------------------- */

static int burn_cpu_and_quit(domus_stack *stack, void *self, const void *payload)
{
    domt_stay_busy(500 * DOMT_MS, NULL);
    domus_main_quit(0);
    return 0;
}

static const domus_behaviour quitting = {
    .name = "quitting", .on = (const domus_on[]){{&stay_type, burn_cpu_and_quit, 0}, {0}}};

static int spawn_actor_that_stays_and_quits(domus_system *system, void *argument)
{
    domt_send_notice(system, domt_spawn(system, 0, &quitting, NULL), &stay_type, NULL);
    return 0;
}

DOMT_TEST(program_prints_stall_report_to_stderr)
{
    static const domus_program program = {.name = "program",
                                          .start = spawn_actor_that_stays_and_quits};
    char *arguments[] = {"program", "--set", "system.threads=1", "--set", "system.cpus=none", NULL};
    static char text[65536];
    FILE *said = tmpfile();
    int before = dup(STDERR_FILENO);

    ck_assert_ptr_nonnull(said);
    fflush(stderr);
    ck_assert_int_ge(dup2(fileno(said), STDERR_FILENO), 0);
    int status = domus_main(5, arguments, &program);
    fflush(stderr);
    ck_assert_int_ge(dup2(before, STDERR_FILENO), 0);
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = '\0';
    fclose(said);
    close(before);
    ck_assert_int_eq(status, 0);
    ck_assert_msg(strstr(text, "program: warning: thread 0 is stuck for ") != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, " ms in quitting, handling stay; "));
    ck_assert_ptr_nonnull(strstr(text, "program: warning: thread 0 #0 "));
}

DOMT_SUITE(120)
