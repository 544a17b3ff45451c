/* This file names the sides of a row, compares them with each other and with the goals, and reports
 * the figures one by one (savina_outcome.h). */
#include "bench/savina_outcome.h"

#include <math.h>

/* goal of all rows that are bound by messages with two threads: how many times better than the
 * better peer */
#define GOAL_TWO_THREADS 5.0

double savina_ratio_goal_of_row(const struct savina_outcome *outcome)
{
    double goal = outcome->row->goal;

    return outcome->threads > 1 && goal >= SAVINA_MESSAGE_BOUND ? GOAL_TWO_THREADS : goal;
}

bool savina_is_goal_met(const struct savina_outcome *outcome, enum savina_side placement)
{
    if (placement == SAVINA_SPREAD && outcome->of_limit >= SAVINA_LIMIT_SHARE)
        return true;
    return outcome->ratio[placement] >= savina_ratio_goal_of_row(outcome);
}

const char *savina_side_name(enum savina_side side)
{
    static const char *const names[SAVINA_SIDES] = {
        "near",    "spread",       "rings",       "deques", "stealing",
        "sharing", "caf_stealing", "caf_sharing", "erlang", "threads",
    };

    return names[side];
}

enum savina_side savina_better_caf_of_row(const struct savina_outcome *outcome)
{
    double stealing = outcome->of[SAVINA_CAF_STEALING].value;
    double sharing = outcome->of[SAVINA_CAF_SHARING].value;

    return isnan(sharing) || stealing >= sharing ? SAVINA_CAF_STEALING : SAVINA_CAF_SHARING;
}

/* --- pools ------------------------------------------------------------------------------------ */

enum savina_side savina_best_pool_of_row(const struct savina_outcome *outcome)
{
    int best = SAVINA_SIDES;

    for (int side = SAVINA_LOOPS; side < SAVINA_PLACEMENTS; side++) {
        double value = outcome->of[side].value;
        if (!isnan(value) && (best == SAVINA_SIDES || value > outcome->of[best].value))
            best = side;
    }
    return (enum savina_side)best;
}

static double get_ratio_of_best_pool_to_side(const struct savina_outcome *outcome,
                                             enum savina_side other)
{
    enum savina_side best = savina_best_pool_of_row(outcome);

    return best == SAVINA_SIDES ? (double)NAN : outcome->of[best].value / outcome->of[other].value;
}

double savina_ratio_of_best_pool_to_near(const struct savina_outcome *outcome)
{
    return get_ratio_of_best_pool_to_side(outcome, SAVINA_NEAR);
}

double savina_ratio_of_best_pool_to_peer(const struct savina_outcome *outcome)
{
    enum savina_side best = savina_best_pool_of_row(outcome);

    return best == SAVINA_SIDES ? (double)NAN : outcome->ratio[best];
}

double savina_ratio_of_best_pool_to_threads(const struct savina_outcome *outcome)
{
    return get_ratio_of_best_pool_to_side(outcome, SAVINA_THREADS);
}

/* --- figures ---------------------------------------------------------------------------------- */

static void report_figures_of_side(const struct savina_outcome *outcome, enum savina_side side,
                                   savina_tell *tell, void *context)
{
    const struct savina_figures *of = &outcome->of[side];
    const char *who = savina_side_name(side);
    const struct {
        enum savina_kind kind;
        const char *name;
        double value;
        const char *unit;
    } figures[] = {
        {SAVINA_MESSAGES, "first", of->first, "messages/s"},
        {SAVINA_MESSAGES, "median", of->value, "messages/s"},
        {SAVINA_LATENCY, "p50", of->value, "ns"},
        {SAVINA_LATENCY, "p99", of->p99_ns, "ns"},
        {SAVINA_LATENCY, "p999", of->p999_ns, "ns"},
        {SAVINA_CPU, "cpu", of->value * 1e3, "ms/s"},
    };

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (figures[i].kind == outcome->row->kind && !isnan(figures[i].value))
            tell(context, outcome, who, figures[i].name, figures[i].value, figures[i].unit);
    }
}

static void report_ratios_of_pools(const struct savina_outcome *outcome, savina_tell *tell,
                                   void *context)
{
    const struct {
        const char *name;
        double value;
    } figures[] = {
        {"of_near", savina_ratio_of_best_pool_to_near(outcome)},
        {"of_peer", savina_ratio_of_best_pool_to_peer(outcome)},
        {"of_threads", savina_ratio_of_best_pool_to_threads(outcome)},
    };

    if (outcome->row->kind != SAVINA_MESSAGES)
        return;
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (!isnan(figures[i].value))
            tell(context, outcome, "pool", figures[i].name, figures[i].value, "ratio");
    }
}

void savina_call_for_each_figure(const struct savina_outcome *outcome, savina_tell *tell,
                                 void *context)
{
    for (int side = 0; side < SAVINA_SIDES; side++)
        report_figures_of_side(outcome, (enum savina_side)side, tell, context);
    for (int side = 0; side < SAVINA_PLACEMENTS; side++) {
        const char *who = savina_side_name((enum savina_side)side);
        if (!isnan(outcome->ratio[side]))
            tell(context, outcome, who, "ratio", outcome->ratio[side], "ratio");
    }
    double of_near = outcome->of[SAVINA_SPREAD].value / outcome->of[SAVINA_NEAR].value;
    if (!isnan(of_near))
        tell(context, outcome, "spread", "of_near", of_near, "ratio");
    if (!isnan(outcome->of_limit))
        tell(context, outcome, "spread", "of_limit", outcome->of_limit, "ratio");
    if (!isnan(outcome->of_ring))
        tell(context, outcome, "spread", "of_ring", outcome->of_ring, "ratio");
    report_ratios_of_pools(outcome, tell, context);
    if (savina_ratio_goal_of_row(outcome) != 0)
        tell(context, outcome, "", "goal", savina_ratio_goal_of_row(outcome), "ratio");
}
