/* WATCH and UNWATCH: the keys of a client whose change lets its transaction fail. */
#ifndef KV_WATCH_H
#define KV_WATCH_H

#include "kv.h"
#include "observed.h"

/* End the watch of a client. Returns whether it has watched keys here, and none of them has
 * changed; to expire is a change. */
bool kv_watch_end(domus_stack *stack, struct kv_store *store, domus_address client);

kv_run kv_run_watch;
/* An ask of the shard without payload: the client watches no more. */
extern const domus_type kv_unwatch_type;
domus_handler kv_unwatch;
/* On the channel. */
domus_handler kv_serve_watch, kv_serve_unwatch;
/* The connection watches no more: tell the shard. */
void kv_watch_leave(domus_stack *stack, struct kv_session *session);

#endif
