/* Crashes (domus_trace_crash_signals(), profile.crashFile): what a program that crashes leaves in
 * its file, and that the program still ends by its signal. Each program is a child process. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/runtime/traced.h"
#include "tests/support/tree.h"

#include <domus/blocking.h>
#include <domus/pools.h>
#include <domus/spawn.h>
#include <domus/trace.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The functions with faults are not instrumented, because the sanitizers would report these faults
 * in their own way. */
#define FAULTY __attribute__((no_sanitize("address", "undefined", "thread"), noinline))

static domt_traced traced;
static uint8_t bytes[8 << 20];

/* ---- The program ----------------------------------------------------------------------------- */

static const domus_type blow = {.name = "blow", .size = sizeof(int)};
static const domus_type warm = {.name = "warm", .size = 0};

FAULTY static void write_to_forbidden_page(void)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    page[8] = 1;
}

FAULTY static int recurse_until_stack_overflows(volatile char *before, int depth)
{
    volatile char room[4096];

    room[0] = before != NULL ? before[0] : 1;
    return depth == 1 << 30 ? room[0] : recurse_until_stack_overflows(room, depth + 1) + room[0];
}

enum deed { TOUCH, OVERFLOW, ABORT, RAISE_BUS, RAISE_FPE, RAISE_ILL, KILL_SEGV, OVERFLOW_HELPER };

static int overflow_stack_of_helper(void *none)
{
    return recurse_until_stack_overflows(NULL, 0) & 1;
}

static int crash_as_message_says(domus_stack *stack, void *self, const void *payload)
{
    switch (*(const int *)payload) {
    case TOUCH:
        write_to_forbidden_page();
        break;
    case OVERFLOW:
        return recurse_until_stack_overflows(NULL, 0) & 1;
    case ABORT:
        abort();
    case RAISE_BUS:
        raise(SIGBUS);
        break;
    case RAISE_FPE:
        raise(SIGFPE);
        break;
    case RAISE_ILL:
        raise(SIGILL);
        break;
    case OVERFLOW_HELPER:
        return domus_blocking(stack, overflow_stack_of_helper, NULL, domt_ignore_answer);
    case KILL_SEGV:
        kill(getpid(), SIGSEGV);
        pause();
        break;
    default:
        break;
    }
    return 0;
}

static const domus_on rows[] = {{.type = &blow, .handle = crash_as_message_says},
                                {.type = &warm, .handle = domt_ignore_message},
                                {.type = NULL}};
static const domus_behaviour victim = {.name = "victim", .on = rows};

/* pool of the actor that crashes; NULL: it lives on a thread of the loop */
static const char *pool_name;

static int spawn_actor_and_let_it_crash(domus_system *system, void *deed)
{
    const domus_spawn_options options = {
        .pool = pool_name != NULL ? domus_outside_pool_find(system, pool_name) : NULL};
    domus_address address;
    int result = domus_outside_spawn_with(system, &victim, NULL, &options, &address);

    for (int i = 0; i < 10 && result == 0; i++) {
        result = domus_outside_notice(system, address, &warm, NULL);
        /* wait for the next tick, at which the thread follows the new level */
        domt_pause_ns(2 * DOMT_MS);
    }
    return result == 0 ? domus_outside_notice(system, address, &blow, deed) : result;
}

/* Remove the handlers of signals that the sanitizers have set, because the library would leave them
 * in place. */
