/* The manager: what a house needs of the thread that is its home.
 *
 * Queues, arrivals, the park word, pools, the wheel, counters, the time of this phase, and `wake`,
 * which runtime sets. House and io know no threads beyond this. Everything is the owner's except
 * what stands in lines of its own: `arrivals`, `remote` (others push), `park` (others exchange). */
#ifndef DOMI_HOUSE_MESSAGE_MANAGER_H
#define DOMI_HOUSE_MESSAGE_MANAGER_H

#include "base/counter.h"
#include "base/slab.h"
#include "base/spinlock.h"
#include "base/wheel.h"
#include "house/message/queue.h"

#include <domus/config.h>
#include <domus/hooks.h>
#include <domus/memory.h>

/* What one core writes and another reads or writes stands this far apart: two cache lines, because
 * the hardware fetches them in pairs. */
#define DOMI_LINES 128

#define DOMI_MANAGERS_MAX  1537 /* 1,024 threads, the outside, 512 detached actors */
#define DOMI_HOUSE_CLASSES 5

enum domi_park {
    DOMI_PARK_RUNNING,
    DOMI_PARK_SLEEPING,
    DOMI_PARK_NOTIFIED,
    DOMI_PARK_SPINNING, /* it looks for work and needs no write */
};

typedef struct domi_counters {
    domi_counter runs;
    domi_counter handled[DOMI_MAILBOXES];
    domi_counter failures;
    domi_counter wakeups_sent;
    domi_counter dead_letters;
    domi_counter refusals;
    domi_counter busy;          /* refused for want of memory */
    domi_counter trimmed_bytes; /* of slabs, given back to the kernel */
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

/* What is freed here but belongs to another: one chain per owner, pushed in one go. */
typedef struct domi_chain {
    domi_node *head;
    domi_node *tail;
} domi_chain;

/* Houses to be linked into one home's arrivals (arrivals.h). */
typedef struct domi_link_chain {
    domi_house *newest;
    domi_house *oldest;
} domi_link_chain;

#define DOMI_LINKS_MAX 32u /* houses in all chains */

typedef struct domi_links {
    domi_link_chain *by_home;
    uint16_t homes[DOMI_LINKS_MAX];
    uint32_t home_count; /* that have a chain */
    uint32_t houses;     /* in all chains */
    bool gathering;      /* a batch is under way */
} domi_links;

/* Free slots of one home, kept by a thread that spawns there. */
typedef struct domi_slot_cache {
    domi_house *free[DOMI_HOUSE_CLASSES];
    uint32_t count[DOMI_HOUSE_CLASSES];
} domi_slot_cache;

/* Where slots are born: home's, but others refill their caches here under the lock. */
typedef struct domi_slots {
    domi_spinlock lock;
    domi_slab slabs[DOMI_HOUSE_CLASSES]; /* their free lists: what home had too many of */
    domi_counter free_bytes;             /* ... which is so much; written under the lock */
} domi_slots;

/* What is told of an actor. */
typedef enum domi_happening {
    DOMI_HAS_FAILED,
    DOMI_IS_RESTARTED,
    DOMI_ESCALATES, /* a child's failure, which none of its rules decides */
    DOMI_IS_ENDED,  /* by the root */
} domi_happening;

struct domi_memory_watch;

/* The watches on memory of a home's actors (memory_watch.h). */
typedef struct domi_memory_watches {
    domi_spinlock lock;
    struct domi_memory_watch *head; /* under the lock, as the next three are */
    struct domi_memory_watch *tail;
    _Atomic uint32_t count; /* ... but read by all */
    uint32_t left;          /* to be looked at since the last change */
    uint32_t seen;          /* home's: the number of that change */
} domi_memory_watches;

/* Giving slabs' memory back (trim.h). */
typedef struct domi_trim {
    uint32_t slab;     /* the one at hand */
    bool begun;        /* ... its trim */
    bool under_way;    /* a pass over the slabs */
    bool gained;       /* ... has given something back */
    uint64_t mapped;   /* of all slabs, when it was last looked at */
    uint64_t next_ns;  /* no pass before */
    uint64_t wait_ns;  /* from one in vain to the next */
    uint64_t short_ns; /* until then memory is short, or was a minute ago */
} domi_trim;

typedef struct domi_manager domi_manager;
struct domi_promise;
struct domus_spawn_options;

struct domi_manager {
    /* Read by all, constant while threads run. */
    uint32_t index;
    uint32_t count;    /* of managers: the threads', the outside's, then those of detached actors */
    uint32_t threads;  /* how many are threads' */
    uint32_t run_kept; /* of messages_per_run_max: see domi_manager_limit_runs() */
    domi_manager **managers;
    const domus_config *config;
    struct domi_names *names;     /* the system's registry; NULL: none */
    struct domi_letters *letters; /* who hears of dead letters; NULL: nobody */
    struct domi_groups *groups;
    struct domi_routers *routers;
    uint32_t
        lane_max; /* the owner's: mailbox_max, or 0 while busy: no put takes the short way then */
    uint32_t mailbox_max;
    uint32_t messages_per_run_max;
    uint32_t conversations_max;
    void (*wake)(domi_manager *manager); /* writes to its eventfd; any thread */
    void *thread;                        /* runtime's, for wake */
    void *system;                        /* runtime's */
    domi_house *asker; /* in whose name the outside asks: nobody sees it, nobody stops it */
    void *io;          /* io's */
    /* io's part of a run: channels actors only. Handles up to `budget` pieces of work, returns
     * how many; clears DOMI_MARK_CHANNELS when none is left. */
    uint32_t (*run_channels)(domi_manager *manager, domi_house *house, uint32_t budget);
    /* io's: a conversation that a channel counts (DOMI_STACK_COUNTED) has ended. */
    void (*conversation_ended)(domi_manager *manager, uint64_t key);
    /* io's: a conversation has failed. True when a channel has begun it: that is refused, and the
     * actor has not failed. NULL: there are no channels. */
    bool (*conversation_failed)(struct domi_manager *manager, const domus_stack *stack, int error);
    /* io's own events (an accepted connection): true when it took the message. */
    bool (*take_event)(domi_manager *manager, domi_house *house, domi_envelope *message);
    /* runtime's: something has befallen an actor; NULL: nobody wants to know. */
    void (*log)(domi_manager *manager, const domi_house *house, domi_happening what, int error);
    /* runtime's: a log line; NULL: nobody wants to know. */
    void (*say)(domi_manager *manager, domus_log_level level, const char *text);
    /* runtime's: an actor on a thread of its own. NULL: there are none. */
    int (*spawn_detached)(domi_manager *manager, domi_house *parent,
                          const domus_behaviour *behaviour, const void *state,
                          const struct domus_spawn_options *options, domus_address *ret_address);
    /* runtime's: may this thread spawn now? True: until end_spawn() nobody stops the system. NULL,
     * both: a thread of the loop, which is told by `closing`. */
    bool (*begin_spawn)(domi_manager *manager);
    void (*end_spawn)(domi_manager *manager);
    /* runtime's: take blocking work back; false when it runs already. */
    bool (*withdraw)(domi_manager *manager, struct domi_promise *promise);
    /* runtime's: how short memory is now; returns the number of the latest change. Any thread,
     * maybe under a spinlock. NULL: nobody measures. */
    uint32_t (*read_memory)(const domi_manager *manager, domus_memory_change *ret_change);
    /* io's watches on descriptors: the event was handled, or dropped; take the watch back. */
    void (*descriptor_handled)(domi_manager *manager, domi_node *node);
    void (*descriptor_cancel)(domi_manager *manager, domi_node *node);
    void (*descriptor_noted)(domi_manager *home, domi_node *node); /* begun on a loan: arm it */
    /* io's part of a stop: begin to close what the house owns; returns how many are left. */
    uint32_t (*stop_channels)(domi_manager *manager, domi_house *house);

    /* The owner's. */
    alignas(DOMI_LINES) uint64_t now_ns;
    const char *owner;               /* &domi_here of the thread that may use this manager */
    struct domi_promise *shown;      /* what the step that runs was shown, when it waited for all */
    struct domi_promise *shown_last; /* ... where it was looked for last; NULL: nowhere yet */
    domi_queue ready[2];             /* by domus_kind */
    domi_fifo mounting;
    bool closing;     /* the system stops: nothing new is spawned */
    bool has_stopped; /* the system has stopped: actors are ended, whatever they do */
    bool work_over;   /* ... also those whose blocking work had not returned */
    bool at_max;      /* why the last message had no envelope: memory.threadMax */
    bool busy;        /* memory is critical: asks and notices are refused */
    uint32_t pressure_seen;
    const _Atomic uint32_t *pressure; /* the system's domus_memory_level */
    _Atomic uint32_t timers;          /* armed or under way; a thief reads it */
    domi_counter houses;              /* alive on this home */
    uint32_t next_home;               /* for spawns that spread */
    domi_slab slabs[DOMI_SLABS];
    domi_chain *chains;  /* by owner */
    uint32_t chained;    /* objects in all chains */
    bool alone;          /* the last that arrived came alone */
    domi_node *guest;    /* an envelope of another's, freed here and still in the cache */
    domi_node *returned; /* taken from `remote`, not yet sorted into the slabs */
    domi_links links;
    uint32_t lent;             /* houses that are exposed */
    domi_slot_cache *slots_of; /* by home; its own is unbounded until it gives back */
    domi_slots slots;
    domi_wheel wheel;     /* of timers */
    domi_wheel deadlines; /* of what conversations wait for */
    domi_node *notes;     /* for the home of the lent house that runs here (notes.h); circular */
    uint32_t noted_timers;
    domi_counters counters;
    domi_trim trim;
    domi_memory_watches memory_watches;
    domi_counter spare_bytes; /* of slabs: free, but in chunks that the last trim had to keep */

    /* Pushed by others, taken whole by the owner. */
    alignas(DOMI_LINES) _Atomic(domi_house *) arrivals;
    alignas(DOMI_LINES) _Atomic(domi_node *) remote; /* its objects that others freed, in chains */
    _Atomic int64_t heap_bytes; /* in its envelopes beyond the slabs, which others free as well */

    alignas(DOMI_LINES) _Atomic(domi_node *) returns; /* loans that have come back (loan.h) */

    /* What thieves may take. */
    alignas(DOMI_LINES) domi_spinlock shared_lock;
    domi_fifo shared;              /* under the lock, as the next is written */
    _Atomic uint32_t shared_count; /* houses in it */

    /* Written by thieves: how many are after this thread's houses now. */
    alignas(DOMI_LINES) _Atomic uint32_t thieves;

    /* Whose handler runs, and what it handles, for those who look at a thread that does not come
     * back. NULL: nobody's; no message, but a conversation goes on. */
    alignas(DOMI_LINES) _Atomic(const domus_behaviour *) running;
    _Atomic(const domus_type *) handling;

    /* The depth of the state queue, published at each look; idle threads read it. */
    alignas(DOMI_LINES) _Atomic uint32_t readies;
    _Atomic uint32_t lendable; /* the same, or 0: its runs are shorter than a loan would take */

    /* Exchanged by others: a line of its own, read at each foreign put. */
    alignas(DOMI_LINES) _Atomic uint32_t park;
};

/* Its address tells a thread from all others; house knows no more of threads than that. */
extern _Thread_local char domi_here;

/* The calling thread uses `manager` from now on: it was made here, or the thread that used it has
 * ended, or has left a lock that this one holds. */
static inline void domi_manager_own(domi_manager *manager)
{
    manager->owner = &domi_here;
}

/* The rule of the owner, asserted at each door through which only the owner may go. The doors of a
 * turn ask always, those of a message in builds with slow checks. */
static inline bool domi_manager_is_mine(const domi_manager *manager)
{
    return manager->owner == &domi_here;
}

/* Who runs here from now on. Relaxed, both: only looked at, from elsewhere. */
static inline void domi_manager_runs(domi_manager *manager, const domus_behaviour *behaviour)
{
    atomic_store_explicit(&manager->running, behaviour, memory_order_relaxed);
}

/* What it handles now. What is called without a message has a type for this alone. */
static inline void domi_manager_handles(domi_manager *manager, const domus_type *type)
{
    atomic_store_explicit(&manager->handling, type, memory_order_relaxed);
}

/* Both, of what may be called between runs or within one. Returns who ran, to be set again. */
static inline const domus_behaviour *
domi_manager_enters(domi_manager *manager, const domus_behaviour *behaviour, const domus_type *type)
{
    const domus_behaviour *before =
        atomic_load_explicit(&manager->running, memory_order_relaxed); /* our own */

    domi_manager_runs(manager, behaviour);
    domi_manager_handles(manager, type);
    return before;
}

static inline void domi_manager_log(domi_manager *manager, const domi_house *house,
                                    domi_happening what, int error)
{
    if (manager->log != NULL)
        manager->log(manager, house, what, error);
}

/* Make `manager` number `index` of `count`. `managers` may be filled later. Returns 0; -ENOMEM. */
int domi_manager_init(domi_manager *manager, uint32_t index, uint32_t count,
                      domi_manager **managers, const domus_config *config, uint64_t now_ns);

/* After all threads have ended. What messages still own is released before, by domi_manager_end. */
void domi_manager_fini(domi_manager *manager);

/* Run on_stop of every actor that lives here and turn all mail into dead letters. Owner thread,
 * last; or any thread once the owner has ended. */
void domi_manager_end(domi_manager *manager);

/* The system stops: stop every actor that has no parent; the others are stopped by theirs. Nothing
 * is spawned any more, anywhere. */
void domi_manager_stop(domi_manager *manager);

/* `pressure` has changed: asks and notices from this manager are refused, or not any more. */
void domi_manager_pressed(domi_manager *manager, uint32_t level);

/* One relaxed load of a line that is hardly ever written: what it says may be late. Owner. */
static inline void domi_manager_look_at_pressure(domi_manager *manager)
{
    uint32_t level = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)manager->pressure,
                                          memory_order_relaxed);

    if (DOMI_UNLIKELY(level != manager->pressure_seen))
        domi_manager_pressed(manager, level);
}

