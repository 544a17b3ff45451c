/* Grains at their limits: too many grains, too many messages, wrong kinds and keys, grains that
 * cannot be made, and no memory. */
#include "tests/house/grains.h"
#include "tests/house/steps.h"

#include "base/memory.h"
#include "house/message/owned.h"
#include "house/message/pool.h"
#include "house/message/stop.h"

#include <string.h>

/* --- limits ------------------------------------------------------------------------------------
 */

DOMT_TEST(grain_above_living_max_is_refused_and_the_others_go_on)
{
    domt_cart_kind.living_max = 2;
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grain_send_notice(1, "b", &domt_number, 1);
    ck_assert_int_eq(domt_grain_try_notice(0, "c", &domt_number, 9), -EAGAIN);
    domt_grain_ask_as_agent(1, "c", &domt_which);
    domt_grain_send_notice(0, "a", &domt_number, 2);
    domt_grains_settle_world();
    ck_assert_int_eq(domt_books.errors[0], -EAGAIN);
    ck_assert_uint_eq(domt_books.handled, 3);
    ck_assert_uint_eq(domt_books.made, 2);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 2);
    domt_grains_pass_ms(15);
    domt_grain_send_notice(0, "c", &domt_number, 3);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.handled, 4);
    domt_grains_end_world();
}

DOMT_TEST(mail_that_is_held_has_the_bound_of_the_mailbox)
{
    domt_cart_kind.options.mailbox_max = 4;
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[0], domt_grain_address_of_life("a")), 0);
    for (uint32_t i = 1; i < 5; i++)
        domt_grain_send_notice(0, "a", &domt_number, i);
    ck_assert_int_eq(domt_grain_try_notice(0, "a", &domt_number, 9), -ENOBUFS);
    ck_assert_uint_eq(DOMT_SUM(&domt_grain_world, refusals), 1);
    domt_grain_world.managers[0]->memory.busy = true;
    ck_assert_int_eq(domt_grain_try_notice(0, "a", &domt_number, 9), -EBUSY);
    domt_grain_world.managers[0]->memory.busy = false;
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(5);
    ck_assert_uint_eq(domt_books.made, 2);
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[0], domt_grain_address_of_life("a")), 0);
    for (uint32_t i = 5; i < 9; i++) /* as many messages as before may be held for the next life */
        domt_grain_send_notice(0, "a", &domt_number, i);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(9);
    domt_grains_end_world();
}

DOMT_TEST(messages_that_a_life_gives_back_count_for_the_bound)
{
    domt_cart_kind.options.mailbox_max = 4;
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    for (uint32_t i = 1; i < 5; i++)
        domt_grain_send_notice(0, "a", &domt_number, i);
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[1], domt_grain_address_of_life("a")), 0);
    (void)domt_take_arrivals_and_timers(domt_grain_world.managers[1]);
    (void)domt_run_state_queue(domt_grain_world.managers[1]);
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[1], domt_grain_address_of_life("a")), 0);
    uint32_t sent = 5;
    while (domt_grain_try_notice(0, "a", &domt_number, sent) == 0)
        sent++;
    ck_assert_uint_le(sent, 5 + 4);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(sent);
    domt_grains_end_world();
}

static const char *const wrong_keys[] = {
    NULL, "", "a b", "a\n", "1234567890123456789012345678901234567890123456789012345678901234"};

DOMT_TEST(wrong_keys_and_handles_are_refused)
{
    const char longest[] = "123456789012345678901234567890123456789012345678901234567890123";

    domt_grains_begin_world();
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_int_eq(domt_grain_try_notice(0, wrong_keys[i], &domt_number, 9), -EINVAL);
        domt_grain_ask_as_agent(0, wrong_keys[i], &domt_which);
        domt_grains_settle_world();
        ck_assert_int_eq(domt_books.errors[i], -EINVAL);
    }
    domt_grain_send_notice(0, longest, &domt_number, 0);
    domt_grains_settle_world();
    ck_assert_str_eq(domt_books.key, longest);
    const domus_grains carts = domt_carts;
    domt_carts = (domus_grains){NULL};
    ck_assert_int_eq(domt_grain_try_notice(0, "a", &domt_number, 9), -EINVAL);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_carts = carts;
    domt_grains_end_world();
}

