/* A thread: its manager, its io, its phases. One pinned OS thread runs it; a simulator may run the
 * phases of many by turns, because each phase is a function of its own and time is handed in.
 *
 * Owner thread only, except `counters`, which anyone may read. */
#ifndef DOMI_RUNTIME_SYSTEM_THREAD_H
#define DOMI_RUNTIME_SYSTEM_THREAD_H

#include "base/clock.h"
#include "base/random.h"
#include "io/resources/io.h"
#include "runtime/system/stall.h"

#include <domus/profile.h>

#include <pthread.h>

struct domus_system;

/* A park is cut short after this: a lost wake-up would be a number in the profile, not a hang. */
#define DOMI_PARK_CAP_NS UINT64_C(1000000000)

/* Where the time between two stamps goes. An enter's is divided into submit and sleep when the
 * profile is read (profile.c). */
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
    domi_counter span_ns[DOMI_SPANS];
    domi_counter stamp_ns; /* the newest stamp */
    domi_counter iterations;
    domi_counter deadline_expiries;
    domi_counter deadline_overrun_ns;
    domi_counter parks;
    domi_counter wakeups_received;
    domi_counter wakeups_empty;
    domi_counter wake_rearms;
    domi_counter cap_wakeups_with_work;
    domi_counter steals_wanted;
    domi_counter steals;
    domi_counter following;    /* `doing`, for the others */
    domi_counter cpu_clock;    /* the clockid_t of the thread's CPU clock */
    domi_counter cpu_start_ns; /* of the thread's CPU clock when its loop began */
    domi_counter cpu_end_ns;   /* ... and ended; 0: it runs */
} domi_thread_counters;

/* What the system wants of its threads; written by its owner, then each thread is woken. */
typedef enum domi_wanted {
    DOMI_WANTED_RUN,
    DOMI_WANTED_DRAIN, /* stop accepting, answer what has come, close */
    DOMI_WANTED_ABORT, /* reset what is left */
    DOMI_WANTED_CLOSE, /* spawn nothing any more */
    DOMI_WANTED_STOP,  /* stop every actor, children before their parents */
    DOMI_WANTED_END,   /* leave the loop */
} domi_wanted;

/* How many log lines pass (log.c). Any thread. */
typedef struct domi_log_bound {
    _Atomic uint64_t word;    /* the second, and the lines in it */
    _Atomic uint64_t dropped; /* in all */
} domi_log_bound;

#define DOMI_NO_VICTIM UINT32_MAX

/* Iterations that a simulated thief waits to be shown a house, in place of
 * scheduler.steal.patience: each of them is a step of the scenario. */
#define DOMI_PATIENCE_SIMULATED 8u

/* A thread as a thief, and as a victim (steal.c). */
typedef struct domi_stealing {
    uint64_t idle_count; /* consecutive iterations without work of its own */
    uint64_t runs_seen;
    uint32_t victim;         /* whose houses it is after; DOMI_NO_VICTIM */
    uint32_t patience;       /* iterations for which it has waited for one */
    uint32_t patience_max;   /* then it sleeps */
    struct domi_loan *loan;  /* taken, and to be run */
    uint32_t next_sleeper;   /* whom it looks at first for one to wake */
    uint32_t shown;          /* when it last became less, or more */
    uint64_t shown_since_ns; /* ... which was then */
    uint64_t run_ns;         /* of a house here, on average */
    uint64_t min_run_ns;     /* shorter ones are not lent */
    uint64_t alone_until_ns; /* nobody is woken: nothing here may be lent */
    domi_random random;
} domi_stealing;

typedef struct domi_thread {
    domi_manager manager;
    domi_io io;
    struct domus_system *system;
    const domus_config *config;
    const domi_clock *clock;
    _Atomic uint32_t *wanted; /* the system's */
    uint32_t doing;           /* which of the wanted it has begun */
    bool timed;               /* profile.level is not off */
    uint64_t stamp_ns;
    uint64_t io_start_ns; /* of this iteration's work in phases 1 and 2 */
    uint64_t next_tick_ns;
    uint32_t completions;   /* of phase 1 */
    uint32_t brought;       /* completions of phases 1 and 2, but those of the wake poll */
    bool capped;            /* the cap would end the sleep, not a timer */
    bool failed;            /* its ring has, and the system knows */
    bool judge_wakeup;      /* the sleep ended, and so far for nothing */
    uint32_t empty_wakeups; /* in a row */
    uint64_t spin_ns;       /* for how long it looks for work before it parks, for now */
    uint64_t rest_from_ns;  /* since when it has had none */
    domi_stealing stealing;
    domi_thread_counters counters;
    domi_log_bound log_bound;

    pthread_t pthread;
    int cpu; /* -1: not pinned */
    bool started;

    domi_stall stall; /* the monitor's */
} domi_thread;

/* The manager of the calling thread, NULL on foreign ones: who runs a loop must not wait for it. */
extern _Thread_local domi_manager *domi_thread_manager;

