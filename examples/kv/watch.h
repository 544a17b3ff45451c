/* WATCH and UNWATCH: the keys of a client whose change lets its transaction fail. */
#ifndef KV_WATCH_H
#define KV_WATCH_H

#include "kv.h"
#include "observed.h"

/* End the watch of a client in a shard. Returns whether the client has watched keys here, and none
 * of them has changed; an expiry is a change. */
bool kv_end_watch_and_were_keys_unchanged(domus_stack *stack, struct kv_store *store,
                                          domus_address client);

kv_run kv_run_watch_of_keys;
/* The type of an ask to a shard without payload: the client that sends it watches no more keys. */
extern const domus_type kv_unwatch_type;
domus_handler kv_end_watch_of_sender_and_answer_ok;
/* The handlers of a session for WATCH and UNWATCH. */
domus_handler kv_ask_shard_to_watch_keys, kv_serve_unwatch;
/* Tell the shard that the client of a session watches no more keys. */
void kv_tell_shard_to_unwatch(domus_stack *stack, struct kv_session *session);

#endif
