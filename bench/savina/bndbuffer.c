/* bndbuffer: 40 producers, a manager with 50 places, 40 consumers.
 *
 * A place is taken when a producer is permitted to make an item and free again when a consumer got
 * one, so permits and items together never exceed the places. The manager has two lines: producers
 * wait in one for a permit, consumers wait in the other for an item. */
#include "bench/savina/rows.h"

#include <math.h>

#define PLACES    50u
#define PRODUCERS 40u
#define CONSUMERS 40u
#define STEPS     25u

static const domus_type permit_type = {.name = "permit"};
static const domus_type item_type = {.name = "item", .size = sizeof(double)};
static const domus_type last_item_type = {.name = "last item", .size = sizeof(double)};
static const domus_type next_type = {.name = "next"};
static const domus_type no_more_type = {.name = "no more"};
static const domus_type count_type = {.name = "count", .size = sizeof(uint64_t)};

/* Do the work for one item, as its producer does, and its consumer again. */
static double compute_steps_for_item(double item)
{
    for (uint32_t i = 0; i < STEPS; i++)
        item = sin(item) + 1e-9 * i;
    return item;
}

/* --- producers and consumers ------------------------------------------------------------------ */

struct worker {
    domus_address manager;
    uint64_t left;  /* for a producer: number of items that it has still to produce */
    uint64_t count; /* for a consumer: number of items that it has consumed */
    double start;
    double item;
};

static int produce_item_for_permit(domus_stack *stack, void *self_, const void *nothing)
{
    struct worker *self = self_;

    (void)nothing;
    self->item = compute_steps_for_item(self->start);
    const domus_type *type = --self->left == 0 ? &last_item_type : &item_type;
    return domus_notice(stack, self->manager, type, &self->item);
}

static const domus_behaviour producer = {
    .name = "producer",
    .state_size = sizeof(struct worker),
    .on = (const domus_on[]){{.type = &permit_type, .handle = produce_item_for_permit},
                             {.type = NULL}},
};

static int request_first_item_at_mount(domus_stack *stack, void *self)
{
    return domus_notice(stack, ((struct worker *)self)->manager, &next_type, NULL);
}

static int consume_item_and_request_next(domus_stack *stack, void *self_, const void *item)
{
    struct worker *self = self_;

    (void)item;
    self->item = compute_steps_for_item(self->start);
    self->count++;
    return domus_notice(stack, self->manager, &next_type, NULL);
}

static int report_count_of_worker_to_manager(domus_stack *stack, void *self_, const void *nothing)
{
    struct worker *self = self_;

    (void)nothing;
    return domus_notice(stack, self->manager, &count_type, &self->count);
}

static const domus_behaviour consumer = {
    .name = "consumer",
    .state_size = sizeof(struct worker),
    .on = (const domus_on[]){{.type = &item_type, .handle = consume_item_and_request_next},
                             {.type = &no_more_type, .handle = report_count_of_worker_to_manager},
                             {.type = NULL}},
    .on_mount = request_first_item_at_mount,
};

/* --- the manager ------------------------------------------------------------------------------ */

/* A queue of producers or consumers that wait, in the order in which they came. */
struct line {
    domus_address who[PRODUCERS > CONSUMERS ? PRODUCERS : CONSUMERS];
    uint32_t first;
    uint32_t count;
};

static void append_actor_to_line(struct line *line, domus_address who)
{
    const uint32_t room = sizeof line->who / sizeof line->who[0];

    line->who[(line->first + line->count++) % room] = who;
}

static domus_address take_first_actor_of_line(struct line *line)
{
    const uint32_t room = sizeof line->who / sizeof line->who[0];
    domus_address who = line->who[line->first];

    line->first = (line->first + 1) % room;
    line->count--;
    return who;
}

struct manager {
    uint64_t left; /* number of items that no consumer has got yet */
    uint64_t sum;
    /* number of consumers that have reported to the manager how many items they consumed */
    uint32_t counted;
    uint32_t taken; /* number of places that are taken, by items or by permits */
    uint32_t first; /* index in `items` of the first item that waits */
    uint32_t count;
    double items[PLACES];
    struct line producers;
    struct line consumers;
};

static void permit_producers_for_free_places(domus_stack *stack, struct manager *self)
{
    while (self->taken < PLACES && self->producers.count != 0) {
        self->taken++;
        stage_send_notice(stack, take_first_actor_of_line(&self->producers), &permit_type, NULL);
    }
}

static void give_item_to_consumer(domus_stack *stack, struct manager *self, domus_address to,
                                  double item)
{
    self->left--;
    self->taken--;
    stage_send_notice(stack, to, &item_type, &item);
}

static int give_or_store_item_in_buffer(domus_stack *stack, void *self_, const void *item)
{
    struct manager *self = self_;

    if (self->consumers.count != 0)
        give_item_to_consumer(stack, self, take_first_actor_of_line(&self->consumers),
                              *(const double *)item);
    else
        self->items[(self->first + self->count++) % PLACES] = *(const double *)item;
    while (self->left == 0 && self->consumers.count != 0)
        stage_send_notice(stack, take_first_actor_of_line(&self->consumers), &no_more_type, NULL);
    permit_producers_for_free_places(stack, self);
    return 0;
}

static int store_item_and_queue_producer(domus_stack *stack, void *self_, const void *item)
{
    struct manager *self = self_;

    append_actor_to_line(&self->producers, domus_sender(stack));
    return give_or_store_item_in_buffer(stack, self, item);
}

static int give_item_or_queue_consumer(domus_stack *stack, void *self_, const void *nothing)
{
    struct manager *self = self_;

    (void)nothing;
    if (self->left == 0)
        return domus_notice(stack, domus_sender(stack), &no_more_type, NULL);
    if (self->count == 0) {
        append_actor_to_line(&self->consumers, domus_sender(stack));
        return 0;
    }
    double item = self->items[self->first];
    self->first = (self->first + 1) % PLACES;
    self->count--;
    give_item_to_consumer(stack, self, domus_sender(stack), item);
    permit_producers_for_free_places(stack, self);
    return 0;
}

static int spawn_producers_and_consumers(domus_stack *stack, void *self_, const void *items)
{
    struct manager *self = self_;
    struct worker state = {
        .manager = domus_self(stack),
        .left = *(const uint64_t *)items,
        .start = 0.25,
    };

    self->left = state.left * PRODUCERS;
    for (uint32_t i = 0; i < PRODUCERS; i++)
        append_actor_to_line(&self->producers, stage_spawn_child_of_root(stack, &producer, &state));
    for (uint32_t i = 0; i < CONSUMERS; i++)
        (void)stage_spawn_child_of_root(stack, &consumer, &state);
    permit_producers_for_free_places(stack, self);
    return 0;
}

static int add_count_of_consumer(domus_stack *stack, void *self_, const void *count)
{
    struct manager *self = self_;

    self->sum += *(const uint64_t *)count;
    return ++self->counted == CONSUMERS ? stage_end_root_with_result(stack, self->sum) : 0;
}

static const domus_behaviour manager = {
    .name = "manager",
    .state_size = sizeof(struct manager),
    .on = (const domus_on[]){{.type = &item_type, .handle = store_item_and_queue_producer},
                             {.type = &next_type, .handle = give_item_or_queue_consumer},
                             {.type = &last_item_type, .handle = give_or_store_item_in_buffer},
                             {.type = &count_type, .handle = add_count_of_consumer},
                             {.type = &go_type, .handle = spawn_producers_and_consumers},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_bndbuffer = {.name = "bndbuffer", .root = &manager};