static int try_too_large_payload(domus_stack *stack, void *nothing)
{
    static const domus_type huge = {.name = "huge", .size = 65536};

    ck_assert_int_eq(domus_grain_notice(stack, domt_carts, "a", &huge, NULL), -EMSGSIZE);
    ck_assert_int_eq(domus_grain_ask(stack, domt_carts, "a", &huge, NULL, NULL), -EMSGSIZE);
    return 0;
}

DOMT_TEST(too_large_a_payload_makes_no_grain)
{
    domt_grains_begin_world();
    domt_run_as_actor(&domt_grain_world, domt_grain_agents[0], try_too_large_payload, NULL);
    ck_assert_uint_eq(domt_books.made, 0);
    domt_grains_end_world();
}

/* --- kinds -------------------------------------------------------------------------------------
 */

static int try_to_open_kind(domus_stack *stack, const domus_grain_kind *kind,
                            domus_grains *ret_grains)
{
    return domus_grain_open(stack, kind, ret_grains);
}

static int try_wrong_kinds(domus_stack *stack, void *nothing)
{
    static const domus_behaviour channels = {.name = "channels", .kind = DOMUS_CHANNELS};
    static const domus_behaviour other = {.name = "other"};
    const domus_grain_kind good = domt_cart_kind;
    domus_grains grains = {NULL};

    ck_assert_int_eq(try_to_open_kind(stack, NULL, &grains), -EINVAL);
    for (uint32_t i = 0; i < 5; i++) {
        domus_grain_kind kind = good;
        kind.name = wrong_keys[i];
        ck_assert_int_eq(try_to_open_kind(stack, &kind, &grains), -EINVAL);
    }
    domus_grain_kind wrong[8] = {good, good, good, good, good, good, good, good};
    wrong[0].name = NULL;
    wrong[1].behaviour = NULL;
    wrong[2].behaviour = &channels;
    wrong[3].options.name = "a";
    wrong[4].options.detached = true;
    wrong[5].options.thread = 2;
    wrong[6].options.mailbox_max = 65536;
    wrong[7].living_max = 257;
    for (uint32_t i = 0; i < 8; i++) {
        if (i != 0)
            wrong[i].name = "wrong";
        ck_assert_int_eq(try_to_open_kind(stack, &wrong[i], &grains), -EINVAL);
    }
    domus_grain_kind same = good;
    same.living_max = 7;
    ck_assert_int_eq(try_to_open_kind(stack, &same, &grains), 0);
    ck_assert_ptr_eq(grains.kind, domt_carts.kind);
    same.behaviour = &other;
    ck_assert_int_eq(try_to_open_kind(stack, &same, &grains), -EEXIST);
    for (uint32_t i = 0; i < 5; i++) {
        char name[] = "kind-0";
        name[5] = (char)('0' + i);
        same.name = name;
        ck_assert_int_eq(try_to_open_kind(stack, &same, &grains), i < 3 ? 0 : -ENOSPC);
    }
    return 0;
}

DOMT_TEST(wrong_kinds_and_too_many_are_refused)
{
    domt_grains_begin_world();
    domt_run_as_actor(&domt_grain_world, domt_grain_agents[0], try_wrong_kinds, NULL);
    domt_grains_end_world();
}

static int open_kind_again(domus_stack *stack, void *result)
{
    *(int *)result = domus_grain_open(stack, &domt_cart_kind, &domt_carts);
    return 0;
}

