/* Elements of a list on their way to a client that waits for them.
 *
 * They have left their list, and the client may end before the answer reaches it: the answer is
 * then discarded, on any thread, and the elements would be lost with it. So the answer owns them:
 * code that passes them to the peer takes them out, and in every other case the `release` of the
 * type gives them back. The shard puts them back at its next look. */
#ifndef KV_GIFT_H
#define KV_GIFT_H

#include "list.h"

#include <domus/domus.h>

struct kv_gift {
    struct kv_gift *next;
    uint32_t shard;
    enum kv_end end;     /* the end of the list from which the element was taken */
    bool was_waited_for; /* the element came only after its client had begun to wait */
    bool has_left;       /* the gift was written for another node, which owns it now (travel.h) */
    domus_slice key;
    domus_slice elements; /* one element; or, with `count`, the array of elements as it is sent */
    uint32_t count;       /* number of elements of the array; 0: there is none */
};

/* The payload is a pointer to a gift. */
extern const domus_type kv_gift_type;

/* Make a gift. The elements are consumed in every case. Returns NULL without memory. */
struct kv_gift *kv_gift_new(uint32_t shard, enum kv_end end, domus_slice key, domus_slice elements,
                            uint32_t count);
/* Free a gift whose elements were sent to the peer, or were never taken from their list. */
void kv_gift_free(struct kv_gift *gift);

/* Returns whether any gifts of a shard are under way, or were given back and not freed. */
bool kv_gifts_given(uint32_t shard);

/* Take the gifts that were given back to a shard, the last one first; NULL: none. */
struct kv_gift *kv_gifts_returned(uint32_t shard);

#endif
