/* The handler of signals of a crash. The first thread that crashes writes the trace's file; others
 * that crash meanwhile wait for it, because the default action of their signals would end the
 * process. Then the default action follows, as if there had been no handler: the signal is sent
 * once more, or the instruction that faulted is tried once more.
 *
 * All signals are blocked in the handler, so a fault within it ends the process at once. */
#include "runtime/system/crash.h"

#include "base/clock.h"
#include "runtime/os/raw_files.h"
#include "runtime/os/threads.h"
#include "runtime/system/thread.h"

#include <domus/trace.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A thread that crashes waits for another one that writes the file for at most WAITS times WAIT_MS
 * milliseconds. */
#define WAITS       500u
#define WAIT_MS     10
#define COMM_LENGTH 16u /* size in bytes of a thread's name in the kernel */

static char path[DOMI_OWN_FILE_PATH_MAX + 1];
static atomic_bool is_writing;
static atomic_bool is_written;

/* where the calling thread keeps its recorder, as domi_crash_prepare_thread() was told; NULL: the
 * thread never has one */
static _Thread_local _Atomic(domi_recorder *) *own_recorder;
static _Thread_local domi_alternate_stack stack;

static const struct {
    int number;
    const char *name;
} signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"},
};
#define SIGNALS_COUNT (sizeof signals / sizeof signals[0])

static const char *name_of_signal(int signal)
{
    for (size_t i = 0; i < SIGNALS_COUNT; i++) {
        if (signals[i].number == signal)
            return signals[i].name;
    }
    return "a signal";
}

/* ---- The handler ----------------------------------------------------------------------------- */

/* Returns the recorder of the thread that crashes, or one of static memory if the thread has none;
 * NULL if no static one is left. */
static domi_recorder *find_recorder_of_crashing_thread(void)
{
    char comm[COMM_LENGTH + 1] = "";

    /* relaxed: the crashing thread itself has written the pointer */
    domi_recorder *own =
        own_recorder != NULL ? atomic_load_explicit(own_recorder, memory_order_relaxed) : NULL;
    if (own != NULL)
        return own;
    (void)prctl(PR_GET_NAME, comm);
    return domi_recorders_add_for_crashed_thread(comm);
}

/* Returns a time for the begin of the run in which the thread crashes: not before the newest stamp,
 * and not before anything that is recorded. */
static uint64_t time_at_begin_of_crashed_run(const domi_manager *manager,
                                             const domi_recorder *recorder, uint64_t now_ns)
{
    uint64_t last_ns = domi_recorder_end_of_newest_record(recorder);
    uint64_t begin_ns = manager->now_ns > last_ns ? manager->now_ns : last_ns;

    return begin_ns < now_ns ? begin_ns : now_ns;
}

/* Record in the trace which signal has come on this thread, and which behaviour's function was
 * running. */
static void record_crash_in_trace(int signal)
{
    struct timespec now = domi_clock_deadline_after(0);
    uint64_t now_ns = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
    const domi_manager *manager = domi_thread_manager;
    const domus_behaviour *running =
        manager != NULL ? domi_manager_running_behaviour(manager) : NULL;
    domi_recorder *recorder = find_recorder_of_crashing_thread();

    if (recorder == NULL)
        return;
    if (running != NULL)
        domi_recorder_note_begin_of_thing(
            recorder, DOMI_RECORD_RUN, time_at_begin_of_crashed_run(manager, recorder, now_ns),
            running, (uintptr_t)domi_manager_type_being_handled(manager));
    domi_recorder_write_ended_thing(recorder, DOMI_RECORD_CRASH, now_ns, now_ns,
                                    name_of_signal(signal), 0);
}

static void write_trace_file_at_crash(int signal)
{
    int fd = domi_own_file_open_empty_for_writing(path);

    if (fd < 0)
        return;
    record_crash_in_trace(signal);
    (void)domus_trace_crash_write(fd);
    domi_own_file_close(fd);
}

static void wait_for_thread_that_writes(void)
{
    for (uint32_t i = 0; i < WAITS && !atomic_load_explicit(&is_written, memory_order_relaxed); i++)
        (void)poll(NULL, 0, WAIT_MS);
}

static void handle_crash_signal(int signal, siginfo_t *info, void *context)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    int kept = errno;

    (void)context;
    /* relaxed, both accesses: only one thread writes the file, and the other ones read nothing that
     * it has written */
    if (!atomic_exchange_explicit(&is_writing, true, memory_order_relaxed)) {
        write_trace_file_at_crash(signal);
        atomic_store_explicit(&is_written, true, memory_order_relaxed);
    } else {
        wait_for_thread_that_writes();
    }
    (void)sigaction(signal, &usual, NULL);
    /* A signal that was sent by a call has to be sent once more; a fault comes again by itself,
     * when the instruction is tried again. */
    if (info->si_code <= 0)
        (void)raise(signal);
    errno = kept;
}

/* ---- Before a crash -------------------------------------------------------------------------- */

/* Install the handler of crashes for a signal, unless the program or a sanitizer has a handler for
 * it, or the signal is ignored. */
static void install_handler_of_crashes(int signal)
{
    struct sigaction action = {.sa_sigaction = handle_crash_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction now;

    sigfillset(&action.sa_mask);
    if (sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
        now.sa_handler == SIG_DFL)
        (void)sigaction(signal, &action, NULL);
}

int domus_trace_crash_signals(const char *file)
{
    size_t length = file != NULL ? strnlen(file, sizeof path) : 0;

    if (length == 0 || length == sizeof path)
        return -EINVAL;
    memcpy(path, file, length + 1);
    for (size_t i = 0; i < SIGNALS_COUNT; i++)
        install_handler_of_crashes(signals[i].number);
    domi_alternate_stacks_want_for_threads();
    if (stack.memory == NULL)
        domi_alternate_stack_begin(&stack);
    return 0;
}

void domi_crash_prepare_thread(_Atomic(domi_recorder *) *recorder)
{
    own_recorder = recorder;
    domi_alternate_stack_begin_if_wanted(&stack);
}

void domi_crash_unprepare_thread(void)
{
    own_recorder = NULL;
    domi_alternate_stack_end(&stack);
}
