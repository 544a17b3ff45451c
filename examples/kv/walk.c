/* Runs the pieces of a walk (walk.h): after each of them its conversation sleeps for a moment,
 * behind a barrier. */
#include "walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOMENT_NS UINT64_C(1000000)
/* bytes before elements, for the head of an array whose elements are counted at the end */
#define HEAD_GAP 16u

#define PIECES_OF_TRANSACTION 16u

static const char gap[HEAD_GAP];

static int continue_walk(domus_stack *stack, void *self, const domus_answer *answer);

static void free_walk(struct kv_walk *walk)
{
    domus_resp_drop(&walk->builder);
    domus_slice_free(walk->pattern);
}

/* Write the head of an array into the gap before the elements. */
static void write_array_head_before_elements(domus_resp_reply *reply)
{
    char head[HEAD_GAP + 1];
    uint32_t size = (uint32_t)snprintf(head, sizeof head, "*%u\r\n", reply->values);

    reply->bytes.offset -= size;
    reply->bytes.size += size;
    reply->values = 1;
    /* the bytes may be written, because nobody else has seen them yet */
    memcpy((char *)(uintptr_t)domus_slice_data(reply->bytes), head, size);
}

/* Answer with an array of elements whose number was not known before. */
static int answer_with_array_of_found_elements(domus_stack *stack, struct kv_walk *walk)
{
    domus_resp_reply reply;

    if (walk->builder.values == 0) {
        domus_resp_drop(&walk->builder);
        (void)domus_resp_add_array(&walk->builder, 0);
        return walk->is_part ? kv_answer_null(stack)
                             : kv_answer_what_builder_has_made(stack, &walk->builder);
    }
    int error = domus_resp_end(&walk->builder, &reply);
    if (error != 0)
        return error;
    reply.bytes.offset += HEAD_GAP;
    reply.bytes.size -= HEAD_GAP;
    if (!walk->is_part)
        write_array_head_before_elements(&reply);
    return kv_answer_reply_and_give_its_bytes(stack, reply);
}

static int answer_with_result_of_walk(domus_stack *stack, struct kv_walk *walk, int error)
{
    if (error == 0)
        error = walk->counts ? answer_with_array_of_found_elements(stack, walk)
                             : kv_answer_what_builder_has_made(stack, &walk->builder);
    free_walk(walk);
    return error == -EMSGSIZE ? kv_answer_error(stack, KV_TOO_LONG) : error;
}

static int run_piece_of_walk(struct kv_store *store, struct kv_walk *walk)
{
    walk->visited = 0;
    walk->begin = walk->builder.bytes.size;
    int result = walk->piece(store, walk);
    return walk->builder.bytes.error != 0 ? walk->builder.bytes.error : result;
}

/* End a walk: answer its command, and free it. */
static int answer_and_free_parked_walk(domus_stack *stack, struct kv_store *store, int error)
{
    struct kv_walk *walk = store->walk;

    store->walk = NULL;
    error = answer_with_result_of_walk(stack, walk, error);
    free(walk);
    return error;
}

static int continue_walk(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    int result = answer->error;

    if (result == 0)
        result = run_piece_of_walk(store, store->walk);
    if (result > 0)
        result = domus_sleep(stack, MOMENT_NS, continue_walk);
    return result == DOMUS_PARKED ? result : answer_and_free_parked_walk(stack, store, result);
}

/* Make room for the whole answer, which is no longer than all that the store has and the heads of
 * its elements: moving the elements to a larger memory would take the longer the more they are.
 * Memory that is not written to costs nothing. */
static void reserve_memory_for_whole_answer(const struct kv_store *store, struct kv_walk *walk)
{
    uint64_t most = store->memory.used_bytes * 2;
    uint64_t free = walk->builder.bytes.size_max - walk->builder.bytes.size;

    (void)domus_append_room(&walk->builder.bytes, (size_t)(most < free ? most : free));
}

int kv_run_walk_and_park_if_long(struct kv_call *call, const struct kv_walk *begun)
{
    struct kv_walk walk = *begun;
    struct kv_store *store = call->store;

    walk.builder.version = call->command->version;
    walk.builder.bytes.size_max = kv_most_bytes_of_one_answer();
    if (walk.counts)
        (void)domus_append(&walk.builder.bytes, gap, HEAD_GAP);
    int result = run_piece_of_walk(store, &walk);
    /* in a transaction all pieces run now, because it is one turn */
    for (uint32_t i = 0; result > 0 && kv_are_answers_gathered(); i++)
        result = i < PIECES_OF_TRANSACTION ? run_piece_of_walk(store, &walk) : -EMSGSIZE;
    if (result <= 0)
        return answer_with_result_of_walk(call->stack, &walk, result);
    store->walk = malloc(sizeof walk);
    if (store->walk == NULL) {
        free_walk(&walk);
        return -ENOMEM;
    }
    reserve_memory_for_whole_answer(store, &walk);
    *store->walk = walk;
    result = domus_barrier(call->stack);
    if (result == 0)
        result = domus_sleep(call->stack, MOMENT_NS, continue_walk);
    return result == DOMUS_PARKED ? result
                                  : answer_and_free_parked_walk(call->stack, store, result);
}
