/* The parts of a manager: one struct for each piece of house that uses it.
 *
 * A part is named after what it is for, and its comment says which files use it. Only the owner of
 * the manager touches a part, except fields at which something else is said. A field that other
 * threads write begins a cache line of its own (DOMI_LINES), so that they do not slow the owner
 * down; static_asserts beside the manager hold that. */
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

/* The bounds of an actor, as the configuration has them; constant while threads run. */
typedef struct domi_manager_limits {
    uint32_t mailbox_max;          /* messages in a mailbox */
    uint32_t messages_per_run_max; /* messages that a run handles */
    uint32_t run_kept;          /* of these, places that are kept for a later kind: DOMI_RUN_KEPT */
    uint32_t conversations_max; /* parked conversations of an actor */
} domi_manager_limits;

/* The tables of the system's names, groups, routers, remote addresses, grains, processes and
 * behaviours, and of the
 * subscribers to dead letters; constant while threads run. NULL, each: the system has none. */
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

/* Counts of what happened on this thread since it began; the owner adds, any thread reads. */
typedef struct domi_counters {
    domi_counter runs;                    /* runs of houses */
    domi_counter handled[DOMI_MAILBOXES]; /* messages that were handled, by mailbox */
    domi_counter failures;                /* handlers and conversations that have failed */
    domi_counter belted;                  /* notices that were put on belts */
    domi_counter wakeups_sent;            /* sleeping threads that this one has woken */
    domi_counter dead_letters;            /* messages whose receiver was gone */
    domi_counter refusals;                /* asks and notices refused because a bound was reached */
    domi_counter busy;                    /* asks and notices refused because memory is short */
    domi_counter trimmed_bytes;           /* bytes of slabs that were given back to the kernel */
    /* asks dropped because their deadline had passed: before they were handled, or while kept */
    domi_counter asks_expired;
    domi_counter late_replies;    /* answers that came when nobody waited for them any more */
    domi_counter cancels;         /* conversations and unbegun asks that were cancelled */
    domi_counter circles;         /* asks that would have waited for themselves (circle.h) */
    domi_counter restarts;        /* actors that have begun anew after a failure */
    domi_counter escalations;     /* failures for which no parent had a rule */
    domi_counter passivations;    /* actors stopped because they were idle */
    domi_counter spawns;          /* actors mounted here */
    domi_counter stops;           /* actors that have ended here */
    domi_counter exposed;         /* houses shown to thieves */
    domi_counter timers_fired;    /* events of timers that were put */
    domi_counter letters_missed;  /* dead letters that a subscriber did not take */
    domi_counter waits_lost;      /* waits whose function is never called, by a mistake of a user */
    domi_counter results_unknown; /* results of functions that counted as 0 */
    domi_counter conversations_full;  /* times at which an actor came to conversations_max */
    domi_counter timers_refused;      /* timers that were not made because of timers_max */
    domi_counter thread_max_refusals; /* asks and notices refused at memory.threadMax */
} domi_counters;

/* Houses that are to be linked into the arrivals of one home (arrivals.h). */
typedef struct domi_link_chain {
    domi_house *newest; /* the head of the chain */
    domi_house *oldest; /* the end of the chain */
} domi_link_chain;

#define DOMI_LINKS_MAX 32u /* houses in all chains together */

/* The chains of one batch of puts (arrivals.h). */
typedef struct domi_links {
    domi_link_chain *by_home;       /* one chain for each home */
    uint16_t homes[DOMI_LINKS_MAX]; /* indices of the homes whose chain is not empty */
    uint32_t home_count;            /* homes whose chain is not empty */
    uint32_t houses;                /* houses in all chains */
    bool gathering;                 /* a batch is under way */
} domi_links;

/* How messages come to houses: the puts of this thread and the arrivals (mailbox.h, arrivals.h). */
typedef struct domi_manager_mail {
    /* Equal to `limits.mailbox_max`, but 0 while `memory.busy` or `lent` is true, so that no put
     * takes the short way of domi_mailbox_put() then. */
    uint32_t lane_max;
    bool alone; /* the inbox that was sorted last held one message only */
    bool lent;  /* a lent house runs here, whose notices go by inboxes alone; then lane_max is 0 */
    domi_links links; /* houses of this batch of puts that are not in arrivals yet */
    /* Houses with mail that is not sorted yet. Other threads push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_house *) arrivals;
    /* When another thread has sent something that it measures (runtime/loop/run_observer.h); 0:
     * none is under way. */
    _Atomic uint64_t sampled_ns;
} domi_manager_mail;

