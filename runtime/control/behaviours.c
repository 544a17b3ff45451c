/* This file tells how much the actors of each behaviour have run: it adds up the tallies of
 * managers by the names of behaviours. */
#include "runtime/pools/pools.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A report about behaviours: the array of entries that the caller wants filled, and how many of
 * them are filled. */
typedef struct report {
    const domi_behaviours *behaviours;
    domus_behaviour_profile *entries;
    uint32_t max;
    uint32_t count;
} report;

/* Returns the entry that a report has for a behaviour, which is found by the behaviour's name or
 * added; NULL if the array is full. */
static domus_behaviour_profile *find_or_add_entry_of_behaviour(report *to, uint32_t number)
{
    const domi_known *known = &to->behaviours->known[number];
    const char *name = number != 0 ? known->name : "(others)";

    for (uint32_t i = 0; i < to->count; i++) {
        if (strcmp(to->entries[i].name, name) == 0)
            return &to->entries[i];
    }
    if (to->count == to->max)
        return NULL;
    domus_behaviour_profile *entry = &to->entries[to->count++];
    *entry = (domus_behaviour_profile){.is_channels = known->kind == DOMUS_CHANNELS};
    snprintf(entry->name, sizeof entry->name, "%s", name);
    return entry;
}

static void add_counts_of_behaviour_to_report(report *to, const domi_tally *tally, uint32_t number)
{
    /* An actor's end is counted after its begin. So the ends are read first, and the difference is
     * never below 0 because an actor ended between the two reads. */
    uint64_t ended = domi_counter_read(&tally->ended);
    uint64_t begun = domi_counter_read(&tally->begun);
    uint64_t runs = domi_counter_read(&tally->runs);

    if (begun == 0 && runs == 0)
        return;
    domus_behaviour_profile *entry = find_or_add_entry_of_behaviour(to, number);
    if (entry == NULL)
        return;
    entry->runs += runs;
    entry->messages += domi_counter_read(&tally->messages);
    entry->run_ns += domi_counter_read(&tally->run_ns);
    entry->waits += domi_counter_read(&tally->waits);
    entry->wait_ns += domi_counter_read(&tally->wait_ns);
    entry->failures += domi_counter_read(&tally->failures);
    entry->alive += begun - ended;
    entry->bytes += (begun - ended) * to->behaviours->known[number].bytes;
}

static void add_tallies_of_manager_to_report(report *to, const domi_manager *manager)
{
    /* acquire: pairs with the release of domi_behaviours_add_number(), so the names of the counted
     * behaviours are seen. */
    uint32_t count = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&to->behaviours->count,
                                          memory_order_acquire);

    for (uint32_t number = 0; number <= count; number++)
        add_counts_of_behaviour_to_report(to, &manager->tallies[number], number);
}

/* Finish a report. An actor may end on another manager than it began on, so a manager's number of
 * living actors may be below 0: then that number and the number of bytes are reported as 0. */
static int finish_report_of_behaviours(report *to, uint32_t *ret_count)
{
    for (uint32_t i = 0; i < to->count; i++) {
        domus_behaviour_profile *entry = &to->entries[i];
        if ((int64_t)entry->alive < 0)
            entry->alive = entry->bytes = 0;
    }
    *ret_count = to->count;
    return 0;
}

int domus_system_behaviours(const domus_system *system, uint32_t thread,
                            domus_behaviour_profile *ret_behaviours, uint32_t max,
                            uint32_t *ret_count)
{
    report to = {&system->behaviours, ret_behaviours, max, 0};

    if (thread >= system->count)
        return -EINVAL;
    add_tallies_of_manager_to_report(&to, &system->threads[thread].manager);
    return finish_report_of_behaviours(&to, ret_count);
}

int domus_pool_behaviours(const domus_pool *pool, domus_behaviour_profile *ret_behaviours,
                          uint32_t max, uint32_t *ret_count)
{
    report to = {&pool->system->behaviours, ret_behaviours, max, 0};

    add_tallies_of_manager_to_report(&to, &pool->home);
    for (uint32_t i = 0; i < pool->count; i++)
        add_tallies_of_manager_to_report(&to, &pool->runners[i]->manager);
    return finish_report_of_behaviours(&to, ret_count);
}

int domus_outside_behaviours(domus_system *system, domus_behaviour_profile *ret_behaviours,
                             uint32_t max, uint32_t *ret_count)
{
    report to = {&system->behaviours, ret_behaviours, max, 0};

    add_tallies_of_manager_to_report(&to, &system->outside);
    pthread_mutex_lock(&system->mutex);
    for (uint32_t i = 0; i < system->detached_count; i++)
        add_tallies_of_manager_to_report(&to, system->managers[system->count + 1 + i]);
    pthread_mutex_unlock(&system->mutex);
    return finish_report_of_behaviours(&to, ret_count);
}
