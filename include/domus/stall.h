/* The stall watch reports an actor that holds its thread for too long, while it does so.
 *
 * A run is one visit of a thread to an actor, which handles up to scheduler.maxMessagesPerRun (64)
 * messages in it. A run that lasts longer than stall.threshold (25 ms) is reported once, while it
 * goes on: a line in the system's log (domus/hooks.h) with the thread, the actor's behaviour, the
 * type of the message, the CPU time that the run used (if that is little, the handler waits for
 * something, or the machine is busy with other programs) and how many actors wait behind it. Then
 * comes a line for each function on the thread's call stack. If a thread is stuck in the library or
 * the kernel, and in no handler, the report says so. When the run is over, its length goes into a
 * histogram (stalls, stall_lengths in domus/profile.h).
 *
 * A run that lasts a quarter of the threshold longer than the threshold is found for sure, and a
 * run that is shorter than the threshold is never reported. Detached actors and blocking work are
 * not watched, because they may take their time.
 *
 * A handler that holds a runner of a pool (domus/pools.h) for so long is counted in the same way.
 * There handlers may take long, so the log tells of one in a second for each pool at most, without
 * the call stack. */
#ifndef DOMUS_STALL_H
#define DOMUS_STALL_H

#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Install the signal handler that reports need for the functions of a call stack. Only a thread
 * itself can tell where it is, so it is sent a signal, whose handler writes down the addresses.
 * libdomus installs no handler by itself: a program that wants call stacks in its log calls this
 * with stall.signal before it starts a system (domus_main() does). Without this call, reports have
 * no call stacks.
 *
 * The handler is the process's, for all systems; it is called on their threads, and only on one
 * that is stuck, at most 4 times a second in a system. It keeps errno; calls that restart after a
 * signal are restarted, others end with EINTR on that thread (poll, nanosleep).
 *
 * Returns 0, also when the handler is installed already; -EINVAL when `signal` is not within
 * SIGRTMIN..SIGRTMAX; -EBUSY when the program has a handler of its own for it, or ignores it.
 * Thread-safety: one thread at a time, before domus_system_start(). */
DOMUS_API int domus_stall_signal(int signal);

/* The number of stalls that a system remembers; the sizes of a name and of a function's name, with
 * the NUL (longer ones are cut); and the most functions of a call stack, the innermost ones. */
#define DOMUS_STALLS_KEPT      16u
#define DOMUS_STALL_NAME_SIZE  64u
#define DOMUS_STALL_FRAME_SIZE 96u
#define DOMUS_STALL_FRAMES_MAX 32u

/* A stall that the log has told of. */
typedef struct domus_stall {
    /* time at which the run began, or some ms before, on the clock of the system, which begins
     * as CLOCK_MONOTONIC */
    uint64_t began_ns;
    uint64_t began_utc_ns; /* time at which the run began by the calendar, in ns since 1970, UTC */
    /* length of the stalled run; if the run is not over, the time that it has taken by now */
    uint64_t length_ns;
    bool is_over;   /* whether the run is over */
    uint32_t index; /* number of the thread, or of the runner in its pool */
    /* name of the pool of the runner that stalled; "": a thread of the loop stalled */
    char pool[DOMUS_STALL_NAME_SIZE];
    /* name of the behaviour of the actor that ran; "": no handler ran */
    char behaviour[DOMUS_STALL_NAME_SIZE];
    /* type of the message that was handled; "": a resumed function without one */
    char type[DOMUS_STALL_NAME_SIZE];
    /* number of `frames`; 0: there was no call stack, as there is none for runners */
    uint32_t frame_count;
    /* names of the functions on the call stack, the innermost first; code without a name has that
     * of its module */
    char frames[DOMUS_STALL_FRAMES_MAX][DOMUS_STALL_FRAME_SIZE];
} domus_stall;

/* Read the last stalls of a system, the oldest first. `stalls` has `room` places; if more are
 * kept, the newest are read. A stall is kept until DOMUS_STALLS_KEPT others have come, also when
 * the system has stopped. The names of functions are read from the files of the program and its
 * libraries, so this may block, and takes some milliseconds.
 *
 * Returns 0, and `ret_count` is how many were read; -ENOMEM; -ECHILD in a child made by fork().
 * Thread-safety: any foreign thread. It holds up no thread of the system. */
DOMUS_API int domus_stalls_read(domus_system *system, domus_stall *stalls, uint32_t room,
                                uint32_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
