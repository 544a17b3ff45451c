/* The library releases once what a notice or an ask owns, unless the handler took it. */
#include "house/family/life.h"
#include "tests/house/owning.h"
#include "tests/house/steps.h"

#include <domus/message.h>
#include <domus/receive.h>

#define MS UINT64_C(1000000)

static domt_owning *const now = &domt_owned;

/* --- notices --------------------------------------------------------------------------------- */

static int check_text_of_payload(domus_stack *stack, const domt_owner *payload)
{
    ck_assert_str_eq(payload->text, "hello");
    ck_assert_uint_eq(now->released + now->freed + 1, now->made);
    return 0;
}

DOMT_TEST(notice_is_released_when_its_handler_returns)
{
    domt_owning_open_world();
    now->handle = check_text_of_payload;
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_send_notice(1, domt_sizes[i], "hello");
        ck_assert_uint_eq(now->released, i + 1);
    }
    domt_owning_close_world();
}

static int take_payload_and_keep_text(domus_stack *stack, const domt_owner *payload)
{
    ck_assert_int_eq(domus_take(stack), 0);
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    now->text = payload->text;
    return 0;
}

DOMT_TEST(memory_of_a_taken_notice_belongs_to_the_handler)
{
    domt_owning_open_world();
    now->handle = take_payload_and_keep_text;
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_send_notice(1, domt_sizes[i], "taken");
        ck_assert_uint_eq(now->released, 0);
        ck_assert_str_eq(now->text, "taken");
        domt_free_text(now->text);
    }
    domt_owning_close_world();
}

static int expect_nothing_to_take(domus_stack *stack, const domus_answer *answer)
{
    /* The end of a sleep brings nothing that could be taken. */
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_uint_eq(now->released, now->made);
    return 0;
}

static int sleep_before_return(domus_stack *stack, const domt_owner *payload)
{
    now->hear = expect_nothing_to_take;
    return domus_sleep(stack, MS, domt_owning_count_and_check_answer);
}

DOMT_TEST(notice_is_released_when_its_handler_waits)
{
    domt_owning_open_world();
    now->handle = sleep_before_return;
    for (unsigned i = 0; i < 3; i++)
        domt_owning_send_notice(1, domt_sizes[i], "gone");
    ck_assert_uint_eq(now->released, 3);
    ck_assert_uint_eq(now->heard, 0);
    domt_pass_time(&now->world, 3 * MS);
    ck_assert_uint_eq(now->heard, 3);
    domt_owning_close_world();
}

/* --- asks and replies ------------------------------------------------------------------------ */

static int expect_pong(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    ck_assert_str_eq(domt_text_of_answer(answer), "pong");
    return 0;
}

static const domus_type *pong_type;

