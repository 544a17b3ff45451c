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

/* The kinds of records. The comment of each says what `name` is, and behind the ";" what `value`
 * is. */
typedef enum domi_record_kind {
    DOMI_RECORD_NONE,
    DOMI_RECORD_ITERATION, /* iteration: NULL; completions that were reaped */
    DOMI_RECORD_PHASE,     /* phase: a text, such as "state"; 0 */
    DOMI_RECORD_PARK,      /* sleep of the thread: NULL; 0 */
    DOMI_RECORD_STEAL,     /* steal: the behaviour; the thread whose house is run here */
    DOMI_RECORD_STAND_IN,  /* stand-in: the behaviour; the thread in whose place it is run here */
    DOMI_RECORD_RUN,       /* run: the behaviour; the type of a message, as a pointer, or 0 */
    DOMI_RECORD_STALL,     /* stall in a run: `name` and `value` are those of the run */
    DOMI_RECORD_LOAN,      /* loan: the behaviour; the thread that has taken the house */
    /* ask sent: its type; the number of the flow, which the answer has, too */
    DOMI_RECORD_ASK_OUT,
    DOMI_RECORD_ASK_IN,     /* ask handled: its type; the number of the flow */
    DOMI_RECORD_ANSWER_OUT, /* answer sent: its type; the number of the flow */
    DOMI_RECORD_ANSWER_IN,  /* answer handled, the end of the flow: its type; the number */
    DOMI_RECORD_CRASH,      /* crash: the name of the signal; 0 */
    DOMI_RECORD_KINDS,
} domi_record_kind;

typedef struct domi_record {
    uint64_t begin_ns;    /* begin, on the system's clock */
    uint64_t kind_length; /* kind in 8 bits, and the nanoseconds that the thing took in 56 */
    /* NULL, or a constant of the program, which lasts as long as the record */
    const void *name;
    DOMI_KEEP_PLACE(8) uint64_t value;
} domi_record;

static_assert(sizeof(domi_record) == 32, "two records fit into a cache line");

#define DOMI_RECORD_LENGTH_BITS 56
/* longest time of a record, in ns: two years */
#define DOMI_RECORD_LENGTH_MAX ((UINT64_C(1) << DOMI_RECORD_LENGTH_BITS) - 1)

/* The number of depths at which a record may lie: 0 is the outermost. */
#define DOMI_RECORD_DEPTHS 6u

/* Returns the depth of a kind; records of the last depth take no time. */
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

/* Pack the kind, and the time from `begin_ns` to `end_ns`, into one word. A negative time counts as
 * 0, and a time of more than DOMI_RECORD_LENGTH_MAX as that. */
static inline uint64_t domi_record_pack(domi_record_kind kind, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t length = end_ns > begin_ns ? end_ns - begin_ns : 0;

    if (length > DOMI_RECORD_LENGTH_MAX)
        length = DOMI_RECORD_LENGTH_MAX;
    return (uint64_t)kind << DOMI_RECORD_LENGTH_BITS | length;
}

#endif
