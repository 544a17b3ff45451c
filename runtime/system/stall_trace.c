/* This file writes the trace of a stall into a file. Each trace overwrites the last one, so there
 * is at most one such file. */
#include "runtime/system/stall_trace.h"

#include "runtime/os/raw_files.h"
#include "runtime/system/logs.h"
#include "runtime/system/system.h"

#include <domus/trace.h>
#include <errno.h>
#include <string.h>

struct file {
    int fd;
    uint64_t left; /* number of bytes that may still be written to the file */
};

/* Write packets of a trace to the file, until it has its most bytes; called as a domus_trace_sink.
 * Each call gets whole packets, so a trace that is cut between packets can be read. */
static int write_packets_to_file(void *file_, const void *bytes, size_t length)
{
    struct file *file = file_;

    if (length > file->left)
        return -EFBIG;
    file->left -= length;
    return domi_write_all_bytes(file->fd, bytes, length);
}

static bool is_file_of_stall_trace_wanted(const domus_system *system, uint64_t now_ns)
{
    const char *path = system->config.profile.stall_file;
    uint64_t last_ns = system->monitor.file_ns;

    /* relaxed: the threads, too, follow a new level of the profile only some time later */
    return path != NULL && path[0] != '\0' &&
           atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->profile_level,
                                memory_order_relaxed) == DOMUS_PROFILE_SPANS &&
           (last_ns == 0 || now_ns - last_ns >= DOMI_STALL_TRACE_EVERY_NS);
}

void domi_stall_trace_write_file(domus_system *system, uint64_t now_ns)
{
    const char *path = system->config.profile.stall_file;
    uint64_t since_ns =
        now_ns > DOMI_STALL_TRACE_BEFORE_NS ? now_ns - DOMI_STALL_TRACE_BEFORE_NS : 0;

    if (!is_file_of_stall_trace_wanted(system, now_ns))
        return;
    system->monitor.file_ns = now_ns;
    struct file file = {domi_own_file_open_empty_for_writing(path), DOMI_STALL_TRACE_BYTES_MAX};
    int result = file.fd;
    if (file.fd >= 0) {
        result = domus_trace_write(system, since_ns, write_packets_to_file, &file);
        domi_own_file_close(file.fd);
    }
    if (result < 0 && result != -EFBIG)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, "no trace of this stall: %s",
                      strerror(-result));
    else
        domi_log_line(system, DOMUS_LOG_INFO, DOMUS_LOG_OUTSIDE, "profile.stallFile has the trace");
}
