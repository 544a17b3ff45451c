/* Asks never time out early, asks that are made for an ask inherit its deadline, and late answers
 * are dropped once and counted. A kept ask ends at its deadline, because nobody waits for its
 * answer any more. */
#include "house/conversation/stack.h"
#include "house/dispatch/dispatch.h"
#include "tests/house/asking.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS    UINT64_C(1000000)
#define HOMES 3

static domt_world world;
static domus_address actors[HOMES];
static unsigned handled;

/* Counts of the answers that the asker has got, and the errors in them. */
static unsigned resumed;
static int errors[8];
static uint64_t tags[8];
static uint64_t heard_ns[8];

static int sleep_and_forward(domus_stack *stack, void *ns);

static int count_call_and_run_it(domus_stack *stack, void *self, const void *call_)
{
    const domt_call *call = call_;

    /* the payload of an ask that is to be forwarded must not be taken */
    if (call->function != sleep_and_forward)
        (void)domus_take(stack);
    handled++;
    return call->function(stack, call->context);
}

static const domus_behaviour talking = {
    .name = "talking",
    .on = (const domus_on[]){{&domt_ask_question, count_call_and_run_it, 0},
                             {&domt_call_type, count_call_and_run_it, 0},
                             {0}}};

static void open_world(void)
{
    domt_world_open(&world, HOMES);
    for (uint32_t i = 0; i < HOMES; i++)
        actors[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &talking, NULL);
    domt_settle_world(&world);
}

static void close_world(void)
{
    domt_asking_end_world(&world, actors, HOMES);
}

/* Check that the asker has got `count` answers, the last one with this error. */
static void expect_answers(unsigned count, int error)
{
    ck_assert_uint_eq(resumed, count);
    ck_assert_int_eq(errors[count - 1], error);
}

static void let_home_work(uint32_t home)
{
    domt_let_home_work(world.managers[home]);
}

static int reply_with_done(domus_stack *stack)
{
    return domus_reply(stack, &domt_ask_done, "replied");
}

static int reply_at_once(domus_stack *stack, void *context)
{
    return reply_with_done(stack);
}

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return reply_with_done(stack);
}

static int sleep_and_reply(domus_stack *stack, void *ns)
{
    return domus_sleep(stack, *(uint64_t *)ns, reply_after_sleep);
}

static int record_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    for (; answer != NULL; answer = answer->next) {
        errors[resumed] = answer->error;
        tags[resumed] = answer->tag;
        heard_ns[resumed++] = domus_now_ns(stack);
    }
    return 0;
}

/* An order to the asker: ask actor `to` with a time-out; 0: none. */
typedef struct order {
    uint32_t to;
    uint64_t timeout_ns;
    domt_call call;
} order;

static int ask_as_ordered(domus_stack *stack, void *order_)
{
    const order *now = order_;

    return domus_ask_within(stack, actors[now->to], &domt_ask_question, &now->call, now->timeout_ns,
                            record_answers);
}

/* Send the asker its order, and let it ask; the other homes do not work, so nobody answers yet. */
static void let_asker_ask_as_ordered(const order *now)
{
    domt_send_function_to_call(world.managers[0], actors[0], ask_as_ordered,
                               (void *)(uintptr_t)now);
    (void)domt_run_state_queue(world.managers[0]);
}

/* --- the time-out ---------------------------------------------------------------------------- */

DOMT_TEST(ask_fails_after_its_time_and_the_late_answer_is_dropped_once)
{
    static uint64_t nap_ns = 20 * MS;
    const order now = {1, 10 * MS, {sleep_and_reply, &nap_ns}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_pass_time(&world, 10 * MS - 1);
    ck_assert_uint_eq(resumed, 0);
    domt_pass_time(&world, 2 * MS);
    expect_answers(1, -ETIMEDOUT);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 1);
    ck_assert_uint_eq(domt_reply_releases, 1);
    ck_assert_uint_eq(domt_ask_releases, 0);
    close_world();
}

