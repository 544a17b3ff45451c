/* Addresses of actors in other systems, for a library that carries messages to them
 * (libdomus-cluster is one). Programs use the verbs of domus/actor.h and domus/conversation.h with
 * such an address, as with any other, and need nothing of this header but
 * domus_address_is_remote().
 *
 * **Names.** A remote actor has a name: the system in which it lives (its *node*, a number that the
 * library chooses, and that no later start of that system has again), and where it lives there.
 * domus_remote_address() turns a name into an address, the same one each time, and
 * domus_remote_name() an address into a name, also that of an actor of this system. A name that a
 * stranger has made up leads at worst to another actor of this system, and mostly to none.
 *
 * **Gateways.** One channels actor on each thread is the gateway of that thread. A message to a
 * remote address comes into the mailbox of the gateway of the sender's home, in order, as the
 * message that it is: an ask, or a notice. Its last row (the one with a NULL type) takes it, and
 * domus_remote_target() names the actor that it is for. So the rows of a gateway name only types
 * that no other code has, and nobody else gets its address. Senders without a thread (of pools,
 * detached, from outside) each have one gateway, too, always the same.
 *
 * A gateway gets four events of its own, which need rows:
 *
 *   domus_remote_stop_type       domus_stop() was called for a remote address
 *   domus_remote_watch_type      a remote actor is watched here now
 *   domus_remote_cancel_type     the asker of an ask that the gateway keeps waits no more
 *   domus_remote_joined_type     a group that has an outlet has its first member
 *
 * **Nodes.** domus_remote_node_open() makes a node known. Its state is 0, or the negative errno
 * with which messages to its actors are refused: -ENOBUFS while too much is on the way,
 * -EHOSTDOWN while it cannot be reached, -ESTALE when it has ended.
 *
 * Links (domus_link_actor()) of remote actors are refused with -EOPNOTSUPP.
 *
 * Thread-safety: all functions here that take a stack are for handlers, with the stack that the
 * handler was given; those that may return -EPERM are for gateways, and return it to others. */
#ifndef DOMUS_REMOTE_H
#define DOMUS_REMOTE_H

#include <domus/conversation.h>
#include <domus/grain.h>
#include <domus/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* True if the address is that of an actor in another system. Thread-safety: any thread. */
DOMUS_API bool domus_address_is_remote(domus_address address);

/* --- names ------------------------------------------------------------------------------------ */

#define DOMUS_REMOTE_HERE UINT64_C(0) /* the node of a name whose actor lives in this system */
/* value of `home` in the name of a router, which has no home */
#define DOMUS_REMOTE_ROUTER 0xffffu

/* The name of an actor: where it lives. All fields are numbers, which mean something in the system
 * of the actor only. */
typedef struct domus_remote_name {
    /* node in which the actor lives: DOMUS_REMOTE_HERE, or the number of a node that was opened */
    uint64_t node;
    uint32_t number; /* number of the actor's slot in its home, or number of the router */
    uint32_t lease;  /* lease of the actor in its slot */
    uint16_t home;   /* number of the home of the slot, or DOMUS_REMOTE_ROUTER */
    uint16_t reserved[3];
} domus_remote_name;

/* Get the address of a name. The address of an actor of this system may be stale, as any address;
 * the address of a remote actor stays the same until domus_remote_end().
 *
 * Returns 0; -EINVAL for a lease of 0 and for the node DOMUS_REMOTE_GRAINS; -ENOENT when the node
 * was not opened, or when this system has no such slot or router; -ESTALE when the node has ended;
 * -ENOSPC when addresses_max remote addresses are in use; -ENOMEM. */
DOMUS_API int domus_remote_address(domus_stack *stack, const domus_remote_name *name,
                                   domus_address *ret_address);

/* Get the name of the actor that has an address. Returns 0; -EINVAL for nobody; -ESTALE for a
 * remote address that has ended. */
DOMUS_API int domus_remote_name_of(domus_stack *stack, domus_address address,
                                   domus_remote_name *ret_name);

/* --- gateways and nodes ----------------------------------------------------------------------- */

/* Options of domus_remote_open(). All fields may be 0. The first gateway decides for all gateways
 * of a system. */
typedef struct domus_remote_options {
    /* Most remote addresses in use at a time, 256..16,777,216; 0 means 262,144. Each address that
     * was in use takes 256 bytes until the system is freed. */
    uint32_t addresses_max;
    /* most nodes that are known to a system at a time, 1..65,536; 0 means 1,024 */
    uint32_t nodes_max;
} domus_remote_options;