DOMT_TEST(kind_of_grains_opened_without_memory_leaves_nothing_behind)
{
    int result = -ENOMEM;
    uint32_t failed = 0;

    domt_grains_begin_world();
    domt_cart_kind.name = "other";
    for (; result == -ENOMEM; failed += result == -ENOMEM) {
        domt_send_function_to_call(domt_grain_world.managers[0], domt_grain_agents[0],
                                   open_kind_again, &result);
        domi_memory_fail_allocation_after((int64_t)failed, 0);
        (void)domt_run_state_queue(domt_grain_world.managers[0]);
        domi_memory_fail_allocation_after(-1, 0);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_uint_eq(failed, 3);
    domt_grains_end_world();
}

/* --- grains that cannot be made ----------------------------------------------------------------
 */

DOMT_TEST(a_make_that_fails_refuses_the_message)
{
    domt_grains_begin_world();
    domt_books.make_result = -ENOENT;
    ck_assert_int_eq(domt_grain_try_notice(0, "a", &domt_number, 0), -ENOENT);
    domt_grain_ask_as_agent(0, "a", &domt_which);
    domt_grains_settle_world();
    ck_assert_int_eq(domt_books.errors[0], -ENOENT);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    ck_assert_uint_eq(domt_releases, 0);
    domt_books.make_result = 0;
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(1);
    domt_grains_end_world();
}

DOMT_TEST(a_make_that_fails_for_the_next_life_fails_what_waits)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    domt_grains_settle_world();
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[0], domt_grain_address_of_life("a")), 0);
    domt_grain_send_notice(0, "a", &domt_number, 1);
    domt_grain_ask_as_agent(0, "a", &domt_which);
    domt_books.make_result = -EIO;
    domt_grains_settle_world();
    ck_assert_int_eq(domt_books.errors[0], -EIO);
    ck_assert_uint_eq(domt_books.handled, 1);
    ck_assert_uint_eq(DOMT_SUM(&domt_grain_world, dead_letters), 2);
    ck_assert_uint_eq(domt_releases, 2);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_grains_end_world();
}

static void check_failing_on_mount(uint32_t home, bool later)
{
    memset(&domt_books, 0, sizeof domt_books);
    domt_grains_begin_world();
    domt_books.mount_result = -EACCES;
    domt_books.mount_later = later ? -EACCES : 0;
    domt_grain_ask_as_agent(home, "a", &domt_which);
    domt_grain_send_notice(home, "a", &domt_number, 0);
    domt_grain_ask_as_agent(1 - home, "a", &domt_which);
    domt_grains_pass_ms(3);
    ck_assert_uint_eq(domt_books.answers, 2);
    ck_assert_int_eq(domt_books.errors[0], -EACCES);
    ck_assert_int_eq(domt_books.errors[1], -EACCES);
    ck_assert_uint_eq(domt_books.handled, 0);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(domt_books.made, 1);
    ck_assert_uint_eq(domt_books.unmade, later ? 0 : 1);
    ck_assert_uint_eq(domt_books.stopped, later ? 1 : 0);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_books.mount_result = domt_books.mount_later = 0;
    domt_grain_send_notice(home, "a", &domt_number, 0);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(1);
    domt_grains_end_world();
}

DOMT_TEST(an_on_mount_that_fails_fails_what_waits)
{
    check_failing_on_mount(0, false);
    check_failing_on_mount(1, false);
}

DOMT_TEST(an_on_mount_that_fails_later_fails_what_waits)
{
    check_failing_on_mount(0, true);
    check_failing_on_mount(1, true);
}

/* Run the home of the lives as soon as another thread wakes it, once. */
static void run_home_when_woken(domi_manager *home)
{
    home->hooks.wake = domt_hooks_of_world.wake;
    domt_let_home_work(home);
}

/* Fill the pool of a home with 16 free envelopes, as of messages whose payloads were taken. */
static void fill_pool_with_taken_messages(domi_manager *manager)
{
    domi_envelope *some[16];

    for (uint32_t i = 0; i < 16; i++) {
        some[i] = domi_message_new(manager, DOMI_ENVELOPE_HEAD + domt_number.size);
        ck_assert_ptr_nonnull(some[i]);
        some[i]->node.lease = DOMI_LEASE_TAKEN;
    }
    for (uint32_t i = 0; i < 16; i++)
        domi_pool_free_object(manager, &some[i]->node);
}

