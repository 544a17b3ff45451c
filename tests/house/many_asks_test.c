/* Very many asks at once: a fan-out to ten thousand targets on two homes, thousands with time-outs,
 * and more asks than there is memory for. Each ask ends once. Then an asker gives up thousands of
 * asks at once: some are being answered, some are kept, some were stashed, and some have not begun;
 * each cancel finds its own ask, and no other one. */
#include "base/memory.h"
#include "base/random.h"
#include "house/conversation/holder.h"
#include "house/conversation/stack.h"
#include "house/family/family.h"
#include "house/message/types.h"
#include "tests/house/asking.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static domt_world world;
static domus_address asker;    /* an actor on home 0 */
static domus_address other[3]; /* an actor on each home */

/* Counts of what happened to asks and answers. */
static uint64_t handled;
static uint64_t resumed;
static uint64_t answered;
static uint64_t failed;
static uint64_t tag_sum;
static uint64_t number_sum;

typedef struct request {
    uint64_t number;
    uint64_t nap_ns; /* sleep of the asked actor before it answers, in ns; 0: none */
} request;

static const domus_type question = {
    .name = "question", .size = sizeof(request), .release = domt_count_release_of_ask};
static const domus_type number_type = {
    .name = "number", .size = 8, .release = domt_count_release_of_reply};

static int reply_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_reply(stack, &number_type, domus_frame(stack));
}

static int count_question_and_reply_after_nap(domus_stack *stack, void *self, const void *request_)
{
    const request *now = request_;

    (void)domus_take(stack);
    handled++;
    *(uint64_t *)domus_frame(stack) = now->number + 1;
    return now->nap_ns != 0 ? domus_sleep(stack, now->nap_ns, reply_after_sleep)
                            : reply_after_sleep(stack, self, NULL);
}

static const domus_behaviour answering = {
    .name = "answering",
    .on = (const domus_on[]){{&question, count_question_and_reply_after_nap, 8}, {0}}};

static int record_answers(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    resumed++;
    for (; answer != NULL; answer = answer->next) {
        tag_sum += answer->tag;
        answered += answer->error == 0;
        failed += answer->error != 0;
        if (answer->error == 0)
            number_sum += *(const uint64_t *)answer->payload;
    }
    return 0;
}

/* --- fan-out --------------------------------------------------------------------------------- */

#define TARGETS 10000

static domus_address targets[TARGETS];

static int record_answer_until_all_have_come(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    (void)domus_take(stack);
    (void)record_answers(stack, self, answer);
    return answered + failed < TARGETS ? domus_wait_first(stack, record_answer_until_all_have_come)
                                       : 0;
}

static int ask_all_targets(domus_stack *stack, void *first)
{
    for (uint64_t i = 0; i < TARGETS; i++) {
        request now = {i, 0};
        if (domus_ask_add(stack, targets[i], &question, &now, 0, i) != 0)
            return -ENOMEM;
    }
    ck_assert_uint_eq(domus_pending(stack), TARGETS);
    return first != NULL ? domus_wait_first(stack, record_answer_until_all_have_come)
                         : domus_wait_all(stack, record_answers);
}

static void check_fan_out_to_all_targets(void *first)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    for (uint32_t i = 0; i < TARGETS; i++)
        targets[i] =
            domt_spawn(domt_outside_manager(&world), world.managers[1 + i % 2], &answering, NULL);
    domt_settle_world(&world);
    domt_run_as_actor(&world, asker, ask_all_targets, first);
    ck_assert_uint_eq(answered, TARGETS);
    ck_assert_uint_eq(failed, 0);
    ck_assert_uint_eq(tag_sum, (uint64_t)TARGETS * (TARGETS - 1) / 2);
    ck_assert_uint_eq(number_sum, (uint64_t)TARGETS * (TARGETS + 1) / 2);
    ck_assert_uint_eq(domt_ask_releases + domt_reply_releases, 0);
}

DOMT_TEST(fan_out_to_10000_targets_on_two_homes_waits_for_all)
{
    check_fan_out_to_all_targets(NULL);
    ck_assert_uint_eq(resumed, 1);
    domt_asking_close_world(&world, asker);
}

DOMT_TEST(fan_out_to_10000_targets_on_two_homes_shows_one_by_one)
{
    check_fan_out_to_all_targets(&world);
    ck_assert_uint_eq(resumed, TARGETS);
    domt_asking_close_world(&world, asker);
}

/* --- with time-outs -------------------------------------------------------------------------- */

#define MANY 5000

typedef struct order {
    uint32_t to;
    uint64_t timeout_ns;
    request request;
} order;

