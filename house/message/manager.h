/* The manager: what a house needs of the thread that is its home.
 *
 * A manager has the thread's queues, arrivals, park word, pools, timer wheels and counters, the
 * time of the current phase, and the hooks that io and runtime bring (hooks.h). House and io know
 * nothing else of threads. domi_manager_init() alone fills it (dispatch/manage.h). Only the owner,
 * the thread that uses a manager, touches its fields, except those that begin a cache line of their
 * own below: other threads push to `arrivals`, `remote` and `returns`, take from `shared`, and
 * exchange `park`. */
#ifndef DOMI_HOUSE_MESSAGE_MANAGER_H
#define DOMI_HOUSE_MESSAGE_MANAGER_H

#include "base/counter.h"
#include "base/park.h"
#include "base/slab.h"
#include "base/spinlock.h"
#include "base/wheel.h"
#include "house/message/hooks.h"
#include "house/message/queue.h"

#include <domus/config.h>
#include <domus/hooks.h>
#include <domus/memory.h>

/* Bytes between a field that one core writes and a field that another core uses. This is two cache
 * lines, because the hardware fetches lines in pairs. */
#define DOMI_LINES 128

#define DOMI_MANAGERS_MAX  1537 /* 1,024 threads, the outside, 512 detached actors */
#define DOMI_HOUSE_CLASSES 5

/* Counts of what happened on this thread since it began; the owner adds, any thread reads. */
typedef struct domi_counters {
    domi_counter runs;
    domi_counter handled[DOMI_MAILBOXES];
    domi_counter failures;
    domi_counter wakeups_sent;
    domi_counter dead_letters;
    domi_counter refusals;
    domi_counter busy;          /* asks and notices refused because memory is short */
    domi_counter trimmed_bytes; /* bytes of slabs that were given back to the kernel */
    domi_counter asks_expired;
    domi_counter late_replies;
    domi_counter cancels;
    domi_counter circles;
    domi_counter restarts;
    domi_counter escalations;
    domi_counter passivations;
    domi_counter spawns;
    domi_counter stops;
    domi_counter exposed;
    domi_counter timers_fired;
    domi_counter letters_missed;
} domi_counters;

/* Objects of one other manager that were freed by this thread; they are pushed to their owner all
 * at once. */
typedef struct domi_chain {
    domi_node *head;
    domi_node *tail;
} domi_chain;

