/* Gifts that were not delivered are pushed to a list of their shard by whichever thread discards
 * the answer, and the shard takes the whole list at once. */
#include "gift.h"

#include "kv.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(struct kv_gift *) returned[KV_SHARDS_MAX];
/* for each shard the number of its gifts that were made and are not freed */
static _Atomic uint32_t given[KV_SHARDS_MAX];

static void return_gift_of_payload_to_its_shard(void *payload)
{
    struct kv_gift *gift = *(struct kv_gift **)payload;

    if (gift == NULL)
        return; /* the pickler could not read the gift, so there is nothing to free */
    if (gift->has_left) {
        kv_gift_free(gift);
        return;
    }
    _Atomic(struct kv_gift *) *list = &returned[gift->shard];
    gift->next = atomic_load_explicit(list, memory_order_relaxed);
    /* Release: pairs with the acquire in kv_take_gifts_returned_to_shard(), whose thread then sees
     * the whole gift. */
    while (!atomic_compare_exchange_weak_explicit(list, &gift->next, gift, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

const domus_type kv_gift_type = {.name = "gift",
                                 .size = sizeof(struct kv_gift *),
                                 .release = return_gift_of_payload_to_its_shard};

struct kv_gift *kv_gift_new_of_popped_elements(uint32_t shard, enum kv_end end, domus_slice key,
                                               domus_slice elements, uint32_t count)
{
    struct kv_gift *gift = calloc(1, sizeof *gift);

    if (gift == NULL) {
        domus_slice_free(elements);
        return NULL;
    }
    /* relaxed: the number of gifts is only a count */
    atomic_fetch_add_explicit(&given[shard], 1, memory_order_relaxed);
    gift->shard = shard;
    gift->end = end;
    gift->elements = elements;
    gift->count = count;
    if (domus_slice_copy(domus_slice_data(key), key.size, &gift->key) != 0) {
        kv_gift_free(gift);
        return NULL;
    }
    return gift;
}

void kv_gift_free(struct kv_gift *gift)
{
    atomic_fetch_sub_explicit(&given[gift->shard], 1, memory_order_relaxed);
    domus_slice_free(gift->key);
    domus_slice_free(gift->elements);
    free(gift);
}

bool kv_shard_has_gifts_under_way(uint32_t shard)
{
    return atomic_load_explicit(&given[shard], memory_order_relaxed) != 0;
}

struct kv_gift *kv_take_gifts_returned_to_shard(uint32_t shard)
{
    if (atomic_load_explicit(&returned[shard], memory_order_relaxed) == NULL)
        return NULL;
    return atomic_exchange_explicit(&returned[shard], NULL, memory_order_acquire);
}
