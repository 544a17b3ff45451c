/* pingpong: two actors and one ball. One message is in flight at any time. */
#include "bench/savina/rows.h"

static const domus_type ball_type = {.name = "ball"};
static const domus_type over_type = {.name = "over", .size = sizeof(uint64_t)};

static int send_ball_back(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    return domus_notice(stack, domus_sender(stack), &ball_type, NULL);
}

static const domus_behaviour pong = {
    .name = "pong",
    .on = (const domus_on[]){{.type = &ball_type, .handle = send_ball_back}, {.type = NULL}},
};

struct ping {
    domus_address umpire;
    domus_address pong;
    uint64_t balls;
    uint64_t returned;
};

static int start_ping_player(domus_stack *stack, void *self_, const void *balls)
{
    struct ping *self = self_;

    self->balls = *(const uint64_t *)balls;
    return domus_notice(stack, self->pong, &ball_type, NULL);
}

static int send_ball_again_or_end_game(domus_stack *stack, void *self_, const void *nothing)
{
    struct ping *self = self_;

    (void)nothing;
    self->returned++;
    if (self->returned < self->balls)
        return domus_notice(stack, self->pong, &ball_type, NULL);
    return domus_notice(stack, self->umpire, &over_type, &self->returned);
}

static const domus_behaviour ping = {
    .name = "ping",
    .state_size = sizeof(struct ping),
    .on = (const domus_on[]){{.type = &ball_type, .handle = send_ball_again_or_end_game},
                             {.type = &go_type, .handle = start_ping_player},
                             {.type = NULL}},
};

static int start_umpire_and_players(domus_stack *stack, void *self, const void *balls)
{
    struct ping state = {
        .umpire = domus_self(stack),
        .pong = stage_spawn_child_of_root(stack, &pong, NULL),
    };

    (void)self;
    return domus_notice(stack, stage_spawn_child_of_root(stack, &ping, &state), &go_type, balls);
}

static int end_game_of_pingpong(domus_stack *stack, void *self, const void *returned)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)returned);
}

static const domus_behaviour umpire = {
    .name = "umpire",
    .on = (const domus_on[]){{.type = &go_type, .handle = start_umpire_and_players},
                             {.type = &over_type, .handle = end_game_of_pingpong},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_pingpong = {.name = "pingpong", .root = &umpire};
