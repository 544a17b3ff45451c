/* Holds the number of connections that the configuration allows against the descriptors that the
 * process may have. */
#ifndef DOMI_CONFIG_DESCRIPTORS_H
#define DOMI_CONFIG_DESCRIPTORS_H

#include <domus/config.h>

/* Descriptors that are left for the program itself: files, client libraries. */
#define DOMI_DESCRIPTORS_SPARE 64u

/* The descriptors and CPUs of the process. */
typedef struct domi_descriptors {
    uint64_t limit; /* most descriptors that the process may have; UINT64_MAX: there is no limit */
    uint32_t open;  /* number of descriptors that the process has open already */
    uint32_t cpus;  /* number of CPUs that the process may use */
} domi_descriptors;

/* Returns the number of connections for which the process has descriptors. Subtracted from the
 * limit are the open descriptors, those that threads, detached actors and listeners will have,
 * those of connections that listeners accept beyond the most connections (their backlogs), those of
 * the observation port and its viewers, and the spare ones. All of these count as at most half of
 * the limit, so that few descriptors still serve some connections. The result is at least 1 and at
 * most channel.maxConnections. */
uint32_t domi_descriptors_room_for_connections(const domi_descriptors *has,
                                               const domus_config *config);

/* Raise this process's limit of descriptors to its hard limit, and lower channel.maxConnections to
 * the number of connections for which there is room. If it was lowered, `warning` gets a line that
 * says so, else "". */
void domi_descriptors_raise_limit(domus_config *config, char *warning, size_t warning_size);

/* Lower channel.maxConnections of a later configuration by the limits of descriptors that were
 * found at the start, as domi_descriptors_raise_limit() does. */
void domi_descriptors_lower_connections_max(domus_config *config, char *warning,
                                            size_t warning_size);

#endif
