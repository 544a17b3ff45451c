/* The profile: where each thread's time goes, phase by phase, and counters of what the thread did.
 *
 * Each thread writes its own counters, and any thread may read them at any time. They only grow,
 * so the difference of two snapshots is what happened between them. There are two exceptions.
 * queued_bytes, buffers_used and houses_used go up and down. The times of submit and of sleep may
 * get less, only their sum does not, because the thread's CPU clock tells later which part of an
 * enter was sleep. The times of all phases add up to the wall time of the thread, up to the end of
 * the last phase that it has finished, or, while it sleeps, up to now. The structure
 * grows only at its end, with a minor version. */
#ifndef DOMUS_PROFILE_H
#define DOMUS_PROFILE_H

#include <domus/config.h>
#include <domus/histogram.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

/* The phases of an iteration of a thread's loop, by which its time is counted. */
typedef enum domus_phase {
    /* submitting: the CPU time that the kernel needs when the thread enters its ring */
    DOMUS_PHASE_SUBMIT,
    DOMUS_PHASE_SLEEP, /* sleep: the time that entering the ring took beyond its CPU time */
    /* completions: the time of reaping completions, and of queueing what they bring */
    DOMUS_PHASE_COMPLETIONS,
    DOMUS_PHASE_CHANNELS, /* channels: the time of runs of channels actors */
    /* events: the time of arrivals, mounting, timers, stopping and flushing sends */
    DOMUS_PHASE_EVENTS,
    DOMUS_PHASE_STATE, /* state: the time of runs of state actors */
    DOMUS_PHASE_OTHER, /* other: the time in which the loop itself decides, looks and parks */
    DOMUS_PHASES,
} domus_phase;

/* Most behaviours of a system that are counted by themselves, and the size of their names in bytes,
 * with a NUL. */
#define DOMUS_BEHAVIOURS_MAX      127
#define DOMUS_BEHAVIOUR_NAME_SIZE 64

/* Places in the histogram of stalls: place i counts stalls of 2^i ms or more, and less than twice
 * that. The first place also counts shorter stalls, and the last one longer stalls. */
#define DOMUS_STALL_LENGTHS 16