static int reply_pong_and_release_ask(domus_stack *stack, const domt_owner *asked)
{
    unsigned released = now->released;

    ck_assert_str_eq(asked->text, "ping");
    ck_assert_int_eq(domus_reply(stack, pong_type, domt_owning_make_payload("pong")), 0);
    ck_assert_uint_eq(now->released, released + 1);
    /* -EINVAL: the reply has released the ask, so nothing is left to take */
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(ask_is_released_with_its_reply_and_the_reply_after_its_step)
{
    domt_owning_open_world();
    now->handle = reply_pong_and_release_ask;
    now->hear = expect_pong;
    for (unsigned i = 0; i < 9; i++) {
        pong_type = domt_sizes[i / 3];
        domt_owning_send_ask(1, domt_sizes[i % 3], "ping");
        ck_assert_uint_eq(now->heard, i + 1);
        ck_assert_uint_eq(now->released, 2 * (i + 1));
    }
    domt_owning_close_world();
}

static const domus_type copies[3] = {{"8", 8, NULL}, {"700", 700, NULL}, {"5000", 5000, NULL}};
static const domus_type *copy_type;

/* Reply with bytes of the text that the ask owns. */
static int reply_with_bytes_of_text(domus_stack *stack, const domt_owner *asked)
{
    return domus_reply(stack, copy_type, asked->text + 1);
}

static int expect_bytes_of_echo(domus_stack *stack, const domus_answer *answer)
{
    static const char text[] = "echo";

    ck_assert_int_eq(answer->error, 0);
    for (size_t i = 0; i < answer->type->size; i++)
        ck_assert_int_eq(((const char *)answer->payload)[i], text[(i + 1) % sizeof text]);
    /* this payload owns nothing, so taking it changes nothing */
    ck_assert_int_eq(domus_take(stack), 0);
    return 0;
}

DOMT_TEST(reply_is_copied_before_what_the_ask_owns_is_released)
{
    domt_owning_open_world();
    now->handle = reply_with_bytes_of_text;
    now->hear = expect_bytes_of_echo;
    for (unsigned i = 0; i < 9; i++) {
        copy_type = &copies[i / 3];
        domt_owning_send_ask(1, domt_sizes[i % 3], "echo");
        ck_assert_uint_eq(now->released, i + 1);
    }
    domt_owning_close_world();
}

static const domus_type *passed_type;

static int take_and_reply_with_same_text(domus_stack *stack, const domt_owner *asked)
{
    ck_assert_int_eq(domus_take(stack), 0);
    ck_assert_int_eq(domus_reply(stack, passed_type, asked), 0);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(reply_may_own_what_was_taken_from_the_ask)
{
    domt_owning_open_world();
    now->handle = take_and_reply_with_same_text;
    now->hear = expect_pong;
    for (unsigned i = 0; i < 3; i++) {
        passed_type = domt_sizes[i];
        domt_owning_send_ask(1, domt_sizes[i], "pong");
        ck_assert_uint_eq(now->heard, i + 1);
        ck_assert_uint_eq(now->released, i + 1);
    }
    domt_owning_close_world();
}

/* --- asks that fail -------------------------------------------------------------------------- */

/* how the handler fails; 0: it replies; negative: it returns this errno; positive: it passes this
 * errno to domus_fail() */
static int how;
static bool takes;

static int fail_as_test_says(domus_stack *stack, const domt_owner *asked)
{
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        domt_free_text(asked->text);
    }
    if (how <= 0)
        return how;
    ck_assert_int_eq(domus_fail(stack, -how), 0);
    ck_assert_uint_eq(now->released + now->freed, now->made);
    return 0;
}

static int expect_failure_as_test_says(domus_stack *stack, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, how == 0 ? -ENOMSG : how < 0 ? how : -how);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_int_eq(domus_take_answer(stack, answer), -EINVAL);
    return 0;
}

DOMT_TEST(ask_that_fails_is_released_once_unless_it_was_taken)
{
    static const int ways[] = {0, -EIO, EPROTO};

    domt_owning_open_world();
    now->handle = fail_as_test_says;
    now->hear = expect_failure_as_test_says;
    for (unsigned i = 0; i < 18; i++) {
        how = ways[i % 3];
        takes = i >= 9;
        domt_owning_send_ask(1, domt_sizes[i / 3 % 3], "in vain");
        ck_assert_uint_eq(now->heard, i + 1);
        ck_assert_uint_eq(now->released, i < 9 ? i + 1 : 9);
    }
    domt_owning_close_world();
}

/* --- asks that wait -------------------------------------------------------------------------- */

static int reply_after_sleep(domus_stack *stack, const domus_answer *answer)
{
    if (answer->type != NULL)
        return expect_pong(stack, answer);
    ck_assert_str_eq(now->kept->text, "ping"); /* the text that the kept ask owns is still valid */
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    ck_assert_int_eq(domus_reply(stack, &domt_small, domt_owning_make_payload("pong")), 0);
    return 0;
}

