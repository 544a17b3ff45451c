/* A record is one thing that a thread has done, in 32 bytes: when it began, how long it took, its
 * kind, and two words whose meaning depends on the kind.
 *
 * Records of one thread nest by their kinds, as in the table below: a run lies within a phase, and
 * a phase within an iteration. Each of the outer things may be missing. A thread writes a record
 * when the thing has ended, so a record comes behind all records that lie within it. */
#ifndef DOMI_RUNTIME_TRACE_RECORD_H
#define DOMI_RUNTIME_TRACE_RECORD_H

#include "base/width.h"

#include <assert.h>
#include <stdint.h>

/* The kinds of records, with what the `name` and the `value` of each kind of record are. */
typedef enum domi_record_kind {
    DOMI_RECORD_NONE,
    /* record of an iteration: `name` is NULL, `value` counts the completions that were reaped */
    DOMI_RECORD_ITERATION,
    DOMI_RECORD_PHASE, /* record of a phase: `name` is a text, such as "state", `value` is 0 */
    DOMI_RECORD_PARK,  /* record of a sleep of the thread: `name` is NULL, `value` is 0 */
    /* record of a stolen house that runs here: `name` is its behaviour, `value` the thread that is
     * its home */
    DOMI_RECORD_STEAL,
    /* record of a house that runs here in place of a sleeper: `name` is its behaviour, `value` the
     * sleeper */
    DOMI_RECORD_STAND_IN,
    /* record of a run: `name` is the behaviour, `value` the type of a message, as a pointer, or
     * 0 */
    DOMI_RECORD_RUN,
    DOMI_RECORD_STALL, /* record of a stall in a run: `name` and `value` are those of the run */
    /* record of a house that was lent: `name` is its behaviour, `value` the thread that has taken
     * it */
    DOMI_RECORD_LOAN,
    /* record that an ask was sent: `name` is its type, `value` the number of the flow, which the
     * answer has, too */
    DOMI_RECORD_ASK_OUT,
    /* record that an ask was handled: `name` is its type, `value` the number of the flow */
    DOMI_RECORD_ASK_IN,
    /* record that an answer was sent: `name` is the type of the ask, `value` the number of the
     * flow */
    DOMI_RECORD_ANSWER_OUT,
    /* record that an answer was handled, the end of the flow: `name` is the type of the ask,
     * `value` the number of the flow */
    DOMI_RECORD_ANSWER_IN,
    DOMI_RECORD_CRASH, /* record of a crash: `name` is the name of the signal, `value` is 0 */
    DOMI_RECORD_KINDS,
} domi_record_kind;

typedef struct domi_record {
    uint64_t begin_ns; /* time at which the recorded thing began, on the system's clock */
    /* kind of the record in 8 bits, and the nanoseconds that the thing took in 56 */
    uint64_t kind_length;
    /* name of the recorded thing: NULL, or a constant of the program, which lasts as long as the
     * record */
    const void *name;
    DOMI_KEEP_PLACE(8) uint64_t value;
} domi_record;

static_assert(sizeof(domi_record) == 32, "two records fit into a cache line");

#define DOMI_RECORD_LENGTH_BITS 56
/* longest time that a record may have, in nanoseconds: two years */
#define DOMI_RECORD_LENGTH_MAX ((UINT64_C(1) << DOMI_RECORD_LENGTH_BITS) - 1)

/* Number of depths at which a record may lie; depth 0 is the outermost. */
#define DOMI_RECORD_DEPTHS 6u

/* Returns the depth at which records of a kind lie; those of the last depth take no time. */
static inline uint32_t domi_record_depth_of(domi_record_kind kind)
{
    static const uint8_t depths[DOMI_RECORD_KINDS] = {
        [DOMI_RECORD_ITERATION] = 0, [DOMI_RECORD_PHASE] = 1,      [DOMI_RECORD_PARK] = 2,
        [DOMI_RECORD_STEAL] = 2,     [DOMI_RECORD_STAND_IN] = 2,   [DOMI_RECORD_RUN] = 3,
        [DOMI_RECORD_STALL] = 4,     [DOMI_RECORD_LOAN] = 5,       [DOMI_RECORD_ASK_OUT] = 5,
        [DOMI_RECORD_ASK_IN] = 5,    [DOMI_RECORD_ANSWER_OUT] = 5, [DOMI_RECORD_ANSWER_IN] = 5,
        [DOMI_RECORD_CRASH] = 5,
    };

    return depths[kind];
}

static inline domi_record_kind domi_record_kind_of(const domi_record *record)
{
    return (domi_record_kind)(record->kind_length >> DOMI_RECORD_LENGTH_BITS);
}

static inline uint64_t domi_record_end_ns(const domi_record *record)
{
    return record->begin_ns + (record->kind_length & DOMI_RECORD_LENGTH_MAX);
}

/* Pack the kind of a record, and the time from `begin_ns` to `end_ns`, into one word. A negative
 * time counts as 0, and a time of more than DOMI_RECORD_LENGTH_MAX as that. */
static inline uint64_t domi_record_pack_kind_and_length(domi_record_kind kind, uint64_t begin_ns,
                                                        uint64_t end_ns)
{
    uint64_t length = end_ns > begin_ns ? end_ns - begin_ns : 0;

    if (length > DOMI_RECORD_LENGTH_MAX)
        length = DOMI_RECORD_LENGTH_MAX;
    return (uint64_t)kind << DOMI_RECORD_LENGTH_BITS | length;
}

#endif
