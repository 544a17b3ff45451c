/* Names: a registry of the whole system that leads from a name to the address of an actor.
 *
 * A name is 1..63 printable ASCII bytes without space. An actor has at most one name, and gives it
 * back when it ends. To find a name takes no lock and never waits, on any thread.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack that the handler
 * was given. Foreign threads use domus_outside_find() (domus/system.h). */
#ifndef DOMUS_NAME_H
#define DOMUS_NAME_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Find the actor that has this name. As any actor, it may end before a message reaches it. If
 * another thread is just spawning it, it may not take messages yet (-ESTALE).
 *
 * Returns 0; -ENOENT when no actor has the name; -EINVAL for a string that cannot be a name. */
DOMUS_API int domus_name_find(domus_stack *stack, const char *name, domus_address *ret_address);

/* Give this actor a name, which is copied.
 *
 * Returns 0; -EEXIST when another actor has the name; -EALREADY when this actor has a name; -ENOSPC
 * when names.max names are in use; -EINVAL for a string that cannot be a name; -ENOMEM. */
DOMUS_API int domus_name_register(domus_stack *stack, const char *name);

/* Take this actor's name away, so that another actor may have it. Returns 0; -ENOENT when this
 * actor has no name. */
DOMUS_API int domus_name_release(domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
