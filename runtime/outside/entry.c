/* The entry points of a system (domus/entry.h): names under which foreign threads spawn
 * processes. They are a plain list, because a program has few, and a spawn costs more than a
 * search of the list. */
#include "base/memory.h"
#include "house/family/processes.h"
#include "runtime/outside/visit.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <string.h>

static const domus_entry *find_entry_point(const domus_system *system, const char *name)
{
    for (uint32_t i = 0; i < system->entries_count; i++) {
        if (strcmp(system->entries[i].name, name) == 0)
            return &system->entries[i];
    }
    return NULL;
}

/* Make room for one more entry point in the system's list. Returns 0; -ENOMEM. */
static int make_room_for_entry(domus_system *system)
{
    if (system->entries != NULL)
        return 0;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    system->entries = domi_memory_new(DOMUS_ENTRIES_MAX * sizeof *system->entries);
    (void)domi_memory_set_allocator(before);
    return system->entries != NULL ? 0 : -ENOMEM;
}

int domus_entry_add(domus_system *system, const domus_entry *entry)
{
    if (system->stage != DOMI_STAGE_NEW)
        return -EALREADY;
    if (entry->name == NULL || entry->name[0] == '\0')
        return -EINVAL;
    if (strlen(entry->name) > DOMUS_PROCESS_METHOD_MAX)
        return -EMSGSIZE;
    int result = domi_process_check(entry->process, entry->method, entry->input);
    if (result != 0)
        return result;
    if (find_entry_point(system, entry->name) != NULL)
        return -EEXIST;
    if (system->entries_count == DOMUS_ENTRIES_MAX)
        return -ENOSPC;
    result = make_room_for_entry(system);
    if (result == 0)
        system->entries[system->entries_count++] = *entry;
    return result;
}

/* The arguments with which a process is spawned under an entry point. */
typedef struct order {
    domus_system *system;
    const domus_spawn_options *options;
} order;

static int spawn_process_from_outside(void *context, const domus_behaviour *behaviour,
                                      const void *state, domus_address *ret_address)
{
    const order *given = context;

    return domus_outside_spawn_with(given->system, behaviour, state, given->options, ret_address);
}

int domus_outside_process_spawn(domus_system *system, const char *name, const domus_type *type,
                                const void *input, const domus_entry_options *options,
                                domus_address *ret_address)
{
    domus_address nobody = {NULL, 0};
    order given = {system, options != NULL ? options->spawn : NULL};
    domi_visit visit;

    /* The list of entry points does not change any more, because the system has started, so it
     * is read without a lock. */
    int result = domi_outside_enter(system, DOMI_LAST_TO_SPAWN, &visit);
    if (result != 0)
        return result;
    domi_outside_leave(system, &visit);
    const domus_entry *entry = name != NULL ? find_entry_point(system, name) : NULL;
    if (entry == NULL)
        return -ENOENT;
    if (type != entry->input)
        return -EINVAL;
    return domi_process_spawn(entry->process, entry->method != NULL ? entry->method : entry->name,
                              type, input, options != NULL ? options->result_to : nobody,
                              spawn_process_from_outside, &given, ret_address);
}
