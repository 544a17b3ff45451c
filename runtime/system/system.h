/* The inside of a system holds its threads, and everything that they share with each other and with
 * the outside. */
#ifndef DOMI_RUNTIME_SYSTEM_SYSTEM_H
#define DOMI_RUNTIME_SYSTEM_SYSTEM_H

#include "base/check.h"
#include "house/directory/grain.h"
#include "house/directory/group.h"
#include "house/directory/name_table.h"
#include "house/directory/remote.h"
#include "house/directory/router.h"
#include "house/family/processes.h"
#include "house/message/letters.h"
#include "io/resources/peers.h"
#include "runtime/os/cpus.h"
#include "runtime/os/fork.h"
#include "runtime/os/workers.h"
#include "runtime/system/figures.h"
#include "runtime/system/levels.h"
#include "runtime/system/live.h"
#include "runtime/system/stall_history.h"
#include "runtime/system/thread.h"

#include <domus/entry.h>
#include <domus/system.h>

#define DOMI_LISTENERS_MAX 64u /* the most listeners of a system */
#define DOMI_LISTENING     (UINT32_C(1) << 16)
/* The most mistakes of functions that are logged; further ones are only counted. */
#define DOMI_MISTAKES_TOLD 64u

typedef enum domi_stage {
    DOMI_STAGE_NEW,
    DOMI_STAGE_RUNNING,
    DOMI_STAGE_DRAINING, /* foreign threads may not spawn any more */
    DOMI_STAGE_ENDING,   /* foreign threads may not send any more, either */
    DOMI_STAGE_STOPPED,
} domi_stage;

/* A simulator stands in for threads, rings and the clock. The maker of such a system (the test kit)
 * takes the steps of its threads, all in one OS thread and on a virtual clock. Stopping such a
 * system takes steps, too. */
typedef struct domi_simulator domi_simulator;

struct domi_simulator {
    const domi_backend *backend;            /* the backend of the test kit */
    uint64_t start_ns;                      /* the time on the virtual clock at the start */
    const domi_runtime_hooks *thread_hooks; /* the hooks of the managers of its threads */
    /* Take steps until `is_done`. If there is nothing to do, time goes on to the next timer,
     * but at most to `until_ns`. Returns false if `is_done` was not true by then, or after
     * too many steps. */
    bool (*wait)(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                 uint64_t until_ns);
};

/* The channels and connections that were ended while they owed bytes. */
typedef struct domi_cut {
    uint64_t channels; /* number of channels and connections */
    uint64_t bytes;    /* number of bytes that these channels owed */
} domi_cut;

typedef struct domi_asking domi_asking;

/* The backtraces that were taken in the present second. */
typedef struct domi_stall_bound {
    uint64_t second; /* the second of the newest backtrace */
    uint32_t count;  /* number of backtraces in the second `second` */
} domi_stall_bound;

/* The monitor's thread (monitor.h). */
typedef enum domi_monitor_word {
    DOMI_MONITOR_AWAKE,
    DOMI_MONITOR_ASLEEP, /* the monitor sleeps until it is woken */
    DOMI_MONITOR_ENDING,
} domi_monitor_word;

struct domus_system;

/* A look at a part of the system that the monitor does not know (the pools). The monitor's thread
 * calls these functions. */
typedef struct domi_monitor_watch {
    uint64_t (*look)(struct domus_system *system); /* returns the nanoseconds until the next look */
    bool (*is_awake)(const struct domus_system *system); /* true: the monitor may not sleep */
} domi_monitor_watch;

typedef struct domi_monitor {
    /* a domi_monitor_word; the monitor sleeps on this word */
    alignas(DOMI_LINES) _Atomic uint32_t word;
    alignas(DOMI_LINES) domi_counter looks;
    domi_counter cpu_clock;  /* the clockid_t of the monitor's CPU clock */
    uint64_t lively_ns;      /* when a thread was last seen at work */
    uint64_t works;          /* the sum of runs and spawns of all threads at the last look */
    domi_stall_bound traces; /* bounds the backtraces in a second */
    /* time of the last look at what runs (run_time.h); 0: none since the monitor slept */
    uint64_t looked_ns;
    uint64_t look_ns;                /* time at which the next look of `looked_ns` is due */
    domi_random chance;              /* draws the random time between two looks */
    uint64_t file_ns;                /* when profile.stallFile was written last; 0: never */
    const domi_monitor_watch *pools; /* looks after the runners of pools; NULL: there are none */
    bool started;                    /* the monitor's thread was made and not joined */
    pthread_t pthread;               /* the monitor's thread */
} domi_monitor;

