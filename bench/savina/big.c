/* big: 120 actors, each of which pings another one, which is drawn anew each time, and waits for
 * its pong.
 *
 * All actors read one table of addresses. The root has written it before it tells the first actor
 * to begin, and the table stays as long as the actors live. */
#include "bench/savina/rows.h"

#define ACTORS 120u

static const domus_type begin_type = {.name = "begin"};
static const domus_type ping_type = {.name = "ping"};
static const domus_type pong_type = {.name = "pong"};
static const domus_type pongs_type = {.name = "pongs", .size = sizeof(uint64_t)};

struct player {
    const struct hub *hub;
    uint64_t pongs;
    uint32_t index;
    uint32_t seed;
};

struct hub {
    domus_address self;
    domus_address players[ACTORS];
    uint64_t pings; /* number of pings that each actor sends */
    uint64_t sum;
    uint32_t ready;
};

static int answer_ping_with_pong(domus_stack *stack, void *self, const void *nothing)
{
    (void)self, (void)nothing;
    return domus_notice(stack, domus_sender(stack), &pong_type, NULL);
}

static int ping_another_player(domus_stack *stack, struct player *self)
{
    uint32_t other = stage_draw_random_number(&self->seed) % (ACTORS - 1);

    if (other >= self->index)
        other++;
    return domus_notice(stack, self->hub->players[other], &ping_type, NULL);
}

static int ping_again_or_report_pongs(domus_stack *stack, void *self_, const void *nothing)
{
    struct player *self = self_;

    (void)nothing;
    if (++self->pongs < self->hub->pings)
        return ping_another_player(stack, self);
    return domus_notice(stack, self->hub->self, &pongs_type, &self->pongs);
}

static int send_first_ping_of_player(domus_stack *stack, void *self, const void *nothing)
{
    (void)nothing;
    return ping_another_player(stack, self);
}

static const domus_behaviour player = {
    .name = "player",
    .state_size = sizeof(struct player),
    .on = (const domus_on[]){{.type = &ping_type, .handle = answer_ping_with_pong},
                             {.type = &pong_type, .handle = ping_again_or_report_pongs},
                             {.type = &begin_type, .handle = send_first_ping_of_player},
                             {.type = NULL}},
};

static int start_hub_and_players(domus_stack *stack, void *self_, const void *pings)
{
    struct hub *self = self_;

    self->self = domus_self(stack);
    self->pings = *(const uint64_t *)pings;
    for (uint32_t i = 0; i < ACTORS; i++) {
        struct player state = {.hub = self, .index = i, .seed = i + 1};
        self->players[i] = stage_spawn_child_of_root(stack, &player, &state);
    }
    for (uint32_t i = 0; i < ACTORS; i++)
        stage_send_notice(stack, self->players[i], &begin_type, NULL);
    return 0;
}

static int add_pongs_and_end_row_if_last(domus_stack *stack, void *self_, const void *pongs)
{
    struct hub *self = self_;

    self->sum += *(const uint64_t *)pongs;
    return ++self->ready == ACTORS ? stage_end_root_with_result(stack, self->sum) : 0;
}

static const domus_behaviour hub = {
    .name = "hub",
    .state_size = sizeof(struct hub),
    .on = (const domus_on[]){{.type = &go_type, .handle = start_hub_and_players},
                             {.type = &pongs_type, .handle = add_pongs_and_end_row_if_last},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

const struct stage_row row_big = {.name = "big", .root = &hub};
