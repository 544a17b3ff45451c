/* runtime/os/fork.c: in a child that was forked from a running system, each call fails with an
 * error and changes nothing, and the parent's system goes on. */
#include "tests/runtime/running.h"
#include "tests/support/death.h"

#include <domus/dump.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const domus_type ask_type = {.name = "ask"};
static const domus_type fork_type = {.name = "fork", .size = sizeof(int)};
static const domus_type done_type = {.name = "done", .size = sizeof(int)};

enum { EXIT, RETURN };

static int said[2]; /* a pipe through which a child tells its result */

static int reply_with_seven(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &done_type, &(int){7});
}

/* Fork in a handler; the parent answers with the child's pid. */
static int on_fork_fork_process(domus_stack *stack, void *self, const void *payload)
{
    int how = *(const int *)payload;
    pid_t child = fork();

    if (child == 0 && how == EXIT)
        _exit(42);
    if (child == 0) {
        (void)dup2(said[1], STDERR_FILENO);
        return 0;
    }
    return domus_reply(stack, &done_type, &child);
}

static const domus_behaviour forking = {
    .name = "forking",
    .on = (const domus_on[]){
        {&ask_type, reply_with_seven, 0}, {&fork_type, on_fork_fork_process, 0}, {0}}};

static const domus_behaviour serving = {.name = "serving", .kind = DOMUS_CHANNELS};

static void expect_parent_still_answers(domus_system *system, domus_address to)
{
    int number = 0;
    domus_outside_reply reply = {.buffer = &number, .size = sizeof number};

    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(domus_outside_ask(system, to, &ask_type, NULL, 0, &reply), 0);
        ck_assert_int_eq(number, 7);
    }
}

struct busy {
    domus_system *system;
    domus_address to;
    atomic_bool ends;
};

/* Use the parent's system in the child. The child ends with 0, or with the number of the first call
 * that had a wrong result; it does not return to Check. */
static void use_parents_system_in_child(void *parents_)
{
    const struct busy *parents = parents_;
    domus_system *system = parents->system;
    domus_address to = parents->to;

    alarm(20);
    static char text[8 * DOMUS_DUMP_BYTES_MIN];
    domus_address address;
    domus_grains grains = {NULL};
    const int results[] = {
        domus_outside_spawn(system, &forking, NULL, &address),
        domus_outside_spawn_on(system, 0, &forking, NULL, &address),
        domus_outside_spawn_with(system, &forking, NULL, NULL, &address),
        domus_outside_notice(system, to, &ask_type, NULL),
        domus_outside_ask(system, to, &ask_type, NULL, 0, NULL),
        domus_outside_stop(system, to),
        domus_outside_stop_after_mail(system, to),
        domus_outside_letters(system, to, 1),
        domus_outside_grain_open(system, &(domus_grain_kind){.name = "a"}, &grains),
        domus_outside_grain_notice(system, grains, "a", &ask_type, NULL),
        domus_outside_grain_ask(system, grains, "a", &ask_type, NULL, 0, NULL),
        domus_dump(system, text, sizeof text),
        domus_dump_actor(system, to, text, sizeof text),
        domus_serve(system, "any", &serving, NULL, NULL),
        domus_system_stop(system),
    };

    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] != -ECHILD)
            _exit((int)i + 1);
    }
    domus_system_free(system); /* this call does nothing in a child */
    _exit(domus_system_threads(system) == 0 ? 99 : 0);
}

static char child_said[DOMT_SAID_MAX];

static void check_system_of_parent_in_child(struct busy *parents)
{
    ck_assert_int_eq(domt_run_in_child(use_parents_system_in_child, parents, child_said), 0);
}

