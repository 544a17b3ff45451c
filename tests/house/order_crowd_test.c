/* Very many messages wait for an actor with an order: they are taken in the right order, and there
 * are few comparisons, also for a single message. */
#include "base/random.h"
#include "house/dispatch/dispatch.h"
#include "house/dispatch/invariants.h"
#include "house/family/life.h"
#include "house/message/order.h"
#include "tests/support/house_world.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

#define KEYS  2000u /* keys among which the key of each new message is drawn */
#define CROWD (uint32_t) DOMT_SCALE(80000, 20000)
#define MOVED (uint32_t) DOMT_SCALE(250000, 60000)

typedef struct item {
    uint32_t key;
    uint32_t number;
} item;

/* The reference: for each key a queue of the numbers of the messages that wait. Keys are taken
 * modulo RING. */
#define RING 4096u
#define ROOM 512u /* most messages of one key that wait at a time */

typedef struct queue {
    uint32_t numbers[ROOM];
    uint32_t first, behind;
} queue;

static domt_world world;
static domus_address actor;
static domi_random chance;
static queue queues[RING];
static uint32_t least;    /* no message with a smaller key waits */
static uint32_t base;     /* no new message has a smaller key */
static uint32_t numbers;  /* number of messages that were put */
static uint32_t taken;    /* number of messages that were taken */
static uint64_t compared; /* number of calls of the comparison */

static const domus_type item_type = {.name = "item", .size = sizeof(item)};

static int compare_keys_and_count(const domus_type *one_type, const void *one,
                                  const domus_type *other_type, const void *other)
{
    uint32_t key = ((const item *)one)->key;
    uint32_t other_key = ((const item *)other)->key;

    compared++;
    return key < other_key ? -1 : key > other_key;
}

static int check_message_is_next(domus_stack *stack, void *self, const void *payload)
{
    const item *it = payload;

    while (queues[least % RING].first == queues[least % RING].behind)
        least++;
    queue *from = &queues[least % RING];
    ck_assert_uint_eq(it->key, least);
    ck_assert_uint_eq(it->number, from->numbers[from->first++ % ROOM]);
    taken++;
    return 0;
}

static const domus_behaviour sorting = {
    .name = "sorting",
    .on = (const domus_on[]){{&item_type, check_message_is_next, 0}, {0}},
    .order = compare_keys_and_count};

static domi_manager *home_manager(void)
{
    return world.managers[0];
}

static void open_world(void)
{
    domt_world_init(&world, 1);
    world.config.scheduler.mailbox_max = UINT32_MAX;
    ck_assert_int_eq(domt_world_start(&world), 0);
    actor = domt_spawn(domt_outside_manager(&world), home_manager(), &sorting, NULL);
    domt_settle_world(&world);
    domi_random_init(&chance, 7);
}

static void put_message_with_random_key(void)
{
    item it = {base + (uint32_t)domi_random_below(&chance, KEYS), numbers++};
    queue *to = &queues[it.key % RING];

    ck_assert_uint_lt(to->behind - to->first, ROOM);
    to->numbers[to->behind++ % ROOM] = it.number;
    least = it.key < least ? it.key : least;
    ck_assert_int_eq(domt_send_notice(home_manager(), actor, &item_type, &it), 0);
}

static void run_house_for_messages(uint32_t messages)
{
    domi_manager_set_messages_per_run(home_manager(), messages);
    ck_assert_uint_eq(domt_run_state_queue(home_manager()), 1);
}

/* Check how many comparisons there were: on average for each of `messages`, and at most at once,
 * while `some` messages came. */
static void expect_few_comparisons(uint32_t waiting, uint64_t messages, uint64_t most,
                                   uint32_t some)
{
    double each = (double)compared / (double)messages;

    ck_assert_msg(each < 2 * log2(waiting) + 8, "%.1f comparisons for each of %u", each, waiting);
    ck_assert_msg(most <= 3 * DOMI_STRAND_MERGED + waiting / 16 + 60 * some,
                  "%llu comparisons at once", (unsigned long long)most);
}

DOMT_TEST(crowd_is_taken_in_its_order)
{
    uint64_t most = 0;

    open_world();
    for (uint32_t i = 0; i < CROWD; i++)
        put_message_with_random_key();
    run_house_for_messages(1);
    compared = 0;
    for (uint32_t i = 0; i < MOVED;) {
        uint32_t some = 1 + (uint32_t)domi_random_below(&chance, 64);
        uint64_t before = compared;
        for (uint32_t j = 0; j < some; j++)
            put_message_with_random_key();
        run_house_for_messages(some);
        most = compared - before > most ? compared - before : most;
        i += some;
        base = least > 200 ? least - 200 : 0;
        if (i % 64 == 0)
            domi_house_check_lists(home_manager(), actor.house);
    }
    expect_few_comparisons(CROWD, MOVED, most, 64);
    ck_assert_uint_eq(numbers - taken, CROWD - 1);
    ck_assert_uint_gt(actor.house->family->order->waiting.count, DOMI_STRANDS_MAX / 4);
    domi_manager_set_messages_per_run(home_manager(), 64);
    domt_settle_world(&world);
    ck_assert_uint_eq(numbers, taken);
    domt_world_end(&world);
}

/* Let `waiting` messages wait, then put and take further ones one by one, and check that there were
 * few comparisons. */
static void check_crowd_needs_few_comparisons(uint32_t waiting)
{
    uint64_t most = 0;

    open_world();
    base = least = numbers = taken = 0;
    memset(queues, 0, sizeof queues);
    for (uint32_t i = 0; i < waiting; i++)
        put_message_with_random_key();
    run_house_for_messages(1);
    put_message_with_random_key();
    compared = 0;
    for (uint32_t i = 0; i < 2 * waiting; i++) {
        uint64_t before = compared;
        put_message_with_random_key();
        run_house_for_messages(1);
        most = compared - before > most ? compared - before : most;
    }
    expect_few_comparisons(waiting, 2 * (uint64_t)waiting, most, 1);
    domt_settle_world(&world);
    domt_world_end(&world);
}

DOMT_TEST(comparisons_are_few_for_each_message_and_bounded_for_a_single_one)
{
    static const uint32_t crowds[] = {10, 100, 1000, 20000};

    for (size_t i = 0; i < sizeof crowds / sizeof crowds[0]; i++)
        check_crowd_needs_few_comparisons(crowds[i]);
}

DOMT_SUITE(120)
