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

/* The longest sleep of a thread in nanoseconds (1 s). So a lost wake-up shows as a number in the
 * profile, and not as a hang. */
#define DOMI_PARK_CAP_NS UINT64_C(1000000000)

/* A span is a kind of use of a thread's time: the time between two stamps is added to one span.
 * When the profile is read, profile.c divides the time of DOMI_SPAN_ENTER into submitting and
 * sleeping. */
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
    domi_counter span_ns[DOMI_SPANS]; /* nanoseconds that the thread has spent in each domi_span */
    /* newest stamp of the thread: a time of its clock, or a special value (DOMI_STAMP_ASLEEP) */
    domi_counter stamp_ns;
    domi_counter iterations;        /* number of iterations of the thread's loop */
    domi_counter deadline_expiries; /* number of phases 3 that their deadline has ended */
    /* nanoseconds that phases 3 took beyond their deadlines, in all */
    domi_counter deadline_overrun_ns;
    domi_counter parks; /* number of times that the thread went to sleep */
    /* number of sleeps that another thread has ended by a wake-up */
    domi_counter wakeups_received;
    /* number of wake-ups after which the thread found nothing to do */
    domi_counter wakeups_empty;
    domi_counter wake_rearms; /* number of times that the wake poll was armed anew */
    /* number of sleeps that ended after DOMI_PARK_CAP_NS though there was work; 0 without a bug */
    domi_counter cap_wakeups_with_work;
    /* sum over all phases 3 of the actors that waited times the nanoseconds that they waited */
    domi_counter ready_ns;
    /* sum of completions times the nanoseconds of the phase 3 before them */
    domi_counter io_behind_ns;
    domi_counter steals_wanted; /* number of times that this thread, when idle, chose a victim */
    domi_counter steals;        /* number of houses of other threads that this thread has run */
    domi_counter files_kept;    /* number of loads of files that were answered from kept bytes */
    domi_counter tid;           /* kernel's number of the thread (tid); 0: it has none yet */
    domi_counter cpu_clock;     /* clockid_t of the thread's CPU clock */
    domi_counter cpu_start_ns;  /* CPU time of the thread when its loop began */
    /* CPU time of the thread when its loop ended; 0: the loop goes on */
    domi_counter cpu_end_ns;
} domi_thread_counters;

/* The limit of log lines in one second (log.c). Any thread may use it. */
typedef struct domi_log_bound {
    /* second in the upper half, number of lines wanted in that second in the lower half */
    _Atomic uint64_t word;
    _Atomic uint64_t dropped; /* number of log lines that were dropped so far */
} domi_log_bound;

/* How far the monitor has come with the present stall of a thread (stall.h). */
typedef enum domi_stall_stage {
    DOMI_STALL_NONE,
    DOMI_STALL_FOUND, /* stage of a stall: it is counted, and its backtrace is awaited */
    DOMI_STALL_TOLD,
} domi_stall_stage;

typedef struct domi_stall {
    alignas(DOMI_LINES) domi_stall_counts counts;

    /* How far the monitor has come with the thread's present stall. Only the monitor uses this
     * field and the following ones. */
    domi_stall_stage stage;
    /* count of the thread's beats (domi_thread_count_beats()) at the monitor's last look */
    uint64_t beat;
    uint64_t looked_ns;    /* time of the monitor's last look; 0: the monitor has slept since */
    uint64_t from_ns;      /* time before the present run began, or just at its begin */
    uint64_t since_ns;     /* time at which the present run was under way, as first seen */
    uint64_t found_ns;     /* time at which the monitor found the stall */
    uint64_t cpu_ns;       /* CPU time of the thread at the time `cpu_since_ns` */
    uint64_t cpu_since_ns; /* time at which `cpu_ns` was read; 0: not yet */
    /* behaviour of the actor whose handler runs in the stall; NULL: no handler runs */
    const domus_behaviour *behaviour;
    /* type of the message that is handled in the stall; NULL: none */
    const domus_type *type;
    /* number of the stall in the history of stalls; 0: the stall was not reported */
    uint64_t number;
    /* negative errno that says why the stall has no backtrace; 0: the backtrace is awaited */
    int no_trace;

    domi_backtrace backtrace; /* backtrace of the thread in its present stall */
    /* The thread's signal handler writes the next two fields, together with the backtrace. */
    /* count of the thread's beats (domi_thread_count_beats()) when the backtrace was taken */
    uint64_t traced_beat;
    uint32_t traced_queued; /* number of houses that were ready when the backtrace was taken */
} domi_stall;

/* value of `victim` for a thread that wants no houses of others */
#define DOMI_NO_VICTIM UINT32_MAX

/* Number of iterations for which a thief in a simulation waits for a house to be exposed. This
 * replaces scheduler.steal.patience, because each iteration takes steps of the test. */
