/* A system inside: its threads, and what they and the outside share. */
#ifndef DOMI_RUNTIME_SYSTEM_SYSTEM_H
#define DOMI_RUNTIME_SYSTEM_SYSTEM_H

#include "base/check.h"
#include "house/directory/group.h"
#include "house/directory/letters.h"
#include "house/directory/name_table.h"
#include "house/directory/router.h"
#include "io/resources/peers.h"
#include "runtime/os/cpus.h"
#include "runtime/os/fork.h"
#include "runtime/os/workers.h"
#include "runtime/system/monitor.h"
#include "runtime/system/pressure.h"
#include "runtime/system/thread.h"

#include <domus/system.h>

#define DOMI_LISTENERS_MAX 64u

typedef enum domi_stage {
    DOMI_STAGE_NEW,
    DOMI_STAGE_RUNNING,
    DOMI_STAGE_DRAINING, /* nothing is spawned from outside any more */
    DOMI_STAGE_ENDING,   /* ... nor sent */
    DOMI_STAGE_STOPPED,
} domi_stage;

/* The twin of threads, rings and clock: who makes a system with one takes its threads' steps, all
 * in one OS thread and on a virtual clock (testkit.c). Stopping such a system takes steps too. */
typedef struct domi_simulator domi_simulator;

struct domi_simulator {
    const domi_backend *backend;
    uint64_t start_ns;                   /* of the clock */
    void (*wake)(domi_manager *manager); /* it was asleep, and its park word is NOTIFIED now */
    /* Take steps until `is_done`; with nothing to do, time goes on to the next timer, at most to
     * `until_ns`. False when it was not done by then, or after too many steps. */
    bool (*wait)(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                 uint64_t until_ns);
};

/* Channels and connections that were ended while bytes were owed, and those bytes. */
typedef struct domi_cut {
    uint64_t channels;
    uint64_t bytes;
} domi_cut;

typedef struct domi_asking domi_asking;

struct domus_system {
    domus_config config;       /* with strings of its own */
    domi_simulator *simulator; /* NULL: real threads */
    domus_listener_config listeners[DOMI_LISTENERS_MAX];
    bool served[DOMI_LISTENERS_MAX];
    struct domi_acceptor
        *unmounted[DOMI_LISTENERS_MAX]; /* of served ones: see domi_acceptor.held */
    domi_cpus cpus;
    domi_clock clock;
    domi_stage stage; /* changed under outside_mutex: foreign threads may come at any time */
    uint32_t count;   /* of threads */
    domi_thread *threads;
    size_t threads_bytes;
    domi_manager **managers; /* the threads', and the outside's: it is the last */
    domi_groups groups;
    domi_routers routers;
    domi_peers peers; /* addresses that have connections */

    domi_monitor monitor;

    /* What threads are told, and what they tell: under `mutex` except `wanted`. */
    alignas(64) _Atomic uint32_t wanted; /* domi_wanted */
    alignas(64) pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t running;   /* threads whose ring is enabled */
    uint32_t ended;     /* threads that have left their loop */
    bool asked_to_stop; /* by domus_quit() */
    int start_error;
    char start_text[256];

    /* Index + 1 of the sleeper that was woken to steal and has not looked yet; 0: none. */
    alignas(64) _Atomic uint32_t waking;

    /* Foreign threads come one at a time: they share one manager. */
    pthread_mutex_t outside_mutex;
    domi_manager outside;
    uint32_t next_thread; /* for spawns from outside; under outside_mutex */

    domus_address asker;    /* the actor in whose name it asks (outside_ask.c) */
    domi_asking *askings;   /* those that wait for an answer */
    domi_asking *leader;    /* who of them sleeps on the outside's park word */
    uint32_t askings_count; /* of threads that have not left */
    pthread_cond_t nobody_asks;
    domus_address *inspectors; /* one on each thread once somebody has asked for a dump */

    domi_workers *workers; /* for blocking work */
    domi_names names;
    domi_letters letters;
    domus_hooks hooks;
    domi_pressure pressure;
    domi_log_bound log_bound;       /* of lines that no thread of ours writes */
    _Atomic uint32_t started_under; /* domi_fork_number() of who made or started it */

    /* Detached actors' threads (detached.h); under `mutex`. */
    cpu_set_t all_cpus; /* of who made the system */
    struct domi_detached **detached;
    uint32_t detached_count;
    uint32_t detached_left; /* that have left their loops */
    bool detached_closed;

    char error[256];
    int failed; /* a ring has, with this negative errno; 0: none; under `mutex` */
    char failed_text[256];
    char left[2048]; /* who had not stopped in time, and why; under `mutex` */
    uint32_t left_count;
    uint32_t left_logged; /* so much of `left` is in the log */
    domi_cut cut_before;  /* until the drain began */
    domi_cut cut_logged;  /* what was cut when that was last logged */
};

/* This process is a child that was forked since: its threads are not here. */
static inline bool domi_system_forked(const domus_system *system)
{
    /* Relaxed: a fork comes between them in any case. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->started_under,
                                memory_order_relaxed) != domi_fork_number();
}

/* Before a ring is entered: a handler that has forked and returned in the child would go on with
 * the parent's. */
static inline void domi_system_not_forked(const domus_system *system)
{
    DOMI_CHECK(!domi_system_forked(system));
}

/* The ring of `thread` has failed for good: log it, tell the program (domus_hooks.failed), and let
 * it stop the system. Only the first of several is told. */
void domi_system_fail(domus_system *system, uint32_t thread, int error);

/* Change the stage, while no foreign thread is inside. */
void domi_system_stage(domus_system *system, domi_stage stage);

/* Let the threads leave their loops, and join them, by `until_ns`. False: one has not come. */
bool domi_system_end(domus_system *system, uint64_t until_ns);

/* Note who is left on a thread whose loop has ended, before its actors are ended. */
void domi_system_note_left(domus_system *system, domi_manager *manager);

/* As domus_system_new(); with a simulator (which stays the caller's) it has config.system.threads
 * threads, which must not be 0, and domus_system_start() makes no OS thread. */
int domi_system_new(const domus_config *config, domi_simulator *simulator, char *error,
                    size_t error_size, domus_system **ret_system);

/* Tell every thread what is wanted, and wake those that sleep. */
void domi_system_want(domus_system *system, domi_wanted wanted);

/* So many until now, on all threads. */
domi_cut domi_system_cut(const domus_system *system);

/* Connections that are accepted and not closed, on all threads. Who sees none sees all that was
 * counted of those that there were. */
uint64_t domi_system_connections(const domus_system *system);

#endif