/* Make the running actor the gateway of its thread, until it ends. `options` may be NULL.
 *
 * The asks that a gateway keeps (domus_remote_keep()) do not count for scheduler.conversationsMax:
 * it goes on to take mail.
 * Returns 0; -EINVAL for a wrong option; -EEXIST when the thread has a gateway; -EOPNOTSUPP for a
 * state actor, and for an actor that is not on a thread of the loop; -ENOMEM. */
DOMUS_API int domus_remote_open(domus_stack *stack, const domus_remote_options *options);

/* Get the gateway to which messages of the running actor go, for a library whose verbs ask its
 * gateways. Thread-safety: any handler. Returns 0; -ENOENT when this system has none. */
DOMUS_API int domus_remote_gateway(const domus_stack *stack, domus_address *ret_gateway);

/* Make a node known, in the state `error`. Returns 0; -EPERM; -EINVAL for the number of this
 * system, DOMUS_REMOTE_GRAINS, or a wrong state; -EALREADY when it is known; -ENOSPC at nodes_max.
 */
DOMUS_API int domus_remote_node_open(domus_stack *stack, uint64_t node, int error);

/* Change the state of a node: 0, or the negative errno with which what is sent to its actors is
 * refused. -ESTALE is for ever: each gateway then ends all addresses of the node that
 * domus_remote_idle() names, and the node is forgotten with the last one.
 *
 * Returns 0; -EPERM; -EINVAL for a positive number; -ENOENT when it is not known. */
DOMUS_API int domus_remote_node_set(domus_stack *stack, uint64_t node, int error);

/* --- what is sent to remote actors ------------------------------------------------------------ */

/* The message that a gateway handles, which was sent to a remote actor. */
typedef struct domus_remote_message {
    domus_remote_name to;
    const domus_type *type;
    bool is_ask; /* whether the message is an ask; else it is a notice */
} domus_remote_message;

/* Get the message that the gateway handles, and the actor that it is for. domus_sender() is its
 * sender, which may be a remote actor, too, and domus_deadline_ns() is the deadline of an ask.
 *
 * Returns 0; -EPERM; -EINVAL when the message was sent to no remote actor; -ESTALE when that actor
 * has ended since. */
DOMUS_API int domus_remote_target(const domus_stack *stack, domus_remote_message *ret_message);

/* Keep the ask that the gateway handles as domus_keep_working() does, until the answer comes: then
 * domus_kept_reply(), or domus_kept_fail(). When the asker cancels the ask, the gateway gets an
 * event of domus_remote_cancel_type; when its deadline passes, the gateway gets none.
 *
 * Returns as domus_keep_working(); -EPERM. */
DOMUS_API int domus_remote_keep(domus_stack *stack, domus_kept *ret_kept);

/* The payload of an event: an ask that the gateway has kept was cancelled. */
typedef struct domus_remote_cancelled_ask {
    /* handle of the ask, as domus_remote_keep() gave it; the gateway keeps the ask no longer */
    domus_kept kept;
} domus_remote_cancelled_ask;

DOMUS_API extern const domus_type domus_remote_cancel_type;

/* The payload of an event: domus_stop() was called for a remote address, which any gateway may get;
 * or domus_stop_after_mail() was, whose event comes behind the mail of the actor that has called
 * it. */
typedef struct domus_remote_stop {
    domus_remote_name name;
} domus_remote_stop;

DOMUS_API extern const domus_type domus_remote_stop_type;
/* the type of an event without payload: domus_stop_after_mail() was called for a remote address;
 * domus_remote_target() gives the actor's name */
DOMUS_API extern const domus_type domus_remote_stop_after_mail_type;

/* --- what remote actors send ------------------------------------------------------------------ */

/* Send a notice to an actor of this system in the name of `from`, a remote address or nobody: it is
 * what domus_sender() shows. Ownership and results as of domus_notice(); -EPERM; -EINVAL for a
 * `from` that is not remote. */
DOMUS_API int domus_remote_notice(domus_stack *stack, domus_address from, domus_address to,
                                  const domus_type *type, const void *payload);

/* A handle of an ask that was made in the name of a remote actor. A stale handle does no harm. */
typedef struct domus_remote_asked {
    void *promise;
    uint32_t serial;
} domus_remote_asked;

/* Ask in the name of `from`, as domus_ask_add() does, but for another conversation of this actor,
 * `asker`, which waits (domus_wait_first(), with something that does not end, such as a long
 * sleep). So one conversation has all asks of a gateway: each answer resumes it with the tag of its
 * ask, and it waits again. `ret_asked` may be NULL.
 *
 * Ownership and results as of domus_ask_add(); -EPERM; -EINVAL for a `from` that is not remote;
 * -ENOENT when the conversation has ended or does not wait. */
DOMUS_API int domus_remote_ask(domus_stack *stack, domus_conversation asker, domus_address from,
                               domus_address to, const domus_type *type, const void *payload,
                               uint64_t timeout_ns, uint64_t tag, domus_remote_asked *ret_asked);

