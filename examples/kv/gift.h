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
    enum kv_end end;     /* the end of the list from which the elements were taken */
    bool was_waited_for; /* whether the client had begun to wait before the element came */
    /* whether the gift was written for another node, which owns it now (travel.h) */
    bool has_left;
    domus_slice key;
    /* one element; or, with a `count`, the array of elements as it is sent to the client */
    domus_slice elements;
    /* number of elements in the array `elements`; 0: there is one element and no array */
    uint32_t count;
};

/* The type of an answer that is a gift; its payload is a pointer to the gift. */
extern const domus_type kv_gift_type;

/* Make a gift of elements that were taken from a list. The elements are consumed in every case.
 * Returns NULL without memory. */
struct kv_gift *kv_gift_new_of_popped_elements(uint32_t shard, enum kv_end end, domus_slice key,
                                               domus_slice elements, uint32_t count);
/* Free a gift whose elements were sent to the peer, or were never taken from their list. */
void kv_gift_free(struct kv_gift *gift);

/* Returns whether any gifts of a shard are under way, or were given back to the shard and are not
 * freed. */
bool kv_shard_has_gifts_under_way(uint32_t shard);

/* Take the gifts that were given back to a shard, the last one first; NULL: none. */
struct kv_gift *kv_take_gifts_returned_to_shard(uint32_t shard);

#endif
