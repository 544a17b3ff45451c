/* A kind of grains in a world whose homes a test steps; tests/house/grains.h tells more. */
#include "tests/house/grains.h"

#include "house/dispatch/dispatch.h"
#include "house/dispatch/manage.h"

#include <domus/receive.h>

#include <stdio.h>
#include <string.h>

domt_grain_books domt_books;
domt_world domt_grain_world;
domi_grains domt_all_grains;
domus_grains domt_carts;
domus_address domt_grain_agents[2];

const domus_type domt_number = {
    .name = "number", .size = sizeof(uint32_t), .release = domt_count_release};
const domus_type domt_failing = {.name = "failing", .size = sizeof(uint32_t)};
const domus_type domt_aside = {.name = "aside", .size = sizeof(uint32_t)};
const domus_type domt_which = {.name = "question", .size = sizeof(uint32_t)};
const domus_type domt_slow = {.name = "slow", .size = sizeof(uint32_t)};
const domus_type domt_keeping = {.name = "keeping", .size = sizeof(uint32_t)};

typedef struct cart {
    uint32_t life;
    bool has_aside;
} cart;

static void record_number_of_notice(const cart *mine, uint32_t number)
{
    ck_assert_uint_lt(domt_books.handled, DOMT_HANDLED_MAX);
    domt_books.numbers[domt_books.handled] = number;
    domt_books.lives[domt_books.handled++] = mine->life;
}

static int on_number_record_and_unstash(domus_stack *stack, void *self, const void *number)
{
    cart *mine = self;

    if (mine->has_aside)
        domus_unstash(stack);
    mine->has_aside = false;
    record_number_of_notice(mine, *(const uint32_t *)number);
    return 0;
}

static int on_failing_record_and_fail(domus_stack *stack, void *self, const void *number)
{
    record_number_of_notice(self, *(const uint32_t *)number);
    return -EIO;
}

/* Stash the message in the first life; each later life handles it. */
static int on_aside_stash_in_first_life(domus_stack *stack, void *self, const void *number)
{
    cart *mine = self;

    if (mine->life > 1) {
        record_number_of_notice(mine, *(const uint32_t *)number);
        return 0;
    }
    mine->has_aside = true;
    return domus_stash(stack);
}

static int on_question_reply_with_life(domus_stack *stack, void *self, const void *nothing)
{
    const cart *mine = self;

    return domus_reply(stack, &domt_which, &mine->life);
}

static int reply_with_life_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    return on_question_reply_with_life(stack, self, NULL);
}

static int on_slow_sleep_then_reply(domus_stack *stack, void *self, const void *nothing)
{
    return domus_sleep(stack, 100 * DOMT_GRAIN_MS, reply_with_life_after_sleep);
}

static int on_keeping_keep_ask(domus_stack *stack, void *self, const void *nothing)
{
    domus_kept kept;

    return domus_keep(stack, &kept);
}

static int fail_mount_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domt_books.mount_later;
}

static int on_mount_of_cart(domus_stack *stack, void *self)
{
    ck_assert_ptr_nonnull(domus_grain_key(stack));
    snprintf(domt_books.key, sizeof domt_books.key, "%s", domus_grain_key(stack));
    if (domt_books.mount_later == 0)
        return domt_books.mount_result;
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_sleep(stack, DOMT_GRAIN_MS, fail_mount_after_sleep);
}

static void on_stop_of_cart(domus_stack *stack, void *self)
{
    const cart *mine = self;

    ck_assert_ptr_nonnull(domus_grain_key(stack));
    ck_assert_uint_ge(mine->life, 1);
    domt_books.stopped++;
    domt_books.living--;
}

const domus_behaviour domt_cart = {
    .name = "cart",
    .state_size = sizeof(cart),
    .on_mount = on_mount_of_cart,
    .on_stop = on_stop_of_cart,
    .on =
        (const domus_on[]){
            {&domt_number, on_number_record_and_unstash, 0},
            {&domt_failing, on_failing_record_and_fail, 0},
            {&domt_aside, on_aside_stash_in_first_life, 0},
            {&domt_which, on_question_reply_with_life, 0},
            {&domt_slow, on_slow_sleep_then_reply, 0},
            {&domt_keeping, on_keeping_keep_ask, 0},
            {0},
        },
};

static int make_state_of_cart(void *context, const char *key, void *self)
{
    cart *mine = self;

    ck_assert_ptr_eq(context, &domt_books);
    ck_assert_uint_ge(strlen(key), 1);
    if (domt_books.make_result != 0)
        return domt_books.make_result;
    mine->life = ++domt_books.made;
    domt_books.living++;
    if (domt_books.most < domt_books.living)
        domt_books.most = domt_books.living;
    return 0;
}

static void unmake_state_of_cart(void *context, const char *key, void *self)
{
    const cart *mine = self;

    ck_assert_ptr_eq(context, &domt_books);
    ck_assert_uint_ge(strlen(key), 1);
    ck_assert_uint_ge(mine->life, 1);
    domt_books.unmade++;
    domt_books.living--;
}