/* The times and counters of a thread. */
typedef struct domus_profile {
    uint64_t wall_ns; /* time for which the thread has run; the sum of phase_ns */
    uint64_t phase_ns[DOMUS_PHASES];
    uint64_t iterations;
    uint64_t enters; /* times that the thread has entered its ring by a system call */
    uint64_t completions;
    uint64_t runs; /* runs of houses on this thread */
    /* replies that actors have handled, and sleeps and other waits that were over without an
     * error */
    uint64_t replies;
    /* exceptions that actors have handled: asks that failed, deadlines, cancels */
    uint64_t exceptions;
    uint64_t asks;    /* asks that actors have handled */
    uint64_t notices; /* notices that actors have handled */
    uint64_t events;  /* events that actors have handled */
    uint64_t reads;   /* pieces of bytes that were given to on_read or to a pipeline */
    uint64_t received_bytes;
    uint64_t sent_bytes;
    /* negative errnos that handlers of notices and events, and mounts, have returned */
    uint64_t failures;
    uint64_t deadline_expiries; /* times that phase 3 was ended by its deadline */
    /* sum of the times for which phase 3 went on beyond its deadlines */
    uint64_t deadline_overrun_ns;
    uint64_t parks;        /* times that the thread went to sleep in its ring */
    uint64_t wakeups_sent; /* writes by this thread to the eventfd of a sleeping thread */
    uint64_t wakeups_received;
    uint64_t wakeups_empty; /* wake-ups of this thread after which it found nothing to do */
    /* times that the poll for wake-ups was armed anew (io.emptyWakeupsMax) */
    uint64_t wake_rearms;
    /* wake-ups by the longest sleep of 1 s after which work was found: stays 0 */
    uint64_t cap_wakeups_with_work;
    uint64_t steals_wanted; /* times that this idle thread chose a busy thread to steal from */
    uint64_t dead_letters;
    uint64_t refusals; /* asks and notices that were refused because a mailbox was full */
    uint64_t spawns;   /* actors that were mounted on this thread */
    uint64_t stops;
    uint64_t exposed;  /* houses of this thread that were exposed to thieves */
    uint64_t accepted; /* connections that were accepted on this thread */
    /* pauses of accepting: at limits of descriptors or connections, or because memory was short */
    uint64_t accept_pauses;
    uint64_t channels_opened;
    uint64_t channels_closed;
    uint64_t channels_reset;    /* channels that were closed by an error, or not drained in time */
    uint64_t receivers_starved; /* receives of a channel that ended because no buffer was free */
    uint64_t timers_fired;
    /* asks that were dropped because their deadline had passed: before they were handled, or while
     * kept */
    uint64_t asks_expired;
    uint64_t late_replies; /* answers that came when nobody waited for them any more */
    uint64_t cancels;      /* conversations, and asks that were not begun, that were cancelled */
    /* asks that failed with -EDEADLK because they would have waited for themselves */
    uint64_t circles;
    uint64_t restarts;
    uint64_t escalations; /* failures of actors for which no rule but the root's was there */
    uint64_t passivations;
    uint64_t letters_missed; /* letters that a subscriber did not take (domus/letters.h) */
    /* Log lines dropped beyond DOMUS_LOG_LINES_PER_SECOND. domus_outside_profile() also counts the
     * lines that the log hook has dropped (domus/hooks.h). The column of the table for all threads
     * includes the outside's count. */
    uint64_t log_lines_dropped;
    uint64_t steals;     /* houses of other threads that this thread has run, once for each theft */
    uint64_t stalls;     /* runs that took longer than stall.threshold (domus/stall.h) */
    uint64_t stalled_ns; /* time that such stalls took, counted when they are over */
    /* number of stalls by their length, as DOMUS_STALL_LENGTHS says */
    uint64_t stall_lengths[DOMUS_STALL_LENGTHS];
    uint64_t busy; /* asks and notices that were refused with -EBUSY because memory was short */
    /* times that reading and accepting were restricted because memory was short */
    uint64_t pressed;
    uint64_t trimmed_bytes;   /* bytes of memory of messages that were given back to the kernel */
    uint64_t channels_silent; /* channels that were closed at channel.firstByteTimeout */
    /* connections that were reset because their address had as many as it may
     * (channel.maxPerAddress) */
    uint64_t refused_by_address;
    /* spells in which `refused_by_address` grew; each spell is logged, and is over after a second
     * without a refusal, or up to 64 s when spells follow each other */
    uint64_t address_spells;
    /* spells in which as many connections as channel.maxConnections were open */
    uint64_t full_spells;
    /* spells in which accepting failed for lack of descriptors or memory */
    uint64_t accept_spells;
    uint64_t buffer_spells; /* spells in which a receive found no receive buffer free */
    /* channels_cut counts channels that the library ended while it owed bytes to the peer, and
     * connections that got no channel. cut_bytes counts the bytes that these peers had sent and got
     * no answer to, or whose answer they had not acknowledged. discarded_bytes counts bytes that
     * came after a channel was closed on this side, and those that had come before and that its
     * actor had not read (these are in received_bytes, too). */
    uint64_t channels_cut;
    uint64_t cut_bytes;
    uint64_t discarded_bytes;
    /* times that the ring was entered and the kernel had no room; the enter was tried again */
    uint64_t enters_refused;
    /* channels that were reset by the negative errno of a handler, or of a conversation that it
     * began */
    uint64_t channels_refused;
    uint64_t queued_bytes;  /* bytes that wait now to be sent to peers; goes up and down */
    uint64_t channels_shed; /* channels that were reset because memory was short (domus/memory.h) */
    /* connects that actors have asked for, and connects that brought no connection, because they
     * failed or were taken back (domus/connect.h) */
    uint64_t connects;
    uint64_t connects_failed;
    /* Datagrams (domus/datagram.h) that came and were thrown away, because they were too long or
     * their channel did not read; datagrams that the kernel threw away before they came; and
     * datagrams to be sent that the kernel did not take. */
    uint64_t datagrams_dropped;
    uint64_t datagrams_lost;
    uint64_t datagrams_unsent;
    uint64_t channels_aged; /* channels that were closed at channel.maxAge */
    /* channels that were closed at channel.minRate, channel.headTimeout or channel.bodyRate */
    uint64_t channels_slow;
    /* connections that were reset at a listener for proxies: they came from elsewhere, or had no
     * valid header */
    uint64_t proxies_refused;
    /* Channels that the drain of a stop has ended: something was under way and all was delivered;
     * nothing was under way; something was owed (these are in channels_cut, too). */
    uint64_t drained_answered;
    uint64_t drained_idle;
    uint64_t drained_cut;
    uint64_t channels_busy; /* times that a channel had channel.requestsMax requests under way */
    /* times that a channel waited for its turn to decode, because pipelines had taken
     * scheduler.stageTime in that iteration; the time itself is in phase_ns of channels */
    uint64_t channels_late;
    /* loads of files that were answered from bytes that the thread had kept (domus/file.h) */
    uint64_t files_kept;
    /* small notices that went to another thread by belt, as values (scheduler.beltSlots) */
    uint64_t belted;
    /* Mistakes of functions of actors, each told in the log once for each behaviour and type: waits
     * whose function is never called, because domus_ask() or its like was called twice in a turn,
     * or without `return`; and positive results other than DOMUS_PARKED, which count as 0. */
    uint64_t waits_lost;
    uint64_t results_unknown;
    /* times that an actor came to scheduler.conversationsMax conversations, and then handled no
     * asks and notices until one of them ended */
    uint64_t conversations_full;
    /* The number of actors that were ready and had to wait, times the time for which they did: the
     * integral over the time in phase 3. Divided by a span of time, it is their mean number. */
    uint64_t ready_ns;
    /* receive buffers of io.buffers.count that are in use now, and houses of actors that live here
     * or end */
    uint64_t buffers_used;
    uint64_t houses_used;
    /* timers that were not made, because the thread had scheduler.timersMax */
    uint64_t timers_refused;
    /* asks and notices that were refused because the thread was at memory.threadMax */
    uint64_t thread_max_refusals;
    uint64_t sends; /* sends to connected peers of which the kernel has taken bytes */
    /* Time that phase 3 had taken just before each completion of io was found, in sum. Divided by
     * the number of completions, it is about how long io waits for state actors, at most. */
    uint64_t io_behind_ns;
    /* Requests of peers that ended with a negative errno: of their handler or of an actor that it
     * asked, at their time-out, or because their answer could not be encoded. Requests that were
     * cancelled, or whose channel was being closed, are not among them, nor are bytes that are no
     * request. The protocol decides what the peer gets (HTTP: 404 for -ENOENT, 500 for -EIO). */
    uint64_t requests_failed;
} domus_profile;

