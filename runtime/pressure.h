/* How short memory is: one word that every thread reads, and who writes it.
 *
 * A look measures (runtime/footprint.h) and sets the level. It is due every memory.interval, by a
 * thread that is awake, and as the system grows: at 10 million messages a second a gigabyte is gone
 * before a tenth of a second is over. So the doors to memory count (base/memory.h), and a look is
 * due as well when a quarter of the way to the next mark has been taken.
 *
 *     limit        killed
 *     full         halfway from critical: what can fail fails, with -ENOMEM
 *     scarce       halfway from critical to full: slabs that are never trimmed do not grow
 *     critical     asks and notices are refused
 *     high         nothing is let in from outside
 *
 * Levels are told by what is used less what slabs hold free in chunks that cannot be given back
 * (it is reused first): else a few messages that stay, one in each chunk, or the slots of a million
 * actors that have stopped, would keep a system shut for ever. Whether slabs grow is told by what
 * is used; slots, stacks and timers end at scarce, so that messages have what is left. Nobody is
 * woken by a change: who has paused something looks again by himself every interval, and the others
 * see the word when they wake. */
#ifndef DOMI_RUNTIME_PRESSURE_H
#define DOMI_RUNTIME_PRESSURE_H

#include "base/counter.h"
#include "base/memory.h"
#include "house/manager.h"
#include "runtime/footprint.h"

#include <domus/memory.h>

struct domus_system;

typedef struct domi_pressure {
    alignas(DOMI_LINES) _Atomic uint32_t level; /* domi_pressure_level; hardly ever written */
    alignas(DOMI_LINES) domi_meter meter;       /* first, so that it leads back here */
    struct domus_system *system;
    const char *root;         /* "" in production */
    _Atomic uint64_t next_ns; /* of the look that is due by time; UINT64_MAX: none ever */
    _Atomic uint32_t looking; /* somebody does; all below is his, but counters may be read */
    domi_footprint footprint;
    uint64_t heap_trim_ns; /* the heap is not trimmed again before, ... */
    uint64_t heap_last_ns; /* ... nor after this */
    domi_counter used, limit;
    domi_counter highs, criticals, fulls, looks;
    _Atomic uint32_t said;            /* the level that was logged last */
    _Atomic uint64_t outside_refused; /* sends of foreign threads, before they took the lock */
    _Atomic uint64_t outside_trim_ns; /* the outside's slabs are looked at again */
} domi_pressure;

void domi_pressure_init(struct domus_system *system);

/* The threads are about to start: find the limits (a simulated system has none). Before that, a
 * test may say what stands before `/proc` and `/sys`. */
void domi_pressure_begin(struct domus_system *system);

/* They have ended: nothing is short any more. */
void domi_pressure_end(struct domus_system *system);

/* Measure, set the level, give back what the heap has free if memory is short. Any thread, and no
 * lock is held; returns at once if another one is at it. */
void domi_pressure_look(struct domus_system *system);

/* Log a level that has begun or ended. `thread` as in log.h. */
void domi_pressure_report(struct domus_system *system, uint32_t thread);

/* The turn of a thread that is awake, once a tick: look if it is time, report. */
void domi_pressure_tick(struct domus_system *system, uint32_t thread, uint64_t now_ns);

/* What the level becomes. */
uint32_t domi_pressure_next(uint32_t level, const domi_usage *usage, uint32_t high_percent,
                            uint32_t critical_percent);

#endif
