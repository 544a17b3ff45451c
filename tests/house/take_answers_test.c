/* The library releases once what an answer owns, or a received message, unless the resumed function
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
    return domus_reply(stack, &domt_middle, domt_own("pong"));
}

static void open_world(int (*hear)(domus_stack *, const domus_answer *))
{
    domt_owning_open();
    now->handle = reply_pong;
    now->hear = hear;
}

/* --- one by one ------------------------------------------------------------------------------ */

static int take_one(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(domus_take_answer(stack, answer), 0);
    ck_assert_int_eq(domus_take_answer(stack, answer), -EALREADY);
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    ck_assert_str_eq(domt_text_of(answer), "pong");
    now->text = domt_text_of(answer);
    return 0;
}

DOMT_TEST(answer_that_was_taken_is_not_released)
{
    open_world(take_one);
    domt_own_ask(1, &domt_small, "ping");
    ck_assert_uint_eq(now->released, 1); /* the ask was released */
    domt_free_text(now->text);
    domt_owning_close();
}

static int show_the_next(domus_stack *stack, const domus_answer *answer)
{
    /* Three asks were released as they were answered, and each answer after its step. */
    ck_assert_uint_eq(now->released + now->freed, 3 + now->heard - 1);
    if (answer->tag == 2) {
        ck_assert_int_eq(domus_take(stack), 0);
        domt_free_text(domt_text_of(answer));
    }
    return now->heard < 2 ? domus_wait_first(stack, domt_own_hear) : 0;
}

static int ask_three_for_first(domus_stack *stack, void *unused)
{
    for (uint64_t tag = 1; tag <= 3; tag++)
        ck_assert_int_eq(domt_own_add(stack, 1, &domt_small, "ping", tag), 0);
    return domus_wait_first(stack, domt_own_hear);
}

DOMT_TEST(answers_are_released_one_by_one_and_those_not_shown_at_the_end)
{
    open_world(show_the_next);
    domt_own_do(0, ask_three_for_first, NULL);
    ck_assert_uint_eq(now->heard, 2);
    ck_assert_uint_eq(now->freed, 1);
    /* the asks, the first answer, and one that was never shown */
    ck_assert_uint_eq(now->released, 3 + 1 + 1);
    domt_owning_close();
}

/* --- all ------------------------------------------------------------------------------------- */

#define ALL 5

static const domus_answer *answers[ALL];

/* Record the answer that failed first, whenever it came. */
static void record_list(const domus_answer *answer)
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

/* Ask five times; the last ask goes to no actor. */
static int ask_all(domus_stack *stack, void *unused)
{
    unsigned before = now->released;

    for (uint64_t tag = 0; tag < ALL - 1; tag++)
        ck_assert_int_eq(domt_own_add(stack, 1, domt_sizes[tag % 3], "ping", tag), 0);
    ck_assert_int_eq(
        domus_ask_add(stack, (domus_address){NULL, 0}, &domt_small, domt_own("ping"), 0, ALL - 1),
        0);
    ck_assert_uint_eq(now->released, before + 1); /* the ask that was never sent */
    return domus_wait_all(stack, domt_own_hear);
}

static int look_at_none(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_uint_eq(now->released, ALL); /* the asks were released */
    return 0;
}

DOMT_TEST(all_answers_are_released_also_those_not_looked_at)
{
    open_world(look_at_none);
    domt_own_do(0, ask_all, NULL);
    ck_assert_uint_eq(now->heard, 1);
    ck_assert_uint_eq(now->released, ALL + ALL - 1);
    domt_owning_close();
}

