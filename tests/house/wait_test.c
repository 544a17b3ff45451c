/* A conversation waits for several answers: for all, or for the first one. Answers may come before
 * it waits for them. */
#include "house/conversation/stack.h"
#include "tests/house/asking.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/receive.h>

#include <errno.h>

#define MS        UINT64_C(1000000)
#define HEARD_MAX 16

static domt_world world;
static domus_address asker;    /* an actor on home 0 */
static domus_address other[3]; /* an actor on each home */

static unsigned releases;

static void release_number(void *payload)
{
    releases++;
}

/* A question with a number: it is answered with the number plus one, or failed with the number if
 * that is negative. */
static const domus_type question = {.name = "question", .size = 8};
static const domus_type number_type = {.name = "number", .size = 8, .release = release_number};

static int reply_with_next_or_fail(domus_stack *stack, void *self, const void *number)
{
    int64_t next = *(const int64_t *)number + 1;

    (void)domus_take(stack);
    return next <= 0 ? (int)(next - 1) : domus_reply(stack, &number_type, &next);
}

static const domus_behaviour answering = {
    .name = "answering", .on = (const domus_on[]){{&question, reply_with_next_or_fail, 0}, {0}}};

/* All answers that a conversation was shown, over all its resumptions. */
static struct {
    uint32_t resumed;
    uint32_t count;
    uint64_t tags[HEARD_MAX];
    int64_t numbers[HEARD_MAX]; /* for each answer the number in it, or its error */
} heard;

static void record_answers(const domus_answer *answer)
{
    heard.resumed++;
    for (; answer != NULL; answer = answer->next) {
        ck_assert_uint_lt(heard.count, HEARD_MAX);
        heard.tags[heard.count] = answer->tag;
        heard.numbers[heard.count++] =
            answer->payload != NULL ? *(const int64_t *)answer->payload : answer->error;
        ck_assert((answer->payload != NULL) == (answer->type == &number_type));
        ck_assert(answer->error == 0 || answer->payload == NULL);
    }
}

static int record_answers_and_expect_no_more(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    ck_assert_uint_eq(domus_pending(stack), 0);
    return 0;
}

static int record_answers_and_end(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    return 0;
}

static int record_answer_and_wait_for_next(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    ck_assert_ptr_null(answer->next);
    return domus_pending(stack) != 0 ? domus_wait_first(stack, record_answer_and_wait_for_next) : 0;
}

static void ask_with_tag(domus_stack *stack, domus_address to, int64_t number, uint64_t tag)
{
    ck_assert_int_eq(domus_ask_add(stack, to, &question, &number, 0, tag), 0);
}

static int ask_three_actors(domus_stack *stack)
{
    for (uint32_t i = 0; i < 3; i++)
        ask_with_tag(stack, other[i], 10 * i, 7 + i);
    ck_assert_uint_eq(domus_pending(stack), 3);
    return 0;
}

/* Let home `i` answer the asks, and let the asker get the answers. */
static void let_home_answer(uint32_t i)
{
    (void)domt_iterate_home(world.managers[i]);
    domt_let_home_work(world.managers[0]);
}

/* Send the asker a call, and let it ask; actors on other homes do not answer yet. */
static void send_call_to_asker(int (*function)(domus_stack *, void *), void *context)
{
    domt_send_function_to_call(world.managers[0], asker, function, context);
    let_home_answer(0);
}

/* --- all ------------------------------------------------------------------------------------- */

static int ask_three_and_wait_for_all(domus_stack *stack, void *context)
{
    (void)ask_three_actors(stack);
    return domus_wait_all(stack, record_answers_and_expect_no_more);
}

