/* Doors: single functions of higher storeys that lower storeys need, on rare paths only.
 *
 * `domi_doors` is declared here and filled by a higher storey, in one place (dispatch/kinds.c). No
 * entry is NULL. A function that is called for each message does not belong here, because each call
 * through a door is an indirect one. */
#ifndef DOMI_HOUSE_MESSAGE_DOORS_H
#define DOMI_HOUSE_MESSAGE_DOORS_H

#include "house/message/manager.h"

struct domus_remote_name;

struct domi_doors {
    /* Put `node`, whose lease and kind are set, to the router (directory/router.h) or remote actor
     * (directory/remote.h) to which the house `face` without a home belongs. Returns as
     * domi_mailbox_put(). Called by the owner of `manager`. */
    int (*put_to_face)(domi_manager *manager, domi_house *face, domi_node *node);

    /* Tell the subscribers to refusals that `house` has refused the ask or notice of `node`,
     * because as many messages wait in it as may. The refusal is counted already. Called by the
     * owner of `manager`. */
    void (*tell_refused)(domi_manager *manager, domi_house *house, const domi_node *node);

    /* Check `ask`, which was just appended to the mailbox of `house` behind a barrier. If it would
     * wait for itself there, take it out again and let it fail with -EDEADLK. Returns true if it
     * stays. Called by home, or by the runner of a pool. */
    bool (*hold_ask)(domi_manager *manager, domi_house *house, domi_node *ask);

    /* Stop a router and its routees, or ask for the stop of a remote actor. Returns as
     * domi_house_ask_to_stop(). Called by the owner of `manager`. */
    int (*stop_face)(domi_manager *manager, domus_address address);

    /* Read the name of a remote actor. Returns false if the actor's address has ended (remote.h).
     * Called by the owner of `manager`. */
    bool (*read_remote_name)(domi_manager *manager, domus_address address,
                             struct domus_remote_name *ret_name);

    /* Handle the failure of a conversation of `house` that answered no ask: the actor has failed
     * with `error`, and its parent decides. `begun_by` is the type of the message that began the
     * conversation, if that is known. Called by the runner. */
    void (*handle_failure)(domi_manager *manager, domi_house *house, int error,
                           const domus_type *begun_by);

    /* Move the asks and notices that wait in `house`, a life of a grain that ends, to the grain's
     * next life. Called by home. */
    void (*return_mail)(domi_manager *manager, domi_house *house);

    /* Register `name` for an actor that is being made. Returns the errors of domus_name_register().
     * Called by the thread that makes the actor and owns `manager`. */
    int (*put_name)(domi_manager *manager, domi_house *house, const char *name,
                    domus_address address);

    /* Stop the routers that an actor has made, because it restarts. Called by the runner. */
    void (*stop_routers)(domi_manager *manager, domi_house *house);

    /* Remove an actor that ends from all tables: give its name back, leave its groups, stop its
     * routers, and let the next life of its grain begin. Called by home, when nothing can be put
     * into the house any more. */
    void (*leave_directory)(domi_manager *manager, domi_house *house);
};

extern const struct domi_doors domi_doors;

#endif
