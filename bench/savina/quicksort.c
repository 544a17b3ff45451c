/* quicksort: each part has an actor; a large part is cut in two, a small one is sorted with
 * qsort().
 *
 * A part is a slice of one array. An actor that sends a slice to another does not touch it until
 * the other one has told that it is sorted; so no two actors ever use the same elements. Parts are
 * cut in the middle of their range of values, so that all contenders have the same ones.
 *
 * The slice is a message, not a part of the state that on_mount could begin with: on_mount runs on
 * the actor's home, but an actor that handles a message may be lent to an idle thread. */
#include "bench/savina/rows.h"

#include <errno.h>
#include <stdlib.h>

/* one actor sorts a part of at most so many elements, and cuts a larger one */
#define PART_MAX 2048u

struct slice {
    uint32_t *values;
    size_t count;
    uint64_t low; /* the values of this slice are in low..high - 1 */
    uint64_t high;
};

static const domus_type slice_type = {.name = "slice", .size = sizeof(struct slice)};
static const domus_type sorted_type = {.name = "sorted", .size = sizeof(uint64_t)};

/* The input of a round. The main thread makes and checks it while the clock does not run. */
static struct {
    uint32_t *values;
    size_t size;
} input;

struct part {
    domus_address parent;
    uint64_t halves; /* number of halves of this actor's part that are sorted */
    uint64_t actors; /* number of actors that have worked on this part */
};

static int compare_values(const void *left_, const void *right_)
{
    uint32_t left = *(const uint32_t *)left_;
    uint32_t right = *(const uint32_t *)right_;

    return (left > right) - (left < right);
}

/* Move the elements below `middle` to the front of the values. Returns their number. Each element
 * is exchanged, whether it must or not: without a branch that nobody can predict this takes a third
 * of the time. */
static size_t partition_values(uint32_t *values, size_t count, uint64_t middle)
{
    size_t below = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t value = values[i];
        values[i] = values[below];
        values[below] = value;
        below += value < middle;
    }
    return below;
}

static int tell_parent_of_sorted_slice(domus_stack *stack, const struct part *self)
{
    stage_send_notice(stack, self->parent, &sorted_type, &self->actors);
    return domus_stop(stack, domus_self(stack));
}

static int tell_parent_if_both_halves_are_sorted(domus_stack *stack, void *self_,
                                                 const void *actors)
{
    struct part *self = self_;

    self->actors += *(const uint64_t *)actors;
    return ++self->halves == 2 ? tell_parent_of_sorted_slice(stack, self) : 0;
}

static int cut_or_sort_slice(domus_stack *stack, void *self_, const void *slice_);

static const domus_behaviour part = {
    .name = "part",
    .state_size = sizeof(struct part),
    .on =
        (const domus_on[]){{.type = &sorted_type, .handle = tell_parent_if_both_halves_are_sorted},
                           {.type = &slice_type, .handle = cut_or_sort_slice},
                           {.type = NULL}},
};

static void spawn_actor_for_slice(domus_stack *stack, struct slice slice)
{
    struct part state = {.parent = domus_self(stack), .actors = 1};

    stage_send_notice(stack, stage_spawn_child_of_root(stack, &part, &state), &slice_type, &slice);
}

static int cut_or_sort_slice(domus_stack *stack, void *self, const void *slice_)
{
    struct slice slice = *(const struct slice *)slice_;

    if (slice.count <= PART_MAX) {
        qsort(slice.values, slice.count, sizeof slice.values[0], compare_values);
        return tell_parent_of_sorted_slice(stack, self);
    }
    uint64_t middle = slice.low + (slice.high - slice.low) / 2;
    size_t below = partition_values(slice.values, slice.count, middle);
    spawn_actor_for_slice(stack, (struct slice){slice.values, below, slice.low, middle});
    spawn_actor_for_slice(
        stack, (struct slice){slice.values + below, slice.count - below, middle, slice.high});
    return 0;
}

static int start_sort_of_array(domus_stack *stack, void *self, const void *size)
{
    (void)self;
    (void)size;
    spawn_actor_for_slice(stack, (struct slice){input.values, input.size, 0, UINT64_C(1) << 32});
    return 0;
}

static int end_row_with_count_of_sort_actors(domus_stack *stack, void *self, const void *actors)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)actors);
}

static const domus_behaviour sort = {
    .name = "sort",
    .on = (const domus_on[]){{.type = &go_type, .handle = start_sort_of_array},
                             {.type = &sorted_type, .handle = end_row_with_count_of_sort_actors},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

static void draw_values_to_sort(uint64_t size)
{
    uint32_t seed = 1;

    stage_must_succeed(size > SIZE_MAX / sizeof input.values[0] ? -ENOMEM : 0, "the input");
    input.size = (size_t)size;
    input.values = malloc(input.size * sizeof input.values[0]);
    stage_must_succeed(input.values == NULL ? -ENOMEM : 0, "the input");
    for (size_t i = 0; i < input.size; i++)
        input.values[i] = stage_draw_random_number(&seed);
}

static uint64_t check_and_sum_sorted_values(uint64_t actors, uint64_t *messages)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < input.size; i++)
        sum += (uint32_t)(i % 7) * input.values[i];
    free(input.values);
    *messages = 2 * actors;
    return sum;
}

const struct stage_row row_quicksort = {
    .name = "quicksort",
    .root = &sort,
    .prepare = draw_values_to_sort,
    .finish = check_and_sum_sorted_values,
};