/* Cancel an ask that was made in the name of a remote actor: the asked actor is told, and the
 * conversation gets -ECANCELED as its answer. Returns 0; -EPERM; -ENOENT when the ask is over. */
DOMUS_API int domus_remote_cancel(domus_stack *stack, domus_remote_asked asked);

/* --- groups -----------------------------------------------------------------------------------
 *
 * A group of this system may have an *outlet*: a remote address that is its hidden member.
 * Publications of actors of this system come to the gateways as notices to that address; those of
 * one publisher come to one gateway, in order, and domus_remote_target() names the outlet. The
 * other way around a gateway publishes here for actors elsewhere, and this does not come to the
 * outlet. domus_group_members() does not count the outlet. */

/* Make a remote address the outlet of a group, until the system is freed. An outlet is that of one
 * group alone, and its address must not end.
 *
 * Thread-safety: any handler.
 * Returns 0; -EALREADY when the group has an outlet; -EINVAL for an address that is not remote, or
 * a zeroed handle; -ENOMEM; -ESHUTDOWN when the system stops. */
DOMUS_API int domus_remote_join(domus_stack *stack, domus_group group, domus_address outlet);

/* The payload of an event: the group of an outlet has its first member, or has members when it gets
 * the outlet. The gateway that gets the watches of the outlet gets this event, unless memory is
 * short: so it also looks at domus_group_members() from time to time, which tells when the last one
 * has left, too. */
typedef struct domus_remote_joined {
    domus_remote_name outlet;
} domus_remote_joined;

DOMUS_API extern const domus_type domus_remote_joined_type;

/* Publish in the name of `from`, a remote address or nobody, to the members here. Ownership and
 * results as of domus_publish(); -EPERM; -EINVAL for a `from` that is not remote. */
DOMUS_API int domus_remote_publish(domus_stack *stack, domus_address from, domus_group group,
                                   const domus_type *type, const void *payload);

/* --- the end of remote actors ----------------------------------------------------------------- */

/* The payload of an event: a remote actor is watched (domus_watch_actor(), domus_watch_room()), for
 * the first time or again. The gateway that gets it has to tell the actor's end, by
 * domus_remote_end() or domus_remote_down(), or that there is room, by domus_remote_room(). The
 * names of one home always come to the same gateway. */
typedef struct domus_remote_watch {
    domus_remote_name name;
    bool room; /* whether the watch is for room in the actor's mailbox */
} domus_remote_watch;

DOMUS_API extern const domus_type domus_remote_watch_type;

/* Report that a remote actor has ended with `reason`, as domus_down has it: its address is stale
 * from now on, and its watchers are told. Called by the gateway that gets domus_remote_watch for
 * this name; another one gets -EXDEV.
 *
 * Returns 0; -EPERM; -EXDEV; -ENOENT when the name has no address here. */
DOMUS_API int domus_remote_end(domus_stack *stack, const domus_remote_name *name, int reason);

/* Report that the node of a remote actor is down: the watchers of the actor are told `reason`, and
 * its address stays. Called and returns as domus_remote_end(). */
DOMUS_API int domus_remote_down(domus_stack *stack, const domus_remote_name *name, int reason);

/* Report that there is room for messages to a remote actor again: watchers for room are told.
 * Called and returns as domus_remote_end(). */
DOMUS_API int domus_remote_room(domus_stack *stack, const domus_remote_name *name);

/* --- addresses that nobody uses --------------------------------------------------------------- */

/* Write the names of up to `room` remote actors of `node` into `ret_names`: those whose watches
 * come to this gateway, that are not watched now, and to and from which nothing was sent over the
 * last three looks; or, if the node has ended, all of them. `*cursor` begins at 0, and is 0 again
 * when all addresses were looked at; a call looks at 4,096 at most. The gateway asks the node which
 * of these have ended, and ends them, so that the addresses of actors that come and go do not fill
 * the table.
 *
 * Returns how many it wrote. */
DOMUS_API uint32_t domus_remote_idle(domus_stack *stack, uint64_t node, uint32_t *cursor,
                                     domus_remote_name *ret_names, uint32_t room);

/* --- grains that are spread over nodes --------------------------------------------------------
 *
 * A library may spread the grains of some kinds (domus/grain.h) over several systems. They fall
 * into parts, by a hash of kind and key that is the same in each system, and the library decides
 * which system has a part. In it each gateway opens the part: from then on messages of actors of
 * its thread go to the grains of this system as ever. All others come to the gateway of their
 * sender, which asks domus_remote_grain() for whom they are: it sends them to the system that has
 * the part, or passes them on to the grain here.
 *
 * A life is made in a part that has a fence alone (domus_remote_part_set()), and keeps it as its
 * domus_grain_fence(). So to give a part to another system in order, all gateways close it,
 * domus_remote_parts_stop() is called until no grain of it lives, and then the fence is taken away.
 */

