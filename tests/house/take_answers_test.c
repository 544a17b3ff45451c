/* The library releases once what an answer or a received message owns, unless the resumed function
 * took it: with one answer and with many. */
#include "house/directory/group.h"
#include "house/family/life.h"
#include "tests/house/owning.h"

#include <domus/group.h>
#include <domus/receive.h>

#define MS UINT64_C(1000000)

static domt_owning *const now = &domt_owned;

static int reply_pong(domus_stack *stack, const domt_owner *asked)
{
    return domus_reply(stack, &domt_middle, domt_owning_make_payload("pong"));
}

static void open_world_with_hearer(int (*hear)(domus_stack *, const domus_answer *))
{
    domt_owning_open_world();
    now->handle = reply_pong;
    now->hear = hear;
}

/* --- one by one ------------------------------------------------------------------------------ */

static int take_answer_and_free(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(domus_take_answer(stack, answer), 0);
    ck_assert_int_eq(domus_take_answer(stack, answer), -EALREADY);
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    ck_assert_str_eq(domt_text_of_answer(answer), "pong");
    now->text = domt_text_of_answer(answer);
    return 0;
}

DOMT_TEST(answer_that_was_taken_is_not_released)
{
    open_world_with_hearer(take_answer_and_free);
    domt_owning_send_ask(1, &domt_small, "ping");
    ck_assert_uint_eq(now->released, 1); /* the payload of the ask was released */
    domt_free_text(now->text);
    domt_owning_close_world();
}

static int take_second_and_wait_for_next(domus_stack *stack, const domus_answer *answer)
{
    /* The payloads of three asks are released as the asks are answered, and each answer after its
     * step. */
    ck_assert_uint_eq(now->released + now->freed, 3 + now->heard - 1);
    if (answer->tag == 2) {
        ck_assert_int_eq(domus_take(stack), 0);
        domt_free_text(domt_text_of_answer(answer));
    }
    return now->heard < 2 ? domus_wait_first(stack, domt_owning_count_and_check_answer) : 0;
}

static int ask_three_for_first(domus_stack *stack, void *unused)
{
    for (uint64_t tag = 1; tag <= 3; tag++)
        ck_assert_int_eq(domt_owning_add_ask_in_handler(stack, 1, &domt_small, "ping", tag), 0);
    return domus_wait_first(stack, domt_owning_count_and_check_answer);
}

DOMT_TEST(answers_are_released_one_by_one_and_those_not_shown_at_the_end)
{
    open_world_with_hearer(take_second_and_wait_for_next);
    domt_owning_run_in_actor(0, ask_three_for_first, NULL);
    ck_assert_uint_eq(now->heard, 2);
    ck_assert_uint_eq(now->freed, 1);
    /* three asks, the answer that was shown first and not taken, and one that was never shown */
    ck_assert_uint_eq(now->released, 3 + 1 + 1);
    domt_owning_close_world();
}

/* --- all ------------------------------------------------------------------------------------- */

#define ALL 5

static const domus_answer *answers[ALL];

/* Record the answers, with the error of the first failed one, in whatever order they came. */
static void record_answers_of_list(const domus_answer *answer)
{
    uint32_t count = 1;

    for (; answer != NULL; answer = answer->next) {
        if (answer->error != 0)
            answers[0] = answer;
        else
            answers[count++] = answer;
    }
    ck_assert_uint_eq(count, ALL);
}

/* Ask five times; the fifth ask goes to nobody. */
static int ask_five_times_and_wait_for_all(domus_stack *stack, void *unused)
{
    unsigned before = now->released;

    for (uint64_t tag = 0; tag < ALL - 1; tag++)
        ck_assert_int_eq(domt_owning_add_ask_in_handler(stack, 1, domt_sizes[tag % 3], "ping", tag),
                         0);
    ck_assert_int_eq(domus_ask_add(stack, (domus_address){NULL, 0}, &domt_small,
                                   domt_owning_make_payload("ping"), 0, ALL - 1),
                     0);
    /* the ask to nobody was not sent, and its payload is released at once */
    ck_assert_uint_eq(now->released, before + 1);
    return domus_wait_all(stack, domt_owning_count_and_check_answer);
}

static int expect_asks_released(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_uint_eq(now->released, ALL); /* the payloads of all asks were released */
    return 0;
}

DOMT_TEST(all_answers_are_released_also_those_not_looked_at)
{
    open_world_with_hearer(expect_asks_released);
    domt_owning_run_in_actor(0, ask_five_times_and_wait_for_all, NULL);
    ck_assert_uint_eq(now->heard, 1);
    ck_assert_uint_eq(now->released, ALL + ALL - 1);
    domt_owning_close_world();
}