DOMT_TEST(all_resumes_once_with_tags_in_the_order_in_which_answers_came)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    send_call_to_asker(ask_three_and_wait_for_all, NULL);
    let_home_answer(2);
    ck_assert_uint_eq(heard.resumed, 0);
    let_home_answer(1);
    ck_assert_uint_eq(heard.resumed, 1);
    /* the answer of the actor on the asker's own home came first */
    static const uint64_t tags[] = {7, 9, 8};
    static const int64_t numbers[] = {1, 21, 11};
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(heard.tags[i], tags[i]);
        ck_assert_int_eq(heard.numbers[i], numbers[i]);
    }
    ck_assert_uint_eq(heard.count, 3);
    /* the answers are with the resumed function, and not released */
    ck_assert_uint_eq(releases, 0);
    domt_asking_close_world(&world, asker);
}

static int ask_in_vain_and_wait_for_all(domus_stack *stack, void *stale)
{
    static const domus_type unknown = {.name = "unknown"};

    ask_with_tag(stack, (domus_address){NULL, 0}, 1, 1);
    ask_with_tag(stack, *(domus_address *)stale, 1, 2);
    ask_with_tag(stack, other[1], -EIO, 3);
    ck_assert_int_eq(domus_ask_add(stack, other[2], &unknown, NULL, 0, 4), 0);
    ask_with_tag(stack, other[1], 1, 5);
    return domus_wait_all(stack, record_answers_and_expect_no_more);
}

DOMT_TEST(all_shows_each_error_beside_the_answers)
{
    domus_address stale;

    domt_asking_open_world(&world, &answering, &asker, other);
    stale = other[0];
    stale.lease++;
    domt_run_as_actor(&world, asker, ask_in_vain_and_wait_for_all, &stale);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_uint_eq(heard.count, 5);
    int64_t by_tag[6] = {0};
    for (uint32_t i = 0; i < heard.count; i++)
        by_tag[heard.tags[i]] = heard.numbers[i];
    ck_assert_int_eq(by_tag[1], -ESTALE);
    ck_assert_int_eq(by_tag[2], -ESTALE);
    ck_assert_int_eq(by_tag[3], -EIO);
    ck_assert_int_eq(by_tag[4], -EOPNOTSUPP);
    ck_assert_int_eq(by_tag[5], 2);
    domt_asking_close_world(&world, asker);
}

static int wait_without_asks(domus_stack *stack, void *first)
{
    return first != NULL ? domus_wait_first(stack, record_answers_and_expect_no_more)
                         : domus_wait_all(stack, record_answers_and_expect_no_more);
}

static int wait_without_asks_in_mount(domus_stack *stack, void *self)
{
    return wait_without_asks(stack, NULL);
}

static const domus_behaviour waits_at_mount = {.name = "waits",
                                               .on_mount = wait_without_asks_in_mount};

DOMT_TEST(waiting_for_nothing_resumes_with_an_empty_answer)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    domt_run_as_actor(&world, asker, wait_without_asks, NULL);
    domt_run_as_actor(&world, asker, wait_without_asks, &world);
    (void)domt_spawn(domt_outside_manager(&world), world.managers[0], &waits_at_mount, NULL);
    domt_settle_world(&world);
    ck_assert_uint_eq(heard.resumed, 3);
    for (int i = 0; i < 3; i++)
        ck_assert(heard.tags[i] == 0 && heard.numbers[i] == 0);
    domt_asking_close_world(&world, asker);
}

/* --- the first ------------------------------------------------------------------------------- */

static int ask_three_and_wait_for_each(domus_stack *stack, void *context)
{
    (void)ask_three_actors(stack);
    return domus_wait_first(stack, record_answer_and_wait_for_next);
}

DOMT_TEST(first_shows_one_and_waiting_again_shows_the_next)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    send_call_to_asker(ask_three_and_wait_for_each, NULL);
    ck_assert_uint_eq(heard.resumed, 1);
    let_home_answer(2);
    ck_assert_uint_eq(heard.resumed, 2);
    let_home_answer(1);
    ck_assert_uint_eq(heard.resumed, 3);
    ck_assert(heard.tags[0] == 7 && heard.tags[1] == 9 && heard.tags[2] == 8);
    ck_assert_uint_eq(releases, 0);
    domt_asking_close_world(&world, asker);
}

