/* The inside of the test kit: a simulator of threads (steps.c), its trace (trace.c), probes
 * (probe.c), and the functions that users call (testkit.c).
 *
 * All of it runs in the one thread that uses the kit. */
#ifndef DOMI_RUNTIME_TESTKIT_TESTKIT_H
#define DOMI_RUNTIME_TESTKIT_TESTKIT_H

#include "base/random.h"
#include "runtime/system/system.h"

#include <domus/testkit.h>

/* The next step of a simulated thread. */
typedef enum domi_step {
    DOMI_STEP_IO,
    DOMI_STEP_CHANNELS,
    DOMI_STEP_STATE,
    DOMI_STEP_LOAN, /* run a house that was taken from another thread, and return it */
    /* the thread sleeps: it takes no step before it is woken or one of its timers is due */
    DOMI_STEP_SLEEP,
    DOMI_STEP_END, /* the thread has left its loop; once all threads have, it ends its actors */
    DOMI_STEP_NONE,
} domi_step;

/* A line of the trace tells this many counters of a thread. */
#define DOMI_TRACE_COUNTS 19u

typedef struct domi_kit_thread {
    domi_step next;
    bool woken;        /* the thread was woken while it slept */
    uint64_t until_ns; /* if the thread sleeps: when its next timer is due; UINT64_MAX: never */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* the thread's counters after its last step */
} domi_kit_thread;

/* A line of the trace names at most this many of the actors that ran in a step. */
#define DOMI_TRACE_ACTORS 4u

typedef struct domi_trace_actor {
    const domus_behaviour *behaviour;
    uint32_t number; /* see domi_who_number(); DOMI_WHO_UNKNOWN: the actor has no number */
} domi_trace_actor;

/* One line of the trace, before it is written as text. */
typedef struct domi_trace_line {
    uint64_t step;
    uint64_t now_ns;
    const char *what;       /* a thread's phase, or the kind of message that a probe received */
    bool of_probe;          /* the line is of a probe, not of a thread */
    uint32_t number;        /* the number of the thread or the probe */
    const domus_type *type; /* the type that a probe received; NULL: its ask failed with `error` */
    int error;
    /* how many actors ran in the thread's step; more than fit into `actors`, perhaps */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
    uint32_t counts[DOMI_TRACE_COUNTS];
} domi_trace_line;

/* The text of a line is shorter than this, unless it has names of a hundred bytes or more. */
#define DOMI_TRACE_LINE_BYTES 512u

typedef struct domi_who domi_who;

typedef struct domi_trace {
    domi_trace_line *lines; /* a ring of DOMUS_TESTKIT_TRACE_MAX */
    char *text;             /* room for the text of all lines */
    uint64_t count; /* lines written since the kit was made, also those that were overwritten */
    domi_who *who;  /* the numbers of actors; NULL: no actor has a number yet */
    /* These two are of the step that is being taken: how many actors run in it, and the first of
     * them. */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
} domi_trace;

struct domus_testkit {
    /* the first member, because the system's pointer to it is cast to the kit */
    domi_simulator simulator;
    domus_system *system;
    domi_kit_thread *threads;
    domi_random random;
    uint32_t lagging;    /* the thread that is held back while others can move */
    uint32_t lag_steps;  /* steps for which `lagging` is still held back */
    uint32_t left_loops; /* threads that have left their loops */
    /* steps since the kit's time moved last, or since domi_testkit_pass() was called */
    uint32_t steps_here;
    uint64_t steps;
    bool stepping; /* a step is being taken, so a handler may be running */
    domi_trace trace;
    domus_probe *probes; /* the newest first */
    uint32_t probe_count;
    char error[DOMUS_TESTKIT_TEXT_MAX];
};

/* ring.c: a ring in which nothing is ever in flight. */
extern const domi_backend domi_testkit_ring;

/* --- steps.c --- */

/* Take one step of some thread. Returns false if no thread has anything to do. */
bool domi_testkit_step(domus_testkit *kit);

/* Take steps until nothing is left to do, or until `is_done` (may be NULL) returns true. Meanwhile
 * time goes on, to `until_ns` at most.
 *
 * Returns 0 when `is_done` returned true; -ETIME when `until_ns` has come or no timer is left
 * (without `is_done` this is the normal end); -ETIMEDOUT after too many steps, and then the kit's
 * error says which threads and actors still run. */
int domi_testkit_pass(domus_testkit *kit, bool (*is_done)(const void *context), const void *context,
                      uint64_t until_ns);

/* Prepare the simulated thread of `manager` so that the test can act for it between steps: if the
 * thread sleeps it is woken, and it sees the kit's present time. */
void domi_testkit_rouse(domus_testkit *kit, const domi_manager *manager);

/* These two are the hooks that the kit sets in its domi_simulator (runtime/system/system.h). */
void domi_testkit_wake(domi_manager *manager);
bool domi_testkit_wait(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                       uint64_t until_ns);

/* --- trace.c --- */

/* Returns 0; -ENOMEM. */
int domi_trace_init(domi_trace *trace);
void domi_trace_fini(domi_trace *trace);

/* Note the actors that are ready, for the next line. Called before a phase 3 of thread `index`, in
 * which each of them runs once. */
void domi_trace_note_ready(domus_testkit *kit, uint32_t index);

/* Note what thread `index` has done since this was called last. */
void domi_trace_note_step(domus_testkit *kit, uint32_t index, const char *phase);

/* Probe `number` received a message, or (`type` is NULL) its ask failed with `error`. */
void domi_trace_note_probe(domus_testkit *kit, uint32_t number, const char *kind,
                           const domus_type *type, int error);

/* --- who.c --- */

/* The table has at most this many places, and at most half of them are used. */
#define DOMI_WHO_MAX (1u << 20)
/* the actor has no number, because memory or the table is full */
#define DOMI_WHO_UNKNOWN UINT32_MAX

/* The number of the actor that lives in `house`. An actor gets its number when it is first seen.
 * The table is made and grows as needed; the caller frees it with domi_memory_free(). */
uint32_t domi_who_number(domi_who **who, const domi_house *house);

/* --- probes: probe.c, expect.c --- */

/* Something that a probe received. */
typedef struct domi_parcel domi_parcel;

struct domi_parcel {
    domi_parcel *next;
    const char *kind;       /* "notice", "ask", "reply", "failure" or "event" */
    const domus_type *type; /* NULL: an ask of the probe failed with `error` */
    int error;
    domus_address sender;
    bool owns; /* the probe owns what the payload owns; after an expect the test owns it */
    bool is_ask;
    domus_kept kept; /* for an ask: its kept form, to be answered */
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
    domi_parcels came;    /* received, and not expected by the test yet */
    domi_parcels asks;    /* asks that the test has expected and has to answer */
    bool lost;            /* a message was received and not kept, because there was no memory */
    domus_address sender; /* the sender of the message that was expected last */
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

/* Free a probe and everything that it received and the test did not expect. */
void domi_probe_free(domus_probe *probe);

#endif
