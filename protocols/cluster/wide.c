/* The table of the groups that are known over the cluster (wide.h). */
#include "protocols/cluster/wide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool domi_wide_is_valid_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    }
    return length > 0 && length <= DOMI_WIDE_NAME_MAX;
}

/* --- finding groups, under the lock ----------------------------------------------------------- */

static domi_wide_group **bucket_of_group_name(domi_wide *wide, const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* the hash of a group's name is FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return &wide->buckets[(hash ^ hash >> 32) % DOMI_WIDE_BUCKETS];
}

static domi_wide_group *find_group_by_name(domi_wide *wide, const char *name, size_t length)
{
    domi_wide_group *at = *bucket_of_group_name(wide, name, length);

    while (at != NULL && (strlen(at->name) != length || memcmp(at->name, name, length) != 0))
        at = at->next;
    return at;
}

static int find_or_add_group_by_name(domi_wide *wide, const char *name, size_t length,
                                     domi_wide_group **ret_group)
{
    domi_wide_group *group = find_group_by_name(wide, name, length);

    if (group == NULL) {
        if (wide->count == DOMUS_CLUSTER_GROUPS_MAX)
            return -ENOSPC;
        group = calloc(1, sizeof *group);
        if (group == NULL)
            return -ENOMEM;
        domi_wide_group **bucket = bucket_of_group_name(wide, name, length);
        memcpy(group->name, name, length);
        group->next = *bucket;
        *bucket = group;
        wide->count++;
    }
    *ret_group = group;
    return 0;
}

static bool was_group_opened_here(const domi_wide_group *group)
{
    return group->group.group != NULL;
}

/* Free the group to which `link` leads, if it was not opened on this node and no node has members
 * of it. Returns whether it was freed. */
static bool free_group_if_unused(domi_wide *wide, domi_wide_group **link)
{
    domi_wide_group *group = *link;

    if (was_group_opened_here(group) || group->nodes_count != 0)
        return false;
    *link = group->next;
    free(group->nodes);
    free(group);
    wide->count--;
    return true;
}

/* Find the link in the table's bucket that leads to a group. */
static domi_wide_group **find_link_to_group(domi_wide *wide, const domi_wide_group *group)
{
    domi_wide_group **link = bucket_of_group_name(wide, group->name, strlen(group->name));

    while (*link != group)
        link = &(*link)->next;
    return link;
}

/* --- groups that were opened here ------------------------------------------------------------- */

static int make_room_for_opened_group(domi_wide *wide)
{
    if (wide->opened_count < wide->opened_room)
        return 0;
    uint32_t room = wide->opened_room != 0 ? 2 * wide->opened_room : 16;
    domi_wide_group **opened = realloc(wide->opened, room * sizeof(domi_wide_group *));
    if (opened == NULL)
        return -ENOMEM;
    wide->opened = opened;
    wide->opened_room = room;
    return 0;
}

int domi_wide_open_or_add_group(domi_wide *wide, const char *name, domus_group group,
                                uint32_t *ret_number)
{
    domi_wide_group *found;

    domi_lock_take(&wide->lock);
    int error = make_room_for_opened_group(wide);
    if (error == 0)
        error = find_or_add_group_by_name(wide, name, strlen(name), &found);
    if (error == 0) {
        if (!was_group_opened_here(found)) {
            found->group = group;
            found->number = wide->opened_count;
            wide->opened[wide->opened_count++] = found;
        }
        *ret_number = found->number;
    }
    domi_lock_release(&wide->lock);
    return error;
}

/* Returns the group that was opened here with this number; NULL if there is none. Under the table's
 * lock. */
static domi_wide_group *opened_group_by_number(domi_wide *wide, uint32_t number)
{
    return number < wide->opened_count ? wide->opened[number] : NULL;
}

bool domi_wide_has_group_outlet(domi_wide *wide, uint32_t number)
{
    domi_lock_take(&wide->lock);
    const domi_wide_group *group = opened_group_by_number(wide, number);
    bool has = group != NULL && group->has_outlet;
    domi_lock_release(&wide->lock);
    return has;
}

void domi_wide_record_outlet(domi_wide *wide, uint32_t number)
{
    domi_lock_take(&wide->lock);
    domi_wide_group *group = opened_group_by_number(wide, number);
    if (group != NULL)
        group->has_outlet = true;
    domi_lock_release(&wide->lock);
}

domus_group domi_wide_find_opened_group(domi_wide *wide, const char *name, size_t length)
{
    domi_lock_take(&wide->lock);
    const domi_wide_group *found = find_group_by_name(wide, name, length);
    domus_group group = found != NULL ? found->group : (domus_group){NULL};
    domi_lock_release(&wide->lock);
    return group;
}

domus_group domi_wide_group_by_number(domi_wide *wide, uint32_t number)
{
    domi_lock_take(&wide->lock);
    const domi_wide_group *found = opened_group_by_number(wide, number);
    domus_group group = found != NULL ? found->group : (domus_group){NULL};
    domi_lock_release(&wide->lock);
    return group;
}

/* --- changes of groups here ------------------------------------------------------------------- */

