/* The actors of the loads (tests/runtime/load.h): players that pass messages on, rings of ready or
 * waiting actors, and floods. */
#include "tests/runtime/load.h"

const char *const domt_load_names[DOMT_LOADS] = {
    [DOMT_LOAD_NONE] = "nothing",
    [DOMT_FLOOD_OF_NOTICES] = "a flood of notices",
    [DOMT_FLOOD_OF_ASKS] = "a flood of asks",
    [DOMT_STATE_PING] = "two state actors that answer each other",
    [DOMT_CHANNELS_PING] = "two channels actors that answer each other",
    [DOMT_CHANNELS_RING] = "a ring of channels actors",
    [DOMT_STATE_SELF] = "a state actor that sends to itself",
    [DOMT_CHANNELS_SELF] = "a channels actor that sends to itself",
    [DOMT_MANY_READY] = "very many ready ones",
    [DOMT_MANY_WAITING] = "very many that wait, too",
};

_Atomic uint64_t domt_load_handled;
_Atomic uint64_t domt_load_ticks;
void (*domt_load_takes)(void);

static _Atomic bool ended;

static const domus_type ball_type = {.name = "ball"};
static const domus_type next_type = {.name = "next", .size = sizeof(domus_address)};
static const domus_type tick_type = {.name = "tick"};

/* Count a handled message, and let it take its time. Returns whether the load goes on. */
static bool count_handled_message(void)
{
    atomic_fetch_add_explicit(&domt_load_handled, 1, memory_order_relaxed);
    if (domt_load_takes != NULL)
        domt_load_takes();
    return !atomic_load_explicit(&ended, memory_order_relaxed);
}

/* --- players: each passes on what it gets ----------------------------------------------------- */

static int on_ball_pass_on(domus_stack *stack, void *self, const void *nothing)
{
    return count_handled_message() ? domus_notice(stack, *(domus_address *)self, &ball_type, NULL)
                                   : 0;
}

static int on_next_set_link_and_send_balls(domus_stack *stack, void *self, const void *next)
{
    *(domus_address *)self = *(const domus_address *)next;
    for (uint32_t i = 0; i < DOMT_LOAD_BALLS; i++)
        ck_assert_int_eq(domus_notice(stack, domus_self(stack), &ball_type, NULL), 0);
    return 0;
}

#define PLAYER(what)                                                                               \
    {                                                                                              \
        .name = "player", .kind = (what), .state_size = sizeof(domus_address),                     \
        .on = (const domus_on[]){{&ball_type, on_ball_pass_on, 0},                                 \
                                 {&next_type, on_next_set_link_and_send_balls, 0},                 \
                                 {0}},                                                             \
    }

static const domus_behaviour players[] = {
    [DOMUS_STATE] = PLAYER(DOMUS_STATE),
    [DOMUS_CHANNELS] = PLAYER(DOMUS_CHANNELS),
};

static void spawn_circle_of_players(domus_system *system, domus_kind kind, uint32_t length)
{
    domus_address first = domt_spawn(system, 0, &players[kind], NULL);
    domus_address next = first;

    for (uint32_t i = 1; i < length; i++) {
        domus_address one = domt_spawn(system, 0, &players[kind], NULL);
        domt_send_notice(system, one, &next_type, &next);
        next = one;
    }
    domt_send_notice(system, first, &next_type, &next);
}

/* --- many in a ring, each of which begins with one ball --------------------------------------- */

static int on_next_set_link(domus_stack *stack, void *self, const void *next)
{
    *(domus_address *)self = *(const domus_address *)next;
    return 0;
}

static int on_mount_send_first_ball(domus_stack *stack, void *self)
{
    return domus_notice(stack, domus_self(stack), &ball_type, NULL);
}

/* Raise a barrier that never ends, so that the actor answers no ask. */
static int on_mount_fall_silent(domus_stack *stack, void *self)
{
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, 3600 * 1000 * DOMT_MS, domt_ignore_answer);
}

const domus_behaviour domt_silent = {.name = "silent", .on_mount = on_mount_fall_silent};

/* Number of waiting actors that ask the same silent actor. */
#define ASKS_EACH 500u

static domus_address silent; /* the silent actor that the next waiting actor asks */
static uint32_t asked;

static int on_mount_ask_silent_actor(domus_stack *stack, void *self)
{
    (void)on_mount_send_first_ball(stack, self);
    if (asked++ % ASKS_EACH == 0)
        ck_assert_int_eq(domus_spawn(stack, &domt_silent, NULL, &silent), 0);
    return domus_ask(stack, silent, &ball_type, NULL, domt_ignore_answer);
}

#define ONE_OF_MANY(mount)                                                                         \
    {                                                                                              \
        .name = "one of many", .state_size = sizeof(domus_address),                                \
        .on = (const domus_on[]){{&ball_type, on_ball_pass_on, 0},                                 \
                                 {&next_type, on_next_set_link, 0},                                \
                                 {0}},                                                             \
        .on_mount = (mount),                                                                       \
    }

static const domus_behaviour ready = ONE_OF_MANY(on_mount_send_first_ball);
static const domus_behaviour waiting = ONE_OF_MANY(on_mount_ask_silent_actor);

/* Make a ring of very many actors. Each passes its ball on to the actor that was made before it and
 * has just had its turn, so each run handles one ball. */
