/* The memory of a look at a program, and the names of its figures (look.h). */
#include "protocols/observe/doctor/look.h"

#include <errno.h>
#include <stdlib.h>

#define NAME_(name)     #name,
#define KEY_(name, key) key,

const char *const domi_look_counter_names[] = {DOMI_LOOK_COUNTERS(NAME_) NULL};
const char *const domi_look_phase_names[] = {DOMI_LOOK_PHASES(NAME_) NULL};
const char *const domi_look_time_names[] = {DOMI_LOOK_TIMES(NAME_) NULL};
const char *const domi_look_runner_names[] = {DOMI_LOOK_RUNNERS(NAME_) NULL};
const char *const domi_look_behaviour_names[] = {DOMI_LOOK_BEHAVIOURS(NAME_) NULL};
const char *const domi_look_listener_names[] = {DOMI_LOOK_LISTENERS(NAME_) NULL};
const char *const domi_look_memory_names[] = {DOMI_LOOK_MEMORY(NAME_) NULL};
const char *const domi_look_usage_names[] = {DOMI_LOOK_USAGE(NAME_) NULL};
const char *const domi_look_machine_names[] = {DOMI_LOOK_MACHINE(NAME_) NULL};
const char *const domi_look_setting_names[] = {DOMI_LOOK_SETTINGS(KEY_) NULL};

/* Allocate a list of zeros with at least one element, because NULL would mean that there is no
 * memory. */
static void *allocate_list_of_zeros(size_t count, size_t size)
{
    return calloc(count != 0 ? count : 1, size);
}

int domi_look_allocate_lists(domi_look *ret_look, size_t threads, size_t runners, size_t actors,
                             size_t ports)
{
    if (threads > DOMI_LOOK_THREADS_MAX || runners > DOMI_LOOK_RUNNERS_MAX ||
        actors > DOMI_LOOK_ACTORS_MAX || ports > DOMI_LOOK_PORTS_MAX)
        return -E2BIG;
    domi_look look = {
        .thread_count = (uint32_t)threads,
        .runner_count = (uint32_t)runners,
        .actors_count = (uint32_t)actors,
        .port_count = (uint32_t)ports,
        .threads = allocate_list_of_zeros(threads, sizeof *look.threads),
        .runners = allocate_list_of_zeros(runners, sizeof *look.runners),
        .actors = allocate_list_of_zeros(actors, sizeof *look.actors),
        .ports = allocate_list_of_zeros(ports, sizeof *look.ports),
    };
    if (look.threads == NULL || look.runners == NULL || look.actors == NULL || look.ports == NULL) {
        domi_look_free_lists(&look);
        return -ENOMEM;
    }
    *ret_look = look;
    return 0;
}

void domi_look_free_lists(domi_look *look)
{
    free(look->threads);
    free(look->runners);
    free(look->actors);
    free(look->ports);
    *look = (domi_look){0};
}

void domi_look_copy_name(char *ret_name, size_t size, const char *name)
{
    size_t i = 0;

    for (; i + 1 < size && name[i] != '\0'; i++)
        ret_name[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    ret_name[i] = '\0';
}

uint64_t domi_look_count_open_connections(const domi_look *look)
{
    uint64_t open = 0;

    for (uint32_t i = 0; i < look->port_count; i++)
        open += look->ports[i].counts.open;
    return open;
}