static order orders[MANY];

static int ask_as_ordered(domus_stack *stack, void *order_)
{
    const order *now = order_;

    return domus_ask_within(stack, other[now->to], &question, &now->request, now->timeout_ns,
                            record_answers);
}

DOMT_TEST(each_of_thousands_is_answered_or_times_out_once)
{
    domi_random random;

    domi_random_init(&random, 11);
    domt_asking_open_world(&world, &answering, &asker, other);
    for (int i = 0; i < MANY; i++) {
        orders[i] = (order){(uint32_t)domi_random_below(&random, 3),
                            (1 + domi_random_below(&random, 30)) * MS,
                            {1, domi_random_below(&random, 30) * MS}};
        domt_send_function_to_call(world.managers[0], asker, ask_as_ordered, &orders[i]);
        if (i % 64 == 0) {
            (void)domt_iterate_home(world.managers[domi_random_below(&random, 3)]);
            domt_advance_time_without_runs(&world, domi_random_below(&random, 3) * MS / 2);
        }
    }
    domt_pass_time(&world, 70 * MS);
    uint64_t expired = DOMT_SUM(&world, asks_expired);
    ck_assert_uint_eq(answered + failed, MANY);
    ck_assert_uint_eq(resumed, MANY);
    ck_assert_uint_eq(handled, MANY - expired);
    ck_assert_uint_eq(domt_ask_releases, expired);
    ck_assert_uint_eq(domt_reply_releases, failed - expired);
    ck_assert_uint_gt(answered, MANY / 10);
    ck_assert_uint_gt(failed, MANY / 10);
    domt_asking_close_world(&world, asker);
}

/* --- without memory -------------------------------------------------------------------------- */

static uint64_t refused;

/* Ask more often than a chunk of memory holds promises, so that one of the failing allocations is
 * that of a promise. */
static int ask_while_memory_lasts(domus_stack *stack, void *context)
{
    for (uint64_t i = 0; i < 3000; i++) {
        request now = {i, 0};
        int result = domus_ask_add(stack, other[i % 3], &question, &now, 0, i);
        ck_assert(result == 0 || result == -ENOMEM);
        refused += result != 0;
    }
    int result = domus_wait_all(stack, record_answers);
    ck_assert(result == DOMUS_PARKED || result == -ENOMEM);
    return result;
}

static bool check_asks_with_failing_allocation(int count, int stay)
{
    refused = resumed = answered = failed = 0;
    domi_memory_fail_allocation_after(-1, 0);
    domt_asking_open_world(&world, &answering, &asker, other);
    domt_send_function_to_call(world.managers[0], asker, ask_while_memory_lasts, NULL);
    domi_memory_fail_allocation_after(count, stay);
    domt_settle_world(&world);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(answered + failed + refused, resumed != 0 ? 3000 : refused);
    domt_asking_close_world(&world, asker);
    return resumed == 1 && answered == 3000;
}

DOMT_TEST(asks_without_memory_fail_and_the_others_are_answered)
{
    for (int stay = 0; stay < 2; stay++) {
        int count = 0;
        while (!check_asks_with_failing_allocation(count, stay))
            ck_assert_int_lt(++count, 1000);
        ck_assert_int_gt(count, 3); /* the sweep has let more than three allocations fail */
    }
}

/* --- given up -------------------------------------------------------------------------------- */

#define CROWD 3000u

static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};

static domus_address bystander;
static domus_address answerer;
static domus_conversation crowd;
static uint64_t cancelled, wrong, shown;

static int count_resumption_and_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    resumed++;
    cancelled += answer->error == -ECANCELED;
    return 0;
}

/* Handle an ask as its number says: sleep in the conversation, keep the ask, or stash it. */
static int sleep_keep_or_stash_by_number(domus_stack *stack, void *self, const void *number)
{
    domus_kept kept;

    switch (*(const uint32_t *)number % 3) {
    case 0:
        return domus_sleep(stack, 3600000 * MS, count_resumption_and_cancel);
    case 1:
        return domus_keep(stack, &kept);
    default:
        return domus_stash(stack);
    }
}

static const domus_behaviour answerer_behaviour = {
    .name = "answerer",
    .on = (const domus_on[]){{&question_type, sleep_keep_or_stash_by_number, 0}, {0}}};

static int check_all_are_cancelled(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        shown++;
        wrong += answer->error != -ECANCELED;
    }
    return 0;
}

static int ask_answerer_so_many_times(domus_stack *stack, void *count)
{
    for (uint32_t i = 0; i < *(const uint32_t *)count; i++) {
        int error = domus_ask_add(stack, answerer, &question_type, &i, 0, i);
        if (error != 0)
            return error;
    }
    (void)domus_conversation_of(stack, &crowd);
    return domus_wait_all(stack, check_all_are_cancelled);
}

