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

/* The bounds of each actor, from the configuration; constant while threads run. */
typedef struct domi_manager_limits {
    uint32_t mailbox_max;          /* most messages in a mailbox of an actor */
    uint32_t messages_per_run_max; /* most messages that one run of an actor handles */
    /* number of a run's places that are kept for a later kind of mail (DOMI_RUN_KEPT) */
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
    domi_counter runs;                    /* runs of houses on this thread */
    domi_counter handled[DOMI_MAILBOXES]; /* messages that this thread has handled, by mailbox */
    domi_counter failures;     /* handlers and conversations of this thread that have failed */
    domi_counter belted;       /* notices that this thread has put on belts to other threads */
    domi_counter wakeups_sent; /* sleeping threads that this thread has woken */
    domi_counter dead_letters; /* dead letters: messages that nobody handled */
    domi_counter refusals; /* refused asks and notices, because as many messages waited as may */
    domi_counter busy;     /* refused asks and notices, because memory is critical */
    /* bytes of this thread's slabs that were given back to the kernel */
    domi_counter trimmed_bytes;
    /* dropped asks whose deadline had passed, before they were handled or while they were kept */
    domi_counter asks_expired;
    domi_counter late_replies; /* answers for which nobody waited any more */
    /* conversations, and asks that no actor had begun to handle, that were cancelled */
    domi_counter cancels;
    domi_counter circles;  /* asks that would have waited for themselves (asks.h) */
    domi_counter restarts; /* actors that have begun anew after a failure */
    /* failures that a parent escalated, or for which no parent had rules */
    domi_counter escalations;
    domi_counter passivations; /* actors stopped at the end of their idle time */
    domi_counter spawns;       /* actors that were mounted on this thread */
    domi_counter stops;        /* actors that have ended on this thread */
    domi_counter exposed;      /* houses that this thread has exposed to thieves */
    domi_counter timers_fired; /* events of timers that were put to actors */
    /* letters to subscribers that were not put, mostly because a mailbox refused them */
    domi_counter letters_missed;
    /* conversations whose function to resume is never called, by a mistake of a user */
    domi_counter waits_lost;
    /* results of users' functions that counted as 0, because they are not allowed */
    domi_counter results_unknown;
    /* times that an actor's parked conversations reached conversations_max */
    domi_counter conversations_full;
    domi_counter timers_refused; /* timers refused because a thread had timers_max of them */
    /* asks and notices refused because this thread's memory had reached memory.threadMax */
    domi_counter thread_max_refusals;
} domi_counters;

/* A chain of houses that will be linked into the arrivals of one home (arrivals.h). */
typedef struct domi_link_chain {
    domi_house *newest; /* the newest house, at the head of the chain */
    domi_house *oldest; /* the oldest house, at the end of the chain */
} domi_link_chain;

#define DOMI_LINKS_MAX 32u /* most houses in all chains of one batch together */

/* The chains of one batch of puts (arrivals.h). */
typedef struct domi_links {
    domi_link_chain *by_home;       /* chains of houses, one for each home */
    uint16_t homes[DOMI_LINKS_MAX]; /* indices of those homes whose chain is not empty */
    uint32_t home_count;            /* number of homes whose chain is not empty */
    uint32_t houses;                /* number of houses in all chains of the batch */
    bool gathering;                 /* whether a batch of puts is under way */
} domi_links;

/* The ways of messages to houses: the puts of this thread and the arrivals (mailbox.h,
 * arrivals.h). */
typedef struct domi_manager_mail {
    /* Most messages in a mailbox for the short way of domi_mailbox_put(): `limits.mailbox_max`; but
     * 0 while `memory.busy` or `lent` is true, so that no put takes that way then. */
    uint32_t lane_max;
    bool alone; /* whether the inbox that this thread sorted last held only one message */
    /* whether a lent house runs here; then lane_max is 0, and its notices go by inboxes */
    bool lent;
    /* houses of the present batch of puts that are not in the arrivals of their homes yet */
    domi_links links;
    /* Houses of this home with mail that is not sorted yet. Other threads push, and the owner takes
     * all. */
    alignas(DOMI_LINES) _Atomic(domi_house *) arrivals;
    /* Time at which another thread has sent a message to this thread in order to measure its
     * waiting (runtime/loop/run_observer.h); 0: no measurement is under way. */
    _Atomic uint64_t sampled_ns;
} domi_manager_mail;

/* most sleeping threads that a thread records before it wakes them */
#define DOMI_SLEEPERS_MAX 8u

/* Sleeping threads to which this thread has put something, and which it has not woken yet
 * (domi_manager_notify_of_push()). */
