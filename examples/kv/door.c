/* A door (door.h) finds its shard in the cluster, and passes messages on to it. */
#include "door.h"

#include "desk.h"
#include "gift.h"
#include "legacy.h"
#include "transaction.h"
#include "travel.h"
#include "wait.h"
#include "watch.h"

#include <errno.h>
#include <stdio.h>

/* time-out in ns of a search for a shard, which is longer than any node is waited for */
#define SEARCH_NS UINT64_C(10000000000)
/* pause in ns after a search that has failed, before the next search may begin */
#define PAUSE_NS UINT64_C(200000000)

#define KV_TOO_FAR                                                                                 \
    "ERR the command is larger than 500 KiB, and its keys are on another node of the cluster"
#define KV_UNLIKE "ERR kv.shards and kv.hashKey are not the same on all nodes of the cluster"

static void close_door_and_unwatch_its_shard(domus_stack *stack, struct kv_door *door)
{
    if (door->is_open)
        (void)domus_unwatch(stack, door->down);
    door->is_open = door->is_remote = false;
}

/* Open a door, so that it forwards to the shard, which has told its address. */
static int watch_shard_and_open_door_to_it(domus_stack *stack, struct kv_door *door,
                                           domus_address to)
{
    int error = domus_watch_actor(stack, to, &door->down);

    if (error != 0)
        return error;
    door->to = to;
    door->is_open = true;
    door->is_remote = domus_address_is_remote(to);
    door->error = 0;
    return 0;
}

static int open_door_to_found_shard_and_forward(domus_stack *stack, void *self,
                                                const domus_answer *answer)
{
    struct kv_door *door = self;
    int error = answer->error;

    if (error == 0 && answer->type != &kv_here_type)
        return kv_answer_error(stack, KV_UNLIKE);
    if (error == 0)
        error = watch_shard_and_open_door_to_it(stack, door,
                                                ((const struct kv_here *)answer->payload)->shard);
    if (error == 0)
        return domus_forward(stack, door->to);
    door->error = error;
    door->failed_ns = domus_now_ns(stack);
    return error;
}

/* Pass on the ask to evacuate, which concerns only a shard that lives on this node. */
static int forward_evacuation_to_found_shard(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    struct kv_door *door = self;

    if (answer->error != 0 || answer->type != &kv_here_type)
        return answer->error != 0 ? answer->error : -EPROTO;
    domus_address shard = ((const struct kv_here *)answer->payload)->shard;
    if (!door->is_open)
        (void)watch_shard_and_open_door_to_it(stack, door, shard);
    return domus_address_is_remote(shard) ? kv_answer_ok(stack) : domus_forward(stack, shard);
}

/* Search for the door's shard, and then continue with the current message. All other messages wait
 * meanwhile. */
static int search_for_shard(domus_stack *stack, struct kv_door *door, domus_resumed *then)
{
    struct kv_lookup lookup;
    char key[16];

    if (door->error != 0 && domus_now_ns(stack) - door->failed_ns < PAUSE_NS)
        return door->error;
    int error = domus_barrier(stack);
    if (error != 0)
        return error;
    kv_fill_lookup_with_own_settings(&lookup);
    snprintf(key, sizeof key, "%u", door->shard);
    return domus_grain_ask_within(stack, door->grains, key, &kv_lookup_type, &lookup, SEARCH_NS,
                                  then);
}

static int forward_message_or_search_for_shard(domus_stack *stack, void *self, const void *payload)
{
    struct kv_door *door = self;

    (void)payload;
    if (door->is_open) {
        int error = domus_forward(stack, door->to);
        if (error != -ESTALE && error != -EHOSTDOWN)
            return error;
        close_door_and_unwatch_its_shard(stack, door);
    }
    return search_for_shard(stack, door, open_door_to_found_shard_and_forward);
}

static int forward_evacuation_or_search_for_shard(domus_stack *stack, void *self,
                                                  const void *payload)
{
    struct kv_door *door = self;

    (void)payload;
    if (!door->is_open)
        return search_for_shard(stack, door, forward_evacuation_to_found_shard);
    return door->is_remote ? kv_answer_ok(stack) : domus_forward(stack, door->to);
}

static int forward_command_unless_too_long(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_door *door = self;

    if (door->is_remote && ((const domus_resp_command *)payload)->bytes.size > KV_TRAVEL_MAX)
        return kv_answer_error(stack, KV_TOO_FAR);
    return forward_message_or_search_for_shard(stack, self, payload);
}

static int close_door_to_ended_shard(domus_stack *stack, void *self, const void *payload)
{
    struct kv_door *door = self;

    (void)stack;
    if (domus_address_equals(((const domus_down *)payload)->who, door->to))
        door->is_open = door->is_remote = false;
    return 0;
}

const domus_behaviour kv_door = {
    .name = "door",
    .state_size = sizeof(struct kv_door),
    .on = (const domus_on[]){{&domus_resp_command_type, forward_command_unless_too_long, 0},
                             {&kv_question_type, forward_message_or_search_for_shard, 0},
                             {&kv_exec_type, forward_message_or_search_for_shard, 0},
                             {&kv_unwatch_type, forward_message_or_search_for_shard, 0},
                             {&kv_unblock_type, forward_message_or_search_for_shard, 0},
                             {&kv_leave_type, forward_message_or_search_for_shard, 0},
                             {&kv_gift_type, forward_message_or_search_for_shard, 0},
                             {&kv_evacuate_type, forward_evacuation_or_search_for_shard, 0},
                             {&domus_down_type, close_door_to_ended_shard, 0},
                             {NULL, NULL, 0}},
};
