/* The configuration of a pool (domus/pools.h), which domus/config.h includes. */
#ifndef DOMUS_POOL_CONFIG_H
#define DOMUS_POOL_CONFIG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_policy;

/* A pool: threads without rings that share a population of actors (domus/pools.h). */
typedef struct domus_pool_config {
    const char *name; /* for domus_pool_find(); unique; 1..63 letters, digits, '-', '_' */
    uint32_t runners; /* 1..64 threads; 0: as many as system.threads (the default) */
    /* "rings", "deques", "stealing", "sharing" (domus/policy.h); NULL or "": "deques" */
    const char *policy;
    /* 1..65,535 messages that an actor handles before others have their turns; 0: 64 */
    uint32_t throughput;
    uint32_t spares; /* 0..64 threads more, while runners are blocked */
    /* 1 ms..1 h: a runner that has not come back for so long counts as blocked; 0: 5 ms */
    uint64_t life_beat_ns;
    /* A policy of the program, in the place of `policy`; NULL: none. It has to outlive the
     * system. */
    const struct domus_policy *own_policy;
} domus_pool_config;

#define DOMUS_POOLS_MAX 16

#ifdef __cplusplus
}
#endif

#endif