#define DOMI_SLEEPERS_MAX 8u /* sleeping threads that a thread notes before it wakes them */

/* Sleeping threads for which this one has put something, and which it has not woken
 * yet (domi_manager_notify). */
typedef struct domi_sleepers {
    /* Wake-ups may be put off before this time: until then the owner, a thread of the loop, is as
     * good as idle (runtime/loop/stand_in.c). 0: sleepers are woken at once. */
    uint64_t until_ns;
    uint64_t since_ns; /* when the first one was noted */
    uint32_t count;
    uint16_t indices[DOMI_SLEEPERS_MAX]; /* the indices of their managers */
} domi_sleepers;

typedef struct domi_belt domi_belt;

/* The belts to other threads, and those that lead here (belt.h). */
typedef struct domi_manager_belts {
    /* The belts to other threads, by their index; NULL entries: this thread never sent there by
     * one. NULL: belts are not used. */
    domi_belt **to;
    uint64_t trim_at_ns; /* when rings are looked at next, to give back unused ones */
    domi_belt *on;       /* the belts to this thread that are on */
    domi_node *held;     /* messages for exposed houses, a circular list by its tail (carry.c) */
    bool starved;        /* at the last look there was no memory for what the belts hold */
    bool kept_off;       /* a stand-in uses this manager, and leaves the belts to their owner */
    /* The memory of this thread is used up, so senders put nothing on belts to it. They read it. */
    alignas(DOMI_LINES) _Atomic bool is_short;
    /* The belts that were turned on. Senders push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_belt *) linked;
} domi_manager_belts;

/* Objects of one other manager that were freed by this thread; they are pushed to their owner all
 * at once. */
typedef struct domi_chain {
    domi_node *head; /* the first object */
    domi_node *tail; /* the last object */
} domi_chain;

/* The objects of this manager: envelopes, stacks, promises and others (pool.h). */
typedef struct domi_manager_pool {
    domi_slab slabs[DOMI_SLABS]; /* one for each size and kind of object */
    domi_chain *chains; /* objects of others that were freed here, by the index of their owner */
    uint32_t chained;   /* objects in all chains */
    domi_node *guest; /* another owner's envelope, to be used again here first (pool.h), or NULL */
    domi_node *returned; /* objects taken from `remote` and not yet sorted into the slabs */
    /* Objects of this manager that others freed. Others push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) remote;
    /* Bytes of this manager's envelopes that are too large for the slabs; others free them, too. */
    _Atomic int64_t heap_bytes;
} domi_manager_pool;

/* Free slots of one home, kept by a thread that spawns actors there. */
typedef struct domi_slot_cache {
    domi_house *free[DOMI_HOUSE_CLASSES]; /* free slots of each size class */
    uint32_t count[DOMI_HOUSE_CLASSES];   /* how many they are */
} domi_slot_cache;

/* The slots of one home. Any thread that spawns there refills its cache from here, and home gives
 * back the slots that are too many for its own cache, all under `lock`. */
typedef struct domi_slots {
    domi_spinlock lock; /* guards the slabs below */
    /* their free lists hold slots that were too many for home's cache */
    domi_slab slabs[DOMI_HOUSE_CLASSES];
    domi_counter free_bytes; /* bytes in these free lists; written under `lock` */
} domi_slots;

/* The actors that live here, and where new ones go (life.h, slots.h). */
typedef struct domi_manager_births {
    domi_counter houses;       /* actors that live on this home; any thread reads it */
    uint32_t next_home;        /* the thread to which the next actor goes, if actors are spread */
    domi_slot_cache *slots_of; /* caches of free slots, by the index of their home */
    /* Other threads that spawn actors here write this field, under its lock. */
    alignas(DOMI_LINES) domi_slots slots;
} domi_manager_births;

/* The houses that have something to do here (phases.h). */
typedef struct domi_manager_schedule {
    domi_queue ready[2]; /* READY houses, by domus_kind */
    domi_fifo mounting;  /* MOUNTING houses, whose on_mount has not begun */
    domi_node *laters;   /* events of domus_later(), a circular list by its tail (later.h) */
} domi_manager_schedule;

/* The first of the answers with which the running function was resumed, and the one that
 * domus_take_answer() found last (NULL: none yet). Both are NULL unless a function runs that was
 * resumed with several answers (take.h). */
typedef struct domi_manager_shown {
    struct domi_promise *first; /* the first answer that was shown */
    struct domi_promise *last;  /* the answer that domus_take_answer() found last */
} domi_manager_shown;

/* Timers and time-outs (timer.h, promise.h, notes.h). */
typedef struct domi_manager_timing {
    domi_wheel wheel;        /* timers of actors */
    domi_wheel deadlines;    /* time-outs of promises */
    _Atomic uint32_t timers; /* timers that are armed or under way; a thief reads it */
    domi_node *notes;        /* the work left for home by the lent house that runs here */
    /* timers that the lent house made, minus those that it freed; may wrap */
    uint32_t noted_timers;
} domi_manager_timing;

/* How far the system's stop has come, as this thread has been told (stop.h). */
typedef struct domi_manager_ending {
    bool closing;     /* the system stops: nothing new is spawned */
    bool has_stopped; /* the system has stopped: actors are ended as they are */
    bool work_over;   /* abandoned blocking work has returned: its actors may be ended, too */
} domi_manager_ending;

struct domi_memory_watch;

/* The watches on memory of a home's actors (memory_watch.h). `head`, `tail`, `count` and `left` are
 * written under `lock`. */
typedef struct domi_memory_watches {
    domi_spinlock lock;             /* guards the list */
    struct domi_memory_watch *head; /* the first watch */
    struct domi_memory_watch *tail; /* the last watch */
    _Atomic uint32_t count;         /* watches in the list; any thread reads it, without the lock */
    uint32_t left;                  /* watches that home has not looked at since the last change */
    _Atomic uint32_t seen;          /* the number of that change; written under the lock */
} domi_memory_watches;

/* The state of the passes that give memory of slabs back (trim.h). Times are those of `now_ns`. */
typedef struct domi_trim {
    uint32_t slab;     /* index of the slab that this pass has come to */
    bool begun;        /* the trim of that slab has begun */
    bool under_way;    /* a pass has begun and has not ended */
    bool gained;       /* the last pass, or the one under way, has given something back */
    uint64_t mapped;   /* bytes of all slabs at the last look */
    uint64_t next_ns;  /* no pass begins before this time */
    uint64_t wait_ns;  /* how long to wait after a pass while memory is not short */
    uint64_t short_ns; /* one minute after the last look at which memory was short */
} domi_trim;

/* The thread's answer to memory that is short (trim.h, memory_watch.h). */
typedef struct domi_manager_memory {
    bool at_max;            /* the last message found no envelope because of memory.threadMax */
    bool busy;              /* memory is critical: asks and notices are refused */
    uint32_t pressure_seen; /* the level at the last look at `pressure` */
    const _Atomic uint32_t *pressure; /* the system's domus_memory_level; constant */
    domi_trim trim;                   /* how far the giving back has come */
    domi_counter spare_bytes; /* free bytes of slabs in chunks that the last trim had to keep */
    /* Any thread that arms or cancels a watch here writes it, under its lock. */
    alignas(DOMI_LINES) domi_memory_watches watches;
} domi_manager_memory;

/* Houses that this home lends, and the numbers by which idle threads choose a victim (loan.h). */
typedef struct domi_manager_loans {
    uint32_t lent; /* houses that are exposed */
    /* Loans that have come back. Thieves push, and the owner takes all. */
    alignas(DOMI_LINES) _Atomic(domi_node *) returns;
    /* Houses that thieves may take. `shared` is used under the lock; `shared_count` is written
     * under it and read by any thread. */
    alignas(DOMI_LINES) domi_spinlock shared_lock;
    domi_fifo shared;              /* houses that thieves may take, oldest first */
    _Atomic uint32_t shared_count; /* houses in `shared` */
    /* Thieves that want houses of this thread now; each counts itself. */
    alignas(DOMI_LINES) _Atomic uint32_t thieves;
    /* State actors that are ready here. Home publishes the number at each look; idle
     * threads read it. */
    alignas(DOMI_LINES) _Atomic uint32_t readies;
    _Atomic uint32_t lendable; /* as `readies`, but 0 if runs here are shorter than a loan takes */
} domi_manager_loans;

/* The behaviour of the actor that runs, and the type of the message that it handles. turn.h sets
 * them, and a stall report reads them from another thread. */
typedef struct domi_activity {
    _Atomic(const domus_behaviour *) running; /* NULL: no actor runs */
    _Atomic(const domus_type *) handling; /* NULL: a conversation is resumed without a message */
} domi_activity;

#endif
