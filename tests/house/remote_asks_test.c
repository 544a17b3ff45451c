/* domus/remote.h: gateways send and ask in the name of remote actors, and get the answers. */
#include "tests/house/remote_world.h"

#include <string.h>

/* --- in the name of remote actors --------------------------------------------------------------
 */

typedef struct naming {
    domus_address from, to;
    uint64_t value, tag;
    int expected;
    domus_remote_asked asked;
} naming;

static domus_address seen_sender;
static uint64_t seen_value;
static domus_kept seen_kept;
static domus_address passed_to;
static int handling; /* what the worker does with an ask */
enum { REPLIES, FAILS, KEEPS, PASSES_ON, SLEEPS };
static int worker_heard;

static int hear_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    worker_heard = answer->error;
    return answer->error;
}

static int work(domus_stack *stack, void *self, const void *payload)
{
    uint64_t doubled;

    seen_sender = domus_sender(stack);
    memcpy(&seen_value, payload, 8);
    doubled = 2 * seen_value;
    switch (handling) {
    case FAILS:
        return -ENOTSUP;
    case KEEPS:
        return domus_keep(stack, &seen_kept);
    case PASSES_ON:
        handling = KEEPS;
        return domus_forward(stack, passed_to);
    case SLEEPS:
        return domus_sleep(stack, 1000 * DOMT_MS, hear_sleep);
    default:
        (void)domus_reply(stack, &domt_plain, &doubled);
        ck_assert(domus_address_equals(domus_sender(stack), seen_sender));
        return 0;
    }
}

static int run_call(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    return call->function(stack, call->context);
}

static const domus_behaviour worker = {
    .name = "worker",
    .on =
        (const domus_on[]){{&domt_call_type, run_call, 0}, {&domt_word, work, 0}, {NULL, NULL, 0}},
};

static domus_address workers[2];

static void open_with_workers(void)
{
    domt_remote_open(NULL);
    for (uint32_t i = 0; i < 2; i++)
        workers[i] = domt_spawn(domt_outside(&domt_remote), domt_remote.managers[i], &worker, NULL);
    domt_settle(&domt_remote);
    handling = REPLIES;
    worker_heard = 1;
}

static int notice_as(domus_stack *stack, void *naming_)
{
    naming *now = naming_;

    ck_assert_int_eq(domus_remote_notice(stack, now->from, now->to, &domt_word, &now->value),
                     now->expected);
    return 0;
}

static int ask_as(domus_stack *stack, void *naming_)
{
    naming *now = naming_;
    uint32_t home = domus_self(stack).house->home->index;

    ck_assert_int_eq(domus_remote_ask(stack, domt_askers[home], now->from, now->to, &domt_word,
                                      &now->value, 0, now->tag, &now->asked),
                     now->expected);
    return 0;
}

DOMT_TEST(a_notice_in_the_name_of_a_remote_actor_shows_it_as_the_sender)
{
    open_with_workers();
    naming now = {.from = domt_far(8, 1), .to = workers[1], .value = 5};
    domt_as_gateway(0, notice_as, &now);
    ck_assert(domus_address_equals(seen_sender, now.from));
    ck_assert_uint_eq(seen_value, 5);
    ck_assert_uint_eq(domt_releases, 1);
    now.from = (domus_address){NULL, 0};
    domt_as_gateway(0, notice_as, &now);
    ck_assert_ptr_null(seen_sender.house);
    now.from = workers[0];
    now.expected = -EINVAL;
    domt_as_gateway(0, notice_as, &now);
    now.from = domt_far(8, 1);
    now.to.lease++;
    now.expected = -ESTALE;
    domt_as_gateway(0, notice_as, &now);
    ck_assert_uint_eq(domt_releases, 2);
    domt_remote_close();
}

DOMT_TEST(an_ask_in_the_name_of_a_remote_actor_is_answered_to_the_gateway)
{
    open_with_workers();
    for (uint32_t home = 0; home < 2; home++) {
        for (uint32_t target = 0; target < 2; target++) {
            naming now = {.from = domt_far(8, 1), .to = workers[target], .value = 5, .tag = 11};
            domt_carried *carried = &domt_carried_by[home];
            unsigned before = carried->answers;
            handling = REPLIES;
            domt_as_gateway(home, ask_as, &now);
            ck_assert(domus_address_equals(seen_sender, now.from));
            ck_assert_uint_eq(carried->answers, before + 1);
            ck_assert_int_eq(carried->answer_error, 0);
            ck_assert_uint_eq(carried->answer_tag, 11);
            ck_assert_uint_eq(carried->answer_value, 10);
            handling = FAILS;
            domt_as_gateway(home, ask_as, &now);
            ck_assert_int_eq(carried->answer_error, -ENOTSUP);
        }
    }
    ck_assert_uint_eq(domt_releases, 8);
    domt_remote_close();
}

