/* Sums the counts of each behaviour over threads, pools, and the outside (sums.h). */
#include "protocols/observe/sums.h"

#include "protocols/observe/texts.h"

#include <domus/pools.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX (DOMUS_BEHAVIOURS_MAX + 1u)

/* --- reading counts --------------------------------------------------------------------------- */

/* Find the sum of the behaviour with this name. The list is searched from its start, because there
 * are few names. */
static domus_behaviour_profile *find_sum_of_behaviour(const domi_sums *sums, const char *name)
{
    for (uint32_t i = 0; i < sums->count; i++) {
        if (strcmp(sums->each[i].name, name) == 0)
            return &sums->each[i];
    }
    return NULL;
}

static void add_behaviour_counts(domi_sums *sums, const domus_behaviour_profile *more)
{
    domus_behaviour_profile *to = find_sum_of_behaviour(sums, more->name);

    if (to == NULL) {
        if (sums->count < NAMES_MAX)
            sums->each[sums->count++] = *more;
        return;
    }
    to->runs += more->runs;
    to->run_ns += more->run_ns;
    to->messages += more->messages;
    to->waits += more->waits;
    to->wait_ns += more->wait_ns;
    to->failures += more->failures;
    to->alive += more->alive;
    to->bytes += more->bytes;
}

static void add_counts_of_behaviours_at_place(domi_sums *sums, const domus_behaviour_profile *more,
                                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_behaviour_counts(sums, &more[i]);
}

int domi_sums_read_behaviours(domus_system *system, domi_sums *ret_sums)
{
    const domus_config *config = domus_system_config(system);
    domi_sums sums = {0, malloc(2 * NAMES_MAX * sizeof *sums.each)};
    /* the second half of the memory, for the counts of one place that are being added */
    domus_behaviour_profile *place = sums.each + NAMES_MAX;
    uint32_t count;

    if (sums.each == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        if (domus_system_behaviours(system, i, place, NAMES_MAX, &count) == 0)
            add_counts_of_behaviours_at_place(&sums, place, count);
    }
    if (domus_outside_behaviours(system, place, NAMES_MAX, &count) == 0)
        add_counts_of_behaviours_at_place(&sums, place, count);
    for (size_t i = 0; i < config->pool_count; i++) {
        const domus_pool *pool = domus_outside_pool_find(system, config->pools[i].name);
        if (domus_pool_behaviours(pool, place, NAMES_MAX, &count) == 0)
            add_counts_of_behaviours_at_place(&sums, place, count);
    }
    *ret_sums = sums;
    return 0;
}

void domi_sums_free_behaviours(domi_sums *sums)
{
    free(sums->each);
    *sums = (domi_sums){0};
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool has_sum_changed(const domus_behaviour_profile *now, const domi_sums *before)
{
    const domus_behaviour_profile *old =
        before != NULL ? find_sum_of_behaviour(before, now->name) : NULL;

    return old == NULL || old->runs != now->runs || old->run_ns != now->run_ns ||
           old->messages != now->messages || old->failures != now->failures ||
           old->alive != now->alive || old->bytes != now->bytes;
}

static void write_sum_of_behaviour(domus_appender *json, const domus_behaviour_profile *one)
{
    (void)domus_append(json, "[", 1);
    domi_json_append_string(json, one->name);
    (void)domus_append_text(json,
                            ",\"%s\",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
                            one->is_channels ? "channels" : "state", one->runs, one->run_ns,
                            one->messages, one->waits, one->wait_ns, one->failures, one->alive,
                            one->bytes);
}

static int compare_behaviours_by_run_time(const void *a_, const void *b_)
{
    const domus_behaviour_profile *const *a = a_, *const *b = b_;

    return ((*a)->run_ns < (*b)->run_ns) - ((*a)->run_ns > (*b)->run_ns);
}

void domi_sums_write_changed_json(domus_appender *json, const domi_sums *sums,
                                  const domi_sums *before)
{
    const domus_behaviour_profile *changed[NAMES_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < sums->count; i++) {
        if (has_sum_changed(&sums->each[i], before))
            changed[count++] = &sums->each[i];
    }
    qsort(changed, count, sizeof(const domus_behaviour_profile *), compare_behaviours_by_run_time);
    (void)domus_append(json, "[", 1);
    for (uint32_t i = 0; i < count && i < DOMI_SUMS_SHOWN; i++) {
        (void)domus_append(json, ",", i != 0);
        write_sum_of_behaviour(json, changed[i]);
    }
    (void)domus_append(json, "]", 1);
}
