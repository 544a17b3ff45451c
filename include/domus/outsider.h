/* Outsiders: threads of the program's own that are actors.
 *
 * A thread that libdomus has not made becomes an actor by domus_outside_attach(). From then on it
 * has an address and a mailbox: others send it notices and asks, reply to it and watch it as any
 * actor. It does not run a behaviour. It goes on with its own code, and takes a message of its
 * choice when it wants one (Haller and Odersky, "Event-based programming without inversion of
 * control", call that a thread-based actor). Other foreign threads use domus_outside_notice() and
 * domus_outside_ask(), which have no address to answer to.
 *
 * The mailbox is bounded (`mailbox_max` below, else scheduler.mailboxMax): one that is full refuses
 * asks and notices with -ENOBUFS. Mail that nobody receives stays, in order. Outsiders and detached
 * actors together are detached.threadsMax (64) at a time.
 *
 * Only the thread that has attached may use a domus_outsider; every other thread gets -EPERM. All
 * functions but domus_outsider_address() return, before anything else, -ECHILD in a child made by
 * fork(); -EPERM on another thread, and when the thread has detached; -EDEADLK from within a
 * function that domus_outsider_act() has called. A domus_outsider is valid from
 * domus_outside_attach() until domus_system_free().
 *
 * A system that stops stops its outsiders with all other actors: a receive or an ask that waits
 * returns -ESHUTDOWN, and the thread should detach then. For one that does not, the stop waits for
 * shutdown.actorTimeout, and then ends its actor; from then on all functions but
 * domus_outside_detach() return -ESHUTDOWN. A thread that stops the system itself is detached by
 * that. A thread that ends without domus_outside_detach() leaves an actor whose mail nobody takes
 * until the system stops. */
#ifndef DOMUS_OUTSIDER_H
#define DOMUS_OUTSIDER_H

#include <domus/receive.h>
#include <domus/supervise.h>
#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A foreign thread that is an actor: it has an address and a mailbox. */
typedef struct domus_outsider domus_outsider;

/* Options of domus_outside_attach(). All fields may be 0. The structure grows only at its end, with
 * a minor version. */
typedef struct domus_outsider_options {
    /* most asks and notices that wait in the mailbox, 1..65,535; 0: scheduler.mailboxMax */
    uint32_t mailbox_max;
    /* name of the outsider in the registry (domus/name.h), copied; NULL: none */
    const char *name;
    /* A pointer for the `matches` of patterns, which get the address of a copy of it as their
     * `self`. */
    void *context;
} domus_outsider_options;

/* Let the calling thread be an actor of the system. A thread may do this several times, and then is
 * several actors. `options` may be NULL.
 *
 * Returns 0; -EAGAIN when detached.threadsMax outsiders and detached actors are there, or no thread
 * could be made (one helps all outsiders of a system to end); -EINVAL for a bound out of range, or
 * a string that cannot be a name; -EEXIST when the name is taken; -ENOSPC at names.max; -ENOMEM;
 * -ESHUTDOWN when the system does not run; -EDEADLK on one of the system's own threads; -EOPNOTSUPP
 * in a test kit; -ECHILD. Thread-safety: any foreign thread. */
DOMUS_API int domus_outside_attach(domus_system *system, const domus_outsider_options *options,
                                   domus_outsider **ret_outsider);

/* End the actor of the calling thread: what was received last is done with, asks that wait fail
 * with -ESTALE, other mail becomes dead letters, asks and watches of the outsider are taken back,
 * its children are stopped, and those who watch it hear of it. This waits for nobody. NULL is
 * allowed.
 *
 * Returns 0, also when the actor has ended before. */
DOMUS_API int domus_outside_detach(domus_outsider *outsider);

/* Returns the address of the outsider. Thread-safety: any thread, until the outsider detaches. */
DOMUS_API domus_address domus_outsider_address(const domus_outsider *outsider);

/* Send a notice, whose sender is the outsider. Ownership and errors are as of domus_notice(); also
 * -EBUSY while memory is high (domus/memory.h), -ESTALE when the outsider was stopped, and
 * -ESHUTDOWN. */
DOMUS_API int domus_outsider_notice(domus_outsider *outsider, domus_address to,
                                    const domus_type *type, const void *payload);

/* Ask, and wait for the answer as domus_outside_ask() does, with the same times and the same
 * ownership. Mail that comes meanwhile waits. An actor that works on this ask and asks the outsider
 * in turn gets -EDEADLK, because nobody could answer it.
 *
 * Returns as domus_outside_ask(); also -ECANCELED when the outsider is stopped. */
DOMUS_API int domus_outsider_ask(domus_outsider *outsider, domus_address to, const domus_type *type,
                                 const void *payload, uint64_t timeout_ns,
                                 domus_outside_reply *reply);

