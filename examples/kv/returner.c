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

static int send_returned_gifts_to_their_shards(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    for (uint32_t i = 0; i < kv_shard_count; i++) {
        struct kv_gift *next;
        for (struct kv_gift *gift = kv_take_gifts_returned_to_shard(i); gift != NULL; gift = next) {
            next = gift->next;
            /* Send the gift back to its shard; nobody waits for the answer. If the ask cannot be
             * made, the gift is given back once more. */
            if (domus_ask_add(stack, kv_shards[i], &kv_gift_type, &gift, 0, 0) != 0)
                kv_gift_type.release(&gift);
        }
    }
    kv_legacy_free_old_or_wake_shards(stack);
    return domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
}

static int arm_timer_for_gifts_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
}

const domus_behaviour kv_returner = {
    .name = "returner",
    .on = (const domus_on[]){{&look_type, send_returned_gifts_to_their_shards, 0},
                             {&kv_evacuate_type, kv_ask_all_shards_to_evacuate, 0},
                             {NULL, NULL, 0}},
    .on_mount = arm_timer_for_gifts_at_mount,
};

int kv_put_sent_gift_back_into_store(domus_stack *stack, void *self, const void *payload)
{
    struct kv_gift *gift = *(struct kv_gift *const *)payload;
    struct kv_store *store = self;

    kv_set_store_time_and_arm_timer(stack, store);
    int error = domus_take(stack);
    if (error != 0)
        return error;
    kv_put_gift_back_and_free_it(stack, store, gift);
    kv_serve_clients_that_wait_at_changed(stack, store);
    return kv_answer_ok(stack);
}
