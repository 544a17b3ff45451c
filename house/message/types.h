/* Types of messages that the library itself puts and handles. Users' types are told from them by
 * their addresses. */
#ifndef DOMI_HOUSE_MESSAGE_TYPES_H
#define DOMI_HOUSE_MESSAGE_TYPES_H

#include <domus/actor.h>

/* The event by which the asked actor hears that the asker has cancelled. Its payload is the
 * domi_return of that ask. */
extern const domus_type domi_cancel_type;

/* The event by which an asker hears which actor, the sender, holds an ask that was passed on. Its
 * payload is the domi_return of that ask (passed.h). */
extern const domus_type domi_held_type;

/* The notice of domus_stop_after_mail(): it goes behind the mail that waits, and the actor stops
 * when it is handled. */
extern const domus_type domi_last_type;

/* The names of a behaviour and a type for people; "?" if it has none, or is NULL. */
static inline const char *domi_behaviour_name(const domus_behaviour *behaviour)
{
    return behaviour != NULL && behaviour->name != NULL ? behaviour->name : "?";
}

static inline const char *domi_type_name(const domus_type *type)
{
    return type != NULL && type->name != NULL ? type->name : "?";
}

/* A thread names this type as the message that it handles while it runs on_mount, which handles no
 * message. */
extern const domus_type domi_mount_type;

#endif
