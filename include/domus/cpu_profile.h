/* A CPU profile: in which functions the threads of a system spend their CPU time, and for whom.
 *
 * While a profile is taken, a timer on the CPU clock of each thread of the loop and of each runner
 * of a pool interrupts that thread, 99 times in a second of its CPU time. The handler of the signal
 * (SIGPROF) writes down the call stack and the behaviour of the actor that runs. So a thread that
 * sleeps has no samples, and one that works for a tenth of the time has a tenth of them. Detached
 * actors, blocking work and threads of the program are not sampled.
 *
 * The outermost name of each stack is that of the behaviour, or "(loop)" or "(runner)" if no actor
 * runs. Below it come functions, outermost first. Functions of the library between the loop and a
 * function of the behaviour are left out. Functions have the names of the symbol table in the file
 * of their module, also those that are not exported. Without one (a file that was stripped, or one
 * that is not the loaded one any more) only exported functions have theirs. Others, as many as call
 * each other, are told as one by the name of the module, as in "libc.so.6". Names have printable
 * ASCII only (domus/text.h), and a semicolon in one is written as a colon.
 *
 * Until domus_cpu_profile_take() is called, and after it has returned, none of this costs anything
 * on the threads. The kernel looks at such timers at its ticks, so a kernel of 250 ticks a second
 * does not sample more often; a sample then counts as several, so that the sums are right. */
#ifndef DOMUS_CPU_PROFILE_H
#define DOMUS_CPU_PROFILE_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* The most functions that are kept of a sampled call stack, which are the innermost ones. A deeper
 * stack has "(cut)" in the place of the others. */
#define DOMUS_CPU_PROFILE_DEPTH_MAX 64u

/* The most bytes of a function's name in a profile, without the zero at its end. A longer name is
 * cut. */
#define DOMUS_CPU_PROFILE_NAME_MAX 255u

/* Install the signal handler that takes the samples, for SIGPROF. libdomus installs no handler by
 * itself: a program that wants CPU profiles calls this before it starts a system (domus_main()
 * does). Threads of systems that are started later let the signal through.
 *
 * The handler is the process's, for all systems; it does nothing on other threads, and nothing
 * while no profile is taken. It keeps errno; calls that restart after a signal are restarted,
 * others may end with EINTR while a profile is taken.
 *
 * Returns 0, also when the handler is installed already; -EBUSY when the program has a handler of
 * its own for SIGPROF (as one that was compiled for gprof has), or ignores it. Thread-safety: one
 * thread at a time, before domus_system_start(). */
DOMUS_API int domus_cpu_profile_signal(void);

/* How a profile is taken. A field that is 0 has its default. */
typedef struct domus_cpu_profile_options {
    uint64_t duration_ns; /* time for which the profile is taken, 10 ms..1 h; 0 means 10 s */
    uint32_t frequency;   /* samples in a second of a thread's CPU time, 1..1000; 0 means 99 */
    /* Bytes of memory for samples, 64 KiB..256 MiB; 0 means 8 MiB. A sample has 16 bytes and 8 for
     * each function. When all bytes are full, samples are dropped and counted. */
    uint32_t bytes_max;
    /* A function that is called with `context` on the thread that takes the profile, every 10 ms.
     * If it returns true, the profile ends, as when nobody waits for it any more, and has what
     * there is by then. NULL: the profile is taken for the whole duration. */
    bool (*is_over)(void *context);
    void *context;
} domus_cpu_profile_options;

/* A CPU profile that was taken. It is valid until domus_cpu_profile_free(). */
typedef struct domus_cpu_profile domus_cpu_profile;

/* The figures of a CPU profile as a whole. */
typedef struct domus_cpu_profile_summary {
    uint64_t wall_ns; /* time for which the CPU profile was taken */
    /* number of samples in the profile; each stands for 1/frequency s of CPU time */
    uint64_t samples;
    /* samples that were dropped because the profile's memory (bytes_max) was full */
    uint64_t dropped;
    /* samples that were taken for each second of CPU time, as the options say */
    uint32_t frequency;
    uint32_t threads; /* threads and runners that were sampled */
} domus_cpu_profile_summary;

/* Take a profile of `system` (NULL options: all defaults). The calling thread waits for the
 * duration; if the system begins to stop meanwhile, or `is_over` says so, it waits no longer and
 * the profile is what there is. Runners that begin meanwhile are sampled, too. A handler uses
 * blocking work for it (domus/blocking.h).
 *
 * Ownership: the profile is the caller's, until domus_cpu_profile_free(); it needs the system no
 * more.
 * Returns 0; -EINVAL for an option out of its range; -EBUSY while another profile is taken in this
 * process; -ENOENT when domus_cpu_profile_signal() was not called, or another handler has taken its
 * place; -EACCES when the system was started before that; -EAGAIN when the kernel has no timers
 * (RLIMIT_SIGPENDING); -ENOMEM; -ESHUTDOWN when the system does not run; -EDEADLK on one of its own
 * threads; -EOPNOTSUPP for a system of a test kit; -ECHILD in a child made by fork().
 * Thread-safety: any foreign thread, and blocking work. */
DOMUS_API int domus_cpu_profile_take(struct domus_system *system,
                                     const domus_cpu_profile_options *options,
                                     domus_cpu_profile **ret_profile);

/* Free a profile. NULL is allowed. Thread-safety: any thread; so are the functions below, and
 * several threads may read one profile at the same time. */
DOMUS_API void domus_cpu_profile_free(domus_cpu_profile *profile);

DOMUS_API void domus_cpu_profile_sum(const domus_cpu_profile *profile,
                                     domus_cpu_profile_summary *ret_summary);

/* Receive the next piece of the text that is written. Returns 0; a negative errno ends the
 * writing. */
typedef int domus_cpu_profile_write(void *context, const char *text, size_t length);

/* Write the folded stacks: a line for each stack, sorted, as in "behaviour;outer;inner 12\n", where
 * 12 is its samples. Tools for flame graphs read this form.
 *
 * Returns 0; the negative errno of `write`. */
DOMUS_API int domus_cpu_profile_write_folded(const domus_cpu_profile *profile,
                                             domus_cpu_profile_write *write, void *context);

/* Write a flame graph as a document of SVG: a box for each function in each place of the stacks, as
 * wide as its samples. It needs no script; a box tells its whole name and samples by its title.
 * Boxes that are narrower than a tenth of a pixel of 1,200 are left out.
 *
 * Returns 0; the negative errno of `write`. */
DOMUS_API int domus_cpu_profile_write_svg(const domus_cpu_profile *profile,
                                          domus_cpu_profile_write *write, void *context);

#ifdef __cplusplus
}
#endif

#endif
