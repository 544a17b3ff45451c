/* A system runs without /proc and /sys, and knows less: how much memory the process has, and which
 * limits the cgroup sets. That does not end the start, so a line says it, with the keys that do
 * nothing then or have to be set. */
#include "runtime/system/missing.h"

#include "runtime/system/log.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

/* True if nothing is mounted there: the folder is not there, or has nothing in it, as in a /sys
 * without cgroups. If it may not be looked at, it is taken to have something. */
static bool is_bare(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;

    if (folder == NULL)
        return errno == ENOENT;
    errno = 0;
    while ((entry = readdir(folder)) != NULL && entry->d_name[0] == '.')
        continue;
    bool is_empty = entry == NULL && errno == 0;
    (void)closedir(folder);
    return is_empty;
}

void domi_missing_tell(domus_system *system)
{
    bool has_limits = system->config.system.threads != 0 && system->config.memory.limit_bytes != 0;

    if (access("/proc/self/statm", R_OK) != 0 && system->pressure.footprint.count == 0)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "there is no /proc: used memory is not measured, so memory.limit does "
                      "nothing: mount it");
    if (!has_limits && is_bare("/sys/fs/cgroup"))
        domi_log_line(
            system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
            "there is nothing at /sys/fs/cgroup: limits of CPU and memory are not seen: mount "
            "it, or set system.threads and memory.limit");
}