domus_grain_kind domt_cart_kind;

static int open_kind_of_carts(domus_stack *stack, void *nothing)
{
    ck_assert_int_eq(domus_grain_open(stack, &domt_cart_kind, &domt_carts), 0);
    ck_assert_ptr_null(domus_grain_key(stack));
    return 0;
}

/* The kind of grains that most tests use; a test may change it before domt_grains_begin_world(). */
__attribute__((constructor)) static void set_kind_of_carts(void)
{
    domt_cart_kind = (domus_grain_kind){
        .name = "cart",
        .behaviour = &domt_cart,
        .make = make_state_of_cart,
        .unmake = unmake_state_of_cart,
        .context = &domt_books,
        .options = {.placement = DOMUS_ON_THREAD,
                    .thread = 1,
                    .passivate_after_ns = 10 * DOMT_GRAIN_MS},
    };
}

void domt_grains_begin_world(void)
{
    const uint64_t key[2] = {1, 2};

    domt_world_open(&domt_grain_world, 2);
    domi_grains_init(&domt_all_grains, 4, 256, key);
    for (uint32_t i = 0; i <= 2; i++)
        domt_grain_world.managers[i]->directory.grains = &domt_all_grains;
    for (uint32_t i = 0; i < 2; i++)
        domt_grain_agents[i] = domt_spawn(domt_outside_manager(&domt_grain_world),
                                          domt_grain_world.managers[i], &domt_agent, NULL);
    domt_settle_world(&domt_grain_world);
    domt_run_as_actor(&domt_grain_world, domt_grain_agents[0], open_kind_of_carts, NULL);
    domt_releases = 0;
}

void domt_grains_end_world(void)
{
    domt_world_become_owner(&domt_grain_world);
    for (uint32_t i = 0; i <= 2; i++)
        domi_manager_end_actors(domt_grain_world.managers[i]);
    for (uint32_t i = 0; i <= 2; i++)
        (void)domi_manager_take_arrivals(domt_grain_world.managers[i]);
    ck_assert_uint_eq(domt_count_all_objects_in_use(&domt_grain_world), 0);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    ck_assert_uint_eq(domt_books.living, 0);
    domt_world_end(&domt_grain_world);
    domi_grains_fini(&domt_all_grains);
}

/* --- agents ------------------------------------------------------------------------------------
 */

static struct {
    const char *key;
    const domus_type *type;
    uint32_t number;
    int result;
} order;

static int send_notice_to_grain_as_ordered(domus_stack *stack, void *nothing)
{
    order.result = domus_grain_notice(stack, domt_carts, order.key, order.type, &order.number);
    return 0;
}

static int record_answer_of_grain(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_books.errors[domt_books.answers] = answer->error;
    domt_books.answered_by[domt_books.answers++] =
        answer->error == 0 ? *(const uint32_t *)answer->payload : 0;
    return 0;
}

static int ask_grain_as_ordered(domus_stack *stack, void *nothing)
{
    return domus_grain_ask(stack, domt_carts, order.key, order.type, &order.number,
                           record_answer_of_grain);
}

/* Let the agent of `home` run `function` now, without other work: the agent is alone in its
 * queue. */
static void run_in_agent_alone(uint32_t home, int (*function)(domus_stack *, void *))
{
    domi_manager *manager = domt_grain_world.managers[home];

    domt_send_function_to_call(manager, domt_grain_agents[home], function, NULL);
    for (domi_house *house = NULL; house != domt_grain_agents[home].house;) {
        house = domi_queue_take_house(&manager->schedule.ready[DOMUS_STATE]);
        ck_assert_ptr_nonnull(house);
        if (house == domt_grain_agents[home].house)
            (void)domi_house_run_and_settle(manager, house);
        else
            domi_queue_put_house(&manager->schedule.ready[DOMUS_STATE], house);
    }
}

int domt_grain_try_notice(uint32_t home, const char *key, const domus_type *type, uint32_t number)
{
    order.key = key;
    order.type = type;
    order.number = number;
    run_in_agent_alone(home, send_notice_to_grain_as_ordered);
    return order.result;
}

void domt_grain_send_notice(uint32_t home, const char *key, const domus_type *type, uint32_t number)
{
    ck_assert_int_eq(domt_grain_try_notice(home, key, type, number), 0);
}

void domt_grain_ask_as_agent(uint32_t home, const char *key, const domus_type *type)
{
    order.key = key;
    order.type = type;
    run_in_agent_alone(home, ask_grain_as_ordered);
}

domus_address domt_grain_address_of_life(const char *key)
{
    domus_address address;

    ck_assert_int_eq(domi_names_find_address(&domt_carts.kind->names, key, &address), 0);
    return address;
}

void domt_grain_expect_notices_in_order(uint32_t count)
{
    ck_assert_uint_eq(domt_books.handled, count);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_uint_eq(domt_books.numbers[i], i);
    ck_assert_uint_le(domt_books.most, 1);
}