DOMT_TEST(answer_in_time_takes_the_time_out_back)
{
    static uint64_t nap_ns = 9 * MS;
    const order now = {1, 20 * MS, {sleep_and_reply, &nap_ns}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_settle_world(&world);
    ck_assert_uint_eq(world.managers[0]->timing.deadlines.count, 1);
    domt_pass_time(&world, 10 * MS);
    expect_answers(1, 0);
    ck_assert_uint_eq(world.managers[0]->timing.deadlines.count, 0);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_eq(domt_reply_releases, 0);
    close_world();
}

/* The answer and the time-out are both there when the asker runs: it gets one of them, once. */
DOMT_TEST(answer_that_meets_the_time_out_resumes_once)
{
    const order now = {1, 5 * MS, {reply_at_once, NULL}};

    open_world();
    let_asker_ask_as_ordered(&now);
    let_home_work(0);
    /* home 1 answers, and the answer waits in the asker's inbox */
    (void)domt_iterate_home(world.managers[1]);
    domt_advance_time_without_runs(&world, 6 * MS);
    let_home_work(0);
    expect_answers(1, 0);
    ck_assert_uint_eq(domt_reply_releases, 0);
    close_world();
}

DOMT_TEST(very_long_times_are_no_overflow)
{
    static uint64_t nap_ns = 5 * MS;
    const order now = {1, UINT64_MAX, {sleep_and_reply, &nap_ns}};
    static uint64_t ages_ns = UINT64_MAX;
    const order never = {1, 0, {sleep_and_reply, &ages_ns}};

    open_world();
    let_asker_ask_as_ordered(&now);
    let_asker_ask_as_ordered(&never);
    domt_pass_time(&world, 6 * MS);
    expect_answers(1, 0);
    domt_pass_time(&world, 20 * MS);
    ck_assert_uint_eq(resumed, 1);
    domt_world_end(&world);
}

static int ask_three_that_sleep_before_they_reply(domus_stack *stack, void *context)
{
    static uint64_t naps_ns[3] = {3 * MS, 30 * MS, 30 * MS};

    for (uint32_t i = 0; i < 3; i++) {
        domt_call call = {sleep_and_reply, &naps_ns[i]};
        ck_assert_int_eq(
            domus_ask_add(stack, actors[i], &domt_ask_question, &call, (10 - 3 * i) * MS, i), 0);
    }
    return domus_wait_all(stack, record_answers);
}

DOMT_TEST(asks_waited_for_together_time_out_one_by_one)
{
    open_world();
    domt_run_as_actor(&world, actors[0], ask_three_that_sleep_before_they_reply, NULL);
    domt_pass_time(&world, 8 * MS);
    ck_assert_uint_eq(resumed, 3);
    ck_assert(tags[0] == 0 && errors[0] == 0);
    ck_assert(tags[1] == 2 && errors[1] == -ETIMEDOUT);
    ck_assert(tags[2] == 1 && errors[2] == -ETIMEDOUT);
    domt_pass_time(&world, 30 * MS);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 2);
    ck_assert_uint_eq(domt_reply_releases, 2);
    close_world();
}

/* --- asks that have expired ------------------------------------------------------------------ */

DOMT_TEST(expired_ask_is_dropped_before_it_is_handled_and_counted)
{
    const order now = {1, 5 * MS, {reply_at_once, NULL}};

    open_world();
    let_asker_ask_as_ordered(&now);
    let_home_work(0);
    handled = 0;
    domt_advance_time_without_runs(&world, 5 * MS);
    domt_settle_world(&world);
    ck_assert_uint_eq(handled, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 1);
    ck_assert_uint_eq(domt_ask_releases, 1);
    domt_pass_time(&world, MS);
    expect_answers(1, -ETIMEDOUT);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 0);
    close_world();
}

static int forward_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(domus_forward(stack, actors[2]), 0);
    ck_assert_uint_eq(domus_deadline_ns(stack), 0);
    return 0;
}

static int sleep_and_forward(domus_stack *stack, void *ns)
{
    return domus_sleep(stack, *(uint64_t *)ns, forward_after_sleep);
}

DOMT_TEST(forwarded_ask_keeps_its_deadline)
{
    static uint64_t nap_ns = 20 * MS;
    const order now = {1, 10 * MS, {sleep_and_forward, &nap_ns}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_pass_time(&world, 30 * MS);
    expect_answers(1, -ETIMEDOUT);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 1);
    ck_assert_uint_eq(domt_ask_releases, 1);
    close_world();
}

/* --- inheritance ----------------------------------------------------------------------------- */

/* deadlines of the asks, as the handlers of the asked actors saw them */
static uint64_t seen_ns[4];
static unsigned seen;