static void restore_default_signal_handlers(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &(const struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

/* ---- Its end --------------------------------------------------------------------------------- */

static char path[PATH_MAX];
static domt_tree tree;

/* Run the program that crashes, in a child process, until it ends. Returns its status. */
static int run_crashing_program(int deed, const char *level, const char *more, void (*before)(void))
{
    const domus_program program = {
        .name = "crashing", .start = spawn_actor_and_let_it_crash, .argument = &deed};
    char file[PATH_MAX + 32], set[64];
    const char *const arguments[] = {"--set",    file,
                                     "--set",    set,
                                     "--set",    "system.threads=1",
                                     "--set",    "profile.atExit=false",
                                     "--set",    "stall.threshold=0",
                                     "--config", more,
                                     NULL};
    domt_program own;

    snprintf(file, sizeof file, "profile.crashFile=%s", path);
    snprintf(set, sizeof set, "profile.level=%s", level);
    domt_program_start(&own, &program, arguments, before);
    int status = domt_program_wait_for_end(&own);
    close(own.out);
    close(own.err);
    return status;
}

/* Read the crash file, which must exist. */
static void read_crash_file(void)
{
    struct stat about;
    FILE *file = fopen(path, "rb");

    ck_assert_msg(file != NULL, "there is no file");
    ck_assert_int_eq(fstat(fileno(file), &about), 0);
    ck_assert_uint_eq(about.st_mode & 07777, 0600);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    domt_traced_decode(bytes, length, &traced);
    if (domt_protoc_is_installed())
        ck_assert_ptr_nonnull(strstr(domt_protoc_decode_trace(bytes, length), "\"crash by SIG"));
}

/* Check in the crash file that the last run of the thread has not ended, and that the signal `by`
 * came within it. */
static void check_trace_ends_in_crash(const char *thread, const char *by)
{
    read_crash_file();
    const domt_traced_event *open = domt_traced_find_event(&traced, 'B', "run victim (blow)");
    const domt_traced_event *end = domt_traced_find_event(&traced, 'I', by);

    ck_assert_ptr_nonnull(open);
    ck_assert_ptr_nonnull(end);
    ck_assert(strncmp(open->thread, thread, strlen(thread)) == 0);
    ck_assert_str_eq(end->thread, open->thread);
    ck_assert_uint_ge(traced.unended, 1);
    ck_assert_uint_eq(end->depth, open->depth + 1);
    ck_assert_uint_ge(end->at_ns, open->at_ns);
    for (const domt_traced_event *at = open; at < &traced.event[traced.events]; at++)
        ck_assert(at->type != 'E' || strcmp(at->text, open->text) != 0 ||
                  strcmp(at->thread, open->thread) != 0);
}

static const char *write_configuration_file(const char *text)
{
    static char file[PATH_MAX];

    domt_tree_write(&tree, "domus.yaml", text);
    snprintf(file, sizeof file, "%s/domus.yaml", tree.root);
    return file;
}

#define NOTHING "{}\n"

static void make_directory_for_crash_file(void)
{
    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/crash.pftrace", tree.root);
}

static bool is_crash_file_there(void)
{
    struct stat about;

    return lstat(path, &about) == 0;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

DOMT_TEST(crash_trace_names_last_run_at_each_profile_level)
{
    static const char *const levels[] = {"off", "counters", "histograms", "spans"};

    make_directory_for_crash_file();
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        ck_assert_int_eq(run_crashing_program(TOUCH, levels[i], write_configuration_file(NOTHING),
                                              restore_default_signal_handlers),
                         128 + SIGSEGV);
        check_trace_ends_in_crash(i == 3 ? "thread 0" : "domus-0", "crash by SIGSEGV");
        if (i == 3) /* at the level `spans`, the trace also has what happened before the crash */
            ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'E', "other"));
        else
            ck_assert_uint_eq(traced.threads, 1);
    }
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(each_signal_leaves_a_trace_and_ends_the_program_as_it_does)
{
    static const struct {
        enum deed deed;
        int signal;
        const char *name;
    } cases[] = {
        {OVERFLOW, SIGSEGV, "crash by SIGSEGV"}, {ABORT, SIGABRT, "crash by SIGABRT"},
        {RAISE_BUS, SIGBUS, "crash by SIGBUS"},  {RAISE_FPE, SIGFPE, "crash by SIGFPE"},
        {RAISE_ILL, SIGILL, "crash by SIGILL"},
    };

    make_directory_for_crash_file();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(run_crashing_program((int)cases[i].deed, "counters",
                                              write_configuration_file(NOTHING),
                                              restore_default_signal_handlers),
                         128 + cases[i].signal);
        check_trace_ends_in_crash("domus-0", cases[i].name);
    }
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(a_signal_that_is_sent_to_the_process_leaves_a_trace)
{
    make_directory_for_crash_file();
    ck_assert_int_eq(run_crashing_program(KILL_SEGV, "counters", write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);
    read_crash_file();
    ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'I', "crash by SIGSEGV"));
    domt_tree_remove_copy(&tree);
}

