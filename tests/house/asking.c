/* An asker and three actors that answer; tests/house/asking.h tells more. */
#include "tests/house/asking.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

unsigned domt_ask_releases, domt_reply_releases;

void domt_count_release_of_ask(void *payload)
{
    domt_ask_releases++;
}

void domt_count_release_of_reply(void *payload)
{
    domt_reply_releases++;
}

const domus_type domt_ask_question = {
    .name = "question", .size = sizeof(domt_call), .release = domt_count_release_of_ask};
const domus_type domt_ask_done = {
    .name = "done", .size = 8, .release = domt_count_release_of_reply};

void domt_asking_open_world(domt_world *world, const domus_behaviour *answering,
                            domus_address *ret_asker, domus_address ret_others[3])
{
    domt_world_open(world, 3);
    *ret_asker = domt_spawn(domt_outside_manager(world), world->managers[0], &domt_agent, NULL);
    for (uint32_t i = 0; i < 3; i++)
        ret_others[i] =
            domt_spawn(domt_outside_manager(world), world->managers[i], answering, NULL);
    domt_settle_world(world);
}

void domt_asking_end_world(domt_world *world, const domus_address *actors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_eq(actors[i].house->asks, 0);
        ck_assert_uint_eq(domi_house_count_parked_conversations(actors[i].house), 0);
    }
    for (uint32_t i = 0; i < world->homes; i++)
        ck_assert_uint_eq(world->managers[i]->timing.deadlines.count, 0);
    domt_end_clean_world(world);
}

void domt_asking_close_world(domt_world *world, domus_address asker)
{
    domt_asking_end_world(world, &asker, 1);
}
