/* Children live where their parent wants them, end before it, and leave free slots. */
#include "base/memory.h"
#include "house/family/family.h"
#include "house/family/life.h"
#include "house/family/slots.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static domus_behaviour boss;

/* --- placement and options ------------------------------------------------------------------- */

static uint32_t home_of_actor(uint32_t number)
{
    return domt_kin_of[number].address.house->home->index;
}

DOMT_TEST(child_lives_near_its_parent_or_where_it_is_told_to)
{
    domus_spawn_options options = {.placement = DOMUS_NEAR};
    unsigned lives[3] = {0, 0, 0};

    domt_kin_open_world(3);
    (void)domt_kin_spawn_root(1, 1, &domt_kin_hearing);
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 2, &domt_kin_hearing, NULL), 0);
    ck_assert_uint_eq(home_of_actor(2), 1);
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 3, &domt_kin_hearing, &options), 0);
    ck_assert_uint_eq(home_of_actor(3), 1);
    options.placement = DOMUS_SPREAD;
    for (uint32_t i = 4; i < 10; i++) {
        ck_assert_int_eq(domt_kin_let_parent_spawn(1, i, &domt_kin_hearing, &options), 0);
        lives[home_of_actor(i)]++;
    }
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(lives[i], 2);
    options.placement = DOMUS_ON_THREAD;
    options.thread = 2;
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 10, &domt_kin_hearing, &options), 0);
    ck_assert_uint_eq(home_of_actor(10), 2);
    ck_assert_uint_eq(domt_kin_count_houses(), 10);
    domt_kin_close_world();
}

DOMT_TEST(wrong_options_spawn_nothing)
{
    domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = 2};

    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 2, &domt_kin_hearing, &options), -EINVAL);
    options = (domus_spawn_options){.placement = (domus_placement)9};
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 2, &domt_kin_hearing, &options), -EINVAL);
    options = (domus_spawn_options){.mailbox_max = 65536};
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 2, &domt_kin_hearing, &options), -EINVAL);
    ck_assert_uint_eq(domt_kin_count_houses(), 1);
    ck_assert_ptr_null(domt_kin_of[2].address.house);
    domt_kin_close_world();
}

/* --- ends ------------------------------------------------------------------------------------ */

/* Make a family: actor 1 has the children 2 on its own home and 3 on the other one; each of these
 * has one child on each home. */
static void make_family_of_seven(void)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    for (uint32_t i = 2; i < 8; i++)
        (void)domt_kin_spawn_child(i / 2, i, i % 2, &domt_kin_hearing);
    (void)domt_kin_read_and_clear_trail();
}

static size_t place_of_event_in_trail(const char *trail, char what, uint32_t number)
{
    const char text[] = {what, (char)('0' + number), '\0'};
    const char *found = strstr(trail, text);

    ck_assert_msg(found != NULL, "no %s in %s", text, trail);
    return (size_t)(found - trail);
}

DOMT_TEST(children_end_before_their_parents_here_and_elsewhere)
{
    make_family_of_seven();
    domt_kin_stop_actor(1);
    const char *trail = domt_kin_read_and_clear_trail();
    for (uint32_t i = 2; i < 8; i++)
        ck_assert_uint_lt(place_of_event_in_trail(trail, 's', i),
                          place_of_event_in_trail(trail, 's', i / 2));
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    domt_kin_close_clean_world();
}

DOMT_TEST(end_of_a_child_is_not_the_end_of_its_kin)
{
    make_family_of_seven();
    domt_kin_stop_actor(3);
    ck_assert_uint_eq(domt_kin_count_houses(), 4);
    for (uint32_t i = 1; i < 8; i++)
        ck_assert(domt_kin_is_alive(i) == (i != 3 && i != 6 && i != 7));
    ck_assert_int_eq(domt_kin_let_parent_spawn(1, 8, &domt_kin_hearing, NULL), 0);
    domt_kin_stop_actor(1);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    domt_kin_close_world();
}

DOMT_TEST(conversations_of_children_do_not_hold_a_stop)
{
    make_family_of_seven();
    (void)domt_kin_spawn_root(9, 1, &domt_kin_hearing);
    for (uint32_t i = 1; i < 8; i++)
        domt_kin_run_in_handler(
            i, i % 3 == 0 ? domt_kin_sleep_for_a_day : domt_kin_ask_address_for_ever,
            &domt_kin_of[9].address);
    domt_kin_stop_actor(1);
    ck_assert_uint_eq(domt_kin_count_houses(), 1);
    for (uint32_t i = 1; i < 8; i++) {
        ck_assert_int_eq(domt_kin_of[i].answer, -ECANCELED);
        ck_assert_uint_eq(domt_kin_of[i].stops, 1);
    }
    domt_kin_close_clean_world();
}