#define DOMI_PATIENCE_SIMULATED 8u

/* The notes of a thread as a thief and as a victim (steal.c). */
typedef struct domi_stealing {
    /* number of iterations in a row in which the thread had no work of its own */
    uint64_t idle_count;
    uint64_t runs_seen; /* number of runs of this thread at its last look whether it is idle */
    /* index of the thread whose houses this thief wants; DOMI_NO_VICTIM: it wants none */
    uint32_t victim;
    uint32_t patience;     /* number of iterations for which this thief has waited for a house */
    uint32_t patience_max; /* most iterations for which a thief stays awake to wait for a house
                              (scheduler.steal.patience) */
    /* house that this thief has borrowed and not run yet, as a loan; NULL: none */
    struct domi_loan *loan;
    /* index at which a victim begins to look for a sleeper to wake (modulo threads) */
    uint32_t next_sleeper;
    uint32_t shown;          /* number of exposed houses when that number last changed */
    uint64_t shown_since_ns; /* time at which the number of exposed houses last changed */
    uint64_t run_ns;         /* average length of a run on this thread in nanoseconds */
    uint64_t min_run_ns;     /* nanoseconds: if the average run is shorter, no house is lent */
    /* time until which this thread, as a victim, exposes nothing and wakes no sleeper */
    uint64_t alone_until_ns;
    domi_random random; /* source of the random numbers by which a thief chooses victims */
} domi_stealing;

/* The notes of phase 3 with an ioRatio of `auto` (loop/auto_ratio.h). All zeros at the start. */
typedef struct domi_auto_ratio {
    /* budget in ns of the next phase 3 for which io waits; less than the least budget counts as
     * that */
    uint64_t budget_ns;
    uint64_t phase_from_ns; /* time at which the present phase 3 began */
    uint64_t round_from_ns; /* time at which the present round of ready houses began */
    /* number of houses of the round that have not run yet; 0: there is no round */
    uint32_t round_left;
} domi_auto_ratio;

typedef struct domi_thread {
    /* manager of the thread, the home of the actors that live on it (house/) */
    domi_manager manager;
    domi_io io;                  /* io of the thread: its ring and its channels (io/) */
    struct domus_system *system; /* system to which the thread belongs */
    /* configuration of the thread's manager, which a change replaces (follow.c) */
    const domus_config *config;
    const domi_clock *clock; /* clock of the system */
    /* orders of the system that the thread has followed (orders.h); only this thread writes them */
    _Atomic uint32_t orders;
    /* true: the thread counts its spans, because profile.level is not off */
    bool timed;
    /* level of the profile that the thread applies, a domus_profile_level */
    uint32_t level;
    uint64_t uncounted_from_ns; /* CPU time of the thread when it stopped to count its spans */
    /* Recorder of the thread while the level is spans; NULL: nothing is recorded. The thread writes
     * the pointer, the monitor reads it. */
    _Atomic(struct domi_recorder *) recorder;
    /* measures how long messages wait while the level is counters (loop/wait_observer.h); NULL: not
     * made yet */
    struct domi_wait_observer *waiting;
    /* number of houses that were ready behind the running one at the last look */
    uint32_t waiting_houses;
    /* Histograms that the thread fills (loop/observing.h); NULL: it has never measured. Written
     * once. */
    _Atomic(struct domi_observing *) observing;
    /* Asks whose way the thread records (loop/flows.h); NULL: it has never recorded. Written
     * once. */
    _Atomic(struct domi_flows *) flows;
    /* Counters of the houses that the thread has run for each other thread (loop/pairs.h); NULL:
     * none. Written once. */
    _Atomic(struct domi_pair_counters *) pairs;
    /* time of the thread's newest stamp, from which the present span is counted */
    uint64_t stamp_ns;
    uint64_t io_start_ns; /* time at which phase 1 of this iteration began */
    /* length of the last phase 3 in ns; 0: the thread has rested since */
    uint64_t state_took_ns;
    uint64_t next_tick_ns; /* time at which the thread looks at timers next */
    uint64_t next_trim_ns; /* time before which an idle thread finds nothing to trim */
    uint32_t completions;  /* number of completions that phase 1 of this iteration has reaped */
    /* number of completions that phases 1 and 2 have brought, without those of the wake poll */
    uint32_t brought;
    /* true: the present sleep ends at the cap (DOMI_PARK_CAP_NS), and not at a timer */
    bool capped;
    bool failed; /* true: the thread's ring has failed, and that was reported */
    /* true: phase 1 has submitted nothing, because only channels were ready */
    bool holds_back;
    bool judge_wakeup;      /* true: the sleep has ended, and no reason for that was found yet */
    uint32_t empty_wakeups; /* number of wake-ups in a row after which nothing was to be done */
    /* nanoseconds for which the thread spins before it parks; at most idle.spin */
    uint64_t spin_ns;
    uint64_t rest_from_ns; /* time at which the rest began whose length spin.c measures */
    uint64_t until_ns;     /* time at which the present sleep ends by itself */
    /* average length of the runs that this thread did in place of a sleeper, in nanoseconds */
    uint64_t stand_in_ns;
    /* time from which on this thread may stand in for sleepers and not wake them (stand_in.c) */
    uint64_t trusted_ns;
    /* nanoseconds for which this thread was last distrusted as a stand-in; 0: it never was */
    uint64_t distrust_ns;
    bool dozes; /* true: the thread's next sleep is a doze, a short one (stand_in.c) */
    /* true: a stand-in has held this thread in its present sleep; the stand-in writes this */
    bool was_held;
    domi_stealing stealing; /* what this thread notes as a thief and as a victim */
    /* what phase 3 notes with an ioRatio of `auto` */
    domi_auto_ratio auto_ratio;
    /* files that loads on this thread have kept (runtime/files/kept.h); NULL: none */
    struct domi_kept *kept;
    /* counters of the thread, which it writes itself, and any thread may read */
    domi_thread_counters counters;
    domi_log_bound log_bound; /* limits how many log lines this thread writes in a second */

    pthread_t pthread; /* handle of the OS thread; valid if `started` */
    int cpu;           /* CPU to which the thread is pinned; -1: it is not pinned */
    bool started;      /* true: the OS thread was made and not joined yet */

    domi_stall stall; /* stall watch of this thread, which the monitor writes (stall.h) */

    /* data by which a CPU profile samples this thread, which it writes itself */
    domi_sampled sampled;
} domi_thread;