static int record_deadline_and_reply(domus_stack *stack, void *context)
{
    seen_ns[seen++] = domus_deadline_ns(stack);
    ck_assert_int_eq(reply_with_done(stack), 0);
    ck_assert_uint_eq(domus_deadline_ns(stack), 0);
    return 0;
}

static int record_answer_and_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)record_answers(stack, self, answer);
    return reply_with_done(stack);
}

/* Let actor 1 ask actor 2, with a time-out or with none. */
static int record_deadline_and_ask_as_ordered(domus_stack *stack, void *order_)
{
    const order *now = order_;

    seen_ns[seen++] = domus_deadline_ns(stack);
    return domus_ask_within(stack, actors[now->to], &domt_ask_question, &now->call, now->timeout_ns,
                            record_answer_and_reply);
}

static void check_inherited_deadline(uint64_t outer_ns, uint64_t inner_ns, uint64_t expected_ns)
{
    order inner = {2, inner_ns, {record_deadline_and_reply, NULL}};
    const order outer = {1, outer_ns, {record_deadline_and_ask_as_ordered, &inner}};

    seen = resumed = 0;
    open_world();
    uint64_t start_ns = world.managers[0]->now_ns;
    let_asker_ask_as_ordered(&outer);
    domt_settle_world(&world);
    ck_assert_uint_eq(seen, 2);
    ck_assert_uint_eq(seen_ns[0], outer_ns != 0 ? start_ns + outer_ns : 0);
    ck_assert_uint_eq(seen_ns[1], expected_ns != 0 ? start_ns + expected_ns : 0);
    ck_assert_uint_eq(resumed, 2);
    close_world();
}

DOMT_TEST(ask_made_while_answering_inherits_the_deadline_or_keeps_a_sooner_one)
{
    check_inherited_deadline(10 * MS, 0, 10 * MS);
    check_inherited_deadline(10 * MS, 4 * MS, 4 * MS);
    check_inherited_deadline(10 * MS, 40 * MS, 10 * MS);
    check_inherited_deadline(0, 4 * MS, 4 * MS);
    check_inherited_deadline(0, 0, 0);
}

DOMT_TEST(inherited_deadline_ends_the_asks_down_the_chain)
{
    static uint64_t nap_ns = 50 * MS;
    static order inner = {2, 0, {sleep_and_reply, &nap_ns}};
    const order outer = {1, 10 * MS, {record_deadline_and_ask_as_ordered, &inner}};

    open_world();
    let_asker_ask_as_ordered(&outer);
    domt_pass_time(&world, 11 * MS);
    ck_assert_uint_eq(resumed, 2); /* the asker and the middle actor were resumed */
    ck_assert(errors[0] == -ETIMEDOUT && errors[1] == -ETIMEDOUT);
    /* the reply of the middle actor comes too late and is dropped */
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 1);
    domt_pass_time(&world, 60 * MS);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 2);
    ck_assert_uint_eq(domt_reply_releases, 2);
    close_world();
}

static int ask_actor_2_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    static const domt_call call = {reply_at_once, NULL};

    return domus_ask(stack, actors[2], &domt_ask_question, &call, record_answer_and_reply);
}

static int sleep_and_ask_actor_2(domus_stack *stack, void *ns)
{
    return domus_sleep(stack, *(uint64_t *)ns, ask_actor_2_after_sleep);
}

DOMT_TEST(ask_made_after_the_inherited_deadline_is_not_handled)
{
    static uint64_t nap_ns = 20 * MS;
    const order now = {1, 10 * MS, {sleep_and_ask_actor_2, &nap_ns}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_pass_time(&world, 30 * MS);
    ck_assert_uint_eq(resumed, 2);
    ck_assert(errors[0] == -ETIMEDOUT && errors[1] == -ETIMEDOUT);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 1);
    ck_assert_uint_eq(domt_ask_releases, 1);
    close_world();
}

static int reply_and_ask_actor_2(domus_stack *stack, void *context)
{
    static const domt_call call = {record_deadline_and_reply, NULL};

    ck_assert_int_eq(reply_with_done(stack), 0);
    return domus_ask(stack, actors[2], &domt_ask_question, &call, record_answers);
}