/* Take some of the answers, in another order than that of the list. */
static int take_some(domus_stack *stack, const domus_answer *answer)
{
    const domus_answer copy = *answer;

    record_list(answer);
    ck_assert_int_ne(answers[0]->error, 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[0]), -EINVAL);
    ck_assert_int_eq(domus_take_answer(stack, answers[3]), 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[1]), 0);
    ck_assert_int_eq(domus_take_answer(stack, answers[3]), -EALREADY);
    ck_assert_int_eq(domus_take_answer(stack, answers[2]), 0);
    /* a copy is not an answer of this list */
    ck_assert_int_eq(domus_take_answer(stack, &copy), -EINVAL);
    for (uint32_t i = 1; i <= 3; i++) {
        ck_assert_str_eq(domt_text_of(answers[i]), "pong");
        domt_free_text(domt_text_of(answers[i]));
    }
    return 0;
}

DOMT_TEST(some_of_all_answers_may_be_taken_in_any_order)
{
    open_world(take_some);
    for (unsigned i = 1; i <= 2; i++) { /* the second list has other answers */
        domt_own_do(0, ask_all, NULL);
        ck_assert_uint_eq(now->freed, 3 * i);
        ck_assert_uint_eq(now->released, (ALL + 1) * i);
    }
    domt_owning_close();
}

static int take_a_copy(domus_stack *stack, const domus_answer *answer)
{
    const domus_answer copy = *answer;

    ck_assert_ptr_null(answer->next);
    ck_assert_int_eq(domus_take_answer(stack, &copy), -EINVAL);
    return 0;
}

static int ask_one_for_all(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domt_own_add(stack, 1, &domt_small, "ping", 1), 0);
    return domus_wait_all(stack, domt_own_hear);
}

DOMT_TEST(list_of_answers_is_searched_without_the_one_before)
{
    open_world(take_some);
    domt_own_do(0, ask_all, NULL);
    now->hear = take_a_copy;
    domt_own_do(0, ask_one_for_all, NULL);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close();
}

static int take_all(domus_stack *stack, const domus_answer *answer)
{
    record_list(answer);
    ck_assert_int_eq(domus_take_answer(stack, answers[4]), 0); /* takes the last answer */
    ck_assert_int_eq(domus_take(stack), 0);                    /* takes the others */
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    ck_assert_int_eq(domus_take_answer(stack, answers[2]), -EALREADY);
    for (uint32_t i = 1; i < ALL; i++)
        domt_free_text(domt_text_of(answers[i]));
    return 0;
}

DOMT_TEST(all_answers_may_be_taken_at_once)
{
    open_world(take_all);
    domt_own_do(0, ask_all, NULL);
    ck_assert_uint_eq(now->freed, ALL - 1);
    domt_owning_close();
}

static int take_in_vain(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_int_eq(domus_take_answer(stack, answer), -EINVAL);
    return 0;
}

static int ask_nobody(domus_stack *stack, void *count)
{
    for (uintptr_t i = (uintptr_t)count; i != 0; i--)
        ck_assert_int_eq(domus_sleep_add(stack, MS, 0), 0);
    return domus_wait_all(stack, domt_own_hear);
}

DOMT_TEST(where_no_answer_owns_anything_there_is_nothing_to_take)
{
    open_world(take_in_vain);
    domt_own_do(0, ask_nobody, (void *)0);
    ck_assert_uint_eq(now->heard, 1);
    domt_own_do(0, ask_nobody, (void *)3);
    domt_pass(&now->world, 3 * MS);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close();
}

static int wait_then_sleep(domus_stack *stack, const domus_answer *answer)
{
    if (now->heard == 1)
        return domus_sleep(stack, MS, domt_own_hear);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_uint_eq(now->released, ALL + ALL - 1);
    return 0;
}

DOMT_TEST(answers_are_gone_when_their_step_has_returned)
{
    open_world(wait_then_sleep);
    domt_own_do(0, ask_all, NULL);
    domt_pass(&now->world, 3 * MS);
    ck_assert_uint_eq(now->heard, 2);
    domt_owning_close();
}

/* --- received -------------------------------------------------------------------------------- */

static const domus_pattern any = {.types = NULL};
static bool takes;

static int receive_one(domus_stack *stack, void *unused)
{
    return domus_receive(stack, &any, domt_own_hear);
}