/* Read the counters of one thread. `thread` is 0..threads-1. Returns 0; -EINVAL for any other
 * number.
 * Thread-safety: any thread, from domus_system_start() until domus_system_free(). */
DOMUS_API int domus_system_profile(const struct domus_system *system, uint32_t thread,
                                   domus_profile *ret_profile);

/* Read the counters of what foreign threads did. Only the counters of messages are set. Returns and
 * thread-safety as domus_system_profile(). */
DOMUS_API int domus_outside_profile(const struct domus_system *system, domus_profile *ret_profile);

/* The times and counters of a runner of a pool (domus/pools.h). With profile.level off all times
 * are 0. */
typedef struct domus_runner_profile {
    /* time for which the runner's thread has lived; the sum of the next three */
    uint64_t wall_ns;
    uint64_t run_ns; /* time that the runner was in turns, or took jobs that were there */
    /* CPU time in which the runner looked for a job, when there was none at once */
    uint64_t search_ns;
    /* time for which the runner slept, or had no CPU, while it looked for a job */
    uint64_t park_ns;
    uint64_t turns;        /* turns that the runner has given to actors */
    uint64_t messages;     /* messages of all kinds that were handled in the runner's turns */
    uint64_t steals;       /* jobs that the runner has taken from other runners */
    uint64_t stolen;       /* jobs that other runners have taken from this runner */
    uint64_t global_takes; /* jobs that the runner has taken from a queue of the whole pool */
    uint64_t parks;        /* times at which the runner went to sleep, because it found no job */
    /* times that the runner's thread has begun: any number for a spare, else 1 */
    uint64_t begun;
} domus_runner_profile;

