/* The pressure says how short memory is: a look writes its words, and every thread reads them.
 *
 * A look measures (runtime/os/footprint.h), tells the library's own memory from foreign memory
 * (runtime/system/budget.h) and sets two levels. A thread that is awake takes a look every
 * memory.interval, and sooner if what is used grows fast. A look is also due as the system grows:
 * at 10 million messages a second a gigabyte is gone before a tenth of a second is over. Therefore
 * the functions that allocate count bytes (base/memory.h), and a look is due when a quarter of the
 * way to the next mark has been taken.
 *
 *     limit        the kernel kills the process
 *     full         halfway from critical to the limit, of all memory: what can fail fails
 *     scarce       halfway from critical to full: slabs that are never trimmed do not grow
 *     critical     own memory reaches the last budget: asks and notices are refused
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
    /* These two are each a domus_memory_level, and change seldom. */
    alignas(DOMI_LINES) _Atomic uint32_t own_level;
    _Atomic uint32_t level;
    _Atomic uint32_t changes;             /* how often one of the two levels has changed */
    alignas(DOMI_LINES) domi_meter meter; /* pressure.c finds this structure by its meter */
    struct domus_system *system;
    const char *root;         /* put before `/proc` and `/sys`; "" in production */
    _Atomic uint64_t next_ns; /* when the next look is due; UINT64_MAX: never */
    /* 1: a thread takes a look; that thread alone writes the fields below */
    _Atomic uint32_t looking;
    domi_footprint footprint;
    uint64_t way;          /* bytes to the next mark at the last measurement */
    uint64_t looked_ns;    /* when the last look by domi_pressure_look() was */
    uint64_t looked_used;  /* bytes in use at that look */
    uint64_t shed_seen;    /* shared.shed at the newest look that found it changed */
    uint64_t shed_seen_ns; /* the time of that look */
    uint64_t heap_trim_ns; /* the heap is not trimmed before this time */
    uint64_t heap_last_ns; /* the heap is not trimmed from this time on */
    domi_counter used, limit, own, foreign, budget, last_budget;
    domi_counter queue_max;          /* bytes that each thread may have queued for its peers */
    _Atomic uint32_t counts_sockets; /* the kernel's socket buffers are a part of the used memory */
    domi_io_shared shared;
    domi_counter highs, criticals, fulls, looks;
    /* These fields are for pressure_report.c, which notes here what it has logged, except where a
     * field says otherwise. */
    _Atomic uint32_t woken_for;     /* the value of `changes` for which watchers were last woken */
    _Atomic uint32_t said;          /* the state of memory that was logged last (enum trouble) */
    _Atomic uint32_t is_shedding;   /* channels are being reset */
    _Atomic uint32_t said_shedding; /* that channels are being reset was logged */
    uint64_t shed_said;             /* shared.shed when the end of the resets was last logged */
    uint64_t shed_bytes_said;
    /* sends of foreign threads that were refused before the lock */
    _Atomic uint64_t outside_refused;
    _Atomic uint64_t outside_trim_ns; /* when the outside's slabs are trimmed next (trim.c) */
} domi_pressure;

void domi_pressure_init(struct domus_system *system);

/* Called before the threads start: find the limits. A simulated system has none. A test may set
 * `root` before this. */
void domi_pressure_begin(struct domus_system *system);

/* Called after the threads have ended: from now on memory counts as normal. */
void domi_pressure_end(struct domus_system *system);

/* Returns how a thread's io has to behave at the present levels. */
domi_io_pressure domi_pressure_for_io(const domi_pressure *pressure);

/* Read the levels and their figures. Returns the number of the change that set them. This is
 * domi_manager.read_memory. */
uint32_t domi_pressure_read(const domi_manager *manager, domus_memory_change *ret_change);

/* Measure, set the levels, and give back what the heap has free if memory is short. Any thread that
 * holds no lock may call it; it returns at once if another thread takes a look. */
void domi_pressure_look(struct domus_system *system);

/* Log a shortage that has begun or ended. `thread` as in log.h. */
void domi_pressure_report(struct domus_system *system, uint32_t thread);

/* Note for the next report whether channels are being reset because memory is short, or have not
 * been for a while. Only the thread that takes a look calls it. */
void domi_pressure_note_shed(domi_pressure *pressure, uint64_t now_ns);

/* A thread that is awake calls this once a tick: take a look if one is due, wake watchers,
 * report. */
void domi_pressure_tick(struct domus_system *system, uint32_t thread, uint64_t now_ns);

#endif
