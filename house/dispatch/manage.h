/* How a manager begins and ends, and its actors with it. */
#ifndef DOMI_HOUSE_DISPATCH_MANAGE_H
#define DOMI_HOUSE_DISPATCH_MANAGE_H

#include "house/message/manager.h"

/* The parts of a new manager. A field that is left out is 0 or NULL; its comment says
 * what that means. */
typedef struct domi_manager_options {
    uint32_t index;          /* the place of the manager in `managers` */
    uint32_t count;          /* managers of the system */
    uint32_t threads;        /* of these, managers of the loop's threads; 0: all but the last one */
    domi_manager **managers; /* all managers, by index; the array may be filled later */
    const domus_config *config; /* the system's; constant */
    uint64_t now_ns;            /* the time at the start */

    const domi_runtime_hooks *hooks; /* NULL: every entry is NULL */
    void *thread;                    /* an object of the maker, for its hooks */
    void *system;                    /* another one */
    const domi_io_hooks *io_hooks;   /* NULL: domi_hooks_without_io */
    void *io;                        /* the io of this manager, which may be made later; or NULL */

    domi_house *asker;                  /* the outside's asker, or NULL if there is none yet */
    const _Atomic uint32_t *pressure;   /* domus_memory_level; NULL: memory is never short */
    struct domi_names *names;           /* NULL: there are none; all others likewise */
    struct domi_letters *letters;       /* the subscribers to dead letters */
    struct domi_groups *groups;         /* the groups of the system */
    struct domi_routers *routers;       /* the routers of the system */
    struct domi_remotes *remotes;       /* the addresses of remote actors */
    struct domi_grains *grains;         /* the kinds of grains of the system */
    struct domi_processes *processes;   /* the processes that live in the system */
    struct domi_behaviours *behaviours; /* the behaviours that have a number */
} domi_manager_options;

/* The hooks of io for a manager that has no io. Its actors have no channels and watch no
 * descriptor, so the entries that would handle these fail a check. */
extern const domi_io_hooks domi_hooks_without_io;

/* Make `manager` by `options`, owned by the calling thread. Its memory is zero before.
 * Returns 0; -ENOMEM. */
int domi_manager_init(domi_manager *manager, const domi_manager_options *options);

/* Take another configuration, which differs from the last one in live keys. The owner. */
void domi_manager_take_config(domi_manager *manager, const domus_config *config);

/* Spawn the actor in whose name foreign threads ask, on `manager`, which is the outside's. The
 * owner calls this once, before it is used. Returns 0; -ENOMEM. */
int domi_manager_spawn_asker(domi_manager *manager, const domus_behaviour *behaviour,
                             domus_address *ret_address);

/* Free the memory of `manager`, after all threads have ended. domi_manager_end_actors() has to be
 * called before, because it releases what messages still own. */
void domi_manager_fini(domi_manager *manager);

/* Run on_stop of every actor that lives here and turn all mail into dead letters. The owner calls
 * this last; or a thread that has become the owner after the former one ended. */
void domi_manager_end_actors(domi_manager *manager);

/* Stop every actor that has no parent; these stop their children. Called when the system stops,
 * after all threads have ceased to spawn. Owner. */
void domi_manager_stop_actors(domi_manager *manager);

#endif
