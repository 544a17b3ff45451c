/* A pool as house knows it: one home for actors that any of several runners may run.
 *
 * The home of these actors is a manager that no thread owns. Its runners have a manager each, which
 * is the home of no actor. A runner that has taken an actor acts for it as home would, with its own
 * manager: it sorts the inbox, mounts, runs, settles and frees. Two things stay with the home: the
 * slots, which have a lock of their own, and the wheels, which are used under `lock`.
 *
 * The inbox word of a house says whether the actor is scheduled. The put that finds it 0 (idle)
 * schedules the actor; from then on it is not 0. The runner leaves DOMI_INBOX_BUSY there when it
 * takes the mail (processing), and changes that to 0 at the end of the turn. If this fails, mail
 * has come, and the runner goes on. So an actor is in at most one queue, and run by one runner. A
 * put reads the word before its compare-exchange. models/pool.pml has this.
 *
 * Thread-safety: the fields are constant while threads run, except `lock` and what it guards. */
#ifndef DOMI_HOUSE_MESSAGE_POOLED_H
#define DOMI_HOUSE_MESSAGE_POOLED_H

#include "house/message/manager.h"

typedef struct domi_pooled domi_pooled;
struct domus_pool;

struct domi_pooled {
    domi_manager *home; /* the home of the pool's actors */
    uint32_t number;    /* the number of the pool in its system, from 0 */
    const char *name;   /* the name of the pool in the configuration */

    /* Give a pooled actor's `house`, which has just become scheduled, a turn. `runner` is the
     * runner of this pool whose thread calls; NULL: the caller is another thread. Any thread. */
    void (*schedule)(domi_pooled *pooled, domi_manager *runner, domi_house *house);

    /* Wake a runner of the pool, because something is due sooner than a sleeping runner may know.
     * Any thread, without the lock. */
    void (*call)(domi_pooled *pooled);

    /* lock that guards the wheels and the clock of the pool's `home` */
    alignas(DOMI_LINES) domi_spinlock lock;
    /* The time at which the pool's next timer or time-out is due, as the last runner to fall
     * asleep has read it from the wheels. A thread that arms an earlier one wakes a runner.
     * Under `lock`. */
    uint64_t awake_ns;

    /* Guards the lists of groups' members in this pool (directory/shard.c). */
    alignas(DOMI_LINES) domi_spinlock members_lock;
};

/* Returns the part of a pool that house knows; the pool's structure begins with it. */
static inline const domi_pooled *domi_pooled_part_of_pool(const struct domus_pool *pool)
{
    return (const domi_pooled *)(const void *)pool;
}

/* Returns the home of a new actor in a pool that the options of a spawn name; NULL: the pool is of
 * another system, or the behaviour is for channels, which a pool cannot have. `behaviour` may be
 * NULL; the spawn checks it. */
static inline domi_manager *domi_pooled_home_for_spawn(const domi_manager *manager,
                                                       const struct domus_pool *pool,
                                                       const domus_behaviour *behaviour)
{
    domi_manager *home = domi_pooled_part_of_pool(pool)->home;

    return home->system == manager->system && (behaviour == NULL || behaviour->kind == DOMUS_STATE)
               ? home
               : NULL;
}

/* True if the house is that of a pooled actor. This is for a house whose home is not the caller's,
 * and few houses are such. */
static inline bool domi_house_is_pooled(const domi_house *house)
{
    return house->home->pooled != NULL;
}

/* Arm `node` for `expires_ns` on a wheel of the pool's home, that of timers or that of time-outs;
 * domi_pooled_disarm_node_on_pools_wheel() takes it off. Called by the runner of an actor of the
 * pool. */
void domi_pooled_arm_node_on_pools_wheel(domi_pooled *pooled, domi_wheel *wheel,
                                         domi_wheel_node *node, uint64_t expires_ns);
void domi_pooled_disarm_node_on_pools_wheel(domi_pooled *pooled, domi_wheel *wheel,
                                            domi_wheel_node *node);

#endif
