/* The manager: the data that a house needs of the thread that is its home.
 *
 * A manager has the time of the current phase, the hooks that io and runtime bring (hooks.h), the
 * park word, and a part for each piece of house: mail, pool, births, schedule, timing, loans and
 * others (parts.h). House and io know nothing else of threads. Only domi_manager_init() fills it
 * (dispatch/manage.h). Only the owner, the thread that uses a manager, touches it, except for
 * constant fields and the fields that begin a cache line of their own: other threads push to
 * `arrivals`, `remote` and `returns`, take from `shared`, and exchange `park`. */
#ifndef DOMI_HOUSE_MESSAGE_MANAGER_H
#define DOMI_HOUSE_MESSAGE_MANAGER_H

#include "base/park.h"
#include "house/message/hooks.h"
#include "house/message/parts.h"

#include <domus/config.h>
#include <domus/memory.h>

/* most managers of a system: 1,024 threads, the outside, 512 detached actors, and 16 pools with 128
 * runners each */
#define DOMI_MANAGERS_MAX 3601

struct domi_manager {
    /* The manager's fields from here to `asker` are read by all threads, and constant while threads
     * run, except `limits`, which the owner reads and a change of the configuration replaces. */
    uint32_t index;
    /* number of the system's managers: those of threads, the outside's, then those of detached
     * actors */
    uint32_t count;
    uint32_t threads;           /* number of managers that belong to the loop's threads */
    domi_manager_limits limits; /* bounds of each actor (mail, runs, conversations) */
    domi_manager **managers;    /* all managers of the system, by index */
    const domus_config *config; /* the configuration of the system, or `taken` */
    /* the system's tables of names, groups, routers, dead letters and others */
    domi_directory directory;
    void *io;                 /* the io of the manager's thread; only io reads it */
    domi_io_hooks io_hooks;   /* the functions that io brings */
    domi_runtime_hooks hooks; /* the functions that runtime brings */
    void *thread;             /* the object that the maker of the manager wants its hooks to get */
    void *system;             /* the domus_system of the manager; only runtime reads it */
    /* The house in whose name foreign threads ask; only in the manager of the outside. No actor
     * gets its address, and it cannot be stopped. */
    domi_house *asker;
    /* The pool, if this manager belongs to a runner or is the home of pooled actors (pooled.h);
     * else NULL. */
    struct domi_pooled *pooled;

    /* Only the owner reads and writes the fields from here on, unless their comments say
     * otherwise. */
    /* time of the thread's current phase, as it was read last, in nanoseconds */
    alignas(DOMI_LINES) uint64_t now_ns;
    /* address of `domi_here` in the owner, the thread that may use this manager */
    const char *owner;
    /* object that measures runs (observer.h); NULL: nothing measures them */
    struct domi_observer *observer;
    domi_manager_shown shown;
    /* table of the asks of all threads that were cancelled last (passed.c); only in manager 0;
     * NULL: none yet */
    _Atomic(_Atomic uint64_t *) cancelled;
    domi_manager_schedule schedule;
    domi_manager_ending ending;
    domi_counters counters; /* counters of this thread; written by the owner, read by any thread */
    domi_sleepers sleepers; /* sleeping threads that the owner of this manager has to wake */
    domi_manager_mail mail;
    domi_manager_belts belts;
    domi_manager_pool pool;
    domi_manager_births births;
    domi_manager_timing timing;
    domi_manager_memory memory;
    domi_manager_loans loans;
    /* the actor that carries what this thread sends to remote actors (directory/remote.h); NULL:
     * none
     */
    domi_house *gateway;
    domi_tally tallies[DOMI_TALLIES]; /* counters of each behaviour on this thread, by its number */
    domus_config taken; /* copy of the configuration that this manager was given last */
    alignas(DOMI_LINES) domi_activity activity;

    /* park word, an enum domi_park. Senders read it after each put that links a house
     * (base/park.h) */
    alignas(DOMI_LINES) _Atomic uint32_t park;
};

/* A field of the manager that another core writes begins a cache line of its own, and no field of
 * the owner follows on that line. A part with such a field has the same alignment, so the next part
 * begins a line, too. */
