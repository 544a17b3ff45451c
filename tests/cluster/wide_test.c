/* The table of groups over the cluster: changes are reported in their order and each group once,
 * the interest of other nodes has a limit, and it is removed when its node ends. */
#include "house/directory/group.h"
#include "protocols/cluster/wide.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPENED 5u

static domi_wide *wide;
/* stand-ins for groups, whose number of members the test sets */
static domi_group *groups[OPENED];

static void make_wide_and_groups(void)
{
    wide = calloc(1, sizeof *wide);
    wide->lock = (domi_lock)DOMI_LOCK_FREE;
    for (uint32_t i = 0; i < OPENED; i++) {
        char name[8];
        uint32_t number;
        groups[i] = aligned_alloc(64, sizeof(domi_group));
        memset(groups[i], 0, sizeof(domi_group));
        snprintf(name, sizeof name, "g%u", i);
        ck_assert_int_eq(domi_wide_open_or_add_group(wide, name, (domus_group){groups[i]}, &number),
                         0);
        ck_assert_uint_eq(number, i);
    }
}

static void free_wide_and_groups(void)
{
    domi_wide_free(wide);
    for (uint32_t i = 0; i < OPENED; i++)
        free(groups[i]);
    free(wide);
}

static bool set_members_of_group(uint32_t group, uint32_t members)
{
    atomic_store(&groups[group]->members, members);
    return domi_wide_update_local_members(wide, group);
}

/* Returns the changes after change `from` as text; they are read in parts of at most `room`
 * changes. */
static const char *changes_as_text(uint64_t from, uint32_t room)
{
    static char text[200];
    domi_wide_change some[16];
    uint32_t count;

    text[0] = '\0';
    while ((count = domi_wide_copy_oldest_changes(wide, from, some, room, &from)) != 0) {
        for (uint32_t i = 0; i < count; i++) {
            size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%c%s", some[i].has_members ? '+' : '-',
                     some[i].name);
        }
    }
    ck_assert_uint_eq(from, domi_wide_last_change_number(wide));
    return text;
}

DOMT_TEST(changes_of_members_are_told_in_order_and_each_group_once)
{
    make_wide_and_groups();
    ck_assert_str_eq(changes_as_text(0, 4), "");
    for (uint32_t i = 0; i < OPENED; i++)
        ck_assert(set_members_of_group(i, 1));
    ck_assert(!set_members_of_group(2, 7));
    for (uint32_t room = 1; room <= 6; room++) {
        ck_assert_str_eq(changes_as_text(0, room), "+g0+g1+g2+g3+g4");
        ck_assert_str_eq(changes_as_text(2, room), "+g2+g3+g4");
        ck_assert_str_eq(changes_as_text(5, room), "");
    }
    ck_assert(set_members_of_group(2, 0));
    ck_assert(set_members_of_group(0, 0));
    ck_assert(set_members_of_group(4, 0));
    ck_assert_str_eq(changes_as_text(0, 2), "+g1+g3-g2-g0-g4");
    ck_assert_str_eq(changes_as_text(4, 2), "-g2-g0-g4");
    ck_assert_str_eq(changes_as_text(6, 2), "-g0-g4");
    ck_assert(set_members_of_group(4, 1));
    ck_assert_str_eq(changes_as_text(7, 2), "+g4");
    free_wide_and_groups();
}

static uint32_t find_nodes_of_group(uint32_t number, uint64_t *nodes, uint32_t room)
{
    char name[DOMI_WIDE_TAIL];

    return domi_wide_copy_nodes_with_members(wide, number, name, nodes, room);
}

DOMT_TEST(nodes_with_members_are_noted_once_and_forgotten_at_their_end)
{
    uint64_t nodes[8];

    make_wide_and_groups();
    for (uint64_t node = 1; node <= 6; node++) {
        ck_assert_int_eq(domi_wide_record_members_of_node(wide, "g1", 2, node, true), 0);
        ck_assert_int_eq(domi_wide_record_members_of_node(wide, "g1", 2, node, true), 0);
        ck_assert_int_eq(domi_wide_record_members_of_node(wide, "else", 4, node, true), 0);
    }
    ck_assert_uint_eq(find_nodes_of_group(1, nodes, 8), 6);
    ck_assert_uint_eq(find_nodes_of_group(1, nodes, 4), 4);
    ck_assert_uint_eq(find_nodes_of_group(0, nodes, 8), 0);
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "g1", 2, 3, false), 0);
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "nobody", 6, 3, false), 0);
    ck_assert_uint_eq(find_nodes_of_group(1, nodes, 8), 5);
    ck_assert_uint_eq(wide->count, OPENED + 1);
    for (uint64_t node = 1; node <= 6; node++) {
        domi_wide_remove_ended_node(wide, node);
        ck_assert_uint_eq(find_nodes_of_group(1, nodes, 8), 6 - node - (node < 3));
    }
    ck_assert_uint_eq(wide->count, OPENED); /* the group that is not open on this node is removed */
    free_wide_and_groups();
}

DOMT_TEST(node_knows_a_bounded_number_of_groups)
{
    uint32_t number;
    char name[16];

    make_wide_and_groups();
    for (uint32_t i = OPENED; i < DOMUS_CLUSTER_GROUPS_MAX; i++) {
        int length = snprintf(name, sizeof name, "far%u", i);
        ck_assert_int_eq(domi_wide_record_members_of_node(wide, name, (size_t)length, 1, true), 0);
    }
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "more", 4, 1, true), -ENOSPC);
    ck_assert_int_eq(domi_wide_open_or_add_group(wide, "more", (domus_group){groups[0]}, &number),
                     -ENOSPC);
    ck_assert_int_eq(domi_wide_open_or_add_group(wide, "far9", (domus_group){groups[0]}, &number),
                     0);
    ck_assert_uint_eq(number, OPENED);
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "far8", 4, 1, false), 0);
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "more", 4, 1, true), 0);
    domi_wide_remove_ended_node(wide, 1);
    ck_assert_uint_eq(wide->count, OPENED + 1);
    for (uint64_t node = 1; node <= DOMUS_CLUSTER_NODES_MAX; node++)
        ck_assert_int_eq(domi_wide_record_members_of_node(wide, "far9", 4, node, true), 0);
    ck_assert_int_eq(domi_wide_record_members_of_node(wide, "far9", 4, 5000, true), -ENOSPC);
    free_wide_and_groups();
}

DOMT_SUITE(60)