/* Any two members of the family are stopped together, in either order, from either home or the
 * outside. */
DOMT_TEST(stops_of_parent_and_child_may_cross)
{
    for (uint32_t round = 0; round < 7 * 7 * 9; round++) {
        uint32_t first = 1 + round % 7;
        uint32_t second = 1 + round / 7 % 7;
        make_family_of_seven();
        domi_manager *from = domt_kin_world.managers[round / 49 % 3];
        ck_assert_int_eq(domi_house_ask_to_stop(from, domt_kin_of[first].address), 0);
        if (round / 49 >= 3)
            domt_kin_run_iteration_of_home(round / 147);
        (void)domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world),
                                     domt_kin_of[second].address);
        domt_settle_world(&domt_kin_world);
        for (uint32_t i = 1; i < 8; i++) {
            bool ends = false;
            for (uint32_t up = i; up != 0; up /= 2)
                ends = ends || up == first || up == second;
            ck_assert(domt_kin_is_alive(i) == !ends);
        }
        domt_kin_close_world();
    }
}

static int spawn_four_children_and_stop(domus_stack *stack, void *unused)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = 1};

    for (uint32_t i = 2; i < 6; i++)
        ck_assert_int_eq(
            domt_kin_spawn_in_handler(stack, i, &domt_kin_hearing, i < 4 ? NULL : &there), 0);
    ck_assert_int_eq(domus_stop(stack, domt_kin_of[2].address), 0);
    ck_assert_int_eq(domus_stop(stack, domt_kin_of[4].address), 0);
    return domus_stop(stack, domus_self(stack));
}

DOMT_TEST(newborn_children_are_stopped_before_they_are_mounted)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    domt_kin_run_in_handler(1, spawn_four_children_and_stop, NULL);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    ck_assert_uint_eq(domt_kin_of[1].stops, 1);
    for (uint32_t i = 2; i < 6; i++)
        ck_assert_uint_eq(domt_kin_of[i].mounts, 0);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, stops), 5);
    domt_kin_close_world();
}

static int refused;

static int try_to_spawn_when_stopping(domus_stack *stack, void *unused)
{
    refused = domt_kin_spawn_in_handler(stack, 3, &domt_kin_hearing, NULL);
    return 0;
}

DOMT_TEST(actor_that_stops_spawns_no_more_children)
{
    domt_kin_open_world(1);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    domt_kin_of[1].resuming = try_to_spawn_when_stopping;
    domt_kin_run_in_handler(1, domt_kin_sleep_for_a_day, NULL);
    domt_kin_stop_actor(1);
    ck_assert_int_eq(domt_kin_of[1].answer, -ECANCELED);
    ck_assert_int_eq(refused, -ESHUTDOWN);
    (void)domt_kin_spawn_root(2, 0, &domt_kin_hearing);
    domt_kin_of[2].stopping = try_to_spawn_when_stopping;
    refused = 0;
    domt_kin_stop_actor(2);
    ck_assert_int_eq(refused, -ESHUTDOWN);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    domt_kin_close_world();
}

static int spawn_three_children(domus_stack *stack, void *unused)
{
    for (uint32_t i = 2; i < 5; i++) {
        const domus_spawn_options there = {.placement = DOMUS_ON_THREAD, .thread = i % 2};
        ck_assert_int_eq(domt_kin_spawn_in_handler(stack, i, &domt_kin_hearing, &there), 0);
    }
    return 0;
}

DOMT_TEST(children_of_a_mount_that_fails_end_with_it)
{
    domt_kin_open_world(2);
    domt_kin_of[1].mounting = spawn_three_children;
    domt_kin_let_mounts_fail(1, 1, -EIO);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    ck_assert_uint_eq(domt_kin_of[1].stops, 0);
    ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, failures), 1);
    domt_kin_close_world();
}

/* --- slots ----------------------------------------------------------------------------------- */

