/* A look at a program: the figures of one moment, from which the doctor judges, and their names.
 *
 * The port takes looks of its own program (protocols/observe/looking.c), and the program `domus`
 * reads them from the JSON of /profile?machine=1 (tools/domus/look.c). Both use the tables of names
 * here, so that both see the same. Nothing in this folder uses a library of this tree, because its
 * files are also a part of the program `domus`.
 *
 * Each group of figures is a structure of uint64_t only. Times are in ns and sizes in bytes. A
 * figure that is unknown is 0. Thread-safety: whoever has the look. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_LOOK_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bytes of a name in a look, with its zero byte; longer names are cut */
#define DOMI_LOOK_NAME 64u
/* bytes of a sentence in a look, with its zero byte; longer sentences are cut */
#define DOMI_LOOK_REASON 256u

/* The counters of a thread, a runner or the outside in a look, with the names of domus_profile. */
#define DOMI_LOOK_COUNTERS(X)                                                                      \
    X(wall_ns)                                                                                     \
    X(iterations)                                                                                  \
    X(completions)                                                                                 \
    X(runs)                                                                                        \
    X(reads)                                                                                       \
    X(sends)                                                                                       \
    X(sent_bytes)                                                                                  \
    X(failures)                                                                                    \
    X(deadline_expiries)                                                                           \
    X(deadline_overrun_ns)                                                                         \
    X(wakeups_received)                                                                            \
    X(wakeups_empty)                                                                               \
    X(dead_letters)                                                                                \
    X(refusals)                                                                                    \
    X(accepted)                                                                                    \
    X(accept_pauses)                                                                               \
    X(channels_silent)                                                                             \
    X(receivers_starved)                                                                           \
    X(asks)                                                                                        \
    X(asks_expired)                                                                                \
    X(cancels)                                                                                     \
    X(circles)                                                                                     \
    X(restarts)                                                                                    \
    X(log_lines_dropped)                                                                           \
    X(steals)                                                                                      \
    X(busy)                                                                                        \
    X(refused_by_address)                                                                          \
    X(full_spells)                                                                                 \
    X(accept_spells)                                                                               \
    X(channels_refused)                                                                            \
    X(channels_shed)                                                                               \
    X(connects)                                                                                    \
    X(connects_failed)                                                                             \
    X(datagrams_dropped)                                                                           \
    X(datagrams_lost)                                                                              \
    X(channels_busy)                                                                               \
    X(queued_bytes)                                                                                \
    X(ready_ns)                                                                                    \
    X(io_behind_ns)                                                                                \
    X(conversations_full)                                                                          \
    X(waits_lost)                                                                                  \
    X(results_unknown)                                                                             \
    X(timers_refused)                                                                              \
    X(thread_max_refusals)                                                                         \
    X(stalls)                                                                                      \
    X(stalled_ns)

/* The phases of a thread in a look, with the names of domus_phase_name(). */
#define DOMI_LOOK_PHASES(X)                                                                        \
    X(submit) X(sleep) X(completions) X(channels) X(events) X(state) X(other)

/* figures of a thread in a look: members of domus_thread_times */
#define DOMI_LOOK_TIMES(X) X(cpu_ns) X(waiting_ns)

/* figures of a runner in a look: members of domus_runner_profile */
#define DOMI_LOOK_RUNNERS(X) X(wall_ns) X(run_ns) X(turns) X(messages)

/* figures of a behaviour in a look: members of domus_behaviour_profile */
#define DOMI_LOOK_BEHAVIOURS(X)                                                                    \
    X(runs) X(run_ns) X(messages) X(waits) X(wait_ns) X(failures) X(alive)

/* figures of a listener in a look: members of domus_listener_profile */
#define DOMI_LOOK_LISTENERS(X) X(accepted) X(refused) X(open)

/* figures of memory in a look: members of domus_memory */
#define DOMI_LOOK_MEMORY(X)                                                                        \
    X(level)                                                                                       \
    X(used_bytes)                                                                                  \
    X(limit_bytes)                                                                                 \
    X(highs) X(criticals) X(fulls) X(own_level) X(own_bytes) X(foreign_bytes) X(budget_bytes)

/* figures of helper threads and detached actors in a look: members of domus_usage */
#define DOMI_LOOK_USAGE(X)                                                                         \
    X(helpers) X(helpers_busy) X(jobs_queued) X(detached_threads) X(detached_busy)

