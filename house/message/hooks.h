/* The functions of io and of runtime that house calls, as two tables.
 *
 * House knows neither of the two. Each fills a constant table, and domi_manager_init() copies both
 * tables into the manager, so that a call costs one load. An entry may be NULL only if its comment
 * says what the caller does then (contract: NULL entries); a test names the entries that each table
 * lacks. The owner of the manager calls an entry, if its comment names no other thread. */
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

/* An event in the life of an actor; the hook `log` (below) writes a log line about it. */
typedef enum domi_happening {
    DOMI_HAS_FAILED,
    DOMI_IS_RESTARTED,
    DOMI_ESCALATES, /* the actor fails because a child has failed */
    DOMI_IS_ENDED,  /* the root has decided that the actor ends */
    DOMI_IS_FULL,   /* the actor has scheduler.conversationsMax conversations */
} domi_happening;

/* Mistakes of a function of an actor from which the library can go on (turn.h). */
typedef enum domi_mistake {
    DOMI_WAIT_NOT_RETURNED, /* the function let its conversation wait, and did not return
                               DOMUS_PARKED */
    DOMI_WAIT_REPLACED,  /* the function let its conversation wait twice, for different functions */
    DOMI_RESULT_UNKNOWN, /* the function returned a positive number that is not DOMUS_PARKED */
    DOMI_NEEDS_RING,     /* the function called a verb that needs a ring (ringless.h) */
    DOMI_TYPE_UNKNOWN,   /* the behaviour has no row for a message of this type */
    DOMI_ASK_UNANSWERED, /* the function has ended, and has neither answered nor kept the ask */
    DOMI_ANSWER_UNWRITTEN, /* the pipeline could not encode an answer of this type */
} domi_mistake;

/* The functions of io for the actors of a manager. No entry is NULL: a manager without io has
 * domi_hooks_without_io (dispatch/manage.h). */
typedef struct domi_io_hooks {
    /* Io's part of the run of a channels actor. This handles up to `budget` pieces of work and
     * returns how many it handled; clears DOMI_MARK_CHANNELS if none is left. */
    uint32_t (*run_channels)(domi_manager *manager, domi_house *house, uint32_t budget);

    /* The actor of a channel has been mounted: call its on_open, unless that has to wait for the
     * header of a proxy. A message may lie in the mailbox already, and is handled after that. */
    void (*open_channel)(domi_manager *manager, domi_house *house);

    /* A conversation that the channel of `house` counts (DOMI_STACK_COUNTED) has ended. */
    void (*conversation_ended)(domi_manager *manager, domi_house *house);

    /* A promise that waits for bytes to leave a channel (DOMI_PROMISE_FLUSH) ends. */
    void (*flush_left)(domi_manager *manager, struct domi_promise *promise);

    /* The actor of a channel answers `ask`, a request of its peer that has not left the house, or
     * that has a promise (peer.h): send the answer to the peer. Takes the envelope, and what the
     * payload of the answer owns. */
    void (*answer_request)(domi_manager *manager, domi_house *house, domi_envelope *ask,
                           const domus_type *type, const void *payload);

    /* A request that has not left the house of its channel fails. Takes the envelope. */
    void (*fail_request)(domi_manager *manager, domi_house *house, domi_envelope *ask, int error);

    /* An answer to the request `number` has come from elsewhere: a reply, or with `error` an
     * exception, or NULL if it has expired. Takes the envelope. */
    void (*answer_peer)(domi_manager *manager, domi_house *house, uint32_t number, int error,
                        domi_envelope *answer);

    /* A message whose sender is the actor that handles it has to outlive the turn. If it came from
     * the peer of its channel, copy out what it shows; a request that `leaves` the actor gets a
     * promise, too. Returns 0; -ENOMEM. */
    int (*release_message)(domi_manager *manager, domi_house *house, domi_envelope *message,
                           bool leaves);

    /* Mail for which the behaviour of a channels actor has no row: if it is for the peer, take it
     * and return true. */
    bool (*send_mail)(domi_manager *manager, domi_house *house, domi_envelope *message);

    /* Asks that were put to `house`, and that wait in it until they can be sent to a peer: the list
     * number `index`, which may be empty, and the count of its asks. Returns false if there are not
     * so many lists. */
    bool (*unsent_asks)(domi_house *house, uint32_t index, domi_node ***ret_list,
                        uint32_t **ret_count);

    /* A channels actor takes no mail any more. Asks that wait in it, and whose askers have to hear
     * of the connection instead of the actor, are taken out. */
    void (*return_mail)(domi_manager *manager, domi_house *house);

    /* A channels actor has failed. Returns true if it is that of a channel: then the channel is
     * reset, and its parent is not asked. */
    bool (*channel_failed)(domi_manager *manager, domi_house *house, int error);

    /* Take `message`, which lies in the events' mailbox, if it is one of io itself (an accepted
     * connection). Returns whether it did; the caller frees the message then. */
    bool (*take_event)(domi_manager *manager, domi_house *house, domi_envelope *message);

    /* The event of a watch on a descriptor was handled or dropped. */
    void (*descriptor_handled)(domi_manager *manager, domi_node *node);

    /* Take a watch on a descriptor back. */
    void (*descriptor_cancel)(domi_manager *manager, domi_node *node);

    /* Once the house is back, carry out what the thief noted of a watch on a descriptor. */
    void (*descriptor_noted)(domi_manager *home, domi_node *node);

    /* Io's part of a stop. Begin to close what `house`, a channels actor, owns: a channel or a
     * listener. Returns 0 when nothing is left of it, otherwise 1. */
    uint32_t (*stop_channels)(domi_manager *manager, domi_house *house);
} domi_io_hooks;