/* Take some of the answers, in another order than the list has. */
static int take_some_answers(domus_stack *stack, const domus_answer *answer)
{
    const domus_answer copy = *answer;

    record_answers_of_list(answer);
    ck_assert_int_ne(answers[0]->error, 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[0]), -EINVAL);
    ck_assert_int_eq(domus_take_answer(stack, answers[3]), 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[1]), 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[3]), -EALREADY);
    ck_assert_int_eq(domus_take_answer(stack, answers[2]), 0);
    /* domus_take_answer() refuses a copy of an answer of the list */
    ck_assert_int_eq(domus_take_answer(stack, &copy), -EINVAL);
    for (uint32_t i = 1; i <= 3; i++) {
        ck_assert_str_eq(domt_text_of_answer(answers[i]), "pong");
        domt_free_text(domt_text_of_answer(answers[i]));
    }
    return 0;
}

DOMT_TEST(some_of_all_answers_may_be_taken_in_any_order)
{
    open_world_with_hearer(take_some_answers);
    for (unsigned i = 1; i <= 2; i++) { /* the list of the second time has other answers */
        domt_owning_run_in_actor(0, ask_five_times_and_wait_for_all, NULL);
        ck_assert_uint_eq(now->freed, 3 * i);
        ck_assert_uint_eq(now->released, (ALL + 1) * i);
    }
    domt_owning_close_world();
}

static int try_to_take_copy_of_answer(domus_stack *stack, const domus_answer *answer)
{
    const domus_answer copy = *answer;

    ck_assert_ptr_null(answer->next);
    ck_assert_int_eq(domus_take_answer(stack, &copy), -EINVAL);
    return 0;
}

static int ask_once_and_wait_for_all(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domt_owning_add_ask_in_handler(stack, 1, &domt_small, "ping", 1), 0);
    return domus_wait_all(stack, domt_owning_count_and_check_answer);
}

DOMT_TEST(list_of_answers_is_searched_without_the_one_before)
{
    open_world_with_hearer(take_some_answers);
    domt_owning_run_in_actor(0, ask_five_times_and_wait_for_all, NULL);
    now->hear = try_to_take_copy_of_answer;
    domt_owning_run_in_actor(0, ask_once_and_wait_for_all, NULL);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close_world();
}

static int take_last_then_all_answers(domus_stack *stack, const domus_answer *answer)
{
    record_answers_of_list(answer);
    ck_assert_int_eq(domus_take_answer(stack, answers[4]), 0); /* takes the last answer alone */
    ck_assert_int_eq(domus_take(stack), 0);                    /* takes all other answers */
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    ck_assert_int_eq(domus_take_answer(stack, answers[2]), -EALREADY);
    for (uint32_t i = 1; i < ALL; i++)
        domt_free_text(domt_text_of_answer(answers[i]));
    return 0;
}

DOMT_TEST(all_answers_may_be_taken_at_once)
{
    open_world_with_hearer(take_last_then_all_answers);
    domt_owning_run_in_actor(0, ask_five_times_and_wait_for_all, NULL);
    ck_assert_uint_eq(now->freed, ALL - 1);
    domt_owning_close_world();
}

static int try_to_take_nothing(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_int_eq(domus_take_answer(stack, answer), -EINVAL);
    return 0;
}

static int sleep_and_wait_for_all(domus_stack *stack, void *count)
{
    for (uintptr_t i = (uintptr_t)count; i != 0; i--)
        ck_assert_int_eq(domus_sleep_add(stack, MS, 0), 0);
    return domus_wait_all(stack, domt_owning_count_and_check_answer);
}

DOMT_TEST(where_no_answer_owns_anything_there_is_nothing_to_take)
{
    open_world_with_hearer(try_to_take_nothing);
    domt_owning_run_in_actor(0, sleep_and_wait_for_all, (void *)0);
    ck_assert_uint_eq(now->heard, 1);
    domt_owning_run_in_actor(0, sleep_and_wait_for_all, (void *)3);
    domt_pass_time(&now->world, 3 * MS);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close_world();
}

static int sleep_after_first_list(domus_stack *stack, const domus_answer *answer)
{
    if (now->heard == 1)
        return domus_sleep(stack, MS, domt_owning_count_and_check_answer);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_uint_eq(now->released, ALL + ALL - 1);
    return 0;
}

DOMT_TEST(answers_are_gone_when_their_step_has_returned)
{
    open_world_with_hearer(sleep_after_first_list);
    domt_owning_run_in_actor(0, ask_five_times_and_wait_for_all, NULL);
    domt_pass_time(&now->world, 3 * MS);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close_world();
}

/* --- received -------------------------------------------------------------------------------- */

static const domus_pattern any = {.types = NULL};
static bool takes;

static int receive_any_message(domus_stack *stack, void *unused)
{
    return domus_receive(stack, &any, domt_owning_count_and_check_answer);
}

