/* The list of registered names of this node's actors, which any thread may read.
 *
 * Only the registrar changes the list. The last name takes the place of a removed one, so a change
 * takes only some instructions under the lock, and a reader copies a few names at a time. */
#include "protocols/cluster/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEP 64u /* registered names that a reader copies at a time under the lock */

int domi_listed_reserve_memory(domus_cluster *cluster, uint32_t count)
{
    uint32_t room = cluster->listed_room != 0 ? 2 * cluster->listed_room : 64;

    if (count <= cluster->listed_room)
        return 0;
    domi_name **listed = calloc(room, sizeof(domi_name *));
    domi_name **before = cluster->listed;
    if (listed == NULL)
        return -ENOMEM;
    if (before != NULL)
        memcpy(listed, before, cluster->listed_count * sizeof(domi_name *));
    domi_lock_take(&cluster->names_lock);
    cluster->listed = listed;
    cluster->listed_room = room;
    domi_lock_release(&cluster->names_lock);
    free(before);
    return 0;
}

void domi_listed_add_name(domus_cluster *cluster, domi_name *name)
{
    if (name->place != DOMI_UNLISTED)
        return;
    domi_lock_take(&cluster->names_lock);
    name->place = cluster->listed_count;
    cluster->listed[cluster->listed_count++] = name;
    domi_lock_release(&cluster->names_lock);
}

void domi_listed_remove_name(domus_cluster *cluster, domi_name *name)
{
    if (name->place == DOMI_UNLISTED)
        return;
    domi_lock_take(&cluster->names_lock);
    domi_name *last = cluster->listed[--cluster->listed_count];
    cluster->listed[name->place] = last;
    last->place = name->place;
    domi_lock_release(&cluster->names_lock);
    name->place = DOMI_UNLISTED;
}

uint32_t domus_cluster_names(domus_cluster *cluster, uint32_t from, domus_cluster_name *ret_names,
                             uint32_t room)
{
    uint32_t done = 0, total, some;

    do {
        some = 0;
        domi_lock_take(&cluster->names_lock);
        total = cluster->listed_count;
        for (; some < STEP && done < room && from < total; some++, from++, done++) {
            const domi_name *name = cluster->listed[from];
            memcpy(ret_names[done].name, name->name, sizeof ret_names[done].name);
            ret_names[done].actor = name->actor;
        }
        domi_lock_release(&cluster->names_lock);
    } while (some == STEP);
    for (uint32_t i = done; i < room; i++)
        ret_names[i] = (domus_cluster_name){.name = ""};
    return total;
}