struct domus_system {
    /* name of the backend of all threads; NULL: none was chosen yet */
    const char *backend_name;
    char backend_why[256]; /* why io.backend: auto chose epoll; "": epoll was not chosen so */
    /* the configuration that the system was made with, constant; the system owns a copy of the
     * texts */
    domus_config config;
    domi_live live; /* the values of live keys that hold now */
    /* what stands in for threads and clock; NULL: the threads are real */
    domi_simulator *simulator;
    domus_listener_config listeners[DOMI_LISTENERS_MAX]; /* the elements of `config.listeners` */
    /* settings for the channels of each listener; not counted */
    domi_channel_settings listener_settings[DOMI_LISTENERS_MAX];
    bool served[DOMI_LISTENERS_MAX]; /* whether the listener of that index has a server */
    /* 0 until the listener is served, then DOMI_LISTENING with the port (0: a Unix socket). Release
     * and acquire: a thread that reads a number also sees `passed_at`. */
    _Atomic uint32_t listening[DOMI_LISTENERS_MAX];
    /* addresses of listening sockets that were passed to the process; NULL: as configured. Written
     * before `listening` of the same index, and constant from then on. */
    char *passed_at[DOMI_LISTENERS_MAX];
    /* acceptors of served listeners that are not mounted yet (domi_acceptor.held) */
    struct domi_acceptor *unmounted[DOMI_LISTENERS_MAX];
    domi_cpus cpus;   /* CPUs that the process may use */
    domi_clock clock; /* the clock that all threads read */
    /* changed under outside_mutex, because foreign threads read it when they enter */
    domi_stage stage;
    uint32_t count;                         /* threads of the loop */
    domi_thread *threads;                   /* the loop's threads */
    size_t threads_bytes;                   /* bytes mapped for `threads` */
    const domi_runtime_hooks *thread_hooks; /* the hooks of the managers of these threads */
    /* all managers: first those of the threads, then the outside's, then those of
     * detached actors */
    domi_manager **managers;
    domi_groups groups;         /* the table of groups */
    domi_routers routers;       /* all routers */
    domi_remotes remotes;       /* the addresses of remote actors */
    domi_processes processes;   /* the processes that live */
    domi_behaviours behaviours; /* the behaviours that have a number */
    domus_entry *entries;       /* entry points (runtime/outside/entry.c); constant once started */
    uint32_t entries_count;     /* entries of `entries` */
    domi_grains grains;         /* the kinds of grains */
    domi_peers peers;           /* how many connections each peer address has */

    _Atomic uint32_t profile_level;   /* the domus_profile_level that threads are to follow */
    domi_monitor monitor;             /* looks at the threads for stalls (monitor.h) */
    domi_stall_history stall_history; /* the last stalls that the monitor has found */
    domi_figures figures;             /* tables of libraries and of the program */

    /* The fields up to `start_text` are orders to the threads and their reports. They are under
     * `mutex`, except `orders`, which is atomic. */
    alignas(64) _Atomic uint32_t orders; /* the orders that threads have to follow (orders.h) */
    alignas(64) pthread_mutex_t mutex;
    pthread_cond_t changed; /* signalled when `running`, `ended` or an order has changed */
    uint32_t running;       /* threads whose ring is enabled */
    uint32_t ended;         /* threads that have left their loop */
    bool asked_to_stop;     /* domus_quit() was called, or a ring has failed */
    /* the first negative errno with which a thread failed to start; 0: none failed */
    int start_error;
    char start_text[256]; /* why the start has failed, NUL-terminated */

    /* The sleeper that was woken to steal and has not looked yet, as its index + 1; 0: none. */
    alignas(64) _Atomic uint32_t waking;

    /* Foreign threads share the manager `outside`, and use it one at a time, under
     * `outside_mutex`. */
    pthread_mutex_t outside_mutex;
    domi_manager outside; /* the manager that foreign threads share */
    /* the index of the thread that gets the next spawn from outside; under outside_mutex */
    uint32_t next_thread;