/* Ask, and do not wait: the answer is received like a message (domus_outside_receive()), with
 * `tag`. The times and the ownership of the payload are as of domus_outside_ask(). At most
 * scheduler.conversationsMax asks are under way, or answered and not received, at a time.
 *
 * Returns 0, and then an answer comes in every case; -ENOBUFS beyond that number; -EMSGSIZE;
 * -ENOMEM; -EBUSY; -ECANCELED when the outsider was stopped; -ESHUTDOWN. */
DOMUS_API int domus_outsider_ask_add(domus_outsider *outsider, domus_address to,
                                     const domus_type *type, const void *payload,
                                     uint64_t timeout_ns, uint64_t tag);

/* The kinds of messages that an outsider gets. */
typedef enum domus_outside_kind {
    DOMUS_OUTSIDE_NOTICE,
    /* the message is an ask: domus_outsider_reply() or domus_outsider_fail() answers it */
    DOMUS_OUTSIDE_ASK,
    DOMUS_OUTSIDE_ANSWER, /* the message is the answer to domus_outsider_ask_add() */
    /* the message is an event of a watch, or of what domus_outsider_act() has begun */
    DOMUS_OUTSIDE_EVENT,
} domus_outside_kind;

/* A message that an outsider has received. */
typedef struct domus_outside_message {
    domus_outside_kind kind;
    const domus_type *type;
    /* The payload, valid until the outsider receives again or detaches; the payload of an ask only
     * until the ask is answered. All that it owns is released then, unless domus_outsider_take()
     * took it. */
    const void *payload;
    /* sender of the message; nobody: the message came from outside, or is an event or a failure */
    domus_address sender;
    uint64_t tag; /* tag of an answer, as it was given to domus_outsider_ask_add() */
} domus_outside_message;

/* The type of an answer that is no reply: the ask has failed. The payload is an int, the negative
 * errno (domus/conversation.h). A pattern may list this type like any other. */
DOMUS_API extern const domus_type domus_outsider_failed_type;

/* Receive the first message that `pattern` takes (NULL: any) among those that wait, or else the
 * next one that comes within `within_ns`: with 0 this only looks, with DOMUS_FOR_EVER it waits for
 * as long as it takes. Waiting answers come before waiting asks, these before notices, these before
 * events, and each kind in its order. Other mail stays where it is.
 *
 * An ask that was received before, and neither answered nor kept, fails with -ENOMSG.
 *
 * Returns 0; -ETIMEDOUT (never early); -ECANCELED when the outsider was stopped (domus_stop()); or
 * -ESHUTDOWN. */
DOMUS_API int domus_outside_receive(domus_outsider *outsider, const domus_pattern *pattern,
                                    uint64_t within_ns, domus_outside_message *ret_message);

/* Answer the ask that was received last, as domus_reply() and domus_fail() do.
 *
 * Returns as those do: -EALREADY when it was answered or has left, -EINVAL when the message that
 * was received last is no ask; also -ESHUTDOWN. */
DOMUS_API int domus_outsider_reply(domus_outsider *outsider, const domus_type *type,
                                   const void *payload);
DOMUS_API int domus_outsider_fail(domus_outsider *outsider, int error);

/* Take over what the payload of the message owns that was received last, as domus_take() does.
 * Returns as that. */
DOMUS_API int domus_outsider_take(domus_outsider *outsider);

/* Watch the actor `address`: its end is an event of domus_down_type (domus/supervise.h), which is
 * received like a message. `ret_watch` may be NULL. domus_outsider_unwatch() takes the watch back.
 *
 * Returns as domus_watch_actor() and domus_unwatch(); also -ESTALE when the outsider was stopped,
 * and -ESHUTDOWN. */
DOMUS_API int domus_outsider_watch(domus_outsider *outsider, domus_address address,
                                   domus_watch *ret_watch);
DOMUS_API int domus_outsider_unwatch(domus_outsider *outsider, domus_watch watch);

/* Call `function` at once, in a turn of the outsider: it may use its stack with all verbs, as a
 * handler does, also those that wait. So an outsider spawns children, arms timers, becomes known by
 * other names, and keeps or forwards the ask that it was sent last. A conversation that waits goes
 * on while the outsider receives or asks. Events that come because of this are received like
 * messages. As many of them wait as asks and notices may (`mailbox_max`); a further one is lost, as
 * one without memory, and one that owns something that cannot be taken, and the log says that a
 * handler has failed. An event of domus_outsider_watch() is never lost.
 *
 * The function must not use the outsider, and a stop of the system waits for its return.
 *
 * Returns what the function returned, 0 for DOMUS_PARKED (a negative errno counts as a failure of
 * the actor, after which it goes on); -ESTALE when the outsider was stopped, and then `function`
 * was not called; -ESHUTDOWN. */
DOMUS_API int domus_outsider_act(domus_outsider *outsider,
                                 int (*function)(domus_stack *stack, void *argument),
                                 void *argument);

#ifdef __cplusplus
}
#endif

#endif
