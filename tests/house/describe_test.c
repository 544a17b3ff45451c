/* house/dispatch/describe.c: what a conversation of the house world waits for, in words. The tests
 * of dumps (tests/runtime/dump_test.c) see the rest. */
#include "house/dispatch/describe.h"

#include "house/conversation/owed.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <string.h>

static const domus_type question_type = {.name = "question", .size = sizeof(domi_begin)};
static char text[4096];

static int keep(domus_stack *stack, void *self, const void *payload)
{
    static domus_kept kept;

    return domus_keep(stack, &kept);
}

static const domus_behaviour silent = {
    .name = "silent", .on = (const domus_on[]){{&question_type, keep, 0}, {NULL, NULL, 0}}};

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int begin_ask(domus_stack *stack, void *to)
{
    domi_begin begin = {.stack = NULL};

    return domi_ask_begin(stack, *(const domus_address *)to, &question_type, &begin, &begin, 0,
                          go_on);
}

static void describe(domi_manager *home, domus_address actor)
{
    domi_text into = {.at = text, .size = sizeof text};

    domi_house_describe(home, actor.house, &into);
    ck_assert_uint_lt(into.length, sizeof text);
}

/* An ask that leaves in parts waits for its start, and is still one ask. */
DOMT_TEST(ask_in_parts_waits_for_its_begin)
{
    domt_world world;
    domus_address asker, asked;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    asker = domt_spawn(domt_outside(&world), home, &domt_agent, NULL);
    asked = domt_spawn(domt_outside(&world), home, &silent, NULL);
    domt_do(&world, asker, begin_ask, &asked);
    describe(home, asker);
    ck_assert_msg(strstr(text, "waits for one of 2\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "      ask question to 0/") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "      the begin of that ask, since 0 ms\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "something else") == NULL, "%s", text);
    domt_world_end(&world);
}

DOMT_SUITE(10)