    domus_address asker;        /* the actor in whose name foreign threads ask (outside_ask.c) */
    domi_asking *askings;       /* asks of foreign threads that wait for an answer */
    domi_asking *leader;        /* the ask whose thread sleeps on the outside's park word */
    uint32_t askings_count;     /* foreign threads that ask and have not left */
    pthread_cond_t nobody_asks; /* signalled when `askings_count` has become 0 */
    domus_address *inspectors;  /* one actor on each thread, made when a dump is first asked for */

    domi_workers *workers;    /* the helper threads for blocking work */
    struct domi_files *files; /* the state shared by all files of the system (runtime/files/) */
    /* looks names up (runtime/outside/resolver.h) */
    struct domi_resolver *resolver;
    domi_names names;       /* the registry of names */
    domi_letters letters;   /* the subscribers to dead letters */
    domus_hooks hooks;      /* functions of the user, such as allocator and log */
    domi_pressure pressure; /* how short memory is */
    /* Numbers of the mistakes that were logged (log.c); 0: a free place. */
    _Atomic uint64_t mistakes_told[DOMI_MISTAKES_TOLD];
    _Atomic uint32_t log_level; /* a domus_log_level: less severe lines are not logged */
    /* bounds the log lines that are not written by a thread of the system */
    domi_log_bound log_bound;
    /* domi_fork_number() of the process that made or started the system */
    _Atomic uint32_t started_under;

    /* The threads of detached actors (detached.h); under `mutex`. */
    cpu_set_t all_cpus;              /* CPUs on which the thread that made the system might run */
    struct domi_detached **detached; /* objects of detached actors, by index */
    uint32_t detached_count;         /* entries of `detached` */
    uint32_t detached_left;          /* threads of detached actors that have left their loops */
    bool detached_closed;            /* no detached actor may begin any more */

    /* Foreign threads that are actors (seat.h). */
    alignas(64) _Atomic uint32_t seats_calls; /* a word that grows when the caretaker has to look */
    pthread_t seats_pthread;                  /* the caretaker's thread */
    bool seats_cared; /* the caretaker's thread was made and not joined; under `mutex` */

    domus_pool_config pool_configs[DOMUS_POOLS_MAX]; /* the memory to which `config.pools` points */
    /* the pools of runners (runtime/pools/); constant once the system has started */
    struct domus_pool **pools;
    uint32_t pool_count;     /* entries of `pools` */
    uint32_t runners_begun;  /* threads of runners that were made; under `mutex` */
    uint32_t runners_left;   /* the number of runners that have left their loops; under `mutex` */
    uint32_t managers_count; /* entries of `managers` */
    uint32_t pools_from;     /* the index in `managers` of the first one that belongs to a pool */

    char error[256]; /* the text of domus_system_error(), NUL-terminated */
    int failed;      /* the negative errno with which a ring has failed; 0: none; under `mutex` */
    char failed_text[256]; /* why the ring has failed, NUL-terminated */
    char left[2048];       /* lines about actors that did not stop in time; under `mutex` */
    uint32_t left_count;   /* actors that did not stop in time, also those without a line */
    uint32_t left_logged;  /* bytes of `left` that were logged already */
    domi_cut cut_before;   /* channels and bytes that had been cut when the drain began */
    domi_cut cut_logged;   /* channels and bytes that had been cut when that was last logged */
};

/* True if this process is a child that was forked after the system was made or started. Then the
 * system's threads do not exist here. */
static inline bool domi_system_is_forked(const domus_system *system)
{
    /* Relaxed: the number changes only in a forked child, before it has a second thread. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->started_under,
                                memory_order_relaxed) != domi_fork_number();
}

/* End the process if it is a forked child. This is checked before a ring is entered, because a
 * handler that has forked and returns in the child would otherwise go on with the parent's ring. */
static inline void domi_system_check_not_forked(const domus_system *system)
{
    DOMI_CHECK(!domi_system_is_forked(system));
}

/* Returns the step of a stop that is wanted. Any thread may call this. */
static inline domi_stop_step domi_system_read_step(const domus_system *system, memory_order order)
{
    return domi_orders_step(
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->orders, order));
}

/* Returns whether the system has orders that the thread has not followed. `order` is seq_cst in the
 * second look of a park, else relaxed. Called by the thread itself. */
static inline bool domi_thread_has_to_follow(const domi_thread *thread, memory_order order)
{
    return atomic_load_explicit(&thread->system->orders, order) !=
           atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->orders,
                                memory_order_relaxed);
}

#endif
