/* Explains why a ring could not be set up, by the errno. EPERM: a sysctl or a seccomp filter
 * forbids it. ENOSYS: the kernel has no io_uring, or a filter says so. EINVAL: the kernel is too
 * old. ENOMEM: the limit of locked memory is too low, which bounds the rings of users without
 * CAP_IPC_LOCK. EMFILE and ENFILE: no descriptor is free. */
#include "io/backend/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

/* size of a submission entry of io_uring in bytes; its index takes 4 more */
#define ENTRY_BYTES      64u
#define COMPLETION_BYTES 16u /* size of a completion entry of io_uring in bytes */
/* size of an entry of io_uring's ring of provided buffers in bytes */
#define BUFFER_ENTRY_BYTES 16u
#define PAGE               4096u

static long read_number_in_file(const char *path, const char *key)
{
    char line[256];
    long number = -1;
    FILE *file = fopen(path, "re");

    if (file == NULL)
        return -1;
    while (number < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0)
            number = strtol(line + strlen(key), NULL, 10);
    }
    fclose(file);
    return number;
}

void domi_setup_explain_failure_of_ring(int result, domi_setup_step step,
                                        const domus_config *config, char *error, size_t error_size)
{
    domi_setup_facts facts = {
        .result = result,
        .step = step,
        .disabled = (int)read_number_in_file("/proc/sys/kernel/io_uring_disabled", ""),
        /* unlike a file below /proc, prctl(2) answers also in a container without /proc */
        .seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0),
        .memlock_bytes = UINT64_MAX,
        .needed_bytes = (uint64_t)config->io.ring_entries * (ENTRY_BYTES + 4) +
                        (uint64_t)config->io.completion_entries * COMPLETION_BYTES +
                        (uint64_t)config->io.buffers.count * BUFFER_ENTRY_BYTES + 2 * PAGE,
    };
    struct rlimit limit;
    struct utsname names;

    if (facts.seccomp < 0)
        facts.seccomp = (int)read_number_in_file("/proc/self/status", "Seccomp:");
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        facts.memlock_bytes = limit.rlim_cur;
    if (uname(&names) == 0)
        snprintf(facts.kernel, sizeof facts.kernel, "%.63s", names.release);
    domi_setup_write_explanation(&facts, error, error_size);
}

static void write_text_for_missing_permission(const domi_setup_facts *facts, char *error,
                                              size_t size)
{
    if (facts->step == DOMI_SETUP_EPOLL)
        snprintf(error, size,
                 "a call that epoll needs is refused (%s): allow epoll_create1, epoll_ctl, "
                 "epoll_wait, fcntl, accept4, recvfrom, recvmsg, sendto and sendmsg",
                 strerror(-facts->result));
    else if (facts->disabled > 0)
        snprintf(error, size,
                 "io_uring is switched off by the sysctl kernel.io_uring_disabled=%d: set it to 0 "
                 "(or to 1 and put this user into kernel.io_uring_group)",
                 facts->disabled);
    else if (facts->seccomp == 2)
        snprintf(error, size,
                 "io_uring is refused by a seccomp filter (%s): allow io_uring_setup, "
                 "io_uring_enter and io_uring_register in the container's profile",
                 strerror(-facts->result));
    else if (facts->result == -ENOSYS)
        snprintf(error, size, "this kernel (%s) has no io_uring: domus needs Linux 6.1 or newer",
                 facts->kernel);
    else if (facts->seccomp < 0 || facts->disabled < 0)
        snprintf(error, size,
                 "io_uring is not permitted (%s): look for a seccomp filter, the sysctl "
                 "kernel.io_uring_disabled and a security module's denial",
                 strerror(-facts->result));
    else
        snprintf(error, size,
                 "io_uring is not permitted (%s), by neither the sysctl kernel.io_uring_disabled "
                 "nor a seccomp filter: look for a security module's denial",
                 strerror(-facts->result));
}

void domi_setup_write_explanation(const domi_setup_facts *facts, char *error, size_t size)
{
    static const char *const steps[] = {
        [DOMI_SETUP_MEMORY] = "memory for a ring",
        [DOMI_SETUP_RING] = "io_uring_setup",
        [DOMI_SETUP_BUFFERS] = "registering receive buffers",
        [DOMI_SETUP_EPOLL] = "epoll",
        [DOMI_SETUP_ENABLE] = "enabling a ring on its thread",
    };

    switch (facts->result) {
    case -EPERM:
    case -EACCES:
    case -ENOSYS:
        write_text_for_missing_permission(facts, error, size);
        break;
    case -ENOMEM:
        if (facts->step == DOMI_SETUP_RING && facts->memlock_bytes != UINT64_MAX)
            snprintf(error, size,
                     "no memory for a ring: the locked-memory limit is %llu KiB and each thread's "
                     "ring needs about %llu KiB: raise it (ulimit -l, LimitMEMLOCK=), lower "
                     "system.threads, io.ringEntries or io.completionEntries, or set io.backend "
                     "to epoll",
                     (unsigned long long)(facts->memlock_bytes / 1024),
                     (unsigned long long)(facts->needed_bytes / 1024));
        else
            snprintf(error, size, "%s: out of memory", steps[facts->step]);
        break;
    case -EINVAL:
        snprintf(error, size,
                 "%s: this kernel (%s) does not know what domus asks for: it needs Linux 6.1 or "
                 "newer",
                 steps[facts->step], facts->kernel);
        break;
    case -EMFILE:
    case -ENFILE:
        snprintf(error, size,
                 "%s: no descriptor is left (%s): raise the limit (ulimit -n, LimitNOFILE=)",
                 steps[facts->step], strerror(-facts->result));
        break;
    default:
        snprintf(error, size, "%s: %s", steps[facts->step], strerror(-facts->result));
        break;
    }
}
