/* A failure that meets a restart which another failure has begun. */
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/house/kin.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static domus_behaviour boss;

/* An event whose handler fails, put by the home of child `number` behind what waits there. */
static void put_failing_event(uint32_t home, uint32_t number, int error)
{
    domi_manager *manager = domt_kin_world.managers[home];
    domi_envelope *event = domi_envelope_new(manager, DOMI_ENVELOPE_HEAD + domt_kin_fail.size);

    ck_assert_ptr_nonnull(event);
    event->type = &domt_kin_fail;
    event->sender = NULL;
    event->sender_lease = 0;
    memcpy(event->payload, &error, sizeof error);
    ck_assert_int_eq(
        domi_mailbox_put(manager, domt_kin_of[number].address, &event->node, DOMI_EVENT), 0);
}

/* 1. Child 3 fails, and its parent restarts 2 as well. 2. Before child 2 begins anew, an event's
 * handler fails in it, and its parent is told. 3. Child 2 begins anew, and its on_mount fails. 4.
 * The parent decides on the first failure: to resume. An actor that is not mounted cannot. */
DOMT_TEST(mount_that_fails_while_an_earlier_failure_is_undecided_ends_the_actor)
{
    static const domus_rule rules[] = {{.error = -EIO, .directive = DOMUS_RESTART}};
    static const domus_supervision all = {
        .all_for_one = true, .rules = rules, .rules_count = 1, .otherwise = DOMUS_RESUME};

    domt_kin_open(2);
    boss = domt_kin_boss(&all);
    (void)domt_kin_root(1, 0, &boss);
    (void)domt_kin_child(1, 2, 1, &domt_kin_hearing);
    (void)domt_kin_child(1, 3, 0, &domt_kin_hearing);
    domt_kin_of[2].fails = 1;
    domt_kin_of[2].error = -EPERM;
    domt_kin_tell(3, &domt_kin_fail, -EIO);
    for (int i = 0; i < 3; i++) /* so that the directive is on its way to child 2 */
        domt_kin_turn(0);
    put_failing_event(1, 2, -EPIPE);
    domt_settle(&domt_kin_world);
    ck_assert_uint_eq(domt_kin_of[3].mounts, 2);
    ck_assert_uint_eq(domt_kin_of[2].bad_mounts, 1);
    ck_assert(!domt_kin_lives(2));
    ck_assert_uint_eq(domt_kin_houses(), 2);
    domt_kin_close();
}

DOMT_SUITE(30)
