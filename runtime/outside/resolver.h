/* The resolver looks names up by getaddrinfo(), in threads that can be abandoned.
 *
 * A lookup may take minutes when a name server is silent, and a stop must not wait for it. So the
 * threads belong to the resolver and not to a system: they are detached, they use only memory of
 * their own and of the resolver, and its last user (a thread or the system) frees the resolver. At
 * most connect.resolve.threadsMax names are looked up at a time, and connect.resolve.queueMax names
 * wait; connects to the same name share one lookup. The addresses of a name are remembered for
 * connect.resolve.cacheTime. That a name has no address is remembered for a fifth of this time, and
 * that a lookup has failed is not remembered. At most connect.resolve.cacheMax names are
 * remembered.
 *
 * Thread-safety: any thread, unless a function says something else. */
#ifndef DOMI_RUNTIME_OUTSIDE_RESOLVER_H
#define DOMI_RUNTIME_OUTSIDE_RESOLVER_H

#include "io/connectors/name.h"
#include "runtime/system/system.h"

typedef struct domi_resolver domi_resolver;

/* A function that looks a name up. Returns how many addresses it has written to `ret_found`, at
 * most `max`; -ENODATA if the name has none; another negative errno if the lookup has failed. */
typedef int domi_look_up(void *context, const char *name, domus_endpoint *ret_found, uint32_t max);

/* Make the resolver of a system, which looks up no name yet. Returns 0; -ENOMEM. */
int domi_resolver_new(domus_system *system, domi_resolver **ret_resolver);

/* Set the function by which the resolver looks names up from now on. NULL: by the C library, or in
 * a simulation not at all. In a simulation the thread that asks calls the function. Call this
 * before the first lookup. */
void domi_resolver_set_look_up(domi_resolver *resolver, domi_look_up *look_up, void *context);

/* Close the resolver, because the system stops: all lookups are given up, and from then on the
 * resolver does not use the system. */
void domi_resolver_close(domi_resolver *resolver);

/* Release the system's use of the resolver. If threads still look names up, the last of them
 * frees the resolver. NULL is allowed. */
void domi_resolver_free(domi_resolver *resolver);

/* Count the names that threads look up now, and the names that wait for such a thread.
 * Thread-safety: any thread. */
void domi_resolver_count_names(domi_resolver *resolver, uint64_t *ret_running,
                               uint64_t *ret_queued);

/* Begin the lookup of a name, or withdraw it. They are called as domi_runtime_hooks.resolve and
 * domi_runtime_hooks.unresolve. */
int domi_resolver_begin_lookup(domi_manager *manager, struct domi_lookup *lookup, const char *name);
void domi_resolver_withdraw_lookup(domi_manager *manager, struct domi_lookup *lookup);

#endif
