/* A thread of a system: its manager, its io, and the notes of each part of the loop. One pinned OS
 * thread runs it. The test kit instead runs the phases of many threads by turns in one OS thread.
 *
 * This header has the data and the questions about them. The files of runtime/loop act on the data.
 *
 * Thread-safety: only the thread itself uses the fields, except `counters`, which any thread may
 * read, and `stall`, which is the monitor's. */
#ifndef DOMI_RUNTIME_SYSTEM_THREAD_H
#define DOMI_RUNTIME_SYSTEM_THREAD_H

#include "base/clock.h"
#include "base/probe.h"
#include "base/random.h"
#include "io/resources/io.h"
#include "runtime/system/backtrace.h"
#include "runtime/system/backtrace_samples.h"
#include "runtime/system/orders.h"
#include "runtime/system/stall_counts.h"

#include <domus/profile.h>

#include <pthread.h>

struct domus_system;

/* A thread never sleeps longer than this (1 s). So a lost wake-up shows as a number in the profile,
 * not as a hang. */
#define DOMI_PARK_CAP_NS UINT64_C(1000000000)

/* A span is a use of time; the time between two stamps is added to one span. When the profile is
 * read, profile.c divides the time of DOMI_SPAN_ENTER into submitting and sleeping. */
typedef enum domi_span {
    DOMI_SPAN_ENTER,
    DOMI_SPAN_COMPLETIONS,
    DOMI_SPAN_CHANNELS,
    DOMI_SPAN_EVENTS,
    DOMI_SPAN_STATE,
    DOMI_SPAN_OTHER,
    DOMI_SPANS,
} domi_span;

typedef struct domi_thread_counters {
    domi_counter span_ns[DOMI_SPANS]; /* nanoseconds of each domi_span */
    /* the newest stamp: a time of the thread's clock, see DOMI_STAMP_ASLEEP */
    domi_counter stamp_ns;
    domi_counter iterations;          /* iterations of the loop */
    domi_counter deadline_expiries;   /* how often a phase 3 was ended by its deadline */
    domi_counter deadline_overrun_ns; /* time that phase 3 took beyond its deadlines, in all */
    domi_counter parks;               /* how often the thread went to sleep */
    domi_counter wakeups_received;    /* sleeps that another thread has ended by a wake-up */
    domi_counter wakeups_empty;       /* wake-ups after which the thread found nothing to do */
    domi_counter wake_rearms;         /* times at which the wake poll was armed anew */
    /* sleeps that ended after DOMI_PARK_CAP_NS though there was work; no bug: 0 */
    domi_counter cap_wakeups_with_work;
    /* sum over phases 3: waiting actors times the nanoseconds that they waited */
    domi_counter ready_ns;
    domi_counter io_behind_ns;  /* sum of completions times the length of the phase 3 before them */
    domi_counter steals_wanted; /* how often this idle thread chose a victim */
    domi_counter steals;        /* houses of other threads that this thread has run */
    domi_counter files_kept;    /* loads of files that were answered from kept bytes */
    domi_counter tid;           /* the number that the kernel has for the thread; 0: none yet */
    domi_counter cpu_clock;     /* the clockid_t of the thread's CPU clock */
    domi_counter cpu_start_ns;  /* the thread's CPU clock when its loop began */
    /* the thread's CPU clock when its loop ended; 0: the loop goes on */
    domi_counter cpu_end_ns;
} domi_thread_counters;

/* The bound of log lines in one second (log.c). Any thread may use it. */
typedef struct domi_log_bound {
    _Atomic uint64_t word;    /* upper half: the second; lower half: the lines in it */
    _Atomic uint64_t dropped; /* number of lines that were dropped so far */
} domi_log_bound;

/* How far the monitor has come with the present stall of a thread (stall.h). */
typedef enum domi_stall_stage {
    DOMI_STALL_NONE,
    DOMI_STALL_FOUND, /* the stall is counted, and its backtrace is awaited */
    DOMI_STALL_TOLD,
} domi_stall_stage;

typedef struct domi_stall {
    alignas(DOMI_LINES) domi_stall_counts counts;

    /* Only the monitor reads and writes these fields. */
    domi_stall_stage stage;
    uint64_t beat;         /* domi_thread_beat() at the last look */
    uint64_t looked_ns;    /* the time of the last look; 0: the monitor has slept since */
    uint64_t from_ns;      /* a time before the run began, or just at its begin */
    uint64_t since_ns;     /* a time at which the run was under way */
    uint64_t found_ns;     /* when the stall was found */
    uint64_t cpu_ns;       /* the thread's CPU clock at `cpu_since_ns` */
    uint64_t cpu_since_ns; /* when `cpu_ns` was read; 0: not yet */
    const domus_behaviour *behaviour; /* behaviour of the actor whose handler runs; NULL: none */
    const domus_type *type;           /* type of the message that the handler handles; NULL: none */
    uint64_t number; /* the number of the stall in the history; 0: the stall was not reported */
    /* a negative errno: why there will be no backtrace; 0: the backtrace is awaited */
    int no_trace;

    domi_backtrace backtrace; /* the backtrace of the thread in this stall */
    /* The thread's signal handler writes these two fields with the backtrace. */
    uint64_t traced_beat;   /* domi_thread_beat() when the backtrace was taken */
    uint32_t traced_queued; /* houses that were ready when the backtrace was taken */
} domi_stall;

