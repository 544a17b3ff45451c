/* This file has the table of the keys that `bench sweep` sweeps, and of their values
 * (sweep_values.h). */
#include "bench/sweep_values.h"

#include <string.h>

const struct sweep_key sweep_keys[SWEEP_KEYS_COUNT] = {
    {"scheduler.ioRatio", NULL, {"50", "auto", "10", "30", "70", "90"}},
    {"scheduler.minBudget", NULL, {"50us", "500us", "5ms"}},
    {"scheduler.minBudgetBusy", NULL, {"50us", "10us", "200us", "1ms"}},
    {"scheduler.maxBudget", NULL, {"10ms", "1ms", "50ms"}},
    {"scheduler.steal.floor", NULL, {"32", "4", "128"}},
    {"scheduler.steal.aggression", NULL, {"128", "16", "1024"}},
    {"scheduler.steal.minRun", NULL, {"2us", "0", "10us", "50us"}},
    {"scheduler.steal.patience", NULL, {"32768", "4096", "262144"}},
    {"scheduler.idle.spin", NULL, {"auto", "20us", "100us"}},
    {"scheduler.idle.standIn", NULL, {"100us", "0", "1ms"}},
    {"scheduler.beltSlots", NULL, {"1024", "0", "64"}},
    {"scheduler.maxMessagesPerRun", NULL, {"64", "16", "256"}},
    {"io.buffers.size", NULL, {"4KiB", "1KiB", "16KiB"}},
    {"io.buffers.count", NULL, {"1024", "128", "4096"}},
    {"pools.work.throughput", "pool", {"64", "8", "512"}},
};

uint32_t sweep_count_values_of_key(const struct sweep_key *key)
{
    uint32_t count = 0;

    while (key->values[count] != NULL)
        count++;
    return count;
}

static bool is_key_named_in_list(const char *name, const char *names)
{
    size_t size = strlen(name);

    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, size) == 0 && (at[size] == '\0' || at[size] == ','))
            return true;
    }
    return false;
}

bool sweep_key_is_wanted(const struct sweep_key *key, const struct sweep_row *row,
                         const char *names)
{
    if (key->load != NULL && strcmp(key->load, row->name) != 0)
        return false;
    return names == NULL || is_key_named_in_list(key->name, names);
}
