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

/* The kind of a step that a simulated thread takes. */
typedef enum domi_step {
    DOMI_STEP_IO,
    DOMI_STEP_CHANNELS,
    DOMI_STEP_STATE,
    DOMI_STEP_LOAN, /* step: run a house that was stolen from another thread, and return it */
    /* step: sleep; the thread takes no step before it is woken or one of its timers is due */
    DOMI_STEP_SLEEP,
    /* step: end the actors of the thread, which has left its loop, once all threads have left
     * theirs */
    DOMI_STEP_END,
    DOMI_STEP_NONE,
} domi_step;

/* Number of counters of a thread whose growth a line of the trace shows. */
#define DOMI_TRACE_COUNTS 19u

typedef struct domi_kit_thread {
    domi_step next; /* kind of step that the simulated thread takes next */
    bool woken;     /* true: the thread was woken while it slept */
    /* true: the ring refused operations when the thread fell asleep, so the thread takes a step
     * again */
    bool refused;
    /* time at which the next timer of the thread is due while it sleeps; UINT64_MAX: never */
    uint64_t until_ns;
    uint64_t counts[DOMI_TRACE_COUNTS]; /* thread's counters as they were after its last step */
} domi_kit_thread;

/* A simulated runner of a pool (runners.c). */
typedef struct domi_kit_runner {
    domus_runner *runner;
    bool left;                          /* true: the simulated runner has left its loop */
    uint64_t counts[DOMI_TRACE_COUNTS]; /* runner's counters as they were after its last step */
} domi_kit_runner;

/* Most actors that a line of the trace names; further ones are only counted. */
#define DOMI_TRACE_ACTORS 4u

typedef struct domi_trace_actor {
    const domus_behaviour *behaviour; /* behaviour of the actor that a line of the trace names */
    /* number by which the trace calls the actor (domi_who_find_or_give_number_of_actor());
     * DOMI_WHO_UNKNOWN: it has none */
    uint32_t number;
} domi_trace_actor;

/* A line of the kit's trace, before it is written as text. */
typedef struct domi_trace_line {
    uint64_t step;   /* number of the step that the line is about */
    uint64_t now_ns; /* kit's time at the step that the line is about */
    /* name of the step (a phase), or kind of the message that a probe has received */
    const char *what;
    bool of_probe;    /* true: the line is about a probe, and not about a thread */
    const char *pool; /* name of the pool if the line is about a runner; NULL: it is not */
    /* true: the line is about a connection or a datagram, whose number is `number` */
    bool of_net;
    bool of_datagram; /* true: the line is about a datagram */
    /* side of the connection that the line's event reaches; 1 is the side that has accepted it */
    uint8_t side;
    uint64_t amount; /* number of bytes that the line is about, or a port; 0: neither */
    /* number of the thread, probe, connection or datagram that the line is about */
    uint32_t number;
    /* type of the message that a probe has received; NULL: an ask of it has failed with `error` */
    const domus_type *type;
    int error; /* negative errno with which an ask of a probe has failed */
    /* number of actors that ran in the line's step, which may exceed DOMI_TRACE_ACTORS */
    uint32_t actor_count;
    /* first actors of those that ran in the line's step */
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
    /* growth of each counter of the thread in the line's step */
    uint32_t counts[DOMI_TRACE_COUNTS];
} domi_trace_line;

/* Most bytes of a trace's line as text, unless names have a hundred bytes or more. */
#define DOMI_TRACE_LINE_BYTES 512u

typedef struct domi_trace {
    domi_trace_line *lines; /* ring of the newest DOMUS_TESTKIT_TRACE_MAX lines of the trace */
    char *text;             /* memory for the text of all lines of the trace */
    /* number of lines that were added since the kit was made, also of those that were
     * overwritten */
    uint64_t count;
    /* table of the numbers by which the trace calls actors; NULL: no actor has one yet */
    domi_who *who;
    /* number of actors that run in the step that is taken now */
    uint32_t actor_count;
    /* first actors of those that run in the present step */
    domi_trace_actor actors[DOMI_TRACE_ACTORS];
} domi_trace;

/* A parcel: a message that a probe has received, and that it keeps for the test. */
typedef struct domi_parcel domi_parcel;

struct domi_parcel {
    domi_parcel *next; /* next parcel in the probe's list of parcels */
    /* kind of the parcel's message: "notice", "ask", "reply", "failure" or "event" */
    const char *kind;
    /* type of the parcel's message; NULL: an ask of the probe has failed with `error` */
    const domus_type *type;
    int error;            /* negative errno with which an ask of the probe has failed */
    domus_address sender; /* sender of the parcel's message */
    /* true: the parcel owns what its payload owns, until an expect hands that to the test */
    bool owns;
    bool is_ask;     /* true: the parcel's message is an ask, which the test has to answer */
    domus_kept kept; /* ask of the parcel as it was kept, for the test's answer */
    alignas(8) unsigned char payload[];
};

DOMI_FIFO(domi_parcels, domi_parcel, next);

struct domus_probe {
    domus_testkit *kit;    /* kit to which the probe belongs */
    domus_probe *next;     /* next probe in the kit's list, which was made before this one */
    uint32_t number;       /* number by which the trace calls the probe */
    domus_address address; /* address of the probe's actor */
    domi_parcels came;     /* parcels of the probe that the test has not expected yet */
    domi_parcels asks;     /* asks to the probe that the test has expected and has to answer */
    /* true: a message to the probe was not kept, because there was no memory */
    bool lost;
    domus_address sender; /* sender of the message that the test has expected last */
};

struct domus_testkit {
    /* simulator by which the system finds the kit; must be the first field, because a pointer to it
     * is cast to the kit */
    domi_simulator simulator;
    domus_system *system;     /* system that the kit simulates and the test tests */
    domi_kit_thread *threads; /* state of each simulated thread, by its index */
    domi_kit_runner *runners; /* simulated runners of all pools; NULL: no pool is configured */
    uint32_t runner_count;    /* number of simulated runners in `runners` */
    domi_random random;       /* source of the draw of the thread that takes the next step */
    /* index of the thread or runner that is held back while others can take a step */
    uint32_t lagging;
    uint32_t lag_steps;  /* number of further steps for which `lagging` is held back */
    uint32_t left_loops; /* number of simulated threads that have left their loops */
    /* number of steps since time was moved or domi_testkit_run_until() was called */
    uint32_t steps_here;
    uint64_t steps; /* number of steps that were taken since the kit was made */
    /* true: a step is being taken, so a handler may be running */
    bool stepping;
    /* trace of the newest steps, which tells what led to a failure */
    domi_trace trace;
    domus_probe *probes;                 /* list of the kit's probes, the newest first */
    uint32_t probe_count;                /* number of probes that were made in the kit so far */
    domi_net *net;                       /* simulated network of the system and of all peers */
    domus_peer *peers;                   /* list of the kit's peers, the newest first */
    uint32_t peer_count;                 /* number of peers that were made in the kit so far */
    domus_peer_listener *listeners;      /* list of the listeners of the test, the newest first */
    domus_datagram_peer *datagram_peers; /* list of the kit's datagram peers, the newest first */
    /* text that says why a function of the kit has failed, NUL-terminated */
    char error[DOMUS_TESTKIT_TEXT_MAX];
};

#endif