static int take_received_message(domus_stack *stack, const domus_answer *answer)
{
    if (now->heard != 1)
        return 0; /* the first message heard is the reply, which is not taken */
    ck_assert_str_eq(domt_text_of_answer(answer), "hello");
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_take_answer(stack, answer), -EALREADY);
        domt_free_text(domt_text_of_answer(answer));
    }
    if (answer->type != &domt_middle)
        return 0;
    unsigned released = now->released;
    ck_assert_int_eq(domus_reply(stack, &domt_small, domt_owning_make_payload("pong")), 0);
    ck_assert_uint_eq(now->released, released + !takes);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(received_message_is_released_after_its_step)
{
    /* twice each: a notice, an ask that is answered, an ask that is not answered */
    for (unsigned i = 0; i < 6; i++) {
        open_world_with_hearer(take_received_message);
        takes = i >= 3;
        domt_owning_run_in_actor(1, receive_any_message, NULL);
        if (i % 3 == 0)
            domt_owning_send_notice(1, &domt_small, "hello");
        else
            domt_owning_send_ask(1, i % 3 == 1 ? &domt_middle : &domt_large, "hello");
        ck_assert_uint_eq(now->heard, i % 3 == 0 ? 1 : 2);
        ck_assert_uint_eq(now->freed, takes);
        domt_owning_close_world();
    }
}

/* --- shared ---------------------------------------------------------------------------------- */

static domi_groups groups;
static domus_group group;

static int open_and_join_group(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_group_open(stack, "readers", &group), 0);
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    return 0;
}

static int publish_text(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_publish(stack, group, &domt_small, domt_owning_make_payload("news")), 0);
    return 0;
}

static void open_group(uint32_t members)
{
    static const uint64_t key[2] = {1, 2};

    domt_owning_open_world();
    ck_assert_int_eq(domi_groups_init(&groups, 8, 8, 2, 0, key), 0);
    for (uint32_t i = 0; i < 3; i++)
        now->world.managers[i]->directory.groups = &groups;
    for (uint32_t i = 0; i < members; i++)
        domt_owning_run_in_actor(i, open_and_join_group, NULL);
}

static void end_world_of_group_and_check_counts(void)
{
    domt_settle_world(&now->world);
    domt_world_end(&now->world);
    ck_assert_uint_eq(now->made, now->released + now->freed);
    domi_groups_fini(&groups);
}

static int check_news_cannot_be_taken(domus_stack *stack, const domt_owner *payload)
{
    ck_assert_str_eq(payload->text, "news");
    ck_assert_uint_eq(now->released, 0);
    ck_assert_int_eq(domus_take(stack), -EPERM);
    ck_assert_int_eq(domus_take(stack), -EPERM);
    return 0;
}

DOMT_TEST(publication_cannot_be_taken_and_is_released_after_its_last_reader)
{
    open_group(3);
    now->handle = check_news_cannot_be_taken;
    domt_owning_run_in_actor(0, publish_text, NULL);
    ck_assert_uint_eq(now->handled, 3);
    ck_assert_uint_eq(now->released, 1);
    end_world_of_group_and_check_counts();
}

/* Take a notice and a publication that were received together: domus_take() takes all answers or
 * none. */
static int try_to_take_all_with_publication(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_ptr_nonnull(answer->next);
    const domus_answer *news = domt_text_of_answer(answer)[0] == 'n' ? answer : answer->next;
    const domus_answer *own = news == answer ? answer->next : answer;
    ck_assert_int_eq(domus_take(stack), -EPERM);
    ck_assert_int_eq(domus_take_answer(stack, news), -EPERM);
    /* the refused domus_take() has not taken this message */
    ck_assert_int_eq(domus_take_answer(stack, own), 0);
    domt_free_text(domt_text_of_answer(own));
    return 0;
}

static int receive_two_and_wait_for_all(domus_stack *stack, void *unused)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(domus_receive_add(stack, &any, DOMUS_FOR_EVER, 0), 0);
    return domus_wait_all(stack, domt_owning_count_and_check_answer);
}

DOMT_TEST(all_answers_of_a_list_are_taken_or_none)
{
    for (int order = 0; order < 2; order++) {
        open_group(2);
        now->hear = try_to_take_all_with_publication;
        domt_owning_run_in_actor(1, receive_two_and_wait_for_all, NULL);
        if (order == 0)
            domt_owning_send_notice(1, &domt_small, "own");
        domt_owning_run_in_actor(2, publish_text, NULL);
        if (order == 1)
            domt_owning_send_notice(1, &domt_small, "own");
        ck_assert_uint_eq(now->heard, 1);
        ck_assert_uint_eq(now->released, 1);
        ck_assert_uint_eq(now->freed, 1);
        end_world_of_group_and_check_counts();
    }
}

DOMT_SUITE(60)
