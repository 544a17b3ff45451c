/* Types of messages that the library itself puts and handles. Their addresses distinguish them from
 * types of users. */
#ifndef DOMI_HOUSE_MESSAGE_TYPES_H
#define DOMI_HOUSE_MESSAGE_TYPES_H

#include <domus/actor.h>

/* The event by which the asked actor learns that the asker has cancelled an ask. Its payload is the
 * domi_return of that ask. */
extern const domus_type domi_cancel_type;

/* The event by which an asker learns which actor, the sender of the event, now holds an ask that
 * was passed on. Its payload is the domi_return of that ask (asks.h). */
extern const domus_type domi_held_type;

/* The notice of domus_stop_after_mail(): it goes behind the waiting mail, and the actor stops when
 * it is handled. */
extern const domus_type domi_last_type;

/* Return the names of a behaviour and of a type for people to read; "?" for NULL, and for one
 * without a name. */
static inline const char *domi_behaviour_name(const domus_behaviour *behaviour)
{
    return behaviour != NULL && behaviour->name != NULL ? behaviour->name : "?";
}

static inline const char *domi_type_name(const domus_type *type)
{
    return type != NULL && type->name != NULL ? type->name : "?";
}

/* The type that a thread names as the message that it handles while it runs on_mount, which has no
 * message. */
extern const domus_type domi_mount_type;

#endif
