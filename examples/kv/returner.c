/* Sends elements of lists back to shards on other nodes, because the clients on this node that
 * should get them have ended. Whichever thread drops the answer leaves the elements as a gift
 * (gift.h), so this actor looks for gifts at intervals. */
#include "gift.h"
#include "legacy.h"
#include "observed.h"
#include "wait.h"
#include "wish.h"

#define LOOK_NS UINT64_C(100000000)

static const domus_type look_type = {.name = "look"};

static int send_gifts_to_shards(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    for (uint32_t i = 0; i < kv_shard_count; i++) {
        struct kv_gift *next;
        for (struct kv_gift *gift = kv_take_returned_gifts(i); gift != NULL; gift = next) {
            next = gift->next;
            /* Send the gift back to its shard; nobody waits for the answer. If the ask cannot be
             * made, the gift is given back once more. */
            if (domus_ask_add(stack, kv_shards[i], &kv_gift_type, &gift, 0, 0) != 0)
                kv_gift_type.release(&gift);
        }
    }
    kv_legacy_look_after_slots(stack);
    return domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
}

static int mount_returner(domus_stack *stack, void *self)
{
    (void)self;
    return domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
}

const domus_behaviour kv_returner = {
    .name = "returner",
    .on = (const domus_on[]){{&look_type, send_gifts_to_shards, 0},
                             {&kv_evacuate_type, kv_evacuate_all_shards, 0},
                             {NULL, NULL, 0}},
    .on_mount = mount_returner,
};

int kv_take_gift_back(domus_stack *stack, void *self, const void *payload)
{
    struct kv_gift *gift = *(struct kv_gift *const *)payload;
    struct kv_store *store = self;

    kv_begin_store_turn(stack, store);
    int error = domus_take(stack);
    if (error != 0)
        return error;
    kv_put_back_in_shard(stack, store, gift);
    kv_serve_waiting_clients(stack, store);
    return kv_answer_ok(stack);
}