/* figures of the machine in a look: members of domus_machine, without its texts */
#define DOMI_LOOK_MACHINE(X)                                                                       \
    X(cpus)                                                                                        \
    X(cpus_online)                                                                                 \
    X(quota)                                                                                       \
    X(throttled_ns)                                                                                \
    X(throttles)                                                                                   \
    X(periods)                                                                                     \
    X(stolen_ns)                                                                                   \
    X(idle_ns) X(cpu_ns) X(files_open) X(files_max) X(names_looked_up) X(names_queued)

/* The figure io_ratio of a look if scheduler.ioRatio is `auto`. */
#define DOMI_LOOK_IO_RATIO_AUTO UINT32_MAX

/* Keys of the configuration, with their values at the look: a member, and the path of its key.
 * Booleans are 0 and 1, levels are numbered as in their enums. listener_requests is the smallest
 * number of requests that a listener sets for itself; 0: none does. `delays`, which is no key, is 1
 * if channel.socket.noDelay is false, 2 if only a listener has it so, and otherwise or if unknown
 * 0. */
#define DOMI_LOOK_SETTINGS(X)                                                                      \
    X(io_ratio, "scheduler.ioRatio")                                                               \
    X(min_budget_ns, "scheduler.minBudget")                                                        \
    X(min_budget_busy_ns, "scheduler.minBudgetBusy")                                               \
    X(max_budget_ns, "scheduler.maxBudget")                                                        \
    X(wait_max_ns, "scheduler.waitMax")                                                            \
    X(messages_per_run, "scheduler.maxMessagesPerRun")                                             \
    X(mailbox_max, "scheduler.mailboxMax")                                                         \
    X(conversations_max, "scheduler.conversationsMax")                                             \
    X(timers_max, "scheduler.timersMax")                                                           \
    X(steal_enabled, "scheduler.steal.enabled")                                                    \
    X(steal_floor, "scheduler.steal.floor")                                                        \
    X(steal_aggression, "scheduler.steal.aggression")                                              \
    X(steal_min_run_ns, "scheduler.steal.minRun")                                                  \
    X(stand_in_ns, "scheduler.idle.standIn")                                                       \
    X(buffers_count, "io.buffers.count")                                                           \
    X(send_high, "channel.sendHigh")                                                               \
    X(send_low, "channel.sendLow")                                                                 \
    X(send_timeout_ns, "channel.sendTimeout")                                                      \
    X(receive_buffer, "channel.socket.receiveBuffer")                                              \
    X(delays, "channel.socket.noDelay.off")                                                        \
    X(requests_max, "channel.requestsMax")                                                         \
    X(listener_requests, "listeners.channel.requestsMax")                                          \
    X(connections_max, "channel.maxConnections")                                                   \
    X(first_byte_ns, "channel.firstByteTimeout")                                                   \
    X(address_percent, "channel.maxPerAddress")                                                    \
    X(loopback_percent, "channel.maxPerLoopback")                                                  \
    X(helpers_max, "blocking.threadsMax")                                                          \
    X(names_max, "connect.resolve.threadsMax")                                                     \
    X(detached_max, "detached.threadsMax")                                                         \
    X(stall_ns, "stall.threshold")                                                                 \
    X(memory_limit, "memory.limit")                                                                \
    X(thread_max, "memory.threadMax")                                                              \
    X(log_level, "log.level")                                                                      \
    X(log_lines, "log.queueMax")                                                                   \
    X(backend, "io.backend")

#define DOMI_LOOK_FIELD_(name)    uint64_t name;
#define DOMI_LOOK_KEY_(name, key) uint64_t name;
#define DOMI_LOOK_GROUP_(type, LIST)                                                               \
    typedef struct type {                                                                          \
        LIST(DOMI_LOOK_FIELD_)                                                                     \
    } type

DOMI_LOOK_GROUP_(domi_look_counters, DOMI_LOOK_COUNTERS);
DOMI_LOOK_GROUP_(domi_look_phases, DOMI_LOOK_PHASES);
DOMI_LOOK_GROUP_(domi_look_times, DOMI_LOOK_TIMES);
DOMI_LOOK_GROUP_(domi_look_runner, DOMI_LOOK_RUNNERS);
DOMI_LOOK_GROUP_(domi_look_behaviour, DOMI_LOOK_BEHAVIOURS);
DOMI_LOOK_GROUP_(domi_look_listener, DOMI_LOOK_LISTENERS);
DOMI_LOOK_GROUP_(domi_look_memory, DOMI_LOOK_MEMORY);
DOMI_LOOK_GROUP_(domi_look_usage, DOMI_LOOK_USAGE);
DOMI_LOOK_GROUP_(domi_look_machine, DOMI_LOOK_MACHINE);
typedef struct domi_look_settings {
    DOMI_LOOK_SETTINGS(DOMI_LOOK_KEY_)
} domi_look_settings;

