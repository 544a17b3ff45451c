/* The functions of io and of runtime that house calls, as two tables.
 *
 * House knows neither of the two layers. Each layer fills a constant table, and domi_manager_init()
 * copies both tables into the manager, so that a call costs one load. An entry may be NULL only if
 * its comment says what the caller does then (contract: NULL entries); a test names the entries
 * that each table lacks. The owner of the manager calls an entry, unless the entry's comment names
 * another thread. */
#ifndef DOMI_HOUSE_MESSAGE_HOOKS_H
#define DOMI_HOUSE_MESSAGE_HOOKS_H

#include "house/message/queue.h"

#include <domus/hooks.h>
#include <domus/memory.h>

typedef struct domi_manager domi_manager;
struct domi_lookup;
struct domi_promise;
struct domus_answer;
struct domus_spawn_options;

/* An event in the life of an actor, about which the hook `log` writes a line. */
typedef enum domi_happening {
    DOMI_HAS_FAILED,
    DOMI_IS_RESTARTED,
    DOMI_ESCALATES, /* the actor fails because one of its children has failed */
    DOMI_IS_ENDED,  /* the root has decided that a failed actor without a parent ends */
    /* the actor has as many parked conversations as it may (scheduler.conversationsMax) */
    DOMI_IS_FULL,
} domi_happening;

/* Mistakes of an actor's function after which the library can go on (turn.h). */
typedef enum domi_mistake {
    /* mistake: the function let its conversation wait, and did not return DOMUS_PARKED */
    DOMI_WAIT_NOT_RETURNED,
    /* mistake: the function let its conversation wait twice, for different functions */
    DOMI_WAIT_REPLACED,
    /* mistake: the function returned a positive number that is not DOMUS_PARKED */
    DOMI_RESULT_UNKNOWN,
    /* mistake: the function called a verb that needs a ring (ringless.h), on a thread without
     * one */
    DOMI_NEEDS_RING,
    DOMI_TYPE_UNKNOWN, /* mistake: the behaviour has no row for a message of this type */
    /* mistake: the function has ended, and its ask was neither answered nor kept */
    DOMI_ASK_UNANSWERED,
    DOMI_ANSWER_UNWRITTEN, /* mistake: the pipeline could not encode an answer of this type */
} domi_mistake;

/* The functions of io for the actors of a manager. No entry is NULL: a manager without io has
 * domi_hooks_without_io (dispatch/manage.h). */
typedef struct domi_io_hooks {
    /* Handle up to `budget` pieces of work of an actor's channels, in a run of the actor. Returns
     * the number of handled pieces; clears DOMI_MARK_CHANNELS if no work is left. */
    uint32_t (*run_channels)(domi_manager *manager, domi_house *house, uint32_t budget);

    /* Call on_open of a channel, whose actor was mounted, unless the channel has to wait for the
     * header of a proxy. A message that lies in the mailbox already is handled after on_open. */
    void (*open_channel)(domi_manager *manager, domi_house *house);

    /* Record that a conversation of the channel `house` has ended, one that the channel counts
     * (DOMI_STACK_COUNTED). */
    void (*conversation_ended)(domi_manager *manager, domi_house *house);

    /* Remove a promise that waits until bytes have left a channel (DOMI_PROMISE_FLUSH), because the
     * promise ends. */
    void (*flush_left)(domi_manager *manager, struct domi_promise *promise);

    /* Send the answer to `ask` to the peer of the channel of `house`. The ask is a request of that
     * peer, which has either not left the house or got a promise (peer.h). Consumes the envelope,
     * and what the payload of the answer owns. */
    void (*answer_request)(domi_manager *manager, domi_house *house, domi_envelope *ask,
                           const domus_type *type, const void *payload);

    /* Let a request of a peer fail that has not left the house of its channel. Consumes the
     * envelope. */
    void (*fail_request)(domi_manager *manager, domi_house *house, domi_envelope *ask, int error);

    /* Handle an answer that another actor gave to a peer's request with this number: a reply; with
     * `error` an exception; NULL if the request has expired. Consumes the envelope. */
    void (*answer_peer)(domi_manager *manager, domi_house *house, uint32_t number, int error,
                        domi_envelope *answer);

    /* Prepare a message for a life beyond its turn, if its sender is the actor that handles it. If
     * it came from the peer of the actor's channel, the bytes that it shows are copied; a request
     * that `leaves` the actor gets a promise, too. Returns 0; -ENOMEM. */
    int (*release_message)(domi_manager *manager, domi_house *house, domi_envelope *message,
                           bool leaves);

    /* Take mail for which the behaviour of a channels actor has no row, if it is for the peer.
     * Returns whether it was taken. */
    bool (*send_mail)(domi_manager *manager, domi_house *house, domi_envelope *message);

    /* Find the asks that were put to `house` and wait in it until they can be sent to a peer. They
     * are in several lists; `index` is the number of one, which may be empty, and its count is
     * handed out, too. Returns false if there are not so many lists. */
    bool (*unsent_asks)(domi_house *house, uint32_t index, domi_node ***ret_list,
                        uint32_t **ret_count);

    /* Remove from a channels actor that takes no mail any more those waiting asks whose askers have
     * to be told of the connection instead of the actor. */
    void (*return_mail)(domi_manager *manager, domi_house *house);

    /* Reset the channel of a channels actor that has failed; its parent is not asked then. Returns
     * false if the actor has no channel. */
    bool (*channel_failed)(domi_manager *manager, domi_house *house, int error);

    /* Take `message`, which lies in the mailbox of events, if it is one of io's own (an accepted
     * connection). Returns whether it was taken; then the caller frees the message. */
    bool (*take_event)(domi_manager *manager, domi_house *house, domi_envelope *message);

    /* Record that the event of a watch on a descriptor was handled or dropped, so that the next one
     * may come. */
    void (*descriptor_handled)(domi_manager *manager, domi_node *node);

    /* Cancel a watch on a descriptor. */
    void (*descriptor_cancel)(domi_manager *manager, domi_node *node);

    /* Carry out the note that a thief has left for a watch on a descriptor (notes.h), once the
     * house is back. */
    void (*descriptor_noted)(domi_manager *home, domi_node *node);

    /* Begin to close what `house`, a channels actor, owns: a channel or a listener. Returns 0 when
     * nothing is left of it, otherwise 1. */
    uint32_t (*stop_channels)(domi_manager *manager, domi_house *house);
} domi_io_hooks;

