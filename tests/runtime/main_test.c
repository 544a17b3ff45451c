/* config/main.c: domus_main() does what domus/main.h says about options, signals and the exit
 * status.
 *
 * Each program is a child process. The test is not in tests/config, because its programs run
 * threads. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- options ---------------------------------------------------------------------------------- */

/* Print some values of the system's configuration, and quit. */
static int print_config_and_quit(domus_system *system, void *argument)
{
    const domus_config *config = domus_system_config(system);

    printf("started ratio %u threads %u\n", config->scheduler.io_ratio,
           domus_system_threads(system));
    fflush(stdout);
    domus_main_quit(0);
    return 0;
}

static const domus_program teller = {.name = "teller", .start = print_config_and_quit};

DOMT_TEST(help_goes_to_stdout_and_starts_nothing)
{
    domt_program own;

    domt_program_check_exit(&own, &teller, 0, "--help", NULL);
    domt_must_contain(own.out_text, "usage: teller");
    domt_must_contain(own.out_text, "--config");
    domt_must_contain(own.out_text, "--set");
    ck_assert_ptr_null(strstr(own.out_text, "started"));
    ck_assert_str_eq(own.err_text, "");
}

DOMT_TEST(wrong_options_end_with_2_and_start_nothing)
{
    static const char *const wrong[][4] = {
        {"--nonsense", NULL},
        {"--config", NULL},
        {"stray", NULL},
        {"--set", "scheduler.ioRatio=50", "stray", NULL},
        {"--config", "/nonexistent/domus.yaml", NULL},
        {"--set", "scheduler.nonsense=1", NULL},
        {"--set", "scheduler.ioRatio=101", NULL},
        {"--set", "nonsense", NULL},
        {"--set", "channel.sendLow=1GiB", NULL},
    };
    domt_program own;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(domt_program_run(&own, &teller, wrong[i]), 2);
        ck_assert_str_eq(own.out_text, "");
        ck_assert_str_ne(own.err_text, "");
    }
    ck_assert_int_eq(domt_program_run(&own, &teller, wrong[4]), 2);
    ck_assert_str_eq(own.err_text,
                     "/nonexistent/domus.yaml: cannot be read: No such file or directory\n");
    /* The program reports all errors, and not only the first. */
    domt_program_check_exit(&own, &teller, 2, "--set", "scheduler.ioRatio=0", "--set",
                            "io.ringEntries=500", NULL);
    domt_must_contain(own.err_text, "scheduler.ioRatio");
    domt_must_contain(own.err_text, "io.ringEntries");
}

DOMT_TEST(program_with_cpus_that_are_not_there_ends_with_2)
{
    domt_program own;

    domt_program_check_exit(&own, &teller, 2, "--set", "system.cpus=1023", NULL);
    domt_must_contain(own.err_text, "teller: ");
    ck_assert_str_eq(own.out_text, "");
}

DOMT_TEST(set_holds_over_files_wherever_it_stands)
{
    char file[PATH_MAX], other[PATH_MAX];
    domt_tree tree;
    domt_program own;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "a.yaml", "scheduler:\n  ioRatio: 30\nsystem:\n  threads: 2\n");
    domt_tree_write(&tree, "b.yaml", "scheduler:\n  ioRatio: 40\n");
    domt_tree_write(&tree, "bad.yaml", "scheduler:\n  ioRatio: 30\n  ioRatio: 31\n  nope: 1\n");
    snprintf(file, sizeof file, "%s/a.yaml", tree.root);
    snprintf(other, sizeof other, "%s/b.yaml", tree.root);

    domt_program_check_exit(&own, &teller, 0, "--config", file, NULL);
    domt_must_contain(own.out_text, "started ratio 30 threads 2\n");
    domt_program_check_exit(&own, &teller, 0, "--config", file, "--set", "scheduler.ioRatio=60",
                            NULL);
    domt_must_contain(own.out_text, "started ratio 60 threads 2\n");
    domt_program_check_exit(&own, &teller, 0, "--set", "scheduler.ioRatio=60", "--config", file,
                            NULL);
    domt_must_contain(own.out_text, "started ratio 60 threads 2\n");
    domt_program_check_exit(&own, &teller, 0, "--config", file, "--config", other, NULL);
    /* keys of both files are used, and those of the later file win */
    domt_must_contain(own.out_text, "started ratio 40 threads 2\n");

    snprintf(file, sizeof file, "%s/bad.yaml", tree.root);
    domt_program_check_exit(&own, &teller, 2, "--config", file, NULL);
    domt_must_contain(own.err_text, "bad.yaml:3:");
    domt_must_contain(own.err_text, "bad.yaml:4:");
    domt_tree_remove_copy(&tree);
}

