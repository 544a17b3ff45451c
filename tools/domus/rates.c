/* Computes rates from the differences of two samples. The times of submit and sleep may decrease
 * (domus/profile.h), so a negative difference counts as 0. */
#include "tools/domus/rates.h"

#include <string.h>

#define SECOND_NS 1e9

static uint64_t get_increase_of_counter(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

bool rates_can_samples_be_compared(const sample *before, const sample *now)
{
    return before->pid == now->pid && before->taken_ns < now->taken_ns &&
           before->uptime_ns <= now->uptime_ns && before->thread_count == now->thread_count &&
           (now->thread_count == 0 || before->threads[0].wall_ns <= now->threads[0].wall_ns);
}

double rates_get_seconds_between(const sample *before, const sample *now)
{
    uint64_t ns = 0;

    if (before != NULL)
        ns = get_increase_of_counter(now->taken_ns, before->taken_ns);
    else if (now->uptime_ns > 0)
        ns = now->uptime_ns;
    else if (now->thread_count > 0)
        ns = now->threads[0].wall_ns;
    return ns > 0 ? (double)ns / SECOND_NS : 1;
}

static void count_increases_and_rates_of_counters(const uint64_t *before, const uint64_t *now,
                                                  double seconds, uint64_t *ret_counts,
                                                  double *ret_rates)
{
    for (int i = 0; i < COUNTERS; i++) {
        ret_counts[i] = get_increase_of_counter(now[i], before[i]);
        ret_rates[i] = (double)ret_counts[i] / seconds;
    }
}

void rates_between_samples_of_thread(const sample *before, const sample *now, uint32_t thread,
                                     thread_rates *ret_rates)
{
    static const thread_sample nothing;
    const thread_sample *to = &now->threads[thread];
    const thread_sample *from =
        before != NULL && thread < before->thread_count ? &before->threads[thread] : &nothing;
    double sum = 0;

    memset(ret_rates, 0, sizeof *ret_rates);
    for (int i = 0; i < PHASES; i++) {
        ret_rates->shares[i] = (double)get_increase_of_counter(to->phase_ns[i], from->phase_ns[i]);
        sum += ret_rates->shares[i];
    }
    for (int i = 0; i < PHASES && sum > 0; i++)
        ret_rates->shares[i] /= sum;
    count_increases_and_rates_of_counters(from->counts, to->counts,
                                          rates_get_seconds_between(before, now), ret_rates->counts,
                                          ret_rates->rates);
}

void rates_between_samples_of_all_threads(const sample *before, const sample *now,
                                          thread_rates *ret_rates)
{
    memset(ret_rates, 0, sizeof *ret_rates);
    for (uint32_t thread = 0; thread < now->thread_count; thread++) {
        thread_rates one;
        rates_between_samples_of_thread(before, now, thread, &one);
        for (int i = 0; i < PHASES; i++)
            ret_rates->shares[i] += one.shares[i] / now->thread_count;
        for (int i = 0; i < COUNTERS; i++) {
            ret_rates->rates[i] += one.rates[i];
            ret_rates->counts[i] += one.counts[i];
        }
    }
}

/* Returns the sample of the same runner in the earlier sample `before`, where it has the same place
 * in the list; zeros if it is not there. */
static const runner_sample *find_runner_in_earlier_sample(const sample *before, const sample *now,
                                                          uint32_t runner)
{
    static const runner_sample nothing;
    const runner_sample *to = &now->runners[runner];

    if (before == NULL || runner >= before->runner_count)
        return &nothing;
    const runner_sample *from = &before->runners[runner];
    return from->runner == to->runner && strcmp(from->pool, to->pool) == 0 ? from : &nothing;
}

void rates_between_samples_of_runner(const sample *before, const sample *now, uint32_t runner,
                                     runner_rates *ret_rates)
{
    const runner_sample *to = &now->runners[runner],
                        *from = find_runner_in_earlier_sample(before, now, runner);

    memset(ret_rates, 0, sizeof *ret_rates);
    ret_rates->run = (double)get_increase_of_counter(to->run_ns, from->run_ns);
    ret_rates->search = (double)get_increase_of_counter(to->search_ns, from->search_ns);
    ret_rates->park = (double)get_increase_of_counter(to->park_ns, from->park_ns);
    double sum = ret_rates->run + ret_rates->search + ret_rates->park;
    if (sum > 0) {
        ret_rates->run /= sum;
        ret_rates->search /= sum;
        ret_rates->park /= sum;
    }
    count_increases_and_rates_of_counters(from->counts, to->counts,
                                          rates_get_seconds_between(before, now), ret_rates->counts,
                                          ret_rates->rates);
}

/* Returns the figures of the behaviour with this name and pool in the earlier sample `before`; both
 * lists are sorted by them. */
static const behaviour_sample *find_behaviour_in_earlier_sample(const sample *before,
                                                                const behaviour_sample *wanted)
{
    static const behaviour_sample nothing;
    uint32_t low = 0, high = before != NULL ? before->behaviour_count : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const behaviour_sample *one = &before->behaviours[middle];
        int order = strcmp(wanted->name, one->name);
        if (order == 0)
            order = strcmp(wanted->pool, one->pool);
        if (order == 0)
            return one;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return &nothing;
}

void rates_between_samples_of_behaviour(const sample *before, const sample *now, uint32_t behaviour,
                                        behaviour_rates *ret_rates)
{
    const behaviour_sample *to = &now->behaviours[behaviour],
                           *from = find_behaviour_in_earlier_sample(before, to);
    double seconds = rates_get_seconds_between(before, now);
    uint64_t waits = get_increase_of_counter(to->waits, from->waits);

    *ret_rates = (behaviour_rates){
        .share = (double)get_increase_of_counter(to->run_ns, from->run_ns) / SECOND_NS / seconds,
        .runs = (double)get_increase_of_counter(to->runs, from->runs) / seconds,
        .messages = (double)get_increase_of_counter(to->messages, from->messages) / seconds,
        .failures = (double)get_increase_of_counter(to->failures, from->failures) / seconds,
        .wait_ns = waits > 0
                       ? (double)get_increase_of_counter(to->wait_ns, from->wait_ns) / (double)waits
                       : 0,
        .alive = to->alive,
        .bytes = to->bytes,
        .failed = to->failures,
    };
}