static int sleep_before_reply(domus_stack *stack, const domt_owner *asked)
{
    now->kept = asked;
    return domus_sleep(stack, MS, domt_owning_count_and_check_answer);
}

DOMT_TEST(asks_payload_stays_while_its_conversation_waits)
{
    domt_owning_open_world();
    now->handle = sleep_before_reply;
    now->hear = reply_after_sleep;
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_send_ask(1, domt_sizes[i], "ping");
        ck_assert_uint_eq(now->released, 2 * i);
        domt_pass_time(&now->world, 3 * MS);
        ck_assert_uint_eq(now->released, 2 * (i + 1));
    }
    domt_owning_close_world();
}

/* Handle an ask of actor 0 in actor 1: ask actor 2, and reply with its answer. */
static int reply_with_answer_of_actor_2(domus_stack *stack, const domus_answer *answer)
{
    if (domus_self(stack).house == now->actors[0].house)
        return expect_pong(stack, answer);
    unsigned released = now->released;
    ck_assert_int_eq(domus_take_answer(stack, answer), 0);
    /* -EALREADY: in a resumed function domus_take() means the answer, which was taken just now, and
     * not the ask */
    ck_assert_int_eq(domus_take(stack), -EALREADY);
    ck_assert_int_eq(domus_reply(stack, &domt_middle, answer->payload), 0);
    ck_assert_uint_eq(now->released, released + 1); /* the reply has released the ask */
    return 0;
}

static int ask_actor_2_or_reply_pong(domus_stack *stack, const domt_owner *asked)
{
    if (domus_self(stack).house == now->actors[1].house)
        return domt_owning_ask_in_handler(stack, 2, &domt_small, "ping", 0);
    ck_assert_str_eq(asked->text, "ping");
    return domus_reply(stack, &domt_middle, domt_owning_make_payload("pong"));
}

DOMT_TEST(take_in_a_resumed_step_takes_the_answer)
{
    domt_owning_open_world();
    now->handle = ask_actor_2_or_reply_pong;
    now->hear = reply_with_answer_of_actor_2;
    domt_owning_send_ask(1, &domt_small, "ping");
    ck_assert_uint_eq(now->heard, 2);
    ck_assert_uint_eq(now->made, 3);
    ck_assert_uint_eq(now->released, 3);
    domt_owning_close_world();
}

/* --- kept ------------------------------------------------------------------------------------ */

static int keep_ask_perhaps_taken(domus_stack *stack, const domt_owner *asked)
{
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        now->text = asked->text;
    }
    now->kept = asked;
    ck_assert_int_eq(domus_keep(stack, &now->ask), 0);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

static int reply_to_kept(domus_stack *stack, void *unused)
{
    ck_assert_str_eq(now->kept->text, "ping");
    ck_assert_int_eq(
        domus_kept_reply(stack, now->ask, &domt_small, domt_owning_make_payload("pong")), 0);
    return 0;
}

static int fail_kept_ask(domus_stack *stack, void *unused)
{
    return domus_kept_fail(stack, now->ask, -EIO);
}

static int try_to_forward_kept(domus_stack *stack, void *unused)
{
    now->handle = reply_pong_and_release_ask;
    pong_type = &domt_small;
    ck_assert_int_eq(domus_kept_forward(stack, now->ask, (domus_address){NULL, 0}),
                     takes ? -EALREADY : -ESTALE);
    ck_assert_int_eq(domus_kept_forward(stack, now->ask, now->actors[2]), takes ? -EALREADY : 0);
    return takes ? domus_kept_fail(stack, now->ask, -EIO) : 0;
}

static int (*const ends_of_kept[])(domus_stack *, void *) = {reply_to_kept, fail_kept_ask,
                                                             try_to_forward_kept};

