/* How short memory is: words that every thread reads, and who writes them.
 *
 * A look measures (runtime/os/footprint.h), tells the library's own memory from foreign memory
 * (runtime/system/budget.h) and sets two levels. It is due every memory.interval, by a thread that
 * is awake, and sooner when what is used grows fast. It is due as the system grows, too: at 10
 * million messages a second a gigabyte is gone before a tenth of a second is over. So the doors to
 * memory count (base/memory.h), and a look is due as well when a quarter of the way to the next
 * mark has been taken.
 *
 *     limit        killed
 *     full         halfway from critical, whoever holds the memory: what can fail fails
 *     scarce       halfway from critical to full: slabs that are never trimmed do not grow
 *     critical     of the own memory, against the last budget: asks and notices are refused
 *     high         of the own memory, against the budget: nothing is let in from outside
 *
 * `level` is told by all that is used, and only said and counted; `own_level` by what the library
 * holds, and this is what threads go by. Both leave out what slabs hold free in chunks that cannot
 * be given back, because it is reused first: else a few messages that stay, one in each chunk, or
 * the slots of a million actors that have stopped, would keep a system shut for ever. Whether slabs
 * grow is told by what is used; slots, stacks and timers end at scarce, so that messages have what
 * is left. Nobody is woken by a change: a thread that has paused something looks again by itself
 * every interval, and the others see the words when they wake. */
#ifndef DOMI_RUNTIME_SYSTEM_PRESSURE_H
#define DOMI_RUNTIME_SYSTEM_PRESSURE_H

#include "base/counter.h"
#include "base/memory.h"
#include "house/message/manager.h"
#include "io/resources/io.h"
#include "runtime/os/footprint.h"

#include <domus/memory.h>

struct domus_system;

typedef struct domi_pressure {
    /* Both are a domus_memory_level, and hardly ever written. */
    alignas(DOMI_LINES) _Atomic uint32_t own_level;
    _Atomic uint32_t level;
    _Atomic uint32_t changes;             /* of either, counted */
    alignas(DOMI_LINES) domi_meter meter; /* first, so that it leads back here */
    struct domus_system *system;
    const char *root;         /* "" in production */
    _Atomic uint64_t next_ns; /* of the look that is due by time; UINT64_MAX: none ever */
    _Atomic uint32_t looking; /* somebody does; all below is his, but counters may be read */
    domi_footprint footprint;
    uint64_t way;          /* bytes to the next mark, as last measured */
    uint64_t looked_ns;    /* the last look that was due by time ... */
    uint64_t looked_used;  /* ... and what was used then */
    uint64_t shed_seen;    /* shared.shed at the last look ... */
    uint64_t shed_seen_ns; /* ... that found it changed */
    uint64_t heap_trim_ns; /* the heap is not trimmed again before, ... */
    uint64_t heap_last_ns; /* ... nor after this */
    domi_counter used, limit, own, foreign, budget, last_budget;
    domi_counter queue_max;          /* bytes that each thread may have queued for its peers */
    _Atomic uint32_t counts_sockets; /* the socket buffers are part of what is used */
    domi_io_shared shared;
    domi_counter highs, criticals, fulls, looks;
    /* pressure_report.c */
    _Atomic uint32_t woken_for;     /* the change for which threads that watch were woken */
    _Atomic uint32_t said;          /* what was logged last */
    _Atomic uint32_t is_shedding;   /* channels are being reset */
    _Atomic uint32_t said_shedding; /* ... and that was logged */
    uint64_t shed_said;             /* shared.shed when it was last logged that this is over */
    uint64_t shed_bytes_said;
    _Atomic uint64_t outside_refused; /* sends of foreign threads, before they took the lock */
    _Atomic uint64_t outside_trim_ns; /* the outside's slabs are looked at again */
} domi_pressure;

void domi_pressure_init(struct domus_system *system);

/* The threads are about to start: find the limits (a simulated system has none). Before that, a
 * test may say what stands before `/proc` and `/sys`. */
void domi_pressure_begin(struct domus_system *system);

/* They have ended: nothing is short any more. */
void domi_pressure_end(struct domus_system *system);

/* What it means for a thread's io. */
domi_io_pressure domi_pressure_of_io(const domi_pressure *pressure);

/* domi_manager.read_memory. */
uint32_t domi_pressure_read(const domi_manager *manager, domus_memory_change *ret_change);

/* Measure, set the level, give back what the heap has free if memory is short. Any thread, and no
 * lock is held; returns at once if another one is at it. */
void domi_pressure_look(struct domus_system *system);

/* Log what has begun or ended. `thread` as in log.h. */
void domi_pressure_report(struct domus_system *system, uint32_t thread);

/* Channels were reset because memory was short, or have not been for a while: what is to be said.
 * By who looks. */
void domi_pressure_note_shed(domi_pressure *pressure, uint64_t now_ns);

/* The turn of a thread that is awake, once a tick: look if it is time, report. */
void domi_pressure_tick(struct domus_system *system, uint32_t thread, uint64_t now_ns);

#endif