DOMT_TEST(slot_of_a_child_elsewhere_is_free_when_its_parent_has_heard)
{
    domt_kin_open_world(2);
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    domus_address child = domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
    domi_manager *there = domt_kin_world.managers[1];

    ck_assert_int_eq(domi_house_ask_to_stop(there, child), 0);
    domt_kin_run_iteration_of_home(1);
    ck_assert_uint_eq(domt_kin_of[2].stops, 1);
    ck_assert_uint_eq(child.house->marks, DOMI_MARK_DEAD);
    ck_assert_uint_eq(there->births.houses, 0);
    domus_address other = domt_spawn(there, there, &domt_agent, NULL);
    ck_assert_ptr_ne(other.house, child.house);
    /* The child has ended, so its address is stale and reaches nobody. */
    ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world), child), -ESTALE);
    ck_assert_int_eq(domi_house_ask_to_stop(there, child), -ESTALE);
    child.lease++;
    ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world), child), -ESTALE);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(child.house->marks, 0);
    other = domt_spawn(there, there, &domt_kin_hearing, &(domt_kin){3, DOMT_WORTH});
    ck_assert_ptr_eq(other.house, child.house);
    ck_assert_uint_eq(other.lease, child.lease);
    domt_settle_world(&domt_kin_world);
    domt_kin_close_world();
}

static unsigned born;

static int spawn_10000_agents(domus_stack *stack, void *unused)
{
    for (uint32_t i = 0; i < 10000; i++) {
        const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = i % 3};
        domus_address child;
        born += domus_spawn_with(stack, &domt_agent, NULL, &options, &child) == 0;
    }
    return 0;
}

