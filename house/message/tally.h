/* Counters for each behaviour, of its actors on one thread.
 *
 * A system gives each behaviour a number when the first actor of it is spawned, and each manager
 * has a row of counters for each number. The house of an actor has the number, so a run finds its
 * row without a search. Numbers are never given back: a program has as many behaviours as it was
 * written with. The number 0 is shared by behaviours beyond DOMUS_BEHAVIOURS_MAX, and by actors of
 * managers without a table. */
#ifndef DOMI_HOUSE_MESSAGE_TALLY_H
#define DOMI_HOUSE_MESSAGE_TALLY_H

#include "base/counter.h"
#include "base/spinlock.h"

#include <domus/actor.h>
#include <domus/profile.h>

#include <assert.h>
#include <stdalign.h>

#define DOMI_TALLIES (DOMUS_BEHAVIOURS_MAX + 1u)

static_assert((DOMI_TALLIES & (DOMI_TALLIES - 1)) == 0 && DOMI_TALLIES <= 256,
              "a number fits in a byte, and a table of twice as many in a mask");

/* The counters of one behaviour on one manager. The owner writes all but `run_ns`, which the
 * monitor writes; any thread reads. */
typedef struct domi_tally {
    alignas(64) domi_counter runs;
    /* messages of all kinds, and pieces of bytes, that actors of this behaviour have handled */
    domi_counter messages;
    /* time that actors of this behaviour have run in nanoseconds, as the monitor samples it: for
     * each look that finds the behaviour running, the time since the look before */
    domi_counter run_ns;
    domi_counter waits;   /* messages to actors of this behaviour whose waiting time was measured */
    domi_counter wait_ns; /* sum of the waiting times of the measured messages in nanoseconds */
    domi_counter failures; /* failures of handlers and conversations of actors of this behaviour */
    domi_counter begun;    /* actors that were mounted, or changed to this behaviour */
    domi_counter ended;    /* actors that have ended, or changed to another behaviour */
} domi_tally;

static_assert(sizeof(domi_tally) == 64, "one line");

/* A behaviour that has a number. All fields are constant once `behaviour` is set in the table. */
typedef struct domi_known {
    char name[DOMUS_BEHAVIOUR_NAME_SIZE];
    uint32_t bytes; /* size of an actor of this behaviour in bytes: its house and its state */
    uint32_t kind;  /* kind of the behaviour's actors, a domus_kind */
} domi_known;

/* An entry of the table, by the hash of a behaviour's address. */
typedef struct domi_known_at {
    _Atomic(const domus_behaviour *) behaviour; /* the behaviour; NULL: the entry is free */
    /* number of the behaviour in this entry; constant once `behaviour` is set */
    uint32_t number;
} domi_known_at;

/* The behaviours of a system that have a number. A zeroed structure has none. */
typedef struct domi_behaviours {
    domi_spinlock lock;     /* lock that is held by the thread that adds a behaviour to the table */
    _Atomic uint32_t count; /* how many numbers were given to behaviours; the first one is 1 */
    domi_known known[DOMI_TALLIES];
    domi_known_at table[2 * DOMI_TALLIES];
} domi_behaviours;

/* Give a number to a behaviour that has none yet. Returns the number; 0 if there are too many
 * behaviours. Any thread. */
uint32_t domi_behaviours_add_number(domi_behaviours *behaviours, const domus_behaviour *behaviour,
                                    uint32_t bytes);

/* Returns the number of a behaviour; 0: it has none. Any thread. */
uint32_t domi_behaviours_find_number(const domi_behaviours *behaviours,
                                     const domus_behaviour *behaviour);

#endif
