/* The registry of a system's kinds of grains, and the checks that a kind has to pass. */
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/directory/grain.h"
#include "house/family/behaviour.h"
#include "house/family/family.h"
#include "house/message/pooled.h"

#include <domus/group.h>

#include <errno.h>
#include <string.h>

void domi_grains_init(domi_grains *grains, uint32_t kinds_max, uint32_t living_max,
                      const uint64_t key[2])
{
    *grains =
        (domi_grains){.kinds_max = kinds_max, .living_max = living_max, .key = {key[0], key[1]}};
    domi_spinlock_init(&grains->lock);
}

/* Map the tables of a kind. Pages of these tables take memory only when they are used, so the
 * tables do not count as memory of the system; nor does the table of names. Returns 0; -ENOMEM. */
static int map_tables_of_kind(domi_grain_kind *kind, const uint64_t key[2])
{
    domi_meter *before = domi_memory_set_meter(NULL);
    int error = domi_names_init(&kind->names, kind->table.living_max, key);

    kind->grains_bytes = kind->table.living_max * sizeof *kind->grains;
    if (error == 0) {
        kind->grains = domi_memory_map_pages(kind->grains_bytes);
        error = kind->grains != NULL ? 0 : -ENOMEM;
    }
    (void)domi_memory_set_meter(before);
    return error;
}

static void free_kind_of_grains(domi_grain_kind *kind)
{
    domi_meter *before = domi_memory_set_meter(NULL);

    domi_names_fini(&kind->names);
    if (kind->grains != NULL)
        domi_memory_unmap_pages(kind->grains, kind->grains_bytes);
    (void)domi_memory_set_meter(before);
    domi_memory_free(kind);
}

void domi_grains_fini(domi_grains *grains)
{
    while (grains->first != NULL) {
        domi_grain_kind *kind = grains->first;

        grains->first = kind->next;
        free_kind_of_grains(kind);
    }
    domi_memory_free(atomic_load_explicit(&grains->parts, memory_order_relaxed));
    grains->parts = NULL;
}

static bool is_name_of_kind_valid(const char *name)
{
    size_t length = name != NULL ? strnlen(name, DOMI_NAME_MAX + 1) : 0;

    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            return false;
    }
    return length != 0 && length <= DOMI_NAME_MAX;
}

/* True if a life of a grain can be placed as the options say. */
static bool are_spawn_options_valid(const domi_manager *manager, const domus_spawn_options *options)
{
    if (options->name != NULL || options->detached || options->mailbox_max > UINT16_MAX)
        return false;
    if (options->pool != NULL && domi_pooled_home_for_spawn(manager, options->pool, NULL) == NULL)
        return false; /* the pool that the options name belongs to another system */
    switch (options->placement) {
    case DOMUS_NEAR:
    case DOMUS_SPREAD:
        return true;
    case DOMUS_ON_THREAD:
        return options->thread < manager->threads;
    }
    return false;
}

static int check_kind_table(const domi_manager *manager, const domus_grain_kind *table)
{
    if (table == NULL || !is_name_of_kind_valid(table->name) ||
        table->living_max > manager->directory.grains->living_max ||
        !are_spawn_options_valid(manager, &table->options))
        return -EINVAL;
    int error = domi_behaviour_check(table->behaviour);
    if (error != 0)
        return error;
    return table->behaviour->kind == DOMUS_STATE ? 0 : -EINVAL;
}

static domi_grain_kind *make_kind_of_grains(const domi_grains *grains,
                                            const domus_grain_kind *table)
{
    domi_grain_kind *kind = domi_memory_new_cache_lines(sizeof *kind);

    if (kind == NULL)
        return NULL;
    kind->table = *table;
    if (table->living_max == 0)
        kind->table.living_max = grains->living_max;
    memcpy(kind->name, table->name,
           /* is_name_of_kind_valid() has checked the length of the name */
           strlen(table->name) + 1);
    kind->table.name = kind->name;
    for (uint32_t i = 0; i < DOMI_GRAIN_STRIPES; i++)
        domi_spinlock_init(&kind->stripes[i].lock);
    if (map_tables_of_kind(kind, grains->key) == 0)
        return kind;
    free_kind_of_grains(kind);
    return NULL;
}

/* Find the kind of grains with this name. Called under the lock. Returns NULL if there is none. */
static domi_grain_kind *find_kind_by_name(const domi_grains *grains, const char *name)
{
    domi_grain_kind *kind = grains->first;

    while (kind != NULL && strcmp(kind->name, name) != 0)
        kind = kind->next;
    return kind;
}

domi_grain_kind *domi_grain_kind_first(domi_grains *grains)
{
    domi_spinlock_lock(&grains->lock);
    domi_grain_kind *first = grains->first;
    domi_spinlock_unlock(&grains->lock);
    return first;
}

domi_grain_kind *domi_grain_kind_find(domi_grains *grains, const char *name)
{
    domi_spinlock_lock(&grains->lock);
    domi_grain_kind *kind = find_kind_by_name(grains, name);
    domi_spinlock_unlock(&grains->lock);
    return kind;
}

/* Find the open kind that `table` describes, or add `made` (NULL: none was made yet). Returns 0,
 * also if the kind was not found and `made` is NULL; -EEXIST; -ENOSPC. */
static int find_or_add_kind(domi_grains *grains, const domus_grain_kind *table,
                            domi_grain_kind *made, domi_grain_kind **ret_kind)
{
    int error = 0;

    domi_spinlock_lock(&grains->lock);
    *ret_kind = find_kind_by_name(grains, table->name);
    if (*ret_kind != NULL && (*ret_kind)->table.behaviour != table->behaviour) {
        error = -EEXIST;
    } else if (*ret_kind == NULL && grains->count >= grains->kinds_max) {
        error = -ENOSPC;
    } else if (*ret_kind == NULL && made != NULL) {
        made->next = grains->first;
        grains->first = made;
        grains->count++;
        *ret_kind = made;
    }
    domi_spinlock_unlock(&grains->lock);
    return error;
}

int domi_grain_open_kind(domi_manager *manager, const domus_grain_kind *table,
                         domi_grain_kind **ret_kind)
{
    domi_grains *grains = manager->directory.grains;
    domi_grain_kind *kind;

    if (grains == NULL)
        return -ENOSPC;
    int error = check_kind_table(manager, table);
    if (error == 0)
        error = find_or_add_kind(grains, table, NULL, &kind);
    if (error == 0 && kind == NULL) {
        domi_grain_kind *made = make_kind_of_grains(grains, table);
        if (made == NULL)
            return -ENOMEM;
        error = find_or_add_kind(grains, table, made, &kind);
        if (error != 0 || kind != made)
            free_kind_of_grains(made);
    }
    if (error == 0)
        *ret_kind = kind;
    return error;
}

int domus_grain_open(domus_stack *stack, const domus_grain_kind *kind, domus_grains *ret_grains)
{
    return domi_grain_open_kind(stack->manager, kind, &ret_grains->kind);
}

const char *domus_grain_key(const domus_stack *stack)
{
    const domi_family *family = domi_stack_get_house(stack)->family;

    return family != NULL && family->grain != NULL ? family->grain->key : NULL;
}

uint64_t domus_grain_fence(const domus_stack *stack)
{
    const domi_family *family = domi_stack_get_house(stack)->family;

    return family != NULL && family->grain != NULL ? family->grain->fence : 0;
}

uint32_t domus_grain_count(domus_grains grains)
{
    return grains.kind != NULL ? domi_names_count(&grains.kind->names) : 0;
}
