/* How short memory is: the words that every thread reads. pressure.c measures and writes them.
 *
 *     limit        the kernel kills the process
 *     full         halfway from critical to the limit, of all memory: what can fail fails
 *     scarce       halfway from critical to full: slabs that are never trimmed do not grow
 *     critical     own memory reaches the last budget (domus/memory.h): asks and notices are
 *                  refused
 *     high         own memory reaches the budget: nothing is let in from outside
 *
 * `level` depends on all that is used; it is only reported and counted. `own_level` depends on what
 * the library holds, and threads go by this one. Both leave out what slabs hold free in chunks that
 * cannot be given back, because that memory is reused first. Otherwise a few messages that stay,
 * one in each chunk, or the slots of a million actors that have stopped, would keep a system shut
 * for ever. Whether slabs may grow depends on all that is used; slots, stacks and timers stop
 * growing at scarce, so that messages have what is left. A change wakes nobody but threads whose
 * actors watch memory: a thread that has paused something looks again by itself every interval, and
 * the others read the words when they wake. */
#ifndef DOMI_RUNTIME_SYSTEM_LEVELS_H
#define DOMI_RUNTIME_SYSTEM_LEVELS_H

#include "base/counter.h"
#include "base/memory.h"
#include "io/resources/io.h"
#include "runtime/os/footprint.h"

#include <domus/memory.h>

struct domus_system;

typedef struct domi_pressure {
    /* Each of the two levels is a domus_memory_level, and changes seldom. */
    /* the level of the library's own memory against its budget; threads act on this level */
    alignas(DOMI_LINES) _Atomic uint32_t own_level;
    _Atomic uint32_t level;   /* the level of all memory in use */
    _Atomic uint32_t changes; /* how often one of the two levels has changed */
    /* the meter of the library's bytes; pressure.c finds this structure by its address */
    alignas(DOMI_LINES) domi_meter meter;
    struct domus_system *system; /* the system whose memory this is */
    /* prefix of the paths `/proc` and `/sys`; "" in production */
    const char *root;
    _Atomic uint64_t next_ns; /* when the next look is due; UINT64_MAX: never */
    /* 1 while a thread takes a look; only that thread writes the fields below */
    _Atomic uint32_t looking;
    domi_footprint footprint; /* reads used bytes and limits */
    uint64_t way;             /* bytes to the next mark at the last measurement */
    uint64_t looked_ns;       /* time of the last look by domi_pressure_look() */
    uint64_t looked_used;     /* bytes in use at the look of `looked_ns` */
    uint64_t shed_seen;       /* `shared.shed` at the newest look that found a new value there */
    uint64_t shed_seen_ns;    /* time of the look that set `shed_seen` */
    uint64_t heap_trim_ns;    /* the heap is not trimmed before this time */
    uint64_t heap_last_ns;    /* the heap is not trimmed from this time on */
    /* the figures of the last look in bytes, for reports */
    domi_counter used, limit, own, foreign, budget, last_budget;
    /* bytes that each thread may keep for its peers: bytes to be sent, and copied-out pieces that
     * wait for their actor. The thread that takes a look writes this. */
    domi_counter queue_max;
    _Atomic uint32_t counts_sockets; /* the kernel's socket buffers are a part of the used memory */
    domi_io_shared shared;           /* figures that the threads' io shares */
    /* how often memory became high, critical, and full; how often it was measured */
    domi_counter highs, criticals, fulls, looks;
    /* pressure_report.c alone uses the fields from here on, except where a field says otherwise:
     * they hold what has been logged. */
    _Atomic uint32_t woken_for;     /* the value of `changes` for which watchers were last woken */
    _Atomic uint32_t said;          /* the state of memory that was logged last (enum trouble) */
    _Atomic uint32_t is_shedding;   /* not 0: channels are being reset */
    _Atomic uint32_t said_shedding; /* not 0: the line about channels being reset was logged */
    uint64_t shed_said;             /* shared.shed when the end of the resets was last logged */
    uint64_t shed_bytes_said;       /* `shared.shed_bytes` at the time of `shed_said` */
    /* sends of foreign threads that were refused before they took the lock of the outside */
    _Atomic uint64_t outside_refused;
    _Atomic uint64_t outside_trim_ns; /* when the outside's slabs are trimmed next (trim.c) */
} domi_pressure;

#endif
