/* This file logs what a system lacks without /proc and /sys: it then does not know how much memory
 * the process has, or which limits the cgroup sets. The system starts all the same; the line names
 * the keys that have no effect then, or have to be set. */
#include "runtime/system/logs.h"

#include <errno.h>
#include <unistd.h>

/* True if a folder (/proc, /sys) does not exist. One that this process may not read is not missing,
 * nor is an empty one: a chroot may have a /sys without a cgroup mounted in it, and then the
 * program is mostly in no cgroup of its own. */
static bool is_folder_missing(const char *path)
{
    return access(path, F_OK) != 0 && errno == ENOENT;
}

void domi_log_missing_folders(domus_system *system)
{
    bool has_limits = system->config.system.threads != 0 && system->config.memory.limit_bytes != 0;

    if (access("/proc/self/statm", R_OK) != 0 && system->pressure.footprint.count == 0)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "there is no /proc: used memory is not measured, so memory.limit does "
                      "nothing: mount it");
    if (!has_limits && is_folder_missing("/sys/fs/cgroup"))
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "there is no /sys/fs/cgroup: limits of CPU and memory are not seen: mount "
                      "it, or set system.threads and memory.limit");
}
