/* The data of the test kit: its simulated threads (steps.c), trace (trace.c), probes (probe.c,
 * expect.c), and network (runtime/network) with scripted peers (peer.c, peer_expect.c). The
 * functions for users are in domus/testkit.h and domus/testkit_net.h.
 *
 * All of this runs in the one thread that uses the kit. */
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

/* The kind of step that a simulated thread takes next. */
typedef enum domi_step {
    DOMI_STEP_IO,
    DOMI_STEP_CHANNELS,
    DOMI_STEP_STATE,
    DOMI_STEP_LOAN, /* run a house that was stolen from another thread, and return it */
    /* sleep: the thread takes no step before it is woken or one of its timers is due */
    DOMI_STEP_SLEEP,
    /* end the actors of the thread, which has left its loop, once all threads have left theirs */
    DOMI_STEP_END,
    DOMI_STEP_NONE,
} domi_step;

/* Number of a thread's counters that a line of the trace shows. */
#define DOMI_TRACE_COUNTS 19u

typedef struct domi_kit_thread {
    domi_step next; /* the step that the thread takes next */
    bool woken;     /* the thread was woken while it slept */
    /* the ring refused operations when the thread fell asleep, so the thread takes a step again */
    bool refused;
    /* time at which the next timer of the sleeping thread is due; UINT64_MAX: never */
    uint64_t until_ns;
    uint64_t counts[DOMI_TRACE_COUNTS]; /* the thread's counters after its last step */
} domi_kit_thread;

/* A runner of a pool, simulated by the test kit (runners.c). */
typedef struct domi_kit_runner {
    domus_runner *runner;
    bool left;                          /* the runner has left its loop */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* the runner's counters after its last step */
} domi_kit_runner;

/* Most actors that a line of the trace names. */
#define DOMI_TRACE_ACTORS 4u

typedef struct domi_trace_actor {
    const domus_behaviour *behaviour; /* the behaviour of the actor */
    uint32_t number; /* the actor's number from domi_who_number(); DOMI_WHO_UNKNOWN: it has none */
} domi_trace_actor;

/* A line of the trace, before it is written as text. */
typedef struct domi_trace_line {
    uint64_t step;   /* number of the step */
    uint64_t now_ns; /* the kit's time at the step */
    /* name of the step (a phase), or kind of the message that a probe received */
    const char *what;
    bool of_probe;    /* the line is of a probe, not of a thread */
    const char *pool; /* name of the pool if the line is of a runner; NULL: it is not */
    /* the line is of a connection or a datagram, whose number is `number` */
    bool of_net;
    bool of_datagram; /* the line is of a datagram */
    uint8_t side;     /* side of the connection that the event reaches; 1 has accepted it */
    uint64_t amount;  /* number of bytes, or a port; 0: neither */
    uint32_t number;  /* number of the thread, probe, connection or datagram */
    /* type of the message that a probe received; NULL: an ask failed with `error` */
    const domus_type *type;
    int error; /* the negative errno of a failed ask */
    /* number of actors that ran in the step, which may exceed DOMI_TRACE_ACTORS */
    uint32_t actor_count;
    domi_trace_actor actors[DOMI_TRACE_ACTORS]; /* the first of the actors that ran in the step */
    uint32_t counts[DOMI_TRACE_COUNTS]; /* growth of each of the thread's counters in the step */
} domi_trace_line;

/* Most bytes of a line as text, unless names have a hundred bytes or more. */
#define DOMI_TRACE_LINE_BYTES 512u

typedef struct domi_trace {
    domi_trace_line *lines; /* ring of the last DOMUS_TESTKIT_TRACE_MAX lines */
    char *text;             /* room for the text of all lines */
    uint64_t count; /* number of lines since the kit was made, with those that were overwritten */
    domi_who *who;  /* table of the numbers of actors; NULL: no actor has a number yet */
    /* number of actors that run in the present step */
    uint32_t actor_count;
    /* the first of the actors that run in the present step */
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
} domi_trace;

/* A message that a probe has received. */
typedef struct domi_parcel domi_parcel;

struct domi_parcel {
    domi_parcel *next;      /* next parcel in the probe's list */
    const char *kind;       /* "notice", "ask", "reply", "failure" or "event" */
    const domus_type *type; /* type of the message; NULL: an ask of the probe failed with `error` */
    int error;              /* the negative errno of a failed ask */
    domus_address sender;   /* the sender of the message */
    /* the parcel owns what the payload owns, until an expect hands it to the test */
    bool owns;
    bool is_ask;     /* the message is an ask, which the test has to answer */
    domus_kept kept; /* the kept ask that the test has to answer, if the message is an ask */
    alignas(8) unsigned char payload[];
};

DOMI_FIFO(domi_parcels, domi_parcel, next);

struct domus_probe {
    domus_testkit *kit;    /* the kit that the probe belongs to */
    domus_probe *next;     /* next probe in the kit's list, made before this one */
    uint32_t number;       /* number of the probe in the trace */
    domus_address address; /* the address of the probe's actor */
    domi_parcels came;     /* parcels that were received and that the test has not expected yet */
    domi_parcels asks;     /* asks that the test has expected and has to answer */
    bool lost;             /* a received message was not kept, because there was no memory */
    domus_address sender;  /* sender of the message that the test expected last */
};

struct domus_testkit {
    /* must be the first field, because a pointer to it is cast to the kit */
    domi_simulator simulator;
    domus_system *system;     /* the system under test */
    domi_kit_thread *threads; /* state of each simulated thread */
    domi_kit_runner *runners; /* the runners of all pools; NULL: no pool is configured */
    uint32_t runner_count;    /* number of entries of `runners` */
    domi_random random;       /* source of the random choice of the next step's thread */
    /* index of the thread or runner that is held back while others can take a step */
    uint32_t lagging;
    uint32_t lag_steps;  /* number of further steps for which `lagging` is held back */
    uint32_t left_loops; /* number of threads that have left their loops */
    /* number of steps since time moved or domi_testkit_run_until() was called */
    uint32_t steps_here;
    uint64_t steps;                      /* number of steps since the kit was made */
    bool stepping;                       /* a step is being taken, so a handler may be running */
    domi_trace trace;                    /* trace of the last steps, for the report of a failure */
    domus_probe *probes;                 /* list of the probes, the newest first */
    uint32_t probe_count;                /* number of probes made so far */
    domi_net *net;                       /* network of the system and of all peers */
    domus_peer *peers;                   /* list of the peers, the newest first */
    uint32_t peer_count;                 /* number of peers made so far */
    domus_peer_listener *listeners;      /* list of the listeners, the newest first */
    domus_datagram_peer *datagram_peers; /* list of the datagram peers, the newest first */
    char error[DOMUS_TESTKIT_TEXT_MAX];  /* text of the kit's error, NUL-terminated */
};

#endif
