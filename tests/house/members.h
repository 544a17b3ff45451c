/* The world of the tests of groups: a group, members that count what they get, and agents on two
 * homes that publish. */
#ifndef DOMT_MEMBERS_H
#define DOMT_MEMBERS_H

#include "house/directory/group.h"
#include "house/family/life.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>

#define GROUPS_MAX  8u
#define MEMBERS_MAX 12000u

static domt_world world;
static domi_groups groups;
static domus_group group;
static domus_address agents[2]; /* an agent on each home */
static domus_address members[MEMBERS_MAX];

/* --- what is published, and who is a member --------------------------------------------------- */

static uint64_t handled, disorder, releases;

static inline void count_payload_release(void *payload)
{
    releases++;
}

static const domus_type news = {
    .name = "news", .size = sizeof(uint64_t), .release = count_payload_release};
static const domus_type leave_type = {.name = "leave"};
static const domus_type fail_type = {.name = "fail"};

struct member {
    uint64_t last;
    domus_address from;
};

static inline int join_group(domus_stack *stack, void *self)
{
    return domus_group_join(stack, group);
}

static inline int on_news_record_number(domus_stack *stack, void *self_, const void *payload)
{
    struct member *self = self_;
    uint64_t number = *(const uint64_t *)payload;

    if (number <= self->last)
        disorder++;
    self->last = number;
    self->from = domus_sender(stack);
    handled++;
    return 0;
}

static inline int on_leave_leave_group(domus_stack *stack, void *self, const void *payload)
{
    return domus_group_leave(stack, group);
}

static inline int on_fail_return_error(domus_stack *stack, void *self, const void *payload)
{
    return -EIO;
}

static const domus_behaviour member = {
    .name = "member",
    .state_size = sizeof(struct member),
    .on = (const domus_on[]){{&news, on_news_record_number, 0},
                             {&leave_type, on_leave_leave_group, 0},
                             {&fail_type, on_fail_return_error, 0},
                             {0}},
    .on_mount = join_group};

/* --- the world -------------------------------------------------------------------------------- */

static inline int open_group(domus_stack *stack, void *name)
{
    ck_assert_int_eq(domus_group_open(stack, name, &group), 0);
    return 0;
}

static inline void open_world_of_groups(uint32_t members_max)
{
    static const uint64_t key[2] = {1, 2};

    handled = disorder = releases = 0;
    domt_world_init(&world, 2);
    ck_assert_int_eq(domi_groups_init(&groups, GROUPS_MAX, members_max, 2, 0, key), 0);
}

static inline void start_world_and_open_group(void)
{
    ck_assert_int_eq(domt_world_start(&world), 0);
    for (uint32_t i = 0; i < 3; i++)
        world.managers[i]->directory.groups = &groups;
    for (uint32_t i = 0; i < 2; i++)
        agents[i] = domt_spawn(domt_outside_manager(&world), world.managers[i], &domt_agent, NULL);
    domt_run_as_actor(&world, agents[0], open_group, (void *)(uintptr_t) "news");
}

static inline void close_world_of_groups(void)
{
    domt_world_end(&world);
    ck_assert_uint_eq(disorder, 0);
    domi_groups_fini(&groups);
}

static inline void open_group_with_members(uint32_t count)
{
    open_world_of_groups(MEMBERS_MAX);
    start_world_and_open_group();
    for (uint32_t i = 0; i < count; i++)
        members[i] = domt_spawn(domt_outside_manager(&world), world.managers[i % 2], &member, NULL);
    domt_settle_world(&world);
    ck_assert_uint_eq(domus_group_members(group), count);
}

static uint64_t next_number;
static int published;

static inline int publish_next_numbers(domus_stack *stack, void *times)
{
    for (uintptr_t i = (uintptr_t)times; i != 0; i--) {
        uint64_t number = ++next_number;
        published = domus_publish(stack, group, &news, &number);
    }
    return 0;
}

static inline void let_agent_publish(uint32_t home, uintptr_t times)
{
    domt_send_function_to_call(domt_outside_manager(&world), agents[home], publish_next_numbers,
                               (void *)times);
}

static inline void stop_members(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        ck_assert_int_eq(domi_house_ask_to_stop(domt_outside_manager(&world), members[i]), 0);
}

static inline int join_and_publish(domus_stack *stack, void *context)
{
    ck_assert_int_eq(domus_group_join(stack, group), 0);
    return publish_next_numbers(stack, (void *)(uintptr_t)1);
}

static inline int try_to_join(domus_stack *stack, void *context)
{
    *(int *)context = domus_group_join(stack, group);
    return 0;
}

#endif