/* Take arrivals and sort them, and what thieves have returned. Returns how many houses it was. Two
 * relaxed loads if none. */
uint32_t domi_manager_arrivals(domi_manager *manager);

/* Mount what was spawned. Returns how many. */
uint32_t domi_manager_mount(domi_manager *manager);

/* Let due timers put their events, and time-outs fail what waits. Returns how many did; not all
 * that are due when there are very many: then the wheels' next is now. */
uint32_t domi_manager_timers(domi_manager *manager);

/* Run channels actors until their queue is empty, or until as many as are ready now and
 * channels_runs_per_tick more have run: the others wait for the next phase 2. Returns how many
 * ran. */
uint32_t domi_manager_channels(domi_manager *manager);

/* Anything to run, mount, sort or take back; io and timers not counted. What others push is read
 * seq_cst: this is the second look of a park (contract: Park and wake). */
bool domi_manager_has_work(const domi_manager *manager);

/* Wake the owner of `target` if it sleeps: at most one write per sleep (M12). */
static inline void domi_manager_notify(domi_manager *self, domi_manager *target)
{
    /* seq_cst: after the put (a read-modify-write), pairs with the owner's exchange to SLEEPING
     * and its second look. With anything weaker each side could read before its own write is
     * visible to the other, and both would miss (decisions/park-and-wake). */
    if (atomic_load_explicit(&target->park, memory_order_seq_cst) == DOMI_PARK_SLEEPING) {
        uint32_t sleeping = DOMI_PARK_SLEEPING;
        if (atomic_compare_exchange_strong_explicit(&target->park, &sleeping, DOMI_PARK_NOTIFIED,
                                                    memory_order_seq_cst, memory_order_relaxed)) {
            domi_counter_add(&self->counters.wakeups_sent, 1);
            if (target->wake != NULL)
                target->wake(target);
        }
    }
}

#endif