/* Houses that are to be linked into the arrivals of one home (arrivals.h). */
typedef struct domi_link_chain {
    domi_house *newest;
    domi_house *oldest;
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

/* Free slots of one home, kept by a thread that spawns actors there. */
typedef struct domi_slot_cache {
    domi_house *free[DOMI_HOUSE_CLASSES];
    uint32_t count[DOMI_HOUSE_CLASSES];
} domi_slot_cache;

/* The slots of one home. Any thread that spawns there refills its cache from here, and home gives
 * back the slots that are too many for its own cache, all under `lock`. */
typedef struct domi_slots {
    domi_spinlock lock;
    /* their free lists hold slots that were too many for home's cache */
    domi_slab slabs[DOMI_HOUSE_CLASSES];
    domi_counter free_bytes; /* bytes in these free lists; written under `lock` */
} domi_slots;

struct domi_memory_watch;

/* The watches on memory of a home's actors (memory_watch.h). `head`, `tail`, `count` and `left` are
 * written under `lock`. */
typedef struct domi_memory_watches {
    domi_spinlock lock;
    struct domi_memory_watch *head;
    struct domi_memory_watch *tail;
    _Atomic uint32_t count; /* watches in the list; any thread reads it, without the lock */
    uint32_t left;          /* watches that home has not looked at since the last change */
    uint32_t seen;          /* the number of that change; only home uses it */
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

struct domi_manager {
    /* The fields from here to `asker` are read by all threads, and constant while threads
     * run, except `lane_max`. */
    uint32_t index;
    uint32_t count;    /* managers: the threads', the outside's, then those of detached actors */
    uint32_t threads;  /* how many of them are managers of the loop's threads */
    uint32_t run_kept; /* places of a run that are kept for a later kind: DOMI_RUN_KEPT */
    domi_manager **managers; /* all managers, by index */
    const domus_config *config;
    struct domi_names *names;     /* the names of the system; NULL: there are none */
    struct domi_letters *letters; /* subscribers to dead letters; NULL: there are none */
    struct domi_groups *groups;
    struct domi_routers *routers;
    /* Equal to `mailbox_max`, but 0 while `busy` is true, so that no put takes the short way of
     * domi_mailbox_put() then. Only the owner uses it. */
    uint32_t lane_max;
    uint32_t mailbox_max;
    uint32_t messages_per_run_max;
    uint32_t conversations_max;
    void *io;               /* the thread's io; only io looks into it */
    domi_io_hooks io_hooks; /* the functions that io brings */
    domi_runtime_hooks hooks;
    void *thread; /* an object of the maker, for its hooks */
    void *system; /* the domus_system; only runtime looks into it */
    /* In the outside's manager: the house in whose name foreign threads ask. No actor gets its
     * address, and it cannot be stopped. */
    domi_house *asker;

    /* From here on only the owner reads and writes, except where a field says otherwise. */
    alignas(DOMI_LINES) uint64_t now_ns; /* the time of the current phase */
    const char *owner;                   /* &domi_here of the thread that may use this manager */
    /* While a function runs that was resumed with several answers: the first of them, and the one
     * that domus_take_answer() found last (NULL: none yet). Otherwise NULL. */
    struct domi_promise *shown;
    struct domi_promise *shown_last;
    domi_queue ready[2];    /* READY houses, by domus_kind */
    domi_fifo mounting;     /* MOUNTING houses, whose on_mount has not begun */
    bool closing;           /* the system stops: nothing new is spawned */
    bool has_stopped;       /* the system has stopped: actors are ended as they are */
    bool work_over;         /* abandoned blocking work has returned: its actors may be ended, too */
    bool at_max;            /* the last message found no envelope because of memory.threadMax */
    bool busy;              /* memory is critical: asks and notices are refused */
    uint32_t pressure_seen; /* the level at the last look at `pressure` */
    const _Atomic uint32_t *pressure; /* the system's domus_memory_level */
    _Atomic uint32_t timers;          /* timers that are armed or under way; a thief reads it */
    domi_counter houses;              /* actors that live on this home; any thread reads it */
    uint32_t next_home; /* the thread to which the next actor goes, if actors are spread */
    domi_slab slabs[DOMI_SLABS];
    domi_chain *chains; /* objects of others that were freed here, by the index of their owner */
    uint32_t chained;   /* objects in all chains */
    bool alone;         /* the inbox that was sorted last held one message only */
    domi_node *guest; /* another owner's envelope, to be used again here first (pool.h), or NULL */
    domi_node *returned; /* objects taken from `remote` and not yet sorted into the slabs */
    domi_links links;
    uint32_t lent;             /* houses that are exposed */
    domi_slot_cache *slots_of; /* caches of free slots, by the index of their home (slots.h) */
    domi_slots slots;
    domi_wheel wheel;     /* timers of actors */
    domi_wheel deadlines; /* time-outs of promises */
    domi_node *notes;     /* what home has to do for the lent house that runs here (notes.h) */
    /* timers that the lent house made, minus those that it freed; may wrap */
    uint32_t noted_timers;
    domi_counters counters;
    domi_trim trim;
    domi_memory_watches memory_watches;
    domi_counter spare_bytes; /* free bytes of slabs in chunks that the last trim had to keep */

    /* Other threads push to these three stacks, and the owner takes each as a whole. */
    alignas(DOMI_LINES) _Atomic(domi_house *) arrivals;
    alignas(DOMI_LINES) _Atomic(domi_node *) remote; /* objects of this manager that others freed */
    /* Bytes of this manager's envelopes that are too large for the slabs; others free them, too. */
    _Atomic int64_t heap_bytes;

    alignas(DOMI_LINES) _Atomic(domi_node *) returns; /* loans that have come back (loan.h) */

    /* Houses that thieves may take. `shared` is used under the lock; `shared_count` is written
     * under it and read by any thread. */
    alignas(DOMI_LINES) domi_spinlock shared_lock;
    domi_fifo shared;
    _Atomic uint32_t shared_count; /* houses in `shared` */

    /* Thieves that want houses of this thread now; each counts itself. */
    alignas(DOMI_LINES) _Atomic uint32_t thieves;

    /* The behaviour of the actor that runs, and the type of the message that it handles. turn.h
     * sets them, and a stall report reads them from another thread. `running` is NULL if no actor
     * runs, and `handling` is NULL if a conversation is resumed without a message. */
    alignas(DOMI_LINES) _Atomic(const domus_behaviour *) running;
    _Atomic(const domus_type *) handling;

    /* State actors that are ready here. Home publishes the number at each look; idle threads read
     * it. */
    alignas(DOMI_LINES) _Atomic uint32_t readies;
    _Atomic uint32_t lendable; /* as `readies`, but 0 if runs here are shorter than a loan takes */

    /* enum domi_park. Senders look at it after each put that links a house (base/park.h). */
    alignas(DOMI_LINES) _Atomic uint32_t park;
};

/* The address of this variable identifies the calling thread. House knows no more of threads. */
extern _Thread_local char domi_here;

/* Make the calling thread the owner of `manager`. It may do so if it has just made the manager, if
 * the last owner has ended, or if it holds the lock that every user of this manager takes. */
static inline void domi_manager_own(domi_manager *manager)
{
    manager->owner = &domi_here;
}

/* True if the calling thread is the owner. Functions that only the owner may call check this: those
 * that are called once an iteration do so always, those that are called for each message only in
 * builds with slow checks. */
static inline bool domi_manager_is_mine(const domi_manager *manager)
{
    return manager->owner == &domi_here;
}

static inline void domi_manager_log(domi_manager *manager, const domi_house *house,
                                    domi_happening what, int error)
{
    if (manager->hooks.log != NULL)
        manager->hooks.log(manager, house, what, error);
}

/* Follow a change of `pressure` to `level`: from the critical level on, asks and notices that this
 * manager puts are refused. Owner. */
void domi_manager_set_pressure(domi_manager *manager, uint32_t level);

/* Follow `pressure` if it has changed. This costs one relaxed load of a line that is hardly ever
 * written; the level may be seen late. Owner. */
static inline void domi_manager_look_at_pressure(domi_manager *manager)
{
    uint32_t level = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)manager->pressure,
                                          memory_order_relaxed);

    if (DOMI_UNLIKELY(level != manager->pressure_seen))
        domi_manager_set_pressure(manager, level);
}

/* Wake the owner of `target` if it sleeps, with at most one write for each sleep (M12). Called by
 * the owner of `self`, after it has pushed something to `target`. */
static inline void domi_manager_notify(domi_manager *self, domi_manager *target)
{
    if (domi_park_try_notify(&target->park)) {
        domi_counter_add(&self->counters.wakeups_sent, 1);
        if (target->hooks.wake != NULL)
            target->hooks.wake(target);
    }
}

#endif
