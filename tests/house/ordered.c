/* A picker with an order; tests/house/ordered.h tells more. */
#include "tests/house/ordered.h"
#include "tests/house/steps.h"

#include "house/dispatch/dispatch.h"
#include "house/message/order.h"
#include "tests/support/suite.h"

domus_behaviour domt_by_tens;
domus_behaviour domt_by_tens_down;

/* Returns the key of a message by which the order sorts; the library calls an order only with types
 * of users. */
static int64_t key_of_message(const domus_type *type, const void *payload)
{
    if (type == &domt_call_type)
        return -1;
    ck_assert(type == &domt_pick_note || type == &domt_pick_urgent || type == &domt_pick_question);
    return *(const int64_t *)payload / 10;
}

static int compare_by_tens(const domus_type *one_type, const void *one,
                           const domus_type *other_type, const void *other)
{
    int64_t key = key_of_message(one_type, one);
    int64_t other_key = key_of_message(other_type, other);

    return key < other_key ? -1 : key > other_key;
}

static int compare_by_tens_downwards(const domus_type *one_type, const void *one,
                                     const domus_type *other_type, const void *other)
{
    int64_t key = key_of_message(one_type, one);
    int64_t other_key = key_of_message(other_type, other);

    if (key < 0 || other_key < 0)
        return compare_by_tens(one_type, one, other_type, other);
    return key > other_key ? -1 : key < other_key;
}

void domt_ordered_open_world(uint32_t mailbox_max)
{
    domt_world *world = &domt_pick.world;

    domt_by_tens = domt_by_tens_down = domt_picking;
    domt_by_tens.name = "by tens";
    domt_by_tens.order = compare_by_tens;
    domt_by_tens_down.name = "by tens, down";
    domt_by_tens_down.order = compare_by_tens_downwards;
    domt_pick_open_world(mailbox_max, 0);
    domt_pick.picker =
        domt_spawn(domt_outside_manager(world), world->managers[0], &domt_by_tens, NULL);
    domt_settle_world(world);
}

void domt_ordered_limit_messages_of_run(uint32_t messages)
{
    for (uint32_t i = 0; i < domt_pick.world.homes; i++)
        domi_manager_set_messages_per_run(domt_pick.world.managers[i], messages);
}

void domt_ordered_run_picker(void)
{
    domi_manager *home = domt_pick.world.managers[0];

    (void)domt_take_arrivals_and_timers(home);
    (void)domt_run_state_queue(home);
}

void domt_ordered_sort_mail(void)
{
    uint32_t mail = domt_pick.picker.house->mail;

    domt_ordered_limit_messages_of_run(8);
    for (uint32_t i = 0; i < 8; i++)
        domt_send_call_to_picker(domt_do_nothing, NULL);
    domt_ordered_run_picker();
    ck_assert_uint_eq(domt_pick.picker.house->mail, mail);
    ck_assert_uint_eq(domi_order_count_mail(domt_pick.picker.house), mail);
}

void domt_ordered_settle_picker(void)
{
    domt_settle_world(&domt_pick.world);
}

void domt_ordered_settle_and_expect(const char *expected)
{
    domt_ordered_settle_picker();
    domt_ordered_expect_handled(expected);
}

domi_manager *domt_ordered_home_of_picker(void)
{
    return domt_pick.world.managers[0];
}

void domt_ordered_send_notes(const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        domt_send_notice_to_picker(&domt_pick_note, numbers[i]);
}

void domt_ordered_expect_handled(const char *expected)
{
    ck_assert_str_eq(domt_pick.text, expected);
    domt_pick.text[0] = '\0';
}