static int cancel_conversation_of_crowd(domus_stack *stack, void *context)
{
    return domus_cancel(stack, crowd);
}

static void open_world_of_crowd(void)
{
    domt_world_open(&world, 2);
    asker = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    bystander = domt_spawn(world.managers[0], world.managers[0], &domt_agent, NULL);
    answerer = domt_spawn(world.managers[1], world.managers[1], &answerer_behaviour, NULL);
    domt_settle_world(&world);
    cancelled = resumed = wrong = shown = 0;
}

DOMT_TEST(each_cancel_of_a_crowd_finds_its_own_ask)
{
    uint32_t few = 30;
    uint32_t many = CROWD;

    open_world_of_crowd();
    domt_run_as_actor(&world, bystander, ask_answerer_so_many_times,
                      &few); /* the asks of the bystander are not given up */
    domt_run_as_actor(&world, asker, ask_answerer_so_many_times, &many);
    ck_assert_uint_eq(domi_house_count_parked_conversations(answerer.house), (CROWD + few) / 3 * 2);
    ck_assert_uint_eq(answerer.house->family->stashed, (CROWD + few) / 3);
    domt_run_as_actor(&world, asker, cancel_conversation_of_crowd, NULL);
    ck_assert_uint_eq(shown, CROWD);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(cancelled, CROWD / 3);
    ck_assert_uint_eq(domi_house_count_parked_conversations(answerer.house), few / 3 * 2);
    ck_assert_uint_eq(answerer.house->family->stashed, few / 3);
    domt_world_end(&world);
}

DOMT_TEST(crowd_that_has_not_begun_is_dropped)
{
    uint32_t many = CROWD;

    open_world_of_crowd();
    domt_send_function_to_call(world.managers[0], asker, ask_answerer_so_many_times, &many);
    (void)domt_iterate_home(world.managers[0]);
    (void)domt_take_arrivals_and_timers(
        world.managers[1]); /* home 1 sorts the asks into mailboxes, and runs none */
    domt_send_function_to_call(world.managers[0], asker, cancel_conversation_of_crowd, NULL);
    (void)domt_iterate_home(world.managers[0]);
    /* a run takes asks before events (the cancels), so some asks begin */
    (void)domt_iterate_home(world.managers[1]);
    domt_settle_world(&world);
    ck_assert_uint_eq(shown, CROWD);
    ck_assert_uint_eq(domi_house_count_parked_conversations(answerer.house), 0);
    ck_assert_uint_eq(answerer.house->mail, 0);
    ck_assert(answerer.house->family == NULL || answerer.house->family->stashed == 0);
    ck_assert_uint_lt(resumed, CROWD / 3); /* most asks were cancelled before they began */
    domt_world_end(&world);
}

/* A cancel that searches kept asks alone does not hide another cancel that waits before or behind
 * it, neither one for a conversation that works nor one for an ask that has not begun. */
DOMT_TEST(search_of_kept_asks_for_one_cancel_hides_no_other_cancel)
{
    uint32_t one = 1;

    for (uint32_t way = 0; way < 4; way++) {
        open_world_of_crowd();
        /* the conversation that handles this ask sleeps */
        domt_send_function_to_call(world.managers[0], asker, ask_answerer_so_many_times, &one);
        (void)domt_iterate_home(world.managers[0]);
        (void)domt_take_arrivals_and_timers(world.managers[1]);
        const domi_promise *promise = asker.house->stacks->waiting;
        domi_return cancels[2] = {{.promise = (domi_promise *)(uintptr_t)promise,
                                   .serial = domi_promise_serial(promise)}};
        cancels[1] = cancels[0];
        cancels[way % 2].note = DOMI_CANCEL_KEPT;
        if (way < 2)
            domt_settle_world(&world);
        domi_ask_tell_actor_of_cancel(world.managers[0], answerer, &cancels[0]);
        domi_ask_tell_actor_of_cancel(world.managers[0], answerer, &cancels[1]);
        (void)domt_take_arrivals_and_timers(world.managers[1]);
        ck_assert_uint_eq(domi_house_count_events(answerer.house), 2);
        domt_settle_world(&world);
        ck_assert_uint_eq(domi_house_count_parked_conversations(answerer.house), 0);
        ck_assert_uint_eq(cancelled, resumed);
        ck_assert_uint_eq(shown, 1);
        domt_world_end(&world);
    }
}

DOMT_SUITE(60)