static int ask_three_and_wait_for_first(domus_stack *stack, void *context)
{
    (void)ask_three_actors(stack);
    return domus_wait_first(stack, record_answers_and_end);
}

DOMT_TEST(answers_after_the_end_are_dropped_once_and_counted)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    domt_run_as_actor(&world, asker, ask_three_and_wait_for_first, NULL);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, late_replies), 2);
    ck_assert_uint_eq(releases, 2);
    domt_asking_close_world(&world, asker);
}

/* --- before they are wanted ------------------------------------------------------------------ */

static int record_first_and_wait_for_all(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    return domus_wait_all(stack, record_answers_and_expect_no_more);
}

static int record_first_and_wait_for_next(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    ck_assert_uint_eq(domus_pending(stack), 0);
    return domus_wait_first(stack, record_first_and_wait_for_all);
}

/* Wait for the third ask alone, while the answers of the first two asks come. */
static int ask_three_and_wait_for_third(domus_stack *stack, void *then)
{
    ask_with_tag(stack, other[0], 1, 1);
    ask_with_tag(stack, other[1], 2, 2);
    return domus_ask(stack, other[2], &question, &(int64_t){30},
                     then != NULL ? record_first_and_wait_for_next : record_first_and_wait_for_all);
}

static void check_early_answers_are_kept(void *then)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    send_call_to_asker(ask_three_and_wait_for_third, then);
    let_home_answer(1);
    ck_assert_uint_eq(heard.resumed, 0);
    let_home_answer(2);
    ck_assert_int_eq(heard.numbers[0], 31);
    ck_assert(heard.tags[1] == 1 && heard.numbers[1] == 2);
    ck_assert(heard.tags[2] == 2 && heard.numbers[2] == 3);
    ck_assert_uint_eq(heard.count, 3);
    ck_assert_uint_eq(releases, 0);
}

DOMT_TEST(answers_that_came_before_they_are_wanted_are_kept_for_all)
{
    check_early_answers_are_kept(NULL);
    ck_assert_uint_eq(heard.resumed, 2);
    domt_asking_close_world(&world, asker);
}

DOMT_TEST(answers_that_came_before_they_are_wanted_are_shown_one_by_one)
{
    check_early_answers_are_kept(&world);
    ck_assert_uint_eq(heard.resumed, 3);
    domt_asking_close_world(&world, asker);
}

static int ask_three_and_leave_after_third(domus_stack *stack, void *context)
{
    ask_with_tag(stack, other[0], 1, 1);
    ask_with_tag(stack, other[1], 2, 2);
    return domus_ask(stack, other[2], &question, &(int64_t){30}, record_answers_and_end);
}

DOMT_TEST(answers_that_are_never_wanted_are_dropped_once)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    send_call_to_asker(ask_three_and_leave_after_third, NULL);
    let_home_answer(1);
    let_home_answer(2);
    ck_assert_uint_eq(heard.resumed, 1);
    ck_assert_uint_eq(releases, 2);
    domt_asking_close_world(&world, asker);
}

static int record_answers_and_ask_three_more(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    (void)domus_take(stack);
    record_answers(answer);
    (void)ask_three_actors(stack);
    return domus_wait_all(stack, record_answers_and_expect_no_more);
}

/* Ask further while the resumed function looks at answers: their memory is valid until it
 * returns. */
static int ask_three_then_three_more(domus_stack *stack, void *context)
{
    (void)ask_three_actors(stack);
    return domus_wait_all(stack, record_answers_and_ask_three_more);
}

DOMT_TEST(resumed_function_may_ask_and_wait_again)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    domt_run_as_actor(&world, asker, ask_three_then_three_more, NULL);
    ck_assert_uint_eq(heard.resumed, 2);
    ck_assert_uint_eq(heard.count, 6);
    ck_assert_uint_eq(releases, 0);
    domt_asking_close_world(&world, asker);
}