/* --- start ------------------------------------------------------------------------------------ */

static int fail_start_hook(domus_system *system, void *argument)
{
    return -EDOM;
}

static const domus_behaviour server = {.name = "server", .kind = DOMUS_CHANNELS};

static int serve_listener_named_front(domus_system *system, void *argument)
{
    return domus_main_serve(system, "front", &server, NULL);
}

/* Write a configuration file with a listener "front" at this address. */
static void write_config_with_listener_front(domt_tree *tree, char path[PATH_MAX],
                                             const char *address)
{
    char text[256];

    domt_tree_make(tree);
    snprintf(text, sizeof text,
             "system:\n  threads: 2\nlisteners:\n  - name: front\n    address: %s\n", address);
    domt_tree_write(tree, "front.yaml", text);
    snprintf(path, PATH_MAX, "%s/front.yaml", tree->root);
}

static void limit_descriptors_to_four(void)
{
    struct rlimit few = {.rlim_cur = 4, .rlim_max = 4};

    setrlimit(RLIMIT_NOFILE, &few);
}

DOMT_TEST(start_that_fails_ends_with_1_and_says_why)
{
    const domus_program failing = {.name = "failing", .start = fail_start_hook};
    const domus_program serving = {.name = "serving", .start = serve_listener_named_front};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    char taken[64], path[PATH_MAX];
    domt_tree tree;
    domt_program own;

    domt_program_check_exit(&own, &failing, 1, NULL);
    domt_must_contain(own.err_text, "failing: ");
    domt_must_contain(own.err_text, strerror(EDOM));

    /* the configuration has no listener of the name that the program serves */
    domt_program_check_exit(&own, &serving, 1, NULL);
    domt_must_contain(own.err_text, "front");

    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)(void *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)(void *)&address, &length), 0);
    snprintf(taken, sizeof taken, "\"127.0.0.1:%u\"", ntohs(address.sin_port));
    write_config_with_listener_front(&tree, path, taken);
    domt_program_check_exit(&own, &serving, 1, "--config", path, NULL);
    domt_tree_remove_copy(&tree);
    domt_must_contain(own.err_text, "front");
    domt_must_contain(own.err_text, strerror(EADDRINUSE));
    ck_assert_str_eq(own.out_text, "");
    close(fd);

    domt_program_start(&own, &teller, domt_no_arguments, limit_descriptors_to_four);
    ck_assert_int_eq(domt_program_read_to_end(&own), 1);
    domt_must_contain(own.err_text, "teller: ");
    ck_assert_ptr_null(strstr(own.out_text, "started"));
}

DOMT_TEST(listener_that_nothing_serves_is_told_at_the_start)
{
    const domus_program serving = {.name = "serving", .start = serve_listener_named_front};
    domt_program own;
    domt_tree tree;
    char path[PATH_MAX];
    static const char warning[] = "warning: listener front is in the configuration, and the "
                                  "program does not serve it\n";

    write_config_with_listener_front(&tree, path, "127.0.0.1:0");
    const char *const arguments[] = {"--config", path, NULL};
    ck_assert_int_eq(domt_program_run(&own, &teller, arguments), 0);
    domt_must_contain(own.err_text, warning);
    domt_program_start_and_read(&own, &serving, arguments, NULL, "listening front");
    domt_program_end_by_signal(&own, SIGTERM, 0);
    ck_assert_ptr_null(strstr(own.err_text, "does not serve it"));
    domt_tree_remove_copy(&tree);
}