static void spawn_many_in_ring(domus_system *system, const domus_behaviour *behaviour)
{
    domus_address first = domt_spawn(system, 0, behaviour, NULL);
    domus_address last = first;

    for (uint32_t i = 1; i < DOMT_MANY; i++)
        last = domt_spawn(system, 0, behaviour, &last);
    domt_send_notice(system, first, &next_type, &last);
}

/* --- floods ----------------------------------------------------------------------------------- */

static int on_ball_count_and_reply(domus_stack *stack, void *self, const void *nothing)
{
    (void)count_handled_message();
    /* the reply fails with -EINVAL if the ball is a notice */
    (void)domus_reply(stack, &ball_type, NULL);
    return 0;
}

static int on_tick_count(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add_explicit(&domt_load_ticks, 1, memory_order_relaxed);
    return 0;
}

static int on_mount_begin_ticks(domus_stack *stack, void *self)
{
    return domus_every(stack, 2 * DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour flooded = {
    .name = "flooded",
    .on = (const domus_on[]){{&ball_type, on_ball_count_and_reply, 0},
                             {&tick_type, on_tick_count, 0},
                             {0}},
    .on_mount = on_mount_begin_ticks};

/* Send twice as many notices as a run of the flooded actor handles; most of them are refused. */
static int on_ball_send_many_notices(domus_stack *stack, void *self, const void *nothing)
{
    if (!count_handled_message())
        return 0;
    for (uint32_t i = 0; i < 128; i++)
        (void)domus_notice(stack, *(domus_address *)self, &ball_type, NULL);
    return domus_notice(stack, domus_self(stack), &ball_type, NULL);
}

static int on_next_begin_flood(domus_stack *stack, void *self, const void *next)
{
    *(domus_address *)self = *(const domus_address *)next;
    return domus_notice(stack, domus_self(stack), &ball_type, NULL);
}

static const domus_behaviour flooder = {
    .name = "flooder",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){
        {&ball_type, on_ball_send_many_notices, 0}, {&next_type, on_next_begin_flood, 0}, {0}}};

/* Ask until 256 asks (as many as four runs handle) are under way, and again after each answer. */
static int ask_until_256_pending(domus_stack *stack, void *self, const domus_answer *answer)
{
    bool more = count_handled_message();

    while (more && domus_pending(stack) < 256)
        ck_assert_int_eq(domus_ask_add(stack, *(domus_address *)self, &ball_type, NULL, 0, 0), 0);
    return domus_pending(stack) != 0 ? domus_wait_first(stack, ask_until_256_pending) : 0;
}

static int on_next_begin_asking(domus_stack *stack, void *self, const void *next)
{
    *(domus_address *)self = *(const domus_address *)next;
    return ask_until_256_pending(stack, self, NULL);
}

static const domus_behaviour asker = {
    .name = "asker",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{&next_type, on_next_begin_asking, 0}, {0}}};

/* --- all of them ------------------------------------------------------------------------------ */

void domt_load_spawn_actors_and_begin(domus_system *system, domt_load load)
{
    bool asks = load == DOMT_FLOOD_OF_ASKS;

    atomic_store(&ended, false);
    atomic_store(&domt_load_handled, 0);
    atomic_store(&domt_load_ticks, 0);
    switch (load) {
    case DOMT_FLOOD_OF_NOTICES:
    case DOMT_FLOOD_OF_ASKS: {
        domus_address sink = domt_spawn(system, 0, &flooded, NULL);
        domus_address source = domt_spawn(system, 0, asks ? &asker : &flooder, NULL);
        domt_send_notice(system, source, &next_type, &sink);
        break;
    }
    case DOMT_STATE_PING:
        spawn_circle_of_players(system, DOMUS_STATE, 2);
        break;
    case DOMT_CHANNELS_PING:
        spawn_circle_of_players(system, DOMUS_CHANNELS, 2);
        break;
    case DOMT_CHANNELS_RING:
        spawn_circle_of_players(system, DOMUS_CHANNELS, DOMT_RING_LENGTH);
        break;
    case DOMT_STATE_SELF:
        spawn_circle_of_players(system, DOMUS_STATE, 1);
        break;
    case DOMT_CHANNELS_SELF:
        spawn_circle_of_players(system, DOMUS_CHANNELS, 1);
        break;
    case DOMT_MANY_READY:
    case DOMT_MANY_WAITING:
        spawn_many_in_ring(system, load == DOMT_MANY_READY ? &ready : &waiting);
        break;
    default:
        break;
    }
}

void domt_load_end(void)
{
    atomic_store(&ended, true);
}

uint32_t domt_load_count_state_houses(domt_load load)
{
    static const uint32_t houses[DOMT_LOADS] = {
        [DOMT_FLOOD_OF_NOTICES] = 2, [DOMT_FLOOD_OF_ASKS] = 2,      [DOMT_STATE_PING] = 2,
        [DOMT_STATE_SELF] = 1,       [DOMT_MANY_READY] = DOMT_MANY, [DOMT_MANY_WAITING] = DOMT_MANY,
    };

    return houses[load];
}

uint32_t domt_load_count_channels_houses(domt_load load)
{
    static const uint32_t houses[DOMT_LOADS] = {
        [DOMT_CHANNELS_PING] = 2,
        [DOMT_CHANNELS_RING] = DOMT_RING_LENGTH,
        [DOMT_CHANNELS_SELF] = 1,
    };

    return houses[load];
}
