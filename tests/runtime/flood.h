/* Floods: the child of a memory test floods its own system, and goes on when the flood is over. */
#ifndef DOMT_FLOOD_H
#define DOMT_FLOOD_H

#include "tests/support/cgroup.h"
#include "tests/support/service.h"

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_MIB         (UINT64_C(1) << 20)
#define DOMT_FLOOD_LIMIT (DOMT_SCALE(192, 384) * DOMT_MIB)
#define DOMT_FLOOD_BACK  (64 * DOMT_MIB) /* most bytes in use once a flood is over */

/* The memory that parent and child share. */
typedef struct domt_flood_report {
    _Atomic uint64_t accepted, handled, refused, failed;
    _Atomic uint64_t port;
    _Atomic uint64_t clients; /* clients that the parent connects and will close */
    _Atomic uint32_t over;    /* the flood is over */
    domus_memory most;        /* highest use of memory, read at the end of the flood */
    domus_memory after;
    uint64_t used_after; /* used memory of the cgroup after the flood */
    uint64_t trimmed_bytes;
    uint64_t pressed;
    int stopped; /* result of domus_system_stop() */
    bool done;
} domt_flood_report;

/* The report in shared memory, and the cgroup in which the flood runs. */
extern domt_flood_report *domt_flood_shared;
extern domt_cgroup domt_flood_cgroup;

/* Whether the flood still lasts. */
bool domt_flood_lasts(void);

/* End the child with `status` unless `is_so` is true. */
void domt_flood_need(bool is_so, int status);
void domt_flood_notices(void);
void domt_flood_large_notices(void);
void domt_flood_asks(void);
void domt_flood_foreign(void); /* sent by three foreign threads */
/* sent by the parent's connections; `port` is set when they may connect */
void domt_flood_connections(void);
void domt_flood_actors(void);

#endif
