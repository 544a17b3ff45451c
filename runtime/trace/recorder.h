/* A recorder is the flight recorder of one thread: a ring of the newest records, which overwrites
 * itself, and a place for each depth in which the thread says what it is doing just now.
 *
 * The thread that owns it writes it without any read-modify-write, and never waits. Only the
 * place of a stall in `open` is the monitor's, which writes while the thread is stuck. Any
 * thread, and a signal handler, may copy it at any time. A reader finds out by itself which records
 * were overwritten while it copied, and leaves them out:
 *
 *   1. The owner stores the words of record `head` into its place, each by a release store, and
 *      then stores `head` + 1.
 *   2. A reader loads the words of a place, each by an acquire load, and then loads `head` again.
 *   3. If one of the words came from a later record of this place, that load sees the `head` which
 *      the owner had stored before it. So a record is whole if its place was not `head`'s then.
 *
 * On x86-64 these stores are plain ones, and a record costs six of them.
 *
 * All recorders of the process are in one table, so that a signal handler finds them after a crash
 * (domi_recorders_begin_crash()).
 *
 * Thread-safety: the functions that write belong to the owner. All others: any thread, but an owner
 * frees its recorders when no thread writes and no thread copies them, except a signal handler
 * after a crash. */
#ifndef DOMI_RUNTIME_TRACE_RECORDER_H
#define DOMI_RUNTIME_TRACE_RECORDER_H

#include "runtime/trace/record.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define DOMI_RECORDERS_MAX 1024u /* most recorders that a process may have */
/* size in bytes of a thread's name in its recorder, with the zero at its end */
#define DOMI_RECORDER_NAME 32u
/* least number of records for which a recorder's ring has places */
#define DOMI_RECORDER_PLACES_MIN 64u
#define DOMI_RECORDER_PLACES_MAX (1u << 22)

/* The words of a record in a recorder, as the threads share them. */
typedef struct domi_recorder_place {
    _Atomic uint64_t begin_ns;
    _Atomic uint64_t kind_length;
    _Atomic(const void *) name;
    _Atomic uint64_t value;
} domi_recorder_place;

/* A function that tells what a thread runs just now: it writes a record of that, with the time from
 * which on it may have run, and returns true; false if nothing runs. Called by any thread, in the
 * handler of a signal, too. */
typedef bool domi_find_run(const void *runner, domi_record *ret_record);

typedef struct domi_recorder {
    /* The owner of the recorder writes the fields from this one on. */

    /* number of records that were written into the recorder, in all */
    alignas(64) _Atomic uint64_t head;
    domi_recorder_place *places; /* places of the recorder's ring; constant */
    uint64_t mask;               /* number of places of the ring, less 1; constant */
    /* For each depth the thing that has begun and not ended. In place of a length `kind_length` has
     * bits of `begin_ns`, so that no two things have the same; it is 0 while nothing is there. */
    domi_recorder_place open[DOMI_RECORD_DEPTHS];
    _Atomic int32_t tid; /* kernel's number of the thread that writes (tid); 0: not known */
    /* The phase that has ended last, and may go on; it is not written yet. */
    const char *phase; /* name of that phase; NULL: there is none */
    uint64_t phase_from_ns;
    uint64_t phase_end_ns;

    /* The following fields are constant, except `find_run` and `runner`, which the owner sets
     * once. */
    alignas(64) char name[DOMI_RECORDER_NAME]; /* name of the recorded thread, such as "thread 0" */
    /* index of the recorder in the table of the process's recorders */
    uint32_t number;
    /* function that tells which run is under way; NULL: there is none, or not yet */
    _Atomic(domi_find_run *) find_run;
    const void *runner; /* argument that `find_run` gets; set before `find_run` */
    /* memory for as many records as the ring has; written only after a crash */
    domi_record *scratch;
    size_t bytes; /* number of bytes that are mapped for the recorder with its ring */
} domi_recorder;

/* Make a recorder for a thread of `owner` (the system), and put it into the table. `places` is a
 * power of two from DOMI_RECORDER_PLACES_MIN to DOMI_RECORDER_PLACES_MAX; each takes 32 bytes, and
 * 32 more after a crash. A name that is too long is cut.
 * Returns 0; -EINVAL for another number of places; -ENOMEM; -ENOSPC if the table is full. */
int domi_recorder_new(const void *owner, const char *name, uint32_t places,
                      domi_recorder **ret_recorder);

/* Free a recorder, with the allocator that it was made with; NULL is allowed. After a crash it is
 * not freed, because a signal handler may be reading it. */
void domi_recorder_free(domi_recorder *recorder);

/* Let the calling thread be the one that writes to the recorder from now on. */
void domi_recorder_set_writing_thread(domi_recorder *recorder);

/* Returns the next recorder of `owner` (NULL: of anybody) from place `*index` of the table on, and
 * sets `*index` to the place behind it; NULL if there is no further one. The caller makes sure that
 * recorders of `owner` are not freed meanwhile. */
domi_recorder *domi_recorder_next_of_owner(const void *owner, uint32_t *index);

/* Begin the handling of a crash: from now on no recorder is freed any more. Returns false if that
 * has begun already. A signal handler may call this. */
bool domi_recorders_begin_crash(void);

/* Add a recorder for the calling thread, which has none and has crashed: of static memory, called
 * `name`, and once in the process. Returns NULL if the table is full or this was called before. A
 * signal handler may call this. */
domi_recorder *domi_recorders_add_for_crashed_thread(const char *name);

/* Returns the time at which the newest record of a recorder ended; 0: it has none, or the owner
 * wrote others meanwhile. */
uint64_t domi_recorder_end_of_newest_record(const domi_recorder *recorder);