/* What counters.stamp_ns says beside the time. */
#define DOMI_STAMP_ASLEEP UINT64_C(1) /* in its last bit: since then the thread sleeps */
#define DOMI_STAMP_MOVING UINT64_MAX  /* a span is being added to */

/* Read the clock; the time since the last stamp was spent on `span`. */
static inline void domi_thread_stamp(domi_thread *thread, domi_span span)
{
    domi_thread_counters *counters = &thread->counters;

    /* Before the clock is read, and before the release below: who reads the profile finds spans and
     * stamp of one moment, or this, and looks again. */
    atomic_store_explicit(&counters->stamp_ns, DOMI_STAMP_MOVING, memory_order_relaxed);
    uint64_t now_ns = domi_clock_now(thread->clock);

    if (thread->timed)
        atomic_store_explicit(&counters->span_ns[span],
                              domi_counter_read(&counters->span_ns[span]) + now_ns -
                                  thread->stamp_ns,
                              memory_order_release);
    thread->stamp_ns = now_ns;
    thread->manager.now_ns = now_ns;
    atomic_store_explicit(&counters->stamp_ns, now_ns & ~DOMI_STAMP_ASLEEP, memory_order_release);
}

/* From the last stamp to the next one it sleeps. */
static inline void domi_thread_stamp_asleep(domi_thread *thread)
{
    atomic_store_explicit(&thread->counters.stamp_ns, thread->stamp_ns | DOMI_STAMP_ASLEEP,
                          memory_order_release);
}

/* loop.c: the phases, and the loop over them. */
void domi_phase_io(domi_thread *thread);
void domi_phase_channels(domi_thread *thread);
void domi_phase_state(domi_thread *thread);
void domi_thread_loop(domi_thread *thread);

/* park.c: look for a while (idle.spin), then sleep in the ring until something comes. In two
 * halves, because a simulated thread sleeps between them, in no ring. */
void domi_thread_rest(domi_thread *thread);

/* False: there is something to do. True: the park word is SLEEPING and nothing was left (M3); the
 * sleep ends when it is NOTIFIED, at the latest at `until_ns`, and rest_end() is called. */
bool domi_thread_rest_begin(domi_thread *thread, uint64_t *ret_until_ns);
void domi_thread_rest_end(domi_thread *thread, uint64_t until_ns);

/* trim.c: give free memory back, one step (of up to `objects`). True: there may be more to do. */
bool domi_thread_trim(domi_thread *thread, uint32_t objects);

/* spin.c: look for work for as long as it is worth now. True if something came that the loop has to
 * take. Then, when a rest has ended: what its length says about the next. */
bool domi_thread_spin(domi_thread *thread);
void domi_thread_learn_spin(domi_thread *thread);

/* When a sleep ends by itself: by the next timer, or the cap. */
uint64_t domi_thread_sleep_until(const domi_thread *thread);

/* When the next timer is due; UINT64_MAX: none is armed. */
uint64_t domi_thread_due_ns(const domi_thread *thread);

/* steal.c. So many houses have run in so long. */
void domi_thread_note_runs(domi_thread *thread, uint32_t houses, uint64_t ns);

/* Home looks up from its work for the first time after so many houses, when `count` are ready at
 * the beginning of its phase. */
uint32_t domi_thread_first_look(const domi_thread *thread, uint32_t count);

/* Home has looked up after `houses` of them, and looks up again after so many. */
uint32_t domi_thread_next_look(const domi_thread *thread, uint32_t houses);

/* So many are ready in its queue: let the others know. */
void domi_thread_publish(domi_thread *thread, uint32_t count);

/* A victim's: at each look, show what thieves want, take back what nobody does; `queue` is
 * the one that it runs. */
void domi_thread_share(domi_thread *thread, domi_queue *queue);

/* A thief's: an iteration has found work of its own, or none. The second: true if the thread is not
 * to sleep; stealing.loan, if there is one then, is to be repaid first. */
void domi_thread_busy(domi_thread *thread);
bool domi_thread_steal(domi_thread *thread);
bool domi_thread_is_waking(const domi_thread *thread); /* it was woken to look for work of others */
void domi_thread_run_loan(domi_thread *thread);

/* Phase 1 after a sleep that ended for nothing, as it seemed: count an empty wake-up if phase 1 has
 * brought nothing either. */
void domi_thread_judge_wakeup(domi_thread *thread);

/* Write to the eventfd of a sleeping manager; domi_manager.wake. Any thread. */
void domi_thread_wake(domi_manager *manager);

/* Anything to do before a park. */
bool domi_thread_has_work(const domi_thread *thread);

/* follow.c: begin what the system wants; tell it when nothing is open here any more. */
void domi_thread_follow(domi_thread *thread);

/* thread.c: make what a thread needs, run it, end it. Errors leave a line in `error`. */
int domi_thread_init(domi_thread *thread, struct domus_system *system, uint32_t index, int cpu,
                     const domi_backend *backend, char *error, size_t error_size);
int domi_thread_start(domi_thread *thread, char *error, size_t error_size);
void domi_thread_join(domi_thread *thread);
void domi_thread_fini(domi_thread *thread);

#endif
