/* An element of a list on its way to a client that waits for it.
 *
 * It has left its list, and the client may end before the answer reaches it: the answer is then
 * thrown away wherever it is, on any thread, and with it the element would be lost. So the answer
 * owns the element: whoever passes the element on to the peer takes it, and in every other case the
 * `release` of the type gives it back. The shard puts it where it was at its next look. */
#ifndef KV_GIFT_H
#define KV_GIFT_H

#include "list.h"

#include <domus/domus.h>

struct kv_gift {
    struct kv_gift *next;
    uint32_t shard;
    enum kv_end end;     /* of the list, from which it came */
    bool was_waited_for; /* it was not there when its client came */
    domus_slice key;
    domus_slice element;
};

/* The payload is a pointer to a gift. */
extern const domus_type kv_gift_type;

/* Returns NULL without memory. */
struct kv_gift *kv_gift_new(uint32_t shard, enum kv_end end, domus_slice key,
                            domus_resp_bytes element);
/* The element is with the peer, or was never taken from its list. */
void kv_gift_free(struct kv_gift *gift);

/* Take the gifts that were given back to a shard, the last one first; NULL: none. */
struct kv_gift *kv_gifts_returned(uint32_t shard);

#endif
