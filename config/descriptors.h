/* Whether a process may have as many descriptors as its configuration promises connections. */
#ifndef DOMI_CONFIG_DESCRIPTORS_H
#define DOMI_CONFIG_DESCRIPTORS_H

#include <domus/config.h>

/* Descriptors that are left for the program itself: files, client libraries. */
#define DOMI_DESCRIPTORS_SPARE 64u

/* The descriptors and CPUs of the process. */
typedef struct domi_descriptors {
    uint64_t limit; /* UINT64_MAX: none */
    uint32_t open;
    uint32_t cpus;
} domi_descriptors;

/* For how many connections there are descriptors: the limit less what is open already, what
 * threads, detached actors and listeners will have, what listeners accept beyond the most
 * connections (their backlogs), and the spare ones. These are never more than half of the limit, so
 * that few descriptors still serve some connections. At least 1, at most channel.maxConnections. */
uint32_t domi_descriptors_room(const domi_descriptors *has, const domus_config *config);

/* Raise the limit of this process to its hard limit, and lower channel.maxConnections to what there
 * is room for; then `warning` gets a line that says so, else "". */
void domi_descriptors_fit(domus_config *config, char *warning, size_t warning_size);

#endif
