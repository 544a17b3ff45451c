/* The configuration of a pool (domus/pools.h), which domus/config.h includes. */
#ifndef DOMUS_POOL_CONFIG_H
#define DOMUS_POOL_CONFIG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_policy;
struct domus_pool_hooks;

/* How a runner of the policy `stealing` polls that has found no job. There are three intervals, of
 * which the last one does not end. The fields say how many attempts it makes in each, of how many
 * attempts one is to steal, and how long it sleeps between two. 0: the default, which is CAF's. */
typedef struct domus_pool_stealing {
    /* attempts of a runner to find a job in its first interval of polling, 1..65,535; 0 means
     * 100 */
    uint32_t aggressive_attempts;
    /* in the first interval one in so many attempts is to steal, 1..65,535; 0 means 10 */
    uint32_t aggressive_steal_every;
    /* attempts of a runner to find a job in its second interval of polling, 1..65,535; 0 means
     * 500 */
    uint32_t moderate_attempts;
    /* in the second interval one in so many attempts is to steal, 1..65,535; 0 means 5 */
    uint32_t moderate_steal_every;
    /* sleep between two attempts of the second interval, 1 us..1 s; 0 means 50 us */
    uint64_t moderate_sleep_ns;
    /* in the third interval one in so many attempts is to steal, 1..65,535; 0 means 1 */
    uint32_t relaxed_steal_every;
    /* sleep between two attempts of the third interval, 1 us..1 s; 0 means 10 ms */
    uint64_t relaxed_sleep_ns;
} domus_pool_stealing;

/* A pool: threads without rings that share a population of actors (domus/pools.h). */
typedef struct domus_pool_config {
    /* name of the pool for domus_pool_find(); unique; 1..63 letters, digits, '-', '_' */
    const char *name;
    uint32_t runners; /* 1..64: threads of the pool; 0: as many as system.threads (the default) */
    /* name of the pool's policy: "rings", "deques", "stealing", "sharing" (domus/policy.h); NULL or
     * "": "deques" */
    const char *policy;
    /* 1..65,535: messages that an actor of the pool handles before others have their turns; 0 means
     * 64 */
    uint32_t throughput;
    /* 0..64: spares of the pool, which are further threads while all runners are blocked and an
     * actor waits. The first spare of a spell is told in the log, with the behaviour that blocks;
     * spares end when they are not needed. A test kit has none. */
    uint32_t spares;
    /* 1 ms..1 h: a runner is blocked that has handled and spawned nothing for so long, and given no
     * actor of the pool anything to do; 0 means 5 ms */
    uint64_t life_beat_ns;
    /* A policy of the program, in the place of `policy`; NULL: none. It has to outlive the
     * system. */
    const struct domus_policy *own_policy;
    /* settings of the polling of runners, for the policy `stealing` alone */
    domus_pool_stealing stealing;
    /* Functions of the program around each turn (domus/policy.h); NULL: none. It has to outlive the
     * system. */
    const struct domus_pool_hooks *hooks;
} domus_pool_config;

/* Most pools of a system. */
#define DOMUS_POOLS_MAX 16

#ifdef __cplusplus
}
#endif

#endif