/* Copy the records that ended at `since_ns` or later to `to`, which has room for all places of the
 * ring, the oldest first. Returns the number of these records: at most one less than the places,
 * because one place may be half written. */
uint32_t domi_recorder_copy_records(const domi_recorder *recorder, uint64_t since_ns,
                                    domi_record *to);

/* For each depth, copy the thing that the thread has begun and not ended; its kind is NONE where
 * there is nothing. A run that was not said to begin is the one that `find_run` tells. */
void domi_recorder_copy_open_things(const domi_recorder *recorder,
                                    domi_record to[DOMI_RECORD_DEPTHS]);

/* ---- What the owner calls -------------------------------------------------------------------- */

/* Write a record into the ring. Called by the owner. */
static inline void domi_recorder_write_record(domi_recorder *recorder, domi_record_kind kind,
                                              uint64_t begin_ns, uint64_t end_ns, const void *name,
                                              uint64_t value)
{
    /* Relaxed: only the owner writes this word. */
    uint64_t head = atomic_load_explicit(&recorder->head, memory_order_relaxed);
    domi_recorder_place *place = &recorder->places[head & recorder->mask];

    /* release: a reader that sees one of these words also sees the `head` that was stored before
     * (step 3). */
    atomic_store_explicit(&place->begin_ns, begin_ns, memory_order_release);
    atomic_store_explicit(&place->kind_length,
                          domi_record_pack_kind_and_length(kind, begin_ns, end_ns),
                          memory_order_release);
    atomic_store_explicit(&place->name, name, memory_order_release);
    atomic_store_explicit(&place->value, value, memory_order_release);
    /* release: pairs with a reader's first load of `head`, which may then read the record. */
    atomic_store_explicit(&recorder->head, head + 1, memory_order_release);
}

/* Write the record of the phase that has ended last, because it does not go on. */
static inline void domi_recorder_end_phase(domi_recorder *recorder)
{
    const char *phase = recorder->phase;

    if (phase == NULL)
        return;
    recorder->phase = NULL;
    domi_recorder_write_record(recorder, DOMI_RECORD_PHASE, recorder->phase_from_ns,
                               recorder->phase_end_ns, phase, 0);
}

/* Note that a phase has ended; if it has the name of the phase that ended last, it goes on: phases
 * of one name that follow each other are one record. */
static inline void domi_recorder_note_ended_phase(domi_recorder *recorder, uint64_t begin_ns,
                                                  uint64_t end_ns, const char *name)
{
    if (begin_ns == end_ns)
        return;
    if (recorder->phase != name) {
        domi_recorder_end_phase(recorder);
        recorder->phase = name;
        recorder->phase_from_ns = begin_ns;
    }
    recorder->phase_end_ns = end_ns;
}

/* Write the record of a thing that has ended. The thing lies in the next phase, so the record of
 * the phase before comes first. */
static inline void domi_recorder_write_ended_thing(domi_recorder *recorder, domi_record_kind kind,
                                                   uint64_t begin_ns, uint64_t end_ns,
                                                   const void *name, uint64_t value)
{
    domi_recorder_end_phase(recorder);
    domi_recorder_write_record(recorder, kind, begin_ns, end_ns, name, value);
}

/* Note that a thing has begun: from now on copies of the recorder have it as under way. */
static inline void domi_recorder_note_begin_of_thing(domi_recorder *recorder, domi_record_kind kind,
                                                     uint64_t begin_ns, const void *name,
                                                     uint64_t value)
{
    domi_recorder_place *place = &recorder->open[domi_record_depth_of(kind)];

    /* `kind_length` is 0 while the other words change. release: a reader that sees a new one of
     * these finds 0 or a later value when it loads `kind_length` again. */
    atomic_store_explicit(&place->kind_length, 0, memory_order_relaxed);
    atomic_store_explicit(&place->begin_ns, begin_ns, memory_order_release);
    atomic_store_explicit(&place->name, name, memory_order_release);
    atomic_store_explicit(&place->value, value, memory_order_release);
    atomic_store_explicit(&place->kind_length, domi_record_pack_kind_and_length(kind, 0, begin_ns),
                          memory_order_release);
}

/* Change the value of the thing that has begun last at a kind's depth, as when a run goes on to a
 * message of another type. */
static inline void domi_recorder_set_value_of_thing(domi_recorder *recorder, domi_record_kind kind,
                                                    uint64_t value)
{
    /* release, as in domi_recorder_note_begin_of_thing() */
    atomic_store_explicit(&recorder->open[domi_record_depth_of(kind)].value, value,
                          memory_order_release);
}

/* Write the record of the thing of this kind that has begun, because it has ended. It began at
 * `from_ns` or later, because something around it did. Nothing happens if there is no such
 * thing. */
static inline void domi_recorder_end_begun_thing(domi_recorder *recorder, domi_record_kind kind,
                                                 uint64_t from_ns, uint64_t end_ns)
{
    domi_recorder_place *place = &recorder->open[domi_record_depth_of(kind)];

    /* acquire: the monitor writes the place of a stall. The other places only the owner writes. */
    uint64_t begun = atomic_load_explicit(&place->kind_length, memory_order_acquire);

    if (begun >> DOMI_RECORD_LENGTH_BITS != (uint64_t)kind)
        return;
    uint64_t begin_ns = atomic_load_explicit(&place->begin_ns, memory_order_relaxed);
    domi_recorder_write_ended_thing(recorder, kind, begin_ns > from_ns ? begin_ns : from_ns, end_ns,
                                    atomic_load_explicit(&place->name, memory_order_relaxed),
                                    atomic_load_explicit(&place->value, memory_order_relaxed));
    /* relaxed: a reader that comes before this store sees the thing twice, which nesting.c
     * allows */
    atomic_store_explicit(&place->kind_length, 0, memory_order_relaxed);
}

#endif
