/* Floods: the child of a memory test floods itself, and goes on when the flood is over. */
#ifndef DOMT_FLOOD_H
#define DOMT_FLOOD_H

#include "tests/support/cgroup.h"
#include "tests/support/service.h"

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_MIB         (UINT64_C(1) << 20)
#define DOMT_FLOOD_LIMIT (DOMT_SCALE(192, 384) * DOMT_MIB)
#define DOMT_FLOOD_BACK  (64 * DOMT_MIB) /* used at most, once a flood is over */

/* The memory that parent and child share. */
typedef struct domt_flood_report {
    _Atomic uint64_t accepted, handled, refused, failed;
    _Atomic uint64_t port;
    _Atomic uint64_t clients; /* that connect, and will be closed */
    _Atomic uint32_t over;    /* the flood */
    domus_memory most;        /* at its end */
    domus_memory after;
    uint64_t used_after; /* of the cgroup */
    uint64_t trimmed_bytes;
    uint64_t pressed;
    int stopped; /* what domus_system_stop() returned */
    bool done;
} domt_flood_report;

/* The report in shared memory, and the cgroup in which the flood runs. */
extern domt_flood_report *domt_flood_shared;
extern domt_cgroup domt_flood_cgroup;

/* Whether the flood still lasts. */
bool domt_flood_lasts(void);

/* End the child with `status` unless `is_so`. */
void domt_flood_need(bool is_so, int status);
void domt_flood_notices(void);
void domt_flood_large_notices(void);
void domt_flood_asks(void);
void domt_flood_foreign(void);     /* three threads that are none of the system's */
void domt_flood_connections(void); /* the parent's; `port` is set when they may come */
void domt_flood_actors(void);

#endif
