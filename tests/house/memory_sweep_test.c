/* Each allocation of a scenario fails once, and then all from it on, until the scenario passes
 * without a failure.
 *
 * Whatever fails, what was owned is handled or released exactly once, nothing stays in use, and the
 * world can be ended. The address sanitizer's leak check watches the heap. */
#include "base/memory.h"
#include "house/dispatch/dispatch.h"
#include "house/family/life.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <string.h>

#define MS         UINT64_C(1000000)
#define SWEEPS_MAX 1000

static domt_world world;
static domus_address server; /* an actor on home 1 */

/* Counts of one scenario: what verbs took over, and how it was handled, released or refused. */
static struct {
    unsigned given;
    unsigned handled;
    unsigned released;
    unsigned failed; /* verbs that returned an error, and answers with an error */
    unsigned ended;  /* conversations and ticks that came to their end */
} books;

static void count_payload_release(void *payload)
{
    ck_assert_mem_eq(payload, "owned...", 8);
    books.released++;
}

static const domus_type small = {.name = "small", .size = 8, .release = count_payload_release};
static const domus_type middle = {.name = "middle", .size = 700, .release = count_payload_release};
static const domus_type large = {.name = "large", .size = 60000, .release = count_payload_release};
static const domus_type tick = {.name = "tick", .size = 8};
static char bytes[60000] = "owned...";

static int count_result_of_verb(int result)
{
    books.given += result == 0 || result == DOMUS_PARKED;
    books.failed += result < 0;
    return result;
}

/* Serve an ask of any size with an answer that is larger. */
static int reply_with_larger_payload(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_mem_eq(payload, "owned...", 8);
    books.handled++;
    if (domus_sender(stack).house == NULL)
        return 0;
    return count_result_of_verb(domus_reply(stack, &large, bytes));
}

static const domus_behaviour serving = {
    .name = "serving",
    .state_size = 5000,
    .on = (const domus_on[]){{&small, reply_with_larger_payload, 0},
                             {&middle, reply_with_larger_payload, 32},
                             {&large, reply_with_larger_payload, DOMUS_FRAME_MAX},
                             {0}}};

static int count_end_of_conversation(domus_stack *stack, void *self, const domus_answer *answer)
{
    books.failed += answer->error != 0;
    books.handled += answer->error == 0;
    books.ended++;
    return 0;
}

static int count_answer_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    books.failed += answer->error != 0;
    books.handled += answer->error == 0;
    return count_result_of_verb(domus_ask(stack, server, &large, bytes, count_end_of_conversation));
}

/* Begin a conversation that asks the server twice, one ask after the other. */
static int begin_two_asks_in_turn(domus_stack *stack, void *self, const void *payload)
{
    books.handled++;
    return count_result_of_verb(
        domus_ask(stack, server, &middle, bytes, count_answer_and_ask_again));
}

static int spawn_child_on_tick(domus_stack *stack, void *self, const void *payload)
{
    domus_address child;

    books.failed += domus_spawn(stack, &serving, NULL, &child) != 0;
    books.ended++;
    return 0;
}

static int arm_single_and_periodic_timers(domus_stack *stack, void *self, const void *payload)
{
    books.handled++;
    books.failed += domus_after(stack, MS, &tick, "ticking", NULL) != 0;
    books.failed += domus_every(stack, MS, &tick, "ticking", NULL) != 0;
    return count_result_of_verb(domus_ask(stack, server, &small, bytes, count_end_of_conversation));
}

static const domus_behaviour client = {
    .name = "client",
    .on = (const domus_on[]){{&small, begin_two_asks_in_turn, 300},
                             {&middle, arm_single_and_periodic_timers, 0},
                             {&tick, spawn_child_on_tick, 100},
                             {0}}};

static domus_address spawn_or_count_failure(uint32_t home, const domus_behaviour *behaviour)
{
    domus_address address = {NULL, 0};

    books.failed +=
        domi_house_spawn_without_parent(domt_outside_manager(&world), world.managers[home],
                                        behaviour, NULL, &address) != 0;
    return address;
}

/* Run the scenario once. Returns true when no allocation failed in it. */
static bool run_scenario_without_failure(void)
{
    memset(&books, 0, sizeof books);
    domt_world_init(&world, 2);
    if (domt_world_start(&world) != 0)
        return false;
    server = spawn_or_count_failure(1, &serving);
    domus_address one = spawn_or_count_failure(0, &client);
    (void)count_result_of_verb(
        domt_send_notice(domt_outside_manager(&world), server, &large, bytes));
    for (int i = 0; i < 3; i++) {
        (void)count_result_of_verb(domt_send_notice(world.managers[i], one, &small, bytes));
        (void)count_result_of_verb(domt_send_notice(world.managers[i], one, &middle, bytes));
    }
    domt_settle_world(&world);
    domt_pass_time(&world, 3 * MS);
    books.failed += domi_house_ask_to_stop(domt_outside_manager(&world), one) != 0;
    domt_settle_world(&world);
    ck_assert_uint_eq(books.given, books.released);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&world), 0);
    ck_assert_uint_eq(world.managers[0]->timing.timers, 0);
    /* a dead letter here: a row's frame got no memory */
    books.failed += DOMT_SUM(&world, dead_letters) != 0;
    domt_world_end(&world);
    ck_assert_uint_eq(books.given, books.released);
    return books.failed == 0;
}

static void sweep_allocations(int stay)
{
    int count = 0;
    bool clean;

    do {
        domi_memory_fail_allocation_after(count++, stay);
        clean = run_scenario_without_failure();
        ck_assert_int_lt(count, SWEEPS_MAX);
    } while (!clean);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_int_gt(count, 20); /* the sweep has let more than 20 allocations fail */
    ck_assert_uint_eq(books.released, books.handled);
    /* the asks of both rows and all ticks have ended */
    ck_assert_uint_eq(books.ended, 3 + 3 + 3 + 3 * 3);
    ck_assert(run_scenario_without_failure());
}

DOMT_TEST(any_one_allocation_may_fail)
{
    sweep_allocations(0);
}

DOMT_TEST(all_allocations_may_fail_from_one_on)
{
    sweep_allocations(1);
}

DOMT_SUITE(60)
