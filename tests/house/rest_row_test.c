/* The rest row of a behaviour, a last row without a type but with a handler, takes each message
 * that no other row takes. */
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/testkit.h>

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static const domus_type number_type = {.name = "number", .size = sizeof(uint32_t)};
static const domus_type word_type = {.name = "word", .size = 8};
static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};
static const domus_type call_type = {.name = "call", .size = sizeof(domus_address)};
static const domus_type forget_type = {.name = "forget"};

static domus_testkit *kit;
static domus_probe *probe;

static void set_up_kit_and_probe(uint64_t seed)
{
    kit = domt_kit_new(NULL, seed);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
}

static int send_next_number_back(domus_stack *stack, void *self, const void *number)
{
    uint32_t next = *(const uint32_t *)number + 1;
    return domus_notice(stack, domus_sender(stack), &number_type, &next);
}

static int reply_with_number_or_fail(domus_stack *stack, void *self, const void *question)
{
    uint32_t number = *(const uint32_t *)question;
    return number == 0 ? -EDOM : domus_reply(stack, &number_type, &number);
}

static const domus_behaviour partner = {
    .name = "partner",
    .on = (const domus_on[]){{&number_type, send_next_number_back, 0},
                             {&question_type, reply_with_number_or_fail, 0},
                             {0}}};

static domus_address spawn_actor(const domus_behaviour *behaviour)
{
    domus_address address;

    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), 1, behaviour, NULL, &address), 0);
    return address;
}

static void send_notice_to_actor(domus_address to, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), to, type, payload), 0);
}

static bool is_same_address(domus_address one, domus_address other)
{
    return one.house == other.house && one.lease == other.lease;
}

static uint32_t rest_handled, own_handled;

static int count_message_of_own_row(domus_stack *stack, void *self, const void *payload)
{
    own_handled++;
    return 0;
}

static int count_message_of_rest_row(domus_stack *stack, void *self, const void *payload)
{
    rest_handled++;
    return -ENOSYS;
}

static const domus_behaviour generous = {
    .name = "generous",
    .on = (const domus_on[]){{&word_type, count_message_of_own_row, 0},
                             {NULL, count_message_of_rest_row, 16}}};

DOMT_TEST(a_last_row_without_type_takes_what_no_other_does)
{
    set_up_kit_and_probe(1);
    domus_address address = spawn_actor(&generous);
    domus_address strict = spawn_actor(&partner);
    send_notice_to_actor(address, &word_type, "fourfive");
    send_notice_to_actor(address, &forget_type, NULL);
    ck_assert_int_eq(domus_probe_ask(probe, address, &number_type, &(uint32_t){1}), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -ENOSYS, 0), 0);
    ck_assert_int_eq(domus_probe_ask(probe, strict, &forget_type, NULL), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EOPNOTSUPP, 0), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(own_handled, 1);
    ck_assert_uint_eq(rest_handled, 2);
    domus_testkit_free(kit);
}

static int forward_to_address_in_state(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, *(const domus_address *)self);
}

static const domus_behaviour proxy = {
    .name = "proxy",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{NULL, forward_to_address_in_state, 0}}};

DOMT_TEST(the_rest_row_can_pass_on_any_message)
{
    domus_address address;
    uint32_t number = 0;

    set_up_kit_and_probe(1);
    domus_address behind = spawn_actor(&partner);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &proxy, &behind, &address), 0);
    ck_assert_int_eq(domus_probe_ask(probe, address, &question_type, &(uint32_t){9}), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, &number), 0);
    ck_assert_uint_eq(number, 9);
    ck_assert_int_eq(domus_probe_send(probe, address, &number_type, &number), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, &number), 0);
    ck_assert_uint_eq(number, 10);
    ck_assert(is_same_address(domus_probe_sender(probe), behind));
    domus_testkit_free(kit);
}

static int arm_timer(domus_stack *stack, void *self)
{
    return domus_after(stack, MS, &forget_type, NULL, NULL);
}

static const domus_behaviour timed = {.name = "timed",
                                      .on = (const domus_on[]){{NULL, count_message_of_own_row, 0}},
                                      .on_mount = arm_timer};

DOMT_TEST(the_rest_row_takes_events)
{
    set_up_kit_and_probe(1);
    (void)spawn_actor(&timed);
    ck_assert_int_eq(domus_testkit_advance(kit, MS), 0);
    ck_assert_uint_eq(own_handled, 1);
    domus_testkit_free(kit);
}

static int stop_actor_after_mail(domus_stack *stack, void *self, const void *who_)
{
    domus_address who;

    memcpy(&who, who_, sizeof who);
    return domus_stop_after_mail(stack, who);
}

static const domus_behaviour ender = {
    .name = "ender", .on = (const domus_on[]){{&call_type, stop_actor_after_mail, 0}, {0}}};

DOMT_TEST(the_rest_row_takes_no_events_of_the_library)
{
    domus_system *system;

    set_up_kit_and_probe(1);
    system = domus_testkit_system(kit);
    domus_address address = spawn_actor(&generous);
    send_notice_to_actor(spawn_actor(&ender), &call_type, &address);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(rest_handled, 0);
    ck_assert_int_eq(domus_outside_notice(system, address, &forget_type, NULL), -ESTALE);
    domus_testkit_free(kit);
}

static const domus_behaviour too_large = {
    .name = "too large",
    .on = (const domus_on[]){{NULL, count_message_of_rest_row, DOMUS_FRAME_MAX + 1}}};

DOMT_TEST(frame_of_the_rest_row_has_a_limit)
{
    domus_address address;

    set_up_kit_and_probe(1);
    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &too_large, NULL, &address),
                     -EINVAL);
    domus_testkit_free(kit);
}

DOMT_SUITE(20)