/* The numbers of threads and jobs of a system besides its loops. */
typedef struct domus_usage {
    uint64_t helpers;          /* helper threads for blocking work (domus/blocking.h) */
    uint64_t helpers_busy;     /* helper threads that run a function of blocking work now */
    uint64_t jobs_queued;      /* functions of blocking work that wait for a helper thread */
    uint64_t detached_threads; /* threads of detached actors (domus/detached.h), and of outsiders */
    uint64_t detached_busy;    /* detached threads that have an actor now */
} domus_usage;

/* Read the numbers of threads and jobs of a system besides its loops. Thread-safety: as
 * domus_system_profile(). */
DOMUS_API void domus_system_usage(struct domus_system *system, domus_usage *ret_usage);

struct domus_pool;

/* Read the counters of one runner. `runner` is 0..domus_pool_runners()-1; the spares come last.
 * `ret_counters`, which may be NULL, gets what the runner did as any thread that runs actors does:
 * the counters of messages, lives, mistakes and stalls.
 * Returns 0; -EINVAL for any other number. Thread-safety: as domus_system_profile(). */
DOMUS_API int domus_pool_profile(const struct domus_pool *pool, uint32_t runner,
                                 domus_runner_profile *ret_profile, domus_profile *ret_counters);

/* --- behaviours ------------------------------------------------------------------------------ */

/* The counts of the actors of one behaviour. Behaviours with one name are counted together; actors
 * of behaviours beyond DOMUS_BEHAVIOURS_MAX in a system are counted as "(others)". All but `alive`
 * and `bytes` only grow. */
typedef struct domus_behaviour_profile {
    char name[DOMUS_BEHAVIOUR_NAME_SIZE]; /* name of the behaviour, cut off if it is longer */
    /* whether the behaviour's actors are channels actors; else they are state actors */
    bool is_channels;
    uint64_t runs;
    /* messages of all kinds, and pieces of bytes, that actors of the behaviour handled in these
     * runs */
    uint64_t messages;
    /* The time of these runs, estimated: about 100 times a second the time since the last look is
     * added to what runs at that moment. 0 with profile.level off, in a simulated system, and in
     * one that began with profile.level off, stall.threshold 0 and no pools. */
    uint64_t run_ns;
    /* number of messages whose wait in the mailbox was measured, at most one on each thread at a
     * time, and the sum of these waits (`wait_ns`). Messages that wait for runners of a pool are
     * not measured. */
    uint64_t waits;
    uint64_t wait_ns;
    /* negative errnos that handlers and on_mount of the behaviour have returned */
    uint64_t failures;
    uint64_t alive; /* actors of the behaviour that live now */
    /* bytes of the houses and states of these actors; what actors allocate is not counted */
    uint64_t bytes;
} domus_behaviour_profile;

/* Read what each behaviour did on one thread: up to `max` of them, those with actors or runs, in no
 * particular order. An actor counts where it was mounted, runs where they ran. `ret_count` gets how
 * many were written, at most DOMUS_BEHAVIOURS_MAX + 1. Returns 0; -EINVAL for a number that is no
 * thread. Thread-safety: as domus_system_profile(). */
DOMUS_API int domus_system_behaviours(const struct domus_system *system, uint32_t thread,
                                      domus_behaviour_profile *ret_behaviours, uint32_t max,
                                      uint32_t *ret_count);

