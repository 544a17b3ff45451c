/* A kept ask ends at its deadline, because nobody waits for its answer any more. */
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "tests/house/asking.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address actors[2];

/* The answers that the asker, actor 0, has got. */
static unsigned resumed;
static int errors[8];

static const domus_type question = {.name = "question", .size = sizeof(domt_call)};
static const domus_type done_type = {.name = "done", .size = 8, .release = domt_release_reply};

static int take_call(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    return call->function(stack, call->context);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){{&question, take_call, 0},
                             {&domt_call_type, take_call, 0},
                             {NULL, NULL, 0}},
};

static void open_world(void)
{
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i < 2; i++)
        actors[i] = domt_spawn(domt_outside(&world), world.managers[i], &talking, NULL);
    domt_settle(&world);
}

static void close_world(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(domi_house_count_parked(actors[i].house), 0);
        ck_assert_uint_eq(world.managers[i]->timing.deadlines.count, 0);
    }
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

static int reply_at_once(domus_stack *stack, void *context)
{
    return domus_reply(stack, &done_type, "replied");
}

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    errors[resumed++] = answer->error;
    return 0;
}

/* An ask of actor 1; 0: no time-out. */
typedef struct order {
    uint64_t timeout_ns;
    domt_call call;
} order;

static int ask(domus_stack *stack, void *order_)
{
    const order *now = order_;

    return domus_ask_within(stack, actors[1], &question, &now->call, now->timeout_ns, hear);
}

/* The asker asks now; no actor answers yet. */
static void begin(const order *now)
{
    domt_send(world.managers[0], actors[0], ask, (void *)(uintptr_t)now);
    (void)domt_run_state(world.managers[0]);
}

static domus_kept kept;

static int keep(domus_stack *stack, void *context)
{
    return domus_keep(stack, &kept);
}

static int answer_kept(domus_stack *stack, void *error)
{
    ck_assert_int_eq(domus_kept_reply(stack, kept, &done_type, "replied"), *(const int *)error);
    ck_assert_int_eq(domus_kept_reply(stack, kept, &done_type, "replied"), -ENOENT);
    return 0;
}

DOMT_TEST(kept_ask_ends_at_its_deadline)
{
    static const int gone = -ENOENT;
    const order now = {10 * MS, {keep, NULL}};

    open_world();
    begin(&now);
    domt_pass(&world, 12 * MS);
    ck_assert_int_eq(errors[0], -ETIMEDOUT);
    ck_assert_uint_eq(domi_house_count_parked(actors[1].house), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 1);
    domt_do(&world, actors[1], answer_kept, (void *)(uintptr_t)&gone);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 0);
    ck_assert_uint_eq(domt_reply_releases, 0); /* the caller still owns it */
    close_world();
}

DOMT_TEST(kept_ask_that_is_answered_in_time_takes_its_time_out_back)
{
    static const int taken = 0;
    const order now = {10 * MS, {keep, NULL}};

    open_world();
    begin(&now);
    domt_pass(&world, 5 * MS);
    ck_assert_uint_eq(world.managers[1]->timing.deadlines.count, 1);
    domt_do(&world, actors[1], answer_kept, (void *)(uintptr_t)&taken);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_int_eq(errors[0], 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 0);
    close_world();
}

DOMT_TEST(kept_asks_that_have_expired_do_not_make_their_actor_deaf)
{
    const order wait = {10 * MS, {keep, NULL}};
    const order now = {0, {reply_at_once, NULL}};

    open_world();
    world.managers[1]->limits.conversations_max = 2;
    begin(&wait);
    begin(&wait);
    domt_settle(&world);
    begin(&now);
    domt_settle(&world);
    ck_assert_uint_eq(resumed, 0); /* both places are taken */
    domt_pass(&world, 12 * MS);
    ck_assert_uint_eq(resumed, 3);
    ck_assert_int_eq(errors[0] + errors[1] + errors[2], -2 * ETIMEDOUT);
    close_world();
}

DOMT_SUITE(60)