typedef struct domi_sleepers {
    /* Time until which wake-ups may be put off, because the owner, a thread of the loop, is as good
     * as idle (runtime/loop/stand_in.c). 0: sleepers are woken at once. */
    uint64_t until_ns;
    /* time at which this thread recorded the first sleeping thread that it has to wake */
    uint64_t since_ns;
    uint32_t count;
    /* indices of the managers of the recorded sleeping threads */
    uint16_t indices[DOMI_SLEEPERS_MAX];
} domi_sleepers;

typedef struct domi_belt domi_belt;

/* The belts to other threads, and those that lead to this thread (belt.h). */
typedef struct domi_manager_belts {
    /* The belts to other threads, by the index of the thread. A NULL entry: this thread has never
     * used a belt to that thread. NULL: belts are not used. */
    domi_belt **to;
    uint64_t trim_at_ns; /* time of the next check of this thread's belts for unused rings */
    domi_belt *on;       /* list of the belts to this thread that are on */
    /* messages of belts for exposed houses, a circular list by its tail (carry.c) */
    domi_node *held;
    /* whether this thread had no memory for the messages on its belts at the last look */
    bool starved;
    /* whether a stand-in uses this manager; it leaves the belts to the manager's owner */
    bool kept_off;
    /* Whether the memory of this thread is used up: senders read this, and then put nothing on
     * their belts to it. */
    alignas(DOMI_LINES) _Atomic bool is_short;
    /* List of the belts to this thread that senders have turned on. Senders push, and the owner
     * takes all. */
    alignas(DOMI_LINES) _Atomic(domi_belt *) linked;
} domi_manager_belts;

/* A chain of objects of one other manager that this thread has freed; the chain is pushed to its
 * owner as a whole. */
typedef struct domi_chain {
    domi_node *head; /* the first object of the chain */
    domi_node *tail; /* the last object of the chain */
} domi_chain;

/* The objects of this manager: envelopes, stacks, promises and others (pool.h). */
typedef struct domi_manager_pool {
    domi_slab slabs[DOMI_SLABS]; /* slabs, one for each size and kind of object */
    domi_chain *chains; /* chains of freed objects of other managers, by the index of their owner */
    uint32_t chained;   /* number of freed objects in all chains to other managers */
    /* the guest: a freed envelope of another manager that this one takes next (pool.h); NULL:
     * none */
    domi_node *guest;
    /* objects that were taken from `remote` and are not yet sorted into the slabs */
    domi_node *returned;
    /* Objects of this manager that other threads have freed. These threads push, and the owner
     * takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) remote;
    /* Bytes of this manager's envelopes that are too large for the slabs. Other threads that free
     * such an envelope subtract, too. */
    _Atomic int64_t heap_bytes;
} domi_manager_pool;

/* Free slots of one home, kept by a thread that spawns actors there. */
typedef struct domi_slot_cache {
    domi_house *free[DOMI_HOUSE_CLASSES]; /* lists of free slots, one for each size class */
    uint32_t count[DOMI_HOUSE_CLASSES];   /* number of free slots in the list of each size class */
} domi_slot_cache;

/* The slots of one home. A thread that spawns there refills its cache from here, and home gives
 * back the slots that are too many for its own cache, all under `lock`. */
typedef struct domi_slots {
    domi_spinlock lock; /* lock that guards the slabs below */
    /* slabs of slots, whose free lists hold the slots that were too many for home's cache */
    domi_slab slabs[DOMI_HOUSE_CLASSES];
    /* bytes of the free slots in the slabs' free lists; written under `lock` */
    domi_counter free_bytes;
} domi_slots;

/* The actors that live on this home, and the placement of new ones (life.h, slots.h). */
typedef struct domi_manager_births {
    domi_counter houses; /* number of actors that live on this home; any thread reads it */
    /* index of the thread on which the next actor is placed, when actors are spread over threads */
    uint32_t next_home;
    domi_slot_cache *slots_of; /* caches of free slots of other homes, by the index of the home */
    /* Slots of this home. Other threads that spawn actors here write this field, under its lock. */
    alignas(DOMI_LINES) domi_slots slots;
} domi_manager_births;

/* The houses that have work on this thread (phases.h). */
typedef struct domi_manager_schedule {
    domi_queue ready[2]; /* queues of READY houses, by domus_kind */
    domi_fifo mounting;  /* queue of MOUNTING houses, whose on_mount has not begun */
    domi_node *laters;   /* events of domus_later(), a circular list by its tail (later.h) */
} domi_manager_schedule;

/* The answers with which the running function was resumed. Both fields are NULL unless it was
 * resumed with several answers (take.h). */
typedef struct domi_manager_shown {
    struct domi_promise *first; /* the first of the answers with which the function was resumed */
    struct domi_promise *last;  /* the answer that domus_take_answer() found last; NULL: none yet */
} domi_manager_shown;