/* The functions of the maker of the managers: runtime, or a test. */
typedef struct domi_runtime_hooks {
    /* Wake the owner of `manager`; any thread. NULL: nobody sleeps. */
    void (*wake)(domi_manager *manager);

    /* Write a log line about what happened to an actor. NULL: nobody reads a log. */
    void (*log)(domi_manager *manager, const domi_house *house, domi_happening what, int error);

    /* Tell a mistake of a function that handles `type` and returned `result`, once for each
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
     * end_spawn() is called; after false, end_spawn() is not called. NULL, both of them: the owner
     * may spawn at any time, because it learns of a stop by `closing`. */
    bool (*begin_spawn)(domi_manager *manager);
    void (*end_spawn)(domi_manager *manager);

    /* Take back blocking work that has not begun. Returns false if it runs already. NULL: there is
     * no blocking work, so nothing runs. */
    bool (*withdraw)(domi_manager *manager, struct domi_promise *promise);

    /* Do blocking work for a conversation, as domus_blocking() does. NULL: there is none, and the
     * caller returns -EOPNOTSUPP. */
    int (*block)(domus_stack *stack, int (*function)(void *argument), void *argument,
                 int (*then)(domus_stack *stack, void *self, const struct domus_answer *answer));

    /* Look a name up for a connect (io/connectors/name.h). Returns 0 when the result is in
     * `lookup`; -EINPROGRESS when an event will tell; the error. NULL: names are not looked up, and
     * the caller returns -EOPNOTSUPP. */
    int (*resolve)(domi_manager *manager, struct domi_lookup *lookup, const char *name);
    /* Forget a look-up, which may have ended. NULL, if `resolve` is. */
    void (*unresolve)(domi_manager *manager, struct domi_lookup *lookup);

    /* Tell how short memory is now. Returns the number of the latest change. Any thread may call
     * it, also under a spinlock. NULL: nobody measures, and the level is NORMAL. */
    uint32_t (*read_memory)(const domi_manager *manager, domus_memory_change *ret_change);

    /* Read the clock within a phase, for work whose time is bounded. Owner. NULL:
     * nothing is measured. */
    uint64_t (*read_clock)(const domi_manager *manager);
} domi_runtime_hooks;

#endif