/* --- beside a receive ------------------------------------------------------------------------ */

static int check_answer_and_received_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)domus_take(stack);
    heard.resumed++;
    ck_assert_ptr_eq(answer->type, &number_type);
    ck_assert_ptr_eq(answer->next->type, &question);
    ck_assert_ptr_null(answer->next->next);
    return 0;
}

static int receive_while_asks_are_under_way(domus_stack *stack, void *context)
{
    static const domus_type *const types[] = {&question, NULL};
    static const domus_pattern pattern = {.types = types};

    ask_with_tag(stack, other[1], 1, 1);
    ck_assert_int_eq(domus_receive(stack, &pattern, record_answers_and_expect_no_more),
                     DOMUS_PARKED);
    return domus_wait_all(stack, check_answer_and_received_ask);
}

static int ask_asker_as_third(domus_stack *stack, void *context)
{
    return domus_ask(stack, asker, &question, &(int64_t){40}, record_answers_and_expect_no_more);
}

/* An ask that a conversation was shown in a list of answers is not its current message, so a reply
 * to it cannot have been sent. */
DOMT_TEST(ask_that_was_received_among_others_fails_with_enomsg)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    domus_address third =
        domt_spawn(domt_outside_manager(&world), world.managers[2], &domt_agent, NULL);
    domt_run_as_actor(&world, asker, receive_while_asks_are_under_way, NULL);
    ck_assert_uint_eq(heard.resumed, 0);
    domt_run_as_actor(&world, third, ask_asker_as_third, NULL);
    ck_assert_uint_eq(heard.resumed, 2);
    ck_assert_int_eq(heard.numbers[heard.count - 1], -ENOMSG);
    domt_asking_close_world(&world, asker);
}

/* --- the end while it waits ------------------------------------------------------------------ */

static int ask_and_sleep_then_wait_for_all(domus_stack *stack, void *context)
{
    ask_with_tag(stack, other[1], 1, 1);
    ask_with_tag(stack, (domus_address){NULL, 0}, 1, 2);
    return domus_sleep(stack, 5 * MS, record_first_and_wait_for_all);
}

DOMT_TEST(sleep_ends_in_its_time_although_answers_come_meanwhile)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    domt_run_as_actor(&world, asker, ask_and_sleep_then_wait_for_all, NULL);
    domt_pass_time(&world, 5 * MS - 1);
    ck_assert_uint_eq(heard.resumed, 0);
    domt_pass_time(&world, 1);
    ck_assert_uint_eq(heard.resumed, 2);
    ck_assert(heard.tags[0] == 0 && heard.numbers[0] == 0);
    /* the reply is shown before the exception */
    ck_assert(heard.tags[1] == 1 && heard.numbers[1] == 2);
    ck_assert(heard.tags[2] == 2 && heard.numbers[2] == -ESTALE);
    domt_asking_close_world(&world, asker);
}

static int ask_thrice_and_sleep(domus_stack *stack, void *context)
{
    ask_with_tag(stack, other[0], 1, 1);
    ask_with_tag(stack, other[1], 2, 2);
    ask_with_tag(stack, (domus_address){NULL, 0}, 3, 3);
    return domus_sleep(stack, UINT64_MAX, record_answers_and_expect_no_more);
}

/* Kept answers, queued failures and asks under way all end once, with the world. */
DOMT_TEST(world_may_end_while_answers_are_kept_queued_and_under_way)
{
    domt_asking_open_world(&world, &answering, &asker, other);
    send_call_to_asker(ask_thrice_and_sleep, NULL);
    domt_send_function_to_call(world.managers[0], asker, ask_thrice_and_sleep, NULL);
    (void)domt_run_state_queue(world.managers[0]);
    domt_world_end(&world);
    ck_assert_uint_eq(heard.resumed, 0);
    ck_assert_uint_ge(releases, 1); /* the answer that the conversation had kept was released */
}

DOMT_SUITE(60)