static int status_of_ended_child(pid_t child)
{
    int status = 0;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

DOMT_TEST(each_call_on_a_parents_system_fails_in_child)
{
    domus_system *system = domt_start_system_of_threads(2);
    struct busy parents = {.system = system, .to = domt_spawn(system, 0, &forking, NULL)};

    check_system_of_parent_in_child(&parents);
    expect_parent_still_answers(system, parents.to);
    domt_end_system(system);
}

static void *ask_until_over(void *self_)
{
    struct busy *self = self_;

    while (!atomic_load(&self->ends))
        (void)domus_outside_ask(self->system, self->to, &ask_type, NULL, 0, NULL);
    return NULL;
}

/* In most cases the mutex is held at the fork, by a thread that the child does not have. */
DOMT_TEST(forked_child_waits_for_no_lost_thread)
{
    domus_system *system = domt_start_system_of_threads(1);
    struct busy busy = {.system = system, .to = domt_spawn(system, 0, &forking, NULL)};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_until_over, &busy), 0);
    for (int i = 0; i < (DOMT_SANITIZED ? 5 : 50); i++)
        check_system_of_parent_in_child(&busy);
    atomic_store(&busy.ends, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    domt_end_system(system);
}

static pid_t let_handler_fork(domus_system *system, domus_address to, int how)
{
    int child = 0;
    domus_outside_reply reply = {.buffer = &child, .size = sizeof child};

    ck_assert_int_eq(domus_outside_ask(system, to, &fork_type, &how, 0, &reply), 0);
    ck_assert_int_gt(child, 0);
    return child;
}

DOMT_TEST(a_handler_may_fork_if_the_child_does_not_return)
{
    domus_system *system = domt_start_system_of_threads(1);
    domus_address to = domt_spawn(system, 0, &forking, NULL);

    ck_assert_int_eq(pipe2(said, O_CLOEXEC), 0);
    int status = status_of_ended_child(let_handler_fork(system, to, EXIT));
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    expect_parent_still_answers(system, to);
    status = status_of_ended_child(let_handler_fork(system, to, RETURN));
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    char text[256] = "";
    ck_assert_int_gt(read(said[0], text, sizeof text - 1), 0);
    ck_assert_ptr_nonnull(strstr(text, "!domi_system_is_forked"));
    expect_parent_still_answers(system, to);
    domt_end_system(system);
}

static void start_and_use_system_in_child(void *system)
{
    domus_address to = {NULL, 0};
    int result = domus_system_start(system);

    if (result == 0)
        result = domus_outside_spawn(system, &forking, NULL, &to);
    if (result == 0)
        result = domus_outside_ask(system, to, &ask_type, NULL, 0, NULL);
    if (result == 0)
        result = domus_system_stop(system);
    domus_system_free(system);
    _exit(-result);
}

static void make_and_free_system(void *config)
{
    domus_system *system = NULL;

    ck_assert_int_eq(domus_system_new(config, NULL, 0, &system), 0);
    domus_system_free(system);
}

/* A system that was made, but not started, in the parent can be started in the child. */
DOMT_TEST(a_system_may_be_started_after_a_fork)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = NULL;

    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    ck_assert_int_eq(domt_run_in_child(start_and_use_system_in_child, system, child_said), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    expect_parent_still_answers(system, domt_spawn(system, 0, &forking, NULL));
    domt_end_system(system);
    ck_assert_int_eq(domt_run_in_child(make_and_free_system, &config, child_said), 0);
}

/* All descriptors of a system are close-on-exec, so no other program gets one of them. */
DOMT_TEST(all_descriptors_are_close_on_exec)
{
    const domus_listener_config listener = {.name = "any", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config_of_threads(2);
    config.listeners = &listener;
    config.listener_count = 1;
    bool before[1024];
    int opened = 0;

    for (int fd = 0; fd < 1024; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(domus_serve(system, "any", &serving, NULL, NULL), 0);
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || before[fd])
            continue;
        ck_assert_int_eq(flags, FD_CLOEXEC);
        opened++;
    }
    ck_assert_int_ge(opened, 5); /* the system has two rings, two eventfds and a listener */
    domt_end_system(system);
}

DOMT_SUITE(60)
