/* The world of the tests of routers: routers, workers that count their messages, and agents on two
 * homes that spawn and send. */
#ifndef DOMT_WORKERS_H
#define DOMT_WORKERS_H

#include "house/directory/name_table.h"
#include "house/directory/router.h"
#include "house/family/life.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define ROUTEES_MAX 64u

static domt_world world;
static domi_routers routers;
static domi_names names;
static domus_address agents[2]; /* an agent on each home */
static domus_address router;
static domus_address routees[ROUTEES_MAX];

/* --- a worker counts what it gets ------------------------------------------------------------- */

static uint64_t got[ROUTEES_MAX]; /* number of messages that each routee has got */
static uint32_t stopped;
static bool slow; /* true: routees keep questions instead of an answer */

static const domus_type work = {.name = "work", .size = sizeof(uint64_t)};
static const domus_type question = {.name = "question", .size = sizeof(uint64_t)};

static inline uint32_t index_of_routee(domus_address who)
{
    uint32_t i = 0;

    while (i < ROUTEES_MAX && routees[i].house != who.house)
        i++;
    ck_assert_uint_lt(i, ROUTEES_MAX);
    return i;
}

static inline int on_work_count_message(domus_stack *stack, void *self, const void *payload)
{
    got[index_of_routee(domus_self(stack))]++;
    return 0;
}

static inline int expect_cancel_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, -ECANCELED);
    return 0;
}

static inline int on_question_reply_or_sleep(domus_stack *stack, void *self, const void *payload)
{
    got[index_of_routee(domus_self(stack))]++;
    if (slow)
        return domus_sleep(stack, UINT64_C(1000000000), expect_cancel_of_sleep);
    return domus_reply(stack, &work, payload);
}

static inline void on_stop_count_worker(domus_stack *stack, void *self)
{
    stopped++;
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = 8,
    .on = (const domus_on[]){{&work, on_work_count_message, 0},
                             {&question, on_question_reply_or_sleep, 0},
                             {0}},
    .on_stop = on_stop_count_worker};

/* --- the world -------------------------------------------------------------------------------- */

static inline void open_workers(uint32_t max)
{
    static const uint64_t key[2] = {1, 2};

    memset(got, 0, sizeof got);
    stopped = 0;
    slow = false;
    domt_world_init(&world, 2);
    world.config.scheduler.mailbox_max = 16;
    ck_assert_int_eq(domt_world_start(&world), 0);
    domi_routers_init(&routers, max, ROUTEES_MAX);
    ck_assert_int_eq(domi_names_init(&names, 16, key), 0);
    for (uint32_t i = 0; i < 3; i++) {
        world.managers[i]->directory.routers = &routers;
        world.managers[i]->directory.names = &names;
    }
    for (uint32_t i = 0; i < 2; i++)
        agents[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &domt_agent, NULL);
    domt_settle_world(&world);
}

/* Begin with mailboxes that take all messages a test sends, so that nothing is refused. */
static inline void open_workers_with_large_mailboxes(uint32_t max)
{
    open_workers(max);
    world.managers[0]->limits.mailbox_max = world.managers[1]->limits.mailbox_max = 1000;
}

static inline void close_workers(void)
{
    domt_world_end(&world);
    domi_routers_fini(&routers);
    domi_names_fini(&names);
}

static const domus_behaviour *behaviour = &worker;
static struct {
    uint32_t count;
    domus_routing routing;
    domus_spawn_options options;
    int result;
} wish;

static inline int spawn_router_as_wished(domus_stack *stack, void *context)
{
    wish.result =
        domus_spawn_many(stack, behaviour, NULL, wish.count, &wish.routing, &wish.options, &router);
    if (wish.result == 0)
        ck_assert_uint_eq(domus_routees(stack, router, routees, ROUTEES_MAX), wish.count);
    return 0;
}

static inline void spawn_router_with_routees(uint32_t count, domus_route route)
{
    wish.count = count;
    wish.routing.route = route;
    memset(&wish.options, 0, sizeof wish.options);
    domt_run_as_actor(&world, agents[0], spawn_router_as_wished, NULL);
    ck_assert_int_eq(wish.result, 0);
}

static int sent;

static inline int send_number_to_router(domus_stack *stack, void *number_)
{
    sent = domus_notice(stack, router, &work, &(uint64_t){(uintptr_t)number_});
    return 0;
}

static inline int send_100_numbers_to_router(domus_stack *stack, void *context)
{
    for (uintptr_t i = 0; i < 100; i++) {
        (void)send_number_to_router(stack, (void *)i);
        ck_assert_int_eq(sent, (int)(intptr_t)context);
    }
    return 0;
}

static inline uint64_t sum_of_messages(void)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < ROUTEES_MAX; i++)
        sum += got[i];
    return sum;
}

static inline void stop_actor(domus_address who)
{
    domt_stop_actor_and_settle(&world, domt_outside_manager(&world), who);
}

/* Put a number to the router from a thread that handles nothing meanwhile. Returns the result of
 * the put. */
static inline int put_number_to_router(domi_manager *from, uint64_t number)
{
    return domt_send_notice(from, router, &work, &number);
}

#endif