#define DOMI_NO_VICTIM UINT32_MAX /* the `victim` of a thread that wants no houses */

/* In the test kit a thief waits this many iterations for a house to be exposed, instead of
 * scheduler.steal.patience, because there each iteration takes steps of the test. */
#define DOMI_PATIENCE_SIMULATED 8u

/* The notes of a thread as a thief and as a victim (steal.c). */
typedef struct domi_stealing {
    uint64_t idle_count;    /* consecutive iterations without work of its own */
    uint64_t runs_seen;     /* runs of this thread at its last look */
    uint32_t victim;        /* the thread whose houses this thief wants; DOMI_NO_VICTIM: none */
    uint32_t patience;      /* iterations for which this thief has waited for a house */
    uint32_t patience_max;  /* when `patience` exceeds this, the thief may sleep */
    struct domi_loan *loan; /* a house that this thief took and has not run yet; NULL: none */
    /* where a victim begins to look for a sleeper to wake (modulo threads) */
    uint32_t next_sleeper;
    uint32_t shown;          /* how many houses were exposed when that number last changed */
    uint64_t shown_since_ns; /* the time of that change */
    uint64_t run_ns;         /* the average length of a run on this thread */
    uint64_t min_run_ns;     /* houses with a shorter average run are not lent */
    uint64_t alone_until_ns; /* time until which this thread exposes nothing and wakes no sleeper */
    domi_random random;      /* chooses victims */
} domi_stealing;

/* The notes of phase 3 with an ioRatio of `auto` (loop/auto_ratio.h). All zeros at the start. */
typedef struct domi_auto_ratio {
    /* budget of the next phase 3 in ns, if io waits; a value below the least budget counts as
     * that */
    uint64_t budget_ns;
    uint64_t phase_from_ns; /* when the present phase 3 began */
    uint64_t round_from_ns; /* when the present round began */
    uint32_t round_left;    /* houses of the round that have not run; 0: there is no round */
} domi_auto_ratio;

typedef struct domi_thread {
    domi_manager manager;        /* manager of the houses that live on this thread (house) */
    domi_io io;                  /* the ring and the channels (io) */
    struct domus_system *system; /* the system that the thread belongs to */
    /* the configuration of the manager, which a change replaces (follow.c) */
    const domus_config *config;
    const domi_clock *clock; /* the clock of the system */
    _Atomic uint32_t orders; /* the orders that the thread has followed (orders.h); only this thread
                                writes them */
    bool timed;              /* spans are counted, because profile.level is not off */
    uint32_t level;          /* the domus_profile_level that the thread follows */
    uint64_t uncounted_from_ns; /* the thread's CPU clock when `timed` became false */
    /* records of a level with spans; NULL: nothing is recorded. The thread writes the pointer, the
     * monitor reads it. */
    _Atomic(struct domi_recorder *) recorder;
    /* measures waits while the level is counters (loop/wait_observer.h); NULL: not made yet */
    struct domi_wait_observer *waiting;
    uint32_t waiting_houses; /* houses that were ready behind the running one at the last look */
    /* figures that the thread measures (loop/observing.h); NULL: it has never measured. Written
     * once. */
    _Atomic(struct domi_observing *) observing;
    /* asks whose way is recorded (loop/flows.h); NULL: the thread has never recorded. Written
     * once. */
    _Atomic(struct domi_flows *) flows;
    /* houses run for other threads, by their indices (loop/pairs.h); NULL: none. Written once. */
    _Atomic(struct domi_pair_counters *) pairs;
    uint64_t stamp_ns;    /* the newest stamp; spans are counted from here */
    uint64_t io_start_ns; /* when phase 1 of this iteration began */
    /* length of the last phase 3 in ns, if the thread has not rested since */
    uint64_t state_took_ns;
    uint64_t next_tick_ns; /* time at which timers are looked at next */
    uint64_t next_trim_ns; /* time before which an idle thread has nothing to trim */
    uint32_t completions;  /* completions that phase 1 of this iteration reaped */
    /* number of completions that phases 1 and 2 brought, without those of the wake poll */
    uint32_t brought;
    bool capped;            /* the sleep ends at the cap (DOMI_PARK_CAP_NS), not at a timer */
    bool failed;            /* the thread's ring has failed, and the failure was reported */
    bool holds_back;        /* phase 1 has submitted nothing, because channels were ready */
    bool judge_wakeup;      /* the sleep ended, and nothing to do was found yet */
    uint32_t empty_wakeups; /* wake-ups in a row that found nothing to do */
    uint64_t spin_ns;       /* how long the thread spins before it parks; at most idle.spin */
    uint64_t rest_from_ns;  /* the start of the rest that spin.c measures */
    uint64_t until_ns;      /* when the present sleep ends by itself */
    /* the average length of the runs that this thread did in place of a sleeper */
    uint64_t stand_in_ns;
    uint64_t trusted_ns; /* time from which this thread may put wake-ups off (stand_in.c) */
    /* how long this thread was last forbidden to put wake-ups off; 0: never */
    uint64_t distrust_ns;
    bool dozes; /* the thread's next sleep is a short one (stand_in.c) */
    /* a stand-in has held this thread in its present sleep; the stand-in writes this */
    bool was_held;
    domi_stealing stealing; /* what this thread knows as a thief and as a victim */
    /* notes about waits in phase 3, with an ioRatio of `auto` */
    domi_auto_ratio auto_ratio;
    struct domi_kept *kept; /* files that loads here have kept (runtime/files/kept.h); NULL: none */
    domi_thread_counters counters; /* written by this thread, read by any thread */
    domi_log_bound log_bound;      /* bounds this thread's log lines */

    pthread_t pthread; /* the thread; valid if `started` */
    int cpu;           /* the CPU to which the thread is pinned; -1: none */
    bool started;      /* the pthread was made and not joined */

    domi_stall stall; /* written by the monitor (stall.h) */

    domi_sampled sampled; /* written by this thread: how a CPU profile samples it */
} domi_thread;

