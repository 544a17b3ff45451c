/* Names: from a name to the address of an actor, for the whole system.
 *
 * A name is 1..63 printable ASCII bytes without space. An actor has at most one; it is given back
 * when the actor ends. Finding takes no lock and never waits, on any thread.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack it was given;
 * foreign threads use domus_outside_find() (domus/system.h). */
#ifndef DOMUS_NAME_H
#define DOMUS_NAME_H

#include <domus/actor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The actor that has this name. It may end before a message reaches it, as any other; and one that
 * is just being spawned by another thread may not take messages yet (-ESTALE).
 * Returns 0; -ENOENT; -EINVAL for what cannot be a name. */
DOMUS_API int domus_name_find(domus_stack *stack, const char *name, domus_address *ret_address);

/* Take a name for this actor. Returns 0; -EEXIST when another has it; -EALREADY when this actor has
 * one; -ENOSPC at names.max; -EINVAL; -ENOMEM. */
DOMUS_API int domus_name_register(domus_stack *stack, const char *name);

/* Give this actor's name back. Returns 0; -ENOENT when it has none. */
DOMUS_API int domus_name_release(domus_stack *stack);

#ifdef __cplusplus
}
#endif

#endif
