/* runtime/control/dump_pools.c: a dump describes the actors of pools, beside runners that go on. */
#include "tests/runtime/pooled.h"

#include <domus/dump.h>

#include <errno.h>
#include <string.h>

static const domus_type begin_type = {.name = "begin"};
static const domus_type question_type = {.name = "question"};
static const domus_type tick_type = {.name = "tick"};
static const domus_type ball_type = {.name = "ball"};
static domus_address silent_address;
static _Atomic uint32_t begun, balls;
static _Atomic bool holds;
static char text[1 << 16];

static int keep_silent(domus_stack *stack, void *self, const void *nothing)
{
    domus_kept kept;

    atomic_fetch_add(&begun, 1);
    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent", .on = (const domus_on[]){{&question_type, keep_silent, 0}, {0}}};

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int ask(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask_within(stack, silent_address, &question_type, NULL, 100000 * DOMT_MS, hear);
}

static const domus_behaviour asking = {.name = "asking",
                                       .on = (const domus_on[]){{&begin_type, ask, 0}, {0}}};

static int hold(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&holds))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static const domus_behaviour holding = {.name = "holding",
                                        .on = (const domus_on[]){{&begin_type, hold, 0}, {0}}};

/* Wait until a dump of the actor has this in it. */
static void is_told(domus_address address, const char *part)
{
    int result = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        result = domus_dump_actor(domt_pooled.system, address, text, sizeof text);
        if (result == 0 && strstr(text, part) != NULL)
            return;
        domt_pause_ns(5 * DOMT_MS);
    }
    ck_abort_msg("no \"%s\" in (%d)\n%s", part, result, text);
}

DOMT_TEST(actors_of_pools_are_described)
{
    domt_pooled_begin("deques", 2, 1);
    atomic_store(&begun, 0);
    atomic_store(&holds, true);
    silent_address = domt_pooled_spawn(domt_pooled.pool, &silent, NULL);
    domus_address asker = domt_pooled_spawn(domt_pooled.pool, &asking, NULL);
    domus_address holder = domt_pooled_spawn(domt_pooled.pool, &holding, NULL);
    domt_notice(domt_pooled.system, asker, &begin_type, NULL);
    domt_notice(domt_pooled.system, holder, &begin_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);

    is_told(asker, "asking");
    is_told(asker, "question");
    is_told(silent_address, "silent");
    ck_assert_int_eq(domus_dump_actor(domt_pooled.system, holder, text, sizeof text), -ETIMEDOUT);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, sizeof text), 0);
    ck_assert_msg(strstr(text, "is in a handler of holding") != NULL, "%s", text);
    ck_assert_msg(strstr(text, ": scheduled, or its handler runs") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "pool work: 3 actors\n") != NULL, "%s", text);
    /* Its share has no room for all. */
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN - 1), -EINVAL);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN), 0);

    atomic_store(&holds, false);
    is_told(holder, "holding");
    ck_assert_int_eq(domus_outside_stop(domt_pooled.system, holder), 0);
    DOMT_WAIT_FOR(10, domus_dump_actor(domt_pooled.system, holder, text, sizeof text) == -ESTALE);
    domt_end(domt_pooled.system);
}

DOMT_TEST(actors_without_room_are_counted)
{
    domt_pooled_begin("rings", 1, 1);
    for (uint32_t i = 0; i < 100; i++)
        (void)domt_pooled_spawn(domt_pooled.pool, &silent, NULL);
    ck_assert_int_eq(domus_dump(domt_pooled.system, text, 2 * DOMUS_DUMP_BYTES_MIN), 0);
    const char *at = strstr(text, "pool work: 100 actors, ");
    ck_assert_msg(at != NULL && strstr(at, " of them were left out\n") != NULL, "%s", text);
    ck_assert_uint_lt(strlen(text), 2 * DOMUS_DUMP_BYTES_MIN);
    domt_end(domt_pooled.system);
}

/* --- beside actors that run --- */

typedef struct player {
    uint32_t id;
    domus_address child; /* the last one that it has spawned */
} player;

#define PLAYERS 8u
static domus_address players[PLAYERS];

static int on_ball(domus_stack *stack, void *self, const void *nothing)
{
    player *mine = self;

    atomic_fetch_add(&balls, 1);
    if (mine->child.house != NULL)
        (void)domus_stop(stack, mine->child);
    if (domus_spawn(stack, &silent, NULL, &mine->child) != 0)
        return 0; /* the system stops */
    return domus_notice(stack, players[(mine->id + 1) % PLAYERS], &ball_type, NULL);
}

static int on_tick(domus_stack *stack, void *self, const void *nothing)
{
    return 0;
}

static int mount_player(domus_stack *stack, void *self)
{
    return domus_every(stack, DOMT_MS, &tick_type, NULL, NULL);
}

static const domus_behaviour playing = {
    .name = "playing",
    .state_size = sizeof(player),
    .on_mount = mount_player,
    .on = (const domus_on[]){{&ball_type, on_ball, 0}, {&tick_type, on_tick, 0}, {0}}};

DOMT_TEST(dumps_do_not_disturb_actors_that_run)
{
    domt_pooled_begin("rings", 2, 1);
    atomic_store(&balls, 0);
    for (uint32_t i = 0; i < PLAYERS; i++)
        players[i] = domt_pooled_spawn(domt_pooled.pool, &playing, &(player){i, {NULL, 0}});
    for (uint32_t i = 0; i < 3; i++)
        domt_notice(domt_pooled.system, players[i], &ball_type, NULL);
    uint64_t until_ns = domt_now_ns() + DOMT_SCALE(1000, 300) * DOMT_MS;
    uint32_t dumps = 0, before = 0;
    while (domt_now_ns() < until_ns || dumps < 10) {
        ck_assert_int_eq(domus_dump(domt_pooled.system, text, sizeof text), 0);
        ck_assert_ptr_nonnull(strstr(text, "pool work: "));
        int result =
            domus_dump_actor(domt_pooled.system, players[dumps % PLAYERS], text, sizeof text);
        ck_assert(result == 0 || result == -ETIMEDOUT);
        if (++dumps % 10 == 0) { /* the balls are still in play */
            DOMT_WAIT_FOR(10, atomic_load(&balls) > before);
            before = atomic_load(&balls);
        }
    }
    domt_end(domt_pooled.system);
}

DOMT_SUITE(60)
