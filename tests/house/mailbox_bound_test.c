/* A mailbox may have a bound of its own, from 1 on. It is in effect on both lanes, and only for
 * asks and notices. */
#include "house/family/life.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>

/* 1, on home 0, takes `most`. */
static void open_bounded(uint32_t most)
{
    const domus_spawn_options options = {.mailbox_max = most};
    const domt_kin state = {1, DOMT_WORTH};

    domt_kin_open(2);
    ck_assert_int_eq(domi_house_spawn_child(domt_outside(&domt_kin_world), NULL,
                                            domt_kin_world.managers[0], &domt_kin_hearing, &state,
                                            &options, &domt_kin_of[1].address),
                     0);
    domt_settle(&domt_kin_world);
}

/* How many of `count` notes are taken. */
static uint32_t put(domi_manager *from, uint32_t count)
{
    uint32_t taken = 0;

    for (uint32_t i = 0; i < count; i++) {
        int result = domt_notice(from, domt_kin_of[1].address, &domt_kin_note, "payload");
        ck_assert(result == 0 || result == -ENOBUFS);
        taken += result == 0;
    }
    return taken;
}

DOMT_TEST(own_bound_holds_on_each_lane)
{
    static const uint32_t bounds[] = {1, 2, 3, 7, 100, 5000, 65535};

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        for (uint32_t from = 0; from < 3; from++) {
            open_bounded(bounds[i]);
            ck_assert_uint_eq(put(domt_kin_world.managers[from], bounds[i] + 10), bounds[i]);
            ck_assert_uint_eq(DOMT_SUM(&domt_kin_world, refusals), 10);
            domt_settle(&domt_kin_world);
            ck_assert_uint_eq(domt_kin_of[1].notes, bounds[i]);
            domt_kin_close();
        }
    }
}

DOMT_TEST(own_bound_may_be_above_the_default)
{
    open_bounded(0);
    uint32_t most = domt_kin_world.config.scheduler.mailbox_max;
    ck_assert_uint_lt(most, 65535);
    ck_assert_uint_eq(put(domt_kin_world.managers[0], 65535), most); /* 0 is the default */
    domt_kin_close();
    open_bounded(65535);
    ck_assert_uint_eq(put(domt_kin_world.managers[0], 65536), 65535);
    domt_kin_close();
}

DOMT_TEST(full_mailbox_takes_mail_again_whatever_its_bound)
{
    for (uint32_t most = 1; most < 70; most++) {
        for (uint32_t from = 0; from < 3; from++) {
            open_bounded(most);
            for (unsigned round = 1; round < 4; round++) {
                ck_assert_uint_eq(put(domt_kin_world.managers[from], most + 1), most);
                domt_settle(&domt_kin_world);
                ck_assert_uint_eq(domt_kin_of[1].notes, round * most);
            }
            domt_kin_close();
        }
    }
}

DOMT_TEST(full_mailbox_takes_mail_again_below_half)
{
    open_bounded(400);
    domi_manager *home = domt_kin_world.managers[0];
    ck_assert_uint_eq(put(home, 401), 400);
    for (int run = 1; run < 4; run++) { /* 64 a run: 336, 272, 208 are left */
        ck_assert_uint_eq(domt_run_state(home), 1);
        ck_assert_uint_eq(put(home, 1), 0);
    }
    (void)domt_run_state(home);
    ck_assert_uint_lt(domt_kin_of[1].address.house->mail, 200);
    ck_assert_uint_eq(put(home, 1), 1);
    domt_kin_close();
}

DOMT_TEST(full_mailbox_can_be_stopped)
{
    for (uint32_t from = 0; from < 3; from++) {
        open_bounded(1);
        ck_assert_uint_eq(put(domt_kin_world.managers[from], 5), 1);
        ck_assert_int_eq(domi_house_stop(domt_kin_world.managers[from], domt_kin_of[1].address), 0);
        domt_settle(&domt_kin_world);
        ck_assert(!domt_kin_lives(1));
        domt_kin_close();
    }
}

DOMT_TEST(next_life_in_a_slot_has_no_bound_of_its_own)
{
    open_bounded(2);
    domi_house *house = domt_kin_of[1].address.house;
    ck_assert_uint_eq(put(domt_kin_world.managers[1], 3), 2);
    domt_kin_stop(1);
    domt_kin_of[1].address = domt_spawn(domt_kin_world.managers[0], domt_kin_world.managers[0],
                                        &domt_kin_hearing, &(domt_kin){1, DOMT_WORTH});
    ck_assert_ptr_eq(domt_kin_of[1].address.house, house);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(put(domt_kin_world.managers[1], 100), 100);
    ck_assert_uint_eq(put(domt_kin_world.managers[0], 100), 100);
    domt_kin_close();
}

DOMT_TEST(bound_outlives_a_restart)
{
    static const domus_supervision restarts = {.otherwise = DOMUS_RESTART};
    static domus_behaviour boss;
    const domus_spawn_options options = {.mailbox_max = 3};

    boss = domt_kin_boss(&restarts);
    domt_kin_open(2);
    (void)domt_kin_root(2, 0, &boss);
    ck_assert_int_eq(domt_kin_spawn_by(2, 1, &domt_kin_hearing, &options), 0);
    domt_kin_err(1, -EIO);
    ck_assert_uint_eq(domt_kin_of[1].mounts, 2);
    ck_assert_uint_eq(put(domt_kin_world.managers[1], 5), 3);
    domt_kin_close();
}

DOMT_SUITE(30)