DOMT_TEST(kept_ask_is_released_when_it_leaves)
{
    for (unsigned i = 0; i < 18; i++) {
        domt_owning_open_world();
        takes = i >= 9;
        now->handle = keep_ask_perhaps_taken;
        domt_owning_send_ask(1, domt_sizes[i % 3], "ping");
        ck_assert_uint_eq(now->released, 0);
        domt_owning_run_in_actor(1, ends_of_kept[i / 3 % 3], NULL);
        ck_assert_uint_eq(now->heard, 1);
        if (takes)
            domt_free_text(now->text);
        domt_owning_close_world();
    }
}

DOMT_TEST(kept_ask_is_released_when_its_actor_stops)
{
    for (unsigned i = 0; i < 2; i++) {
        domt_owning_open_world();
        takes = i == 1;
        now->handle = keep_ask_perhaps_taken;
        domt_owning_send_ask(1, &domt_middle, "ping");
        domt_owning_stop_actor(now->actors[1]);
        ck_assert_uint_eq(now->released, 1 - i);
        ck_assert_uint_eq(now->heard, 1);
        if (takes)
            domt_free_text(now->text);
        domt_owning_close_world();
    }
}

/* --- passed on ------------------------------------------------------------------------------- */

/* Let actor 1 forward a message to actor 2, whose handler is its last owner. */
static int forward_or_take(domus_stack *stack, const domt_owner *payload)
{
    if (domus_self(stack).house != now->actors[1].house)
        return check_text_of_payload(stack, payload);
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_forward(stack, now->actors[2]), -EALREADY);
        domt_free_text(payload->text);
        return 0;
    }
    ck_assert_int_eq(domus_forward(stack, (domus_address){NULL, 0}), -ESTALE);
    ck_assert_int_eq(domus_forward(stack, now->actors[2]), 0);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(forwarded_message_takes_along_the_memory_that_it_owns)
{
    domt_owning_open_world();
    now->handle = forward_or_take;
    for (unsigned i = 0; i < 12; i++) {
        takes = i >= 6;
        unsigned handled = now->handled;
        if (i % 2 == 0)
            domt_owning_send_notice(1, domt_sizes[i / 2 % 3], "hello");
        else
            domt_owning_send_ask(1, domt_sizes[i / 2 % 3], "hello");
        ck_assert_uint_eq(now->handled, handled + (takes ? 1 : 2));
        ck_assert_uint_eq(now->released + now->freed, i + 1);
        ck_assert_uint_eq(now->freed, takes ? i - 5 : 0);
    }
    domt_owning_close_world();
}

static int stash_or_take(domus_stack *stack, const domt_owner *payload)
{
    if (now->handled > 2)
        return 0;
    if (takes) {
        ck_assert_int_eq(domus_take(stack), 0);
        ck_assert_int_eq(domus_stash(stack), -EALREADY);
        domt_free_text(payload->text);
        return 0;
    }
    ck_assert_int_eq(domus_stash(stack), 0);
    ck_assert_int_eq(domus_take(stack), -EINVAL);
    return 0;
}

DOMT_TEST(stashed_message_is_released_after_its_handling)
{
    /* in case 0 the stashed message is handled again, in case 1 its actor is stopped, and in case 2
     * the message is taken, so it cannot be stashed */
    for (unsigned i = 0; i < 3; i++) {
        domt_owning_open_world();
        takes = i == 2;
        now->handle = stash_or_take;
        domt_owning_send_notice(1, &domt_small, "aside");
        domt_owning_send_ask(1, &domt_large, "aside");
        ck_assert_uint_eq(now->released, 0);
        if (i == 0)
            domt_owning_run_in_actor(1, domt_unstash_all, NULL);
        else
            domt_owning_stop_actor(now->actors[1]);
        ck_assert_uint_eq(now->handled, i == 0 ? 4 : 2);
        ck_assert_uint_eq(now->released, takes ? 0 : 2);
        ck_assert_uint_eq(now->heard, 1);
        domt_owning_close_world();
    }
}

DOMT_SUITE(60)