/* For each group of figures of a look: the names of its members in their order, with NULL at the
 * end. */
extern const char *const domi_look_counter_names[];
extern const char *const domi_look_phase_names[];
extern const char *const domi_look_time_names[];
extern const char *const domi_look_runner_names[];
extern const char *const domi_look_behaviour_names[];
extern const char *const domi_look_listener_names[];
extern const char *const domi_look_memory_names[];
extern const char *const domi_look_usage_names[];
extern const char *const domi_look_machine_names[];
extern const char *const domi_look_setting_names[];

/* Returns the figure of a group whose name has the place `index` in the group's list of names. */
static inline uint64_t *domi_look_figure_at_place_of_group(void *group, size_t index)
{
    return (uint64_t *)group + index;
}

typedef struct domi_look_thread {
    domi_look_counters counters;
    domi_look_phases phases;
    domi_look_times times;
} domi_look_thread;

typedef struct domi_look_pool_runner {
    char pool[DOMI_LOOK_NAME];
    uint64_t runner; /* number of this runner in its pool */
    bool is_spare;   /* the runner is a spare: it works only while other runners are blocked */
    domi_look_runner times;
    domi_look_counters counters;
} domi_look_pool_runner;

/* value of domi_look_actors.thread for the behaviours of foreign threads and detached actors */
#define DOMI_LOOK_OUTSIDE (-1)
#define DOMI_LOOK_POOL    (-2) /* value of domi_look_actors.thread for the behaviours of a pool */

/* The counts of one behaviour at one place: a thread, a pool, or the outside. */
typedef struct domi_look_actors {
    char name[DOMI_LOOK_NAME];
    char pool[DOMI_LOOK_NAME]; /* name of the pool; "": the place is a thread or the outside */
    int64_t thread;            /* number of the thread; or DOMI_LOOK_OUTSIDE; or DOMI_LOOK_POOL */
    bool is_channels;
    domi_look_behaviour counts;
} domi_look_actors;

typedef struct domi_look_port {
    char name[DOMI_LOOK_NAME];
    domi_look_listener counts;
} domi_look_port;

typedef struct domi_look {
    uint64_t now_ns; /* time at which the look was taken, by CLOCK_MONOTONIC */
    uint64_t pid;
    uint64_t uptime_ns;
    char program[DOMI_LOOK_NAME];
    char level[DOMI_LOOK_NAME]; /* the program's profile.level, as a word */
    uint32_t thread_count, runner_count, actors_count, port_count;
    domi_look_thread *threads;
    domi_look_pool_runner *runners;
    domi_look_actors *actors;
    domi_look_port *ports;
    domi_look_counters outside;
    /* number of runs of a sleeping thread's actors that another thread, which had sent to them, did
     * in its place, over all threads */
    uint64_t stand_ins;
    domi_look_memory memory;
    domi_look_usage usage;
    domi_look_machine machine;
    domi_look_settings settings;
    char backend[DOMI_LOOK_NAME];
    char backend_why[DOMI_LOOK_REASON];
} domi_look;

/* Limits for the lists of a look: a program has at most 1,024 threads, and 16 pools of 128
 * runners. */
#define DOMI_LOOK_THREADS_MAX 1024u
#define DOMI_LOOK_RUNNERS_MAX 2048u
#define DOMI_LOOK_ACTORS_MAX  (128u * (DOMI_LOOK_THREADS_MAX + 17u))
#define DOMI_LOOK_PORTS_MAX   128u

/* Allocate the lists of a look in these lengths, all 0. Returns 0, and domi_look_free_lists() must
 * follow; -ENOMEM; -E2BIG for a length over its limit. */
int domi_look_allocate_lists(domi_look *ret_look, size_t threads, size_t runners, size_t actors,
                             size_t ports);

/* Free the lists of a look. A look that is all 0 has none, which is allowed. */
void domi_look_free_lists(domi_look *look);

/* Returns how many connections are open, over all listeners of a look. */
uint64_t domi_look_count_open_connections(const domi_look *look);

/* Copy a name into a look, cut to `size` bytes with its zero byte. Bytes other than printable ASCII
 * become '?', because the name is printed on a terminal. */
void domi_look_copy_name(char *ret_name, size_t size, const char *name);

#endif
