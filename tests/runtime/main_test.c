/* domus_main() as programs have it: options, signals, exit status; each program is a child process.
 *
 * It stands here and not beside the tests of config/, because it runs threads. */
#include <domus/main.h>

#include "tests/runtime/running.h"
#include "tests/support/tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 16384

typedef struct child {
    pid_t pid;
    int out;
    int err;
    char out_text[TEXT_MAX];
    char err_text[TEXT_MAX];
    size_t out_length;
    size_t err_length;
} child;

static const char *const no_arguments[] = {NULL};

/* Run domus_main() with these arguments, after `prepare` (may be NULL), in a process of its own. */
static void child_start(child *own, const domus_program *program, const char *const *arguments,
                        void (*prepare)(void))
{
    char *argv[16] = {(char *)(uintptr_t) "program"};
    int argc = 1;
    int out[2], err[2];

    for (; arguments[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
    memset(own, 0, sizeof *own);
    ck_assert_int_eq(pipe(out), 0);
    ck_assert_int_eq(pipe(err), 0);
    fflush(NULL);
    own->pid = fork();
    ck_assert_int_ge(own->pid, 0);
    if (own->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        close(out[0]);
        close(err[0]);
        alarm(60); /* nobody is left behind */
        if (prepare != NULL)
            prepare();
        exit(domus_main(argc, argv, program));
    }
    close(out[1]);
    close(err[1]);
    own->out = out[0];
    own->err = err[0];
}

static bool take_text(int fd, char *text, size_t *length)
{
    ssize_t got = read(fd, text + *length, TEXT_MAX - 1 - *length);

    if (got > 0)
        *length += (size_t)got;
    return got > 0;
}

/* Until stdout holds `text`. */
static void child_says(child *own, const char *text)
{
    while (strstr(own->out_text, text) == NULL)
        ck_assert_msg(take_text(own->out, own->out_text, &own->out_length), "'%s' is not in '%s'",
                      text, own->out_text);
}

/* Until stderr holds `text` `times`. */
static void child_complains(child *own, const char *text, int times)
{
    for (;;) {
        const char *at = own->err_text;
        int count = 0;

        while ((at = strstr(at, text)) != NULL) {
            at++;
            count++;
        }
        if (count >= times)
            return;
        ck_assert_msg(take_text(own->err, own->err_text, &own->err_length), "'%s' is not in '%s'",
                      text, own->err_text);
    }
}

/* All that it said, and its exit status. */
static int child_end(child *own)
{
    int status = 0;

    while (take_text(own->out, own->out_text, &own->out_length))
        continue;
    while (take_text(own->err, own->err_text, &own->err_length))
        continue;
    close(own->out);
    close(own->err);
    ck_assert_int_eq(waitpid(own->pid, &status, 0), own->pid);
    ck_assert_msg(WIFEXITED(status), "ended by signal %d: %s", WTERMSIG(status), own->err_text);
    return WEXITSTATUS(status);
}

static int run(child *own, const domus_program *program, const char *const *arguments)
{
    child_start(own, program, arguments, NULL);
    return child_end(own);
}

static void has(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

/* --- options ---------------------------------------------------------------------------------- */

/* Tells what it was configured with, and ends. */
static int tell(domus_system *system, void *argument)
{
    const domus_config *config = domus_system_config(system);

    (void)argument;
    printf("started ratio %u threads %u\n", config->scheduler.io_ratio,
           domus_system_threads(system));
    fflush(stdout);
    domus_main_quit(0);
    return 0;
}

static const domus_program teller = {.name = "teller", .start = tell};

START_TEST(help_goes_to_stdout_and_starts_nothing)
{
    child own;

    ck_assert_int_eq(run(&own, &teller, (const char *const[]){"--help", NULL}), 0);
    has(own.out_text, "usage: teller");
    has(own.out_text, "--config");
    has(own.out_text, "--set");
    ck_assert_ptr_null(strstr(own.out_text, "started"));
    ck_assert_str_eq(own.err_text, "");
}
END_TEST

START_TEST(wrong_options_end_with_2_and_start_nothing)
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
    child own;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(run(&own, &teller, wrong[i]), 2);
        ck_assert_str_eq(own.out_text, "");
        ck_assert_str_ne(own.err_text, "");
    }
    ck_assert_int_eq(run(&own, &teller, wrong[4]), 2);
    has(own.err_text, "/nonexistent/domus.yaml");
    /* Every error is told, not only the first. */
    ck_assert_int_eq(run(&own, &teller,
                         (const char *const[]){"--set", "scheduler.ioRatio=0", "--set",
                                               "io.ringEntries=500", NULL}),
                     2);
    has(own.err_text, "scheduler.ioRatio");
    has(own.err_text, "io.ringEntries");
}
END_TEST

START_TEST(cpus_that_are_not_there_end_with_2)
{
    child own;

    ck_assert_int_eq(run(&own, &teller, (const char *const[]){"--set", "system.cpus=1023", NULL}),
                     2);
    has(own.err_text, "teller: ");
    ck_assert_str_eq(own.out_text, "");
}
END_TEST

START_TEST(set_holds_over_files_wherever_it_stands)
{
    char file[PATH_MAX], other[PATH_MAX];
    domt_tree tree;
    child own;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "a.yaml", "scheduler:\n  ioRatio: 30\nsystem:\n  threads: 2\n");
    domt_tree_write(&tree, "b.yaml", "scheduler:\n  ioRatio: 40\n");
    domt_tree_write(&tree, "bad.yaml", "scheduler:\n  ioRatio: 30\n  ioRatio: 31\n  nope: 1\n");
    snprintf(file, sizeof file, "%s/a.yaml", tree.root);
    snprintf(other, sizeof other, "%s/b.yaml", tree.root);

    ck_assert_int_eq(run(&own, &teller, (const char *const[]){"--config", file, NULL}), 0);
    has(own.out_text, "started ratio 30 threads 2\n");
    ck_assert_int_eq(
        run(&own, &teller,
            (const char *const[]){"--config", file, "--set", "scheduler.ioRatio=60", NULL}),
        0);
    has(own.out_text, "started ratio 60 threads 2\n");
    ck_assert_int_eq(
        run(&own, &teller,
            (const char *const[]){"--set", "scheduler.ioRatio=60", "--config", file, NULL}),
        0);
    has(own.out_text, "started ratio 60 threads 2\n");
    ck_assert_int_eq(
        run(&own, &teller, (const char *const[]){"--config", file, "--config", other, NULL}), 0);
    has(own.out_text, "started ratio 40 threads 2\n"); /* the later one counts, and adds */

    snprintf(file, sizeof file, "%s/bad.yaml", tree.root);
    ck_assert_int_eq(run(&own, &teller, (const char *const[]){"--config", file, NULL}), 2);
    has(own.err_text, "bad.yaml:3:");
    has(own.err_text, "bad.yaml:4:");
    domt_tree_remove(&tree);
}
END_TEST

