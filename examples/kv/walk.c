/* The pieces of a walk: after each of them its conversation sleeps for a moment,
 * behind a barrier. */
#include "walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOMENT_NS UINT64_C(1000000)
#define HEAD_GAP  16u /* bytes before elements that are counted at the end */

#define PIECES_OF_TRANSACTION 16u

static const char gap[HEAD_GAP];

static int continue_walk(domus_stack *stack, void *self, const domus_answer *answer);

static void free_walk(struct kv_walk *walk)
{
    domus_resp_drop(&walk->builder);
    domus_slice_free(walk->pattern);
}

/* Write the head of an array into the gap before the elements. */
static void put_head(domus_resp_reply *reply)
{
    char head[HEAD_GAP + 1];
    uint32_t size = (uint32_t)snprintf(head, sizeof head, "*%u\r\n", reply->values);

    reply->bytes.offset -= size;
    reply->bytes.size += size;
    reply->values = 1;
    /* nobody else has seen these bytes yet */
    memcpy((char *)(uintptr_t)domus_slice_data(reply->bytes), head, size);
}

/* Answer with elements that were not announced. */
static int answer_counted(domus_stack *stack, struct kv_walk *walk)
{
    domus_resp_reply reply;

    if (walk->builder.values == 0) {
        domus_resp_drop(&walk->builder);
        (void)domus_resp_add_array(&walk->builder, 0);
        return walk->is_part ? kv_null(stack) : kv_reply(stack, &walk->builder);
    }
    int error = domus_resp_end(&walk->builder, &reply);
    if (error != 0)
        return error;
    reply.bytes.offset += HEAD_GAP;
    reply.bytes.size -= HEAD_GAP;
    if (!walk->is_part)
        put_head(&reply);
    return kv_reply_with(stack, reply);
}

static int answer_walk(domus_stack *stack, struct kv_walk *walk, int error)
{
    if (error == 0)
        error = walk->counts ? answer_counted(stack, walk) : kv_reply(stack, &walk->builder);
    free_walk(walk);
    return error == -EMSGSIZE ? kv_error(stack, KV_TOO_LONG) : error;
}

static int run_piece(struct kv_store *store, struct kv_walk *walk)
{
    walk->visited = 0;
    walk->begin = walk->builder.bytes.size;
    int result = walk->piece(store, walk);
    return walk->builder.bytes.error != 0 ? walk->builder.bytes.error : result;
}

/* The walk is over. */
static int end_walk(domus_stack *stack, struct kv_store *store, int error)
{
    struct kv_walk *walk = store->walk;

    store->walk = NULL;
    error = answer_walk(stack, walk, error);
    free(walk);
    return error;
}

static int continue_walk(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    int result = answer->error;

    if (result == 0)
        result = run_piece(store, store->walk);
    if (result > 0)
        result = domus_sleep(stack, MOMENT_NS, continue_walk);
    return result == DOMUS_PARKED ? result : end_walk(stack, store, result);
}

/* Make room for the whole answer, which is no longer than all that the store has and the heads of
 * its elements: to move what is there to more room would take the longer the more it is. Memory
 * that is not written to costs nothing. */
static void reserve_answer_room(const struct kv_store *store, struct kv_walk *walk)
{
    uint64_t most = store->memory.used_bytes * 2;
    uint64_t free = walk->builder.bytes.size_max - walk->builder.bytes.size;

    (void)domus_append_room(&walk->builder.bytes, (size_t)(most < free ? most : free));
}

int kv_walk(struct kv_call *call, const struct kv_walk *begun)
{
    struct kv_walk walk = *begun;
    struct kv_store *store = call->store;

    walk.builder.version = call->command->version;
    walk.builder.bytes.size_max = kv_answer_max();
    if (walk.counts)
        (void)domus_append(&walk.builder.bytes, gap, HEAD_GAP);
    int result = run_piece(store, &walk);
    for (uint32_t i = 0; result > 0 && kv_is_gathering(); i++) /* a transaction is one turn */
        result = i < PIECES_OF_TRANSACTION ? run_piece(store, &walk) : -EMSGSIZE;
    if (result <= 0)
        return answer_walk(call->stack, &walk, result);
    store->walk = malloc(sizeof walk);
    if (store->walk == NULL) {
        free_walk(&walk);
        return -ENOMEM;
    }
    reserve_answer_room(store, &walk);
    *store->walk = walk;
    result = domus_barrier(call->stack);
    if (result == 0)
        result = domus_sleep(call->stack, MOMENT_NS, continue_walk);
    return result == DOMUS_PARKED ? result : end_walk(call->stack, store, result);
}
