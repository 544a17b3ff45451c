/* Supervision and watching: what happens when an actor fails or ends, and which actors are told.
 *
 * An actor is the child of the actor that spawned it, and stops after all children of its own have
 * stopped. It fails when its on_mount, or a handler of a notice or event, returns a negative errno,
 * or by domus_escalate(). (A handler of an ask that does fails only the ask. A segmentation fault
 * ends the process, whatever supervises.)
 *
 * A failure comes to the parent as an event, in a turn of its own. Until the parent has decided,
 * the child handles no asks and notices. The first rule of the parent's behaviour that fits
 * decides. Parents without rules, and the root (for actors spawned from outside), let a child go on
 * if its handler failed, and end it if its on_mount failed or it escalates. Each such failure is
 * counted and logged.
 *
 * An actor is not mounted from the moment when its on_mount or on_restart has failed until a
 * restart of it succeeds. (An on_mount that has parked has not failed: the actor is mounted, and an
 * error later is one of a handler.) None of the functions of an actor that is not mounted is
 * called:
 *
 *   asks, notices   also publications and what routers pass on: they wait, within mailboxMax
 *   timers          all are taken back when the mount fails, and so are watches of descriptors
 *   other events    of watches, of room and so on: each is a dead letter (domus/letters.h)
 *   links           when the other end ends, this one is stopped, unless it has a row for the event
 *   connections     one that is handed to it is reset, and is a dead letter; it has no other
 *                   ones, because a restart has reset them
 *
 * Replies, and the failures and ends of its children, are taken as ever. Its idle time does not
 * pass. After a restart that succeeds, what has waited is handled. If the actor is stopped instead,
 * what has waited becomes dead letters, and on_stop is not called.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. */
#ifndef DOMUS_SUPERVISE_H
#define DOMUS_SUPERVISE_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decisions of a supervisor about a child that has failed. */
typedef enum domus_directive {
    DOMUS_RESUME,   /* the child goes on with the next message, as if it had not failed; it stops if
                       its on_mount or on_restart failed, or if it escalated */
    DOMUS_RESTART,  /* the child is restarted, with the mail that waits (domus_supervision) */
    DOMUS_STOP,     /* the child is stopped */
    DOMUS_ESCALATE, /* the parent fails, too, with the same error */
} domus_directive;

/* One rule of a supervision: what to do at which failure of which child. */
typedef struct domus_rule {
    /* behaviour of the children that the rule is for; NULL: any */
    const domus_behaviour *behaviour;
    /* negative errno of the failures that the rule is for; 0: any */
    int error;
    domus_directive directive; /* the decision about such a failure */
} domus_rule;

/* The rules by which a behaviour decides about failures of its children. They must stay constant
 * for the life of the system.
 *
 * A restart cancels the child's conversations, timers and watches and stops its children; then
 * on_restart runs if there is one, with the state as it is, and makes it as good as new; else
 * on_stop runs, the state is set to what it was at the spawn, and on_mount runs. Mail that waits in
 * its mailboxes stays. A restart whose on_mount or on_restart fails is a failure again (and no
 * on_stop runs for it). A copy of the state at the spawn is kept only for children whose parent had
 * rules at that time; other children begin anew with zeros. A period of restarts begins with its
 * first restart. */
typedef struct domus_supervision {
    /* whether a restart or stop is for all children, not only the one that failed; an escalation
     * stops all of them in any case */
    bool all_for_one;
    /* most restarts within `period_ns`; one more escalates the failure; 0 means 3 */
    uint32_t intensity;
    uint64_t period_ns; /* time within which restarts are counted; 0 means 5 s */
    /* the rules, `rules_count` of them; the first one that fits a failure decides */
    const domus_rule *rules;
    uint32_t rules_count;      /* number of the rules */
    domus_directive otherwise; /* the decision when no rule fits a failure */
} domus_supervision;

/* Fail with `error` (a negative errno), as if a handler had returned it; the parent's rules decide.
 * For the actor of a channel there are no rules: its channel is reset (domus/channel.h). The
 * handler goes on. Returns 0; -EINVAL; -EALREADY while an earlier failure is not decided. */
DOMUS_API int domus_escalate(domus_stack *stack, int error);

/* --- watch ---------------------------------------------------------------------------------- */

/* A handle of a watch or link. It is used by value; a stale handle does no harm. */
typedef struct domus_watch {
    struct domi_watch *watch;
    uint32_t generation;
} domus_watch;

/* The payload of an event of domus_down_type, which a watch brings. */
typedef struct domus_down {
    domus_address who;
    /* The reason. 0: the actor was stopped; -ESTALE: it was gone when the watch was made;
     * -EHOSTDOWN: the other system in which it lives cannot be reached any more (domus/remote.h),
     * and it may still live; any other negative errno: the failure that ended it. */
    int reason;
} domus_down;

DOMUS_API extern const domus_type domus_down_type;

/* Watch the actor `address`: when it ends, this actor gets one event of domus_down_type, at once if
 * it is gone already. The event always comes, unless the watch is taken back. `ret_watch` may be
 * NULL.
 *
 * Returns 0; -ENOMEM; -EINVAL for nobody. */
DOMUS_API int domus_watch_actor(domus_stack *stack, domus_address address, domus_watch *ret_watch);

/* Tie this actor and `address` together: when one ends, the other is stopped with the same reason,
 * unless its behaviour has a row for domus_down_type: then it gets the event instead. An actor that
 * is gone already answers as if it ended now. `ret_watch` may be NULL.
 *
 * Returns 0; -ENOMEM; -EINVAL for nobody or oneself; -EOPNOTSUPP for an actor in another system. */
DOMUS_API int domus_link_actor(domus_stack *stack, domus_address address, domus_watch *ret_watch);

/* Take a watch or link of this actor back: its event is not handled after this. Returns 0; -ENOENT
 * when the event was handled, or the watch was taken back before. */
DOMUS_API int domus_unwatch(domus_stack *stack, domus_watch watch);

/* Watch for room in the mailbox of `address`, after it has refused a message with -ENOBUFS (not
 * after -EBUSY, which no mailbox causes). This actor gets one event of domus_room_type as soon as
 * fewer than half of the messages wait there that may wait, or when the actor is gone; at once if
 * that is so already. The payload is a domus_down with the `reason` 0; -ESTALE if the actor is
 * gone; -EHOSTDOWN if its node is down. Returns as domus_watch_actor(). */
DOMUS_API int domus_watch_room(domus_stack *stack, domus_address address, domus_watch *ret_watch);

DOMUS_API extern const domus_type domus_room_type;

#ifdef __cplusplus
}
#endif

#endif
