/* The inside of the test kit: the data of its simulated threads (steps.c), its trace (trace.c), its
 * probes (probe.c, expect.c), and its network (runtime/network) with scripted peers (peer.c,
 * peer_expect.c). domus/testkit.h and domus/testkit_net.h have the functions that users call.
 *
 * All of it runs in the one thread that uses the kit. */
#ifndef DOMI_RUNTIME_TESTKIT_KIT_H
#define DOMI_RUNTIME_TESTKIT_KIT_H

#include "base/fifo.h"
#include "base/random.h"
#include "runtime/network/network.h"
#include "runtime/policies/pool.h"
#include "runtime/system/system.h"
#include "runtime/testkit/who.h"

#include <domus/testkit.h>
#include <domus/testkit_net.h>

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
    domi_step next;    /* the step that the thread takes next */
    bool woken;        /* the thread was woken while it slept */
    bool refused;      /* the ring took no operations as the thread fell asleep, so it goes on */
    uint64_t until_ns; /* if the thread sleeps: when its next timer is due; UINT64_MAX: never */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* the thread's counters after its last step */
} domi_kit_thread;

/* A runner of a pool (runners.c). */
typedef struct domi_kit_runner {
    domus_runner *runner;
    bool left;                          /* the thread has left its loop */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* the counters of the thread after its last step */
} domi_kit_runner;

/* A line of the trace names at most this many of the actors that ran in a step. */
#define DOMI_TRACE_ACTORS 4u

typedef struct domi_trace_actor {
    const domus_behaviour *behaviour; /* the behaviour of the actor */
    uint32_t number; /* see domi_who_number(); DOMI_WHO_UNKNOWN: the actor has no number */
} domi_trace_actor;

/* A line of the trace, before it is written as text. */
typedef struct domi_trace_line {
    uint64_t step;          /* number of the step */
    uint64_t now_ns;        /* the kit's time at the step */
    const char *what;       /* a thread's phase, or the kind of message that a probe received */
    bool of_probe;          /* the line is of a probe, not of a thread */
    const char *pool;       /* the line is of a runner of this pool; NULL: it is not */
    bool of_net;            /* the line is of a connection or a datagram, which `number` names */
    bool of_datagram;       /* the line is about a datagram */
    uint8_t side;           /* the side of the connection that it tells of: 1 has accepted it */
    uint64_t amount;        /* bytes, or a port; 0: none */
    uint32_t number;        /* the number of the thread or the probe */
    const domus_type *type; /* the type that a probe received; NULL: its ask failed with `error` */
    int error;              /* the negative errno of a failed ask */
    /* how many actors ran in the thread's step; more than fit into `actors`, perhaps */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS]; /* those that ran, the first `actor_count` */
    uint32_t counts[DOMI_TRACE_COUNTS]; /* by how much the thread's counters grew in the step */
} domi_trace_line;

/* The text of a line is shorter than this, unless it has names of a hundred bytes or more. */
#define DOMI_TRACE_LINE_BYTES 512u

typedef struct domi_trace {
    domi_trace_line *lines; /* a ring of DOMUS_TESTKIT_TRACE_MAX */
    char *text;             /* room for the text of all lines */
    uint64_t count; /* lines written since the kit was made, also those that were overwritten */
    domi_who *who;  /* the numbers of actors; NULL: no actor has a number yet */
    /* These two fields describe the present step: how many actors run in it, and the first of these
     * actors. */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS]; /* those that ran in this step so far */
} domi_trace;

/* Something that a probe received. */
typedef struct domi_parcel domi_parcel;

struct domi_parcel {
    domi_parcel *next;      /* links in the probe's list */
    const char *kind;       /* "notice", "ask", "reply", "failure" or "event" */
    const domus_type *type; /* NULL: an ask of the probe failed with `error` */
    int error;              /* the negative errno of a failed ask */
    domus_address sender;   /* the sender of the message */
    bool owns;       /* the probe owns what the payload owns; after an expect the test owns it */
    bool is_ask;     /* the test has to answer it */
    domus_kept kept; /* for an ask: the kept ask, which the test has to answer */
    alignas(8) unsigned char payload[];
};

DOMI_FIFO(domi_parcels, domi_parcel, next);

struct domus_probe {
    domus_testkit *kit;    /* the kit that the probe belongs to */
    domus_probe *next;     /* the probe that was made before it */
    uint32_t number;       /* names the probe in the trace */
    domus_address address; /* the address of the probe's actor */
    domi_parcels came;     /* received, and not expected by the test yet */
    domi_parcels asks;     /* asks that the test has expected and has to answer */
    bool lost;             /* a message was received and not kept, because there was no memory */
    domus_address sender;  /* the sender of the message that was expected last */
};

struct domus_testkit {
    /* the first member, because the system's pointer to it is cast to the kit */
    domi_simulator simulator;
    domus_system *system;     /* the system under test */
    domi_kit_thread *threads; /* the next step of each thread */
    domi_kit_runner *runners; /* the runners of all pools; NULL: there are none */
    uint32_t runner_count;    /* entries of `runners` */
    domi_random random;       /* chooses the thread of the next step */
    uint32_t lagging;         /* the thread that is held back while others can move */
    uint32_t lag_steps;       /* steps for which `lagging` is still held back */
    uint32_t left_loops;      /* threads that have left their loops */
    /* steps since the kit's time moved last, or since domi_testkit_pass() was called */
    uint32_t steps_here;
    uint64_t steps;                      /* steps so far */
    bool stepping;                       /* a step is being taken, so a handler may be running */
    domi_trace trace;                    /* the last steps, for a failure's report */
    domus_probe *probes;                 /* the newest first */
    uint32_t probe_count;                /* probes that were made */
    domi_net *net;                       /* the network of the system and of all peers */
    domus_peer *peers;                   /* the newest first */
    uint32_t peer_count;                 /* peers that were made */
    domus_peer_listener *listeners;      /* the newest first */
    domus_datagram_peer *datagram_peers; /* the newest first */
    char error[DOMUS_TESTKIT_TEXT_MAX];  /* the text of the first failure, NUL-terminated */
};

#endif