/* The part for timers and time-outs (timer.h, promise.h, notes.h). */
typedef struct domi_manager_timing {
    domi_wheel wheel;     /* timer wheel for the timers of actors */
    domi_wheel deadlines; /* timer wheel for the time-outs of promises */
    /* number of this home's timers that are armed or whose event is under way; a thief reads it */
    _Atomic uint32_t timers;
    domi_node *notes; /* notes for its home that the lent house running here leaves (notes.h) */
    /* number of timers that the lent house running here has made, minus those it freed; may wrap */
    uint32_t noted_timers;
} domi_manager_timing;

/* The progress of the system's stop, as far as this thread knows it (stop.h). */
typedef struct domi_manager_ending {
    bool closing; /* whether the system stops, so that no new actor is spawned */
    /* whether the system has stopped: actors are ended in whatever state they are */
    bool has_stopped;
    /* whether abandoned blocking work has returned, so that actors that it kept from ending may
     * end */
    bool work_over;
} domi_manager_ending;

struct domi_memory_watch;

/* The watches on memory of a home's actors (memory_watch.h). `head`, `tail`, `count` and `left` are
 * written under `lock`. */
typedef struct domi_memory_watches {
    domi_spinlock lock; /* lock that guards the fields of the list of watches that follow */
    struct domi_memory_watch *head; /* the first watch on memory */
    struct domi_memory_watch *tail; /* the last watch on memory */
    /* number of watches on memory in the list; any thread reads it, without the lock */
    _Atomic uint32_t count;
    /* number of watches that home has not visited since memory last changed its level */
    uint32_t left;
    _Atomic uint32_t seen; /* number of that change of memory; written under the lock */
} domi_memory_watches;

/* The state of the passes that give memory of slabs back (trim.h). Times are on the clock of
 * `now_ns`. */
typedef struct domi_trim {
    uint32_t slab;    /* index of the slab that the pass over the slabs has reached */
    bool begun;       /* whether the trim of that slab has begun */
    bool under_way;   /* whether a pass over the slabs is under way */
    bool gained;      /* whether the last pass, or the one under way, has given memory back */
    uint64_t mapped;  /* bytes of all slabs of this manager at the last check */
    uint64_t next_ns; /* time before which no pass begins */
    /* wait after a pass until the next one while memory is not short, in nanoseconds */
    uint64_t wait_ns;
    uint64_t short_ns; /* time that is one minute after the last check that found memory short */
} domi_trim;

/* The reaction of the thread to a shortage of memory (trim.h, memory_watch.h). */
typedef struct domi_manager_memory {
    bool at_max;            /* whether the last message was refused because of memory.threadMax */
    bool busy;              /* whether memory is critical, so that asks and notices are refused */
    uint32_t pressure_seen; /* level of memory when the thread read `pressure` last */
    const _Atomic uint32_t *pressure; /* address of the system's domus_memory_level; constant */
    domi_trim trim;                   /* state of the passes that give memory of slabs back */
    /* free bytes of this thread's slabs in chunks that the last trim had to keep */
    domi_counter spare_bytes;
    /* Watches on memory. Any thread that arms or cancels a watch here writes this field, under its
     * lock. */
    alignas(DOMI_LINES) domi_memory_watches watches;
} domi_manager_memory;

/* The houses that this home lends, and the numbers by which idle threads choose a victim
 * (loan.h). */
typedef struct domi_manager_loans {
    uint32_t lent; /* number of this home's houses that are exposed */
    /* Loans that thieves have given back. Thieves push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) returns;
    /* Guards the houses that thieves may take. `shared` is used under this lock; `shared_count` is
     * written under it and read by any thread. */
    alignas(DOMI_LINES) domi_spinlock shared_lock;
    domi_fifo shared;              /* the houses that thieves may take, oldest first */
    _Atomic uint32_t shared_count; /* number of houses in `shared`, which thieves may take */
    /* Number of thieves that want houses of this thread now; each adds and subtracts itself. */
    alignas(DOMI_LINES) _Atomic uint32_t thieves;
    /* Number of ready state actors of this thread. Home publishes it at each look between runs;
     * idle threads read it. */
    alignas(DOMI_LINES) _Atomic uint32_t readies;
    /* the number of ready state actors as in `readies`, but 0 if runs here are shorter than a loan
     * takes */
    _Atomic uint32_t lendable;
} domi_manager_loans;

/* The behaviour of the actor that runs, and the type of the message that it handles. turn.h sets
 * them, and a stall report reads them from another thread. */
typedef struct domi_activity {
    /* behaviour of the actor that runs on this thread; NULL: none runs */
    _Atomic(const domus_behaviour *) running;
    /* type of the message that the actor handles; NULL: a conversation is resumed without a
     * message */
    _Atomic(const domus_type *) handling;
} domi_activity;

#endif
