/* The parts of a manager: one struct for each piece of house that uses it.
 *
 * A part is named after its purpose, and its comment says which files use it. Only the owner of the
 * manager touches a part, except for fields whose comments say otherwise. A field that other
 * threads write begins a cache line of its own (DOMI_LINES), so that these threads do not slow the
 * owner down; static_asserts beside the manager hold that. */
#ifndef DOMI_HOUSE_MESSAGE_PARTS_H
#define DOMI_HOUSE_MESSAGE_PARTS_H

#include "base/counter.h"
#include "base/slab.h"
#include "base/spinlock.h"
#include "base/wheel.h"
#include "house/message/queue.h"
#include "house/message/tally.h"

#include <domus/hooks.h>
#include <domus/memory.h>

#include <stdalign.h>

/* Bytes between a field that one core writes and a field that another core uses. This is two cache
 * lines, because the hardware fetches lines in pairs. */
#define DOMI_LINES 128

#define DOMI_HOUSE_CLASSES 5 /* size classes of the slots of houses */

struct domi_promise;

/* The bounds of an actor, from the configuration; constant while threads run. */
typedef struct domi_manager_limits {
    uint32_t mailbox_max;          /* most messages in a mailbox */
    uint32_t messages_per_run_max; /* most messages that a run handles */
    /* number of a run's places that are kept for a later kind (DOMI_RUN_KEPT) */
    uint32_t run_kept;
    uint32_t conversations_max; /* most parked conversations of an actor */
} domi_manager_limits;

/* The tables of the system's names, groups, routers, remote addresses, grains, processes and
 * behaviours, and of the subscribers to dead letters; constant while threads run. A NULL field: the
 * system has no such table. */
typedef struct domi_directory {
    struct domi_names *names;
    struct domi_letters *letters;
    struct domi_groups *groups;
    struct domi_routers *routers;
    struct domi_remotes *remotes;
    struct domi_grains *grains;
    struct domi_processes *processes;
    domi_behaviours *behaviours;
} domi_directory;

/* Counters of this thread since its start; the owner adds, any thread reads. */
typedef struct domi_counters {
    domi_counter runs;                    /* runs of houses */
    domi_counter handled[DOMI_MAILBOXES]; /* messages that were handled, by mailbox */
    domi_counter failures;                /* handlers and conversations that have failed */
    domi_counter belted;                  /* sleeping threads that this thread has woken */
    domi_counter wakeups_sent;            /* sleeping threads that this one has woken */
    domi_counter dead_letters;            /* messages whose receiver was gone */
    domi_counter refusals;                /* asks and notices refused because a bound was reached */
    domi_counter busy;                    /* asks and notices refused because memory is critical */
    domi_counter trimmed_bytes;           /* bytes of slabs that were given back to the kernel */
    /* asks dropped because their deadline had passed, before they were handled or while they were
     * kept */
    domi_counter asks_expired;
    domi_counter late_replies;    /* answers for which nobody waited any more */
    domi_counter cancels;         /* conversations and unbegun asks that were cancelled */
    domi_counter circles;         /* asks that would have waited for themselves (asks.h) */
    domi_counter restarts;        /* actors that have begun anew after a failure */
    domi_counter escalations;     /* failures for which no parent had a rule */
    domi_counter passivations;    /* actors stopped at the end of their idle time */
    domi_counter spawns;          /* actors mounted here */
    domi_counter stops;           /* actors that have ended here */
    domi_counter exposed;         /* houses exposed to thieves */
    domi_counter timers_fired;    /* events of timers that were put */
    domi_counter letters_missed;  /* dead letters that a subscriber did not take */
    domi_counter waits_lost;      /* waits whose function is never called, by a mistake of a user */
    domi_counter results_unknown; /* results of functions that counted as 0 */
    domi_counter conversations_full;  /* times that an actor reached conversations_max */
    domi_counter timers_refused;      /* timers refused at timers_max */
    domi_counter thread_max_refusals; /* asks and notices refused at memory.threadMax */
} domi_counters;

/* A chain of houses that will be linked into the arrivals of one home (arrivals.h). */
typedef struct domi_link_chain {
    domi_house *newest; /* the head of the chain */
    domi_house *oldest; /* the end of the chain */
} domi_link_chain;

#define DOMI_LINKS_MAX 32u /* most houses in all chains together */

/* The chains of one batch of puts (arrivals.h). */
typedef struct domi_links {
    domi_link_chain *by_home;       /* one chain for each home */
    uint16_t homes[DOMI_LINKS_MAX]; /* indices of the homes whose chain is not empty */
    uint32_t home_count;            /* indices of the homes with a chain that is not empty */
    uint32_t houses;                /* number of houses in all chains */
    bool gathering;                 /* a batch is under way */
} domi_links;

/* The ways of messages to houses: the puts of this thread and the arrivals (mailbox.h,
 * arrivals.h). */