/* Blocking work is code of the user, too. So each helper thread has an alternate stack, on which
 * the handler of crashes runs when the thread's own stack overflows. */
DOMT_TEST(a_helper_whose_stack_overflows_leaves_a_trace)
{
    make_directory_for_crash_file();
    ck_assert_int_eq(run_crashing_program(OVERFLOW_HELPER, "counters",
                                          write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);
    read_crash_file();
    const domt_traced_event *end = domt_traced_find_event(&traced, 'I', "crash by SIGSEGV");
    ck_assert_ptr_nonnull(end);
    ck_assert_int_eq(strncmp(end->thread, "domus-blocking", strlen("domus-blocking")), 0);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(a_runner_that_crashes_names_its_last_run)
{
    make_directory_for_crash_file();
    pool_name = "work";
    ck_assert_int_eq(
        run_crashing_program(TOUCH, "counters",
                             write_configuration_file("pools:\n  - name: work\n    runners: 1\n"),
                             restore_default_signal_handlers),
        128 + SIGSEGV);
    /* the name of the pool's only runner; a spare would have another number */
    check_trace_ends_in_crash("domus-r0.", "crash by SIGSEGV");
    domt_tree_remove_copy(&tree);
}

static void end_process_by_own_handler(int signal)
{
    _exit(signal == SIGSEGV ? 7 : 8);
}

static void set_own_crash_handler(void)
{
    restore_default_signal_handlers();
    sigaction(SIGSEGV, &(const struct sigaction){.sa_handler = end_process_by_own_handler}, NULL);
}

DOMT_TEST(signal_handler_of_the_program_stays)
{
    make_directory_for_crash_file();
    ck_assert_int_eq(run_crashing_program(TOUCH, "counters", write_configuration_file(NOTHING),
                                          set_own_crash_handler),
                     7);
    ck_assert(!is_crash_file_there());
    domt_tree_remove_copy(&tree);
}

/* Each of these things stands at the path of the crash file, and the library must leave it
 * unchanged. */
DOMT_TEST(file_that_is_no_crash_file_is_left_alone)
{
    struct stat about;
    char other[PATH_MAX];

    make_directory_for_crash_file();
    snprintf(other, sizeof other, "%s/other", tree.root);
    domt_tree_write(&tree, "other", "kept");
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert_int_eq(run_crashing_program(TOUCH, "counters", write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);
    ck_assert_int_eq(stat(other, &about), 0);
    ck_assert_int_eq(about.st_size, 4);

    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(link(other, path), 0);
    ck_assert_int_eq(run_crashing_program(TOUCH, "counters", write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);
    ck_assert_int_eq(stat(other, &about), 0);
    ck_assert_int_eq(about.st_size, 4);

    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(run_crashing_program(TOUCH, "counters", write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);

    /* a crash file of an earlier run is overwritten, and only its owner can read the new one */
    ck_assert_int_eq(unlink(path), 0);
    domt_tree_write(&tree, "crash.pftrace", "earlier");
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_int_eq(run_crashing_program(TOUCH, "counters", write_configuration_file(NOTHING),
                                          restore_default_signal_handlers),
                     128 + SIGSEGV);
    check_trace_ends_in_crash("domus-0", "crash by SIGSEGV");
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(wrong_path_of_crash_file_is_refused)
{
    static char text[1100];

    ck_assert_int_eq(domus_trace_crash_signals(NULL), -EINVAL);
    ck_assert_int_eq(domus_trace_crash_signals(""), -EINVAL);
    memset(text, 'x', 1024);
    ck_assert_int_eq(domus_trace_crash_signals(text), -EINVAL);
}

DOMT_SUITE(60)
