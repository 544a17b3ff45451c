/* One stage of a search, which tries the values of one key (parts.h). */
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <string.h>

/* number of rivals from which on the worse half leaves after the first round already */
#define MANY     8
#define OFFS_MIN 3    /* number of measured deviations from which on the noise is known */
#define CLEARLY  0.22 /* logarithm by which a single run must break a bound to count: a quarter */
/* logarithm by which a rival must break a bound less than the base to be chosen, if all break it */
#define CLEARLY_LATER 0.05

/* --- rounds ----------------------------------------------------------------------------------- */

static void shuffle_runs_of_round(tune_search *search)
{
    for (size_t i = search->order_count; i > 1; i--) {
        size_t other = (size_t)(tune_next_random_number(&search->chance) % i),
               kept = search->order[i - 1];
        search->order[i - 1] = search->order[other];
        search->order[other] = kept;
    }
}

static void begin_round_of_stage(tune_search *search)
{
    search->order_count = 0;
    search->at = 0;
    for (size_t i = 0; i < search->rivals_count; i++) {
        if (!search->rivals[i].has_left)
            search->order[search->order_count++] = i;
    }
    shuffle_runs_of_round(search);
}

void tune_stage_begin_with_values_of_key(tune_search *search)
{
    search->rounds = 0;
    search->rivals_count = search->plan.values[search->key] + 1;
    for (size_t i = 0; i < search->rivals_count; i++)
        search->rivals[i] = (tune_rival){.choice = (uint8_t)i};
    begin_round_of_stage(search);
}

/* --- measuring the noise ---------------------------------------------------------------------- */

/* Returns the standard deviation of the logarithm of a rival's ratio; INFINITY if it is unknown. It
 * is computed from the median of the deviations, so a few outliers do not matter: half of all lie
 * within 0.6745 of it. */
static double get_standard_deviation_of_ratio(const tune_search *search)
{
    double kept[TUNE_OFFS_MAX];
    size_t count = search->offs_count < TUNE_OFFS_MAX ? search->offs_count : TUNE_OFFS_MAX;

    if (search->offs_count < OFFS_MIN)
        return INFINITY;
    memcpy(kept, search->offs, count * sizeof *kept);
    return tune_sort_and_get_median(kept, count) / 0.6745;
}

/* Returns the standard error of a rival's figure after the rounds so far; INFINITY if it is
 * unknown. */
static double get_standard_error_of_rival(const tune_search *search)
{
    return search->rounds == 0
               ? INFINITY
               : get_standard_deviation_of_ratio(search) / sqrt((double)search->rounds);
}

double tune_stage_noise_of_rival_figure(const tune_search *search)
{
    return get_standard_error_of_rival(search) * tune_student_t_of_95_percent(search->offs_count);
}

/* Record how far the last ratio of a rival deviates from the median of its earlier ratios. The
 * factor makes such deviations comparable to the deviation of a single ratio. */
static void record_deviation_of_rival(tune_search *search, const tune_rival *rival, double before)
{
    double rounds = (double)rival->rounds;
    double off = fabs(rival->logs[rival->rounds - 1] - before) * sqrt((rounds - 1) / rounds);

    search->offs[search->offs_count++ % TUNE_OFFS_MAX] = off;
}

/* --- comparing rivals ------------------------------------------------------------------------- */

/* Returns whether a rival breaks a bound on figures. A single run must break it clearly. */
static bool does_rival_break_bound(const tune_rival *rival)
{
    return rival->broken > (rival->rounds < 2 ? CLEARLY : 0);
}

/* Returns whether one rival of the stage is better than the other: rivals that keep the bounds come
 * first, then those that break them less. */
static bool is_rival_better(const tune_rival *one, const tune_rival *other)
{
    if (does_rival_break_bound(one) != does_rival_break_bound(other))
        return !does_rival_break_bound(one);
    if (does_rival_break_bound(one) && one->broken != other->broken)
        return one->broken < other->broken;
    return one->log > other->log;
}

const tune_rival *tune_stage_get_best_rival(const tune_search *search)
{
    const tune_rival *best = &search->rivals[0];

    for (size_t i = 1; i < search->rivals_count; i++) {
        const tune_rival *rival = &search->rivals[i];
        if (!rival->has_left && rival->rounds > 0 && is_rival_better(rival, best))
            best = rival;
    }
    return best;
}

/* Returns how many remaining rivals of the stage are better than this one. */
static size_t count_better_rivals(const tune_search *search, const tune_rival *rival)
{
    size_t place = 0;

    for (size_t i = 0; i < search->rivals_count; i++)
        place += !search->rivals[i].has_left && is_rival_better(&search->rivals[i], rival);
    return place;
}

/* --- the end of a round ----------------------------------------------------------------------- */

static void record_ratio_of_rival_to_base(tune_search *search, tune_rival *rival,
                                          const tune_outcome *outcome, const tune_outcome *base)
{
    double kept[TUNE_ROUNDS_MAX];
    double ratio = log(outcome->goal / base->goal);
    double before = rival->log;
    size_t round = rival->rounds++;

    rival->logs[round] = search->plan.is_more_better ? ratio : -ratio;
    rival->brokens[round] = outcome->broken;
    for (size_t i = 0; i <= round; i++)
        kept[i] = rival->logs[i];
    rival->log = tune_sort_and_get_median(kept, rival->rounds);
    for (size_t i = 0; i <= round; i++)
        kept[i] = rival->brokens[i];
    rival->broken = tune_sort_and_get_median(kept, rival->rounds);
    if (rival != &search->rivals[0] && round > 0)
        record_deviation_of_rival(search, rival, before);
}