DOMT_TEST(conversation_that_has_answered_has_no_deadline_any_more)
{
    const order now = {1, 10 * MS, {reply_and_ask_actor_2, NULL}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_settle_world(&world);
    ck_assert_uint_eq(seen, 1);
    ck_assert_uint_eq(seen_ns[0], 0);
    ck_assert_uint_eq(resumed, 2);
    close_world();
}

/* --- ends beside it -------------------------------------------------------------------------- */

DOMT_TEST(stop_and_end_take_time_outs_back)
{
    static uint64_t nap_ns = 50 * MS;
    const order now = {1, 10 * MS, {sleep_and_reply, &nap_ns}};

    open_world();
    for (int i = 0; i < 3; i++)
        let_asker_ask_as_ordered(&now);
    domt_settle_world(&world);
    ck_assert_uint_eq(world.managers[0]->timing.deadlines.count, 3);
    domt_stop_actor_and_settle(&world, domt_outside_manager(&world), actors[0]);
    ck_assert_uint_eq(world.managers[0]->timing.deadlines.count, 0);
    expect_answers(3, -ECANCELED);
    /* actors that were stopped answer no asks, so no late answers come */
    domt_pass_time(&world, 60 * MS);
    close_world();

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_settle_world(&world);
    domt_advance_time_without_runs(&world, 11 * MS);
    /* The ask has failed while its asker has already ended, so nobody learns of the failure. */
    (void)domi_manager_fire_timers(world.managers[0]);
    domt_world_end(&world);
}

/* --- asks that are kept ---------------------------------------------------------------------- */

static domus_kept kept;

static int keep_ask_of_handler(domus_stack *stack, void *context)
{
    return domus_keep(stack, &kept);
}

static int reply_to_kept_and_expect_result(domus_stack *stack, void *error)
{
    ck_assert_int_eq(domus_kept_reply(stack, kept, &domt_ask_done, "replied"), *(const int *)error);
    ck_assert_int_eq(domus_kept_reply(stack, kept, &domt_ask_done, "replied"), -ENOENT);
    return 0;
}

DOMT_TEST(kept_ask_ends_at_its_deadline)
{
    static const int gone = -ENOENT;
    const order now = {1, 10 * MS, {keep_ask_of_handler, NULL}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_pass_time(&world, 12 * MS);
    ck_assert_int_eq(errors[0], -ETIMEDOUT);
    ck_assert_uint_eq(domi_house_count_parked_conversations(actors[1].house), 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 1);
    domt_run_as_actor(&world, actors[1], reply_to_kept_and_expect_result, (void *)(uintptr_t)&gone);
    ck_assert_uint_eq(resumed, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 0);
    /* the refused reply leaves its payload with the caller */
    ck_assert_uint_eq(domt_reply_releases, 0);
    close_world();
}

DOMT_TEST(kept_ask_that_is_answered_in_time_takes_its_time_out_back)
{
    static const int taken = 0;
    const order now = {1, 10 * MS, {keep_ask_of_handler, NULL}};

    open_world();
    let_asker_ask_as_ordered(&now);
    domt_pass_time(&world, 5 * MS);
    ck_assert_uint_eq(world.managers[1]->timing.deadlines.count, 1);
    domt_run_as_actor(&world, actors[1], reply_to_kept_and_expect_result,
                      (void *)(uintptr_t)&taken);
    domt_pass_time(&world, 10 * MS);
    expect_answers(1, 0);
    ck_assert_uint_eq(DOMT_SUM(&world, asks_expired), 0);
    close_world();
}

DOMT_TEST(kept_asks_that_have_expired_do_not_make_their_actor_deaf)
{
    const order wait = {1, 10 * MS, {keep_ask_of_handler, NULL}};
    const order now = {1, 0, {reply_at_once, NULL}};

    open_world();
    world.managers[1]->limits.conversations_max = 2;
    let_asker_ask_as_ordered(&wait);
    let_asker_ask_as_ordered(&wait);
    domt_settle_world(&world);
    let_asker_ask_as_ordered(&now);
    domt_settle_world(&world);
    /* both conversations that are allowed are kept asks, so the third ask waits */
    ck_assert_uint_eq(resumed, 0);
    domt_pass_time(&world, 12 * MS);
    ck_assert_uint_eq(resumed, 3);
    ck_assert_int_eq(errors[0] + errors[1] + errors[2], -2 * ETIMEDOUT);
    close_world();
}

DOMT_SUITE(60)
