/* The hash table of this node's names, which its registrar uses. */
#include "protocols/cluster/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static domi_name **bucket_of_name(domi_registrar *registrar, const char *name)
{
    return &registrar->names[domus_pickle_hash(name) % DOMI_NAMES_BUCKETS];
}

domi_name *domi_name_find(domi_registrar *registrar, const char *name)
{
    domi_name *at = *bucket_of_name(registrar, name);

    while (at != NULL && strcmp(at->name, name) != 0)
        at = at->next;
    return at;
}

int domi_name_add_and_watch_actor(domus_stack *stack, domi_registrar *registrar, const char *name,
                                  domus_address actor)
{
    domi_name **bucket = bucket_of_name(registrar, name);

    if (registrar->count == DOMI_NAMES_MAX)
        return -ENOSPC;
    int error = domi_listed_reserve_memory(registrar->cluster, registrar->count + 1);
    domi_name *made = error == 0 ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return -ENOMEM;
    made->place = DOMI_UNLISTED;
    error = domus_watch_actor(stack, actor, &made->watch);
    if (error != 0) {
        free(made);
        return error;
    }
    memcpy(made->name, name, strlen(name) + 1);
    made->actor = actor;
    made->next = *bucket;
    *bucket = made;
    registrar->count++;
    return 0;
}

domi_name *domi_name_take_from_table(domus_stack *stack, domi_registrar *registrar,
                                     const char *name)
{
    domi_name **link = bucket_of_name(registrar, name);

    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    domi_name *taken = *link;
    if (taken == NULL)
        return NULL;
    *link = taken->next;
    domi_listed_remove_name(registrar->cluster, taken);
    (void)domus_unwatch(stack, taken->watch);
    registrar->count--;
    return taken;
}

void domi_name_remove_and_free(domus_stack *stack, domi_registrar *registrar, const char *name)
{
    free(domi_name_take_from_table(stack, registrar, name));
}