/* Read what each behaviour did, as domus_system_behaviours() does, on all runners of a pool
 * together; and on foreign threads and by detached actors together (domus/detached.h). Both return
 * 0. Thread-safety: as domus_system_profile(). */
DOMUS_API int domus_pool_behaviours(const struct domus_pool *pool,
                                    domus_behaviour_profile *ret_behaviours, uint32_t max,
                                    uint32_t *ret_count);
DOMUS_API int domus_outside_behaviours(struct domus_system *system,
                                       domus_behaviour_profile *ret_behaviours, uint32_t max,
                                       uint32_t *ret_count);

/* --- listeners ------------------------------------------------------------------------------- */

/* The connections of a listener. All but `open` only grow. */
typedef struct domus_listener_profile {
    /* name of the listener in the configuration; "": all listeners that actors have made
     * (domus/listen.h) */
    const char *name;
    /* address of the listener in the configuration, or that of the socket that was passed
     * (`listening` in domus/system.h) */
    const char *address;
    /* port at which the listener listens, also if the kernel has chosen it; 0: it does not listen
     * yet, or at a Unix socket */
    uint16_t port;
    bool is_served; /* whether domus_serve() was called for the listener */
    /* connections of the listener that were accepted and handed over to a thread */
    uint64_t accepted;
    /* connections of the listener that were reset without a channel, because of their address
     * (channel.maxPerAddress, proxies) or because nobody could serve them */
    uint64_t refused;
    uint64_t open;   /* channels of the listener that are open now */
    uint64_t closed; /* channels of the listener that have ended */
    /* channels of the listener that an error has closed; `closed` counts them, too */
    uint64_t reset;
} domus_listener_profile;

/* Read the counts of one listener. `index` is that of domus_config.listeners; listener_count stands
 * for all listeners together that actors have made for themselves (domus/listen.h). The texts are
 * valid as long as the system. Returns 0; -EINVAL for a larger index. Thread-safety: as
 * domus_system_profile(). */
DOMUS_API int domus_system_listener(const struct domus_system *system, size_t index,
                                    domus_listener_profile *ret_profile);

/* --- histograms ------------------------------------------------------------------------------ */

/* The kinds of histograms. Each thread has one of each kind; domus_histogram_merge() adds those of
 * several threads. */
typedef enum domus_histogram_kind {
    /* time of an iteration of the loop, without submitting and sleeping */
    DOMUS_HISTOGRAM_ITERATION,
    /* time of the enters of an iteration, submitting and sleeping together */
    DOMUS_HISTOGRAM_ENTER,
    /* time of one iteration in the phase of this name, if it had any; the next four are such,
     * too */
    DOMUS_HISTOGRAM_COMPLETIONS,
    DOMUS_HISTOGRAM_CHANNELS,
    DOMUS_HISTOGRAM_EVENTS,
    DOMUS_HISTOGRAM_STATE,
    DOMUS_HISTOGRAM_OTHER,
    /* time of a run of an actor. Runs of less than about 40 us are sampled, and each counts for
     * all since the one before. */
    DOMUS_HISTOGRAM_RUN,
    /* time for which a message waits in the mailbox of a state actor; a sample of messages */
    DOMUS_HISTOGRAM_WAIT,
    /* time from a put on another thread until the message is in a mailbox of this thread; a
     * sample */
    DOMUS_HISTOGRAM_DELIVERY,
    /* time from the reaping of a completion to the run of its actor; sampled as runs are */
    DOMUS_HISTOGRAM_REACTION,
    DOMUS_HISTOGRAMS,
} domus_histogram_kind;

/* Read a histogram of one thread: what it has measured while profile.level was histograms.
 * Returns 0; -EINVAL for a number that is no thread or no kind. Thread-safety: as
 * domus_system_profile(). */
DOMUS_API int domus_system_histogram(const struct domus_system *system, uint32_t thread,
                                     domus_histogram_kind kind, domus_histogram *ret_histogram);

/* Entries of a thread for pipelines whose answers are measured apart; the last one is for all other
 * pipelines. */