static int reply_seen(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, seen_kept, &domt_plain, value), 0);
    return 0;
}

DOMT_TEST(such_an_ask_may_be_kept_and_passed_on)
{
    uint64_t value = 123;

    open_with_workers();
    naming now = {.from = domt_far(8, 1), .to = workers[0], .value = 5, .tag = 1};
    handling = KEEPS;
    domt_as_gateway(0, ask_as, &now);
    domt_do(&domt_remote, workers[0], reply_seen, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 123);
    handling = PASSES_ON;
    passed_to = workers[1];
    value = 124;
    domt_as_gateway(0, ask_as, &now);
    ck_assert(domus_address_equals(seen_sender, now.from));
    domt_do(&domt_remote, workers[1], reply_seen, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 124);
    domt_remote_close();
}

static int reply_kept(domus_stack *stack, void *value)
{
    ck_assert_int_eq(domus_kept_reply(stack, domt_carried_by[1].kept[0], &domt_plain, value), 0);
    return 0;
}

DOMT_TEST(an_ask_of_a_remote_actor_may_be_passed_on_to_another_one)
{
    uint64_t value = 99;

    open_with_workers();
    domus_remote_name name = domt_name(9, 0);
    naming now = {.from = domt_far(8, 1), .to = workers[0], .value = 5, .tag = 1};
    handling = PASSES_ON;
    passed_to = domt_far(9, 0);
    domt_as_gateway(0, ask_as, &now);
    /* it is sent on by the gateway that has the watches of its sender */
    ck_assert_uint_eq(domt_carried_by[1].asks, 1);
    ck_assert(domt_is_same_name(&domt_carried_by[1].target, &name));
    ck_assert(domus_address_equals(domt_carried_by[1].sender, now.from));
    domt_as_gateway(1, reply_kept, &value);
    ck_assert_uint_eq(domt_carried_by[0].answer_value, 99);
    domt_remote_close();
}

static int cancel_as(domus_stack *stack, void *naming_)
{
    naming *now = naming_;

    ck_assert_int_eq(domus_remote_cancel(stack, now->asked), now->expected);
    return 0;
}

DOMT_TEST(a_cancel_in_its_name_comes_to_who_works_for_it)
{
    for (uint32_t passes = 0; passes < 2; passes++) {
        open_with_workers();
        naming now = {.from = domt_far(8, 1), .to = workers[1], .value = 5, .tag = 6};
        handling = SLEEPS;
        domt_as_gateway(0, ask_as, &now);
        domt_as_gateway(0, cancel_as, &now);
        ck_assert_int_eq(worker_heard, -ECANCELED);
        ck_assert_int_eq(domt_carried_by[0].answer_error, -ECANCELED);
        ck_assert_uint_eq(domt_carried_by[0].answer_tag, 6);
        now.expected = -ENOENT;
        domt_as_gateway(0, cancel_as, &now);
        domt_as_gateway(1, cancel_as, &now);
        ck_assert_uint_eq(domi_house_count_parked(workers[1].house), 0);
        domt_remote_close();
    }
}

DOMT_TEST(such_an_ask_fails_as_any_other)
{
    open_with_workers();
    naming now = {.from = domt_far(8, 1), .to = workers[0], .tag = 6};
    now.to.lease++;
    domt_as_gateway(1, ask_as, &now);
    ck_assert_int_eq(domt_carried_by[1].answer_error, -ESTALE);
    now.from = workers[0];
    now.expected = -EINVAL;
    domt_as_gateway(1, ask_as, &now);
    now.from = (domus_address){NULL, 0};
    domt_as_gateway(1, ask_as, &now);
    domt_askers[1].serial++;
    now.from = domt_far(8, 1);
    now.expected = -ENOENT;
    domt_as_gateway(1, ask_as, &now);
    domt_remote_close();
}

DOMT_SUITE(20)
