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

#define DOMI_LISTENERS_MAX 64u /* most listeners that a system may have */
#define DOMI_LISTENING     (UINT32_C(1) << 16)
/* Most mistakes of user functions that are logged; further ones are only counted. */
#define DOMI_MISTAKES_TOLD 64u

typedef enum domi_stage {
    DOMI_STAGE_NEW,
    DOMI_STAGE_RUNNING,
    DOMI_STAGE_DRAINING, /* stage of a system: foreign threads may not spawn any more */
    DOMI_STAGE_ENDING,   /* stage of a system: foreign threads may not send any more, either */
    DOMI_STAGE_STOPPED,
} domi_stage;

/* A simulator stands in for the threads, rings and clock of a system. The maker of such a system
 * (the test kit) takes the steps of its threads, all in one OS thread and on a virtual clock.
 * Stopping such a system takes steps, too. */
typedef struct domi_simulator domi_simulator;

struct domi_simulator {
    const domi_backend *backend; /* backend that simulated threads use */
    /* time on the virtual clock at which the simulation starts */
    uint64_t start_ns;
    /* functions of runtime that the managers of simulated threads call */
    const domi_runtime_hooks *thread_hooks;
    /* Take steps until `is_done` is true. If there is nothing to do, time goes on to the next
     * timer, but at most to `until_ns`. Returns false if `is_done` was not true by then, or after
     * too many steps. */
    bool (*wait)(domi_simulator *simulator, bool (*is_done)(const domus_system *system),
                 uint64_t until_ns);
};

/* How many channels and connections the library has ended while they owed bytes, and how many bytes
 * these were. */
typedef struct domi_cut {
    uint64_t channels; /* number of channels and connections that were ended so */
    uint64_t bytes;    /* number of bytes that those channels and connections owed */
} domi_cut;

typedef struct domi_asking domi_asking;

/* The number of backtraces that were taken in the present second, which is limited. */
typedef struct domi_stall_bound {
    uint64_t second; /* second in which the newest backtrace was taken */
    uint32_t count;  /* number of backtraces that were taken in that second */
} domi_stall_bound;

/* The state of the monitor's thread (monitor.h), which is its word. */
typedef enum domi_monitor_word {
    DOMI_MONITOR_AWAKE,
    DOMI_MONITOR_ASLEEP, /* the monitor's thread sleeps until it is woken */
    DOMI_MONITOR_ENDING,
} domi_monitor_word;

struct domus_system;

/* A watch of something that the monitor itself does not know (the pools). The monitor's thread
 * calls these functions. */
typedef struct domi_monitor_watch {
    /* takes one look, and returns the nanoseconds until the next one */
    uint64_t (*look)(struct domus_system *system);
    /* function that returns true while the monitor may not sleep, because something goes on */
    bool (*is_awake)(const struct domus_system *system);
} domi_monitor_watch;

typedef struct domi_monitor {
    /* word of the monitor, a domi_monitor_word, on which the monitor sleeps */
    alignas(DOMI_LINES) _Atomic uint32_t word;
    alignas(DOMI_LINES) domi_counter looks;
    domi_counter cpu_clock; /* clockid_t of the monitor's CPU clock */
    uint64_t lively_ns;     /* time at which the monitor last saw a thread at work */
    /* sum of the runs and spawns of all threads at the monitor's last look */
    uint64_t works;
    domi_stall_bound traces; /* limits how many backtraces are taken in a second */
    /* time of the last look at what runs (run_time.h); 0: none was taken since the monitor slept */
    uint64_t looked_ns;
    /* time at which the next look at what runs (run_time.h) is due */
    uint64_t look_ns;
    domi_random chance; /* draws the random time between two looks at what runs */
    /* time at which the file profile.stallFile was written last; 0: never */
    uint64_t file_ns;
    const domi_monitor_watch *pools; /* watches the runners of pools; NULL: there are no pools */
    bool started;                    /* true: the monitor's thread was made and not joined yet */
    pthread_t pthread;               /* handle of the monitor's thread */
} domi_monitor;

