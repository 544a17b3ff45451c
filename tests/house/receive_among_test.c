/* Receives among other things: waited for together with sleeps, receives that only look, and
 * receives beside a stop that waits for the mail before it. */
#include "house/family/life.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static const domus_type begin_type = {.name = "begin", .size = 8};
static const domus_type odd_type = {.name = "odd", .size = 8};
static const domus_type end_type = {.name = "end"};

static domt_world world;
static domus_address one; /* runs the sequence under test, on home 0 */
static uint64_t steps;    /* a decimal digit for each place that was passed */
static int error;

static const domus_pattern odd_only = {.types = (const domus_type *const[]){&odd_type, NULL}};

static void passed(uint64_t place)
{
    steps = steps * 10 + place;
}

static void open_world(const domus_behaviour *behaviour)
{
    domt_world_open(&world, 2);
    error = 1;
    one = domt_spawn(domt_outside(&world), world.managers[0], behaviour, NULL);
    domt_settle(&world);
}

static void send(const domus_type *type, uint64_t number)
{
    ck_assert_int_eq(domt_notice(domt_outside(&world), one, type, &number), 0);
    domt_settle(&world);
}

static void close_world(void)
{
    ck_assert_uint_eq(domt_in_use_all(&world), 0);
    domt_world_end(&world);
}

static int hear(domus_stack *stack, void *self, const domus_answer *answer)
{
    error = answer->error;
    return 0;
}

static int ask_odd(domus_stack *stack, void *context)
{
    return domus_ask(stack, one, &odd_type, context, hear);
}

DOMUS_SEQUENCE(receives_among_all, char)
{
    DOMUS_BEGIN;
    (void)domus_receive_add(stack, &odd_only, DOMUS_FOR_EVER, 1);
    (void)domus_sleep_add(stack, MS, 2);
    DOMUS_WAIT_ALL();
    for (; answer != NULL; answer = answer->next)
        passed(answer->tag);
    DOMUS_END;
}

static const domus_behaviour careless = {
    .name = "careless",
    .on = (const domus_on[]){DOMUS_ON(&begin_type, receives_among_all), {NULL, NULL, 0}},
};

DOMT_TEST(ask_received_among_all_fails_and_is_not_lost)
{
    uint64_t number = 1;

    open_world(&careless);
    domus_address agent = domt_spawn(domt_outside(&world), world.managers[1], &domt_agent, NULL);
    send(&begin_type, 0);
    domt_do(&world, agent, ask_odd, &number);
    ck_assert_int_eq(error, 1);
    domt_pass(&world, 2 * MS);
    ck_assert_uint_eq(steps, 12);
    ck_assert_int_eq(error, -ENOMSG);
    close_world();
}

/* --- receives that only look, and the last message ------------------------------------------- */

static const domus_pattern anything = {.types = NULL};

DOMUS_SEQUENCE(looks, char)
{
    DOMUS_BEGIN;
    DOMUS_RECEIVE_WITHIN(&anything, 0);
    ck_assert_int_eq(answer->error, -ETIMEDOUT);
    passed(1);
    DOMUS_RECEIVE_WITHIN(&anything, DOMUS_FOR_EVER);
    ck_assert_int_eq(answer->error, 0);
    passed(2);
    for (;;) {
        DOMUS_RECEIVE(&odd_only);
        if (answer->error != 0)
            return answer->error;
        passed(3);
    }
    DOMUS_END;
}

static const domus_behaviour looking = {.name = "looking", DOMUS_ON_MOUNT(looks)};

DOMT_TEST(receive_that_only_looks_ends_in_an_actor_without_mail)
{
    open_world(&looking);
    ck_assert_uint_eq(steps, 1);
    domt_pass(&world, 10 * MS);
    ck_assert_uint_eq(steps, 1);
    send(&end_type, 0);
    ck_assert_uint_eq(steps, 12);
    domt_world_end(&world);
}

static int stop_after_mail(domus_stack *stack, void *context)
{
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(domus_notice(stack, one, &odd_type, &i), 0);
    return domus_stop_after_mail(stack, one);
}

DOMT_TEST(stop_after_mail_comes_behind_what_a_receive_takes)
{
    open_world(&looking);
    domus_address agent = domt_spawn(domt_outside(&world), world.managers[0], &domt_agent, NULL);
    send(&end_type, 0);
    domt_do(&world, agent, stop_after_mail, NULL);
    ck_assert_uint_eq(steps, 12333);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 1);
    ck_assert_int_eq(domt_notice(domt_outside(&world), one, &end_type, NULL), -ESTALE);
    close_world();
}

DOMT_TEST(stop_after_mail_waits_for_mail_that_no_receive_takes)
{
    open_world(&looking);
    domus_address agent = domt_spawn(domt_outside(&world), world.managers[0], &domt_agent, NULL);
    send(&end_type, 0);
    send(&begin_type, 0); /* no receive takes this one */
    domt_do(&world, agent, stop_after_mail, NULL);
    ck_assert_uint_eq(steps, 12333);
    ck_assert_uint_eq(DOMT_SUM(&world, stops), 0);
    domt_world_end(&world);
}

DOMT_SUITE(60)
