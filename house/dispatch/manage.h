/* The beginning and the end of a manager and of its actors. */
#ifndef DOMI_HOUSE_DISPATCH_MANAGE_H
#define DOMI_HOUSE_DISPATCH_MANAGE_H

#include "house/message/manager.h"

/* The options of a new manager. A field that is left out is 0 or NULL; the comment of the field
 * says what this means. */
typedef struct domi_manager_options {
    uint32_t index; /* index of the manager in `managers` */
    uint32_t count; /* number of managers of the system */
    /* number of managers of the loop's threads, which come first; 0: all managers but the last
     * one */
    uint32_t threads;
    domi_manager **managers;    /* all managers, by index; the array may be filled later */
    const domus_config *config; /* configuration of the system; constant */
    uint64_t now_ns;            /* time at which the manager starts, in nanoseconds */

    const domi_runtime_hooks *hooks; /* functions that runtime brings; NULL: every entry is NULL */
    void *thread;                    /* object that the hooks get for this thread */
    void *system;                    /* object that the hooks get for the system */
    const domi_io_hooks *io_hooks;   /* functions that io brings; NULL: domi_hooks_without_io */
    /* the io of this manager, which may be set later; NULL: none */
    void *io;

    /* the actor in whose name foreign threads ask; NULL: there is none yet */
    domi_house *asker;
    /* address of the level of domus_memory_level(); NULL: memory is never short */
    const _Atomic uint32_t *pressure;
    /* the table of names of the system; in this field and those below NULL means that there is
     * none */
    struct domi_names *names;
    struct domi_letters *letters;       /* the table of subscribers to dead letters and refusals */
    struct domi_groups *groups;         /* the table of the groups of the system */
    struct domi_routers *routers;       /* the table of the routers of the system */
    struct domi_remotes *remotes;       /* the table of the addresses of remote actors */
    struct domi_grains *grains;         /* the table of the kinds of grains of the system */
    struct domi_processes *processes;   /* the lists of the processes that live in the system */
    struct domi_behaviours *behaviours; /* the table of the behaviours that have a number */
} domi_manager_options;

/* The functions of io for a manager without io. Its actors have no channels and watch no
 * descriptor, so the functions that would handle these fail a check. */
extern const domi_io_hooks domi_hooks_without_io;

/* Make `manager` by `options`, owned by the calling thread. The caller has zeroed its memory.
 * Returns 0; -ENOMEM. */
int domi_manager_init(domi_manager *manager, const domi_manager_options *options);

/* Replace the configuration of a manager; the new one differs from the last one only in live keys.
 * The owner. */
void domi_manager_set_config(domi_manager *manager, const domus_config *config);

/* Spawn the actor in whose name foreign threads ask, on `manager`, which is the outside's. The
 * owner calls this once, before the manager is used. Returns 0; -ENOMEM. */
int domi_manager_spawn_asker_for_outside(domi_manager *manager, const domus_behaviour *behaviour,
                                         domus_address *ret_address);

/* Free the memory of `manager`, after all threads have ended. domi_manager_end_actors() has to be
 * called before, because it releases what messages still own. */
void domi_manager_fini(domi_manager *manager);

/* Run on_stop of every actor that lives on this manager, and turn all mail into dead letters. The
 * owner calls this last; or a thread that has become the owner after the former owner has ended. */
void domi_manager_end_actors(domi_manager *manager);

/* Stop every actor of this manager that has no parent; these stop their children. Called when the
 * system stops, after all threads have ceased to spawn. Owner. */
void domi_manager_stop_actors(domi_manager *manager);

#endif
