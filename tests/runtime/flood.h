/* Floods of messages for memory tests: a child process of the test floods its own system until
 * memory is short, ends the flood, and tells in shared memory what has happened. */
#ifndef DOMT_FLOOD_H
#define DOMT_FLOOD_H

#include "tests/support/cgroup.h"
#include "tests/support/service.h"

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_MIB         (UINT64_C(1) << 20)
#define DOMT_FLOOD_LIMIT (DOMT_SCALE(192, 384) * DOMT_MIB)
#define DOMT_FLOOD_BACK  (64 * DOMT_MIB) /* most bytes that may be in use once a flood is over */

/* The report of the flooded child process, in memory that it shares with the test. */
typedef struct domt_flood_report {
    _Atomic uint64_t accepted, handled, refused, failed;
    _Atomic uint64_t port;
    /* number of connections that the test makes to the child and will close */
    _Atomic uint64_t clients;
    _Atomic uint32_t over; /* true: the flood is over */
    domus_memory most;     /* memory of the child's system, read at the end of the flood */
    domus_memory after;
    uint64_t used_after; /* bytes that the child's cgroup uses after the flood */
    uint64_t trimmed_bytes;
    uint64_t pressed;
    int stopped; /* result of domus_system_stop() in the child */
    bool done;
} domt_flood_report;

/* The report in shared memory, and the cgroup in which the child process runs. */
extern domt_flood_report *domt_flood_shared;
extern domt_cgroup domt_flood_cgroup;

/* Returns whether the flood in this process still lasts. */
bool domt_flood_still_lasts(void);

/* End the child process with `status` unless `is_so` is true. */
void domt_flood_exit_unless(bool is_so, int status);
void domt_flood_with_notices(void);
void domt_flood_with_large_notices(void);
void domt_flood_with_asks(void);
void domt_flood_with_foreign_notices(void); /* a flood of notices from three foreign threads */
/* a flood over connections that the test makes when `port` of the report is set */
void domt_flood_with_connections(void);
void domt_flood_with_actors(void);

#endif