/* Returns whether a rival is given up: it breaks a bound that the best rival keeps, each of its
 * rounds was worse than the best rival by more than the noise, the first round of a stage with many
 * rivals is over, or both break a bound and two rounds are over. */
static bool is_rival_beaten(const tune_search *search, const tune_rival *rival,
                            const tune_rival *best)
{
    if (does_rival_break_bound(rival) != does_rival_break_bound(best))
        return true;
    if (does_rival_break_bound(rival))
        return search->rounds >= 2;
    if (search->rounds == 1)
        return search->rivals_count > MANY;
    for (size_t i = 0; i < rival->rounds; i++) {
        if (best->log - rival->logs[i] <= get_standard_error_of_rival(search))
            return false;
    }
    return true;
}

/* Remove the worse half of the stage's rivals, as far as each is beaten. The base stays, because
 * all others are compared with it. A rival that breaks the bounds is removed from the better half,
 * too. */
static void remove_beaten_rivals(tune_search *search)
{
    const tune_rival *best = tune_stage_get_best_rival(search);
    bool leaves[TUNE_VALUES_MAX + 1] = {false};

    for (size_t i = 1; i < search->rivals_count; i++) {
        const tune_rival *rival = &search->rivals[i];
        if (rival->has_left || rival == best || !is_rival_beaten(search, rival, best))
            continue;
        leaves[i] = count_better_rivals(search, rival) >= search->order_count / 2 ||
                    (does_rival_break_bound(rival) && !does_rival_break_bound(best));
    }
    for (size_t i = 1; i < search->rivals_count; i++)
        search->rivals[i].has_left |= leaves[i];
}

/* Returns whether a remaining rival was better than the best one in some round by more than the
 * noise: its other rounds may have been disturbed. */
static bool was_some_rival_better_than_best_in_round(const tune_search *search, double limit)
{
    for (size_t i = 0; i < search->rivals_count; i++) {
        const tune_rival *rival = &search->rivals[i];
        for (size_t round = 0; !rival->has_left && round < rival->rounds; round++) {
            if (rival->logs[round] > limit && !does_rival_break_bound(rival))
                return true;
        }
    }
    return false;
}

/* Returns whether more rounds of the stage could show a difference that matters. */
static bool could_more_rounds_of_stage_matter(const tune_search *search)
{
    const tune_rival *base = &search->rivals[0], *best = tune_stage_get_best_rival(search);
    double noise = tune_stage_noise_of_rival_figure(search);

    if (search->order_count == 1 || search->rounds == TUNE_ROUNDS_MAX)
        return false; /* only the base is left, or no further round is allowed */
    if (does_rival_break_bound(base) && search->rounds >= 2)
        return does_rival_break_bound(best) && search->rounds < 3;
    if (isinf(noise) || (best != base && best->rounds < 2))
        return true;
    if (was_some_rival_better_than_best_in_round(search, best->log + noise))
        return true;
    return best->log <= noise && noise > search->plan.least;
}

bool tune_stage_rate_rivals_after_round(tune_search *search)
{
    const tune_outcome *base = &search->outcomes[0];

    search->rounds++;
    if (base->has_failed) {
        search->verdict = TUNE_BASE_LOST;
        return false;
    }
    for (size_t i = 0; i < search->order_count; i++) {
        tune_rival *rival = &search->rivals[search->order[i]];
        const tune_outcome *outcome = &search->outcomes[search->order[i]];
        if (outcome->has_failed)
            rival->has_left = true;
        else
            record_ratio_of_rival_to_base(search, rival, outcome, base);
    }
    remove_beaten_rivals(search);
    begin_round_of_stage(search);
    return could_more_rounds_of_stage_matter(search);
}

/* Returns whether the best rival is chosen instead of the base. One standard error is enough,
 * because the duel checks the choice again; and half of the smallest difference that matters,
 * because several keys may add up. */
static bool is_best_rival_better_than_base(const tune_search *search, const tune_rival *best)
{
    const tune_rival *base = &search->rivals[0];
    double error = get_standard_error_of_rival(search);

    if (best == base || does_rival_break_bound(base) != does_rival_break_bound(best))
        return best != base;
    if (does_rival_break_bound(best))
        return best->broken < base->broken - CLEARLY_LATER;
    return best->log > search->plan.least / 2 && (isinf(error) || best->log > error);
}

bool tune_stage_choose_value_for_key(tune_search *search)
{
    const tune_rival *best = tune_stage_get_best_rival(search);
    double noise = tune_stage_noise_of_rival_figure(search);

    if (!is_best_rival_better_than_base(search, best))
        best = &search->rivals[0];
    search->best.choice[search->key] = best->choice;
    if (!isinf(noise) && noise > search->noise)
        search->noise = noise;
    return does_rival_break_bound(best);
}
