/* Groups: what is published to a group comes to each of its members.
 *
 * A group is a name and its members, on any threads. It begins with the first domus_group_open()
 * of its name and stays until the system is freed, with or without members. A member leaves by
 * itself when it ends; a restart changes nothing.
 *
 * Members get a publication as a notice of its type, from who published it. All of them look at the
 * same payload, so none may change it, nor take what it owns (domus_take() returns -EPERM): the
 * type's `release` is called once, when the last of them has handled it (or at once when there are
 * none), on any thread.
 *
 * Order: what one actor publishes to one group comes to each member in that order. Notices that it
 * sends to a member itself go another way and may overtake, or be overtaken. Who publishes after a
 * domus_group_join() has returned, on whichever thread, and knows it by a message, reaches the new
 * member; what was published shortly before may reach it too.
 *
 * What comes while a member's mailbox is full, or memory is critical, is refused, counted
 * (`refusals`, `busy`), and not told to the
 * publisher. While the system stops, a publication may reach nobody.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given. A
 * handle may be copied, kept and sent. */
#ifndef DOMUS_GROUP_H
#define DOMUS_GROUP_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A group, by value; valid until the system is freed. */
typedef struct domus_group {
    struct domi_group *group;
} domus_group;

/* The group of this name (1..63 bytes of printable ASCII without space), which begins now if there
 * was none. Do it once, and keep the handle.
 *
 * Returns 0; -EINVAL for what is no name; -ENOSPC at groups.max; -ENOMEM. */
DOMUS_API int domus_group_open(domus_stack *stack, const char *name, domus_group *ret_group);

/* This actor becomes a member. A member that joins again is one once.
 *
 * Returns 0; -ENOSPC at groups.membersMax; -ENOMEM; -ESHUTDOWN when the system stops; -EINVAL for a
 * zeroed handle; -EOPNOTSUPP for a detached actor (a child of it can be a member, and pass on). */
DOMUS_API int domus_group_join(domus_stack *stack, domus_group group);

/* This actor is no member any more. What waits in its mailbox stays there.
 *
 * Returns 0, also when it was none; -ENOMEM, and it stays a member; -EINVAL. */
DOMUS_API int domus_group_leave(domus_stack *stack, domus_group group);

/* How many members it has, about: joins and ends that are under way are counted as members. */
DOMUS_API uint32_t domus_group_members(domus_group group);

/* Send one payload (type->size bytes; NULL when 0; copied once) to all members, the publisher too
 * if it is one. The cost for the publisher is one message for each thread that has members.
 *
 * Ownership: what the payload owns is consumed in every case, also when this fails.
 * Returns 0; -ENOBUFS when scheduler.mailboxMax publications wait on a thread: its members do not
 * get this one, those of other threads do; -ENOMEM: so too; -ESHUTDOWN when the system stops;
 * -EMSGSIZE and -EINVAL: nobody gets it. */
DOMUS_API int domus_publish(domus_stack *stack, domus_group group, const domus_type *type,
                            const void *payload);

#ifdef __cplusplus
}
#endif

#endif