/* Move a group to the newest end of the list of changed groups. Under the table's lock. */
static void move_group_to_newest_change(domi_wide *wide, domi_wide_group *group)
{
    if (group->changed != 0) {
        *(group->older != NULL ? &group->older->newer : &wide->oldest) = group->newer;
        *(group->newer != NULL ? &group->newer->older : &wide->newest) = group->older;
    }
    group->older = wide->newest;
    group->newer = NULL;
    *(wide->newest != NULL ? &wide->newest->newer : &wide->oldest) = group;
    wide->newest = group;
    group->changed = ++wide->changes;
}

bool domi_wide_update_local_members(domi_wide *wide, uint32_t number)
{
    bool has_changed = false;

    domi_lock_take(&wide->lock);
    domi_wide_group *group = opened_group_by_number(wide, number);
    if (group != NULL) {
        bool has_members = domus_group_members(group->group) != 0;
        has_changed = has_members != group->has_members;
        group->has_members = has_members;
        if (has_changed)
            move_group_to_newest_change(wide, group);
    }
    domi_lock_release(&wide->lock);
    return has_changed;
}

uint64_t domi_wide_last_change_number(domi_wide *wide)
{
    domi_lock_take(&wide->lock);
    uint64_t changes = wide->changes;
    domi_lock_release(&wide->lock);
    return changes;
}

uint32_t domi_wide_copy_oldest_changes(domi_wide *wide, uint64_t from,
                                       domi_wide_change *ret_changes, uint32_t room,
                                       uint64_t *ret_to)
{
    uint32_t count = 0;

    domi_lock_take(&wide->lock);
    const domi_wide_group *group = from == 0 ? wide->oldest : wide->newest;
    while (from != 0 && group != NULL && group->older != NULL && group->older->changed > from)
        group = group->older;
    if (group != NULL && group->changed <= from)
        group = NULL;
    for (; group != NULL && count < room; group = group->newer) {
        memcpy(ret_changes[count].name, group->name, sizeof group->name);
        ret_changes[count].has_members = group->has_members;
        *ret_to = group->changed;
        count++;
    }
    domi_lock_release(&wide->lock);
    return count;
}

/* --- nodes that have members of a group ------------------------------------------------------- */

/* Add a node to the nodes that have members of a group. Under the table's lock. */
static int add_node_with_members(domi_wide_group *group, uint64_t node)
{
    if (group->nodes_count == DOMUS_CLUSTER_NODES_MAX)
        return -ENOSPC;
    if (group->nodes_count == group->nodes_room) {
        uint32_t room = group->nodes_room != 0 ? 2 * group->nodes_room : 4;
        uint64_t *nodes = realloc(group->nodes, room * sizeof *nodes);
        if (nodes == NULL)
            return -ENOMEM;
        group->nodes = nodes;
        group->nodes_room = room;
    }
    group->nodes[group->nodes_count++] = node;
    return 0;
}

static uint32_t index_of_node_with_members(const domi_wide_group *group, uint64_t node)
{
    uint32_t index = 0;

    while (index < group->nodes_count && group->nodes[index] != node)
        index++;
    return index;
}

int domi_wide_record_members_of_node(domi_wide *wide, const char *name, size_t length,
                                     uint64_t node, bool has_members)
{
    domi_wide_group *group;
    int error = 0;

    domi_lock_take(&wide->lock);
    if (has_members)
        error = find_or_add_group_by_name(wide, name, length, &group);
    else
        group = find_group_by_name(wide, name, length);
    if (error == 0 && group != NULL) {
        uint32_t index = index_of_node_with_members(group, node);
        if (has_members && index == group->nodes_count)
            error = add_node_with_members(group, node);
        else if (!has_members && index < group->nodes_count)
            group->nodes[index] = group->nodes[--group->nodes_count];
        (void)free_group_if_unused(wide, find_link_to_group(wide, group));
    }
    domi_lock_release(&wide->lock);
    return error;
}

uint32_t domi_wide_copy_nodes_with_members(domi_wide *wide, uint32_t number,
                                           char ret_name[DOMI_WIDE_TAIL], uint64_t *ret_nodes,
                                           uint32_t room)
{
    uint32_t count = 0;

    domi_lock_take(&wide->lock);
    const domi_wide_group *group = opened_group_by_number(wide, number);
    if (group != NULL) {
        memcpy(ret_name, group->name, sizeof group->name);
        count = group->nodes_count < room ? group->nodes_count : room;
        if (count != 0)
            memcpy(ret_nodes, group->nodes, count * sizeof *ret_nodes);
    }
    domi_lock_release(&wide->lock);
    return count;
}

void domi_wide_remove_ended_node(domi_wide *wide, uint64_t node)
{
    domi_lock_take(&wide->lock);
    for (uint32_t i = 0; i < DOMI_WIDE_BUCKETS; i++) {
        domi_wide_group **link = &wide->buckets[i];
        while (*link != NULL) {
            domi_wide_group *group = *link;
            uint32_t index = index_of_node_with_members(group, node);
            if (index < group->nodes_count)
                group->nodes[index] = group->nodes[--group->nodes_count];
            if (!free_group_if_unused(wide, link))
                link = &group->next;
        }
    }
    domi_lock_release(&wide->lock);
}

void domi_wide_free(domi_wide *wide)
{
    for (uint32_t i = 0; i < DOMI_WIDE_BUCKETS; i++) {
        while (wide->buckets[i] != NULL) {
            domi_wide_group *group = wide->buckets[i];
            wide->buckets[i] = group->next;
            free(group->nodes);
            free(group);
        }
    }
    free(wide->opened);
    wide->opened = NULL;
}
