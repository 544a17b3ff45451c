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
    /* The next two fields are levels of memory (domus_memory_level), and change seldom. */

    /* level of the library's own memory against its budget; threads act on this level */
    alignas(DOMI_LINES) _Atomic uint32_t own_level;
    _Atomic uint32_t level;   /* level of all memory in use; it is only reported and counted */
    _Atomic uint32_t changes; /* number of times that one of the two levels has changed */
    /* meter of the bytes that the library holds; pressure.c finds this structure by the meter's
     * address */
    alignas(DOMI_LINES) domi_meter meter;
    struct domus_system *system; /* system whose memory is measured */
    /* directory that is put before `/proc` and `/sys`; "" in production */
    const char *root;
    _Atomic uint64_t next_ns; /* time at which the next look at memory is due; UINT64_MAX: never */
    /* 1 while a thread takes a look at memory; only that thread writes the fields below */
    _Atomic uint32_t looking;
    domi_footprint footprint; /* reads how many bytes are used and what the limits are */
    /* bytes from the memory in use to the next mark, at the last measurement */
    uint64_t way;
    uint64_t looked_ns;   /* time of the last look that domi_pressure_look_at_memory() took */
    uint64_t looked_used; /* bytes in use at the look at the time `looked_ns` */
    /* number of shed channels (`shared.shed`) at the newest look that found it changed */
    uint64_t shed_seen;
    uint64_t shed_seen_ns; /* time of the look that has set `shed_seen` */
    uint64_t heap_trim_ns; /* time before which the heap is not trimmed again */
    uint64_t heap_last_ns; /* time from which on the heap is not trimmed any more */
    /* figures of the last look at memory in bytes, for reports */
    domi_counter used, limit, own, foreign, budget, last_budget;
    /* bytes that each thread may keep for its peers: bytes to be sent, and copied-out pieces that
     * wait for their actor. The thread that takes a look at memory writes this. */
    domi_counter queue_max;
    /* not 0: the kernel's socket buffers are a part of the used memory */
    _Atomic uint32_t counts_sockets;
    domi_io_shared shared; /* figures of memory that the io of all threads shares */
    /* how often memory became high, critical and full, and how often it was measured */
    domi_counter highs, criticals, fulls, looks;
    /* The fields from this one on hold what has been logged. Only pressure_report.c uses them,
     * except where a field says otherwise. */

    /* value of `changes` for which actors that watch memory were last woken */
    _Atomic uint32_t woken_for;
    _Atomic uint32_t said;          /* state of memory that was logged last (enum trouble) */
    _Atomic uint32_t is_shedding;   /* not 0: channels are being reset because memory is short */
    _Atomic uint32_t said_shedding; /* not 0: the log says that channels are being reset */
    /* number of shed channels (`shared.shed`) when the end of the resets was last logged */
    uint64_t shed_said;
    /* number of shed bytes (`shared.shed_bytes`) when the end of the resets was last logged */
    uint64_t shed_bytes_said;
    /* number of sends that were refused to foreign threads before they took the lock of the
     * outside */
    _Atomic uint64_t outside_refused;
    /* time at which the outside's slabs are trimmed next (trim.c) */
    _Atomic uint64_t outside_trim_ns;
} domi_pressure;

#endif