typedef struct domi_manager_mail {
    /* `limits.mailbox_max`; but 0 while `memory.busy` or `lent` is true, so that no put takes the
     * short way of domi_mailbox_put() then. */
    uint32_t lane_max;
    bool alone;       /* the inbox that was sorted last held only one message */
    bool lent;        /* a lent house runs here, so lane_max is 0 and its notices go by inboxes */
    domi_links links; /* houses of this batch of puts that are not in the arrivals yet */
    /* Houses with mail that is not sorted yet. Other threads push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_house *) arrivals;
    /* Time at which another thread has sent a message that it measures
     * (runtime/loop/run_observer.h); 0: none is under way. */
    _Atomic uint64_t sampled_ns;
} domi_manager_mail;

#define DOMI_SLEEPERS_MAX                                                                          \
    8u /* most sleeping threads that a thread records before it wakes them                         \
        */

/* Sleeping threads to which this thread has put something, and which it has not woken yet
 * (domi_manager_notify()). */
typedef struct domi_sleepers {
    /* Time until which wake-ups may be put off, because the owner, a thread of the loop, is as good
     * as idle (runtime/loop/stand_in.c). 0: sleepers are woken at once. */
    uint64_t until_ns;
    uint64_t since_ns; /* time at which the first sleeper was recorded */
    uint32_t count;
    uint16_t indices[DOMI_SLEEPERS_MAX]; /* indices of the sleepers' managers */
} domi_sleepers;

typedef struct domi_belt domi_belt;

