/* threadring: 100 actors, each of which knows the next one, and one token that counts down. */
#include "bench/savina/rows.h"

#define NODES 100u

static const domus_type token_type = {.name = "token", .size = sizeof(uint64_t)};
static const domus_type next_type = {.name = "next", .size = sizeof(domus_address)};
static const domus_type end_type = {.name = "end", .size = sizeof(uint64_t)};

struct node {
    domus_address next;
    domus_address maker;
    uint64_t index;
};

/* A token, which holds the number of passes that it has left. */
static int pass_token_on(domus_stack *stack, void *self_, const void *token)
{
    struct node *self = self_;
    uint64_t left = *(const uint64_t *)token;

    if (left == 0)
        return domus_notice(stack, self->maker, &end_type, &self->index);
    left--;
    return domus_notice(stack, self->next, &token_type, &left);
}

static int store_address_of_next_node(domus_stack *stack, void *self, const void *next)
{
    (void)stack;
    ((struct node *)self)->next = *(const domus_address *)next;
    return 0;
}

static const domus_behaviour node = {
    .name = "node",
    .state_size = sizeof(struct node),
    .on = (const domus_on[]){{.type = &token_type, .handle = pass_token_on},
                             {.type = &next_type, .handle = store_address_of_next_node},
                             {.type = NULL}},
};

/* Spawn the nodes from the last to the first, so that all but the last know from the beginning the
 * node to which they pass the token. */
static int make_ring_of_nodes_and_send_token(domus_stack *stack, void *self, const void *passes)
{
    domus_address last = {0};
    domus_address next = {0};

    (void)self;
    for (uint32_t i = NODES; i-- > 0;) {
        struct node state = {.next = next, .maker = domus_self(stack), .index = i};
        next = stage_spawn_child_of_root(stack, &node, &state);
        if (i == NODES - 1)
            last = next;
    }
    stage_send_notice(stack, last, &next_type, &next);
    return domus_notice(stack, next, &token_type, passes);
}

static int end_row_with_last_node_of_token(domus_stack *stack, void *self, const void *index)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)index);
}

static const domus_behaviour maker = {
    .name = "maker",
    .on = (const domus_on[]){{.type = &go_type, .handle = make_ring_of_nodes_and_send_token},
                             {.type = &end_type, .handle = end_row_with_last_node_of_token},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_threadring = {.name = "threadring", .root = &maker};
