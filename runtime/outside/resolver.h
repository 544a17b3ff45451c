/* The resolver: getaddrinfo() in threads that can be abandoned.
 *
 * A look-up may take minutes when a name server is silent, and a stop must not wait for it. So the
 * threads belong to the resolver and not to a system: they are detached, what they use is theirs
 * and the resolver's, and the last of them or the system frees it. At most
 * connect.resolve.threadsMax names are looked up at a time, and connect.resolve.queueMax wait;
 * connects to the same name share one look-up. The addresses of a name are remembered for
 * connect.resolve.cacheTime, and a fifth of it that a name has none; that a look-up has failed is
 * not. At most connect.resolve.cacheMax names are remembered.
 *
 * Thread-safety: any thread, unless a function says something else. */
#ifndef DOMI_RUNTIME_OUTSIDE_RESOLVER_H
#define DOMI_RUNTIME_OUTSIDE_RESOLVER_H

#include "io/connectors/name.h"
#include "runtime/system/system.h"

typedef struct domi_resolver domi_resolver;

/* Look a name up. Returns how many addresses it has written to `ret_found`, at most `max`; -ENODATA
 * if the name has none; another negative errno if it is not known. */
typedef int domi_look_up(void *context, const char *name, domus_endpoint *ret_found, uint32_t max);

/* Make the resolver of a system. Returns 0; -ENOMEM. */
int domi_resolver_new(domus_system *system, domi_resolver **ret_resolver);

/* Look names up by `look_up` from now on; NULL: by the C library, or in a simulation not at all. In
 * a simulation the thread that asks calls the function. Call this before the first look-up. */
void domi_resolver_use(domi_resolver *resolver, domi_look_up *look_up, void *context);

/* Give up all look-ups, because the system stops. From here on the resolver does not
 * touch the system. */
void domi_resolver_close(domi_resolver *resolver);

/* The system is freed; look-ups that still run free the resolver after them. NULL is allowed. */
void domi_resolver_free(domi_resolver *resolver);

/* Count the names that are looked up, and those that wait for that. Thread-safety: any
 * thread. */
void domi_resolver_count(domi_resolver *resolver, uint64_t *ret_running, uint64_t *ret_queued);

/* These functions are domi_runtime_hooks.resolve and unresolve. */
int domi_resolver_resolve(domi_manager *manager, struct domi_lookup *lookup, const char *name);
void domi_resolver_withdraw(domi_manager *manager, struct domi_lookup *lookup);

#endif
