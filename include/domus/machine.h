/* The machine under a system: what it gives to the process, and what it takes away.
 *
 * These are figures that no counter of a thread has (domus/profile.h): CPUs, the quota and the
 * throttling of the cgroup, time that a hypervisor has taken, open files, and how the kernel is
 * asked for io. They are read from the kernel when they are asked for, which takes some ten system
 * calls and about 50 us, so nobody who does not ask pays for them. The structures
 * grow only at their end, with a minor version. */
#ifndef DOMUS_MACHINE_H
#define DOMUS_MACHINE_H

#include <domus/config.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* The machine and its limits, as the library has found them. */
typedef struct domus_machine {
    uint64_t cpus;        /* CPUs that the process may use, which are those of its affinity mask */
    uint64_t cpus_online; /* CPUs that the machine has */
    /* CPUs that the cgroup's quota allows to the process, in thousandths; 0: no quota */
    uint64_t quota;
    /* Time for which the cgroup was stopped because it had used up that quota, since the cgroup was
     * made; the times of all its CPUs together. */
    uint64_t throttled_ns;
    /* periods of the quota in which the cgroup was stopped, since it was made */
    uint64_t throttles;
    /* periods of the quota in which the cgroup wanted a CPU, since it was made */
    uint64_t periods;
    uint64_t stolen_ns;  /* CPU time of the machine that a hypervisor gave to others, all CPUs */
    uint64_t idle_ns;    /* CPU time of the machine in which a CPU had nothing to do, all CPUs */
    uint64_t cpu_ns;     /* CPU time that all threads of the process have used */
    uint64_t files_open; /* descriptors that the process has open */
    uint64_t files_max;  /* RLIMIT_NOFILE, the soft limit; 0: no limit, or not readable */
    uint64_t names_looked_up; /* names that are looked up for connects now (domus/connect.h) */
    uint64_t names_queued;    /* names that wait to be looked up for connects */
    /* how all threads ask the kernel for io: "uring", "epoll" or the name in a test kit; "": not
     * yet known. The text is valid as long as the system */
    const char *backend;
    const char *backend_why; /* why `backend` is epoll with io.backend: auto; otherwise "" */
} domus_machine;

/* Read the figures of the machine. A figure that the kernel does not tell is 0. Thread-safety: any
 * thread, from domus_system_start() until domus_system_free(). */
DOMUS_API void domus_system_machine(const struct domus_system *system, domus_machine *ret_machine);

/* The CPU times of a thread, as the kernel has them. */
typedef struct domus_thread_times {
    uint64_t cpu_ns; /* CPU time that the thread has used */
    /* time in which the thread was ready to run and had no CPU; 0: not known */
    uint64_t waiting_ns;
} domus_thread_times;

/* Read the CPU times of one thread, since it runs. Returns 0; -EINVAL for a number that is no
 * thread; -ENODATA if the thread has no CPU clock, as in a test kit, or it has ended.
 * Thread-safety: as domus_system_machine(). */
DOMUS_API int domus_system_thread_times(const struct domus_system *system, uint32_t thread,
                                        domus_thread_times *ret_times);

#ifdef __cplusplus
}
#endif

#endif
