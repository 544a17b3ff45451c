/* Groups: a message that is published to a group comes to each of its members.
 *
 * A group is a name and its members, which live on any threads. A group begins with the first
 * domus_group_open() of its name and stays until the system is freed, with or without members. When
 * a member ends, it leaves the group by itself; a restart changes nothing.
 *
 * Members get a publication as a notice, whose sender is the publisher. All of them look at the
 * same payload, so no member may change it or take what it owns (domus_take() returns -EPERM). The
 * type's `release` is called once, on any thread, when the last member has handled the publication,
 * or at once if there are no members.
 *
 * Order: the publications of one actor to one group come to each member in the order in which they
 * were published. A notice that the publisher sends to a member directly takes another way: it may
 * overtake a publication, or be overtaken. If an actor has joined and tells a publisher so by a
 * message, every later publication of that publisher reaches the new member, on whatever thread.
 * Publications from shortly before may reach it too.
 *
 * While a member's mailbox is full, or memory is critical, that member does not get publications.
 * This is counted (`refusals` and `busy` in domus/profile.h), and the publisher does not hear of
 * it. While the system stops, a publication may reach nobody.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. A handle of a group may be copied, kept and sent. */
#ifndef DOMUS_GROUP_H
#define DOMUS_GROUP_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle of a group. It is used by value, and valid until the system is freed. */
typedef struct domus_group {
    struct domi_group *group;
} domus_group;

/* Find the group of this name (1..63 bytes of printable ASCII without space), or make it if there
 * is none. Call this once, and keep the handle.
 *
 * Returns 0; -EINVAL for a string that cannot be a name; -ENOSPC when groups.max groups
 * exist; -ENOMEM. */
DOMUS_API int domus_group_open(domus_stack *stack, const char *name, domus_group *ret_group);

/* Make this actor a member. To join again changes nothing.
 *
 * Returns 0; -ENOSPC when the group has groups.membersMax members; -ENOMEM; -ESHUTDOWN when the
 * system stops; -EINVAL for a zeroed handle; -EOPNOTSUPP for a detached actor (a child of it can be
 * a member, and forward to it). */
DOMUS_API int domus_group_join(domus_stack *stack, domus_group group);

/* End the membership of this actor. Publications that wait in its mailbox stay there.
 *
 * Returns 0, also when it was no member; -ENOMEM, and it stays a member; -EINVAL for a
 * zeroed handle. */
DOMUS_API int domus_group_leave(domus_stack *stack, domus_group group);

/* The number of members, which is not exact: an actor whose join or end is under way
 * counts as a member. */
DOMUS_API uint32_t domus_group_members(domus_group group);

/* Send one payload (type->size bytes; NULL when the size is 0) to all members, also to the
 * publisher if it is a member. The payload is copied once. The publisher pays for one message to
 * each thread that has members.
 *
 * Ownership: what the payload owns is consumed in every case, also when this fails.
 * Returns 0; -ENOBUFS when scheduler.mailboxMax publications wait on a thread, or -ENOMEM: the
 * members on that thread do not get this one, and members on other threads do; -ESHUTDOWN when the
 * system stops; -EMSGSIZE, or -EINVAL for a zeroed handle: nobody gets it. */
DOMUS_API int domus_publish(domus_stack *stack, domus_group group, const domus_type *type,
                            const void *payload);

#ifdef __cplusplus
}
#endif

#endif
