/* Where each thread's time goes, phase by phase, and what it did.
 *
 * Each thread writes its own counters; anyone may read them at any time. They only grow (but
 * for queued_bytes; submit and sleep only in their sum: what of an enter was sleep is told by the
 * thread's CPU clock), so the difference of two snapshots is what happened between. The phases sum
 * to the wall time of the thread, up to the end of the last phase it has gone through; asleep, up
 * to now. Within a minor version the structure grows only at its end.
 */
#ifndef DOMUS_PROFILE_H
#define DOMUS_PROFILE_H

#include <domus/export.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

typedef enum domus_phase {
    DOMUS_PHASE_SUBMIT,      /* entering the ring: the kernel's work for us */
    DOMUS_PHASE_SLEEP,       /* what an enter took beyond its own CPU time */
    DOMUS_PHASE_COMPLETIONS, /* reaping completions, queueing what they bring */
    DOMUS_PHASE_CHANNELS,    /* channels actors */
    DOMUS_PHASE_EVENTS,      /* arrivals, mounting, timers, stopping, flushing sends */
    DOMUS_PHASE_STATE,       /* state actors */
    DOMUS_PHASE_OTHER,       /* the loop itself: deciding, looking, parking */
    DOMUS_PHASES,
} domus_phase;

/* Of a histogram of stalls: place i counts those of 2^i ms or more, and less than twice that; the
 * first and the last also what is shorter and longer. */
#define DOMUS_STALL_LENGTHS 16

typedef struct domus_profile {
    uint64_t wall_ns; /* since the thread runs; the sum of phase_ns */
    uint64_t phase_ns[DOMUS_PHASES];
    uint64_t iterations;
    uint64_t enters; /* system calls into the ring */
    uint64_t completions;
    uint64_t runs;    /* houses run */
    uint64_t replies; /* handled, by kind */
    uint64_t exceptions;
    uint64_t asks;
    uint64_t notices;
    uint64_t events;
    uint64_t reads; /* pieces of bytes given to on_read */
    uint64_t received_bytes;
    uint64_t sent_bytes;
    uint64_t failures;            /* negative errnos of notice, event and mount handlers */
    uint64_t deadline_expiries;   /* phase 3 ended by its deadline */
    uint64_t deadline_overrun_ns; /* how far beyond it, in all */
    uint64_t parks;
    uint64_t wakeups_sent; /* writes to a sleeping thread's eventfd */
    uint64_t wakeups_received;
    uint64_t wakeups_empty;         /* woke and found nothing to do */
    uint64_t wake_rearms;           /* 512 empty ones in a row: the wake poll was armed anew */
    uint64_t cap_wakeups_with_work; /* woke by the 1 s cap and found work: stays 0 */
    uint64_t steals_wanted;         /* idle here, and another thread was beyond the thresholds */
    uint64_t dead_letters;
    uint64_t refusals; /* asks and notices refused at mailboxMax */
    uint64_t spawns;   /* actors mounted here */
    uint64_t stops;
    uint64_t exposed;       /* houses shown to thieves */
    uint64_t accepted;      /* connections accepted here */
    uint64_t accept_pauses; /* at descriptor or connection limits, or for want of memory */
    uint64_t channels_opened;
    uint64_t channels_closed;
    uint64_t channels_reset;    /* closed by an error, or not drained in time */
    uint64_t receivers_starved; /* receives ended for want of buffers */
    uint64_t timers_fired;
    uint64_t asks_expired; /* dropped before they were handled: their deadline had passed */
    uint64_t late_replies; /* answers that came when nobody waited for them any more */
    uint64_t cancels;      /* conversations, and asks not begun, that were cancelled */
    uint64_t circles;      /* asks that would have waited for themselves: -EDEADLK */
    uint64_t restarts;
    uint64_t escalations; /* failures that no rule but the root's was for */
    uint64_t passivations;
    uint64_t letters_missed; /* that a subscriber did not take (domus/letters.h) */
    /* Beyond DOMUS_LOG_LINES_PER_SECOND; of the outside also those that the log hook has dropped
     * (domus/hooks.h). The table adds the outside's to those of all threads. */
    uint64_t log_lines_dropped;
    uint64_t steals;     /* houses of other threads that were run here, each once */
    uint64_t stalls;     /* runs of more than stall.threshold (domus/stall.h) */
    uint64_t stalled_ns; /* by them, once they were over */
    uint64_t stall_lengths[DOMUS_STALL_LENGTHS]; /* ... and how long each was */
    uint64_t busy;               /* asks and notices refused for want of memory: -EBUSY */
    uint64_t pressed;            /* reading and accepting paused for want of memory */
    uint64_t trimmed_bytes;      /* of memory for messages, given back */
    uint64_t channels_silent;    /* closed at channel.firstByteTimeout */
    uint64_t refused_by_address; /* connections that were reset: their address had its share */
    uint64_t address_spells;     /* in which that happened, each of them logged */
    uint64_t full_spells;        /* spells at channel.maxConnections */
    uint64_t accept_spells;      /* in which accepting failed for want of descriptors or memory */
    uint64_t buffer_spells;      /* without a free receive buffer */
    /* Channels that the library ended while bytes were owed to the peer, and connections that got
     * no channel; the bytes that they had sent and got no answer to, or whose answer the peer had
     * not acknowledged; and bytes that came after a channel was closed on this side. */
    uint64_t channels_cut;
    uint64_t cut_bytes;
    uint64_t discarded_bytes;
    uint64_t enters_refused;   /* for which the kernel had no room just then: tried again */
    uint64_t channels_refused; /* by a negative errno of a handler or of what it began: reset */
    uint64_t queued_bytes;     /* that wait to be sent to peers now; goes up and down */
    uint64_t channels_shed;    /* reset because memory was short (domus/memory.h) */
} domus_profile;

/* Read the counters of one thread. `thread` is 0..threads-1. Returns 0; -EINVAL.
 * Thread-safety: any thread, from start until domus_system_free(). */
DOMUS_API int domus_system_profile(const struct domus_system *system, uint32_t thread,
                                   domus_profile *ret_profile);

/* The same for what foreign threads did; only the counters of messages are set. */
DOMUS_API int domus_outside_profile(const struct domus_system *system, domus_profile *ret_profile);

/* Write the table that domus_main() prints: a column per thread and one for all, into `text`
 * (NUL-terminated, cut at `size`). Where memory is measured, its last rows are what is used of the
 * limit, how much of that is foreign and how much the library's own, and the two budgets of the
 * latter, in bytes (domus/memory.h). Returns the length it wants. Thread-safety: as above. */
DOMUS_API size_t domus_system_profile_table(const struct domus_system *system, char *text,
                                            size_t size);

/* A phase's name, as the table prints it; NULL beyond DOMUS_PHASES. */
DOMUS_API const char *domus_phase_name(domus_phase phase);

#ifdef __cplusplus
}
#endif

#endif