/* The manager of the calling thread; NULL on a foreign thread. Functions that wait for the system
 * check it, because a thread that runs a loop must not wait for itself. */
extern _Thread_local domi_manager *domi_thread_manager;

/* Two special values of counters.stamp_ns, besides times. */
#define DOMI_STAMP_ASLEEP UINT64_C(1) /* the last bit: the thread sleeps since the stamp */
#define DOMI_STAMP_MOVING UINT64_MAX  /* the stamp while the thread adds to a span */

/* Returns the recorder to which the thread writes; NULL: none. Relaxed: only the thread itself
 * writes the pointer. */
static inline struct domi_recorder *domi_thread_recorder(const domi_thread *thread)
{
    return atomic_load_explicit((_Atomic(struct domi_recorder *) *)(uintptr_t)&thread->recorder,
                                memory_order_relaxed);
}

/* Add the time since the last stamp to the records (loop/observing.c). */
void domi_thread_record_span(domi_thread *thread, domi_span span, uint64_t now_ns);

/* Read the clock, and add the time since the last stamp to `span`. */
static inline void domi_thread_stamp(domi_thread *thread, domi_span span)
{
    domi_thread_counters *counters = &thread->counters;

    /* This store comes before the clock is read and before the release stores below. So a reader of
     * the profile finds either spans and a stamp that belong together, or MOVING, and then it reads
     * again (READS_MAX times in profile.c). */
    atomic_store_explicit(&counters->stamp_ns, DOMI_STAMP_MOVING, memory_order_relaxed);
    uint64_t now_ns = domi_clock_now(thread->clock);

    if (thread->timed)
        atomic_store_explicit(&counters->span_ns[span],
                              domi_counter_read(&counters->span_ns[span]) + now_ns -
                                  thread->stamp_ns,
                              memory_order_release);
    if (__builtin_expect(domi_thread_recorder(thread) != NULL, 0))
        domi_thread_record_span(thread, span, now_ns);
    DOMI_PROBE_4(phase, thread->manager.index, span, thread->stamp_ns, now_ns);
    thread->stamp_ns = now_ns;
    thread->manager.now_ns = now_ns;
    atomic_store_explicit(&counters->stamp_ns, now_ns & ~DOMI_STAMP_ASLEEP, memory_order_release);
}

/* Mark the newest stamp: the thread sleeps from that stamp to the next one. */
static inline void domi_thread_stamp_asleep(domi_thread *thread)
{
    atomic_store_explicit(&thread->counters.stamp_ns, thread->stamp_ns | DOMI_STAMP_ASLEEP,
                          memory_order_release);
}

/* A number that grows with everything that a thread does, but not within one run. Any thread may
 * call this. */
uint64_t domi_thread_beat(const domi_thread *thread);

/* How many state actors are ready, as the thread has published it last. Any thread may call
 * this. */
uint32_t domi_thread_read_published_depth(const domi_thread *thread);

/* Returns how many houses are ready. Only the thread itself calls this, also within a signal
 * handler. */
uint32_t domi_thread_count_queued(const domi_thread *thread);

/* Returns the step of a stop that the thread has begun. A caller also sees everything that the
 * thread began to do in this step. Any thread may call this. */
domi_stop_step domi_thread_read_stop_step(const domi_thread *thread);

/* Returns whether the thread has to leave its loop. Called by the thread itself. */
static inline bool domi_thread_is_at_end(const domi_thread *thread)
{
    /* Relaxed: only the thread itself writes the word. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->orders,
                                memory_order_relaxed) >= domi_orders_of(DOMI_STOP_END);
}

#endif