DOMT_TEST(ten_thousand_children_over_three_homes_come_and_go_in_the_same_memory)
{
    uint64_t mapped_bytes = 0;

    domt_kin_open_world(3);
    for (int round = 0; round < 4; round++) {
        (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
        born = 0;
        domt_kin_run_in_handler(1, spawn_10000_agents, NULL);
        ck_assert_uint_eq(born, 10000);
        ck_assert_uint_eq(domt_kin_count_houses(), 10001);
        if (round == 1)
            mapped_bytes = domt_world_mapped_bytes(&domt_kin_world);
        domt_kin_stop_actor(1);
        ck_assert_uint_eq(domt_kin_count_houses(), 0);
    }
    ck_assert_uint_eq(domt_world_mapped_bytes(&domt_kin_world), mapped_bytes);
    ck_assert_uint_eq(domt_kin_of[1].stops, 4);
    domt_kin_close_world();
}

/* --- behind mail ----------------------------------------------------------------------------- */

static void check_notes_handled_before_stop(domi_manager *from, uint32_t notes, unsigned most)
{
    domt_kin_of[1].notes = 0;
    (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
    (void)domt_kin_spawn_child(1, 2, 1, &domt_kin_hearing);
    for (uint32_t i = 0; i < notes; i++)
        domt_kin_send_notice(1, &domt_kin_note, 0);
    domt_kin_stop_actor_by_manager(from, 1);
    ck_assert_uint_le(domt_kin_of[1].notes, most);
    ck_assert(!domt_kin_is_alive(1) && !domt_kin_is_alive(2));
}

DOMT_TEST(stop_behind_ten_thousand_messages_lets_one_more_run_at_most)
{
    domt_kin_open_world(2);
    for (uint32_t i = 0; i < 3; i++) {
        check_notes_handled_before_stop(domt_kin_world.managers[i], 10000, 1);
        ck_assert_uint_eq(domt_kin_of[1].notes + domt_kin_releases, 10000);
        domt_kin_releases = 0;
    }
    domt_kin_close_world();
}

static int stop_actor_1_after_mail(domus_stack *stack, void *unused)
{
    return domus_stop_after_mail(stack, domt_kin_of[1].address);
}

DOMT_TEST(stop_after_mail_handles_what_waits_and_drops_what_comes_behind)
{
    for (uint32_t home = 0; home < 2; home++) {
        domt_kin_open_world(2);
        (void)domt_kin_spawn_root(1, 0, &domt_kin_hearing);
        (void)domt_kin_spawn_root(2, home, &domt_kin_hearing);
        domt_kin_run_in_handler(1, domt_kin_sleep_for_a_day, NULL);
        domi_manager *from = domt_kin_world.managers[home];
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq(
                domt_send_notice(from, domt_kin_of[1].address, &domt_kin_note, "payload"), 0);
        domt_kin_send_function_to_run(from, 2, stop_actor_1_after_mail, NULL);
        domt_kin_run_iteration_of_home(home);
        (void)domt_send_notice(from, domt_kin_of[1].address, &domt_kin_note, "payload");
        domt_settle_world(&domt_kin_world);
        ck_assert_uint_eq(domt_kin_of[1].notes, 1000);
        ck_assert_uint_eq(domt_kin_releases, 1);
        ck_assert_int_eq(domt_kin_of[1].answer, -ECANCELED);
        ck_assert(!domt_kin_is_alive(1));
        domt_kin_close_world();
    }
}

/* --- memory, and the end of the world -------------------------------------------------------- */

static int try_to_spawn_children(domus_stack *stack, void *errors)
{
    const domus_spawn_options there = {.placement = DOMUS_ON_THREAD,
                                       .thread = 1,
                                       .mailbox_max = 5,
                                       .passivate_after_ns = 1000 * MS};
    unsigned *failed = errors;

    for (uint32_t i = 2; i < 14; i++)
        *failed += domt_kin_spawn_in_handler(stack, i, &boss, i % 2 == 0 ? &there : NULL) != 0;
    for (uint32_t i = 2; i < 14; i++) {
        *failed += domus_watch_actor(stack, domt_kin_of[i].address, NULL) != 0;
        *failed += domus_link_actor(stack, domt_kin_of[i].address, NULL) != 0;
    }
    return 0;
}

static unsigned count_failures_of_family_without_memory(void)
{
    domus_address root = {0};
    unsigned failed = 0;

    memset(domt_kin_of, 0, sizeof domt_kin_of);
    domt_world_init(&domt_kin_world, 2);
    if (domt_world_start(&domt_kin_world) != 0)
        return 1;
    failed += domi_house_spawn_without_parent(domt_outside_manager(&domt_kin_world),
                                              domt_kin_world.managers[0], &boss,
                                              &(domt_kin){1, DOMT_WORTH}, &root) != 0;
    domt_call order = {try_to_spawn_children, &failed};
    failed +=
        domt_send_notice(domt_outside_manager(&domt_kin_world), root, &domt_call_type, &order) != 0;
    domt_settle_world(&domt_kin_world);
    for (uint32_t i = 2; i < 14; i++) {
        int error = -EIO;
        failed += domt_send_notice(domt_outside_manager(&domt_kin_world), domt_kin_of[i].address,
                                   &domt_kin_fail, &error) != 0;
    }
    domt_settle_world(&domt_kin_world);
    (void)domi_house_ask_to_stop(domt_outside_manager(&domt_kin_world), root);
    domt_settle_world(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_count_houses(), 0);
    domt_kin_close_clean_world();
    return failed;
}

DOMT_TEST(any_allocation_of_a_family_may_fail)
{
    static const domus_supervision restarts = {.intensity = 100, .otherwise = DOMUS_RESTART};

    boss = domt_kin_behaviour_of_boss(&restarts);
    for (int stay = 0; stay < 2; stay++) {
        int64_t count = 0;
        do
            domi_memory_fail_allocation_after(count++, stay);
        while (count_failures_of_family_without_memory() != 0 && count < 1000);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_int_gt(count, 20);
        ck_assert_int_lt(count, 1000);
        ck_assert_uint_eq(count_failures_of_family_without_memory(), 0);
    }
}

/* Let a handler begin births, failures, restarts, stops and watches that are then all under way
 * together. */
static void begin_family_turmoil(void)
{
    static const domus_supervision rules = {
        .all_for_one = true, .intensity = 2, .otherwise = DOMUS_RESTART};

    domt_kin_open_world_with_boss(2, &rules);
    unsigned failed = 0;
    domt_kin_run_in_handler(1, try_to_spawn_children, &failed);
    ck_assert_uint_eq(failed, 0);
    for (uint32_t i = 2; i < 14; i++)
        domt_kin_run_in_handler(
            i, i % 3 == 0 ? domt_kin_sleep_for_a_day : domt_kin_ask_address_for_ever,
            &domt_kin_of[i / 2].address);
    for (uint32_t i = 2; i < 14; i += 3) {
        domt_kin_send_notice(i, &domt_kin_fail, -EIO);
        (void)domi_house_ask_to_stop(domt_kin_world.managers[i % 2], domt_kin_of[i + 1].address);
        domt_kin_send_notice(i, &domt_kin_fail, -EIO);
    }
}

DOMT_TEST(world_may_end_during_any_step_of_a_family)
{
    for (uint32_t turns = 0; turns < 80; turns++) {
        begin_family_turmoil();
        for (uint32_t i = 0; i < turns; i++) {
            domt_kin_run_iteration_of_home(i % 3 == 1);
            if (i == 3)
                (void)domi_house_ask_to_stop(domt_kin_world.managers[1], domt_kin_of[1].address);
        }
        domt_kin_close_world();
    }
}

DOMT_SUITE(60)
