/* An asker and three others; see the header. */
#include "tests/house/asking.h"
#include "tests/support/suite.h"

unsigned domt_ask_releases, domt_reply_releases;

void domt_release_ask(void *payload)
{
    domt_ask_releases++;
}

void domt_release_reply(void *payload)
{
    domt_reply_releases++;
}

void domt_asking_open(domt_world *world, const domus_behaviour *answering, domus_address *ret_asker,
                      domus_address ret_others[3])
{
    domt_world_open(world, 3);
    *ret_asker = domt_spawn(domt_outside(world), world->managers[0], &domt_agent, NULL);
    for (uint32_t i = 0; i < 3; i++)
        ret_others[i] = domt_spawn(domt_outside(world), world->managers[i], answering, NULL);
    domt_settle(world);
}

void domt_asking_close(domt_world *world, domus_address asker)
{
    ck_assert_uint_eq(asker.house->asks, 0);
    ck_assert_uint_eq(domi_house_count_parked(asker.house), 0);
    ck_assert_uint_eq(world->managers[0]->timing.deadlines.count, 0);
    ck_assert_uint_eq(domt_in_use_all(world), 0);
    domt_world_end(world);
}
