/* A system runs without /proc, and knows less: how much memory the process has, and, without
 * /sys/fs/cgroup, which quota of CPUs holds. Neither ends the start, so a line says it, with the
 * keys that do their work or do nothing then. */
#include "runtime/system/missing.h"

#include "runtime/system/log.h"

#include <unistd.h>

void domi_missing_tell(domus_system *system)
{
    if (access("/proc/self/statm", R_OK) == 0)
        return;
    bool has_quota = access("/sys/fs/cgroup", R_OK) == 0;
    bool has_memory = system->pressure.footprint.count != 0;

    if (has_quota && has_memory)
        return; /* the files of the cgroup say it all */
    domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, "there is no /proc: %s%s: mount it",
                  has_memory ? "" : "used memory is not measured, so memory.limit does nothing",
                  has_quota    ? ""
                  : has_memory ? "a CPU quota is not seen, so set system.threads"
                               : ", and a CPU quota is not seen, so set system.threads");
}