static int take_received(domus_stack *stack, const domus_answer *answer)
{
    if (now->heard != 1)
        return 0; /* takes the reply */
    ck_assert_str_eq(domt_text_of(answer), "hello");
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_take_answer(stack, answer), -EALREADY);
        domt_free_text(domt_text_of(answer));
    }
    if (answer->type != &domt_middle)
        return 0;
    unsigned released = now->released;
    ck_assert_int_eq(domus_reply(stack, &domt_small, domt_own("pong")), 0);
    ck_assert_uint_eq(now->released, released + !takes);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(received_message_is_released_after_its_step)
{
    for (unsigned i = 0; i < 6; i++) { /* a notice, an ask that is answered, and one that is not */
        open_world(take_received);
        takes = i >= 3;
        domt_own_do(1, receive_one, NULL);
        if (i % 3 == 0)
            domt_own_notice(1, &domt_small, "hello");
        else
            domt_own_ask(1, i % 3 == 1 ? &domt_middle : &domt_large, "hello");
        ck_assert_uint_eq(now->heard, i % 3 == 0 ? 1 : 2);
        ck_assert_uint_eq(now->freed, takes);
        domt_owning_close();
    }
}

/* --- shared ---------------------------------------------------------------------------------- */

static domi_groups groups;
static domus_group group;

static int join(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_group_open(stack, "readers", &group), 0);
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    return 0;
}

static int publish(domus_stack *stack, void *unused)
{
    ck_assert_int_eq(domus_publish(stack, group, &domt_small, domt_own("news")), 0);
    return 0;
}

static void open_group(uint32_t members)
{
    static const uint64_t key[2] = {1, 2};

    domt_owning_open();
    ck_assert_int_eq(domi_groups_init(&groups, 8, 8, 2, 0, key), 0);
    for (uint32_t i = 0; i < 3; i++)
        now->world.managers[i]->directory.groups = &groups;
    for (uint32_t i = 0; i < members; i++)
        domt_own_do(i, join, NULL);
}

static void close_group(void)
{
    domt_settle(&now->world);
    domt_world_end(&now->world);
    ck_assert_uint_eq(now->made, now->released + now->freed);
    domi_groups_fini(&groups);
}

static int read_news(domus_stack *stack, const domt_owner *payload)
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
    now->handle = read_news;
    domt_own_do(0, publish, NULL);
    ck_assert_uint_eq(now->handled, 3);
    ck_assert_uint_eq(now->released, 1);
    close_group();
}

/* Take a notice and a publication that were received together: all or none. */
static int take_all_or_none(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_ptr_nonnull(answer->next);
    const domus_answer *news = domt_text_of(answer)[0] == 'n' ? answer : answer->next;
    const domus_answer *own = news == answer ? answer->next : answer;
    ck_assert_int_eq(domus_take(stack), -EPERM);
    ck_assert_int_eq(domus_take_answer(stack, news), -EPERM);
    /* this message was not taken with the others */
    ck_assert_int_eq(domus_take_answer(stack, own), 0);
    domt_free_text(domt_text_of(own));
    return 0;
}

static int receive_two(domus_stack *stack, void *unused)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(domus_receive_add(stack, &any, DOMUS_FOR_EVER, 0), 0);
    return domus_wait_all(stack, domt_own_hear);
}

DOMT_TEST(all_are_taken_or_none)
{
    for (int order = 0; order < 2; order++) {
        open_group(2);
        now->hear = take_all_or_none;
        domt_own_do(1, receive_two, NULL);
        if (order == 0)
            domt_own_notice(1, &domt_small, "own");
        domt_own_do(2, publish, NULL);
        if (order == 1)
            domt_own_notice(1, &domt_small, "own");
        ck_assert_uint_eq(now->heard, 1);
        ck_assert_uint_eq(now->released, 1);
        ck_assert_uint_eq(now->freed, 1);
        close_group();
    }
}

DOMT_SUITE(60)