struct domus_system {
    /* name of the backend that all threads have; NULL: none was chosen yet */
    const char *backend_name;
    char backend_why[256]; /* why epoll was chosen for io.backend: auto; "": it was not */
    /* configuration with which the system was made, constant; the system owns a copy of its
     * texts */
    domus_config config;
    /* configuration that holds now, with the live keys that were changed (live.h) */
    domi_live live;
    /* simulator that stands in for threads and clock; NULL: the threads are real */
    domi_simulator *simulator;
    /* elements of `config.listeners`, which are constant */
    domus_listener_config listeners[DOMI_LISTENERS_MAX];
    /* settings of the channels of each listener, whose users are not counted */
    domi_channel_settings listener_settings[DOMI_LISTENERS_MAX];
    bool served[DOMI_LISTENERS_MAX]; /* true: the listener with that index has a server */
    /* for each listener: 0 until it is served, then DOMI_LISTENING with the port (0: a Unix
     * socket). Release and acquire: a thread that reads a port also sees `passed_at`. */
    _Atomic uint32_t listening[DOMI_LISTENERS_MAX];
    /* for each listener: address of the listening socket that was passed to the process; NULL: the
     * address is as configured. Written before `listening` of the same index, and constant from
     * then on. */
    char *passed_at[DOMI_LISTENERS_MAX];
    /* acceptors of served listeners that are not mounted yet (domi_acceptor.held) */
    struct domi_acceptor *unmounted[DOMI_LISTENERS_MAX];
    /* CPUs to which the system pins its threads, and how many threads that makes */
    domi_cpus cpus;
    domi_clock clock; /* clock of the system, which all threads read */
    /* stage of the system; changed under outside_mutex, because foreign threads read it when they
     * enter */
    domi_stage stage;
    uint32_t count;       /* number of threads of the loop */
    domi_thread *threads; /* array of the threads of the loop */
    size_t threads_bytes; /* number of bytes that are mapped for `threads` */
    /* functions of runtime that the managers of these threads call */
    const domi_runtime_hooks *thread_hooks;
    /* managers of the system by index: those of the threads, the outside's, those of detached
     * actors and seats, and from `pools_from` on those of pools */
    domi_manager **managers;
    domi_groups groups;         /* groups of the system */
    domi_routers routers;       /* routers of the system */
    domi_remotes remotes;       /* addresses of remote actors that the system has made */
    domi_processes processes;   /* processes (domus/process.h) that live in the system */
    domi_behaviours behaviours; /* behaviours of the system that have a number */
    /* entry points of the system (runtime/outside/entry.c); constant once the system has started */
    domus_entry *entries;
    uint32_t entries_count; /* number of entry points in `entries` */
    domi_grains grains;     /* kinds of grains of the system */
    domi_peers peers;       /* number of connections with each peer address */

    /* level of the profile that threads have to apply, a domus_profile_level */
    _Atomic uint32_t profile_level;
    /* monitor of the system, which looks at the threads for stalls (monitor.h) */
    domi_monitor monitor;
    domi_stall_history stall_history; /* newest stalls that the monitor has found */
    domi_figures figures;             /* tables of figures that libraries and the program show */

    /* The fields from this one to `start_text` are orders to the threads, and what the threads
     * report. They are under `mutex`, except `orders`, which is atomic. */

    /* orders of the system, which its threads have to follow (orders.h) */
    alignas(64) _Atomic uint32_t orders;
    alignas(64) pthread_mutex_t mutex;
    /* signalled when `running`, `ended` or an order to the threads has changed */
    pthread_cond_t changed;
    uint32_t running; /* number of threads whose ring has started */
    uint32_t ended;   /* number of threads that have left their loop */
    /* true: domus_quit() was called, or a ring has failed, so the program is to stop the system */
    bool asked_to_stop;
    /* first negative errno with which a thread failed to start; 0: none failed */
    int start_error;
    char start_text[256]; /* text that says why a thread failed to start, NUL-terminated */

    /* The index, plus 1, of the thread that was woken to steal and has not looked for houses yet;
     * 0: none. */
    alignas(64) _Atomic uint32_t waking;

    /* Foreign threads share the manager `outside`, and use it one at a time, while they have this
     * mutex. */
    pthread_mutex_t outside_mutex;
    domi_manager outside; /* manager that foreign threads share (runtime/outside/visit.h) */
    /* index of the thread that gets the next actor which is spawned from outside; under
     * outside_mutex */
    uint32_t next_thread;

    /* address of the actor in whose name foreign threads ask (outside_ask.c) */
    domus_address asker;
    domi_asking *askings; /* asks of foreign threads that are under way */
    /* ask of the foreign thread that leads: it sleeps on the outside's park word */
    domi_asking *leader;
    uint32_t askings_count; /* number of foreign threads that ask and have not left yet */
    /* signalled when `askings_count` has become 0, so that the system may end */
    pthread_cond_t nobody_asks;
    /* addresses of the inspectors, one on each thread, which are spawned with the first dump
     * (dump.c) */
    domus_address *inspectors;

