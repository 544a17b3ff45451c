/* Reads all profiles of a system at about the same time: of its threads, of foreign threads, and of
 * the runners of its pools. */
#ifndef DOMI_PROTOCOLS_OBSERVE_SOURCES_H
#define DOMI_PROTOCOLS_OBSERVE_SOURCES_H

#include <domus/domus.h>
#include <domus/pools.h>

typedef enum domi_source_kind {
    DOMI_SOURCE_THREAD,
    DOMI_SOURCE_RUNNER,
    DOMI_SOURCE_OUTSIDE,
} domi_source_kind;

/* A source of counters: a thread, a runner or the outside. */
typedef struct domi_source {
    domi_source_kind kind;
    const char *pool; /* name of the pool to which a runner belongs */
    uint32_t number;  /* number of the thread, or of the runner within its pool */
    bool is_spare;    /* the source is a spare runner */
    domus_profile counters;
    domus_runner_profile runner; /* the profile that a runner has of its own turns */
} domi_source;

/* The sources of a system: its threads, then the outside, then the runners, pool by pool. */
typedef struct domi_sources {
    size_t count;
    domi_source *each;
} domi_sources;

/* Read the profiles of all sources. Returns 0; -ENOMEM. domi_sources_free_profiles() frees them. */
int domi_sources_read_profiles(domus_system *system, domi_sources *ret_sources);
void domi_sources_free_profiles(domi_sources *sources);

#endif