#define DOMUS_PIPELINES_MAX 8

/* Read how long the peers of one pipeline waited on one thread: from the first run for a request to
 * the end of its answer. One request of a thread is measured at a time, and given up after 10 s,
 * so that a stream does not keep others from being measured. `index` is 0 to
 * DOMUS_PIPELINES_MAX - 1, in the order in which pipelines had a first answer; `ret_behaviour` gets
 * the name of the behaviour of the channels, "(others)" for all that have no entry. Returns 0;
 * -EINVAL for a number that is no thread; -ENOENT if there is none of that index yet.
 * Thread-safety: as domus_system_profile(). */
DOMUS_API int domus_system_answers(const struct domus_system *system, uint32_t thread,
                                   uint32_t index, char ret_behaviour[DOMUS_BEHAVIOUR_NAME_SIZE],
                                   domus_histogram *ret_histogram);

/* Returns the name of a kind of histogram in lower case, such as "iteration"; NULL for a number
 * that is no kind. */
DOMUS_API const char *domus_histogram_name(domus_histogram_kind kind);

/* Set the level at which all threads measure from now on; each thread follows within a millisecond
 * of work. Counters and histograms keep what they have; wall_ns and phase_ns do not count time at
 * the level off. Runners of pools keep the level of the start. If there is no memory for
 * histograms, which take 176 KiB for each thread, a thread tries again at each tick. Returns 0;
 * -EINVAL for no level. Thread-safety: any thread, from domus_system_start() until
 * domus_system_free(). */
DOMUS_API int domus_system_set_profile_level(struct domus_system *system,
                                             domus_profile_level level);

/* Returns the level of measuring that was set last. Thread-safety: any thread, from
 * domus_system_start() until domus_system_free(). */
DOMUS_API domus_profile_level domus_system_profile_level(const struct domus_system *system);

/* --- who works for whom ---------------------------------------------------------------------- */

/* Counts of what one thread, the thief, has run for another one. */
typedef struct domus_pair {
    uint32_t thief;
    uint32_t victim;
    uint64_t steals; /* houses that the thief has taken from the victim, and has run once each */
    /* houses of the victim that the thief has run while the victim slept (idle.standIn) */
    uint64_t stand_ins;
} domus_pair;

/* Read what each thread has run for each other one. `pairs` gets the first `size` of the pairs of
 * which one count is not 0, thief by thief. For each thief all these counts together are the
 * counter `steals` of its profile; a steal for which there was no memory to count it is not in
 * them. A thief takes 16 bytes for each thread when it first runs something for another one.
 *
 * Returns how many such pairs there are; it only grows. Thread-safety: as domus_system_profile().
 */
DOMUS_API size_t domus_system_pairs(const struct domus_system *system, domus_pair *pairs,
                                    size_t size);

/* --- for people ------------------------------------------------------------------------------ */

/* Write the table that domus_main() prints into `text` (NUL-terminated, cut at `size` bytes). It
 * has a column for each thread up to the 16th, one for all threads, and the rate of that a second,
 * since the start (without profile.level: counters there is no rate). The phases come first, and
 * then the counters in groups: scheduling, messages, io, connections, memory, trouble. A table of
 * the same form follows for each pool, with its runners. Counters that are 0 have a row only with
 * profile.zeros. If memory is measured, rows of its group are, in
 * bytes, the used memory and its limit, the foreign and the own memory, and the two budgets
 * (domus/memory.h). At the end are the tables that libraries and the program show of themselves
 * (domus/figures.h), each with its first 64 rows.
 *
 * Returns the length of the whole table, without the zero at its end. Thread-safety:
 * as domus_system_profile(). */
DOMUS_API size_t domus_system_profile_table(const struct domus_system *system, char *text,
                                            size_t size);

/* Returns the name of a phase, as the table of the profile prints it; NULL for a number that is no
 * phase. */
DOMUS_API const char *domus_phase_name(domus_phase phase);

#ifdef __cplusplus
}
#endif

#endif