/* The manager of the calling thread; NULL on a foreign thread. Functions that wait for the system
 * check it, because a thread that runs a loop must not wait for itself. */
extern _Thread_local domi_manager *domi_thread_manager;

/* Two special values of the counter stamp_ns, which are no times. */

/* lowest bit of stamp_ns: the thread sleeps from this stamp to its next one */
#define DOMI_STAMP_ASLEEP UINT64_C(1)
#define DOMI_STAMP_MOVING UINT64_MAX /* value of the stamp while the thread adds time to a span */

/* Returns the recorder to which this thread writes; NULL: it records nothing. Relaxed: only the
 * thread itself writes the pointer. */
static inline struct domi_recorder *domi_thread_recorder(const domi_thread *thread)
{
    return atomic_load_explicit((_Atomic(struct domi_recorder *) *)(uintptr_t)&thread->recorder,
                                memory_order_relaxed);
}

/* Add the time since the last stamp to the thread's recorder, as a record of the span
 * (loop/observing.c). */
void domi_thread_record_span(domi_thread *thread, domi_span span, uint64_t now_ns);

/* Read the clock, stamp the thread with the time, and add the time since the last stamp to
 * `span`. */
static inline void domi_thread_stamp_time(domi_thread *thread, domi_span span)
{
    domi_thread_counters *counters = &thread->counters;

    /* This store comes before the clock is read and before the release stores below. So a thread
     * that reads the profile finds either spans and a stamp that belong together, or MOVING, and
     * then it reads again (READS_MAX times in profile.c). */
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

/* Mark the thread's newest stamp: from it to the next stamp the thread sleeps. */
static inline void domi_thread_mark_stamp_as_asleep(domi_thread *thread)
{
    atomic_store_explicit(&thread->counters.stamp_ns, thread->stamp_ns | DOMI_STAMP_ASLEEP,
                          memory_order_release);
}

/* Returns a number that grows with everything that the thread does, but not within one run. Any
 * thread may call this. */
uint64_t domi_thread_count_beats(const domi_thread *thread);

/* Returns how many state actors of the thread are ready, as it has published that last. Any thread
 * may call this. */
uint32_t domi_thread_read_published_ready_count(const domi_thread *thread);

/* Returns how many houses of the thread are ready now. Only the thread itself calls this, also
 * within a signal handler. */
uint32_t domi_thread_count_ready_houses(const domi_thread *thread);

/* Returns the step of a stop that the thread has begun. The caller then also sees what the thread
 * did when it began the step. Any thread may call this. */
domi_stop_step domi_thread_read_stop_step(const domi_thread *thread);

/* Returns whether the thread has to leave its loop, because the stop has come to its last step.
 * Called by the thread itself. */
static inline bool domi_thread_has_to_leave_loop(const domi_thread *thread)
{
    /* Relaxed: only the thread itself writes this word. */
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&thread->orders,
                                memory_order_relaxed) >= domi_orders_of_stop(DOMI_STOP_END);
}

#endif
