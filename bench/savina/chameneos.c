/* chameneos: 100 creatures of three colours meet by twos in a mall, and take each other's
 * complement. The mall keeps the first creature until a second one comes. */
#include "bench/savina/rows.h"

#include <stdbool.h>

#define CREATURES 100u
#define COLOURS   3u

static const domus_type meet_type = {.name = "meet", .size = sizeof(uint32_t)};
static const domus_type met_type = {.name = "met", .size = sizeof(uint32_t)};
static const domus_type no_more_type = {.name = "no more"};
static const domus_type count_type = {.name = "count", .size = sizeof(uint64_t)};

struct creature {
    domus_address mall;
    uint64_t met;
    uint32_t colour; /* colour of this creature: 0, 1 or 2 */
};

/* Returns the new colour of a creature: two creatures of one colour keep it, two of different
 * colours take the third one. */
static uint32_t get_complement_of_colours(uint32_t colour, uint32_t other)
{
    return colour == other ? colour : COLOURS - colour - other;
}

static int go_to_mall_at_mount(domus_stack *stack, void *self_)
{
    struct creature *self = self_;

    return domus_notice(stack, self->mall, &meet_type, &self->colour);
}

static int change_colour_and_go_to_mall_again(domus_stack *stack, void *self_, const void *other)
{
    struct creature *self = self_;

    self->met++;
    self->colour = get_complement_of_colours(self->colour, *(const uint32_t *)other);
    return domus_notice(stack, self->mall, &meet_type, &self->colour);
}

static int report_meetings_of_creature(domus_stack *stack, void *self_, const void *nothing)
{
    struct creature *self = self_;

    (void)nothing;
    return domus_notice(stack, self->mall, &count_type, &self->met);
}

static const domus_behaviour creature = {
    .name = "creature",
    .state_size = sizeof(struct creature),
    .on = (const domus_on[]){{.type = &met_type, .handle = change_colour_and_go_to_mall_again},
                             {.type = &no_more_type, .handle = report_meetings_of_creature},
                             {.type = NULL}},
    .on_mount = go_to_mall_at_mount,
};

struct mall {
    uint64_t left; /* number of meetings that have still to take place */
    uint64_t met;
    /* number of creatures that have reported to the mall how many others they met */
    uint32_t counted;
    bool waits;
    uint32_t colour; /* colour of the creature that waits in the mall */
    domus_address first;
};

static int start_mall_and_creatures(domus_stack *stack, void *self_, const void *meetings)
{
    struct mall *self = self_;

    self->left = *(const uint64_t *)meetings;
    for (uint32_t i = 0; i < CREATURES; i++) {
        struct creature state = {.mall = domus_self(stack), .colour = i % COLOURS};
        (void)stage_spawn_child_of_root(stack, &creature, &state);
    }
    return 0;
}

static int pair_creature_or_let_it_wait(domus_stack *stack, void *self_, const void *colour)
{
    struct mall *self = self_;

    if (self->left == 0)
        return domus_notice(stack, domus_sender(stack), &no_more_type, NULL);
    if (!self->waits) {
        self->waits = true;
        self->first = domus_sender(stack);
        self->colour = *(const uint32_t *)colour;
        return 0;
    }
    self->waits = false;
    self->left--;
    stage_send_notice(stack, self->first, &met_type, colour);
    return domus_notice(stack, domus_sender(stack), &met_type, &self->colour);
}

static int add_count_of_creature(domus_stack *stack, void *self_, const void *met)
{
    struct mall *self = self_;

    self->met += *(const uint64_t *)met;
    return ++self->counted == CREATURES ? stage_end_root_with_result(stack, self->met) : 0;
}

static const domus_behaviour mall = {
    .name = "mall",
    .state_size = sizeof(struct mall),
    .on = (const domus_on[]){{.type = &meet_type, .handle = pair_creature_or_let_it_wait},
                             {.type = &count_type, .handle = add_count_of_creature},
                             {.type = &go_type, .handle = start_mall_and_creatures},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_chameneos = {.name = "chameneos", .root = &mall};