#define DOMUS_REMOTE_PARTS 256u
/* `to.node` of a domus_remote_message whose receiver is a grain */
#define DOMUS_REMOTE_GRAINS UINT64_MAX

/* Spread the grains of a kind, for good. Grains that live already stay as they are.
 *
 * Returns 0, also if they were spread before; -EPERM; -EINVAL for a zeroed handle; -ENOSPC;
 * -ENOMEM. */
DOMUS_API int domus_remote_grains_place(domus_stack *stack, domus_grains grains);

/* Find the kind of grains of this name. Returns 0; -ENOENT when it was not opened, or is not
 * spread. */
DOMUS_API int domus_remote_grains_find(const domus_stack *stack, const char *name,
                                       domus_grains *ret_grains);

typedef struct domus_remote_grain {
    domus_grains grains;
    const char *kind; /* name of the kind of grains, valid until the system is freed */
    char key[DOMUS_GRAIN_KEY_MAX + 1];
    uint32_t part;
} domus_remote_grain;

/* Get the grain that the message of the gateway is for, if domus_remote_target() says that it is
 * for one. Returns 0; -EPERM; -EINVAL. */
DOMUS_API int domus_remote_grain_of(const domus_stack *stack, domus_remote_grain *ret_grain);

/* Get the part of a grain. Returns 0..255; -EINVAL for a key that cannot be one, and for a zeroed
 * handle. Thread-safety: any thread. */
DOMUS_API int domus_remote_part_of(domus_grains grains, const char *key);

/* Pass the message that the gateway handles, or an ask that was kept, on to the grain of this
 * system, as domus_forward() and domus_kept_forward() would. Return as these; -EPERM; -EHOSTDOWN
 * without a fence; and the errors of domus_grain_ask(). */
DOMUS_API int domus_remote_grain_pass(domus_stack *stack);
DOMUS_API int domus_remote_grain_pass_kept(domus_stack *stack, domus_kept kept);

/* Send a notice, or an ask, to a grain of this system, as domus_remote_notice() and
 * domus_remote_ask() do to an actor. `from` of a notice may be an actor of this system, too. Also
 * return -EHOSTDOWN without a fence, and the errors of domus_grain_ask(). */
DOMUS_API int domus_remote_grain_notice(domus_stack *stack, domus_address from, domus_grains grains,
                                        const char *key, const domus_type *type,
                                        const void *payload);
DOMUS_API int domus_remote_grain_ask(domus_stack *stack, domus_conversation asker,
                                     domus_address from, domus_grains grains, const char *key,
                                     const domus_type *type, const void *payload,
                                     uint64_t timeout_ns, uint64_t tag,
                                     domus_remote_asked *ret_asked);

/* Open a part: let messages of the actors of this thread go to its grains here; or close it again.
 * domus_remote_part_open() returns 0; -EAGAIN while other messages wait for this gateway, which
 * they would overtake: then the gateway passes these on, and tries again; -EPERM; -EINVAL. */
DOMUS_API int domus_remote_part_open(domus_stack *stack, uint32_t part);
DOMUS_API void domus_remote_part_close(domus_stack *stack, uint32_t part);

/* Set the fence with which lives may be made in a part; 0: none may be made any more. When a fence
 * is taken away, mail that waits for grains which end later fails with -EHOSTDOWN. Thread-safety:
 * any handler. Returns 0; -EINVAL; -ENOENT when no kind is spread. */
DOMUS_API int domus_remote_part_set(domus_stack *stack, uint32_t part, uint64_t fence);

/* A set of parts: part n is bit n % 64 of bits[n / 64]. */
typedef struct domus_remote_parts {
    uint64_t bits[DOMUS_REMOTE_PARTS / 64];
} domus_remote_parts;

/* Stop the grains of these parts that live here, behind their mail or at once. It takes one walk
 * over all grains that are spread, if one of the parts has some; those that are being made are not
 * met, so it is called again until domus_remote_part_living() says 0. Thread-safety: any handler.
 */
DOMUS_API void domus_remote_parts_stop(domus_stack *stack, const domus_remote_parts *parts,
                                       bool after_mail);

/* Returns the number of grains of a part that live in this system, or are being made.
 * Thread-safety: any handler. */
DOMUS_API uint32_t domus_remote_part_living(const domus_stack *stack, uint32_t part);

/* True if an actor of this system has this name, lives, and is not about to stop. */
DOMUS_API bool domus_remote_is_alive(domus_stack *stack, const domus_remote_name *name);

#ifdef __cplusplus
}
#endif

#endif
