/* Gives any thread the figures of the machine (CPUs, memory, open files, CPU times);
 * domus/machine.h is the manual. */
#include "runtime/os/machine.h"

#include "runtime/outside/resolver.h"
#include "runtime/system/system.h"

#include <domus/machine.h>

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static uint64_t read_limit_of_open_files(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                                    : 0;
}

/* Count the CPUs that the thread which made the system may use. Threads of the system may be
 * pinned, so their own masks say less. */
static uint64_t count_cpus_of_thread_that_made_system(const domus_system *system)
{
    /* the mask has all bits set if a system call filter refused to tell it */
    long count = system->cpus.is_unpinned ? sysconf(_SC_NPROCESSORS_ONLN)
                                          : (long)CPU_COUNT(&system->all_cpus);

    return count > 0 ? (uint64_t)count : 0;
}

void domus_system_machine(const domus_system *system, domus_machine *ret_machine)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    domi_cgroup_cpu cgroup;
    domi_machine_cpus cpus;

    domi_machine_read_cgroup(system->pressure.root, &cgroup);
    domi_machine_read_cpus(system->pressure.root, &cpus);
    *ret_machine = (domus_machine){
        .cpus = count_cpus_of_thread_that_made_system(system),
        .cpus_online = online > 0 ? (uint64_t)online : 0,
        .quota = cgroup.quota,
        .throttled_ns = cgroup.throttled_ns,
        .throttles = cgroup.throttles,
        .periods = cgroup.periods,
        .stolen_ns = cpus.stolen_ns,
        .idle_ns = cpus.idle_ns,
        .cpu_ns = domi_clock_read_cpu_ns(CLOCK_PROCESS_CPUTIME_ID),
        .files_open = domi_machine_count_open_files(""),
        .files_max = read_limit_of_open_files(),
        .backend = system->backend_name != NULL ? system->backend_name : "",
        .backend_why = system->backend_why,
    };
    domi_resolver_count_names(system->resolver, &ret_machine->names_looked_up,
                              &ret_machine->names_queued);
}

int domus_system_thread_times(const domus_system *system, uint32_t index,
                              domus_thread_times *ret_times)
{
    if (index >= system->count)
        return -EINVAL;
    const domi_thread_counters *counters = &system->threads[index].counters;
    uint64_t tid = domi_counter_read(&counters->tid);
    if (tid == 0 || domi_counter_read(&counters->cpu_end_ns) != 0)
        return -ENODATA;
    *ret_times = (domus_thread_times){
        .cpu_ns = domi_clock_read_cpu_ns((clockid_t)domi_counter_read(&counters->cpu_clock)),
        .waiting_ns = domi_machine_read_wait_of_thread("", (int)tid),
    };
    return 0;
}
