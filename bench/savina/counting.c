/* counting: a producer sends to a counter in windows of 1,000 messages, of which at most two are
 * under way.
 *
 * A window ends with a notice and not with an ask. Notices of one sender keep their order, but an
 * ask would overtake the increments before it. The producer asks for the value when nothing is
 * under way. */
#include "bench/savina/rows.h"

#define WINDOW      1000u
#define WINDOWS_OUT 2u

static const domus_type increment_type = {.name = "increment"};
static const domus_type so_far_type = {.name = "so far", .size = sizeof(uint64_t)};
static const domus_type value_type = {.name = "value", .size = sizeof(uint64_t)};

static int increment_counter(domus_stack *stack, void *count, const void *nothing)
{
    (void)stack, (void)nothing;
    ++*(uint64_t *)count;
    return 0;
}

static int tell_count_so_far_to_producer(domus_stack *stack, void *count, const void *nothing)
{
    (void)nothing;
    return domus_notice(stack, domus_sender(stack), &so_far_type, count);
}

static int reply_counter_value(domus_stack *stack, void *count, const void *nothing)
{
    (void)nothing;
    return domus_reply(stack, &value_type, count);
}

static const domus_behaviour counter = {
    .name = "counter",
    .state_size = sizeof(uint64_t),
    .on = (const domus_on[]){{.type = &increment_type, .handle = increment_counter},
                             {.type = &so_far_type, .handle = tell_count_so_far_to_producer},
                             {.type = &value_type, .handle = reply_counter_value},
                             {.type = NULL}},
};

struct producer {
    domus_address manager;
    domus_address counter;
    uint64_t left;
    uint64_t out;
};

static void send_window_of_messages(domus_stack *stack, struct producer *self)
{
    const uint64_t unused = 0;

    for (uint32_t i = 0; i < WINDOW; i++)
        stage_send_notice(stack, self->counter, &increment_type, NULL);
    stage_send_notice(stack, self->counter, &so_far_type, &unused);
    self->left -= WINDOW;
    self->out++;
}

static int send_first_windows(domus_stack *stack, void *self_, const void *count)
{
    struct producer *self = self_;

    self->left = *(const uint64_t *)count;
    while (self->left != 0 && self->out < WINDOWS_OUT)
        send_window_of_messages(stack, self);
    return 0;
}

static int report_counter_value(domus_stack *stack, void *self_, const domus_answer *answer)
{
    struct producer *self = self_;

    stage_must_succeed(answer->error, "value");
    return domus_notice(stack, self->manager, &value_type, answer->payload);
}

static int send_next_window_or_ask_counter(domus_stack *stack, void *self_, const void *count)
{
    const uint64_t unused = 0;
    struct producer *self = self_;

    (void)count;
    self->out--;
    if (self->left != 0)
        send_window_of_messages(stack, self);
    if (self->out != 0)
        return 0;
    return domus_ask(stack, self->counter, &value_type, &unused, report_counter_value);
}

static const domus_behaviour producer = {
    .name = "producer",
    .state_size = sizeof(struct producer),
    .on = (const domus_on[]){{.type = &so_far_type, .handle = send_next_window_or_ask_counter},
                             {.type = &go_type, .handle = send_first_windows},
                             {.type = NULL}},
};

static int spawn_counter_and_producer(domus_stack *stack, void *self, const void *count)
{
    struct producer state = {
        .manager = domus_self(stack),
        .counter = stage_spawn_child_of_root(stack, &counter, NULL),
    };

    (void)self;
    return domus_notice(stack, stage_spawn_child_of_root(stack, &producer, &state), &go_type,
                        count);
}

static int end_row_with_counter_value(domus_stack *stack, void *self, const void *count)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)count);
}

static const domus_behaviour manager = {
    .name = "manager",
    .on = (const domus_on[]){{.type = &go_type, .handle = spawn_counter_and_producer},
                             {.type = &value_type, .handle = end_row_with_counter_value},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_counting = {.name = "counting", .root = &manager};