/* --- start ------------------------------------------------------------------------------------ */

static int fail_start(domus_system *system, void *argument)
{
    (void)system;
    (void)argument;
    return -EDOM;
}

static const domus_behaviour server = {.name = "server", .kind = DOMUS_CHANNELS};

static int serve_front(domus_system *system, void *argument)
{
    (void)argument;
    return domus_main_serve(system, "front", &server, NULL);
}

/* A file with the listener "front" at this address. */
static void write_front(domt_tree *tree, char path[PATH_MAX], const char *address)
{
    char text[256];

    domt_tree_make(tree);
    snprintf(text, sizeof text,
             "system:\n  threads: 2\nlisteners:\n  - name: front\n    address: %s\n", address);
    domt_tree_write(tree, "front.yaml", text);
    snprintf(path, PATH_MAX, "%s/front.yaml", tree->root);
}

static void few_files(void)
{
    struct rlimit few = {.rlim_cur = 4, .rlim_max = 4};

    setrlimit(RLIMIT_NOFILE, &few);
}

START_TEST(start_that_fails_ends_with_1_and_says_why)
{
    const domus_program failing = {.name = "failing", .start = fail_start};
    const domus_program serving = {.name = "serving", .start = serve_front};
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t length = sizeof address;
    char taken[64], path[PATH_MAX];
    domt_tree tree;
    child own;

    ck_assert_int_eq(run(&own, &failing, no_arguments), 1);
    has(own.err_text, "failing: ");
    has(own.err_text, strerror(EDOM));

    ck_assert_int_eq(run(&own, &serving, no_arguments), 1); /* no such listener */
    has(own.err_text, "front");

    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)(void *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)(void *)&address, &length), 0);
    snprintf(taken, sizeof taken, "\"127.0.0.1:%u\"", ntohs(address.sin_port));
    write_front(&tree, path, taken);
    ck_assert_int_eq(run(&own, &serving, (const char *const[]){"--config", path, NULL}), 1);
    domt_tree_remove(&tree);
    has(own.err_text, "front");
    has(own.err_text, strerror(EADDRINUSE));
    ck_assert_str_eq(own.out_text, "");
    close(fd);

    child_start(&own, &teller, no_arguments, few_files);
    ck_assert_int_eq(child_end(&own), 1);
    has(own.err_text, "teller: ");
    ck_assert_ptr_null(strstr(own.out_text, "started"));
}
END_TEST

/* --- signals ---------------------------------------------------------------------------------- */

START_TEST(sigterm_and_sigint_end_with_0_and_the_profile)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    const domus_program serving = {.name = "serving", .start = serve_front};
    char path[PATH_MAX];
    domt_tree tree;
    child own;

    write_front(&tree, path, "\"127.0.0.1:0\"");
    for (size_t i = 0; i < 2; i++) {
        child_start(&own, &serving, (const char *const[]){"--config", path, NULL}, NULL);
        child_says(&own, "\n");
        const char *said = "listening front 127.0.0.1:";
        ck_assert_int_eq(strncmp(own.out_text, said, strlen(said)), 0);
        unsigned long port = strtoul(own.out_text + strlen(said), NULL, 10);
        ck_assert(port > 0 && port < 65536);
        ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
        child_complains(&own, "iterations", 1);
        ck_assert_int_eq(kill(own.pid, SIGUSR1), 0);
        child_complains(&own, "iterations", 2);
        ck_assert_int_eq(kill(own.pid, numbers[i]), 0);
        ck_assert_int_eq(child_end(&own), 0);
        child_complains(&own, "iterations", 3);
    }
    domt_tree_remove(&tree);
}
END_TEST