    domi_workers *workers;    /* helper threads for blocking work; NULL: a simulation has none */
    struct domi_files *files; /* state that all open files of the system share (runtime/files/) */
    /* resolver of the system, which looks names up (runtime/outside/resolver.h) */
    struct domi_resolver *resolver;
    domi_names names;     /* names under which actors of the system are registered */
    domi_letters letters; /* subscribers to dead letters of the system */
    /* functions that the program has given to the system, such as allocator and log */
    domus_hooks hooks;
    domi_pressure pressure; /* how short memory is, as measured (levels.h) */
    /* Numbers of the mistakes of user functions that were logged (log.c); 0: a free place. */
    _Atomic uint64_t mistakes_told[DOMI_MISTAKES_TOLD];
    /* level of the log, a domus_log_level: less severe lines are not logged */
    _Atomic uint32_t log_level;
    /* limits the log lines of threads that are not the system's */
    domi_log_bound log_bound;
    /* fork number of the process (domi_fork_number_of_process()) that has made or started the
     * system */
    _Atomic uint32_t started_under;

    /* The threads of detached actors and the seats; the fields are under `mutex`. */
    /* CPUs on which the thread that made the system was allowed to run */
    cpu_set_t all_cpus;
    struct domi_detached **detached; /* detached threads and seats of the system, by index */
    uint32_t detached_count;         /* number of entries of `detached` */
    /* number of detached threads that have left their loops, and of closed seats */
    uint32_t detached_left;
    bool detached_closed; /* true: no detached actor may begin any more */

    /* The seats, on which foreign threads that are actors sit (seat.h). */

    /* counter that grows when the caretaker of seats has to look (seat.h); the caretaker sleeps on
     * it */
    alignas(64) _Atomic uint32_t seats_calls;
    pthread_t seats_pthread; /* handle of the caretaker's thread */
    bool seats_cared; /* true: the caretaker's thread was made and not joined yet; under `mutex` */

    domus_pool_config pool_configs[DOMUS_POOLS_MAX]; /* elements of `config.pools` */
    /* pools of runners of the system (runtime/pools/); constant once it has started */
    struct domus_pool **pools;
    uint32_t pool_count;     /* number of pools in `pools` */
    uint32_t runners_begun;  /* number of threads of runners that were made; under `mutex` */
    uint32_t runners_left;   /* number of runners that have left their loops; under `mutex` */
    uint32_t managers_count; /* number of entries of `managers` */
    uint32_t pools_from;     /* index in `managers` of the first manager that belongs to a pool */

    char error[256]; /* text that domus_system_error() returns, NUL-terminated */
    /* negative errno with which a thread's ring has failed; 0: none has; under `mutex` */
    int failed;
    char failed_text[256]; /* text that says why a thread's ring has failed, NUL-terminated */
    /* text of domus_system_left(): lines about actors that did not stop in time; under `mutex` */
    char left[2048];
    /* number of actors that did not stop in time, also of those without a line */
    uint32_t left_count;
    uint32_t left_logged; /* number of bytes of `left` that were logged already */
    domi_cut cut_before;  /* channels and bytes that the library had cut before the drain began */
    domi_cut cut_logged;  /* what had been cut (channels and bytes) when that was last logged */
};

/* True if this process is a child that was forked after the system was made or started. The
 * system's threads do not exist in such a child. */
static inline bool domi_system_is_forked(const domus_system *system)
{
    /* Relaxed: the fork number changes only in a forked child, before it has a second thread. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->started_under,
                                memory_order_relaxed) != domi_fork_number_of_process();
}

/* End the process with an error if it is a forked child. This is checked before a ring is entered,
 * because a handler that has forked and returns in the child would otherwise go on with the
 * parent's ring. */
static inline void domi_system_check_not_forked(const domus_system *system)
{
    DOMI_CHECK(!domi_system_is_forked(system));
}

/* Returns the step of a stop that the system wants its threads to begin. Any thread may call
 * this. */
static inline domi_stop_step domi_system_read_stop_step(const domus_system *system,
                                                        memory_order order)
{
    return domi_orders_get_stop_step(
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&system->orders, order));
}

/* Returns whether the system has orders that the thread has not followed. `order` is seq_cst in the
 * second look of a park, else relaxed. Called by the thread itself. */
static inline bool domi_thread_has_orders_to_follow(const domi_thread *thread, memory_order order)
{
    return atomic_load_explicit(&thread->system->orders, order) !=
           atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->orders,
                                memory_order_relaxed);
}

#endif