/* --- signals ---------------------------------------------------------------------------------- */

DOMT_TEST(sigterm_and_sigint_end_with_0_and_the_profile)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    const domus_program serving = {.name = "serving", .start = serve_listener_named_front};
    char path[PATH_MAX];
    domt_tree tree;
    domt_program own;

    write_config_with_listener_front(&tree, path, "\"127.0.0.1:0\"");
    for (size_t i = 0; i < 2; i++) {
        domt_program_start_and_read(&own, &serving, (const char *const[]){"--config", path, NULL},
                                    NULL, "\n");
        const char *said = "listening front 127.0.0.1:";
        ck_assert_int_eq(strncmp(own.out_text, said, strlen(said)), 0);
        unsigned long port = strtoul(own.out_text + strlen(said), NULL, 10);
        ck_assert(port > 0 && port < 65536);
        ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
        domt_program_read_stderr_until(&own, "iterations", 1);
        ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
        domt_program_read_stderr_until(&own, "iterations", 2);
        ck_assert_int_eq(kill(own.pid, numbers[i]), 0);
        ck_assert_int_eq(domt_program_read_to_end(&own), 0);
        domt_program_read_stderr_until(&own, "iterations", 3);
    }
    domt_tree_remove_copy(&tree);
}

/* A handler of bytes that never returns. */
static int block_for_ever_in_read(domus_stack *stack, void *self, const void *payload)
{
    printf("reading\n");
    fflush(stdout);
    domt_pause_ns(100000 * DOMT_MS);
    return 0;
}

static const domus_behaviour stuck_server = {
    .name = "stuck-server", .kind = DOMUS_CHANNELS, .on_read = {block_for_ever_in_read, 0}};

static int serve_listener_by_stuck_actor(domus_system *system, void *argument)
{
    return domus_main_serve(system, "front", &stuck_server, NULL);
}

static void end_process_without_leak_check(int status, void *unused)
{
    _exit(status);
}

/* From now on end the process before LeakSanitizer looks: the memory of a thread that never returns
 * is not freed, and would count as a leak. */
static void skip_leak_check_at_exit(void)
{
    ck_assert_int_eq(on_exit(end_process_without_leak_check, NULL), 0);
}

DOMT_TEST(a_handler_that_does_not_return_holds_connections_that_count_as_cut)
{
    const domus_program serving = {.name = "stuck", .start = serve_listener_by_stuck_actor};
    const char *said = "listening front 127.0.0.1:";
    char path[PATH_MAX];
    domt_tree tree;
    domt_program own;

    write_config_with_listener_front(&tree, path, "\"127.0.0.1:0\"");
    const char *const arguments[] = {"--config", path,
                                     "--set",    "shutdown.cutStatus=77",
                                     "--set",    "shutdown.drainTimeout=100ms",
                                     "--set",    "shutdown.actorTimeout=100ms",
                                     NULL};
    domt_program_start_and_read(&own, &serving, arguments, skip_leak_check_at_exit, "\n");
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(own.out_text + strlen(said), NULL, 10)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&address, sizeof address), 0);
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    domt_program_read_stdout_until(&own, "reading\n");
    domt_program_end_by_signal(&own, SIGTERM, 77);
    domt_must_contain(own.err_text, "a handler of stuck-server has not returned");
    domt_must_contain(own.err_text,
                      "1 connections are held by threads whose handlers have not returned");
    close(fd);
    domt_tree_remove_copy(&tree);
}

static const domus_type quit_type = {.name = "quit", .size = sizeof(int)};