static const domus_type quit_type = {.name = "quit", .size = sizeof(int)};

static int quit(domus_stack *stack, void *self, const void *payload)
{
    (void)stack;
    (void)self;
    domus_main_quit(*(const int *)payload);
    domus_main_quit(99); /* the first one counts */
    return 0;
}

static void quit_at_last(domus_stack *stack, void *self)
{
    (void)stack;
    if (*(const int *)self != 0)
        domus_main_quit(*(const int *)self);
}

static const domus_behaviour quitter = {
    .name = "quitter",
    .state_size = sizeof(int),
    .on = (const domus_on[]){{&quit_type, quit, 0}, {NULL, NULL, 0}},
    .on_stop = quit_at_last,
};

static int quit_by_handler(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn(system, &quitter, NULL, &address);

    return result != 0 ? result : domus_outside_notice(system, address, &quit_type, argument);
}

START_TEST(quit_from_a_handler_ends_with_its_status)
{
    int status = 7;
    const domus_program program = {"quitting", quit_by_handler, &status};
    child own;

    ck_assert_int_eq(run(&own, &program, no_arguments), 7);
    has(own.err_text, "iterations");
    status = 0;
    ck_assert_int_eq(run(&own, &program, no_arguments), 0);
}
END_TEST

static void *quit_elsewhere(void *argument)
{
    (void)argument;
    domus_main_quit(3);
    return NULL;
}

static int quit_by_thread(domus_system *system, void *argument)
{
    static pthread_t thread;

    (void)system;
    (void)argument;
    int result = pthread_create(&thread, NULL, quit_elsewhere, NULL);
    return result != 0 ? -result : -pthread_join(thread, NULL);
}

START_TEST(quit_from_a_foreign_thread_ends_with_its_status)
{
    const domus_program program = {.name = "quitting", .start = quit_by_thread};
    child own;

    ck_assert_int_eq(run(&own, &program, no_arguments), 3);
}
END_TEST

static int quit_while_stopping(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn_on(system, 0, &quitter, argument, &address);

    while (domt_profile(system, 0).spawns == 0)
        domt_pause_ns(DOMT_MS);
    printf("ready\n");
    fflush(stdout);
    return result;
}

/* It is no second signal: what drains may drain. */
START_TEST(quit_while_stopping_is_no_second_signal)
{
    int status = 9;
    const domus_program program = {"quitting", quit_while_stopping, &status};
    child own;

    child_start(&own, &program, no_arguments, NULL);
    child_says(&own, "ready\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    ck_assert_int_eq(child_end(&own), 9);
    has(own.err_text, "iterations");
}
END_TEST

static int block(domus_stack *stack, void *self, const void *payload)
{
    (void)stack;
    (void)self;
    (void)payload;
    printf("blocked\n");
    fflush(stdout);
    domt_pause_ns(UINT64_C(100) * 1000 * DOMT_MS);
    return 0;
}

static const domus_behaviour blocker = {
    .name = "blocker",
    .on = (const domus_on[]){{&quit_type, block, 0}, {NULL, NULL, 0}},
};

static int block_one(domus_system *system, void *argument)
{
    domus_address address;
    int result = domus_outside_spawn(system, &blocker, NULL, &address);

    (void)argument;
    return result != 0 ? result
                       : domus_outside_notice(system, address, &quit_type, &(const int){0});
}

START_TEST(second_signal_ends_at_once)
{
    const domus_program program = {.name = "blocking", .start = block_one};
    child own;

    child_start(&own, &program, no_arguments, NULL);
    child_says(&own, "blocked\n");
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    domt_pause_ns(50 * DOMT_MS); /* two of a kind that wait are one */
    uint64_t began_ns = domt_now_ns();
    ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
    ck_assert_int_eq(child_end(&own), 128 + SIGTERM);
    ck_assert_uint_lt(domt_now_ns() - began_ns, 5000 * DOMT_MS);
    has(own.err_text, "second signal");
}
END_TEST

DOMT_MAIN("main", 60, help_goes_to_stdout_and_starts_nothing,
          wrong_options_end_with_2_and_start_nothing, cpus_that_are_not_there_end_with_2,
          set_holds_over_files_wherever_it_stands, start_that_fails_ends_with_1_and_says_why,
          sigterm_and_sigint_end_with_0_and_the_profile, quit_from_a_handler_ends_with_its_status,
          quit_from_a_foreign_thread_ends_with_its_status, quit_while_stopping_is_no_second_signal,
          second_signal_ends_at_once)
