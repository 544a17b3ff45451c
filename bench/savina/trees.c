/* fib and skynet: trees of actors that are spawned downwards and summed up upwards.
 *
 * The state of a child holds its task and the address to which it sends the result; then the child
 * ends. The root of a round has one child, whose result is the result of the round. */
#include "bench/savina/rows.h"

#define BRANCHES 10u

static const domus_type sum_type = {.name = "sum", .size = sizeof(uint64_t)};

static int send_sum_to_parent_and_stop(domus_stack *stack, domus_address parent, uint64_t sum)
{
    stage_send_notice(stack, parent, &sum_type, &sum);
    return domus_stop(stack, domus_self(stack));
}

static int end_row_with_sum_of_tree(domus_stack *stack, void *self, const void *sum)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)sum);
}

/* --- fib -------------------------------------------------------------------------------------- */

struct call {
    domus_address parent;
    uint32_t n;
    uint32_t answers;
    uint64_t sum;
};

static int begin_call_of_fib(domus_stack *stack, void *self_);

static int add_sum_to_call(domus_stack *stack, void *self_, const void *sum)
{
    struct call *self = self_;

    self->sum += *(const uint64_t *)sum;
    return ++self->answers == 2 ? send_sum_to_parent_and_stop(stack, self->parent, self->sum) : 0;
}

static const domus_behaviour call = {
    .name = "call",
    .state_size = sizeof(struct call),
    .on = (const domus_on[]){{.type = &sum_type, .handle = add_sum_to_call}, {.type = NULL}},
    .on_mount = begin_call_of_fib,
};

static void spawn_call_of_fib(domus_stack *stack, uint32_t n)
{
    struct call state = {.parent = domus_self(stack), .n = n};

    (void)stage_spawn_child_of_root(stack, &call, &state);
}

static int begin_call_of_fib(domus_stack *stack, void *self_)
{
    const struct call *self = self_;

    if (self->n <= 2)
        return send_sum_to_parent_and_stop(stack, self->parent, 1);
    spawn_call_of_fib(stack, self->n - 1);
    spawn_call_of_fib(stack, self->n - 2);
    return 0;
}

static int start_tree_of_fib(domus_stack *stack, void *self, const void *n)
{
    uint64_t number = *(const uint64_t *)n;

    (void)self;
    spawn_call_of_fib(stack, (uint32_t)number);
    return 0;
}

static const domus_behaviour fib = {
    .name = "fib",
    .on = (const domus_on[]){{.type = &go_type, .handle = start_tree_of_fib},
                             {.type = &sum_type, .handle = end_row_with_sum_of_tree},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_fib = {.name = "fib", .root = &fib};

/* --- skynet ----------------------------------------------------------------------------------- */

struct branch {
    domus_address parent;
    uint64_t first; /* the number of the first leaf below this branch */
    uint64_t leaves;
    uint64_t answers;
    uint64_t sum;
};

static int begin_branch_of_skynet(domus_stack *stack, void *self_);

static int add_sum_to_branch(domus_stack *stack, void *self_, const void *sum)
{
    struct branch *self = self_;

    self->sum += *(const uint64_t *)sum;
    return ++self->answers == BRANCHES ? send_sum_to_parent_and_stop(stack, self->parent, self->sum)
                                       : 0;
}

static const domus_behaviour branch = {
    .name = "branch",
    .state_size = sizeof(struct branch),
    .on = (const domus_on[]){{.type = &sum_type, .handle = add_sum_to_branch}, {.type = NULL}},
    .on_mount = begin_branch_of_skynet,
};

static int begin_branch_of_skynet(domus_stack *stack, void *self_)
{
    const struct branch *self = self_;

    if (self->leaves == 1)
        return send_sum_to_parent_and_stop(stack, self->parent, self->first);
    for (uint32_t i = 0; i < BRANCHES; i++) {
        struct branch state = {
            .parent = domus_self(stack),
            .leaves = self->leaves / BRANCHES,
            .first = self->first + i * (self->leaves / BRANCHES),
        };
        (void)stage_spawn_child_of_root(stack, &branch, &state);
    }
    return 0;
}

static int start_tree_of_skynet(domus_stack *stack, void *self, const void *leaves)
{
    struct branch state = {.parent = domus_self(stack), .leaves = *(const uint64_t *)leaves};

    (void)self;
    (void)stage_spawn_child_of_root(stack, &branch, &state);
    return 0;
}

static const domus_behaviour skynet = {
    .name = "skynet",
    .on = (const domus_on[]){{.type = &go_type, .handle = start_tree_of_skynet},
                             {.type = &sum_type, .handle = end_row_with_sum_of_tree},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_skynet = {.name = "skynet", .root = &skynet};