/* The functions that runtime brings for a manager; in a test, the functions of the test. */
typedef struct domi_runtime_hooks {
    /* Wake the owner of `manager`; any thread. NULL: no owner ever sleeps. */
    void (*wake)(domi_manager *manager);

    /* Write a log line about an event in the life of an actor. NULL: nobody reads a log. */
    void (*log)(domi_manager *manager, const domi_house *house, domi_happening what, int error);

    /* Report a mistake of a function that handles `type` and returned `result`, once for each
     * behaviour and type. NULL: nobody reads a log. */
    void (*warn)(domi_manager *manager, const domi_house *house, domi_mistake what,
                 const domus_type *type, int result);

    /* Write `text` as a log line. NULL: nobody reads a log. */
    void (*say)(domi_manager *manager, domus_log_level level, const char *text);

    /* Spawn a detached actor. NULL: there are none, and the caller returns -EOPNOTSUPP. */
    int (*spawn_detached)(domi_manager *manager, domi_house *parent,
                          const domus_behaviour *behaviour, const void *state,
                          const struct domus_spawn_options *options, domus_address *ret_address);

    /* Returns true if this thread may spawn now. After true, no stop of the system goes on until
     * end_spawn() is called; after false, end_spawn() is not called. Both NULL: the owner may spawn
     * at any time, because it learns of a stop by `closing`. */
    bool (*begin_spawn)(domi_manager *manager);
    void (*end_spawn)(domi_manager *manager);

    /* Withdraw blocking work that has not begun. Returns false if the work runs already. NULL:
     * there is no blocking work, so no work runs. */
    bool (*withdraw)(domi_manager *manager, struct domi_promise *promise);

    /* Do blocking work for a conversation, as domus_blocking() does. NULL: there is no blocking
     * work, and the caller returns -EOPNOTSUPP. */
    int (*block)(domus_stack *stack, int (*function)(void *argument), void *argument,
                 int (*then)(domus_stack *stack, void *self, const struct domus_answer *answer));

    /* Look a name up for a connect (io/connectors/name.h). Returns 0 when the result is in
     * `lookup`; -EINPROGRESS when an event will tell the result; any other error. NULL: names are
     * not looked up, and the caller returns -EOPNOTSUPP. */
    int (*resolve)(domi_manager *manager, struct domi_lookup *lookup, const char *name);
    /* Forget the look-up of a name, which may have ended. NULL if `resolve` is NULL. */
    void (*unresolve)(domi_manager *manager, struct domi_lookup *lookup);

    /* Read how short memory is now. Returns the number of the latest change. Any thread may call
     * it, also under a spinlock. NULL: nobody measures memory, and the level is NORMAL. */
    uint32_t (*read_memory)(const domi_manager *manager, domus_memory_change *ret_change);

    /* Read the clock within a phase, for work whose time is bounded. Owner. NULL: no time is
     * measured. */
    uint64_t (*read_clock)(const domi_manager *manager);
} domi_runtime_hooks;

#endif