/* The belts to other threads, and those that lead to this thread (belt.h). */
typedef struct domi_manager_belts {
    /* The belts to other threads, by the index of the thread. A NULL entry: this thread has never
     * used a belt to that thread. NULL: belts are not used. */
    domi_belt **to;
    uint64_t trim_at_ns; /* time of the next check for unused rings */
    domi_belt *on;       /* the belts to this thread that are on */
    domi_node *held;     /* messages for exposed houses, a circular list by its tail (carry.c) */
    bool starved;        /* at the last look there was no memory for the messages on the belts */
    bool kept_off;       /* a stand-in uses this manager, and leaves the belts to their owner */
    /* The memory of this thread is used up: senders read this, and put nothing on their belts to
     * it. */
    alignas(DOMI_LINES) _Atomic bool is_short;
    /* Belts that senders have turned on. Senders push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_belt *) linked;
} domi_manager_belts;

/* A chain of objects of one other manager that this thread has freed; the chain is pushed to its
 * owner as a whole. */
typedef struct domi_chain {
    domi_node *head; /* the first object */
    domi_node *tail; /* the last object */
} domi_chain;

/* The objects of this manager: envelopes, stacks, promises and others (pool.h). */
typedef struct domi_manager_pool {
    domi_slab slabs[DOMI_SLABS]; /* one slab for each size and kind of object */
    domi_chain *chains; /* chains of freed objects of other managers, by the index of their owner */
    uint32_t chained;   /* number of objects in all chains */
    /* an envelope of another manager that is used here again first (pool.h); NULL: none */
    domi_node *guest;
    domi_node *returned; /* objects taken from `remote` and not yet sorted into the slabs */
    /* Objects of this manager that other threads have freed. They push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) remote;
    /* Bytes of this manager's envelopes that are too large for the slabs. Other threads that free
     * such an envelope subtract, too. */
    _Atomic int64_t heap_bytes;
} domi_manager_pool;

/* Free slots of one home, kept by a thread that spawns actors there. */
typedef struct domi_slot_cache {
    domi_house *free[DOMI_HOUSE_CLASSES]; /* free slots of each size class */
    uint32_t count[DOMI_HOUSE_CLASSES];   /* number of free slots of each size class */
} domi_slot_cache;

/* The slots of one home. A thread that spawns there refills its cache from here, and home gives
 * back the slots that are too many for its own cache, all under `lock`. */
typedef struct domi_slots {
    domi_spinlock lock; /* guards the slabs below */
    /* slabs, whose free lists hold the slots that were too many for home's cache */
    domi_slab slabs[DOMI_HOUSE_CLASSES];
    domi_counter free_bytes; /* bytes in these free lists; written under `lock` */
} domi_slots;

/* The actors that live on this home, and the placement of new ones (life.h, slots.h). */
typedef struct domi_manager_births {
    domi_counter houses; /* number of actors that live on this home; any thread reads it */
    /* index of the thread on which the next actor is placed, if actors are spread */
    uint32_t next_home;
    domi_slot_cache *slots_of; /* caches of free slots, by the index of their home */
    /* Slots of this home. Other threads that spawn actors here write this field, under its lock. */
    alignas(DOMI_LINES) domi_slots slots;
} domi_manager_births;

/* The houses that have work on this thread (phases.h). */
typedef struct domi_manager_schedule {
    domi_queue ready[2]; /* queues of READY houses, by domus_kind */
    domi_fifo mounting;  /* MOUNTING houses, whose on_mount has not begun */
    domi_node *laters;   /* events of domus_later(), a circular list by its tail (later.h) */
} domi_manager_schedule;

/* The answers with which the running function was resumed. Both fields are NULL unless it was
 * resumed with several answers (take.h). */
typedef struct domi_manager_shown {
    struct domi_promise *first; /* the first of these answers */
    struct domi_promise *last;  /* the answer that domus_take_answer() found last; NULL: none yet */
} domi_manager_shown;

/* Timers and time-outs (timer.h, promise.h, notes.h). */
typedef struct domi_manager_timing {
    domi_wheel wheel;        /* wheel of the timers of actors */
    domi_wheel deadlines;    /* wheel of the time-outs of promises */
    _Atomic uint32_t timers; /* number of timers that are armed or under way; a thief reads it */
    domi_node *notes;        /* notes for home of the lent house that runs here */
    /* number of timers that the lent house has made, minus those that it freed; may wrap */
    uint32_t noted_timers;
} domi_manager_timing;

/* The progress of the system's stop, as far as this thread knows it (stop.h). */
typedef struct domi_manager_ending {
    bool closing;     /* the system stops: no new actor is spawned */
    bool has_stopped; /* the system has stopped: actors are ended in whatever state they are */
    /* abandoned blocking work has returned, so actors that could not end because of it may end */
    bool work_over;
} domi_manager_ending;

struct domi_memory_watch;

/* The watches on memory of a home's actors (memory_watch.h). `head`, `tail`, `count` and `left` are
 * written under `lock`. */
typedef struct domi_memory_watches {
    domi_spinlock lock;             /* guards the fields below */
    struct domi_memory_watch *head; /* the first watch */
    struct domi_memory_watch *tail; /* the last watch */
    /* number of watches in the list; any thread reads it, without the lock */
    _Atomic uint32_t count;
    /* number of watches that home has not visited since the last change of memory */
    uint32_t left;
    _Atomic uint32_t seen; /* number of that change; written under the lock */
} domi_memory_watches;

/* The state of the passes that give memory of slabs back (trim.h). Times are those of `now_ns`. */
typedef struct domi_trim {
    uint32_t slab;     /* index of the slab that the pass has reached */
    bool begun;        /* the trim of that slab has begun */
    bool under_way;    /* a pass has begun and has not ended */
    bool gained;       /* the last pass, or the one under way, has given memory back */
    uint64_t mapped;   /* bytes of all slabs at the last check */
    uint64_t next_ns;  /* no pass begins before this time */
    uint64_t wait_ns;  /* wait after a pass while memory is not short, in nanoseconds */
    uint64_t short_ns; /* one minute after the last check that found memory short */
} domi_trim;

/* The reaction of the thread to a shortage of memory (trim.h, memory_watch.h). */
typedef struct domi_manager_memory {
    bool at_max;                      /* the last message was refused because of memory.threadMax */
    bool busy;                        /* memory is critical: asks and notices are refused */
    uint32_t pressure_seen;           /* the level when `pressure` was read last */
    const _Atomic uint32_t *pressure; /* address of the system's domus_memory_level; constant */
    domi_trim trim;                   /* state of the pass that gives memory back */
    domi_counter spare_bytes; /* free bytes of slabs in chunks that the last trim had to keep */
    /* Watches on memory. Any thread that arms or cancels a watch here writes this field, under its
     * lock. */
    alignas(DOMI_LINES) domi_memory_watches watches;
} domi_manager_memory;

/* The houses that this home lends, and the numbers by which idle threads choose a victim
 * (loan.h). */
typedef struct domi_manager_loans {
    uint32_t lent; /* number of exposed houses */
    /* Loans that have come back. Thieves push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) returns;
    /* Guards the houses that thieves may take. `shared` is used under this lock; `shared_count` is
     * written under it and read by any thread. */
    alignas(DOMI_LINES) domi_spinlock shared_lock;
    domi_fifo shared;              /* the houses that thieves may take, oldest first */
    _Atomic uint32_t shared_count; /* number of houses in `shared` */
    /* Number of thieves that want houses of this thread now; each adds and subtracts itself. */
    alignas(DOMI_LINES) _Atomic uint32_t thieves;
    /* Number of ready state actors here. Home publishes it at each look between runs; idle threads
     * read it. */
    alignas(DOMI_LINES) _Atomic uint32_t readies;
    /* the same number as `readies`, but 0 if runs here are shorter than a loan takes */
    _Atomic uint32_t lendable;
} domi_manager_loans;

/* The behaviour of the actor that runs, and the type of the message that it handles. turn.h sets
 * them, and a stall report reads them from another thread. */
typedef struct domi_activity {
    /* behaviour of the running actor; NULL: no actor runs */
    _Atomic(const domus_behaviour *) running;
    /* type of the handled message; NULL: a conversation is resumed without a message */
    _Atomic(const domus_type *) handling;
} domi_activity;

#endif
