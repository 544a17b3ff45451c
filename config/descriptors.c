/* Counts the descriptors that the process has open, in /proc/self/fd, and raises the limit of how
 * many it may have, by setrlimit. */
#include "config/descriptors.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#define DESCRIPTORS_OF_THREAD 2u /* descriptors that one thread needs: its ring and its eventfd */
/* descriptors that the observation port needs: those of its thread, its socket, and its waiting
 * connections */
#define DESCRIPTORS_OF_OBSERVER 160u
#define STANDARD_STREAMS        3u /* number of standard streams: input, output and error */

/* the process's descriptors as they were before its system was made */
static domi_descriptors at_start;

uint32_t domi_descriptors_room_for_connections(const domi_descriptors *has,
                                               const domus_config *config)
{
    uint64_t threads = config->system.threads != 0 ? config->system.threads : has->cpus;
    uint64_t wanted = has->open + DOMI_DESCRIPTORS_SPARE + config->listener_count +
                      DESCRIPTORS_OF_THREAD * (threads + config->detached.threads_max);
    uint32_t most = config->channel.connections_max;

    for (size_t i = 0; i < config->listener_count; i++)
        wanted += config->listeners[i].backlog;
    if (config->observe.listen != NULL && config->observe.listen[0] != '\0')
        wanted += config->observe.viewers_max + DESCRIPTORS_OF_OBSERVER;
    if (wanted > has->limit / 2)
        wanted = has->limit / 2;
    uint64_t room = has->limit - wanted;
    if (room == 0)
        room = 1;
    return room < most ? (uint32_t)room : most;
}

/* Count the entries of /proc/self/fd. Three of them are no open descriptors of the program: ".",
 * ".." and the directory that is being read. */
static uint32_t count_open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;

    if (directory == NULL)
        return STANDARD_STREAMS;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count > STANDARD_STREAMS ? count - STANDARD_STREAMS : 0;
}

/* Raise the limit of descriptors to the hard limit, if that is possible. Returns the limit that
 * holds then; UINT64_MAX: there is none. */
static uint64_t raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UINT64_MAX;
    struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (limit.rlim_cur != limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0)
        limit = raised;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void domi_descriptors_raise_limit(domus_config *config, char *warning, size_t warning_size)
{
    at_start = (domi_descriptors){
        .limit = raise_descriptor_limit(),
        .open = count_open_descriptors(),
        .cpus = (uint32_t)get_nprocs_conf(),
    };
    domi_descriptors_lower_connections_max(config, warning, warning_size);
}

void domi_descriptors_lower_connections_max(domus_config *config, char *warning,
                                            size_t warning_size)
{
    uint32_t wanted = config->channel.connections_max;
    uint32_t room = domi_descriptors_room_for_connections(&at_start, config);

    if (warning_size != 0)
        warning[0] = '\0';
    if (room == wanted)
        return;
    config->channel.connections_max = room;
    snprintf(warning, warning_size,
             "at most %" PRIu32 " connections are accepted, not the %" PRIu32
             " of channel.maxConnections, because this process may have %" PRIu64
             " descriptors: raise the limit (ulimit -n, LimitNOFILE=)",
             room, wanted, at_start.limit);
}
