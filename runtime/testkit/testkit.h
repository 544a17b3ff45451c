/* The test kit inside: a simulator of threads (steps.c), what it notes (trace.c),
 * probes (probe.c), and the calls of users over them (testkit.c).
 *
 * All of it runs in the one thread that uses the kit. */
#ifndef DOMI_RUNTIME_TESTKIT_TESTKIT_H
#define DOMI_RUNTIME_TESTKIT_TESTKIT_H

#include "base/random.h"
#include "runtime/system/system.h"

#include <domus/testkit.h>

/* What a simulated thread does in its next step. */
typedef enum domi_step {
    DOMI_STEP_IO,
    DOMI_STEP_CHANNELS,
    DOMI_STEP_STATE,
    DOMI_STEP_LOAN,  /* run what was taken from another thread, and return it */
    DOMI_STEP_SLEEP, /* none, before it is woken or a timer is due */
    DOMI_STEP_END,   /* it left its loop; once all have, it ends its actors */
    DOMI_STEP_NONE,
} domi_step;

/* How many counters of a thread a line of the trace tells. */
#define DOMI_TRACE_COUNTS 19u

typedef struct domi_kit_thread {
    domi_step next;
    bool woken;                         /* while it slept */
    uint64_t until_ns;                  /* asleep: when a timer is due; UINT64_MAX: never */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* after its last step */
} domi_kit_thread;

/* How many of the actors that ran in a step a line names. */
#define DOMI_TRACE_ACTORS 4u

typedef struct domi_trace_actor {
    const domus_behaviour *behaviour;
    uint32_t number; /* DOMI_WHO_UNKNOWN: none */
} domi_trace_actor;

/* One line, before it is written out. */
typedef struct domi_trace_line {
    uint64_t step;
    uint64_t now_ns;
    const char *what;       /* of a thread: its phase; of a probe: the kind of message */
    bool of_probe;          /* else of a thread */
    uint32_t number;        /* of the thread or the probe */
    const domus_type *type; /* of what a probe received; NULL: an ask failed */
    int error;              /* with this */
    uint32_t actor_count;   /* of a thread */
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
    uint32_t counts[DOMI_TRACE_COUNTS];
} domi_trace_line;

/* A line is written in less than this, but for names of a hundred bytes and more. */
#define DOMI_TRACE_LINE_BYTES 512u

typedef struct domi_who domi_who;

typedef struct domi_trace {
    domi_trace_line *lines; /* a ring of DOMUS_TESTKIT_TRACE_MAX */
    char *text;             /* room for all of them */
    uint64_t count;         /* how many there ever were */
    domi_who *who;          /* NULL: nobody has a number yet */
    /* Of the step that is being taken. */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
} domi_trace;

struct domus_testkit {
    domi_simulator simulator; /* first: the system knows the kit by it */
    domus_system *system;
    domi_kit_thread *threads;
    domi_random random;
    uint32_t lagging;    /* a thread that is held back while others can move */
    uint32_t lag_steps;  /* for so many steps */
    uint32_t left_loops; /* threads that have */
    uint32_t steps_here; /* since time has moved, or since the call began */
    uint64_t steps;
    bool stepping; /* a handler may be running */
    domi_trace trace;
    domus_probe *probes; /* the newest first */
    uint32_t probe_count;
    char error[DOMUS_TESTKIT_TEXT_MAX];
};

/* ring.c: a ring that nothing is in. */
extern const domi_backend domi_testkit_ring;

/* --- steps.c --- */

/* One step of some thread; false when none has anything to do. */
bool domi_testkit_step(domus_testkit *kit);

/* Steps until nothing is left, or `is_done` (may be NULL) says so; meanwhile time goes on to
 * `until_ns` at most.
 *
 * Returns 0 when it is done; -ETIME when the time is over (without `is_done` that is all there is
 * to come); -ETIMEDOUT after too many steps: the kit's error says who still runs. */
int domi_testkit_pass(domus_testkit *kit, bool (*is_done)(const void *context), const void *context,
                      uint64_t until_ns);

/* Let the thread that `manager` belongs to act out of its turn: awake, and with the time of now. */
void domi_testkit_rouse(domus_testkit *kit, const domi_manager *manager);

/* The simulator's hooks. */
void domi_testkit_wake(domi_manager *manager);
bool domi_testkit_wait(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                       uint64_t until_ns);

/* --- trace.c --- */

/* Returns 0; -ENOMEM. */
int domi_trace_init(domi_trace *trace);
void domi_trace_fini(domi_trace *trace);

/* Before a phase 3 of thread `index`: all that is ready runs once in it. */
void domi_trace_ready(domus_testkit *kit, uint32_t index);

/* Note what thread `index` has done since this was called last. */
void domi_trace_step(domus_testkit *kit, uint32_t index, const char *phase);

/* Probe `number` received a message, or (`type` is NULL) its ask failed with `error`. */
void domi_trace_probe(domus_testkit *kit, uint32_t number, const char *kind, const domus_type *type,
                      int error);

/* --- who.c --- */

/* Places in the table at most; half of them are used. */
#define DOMI_WHO_MAX     (1u << 20)
#define DOMI_WHO_UNKNOWN UINT32_MAX /* without memory, or beyond the most */

/* The number of the actor that lives in `house`, given at first sight. The table is made and grows
 * as it is needed; domi_memory_free() frees it. */
uint32_t domi_who_number(domi_who **who, const domi_house *house);

/* --- probes: probe.c, expect.c --- */

/* Something that a probe received. */
typedef struct domi_parcel domi_parcel;

struct domi_parcel {
    domi_parcel *next;
    const char *kind;       /* in the words of the manual */
    const domus_type *type; /* NULL: an ask of the probe failed */
    int error;              /* with this */
    domus_address sender;
    bool owns; /* what the payload owns is the probe's, and then the test's */
    bool is_ask;
    domus_kept kept; /* ... to be answered */
    alignas(8) unsigned char payload[];
};

typedef struct domi_parcels {
    domi_parcel *head;
    domi_parcel *tail;
} domi_parcels;

struct domus_probe {
    domus_testkit *kit;
    domus_probe *next;
    uint32_t number;
    domus_address address;
    domi_parcels came;    /* not expected yet */
    domi_parcels asks;    /* expected, to be answered */
    bool lost;            /* something came, and there was no memory for it */
    domus_address sender; /* of what was expected last */
};

static inline void domi_parcel_push(domi_parcels *list, domi_parcel *parcel)
{
    parcel->next = NULL;
    if (list->head == NULL)
        list->head = parcel;
    else
        list->tail->next = parcel;
    list->tail = parcel;
}

static inline domi_parcel *domi_parcel_take(domi_parcels *list)
{
    domi_parcel *parcel = list->head;

    list->head = parcel->next;
    return parcel;
}

static inline void domi_parcel_release(domi_parcel *parcel)
{
    if (parcel->owns && parcel->type->release != NULL)
        parcel->type->release(parcel->payload);
}

/* With everything that was received and not expected. */
void domi_probe_free(domus_probe *probe);

#endif