#define DOMI_BEGINS_LINE(field)                                                                    \
    static_assert(offsetof(struct domi_manager, field) % DOMI_LINES == 0, #field)

DOMI_BEGINS_LINE(now_ns);
DOMI_BEGINS_LINE(mail.arrivals);
DOMI_BEGINS_LINE(belts);
DOMI_BEGINS_LINE(belts.is_short);
DOMI_BEGINS_LINE(belts.linked);
DOMI_BEGINS_LINE(pool);
DOMI_BEGINS_LINE(pool.remote);
DOMI_BEGINS_LINE(births);
DOMI_BEGINS_LINE(births.slots);
DOMI_BEGINS_LINE(timing);
DOMI_BEGINS_LINE(memory);
DOMI_BEGINS_LINE(memory.watches);
DOMI_BEGINS_LINE(loans);
DOMI_BEGINS_LINE(loans.returns);
DOMI_BEGINS_LINE(loans.shared_lock);
DOMI_BEGINS_LINE(loans.thieves);
DOMI_BEGINS_LINE(loans.readies);
DOMI_BEGINS_LINE(activity);
DOMI_BEGINS_LINE(park);

/* The address of this variable identifies the calling thread; house knows nothing else of
 * threads. */
extern _Thread_local char domi_here;

/* Make the calling thread the owner of `manager`. It may be called by the thread that has just made
 * the manager, by another one if the last owner has ended, or under the lock that every user of
 * this manager takes. */
static inline void domi_manager_become_owner(domi_manager *manager)
{
    manager->owner = &domi_here;
}

/* True if the calling thread is the owner. Functions that only the owner may call check this: those
 * that run once an iteration always do, those that run for each message only in builds with slow
 * checks. */
static inline bool domi_manager_is_owned_by_caller(const domi_manager *manager)
{
    return manager->owner == &domi_here;
}

static inline void domi_manager_log_event_of_actor(domi_manager *manager, const domi_house *house,
                                                   domi_happening what, int error)
{
    if (manager->hooks.log != NULL)
        manager->hooks.log(manager, house, what, error);
}

/* Report a mistake of a function that belongs to the actor of `house`. */
static inline void domi_manager_report_mistake(domi_manager *manager, const domi_house *house,
                                               domi_mistake what, const domus_type *type,
                                               int result)
{
    if (manager->hooks.warn != NULL)
        manager->hooks.warn(manager, house, what, type, result);
}

/* Open the short way of a put, with the present bound of a mailbox, or close it, as the manager's
 * state demands. The owner. */
void domi_manager_open_or_close_home_lane(domi_manager *manager);

/* Record whether this thread, as a thief, runs a lent house, whose notices may use neither belts
 * nor the home lane. Without belts this does nothing. Owner. */
void domi_manager_set_runs_lent_house(domi_manager *manager, bool lent);

/* Set the level of memory to `level`: from the critical level on, asks and notices that this
 * manager puts are refused. Owner. */
void domi_manager_set_memory_level(domi_manager *manager, uint32_t level);

/* Read the level of memory again, if it has changed, and store it in the manager. This costs one
 * relaxed load of a cache line that is hardly ever written; the level may be seen late. Owner. */
static inline void domi_manager_reread_memory_level(domi_manager *manager)
{
    uint32_t level = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)manager->memory.pressure,
                                          memory_order_relaxed);

    if (DOMI_UNLIKELY(level != manager->memory.pressure_seen))
        domi_manager_set_memory_level(manager, level);
}

/* Wake the owner of `target` if it sleeps, with at most one write for each sleep (M12). Called by
 * the owner of `self`. */
void domi_manager_wake_owner(domi_manager *self, domi_manager *target);

/* Wake the sleeping owner of `target`, or record that it has to be woken: the latter only if it
 * dozes, and this thread may put wake-ups off now. */
void domi_manager_wake_sleeper_now_or_later(domi_manager *self, domi_manager *target);

/* Make sure that the owner of `target` does not sleep while it has what the owner of `self`, which
 * calls this, has just pushed to it. A thread of the loop that is as good as idle records a dozing
 * thread, and wakes it at the end of the phase, or stands in for it (runtime/loop/steps.h). */
static inline void domi_manager_notify_of_push(domi_manager *self, domi_manager *target)
{
    if (__builtin_expect(domi_park_may_owner_sleep(&target->park), 0))
        domi_manager_wake_sleeper_now_or_later(self, target);
}

/* Returns the behaviour of the actor that runs on `manager`; NULL: none runs. Any thread; the value
 * may be out of date. */
static inline const domus_behaviour *domi_manager_running_behaviour(const domi_manager *manager)
{
    return atomic_load_explicit(
        (_Atomic(const domus_behaviour *) *)(uintptr_t)&manager->activity.running,
        /* pairs with the release in domi_run_begin(), so the behaviour's name is seen */
        memory_order_acquire);
}

/* Returns the type of the message that the running actor handles; NULL: none. Any thread; the value
 * may be out of date. */
static inline const domus_type *domi_manager_type_being_handled(const domi_manager *manager)
{
    return atomic_load_explicit(
        (_Atomic(const domus_type *) *)(uintptr_t)&manager->activity.handling,
        /* pairs with the release in domi_turn_begin(), so the type's name is seen */
        memory_order_acquire);
}

/* True if an actor of this thread is ready to run. Owner. */
static inline bool domi_manager_has_ready_actor(const domi_manager *manager)
{
    return manager->schedule.ready[DOMUS_STATE].count != 0 ||
           manager->schedule.ready[DOMUS_CHANNELS].count != 0;
}

#endif