DOMT_TEST(an_on_mount_that_fails_before_its_maker_goes_on_releases_the_first_message)
{
    domt_grains_begin_world();
    domi_manager *home = domt_grain_world.managers[1];
    domt_grains_settle_world();
    domt_books.mount_result = -EACCES;
    fill_pool_with_taken_messages(domt_grain_world.managers[0]);
    home->hooks.wake = run_home_when_woken;
    domi_park_begin_sleep(&home->park);
    domt_grain_send_notice(0, "a", &domt_number, 0);
    (void)domi_park_end_sleep(&home->park);
    ck_assert(home->hooks.wake == domt_hooks_of_world.wake);
    domt_grains_settle_world();
    ck_assert_uint_eq(domt_books.unmade, 1);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(domus_grain_count(domt_carts), 0);
    domt_grains_end_world();
}

DOMT_TEST(a_life_that_is_stopped_before_it_is_mounted_is_unmade)
{
    domt_grains_begin_world();
    domt_grain_send_notice(0, "a", &domt_number, 0);
    ck_assert_int_eq(
        domi_house_ask_to_stop(domt_grain_world.managers[0], domt_grain_address_of_life("a")), 0);
    domt_grain_send_notice(0, "a", &domt_number, 1);
    domt_grains_settle_world();
    domt_grain_expect_notices_in_order(2);
    ck_assert_uint_eq(domt_books.made, 2);
    ck_assert_uint_eq(domt_books.unmade, 1);
    /* a life that has not begun when the system ends is unmade, too */
    domt_grain_send_notice(0, "b", &domt_number, 2);
    domt_grains_end_world();
    ck_assert_uint_eq(domt_books.unmade, 2);
    ck_assert_uint_eq(domt_books.stopped, 1);
}

/* --- no memory ---------------------------------------------------------------------------------
 */

/* Run a scenario in which allocation `n` fails, or all from it on: messages that a verb has taken
 * are handled or released once, and each ask is answered. Returns how many messages were refused or
 * failed. */
static uint32_t run_grains_short_of_memory(int64_t succeed, int stay)
{
    uint32_t taken = 0;
    uint32_t failed = 0;

    memset(&domt_books, 0, sizeof domt_books);
    domt_grains_begin_world();
    /* the agents work once before, so that later orders to them need no memory */
    for (uint32_t i = 0; i < 2; i++)
        domt_send_function_to_call(domt_grain_world.managers[i], domt_grain_agents[i],
                                   domt_do_nothing, NULL);
    domt_grains_settle_world();
    domi_memory_fail_allocation_after(succeed, stay);
    for (uint32_t i = 0; i < 12; i++) {
        int result = domt_grain_try_notice(i % 2, i % 3 == 0 ? "a" : "b", &domt_number, i);
        taken += result == 0;
        failed += result != 0;
        ck_assert(result == 0 || result == -ENOMEM || result == -ENOBUFS);
        if (i == 3)
            domt_grains_settle_world();
        if (i == 5 && domus_grain_count(domt_carts) != 0)
            domt_grains_pass_ms(20);
    }
    domt_grains_settle_world();
    domi_memory_fail_allocation_after(-1, 0);
    uint64_t dead = DOMT_SUM(&domt_grain_world, dead_letters);
    ck_assert_uint_eq(domt_books.handled + dead, taken);
    domt_grains_end_world();
    ck_assert_uint_eq(domt_releases, taken);
    ck_assert_uint_eq(domt_books.made, domt_books.stopped + domt_books.unmade);
    return failed + (uint32_t)dead;
}

DOMT_TEST(grains_short_of_memory_leave_nothing_and_double_nothing)
{
    for (int stay = 0; stay < 2; stay++) {
        uint32_t clean = 0;
        for (int64_t succeed = 0; clean < 20; succeed++) {
            ck_assert_int_lt(succeed, 500);
            clean = run_grains_short_of_memory(succeed, stay) == 0 ? clean + 1 : 0;
        }
    }
}

DOMT_SUITE(60)