static int quit_twice_in_handler(domus_stack *stack, void *self, const void *payload)
{
    domus_main_quit(*(const int *)payload);
    domus_main_quit(99); /* this quit is ignored, because the first one counts */
    return 0;
}

static void quit_in_stop_of_actor(domus_stack *stack, void *self)
{
    if (*(const int *)self != 0)
        domus_main_quit(*(const int *)self);
}

static const domus_behaviour quitter = {
    .name = "quitter",
    .state_size = sizeof(int),
    .on = (const domus_on[]){{&quit_type, quit_twice_in_handler, 0}, {0}},
    .on_stop = quit_in_stop_of_actor};

static int let_handler_quit(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn(system, &quitter, NULL, &address);

    return result != 0 ? result : domus_outside_notice(system, address, &quit_type, argument);
}

DOMT_TEST(quit_from_a_handler_ends_with_its_status)
{
    int status = 7;
    const domus_program program = {
        .name = "quitting", .start = let_handler_quit, .argument = &status};
    domt_program own;

    domt_program_check_exit(&own, &program, 7, NULL);
    domt_must_contain(own.err_text, "iterations");
    status = 0;
    domt_program_check_exit(&own, &program, 0, NULL);
}

static void *quit_on_other_thread(void *argument)
{
    domus_main_quit(3);
    return NULL;
}

static int let_new_thread_quit(domus_system *system, void *argument)
{
    static pthread_t thread;

    int result = pthread_create(&thread, NULL, quit_on_other_thread, NULL);
    return result != 0 ? -result : -pthread_join(thread, NULL);
}

DOMT_TEST(quit_from_a_foreign_thread_ends_with_its_status)
{
    const domus_program program = {.name = "quitting", .start = let_new_thread_quit};
    domt_program own;

    domt_program_check_exit(&own, &program, 3, NULL);
}

static int print_that_program_started(domus_system *system, void *argument)
{
    printf("started\n");
    fflush(stdout);
    return 0;
}

static void quit_before_start_ends(void)
{
    domus_main_quit(6);
}

DOMT_TEST(quit_before_the_program_runs_ends_it_as_soon_as_it_does)
{
    const domus_program program = {.name = "quitting", .start = print_that_program_started};
    domt_program own;

    domt_program_start(&own, &program, domt_no_arguments, quit_before_start_ends);
    ck_assert_int_eq(domt_program_read_to_end(&own), 6);
    domt_must_contain(own.out_text, "started");
    domt_must_contain(own.err_text, "iterations");
}

static void quit_early_with_negative_status(void)
{
    domus_main_quit(-1);
}

DOMT_TEST(quit_with_negative_status_is_remembered)
{
    const domus_program program = {.name = "quitting", .start = print_that_program_started};
    domt_program own;

    domt_program_start(&own, &program, domt_no_arguments, quit_early_with_negative_status);
    /* the exit status of a process that calls exit(-1) */
    ck_assert_int_eq(domt_program_wait_for_end(&own), 255);
    close(own.out);
    close(own.err);
}

static int spawn_actor_that_quits_in_stop(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn_on(system, 0, &quitter, argument, &address);

    while (domt_profile_of_thread(system, 0).spawns == 0)
        domt_pause_ns(DOMT_MS);
    printf("ready\n");
    fflush(stdout);
    return result;
}

/* A SIGQUIT after a SIGTERM does not count as a second signal, so the program goes on draining. */
DOMT_TEST(quit_while_stopping_is_no_second_signal)
{
    int status = 9;
    const domus_program program = {
        .name = "quitting", .start = spawn_actor_that_quits_in_stop, .argument = &status};
    domt_program own;

    domt_program_start_and_read(&own, &program, domt_no_arguments, NULL, "ready\n");
    domt_program_end_by_signal(&own, SIGTERM, 9);
    domt_must_contain(own.err_text, "iterations");
}

DOMT_SUITE(60)
