/* The addresses of remote actors (domus/remote.h): each points to a house without a home, so that a
 * put to it comes to the door for such houses, and messages to other actors pay nothing for it.
 *
 * Such a house never runs. An ask or a notice that is put to it goes unchanged into the mailbox of
 * a gateway instead. Its `error`, which asks and notices do not use otherwise, says for which
 * remote actor it is: the place of the actor's address in the table (24 bits), and 8 bits of the
 * lease. An address that has ended is used again for another actor only behind all other free ones,
 * of which there are at least REUSE_MIN. So while a message waits in a gateway, its address would
 * have to end 256 times before the message could be taken for one to another actor.
 *
 * An answer to an ask that a gateway has made in the name of a remote actor is put to that actor's
 * house, as to any asker, and comes to the gateway whose promise it is for. Watches come to the
 * gateway that owns the address; only this gateway touches the list of the house.
 *
 * The table is under one lock, which is held while one bucket is searched. A put takes no lock: it
 * reads the life word and the state of the node. */
#ifndef DOMI_HOUSE_DIRECTORY_REMOTE_H
#define DOMI_HOUSE_DIRECTORY_REMOTE_H

#include "house/conversation/ask_make.h"
#include "house/directory/remote_layout.h"

/* Make an empty table of remote addresses, which allocates nothing. */
void domi_remotes_init(domi_remotes *remotes);

/* Free the table of remote addresses, when no thread uses it any more. A zeroed table is
 * accepted. */
void domi_remotes_fini(domi_remotes *remotes);

/* Allocate the table of remote addresses for a system of `threads` threads, unless it was done
 * before. Returns 0; -EINVAL; -ENOMEM. Any thread. */
int domi_remotes_allocate_tables(domi_remotes *remotes, const domus_remote_options *options,
                                 uint32_t threads);

/* Open a node, or set its state, as domus_remote_node_open() and domus_remote_node_set() do. Any
 * thread may call them. */
int domi_remote_node_open(domi_remotes *remotes, uint64_t node, int error);
int domi_remote_node_set_state(domi_remotes *remotes, uint64_t node, int error);

/* Find the remote address for a name of another system, or make one. The gateway of the manager
 * `owner` gets the watches of a new address. Returns the errors of domus_remote_address(). Any
 * thread. */
int domi_remote_find_or_make(domi_remotes *remotes, const domus_remote_name *name, uint16_t owner,
                             domus_address *ret_address);

/* Returns the table's entry for a name of another system; NULL if the name has no address. Any
 * thread; but only on the thread of its owner its lease cannot end meanwhile. */
domi_remote *domi_remote_find_by_name(domi_remotes *remotes, const domus_remote_name *name);

/* Read the name of the remote actor `remote`, if the bits of `mask` in the lease of its address are
 * those of `lease`. Returns whether they are. Any thread. */
bool domi_remote_read_name(domi_remotes *remotes, const domi_remote *remote, uint32_t lease,
                           uint32_t mask, domus_remote_name *ret_name);

/* Returns the entry of the table of remote addresses with the number `index`; NULL: there is none.
 * Any thread. */
domi_remote *domi_remote_at_index(domi_remotes *remotes, uint32_t index);

/* End a remote address. Called by the gateway that owns it, after it has told the watches. */
void domi_remote_end_address(domi_remotes *remotes, domi_remote *remote);

/* List idle remote addresses as domus_remote_idle() does, for the gateway of `owner`. */
uint32_t domi_remote_list_idle_addresses(domi_remotes *remotes, uint64_t node, uint16_t owner,
                                         uint32_t *cursor, domus_remote_name *ret_names,
                                         uint32_t room);

/* Record that this thread has no gateway any more, if the actor of `house`, which ends, was its
 * gateway. Called by home. */
void domi_remote_forget_gateway_if_it_ends(domi_manager *manager, const domi_house *house);

static inline domi_remote *domi_remote_of_face(domi_house *face)
{
    return (domi_remote *)(void *)face;
}

/* Highest index of a remote actor; domi_remote_tag_of_index_and_lease() makes the `error` of its
 * messages of index and lease. */
#define DOMI_REMOTE_INDEX_MAX UINT32_C(0xffffff)
static inline int32_t domi_remote_tag_of_index_and_lease(uint32_t index, uint32_t lease)
{
    return (int32_t)(lease << 24 | index);
}

/* Ask a remote actor as domus_remote_ask() does, and put the ask by the function `put` with
 * `context` (remote_verbs.c). */
int domi_remote_ask_by_put_function(domus_stack *stack, domus_conversation asker,
                                    domus_address from, domus_address to, const domus_type *type,
                                    const void *payload, uint64_t timeout_ns, uint64_t tag,
                                    domi_ask_put *put, void *context,
                                    domus_remote_asked *ret_asked);

/* --- puts (remote_put.c) ---------------------------------------------------------------------- */

/* Put `node`, whose lease and kind are set, to the remote actor of `face`. Returns as
 * domi_mailbox_put(), and also the error of the actor's node. Called by the owner of `manager`. */
int domi_remote_put_to_gateway(domi_manager *manager, domi_house *face, domi_node *node);

/* Stop a remote actor as domi_house_ask_to_stop() stops an actor: a gateway gets the request. */
int domi_remote_stop_actor(domi_manager *manager, domus_address address);

/* Tell the gateway that owns the address `remote` that the group of this outlet has its first
 * member. */
void domi_remote_tell_gateway_of_first_member(domi_manager *manager, domi_remote *outlet);

/* Returns the address of the gateway of the manager with this index; nobody if the manager has
 * none. Any thread. */
domus_address domi_remote_gateway_of_manager(const domi_manager *manager, uint32_t index);

/* Returns the gateway for messages of a sender: the one of its home; for a sender outside the
 * loop's threads always the same one; nobody if there is no gateway. Any thread. */
domus_address domi_remote_gateway_for_sender(const domi_manager *manager, const domi_house *sender);

#endif
