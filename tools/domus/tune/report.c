/* Prints the result of a search as text (parts.h). */
#include "tools/domus/tune/parts.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_SIZE 512
/* most rows in the table of the front, besides those for the winner and today's values */
#define ROWS_MAX 20

static double get_percent_of_change(double ratio)
{
    return (ratio - 1) * 100;
}

/* --- the verdict ------------------------------------------------------------------------------ */

/* Returns the logarithm of the smallest ratio that the search would have noticed; below 0:
 * unknown. */
static double log_of_smallest_noticeable_ratio(const tune_search *search)
{
    double noise = search->noise;

    /* with enough pairs of runs, the duel knows the noise better than the stages */
    if (search->pairs >= TUNE_PAIRS_MIN)
        noise = fmax(fabs(search->interval.low), fabs(search->interval.high));
    return noise;
}

/* Print what the duel has shown for the figure of the goal. */
static void print_goal_ratio_of_duel_to_today(const tune_records *records, FILE *out)
{
    tune_interval ratio;

    if (tune_records_get_interval_of_duel_ratio(records, records->goal, &ratio))
        (void)fprintf(out, "# %s: %+.1f %% (%+.1f .. %+.1f %%) against today's values\n",
                      records->goal, get_percent_of_change(ratio.middle),
                      get_percent_of_change(ratio.low), get_percent_of_change(ratio.high));
}

/* Print why the winner of the stages has lost the duel, with its values. */
static void print_why_winner_lost(const tune_records *records, const char *why, FILE *out)
{
    char shown[SHOWN_SIZE];

    tune_keys_describe_candidate(records->keys, &records->search->best, shown, sizeof shown);
    (void)fprintf(out, "# The best of the search %s in the duel, so today's values stay: %s\n", why,
                  shown);
    print_goal_ratio_of_duel_to_today(records, out);
}

static void print_verdict_of_search(const tune_records *records, FILE *out)
{
    const tune_search *search = records->search;

    switch (search->verdict) {
    case TUNE_SAME:
        if (log_of_smallest_noticeable_ratio(search) >= 0)
            (void)fprintf(out, "# No difference of %s above the noise of %.1f %%: ", records->goal,
                          get_percent_of_change(exp(log_of_smallest_noticeable_ratio(search))));
        else
            (void)fputs("# No candidate was better, or they broke the bounds or failed: ", out);
        (void)fputs("today's values stay.\n", out);
        return;
    case TUNE_BROKEN:
        (void)fputs("# No candidate keeps the bounds, so today's values stay.\n", out);
        return;
    case TUNE_BASE_LOST:
        (void)fputs("# The search has ended early, so today's values stay.\n", out);
        return;
    case TUNE_WORSE:
        print_why_winner_lost(records, "was worse", out);
        return;
    case TUNE_BREAKS:
        print_why_winner_lost(records, "broke the bounds", out);
        return;
    case TUNE_FAILS:
        print_why_winner_lost(records, "has failed", out);
        return;
    default:
        break;
    }
    if (search->verdict == TUNE_KEEPS)
        (void)fputs("# These values keep the bounds, which today's break.\n", out);
    print_goal_ratio_of_duel_to_today(records, out);
}

/* Print the other figures of the duel, in which the winner may be better or worse. */
static void print_other_figures_of_duel(const tune_records *records, FILE *out)
{
    static const char *const names[] = {"rate", "p50", "p99", "p999", "cpu"};
    tune_interval ratio;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], records->goal) != 0 &&
            tune_records_get_interval_of_duel_ratio(records, names[i], &ratio))
            (void)fprintf(out, "#   %s %+.1f %% (%+.1f .. %+.1f %%)\n", names[i],
                          get_percent_of_change(ratio.middle), get_percent_of_change(ratio.low),
                          get_percent_of_change(ratio.high));
    }
}

/* --- the values ------------------------------------------------------------------------------- */

/* Print a word of a command line in the shell's syntax. A line break would end the comment, so it
 * becomes $'\n'. */
static void print_word_for_shell(const char *word, FILE *out)
{
    if (word[0] != '\0' &&
        word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                          "._-/=:,+@%")] == '\0') {
        (void)fprintf(out, " %s", word);
        return;
    }
    (void)fputs(" '", out);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            (void)fputs("'\\''", out);
        else if (iscntrl((unsigned char)*word))
            (void)fprintf(out, "'$'\\x%02x''", (unsigned)(unsigned char)*word);
        else
            (void)fputc(*word, out);
    }
    (void)fputc('\'', out);
}

/* Print values for keys of list elements as comments, because in a file they would replace the
 * whole list. */
static void print_values_of_pool_or_listener_keys(const tune_records *records,
                                                  const tune_point *point, FILE *out)
{
    const tune_keys *keys = records->keys;
    char text[TUNE_KEY_SIZE + TUNE_VALUE_SIZE];
    const char *head = "# These values are given by --set, or in the file that has the list:\n#  ";

    for (size_t i = 0; i < keys->count; i++) {
        if (point->choice[i] == 0 || !tune_keys_is_key_of_pool_or_listener(keys, i))
            continue;
        tune_keys_write_key_equals_value(keys, point, i, text, sizeof text);
        (void)fprintf(out, "%s --set", head);
        print_word_for_shell(text, out);
        head = "";
    }
    if (head[0] == '\0')
        (void)fputc('\n', out);
}

/* --- the front -------------------------------------------------------------------------------- */

static void print_row_of_candidate(const tune_records *records, const tune_spot *spot, FILE *out)
{
    tune_point winner = tune_records_get_winner_or_today(records);
    bool is_winner = memcmp(&winner, &spot->point, sizeof winner) == 0;
    char shown[SHOWN_SIZE], value[32];

    (void)fputs("# ", out);
    for (int axis = 0; axis < 3; axis++) {
        if (isnan(spot->values[axis]))
            snprintf(value, sizeof value, "-");
        else
            tune_value_write_with_unit(tune_axes[axis], spot->values[axis], value, sizeof value);
        (void)fprintf(out, "%10s ", value);
    }
    tune_keys_describe_candidate(records->keys, &spot->point, shown, sizeof shown);
    (void)fprintf(out, "%5zu  %s%s\n", spot->runs, shown, is_winner ? "  <- chosen" : "");
}

static int compare_candidates_by_rate(const void *one_, const void *other_)
{
    const tune_spot *one = one_, *other = other_;

    return (one->values[0] < other->values[0]) - (one->values[0] > other->values[0]);
}

/* Print a table of today's values, the winner, and the candidates that no other one dominates (the
 * front). */
static void print_table_of_undominated_candidates(const tune_records *records, FILE *out)
{
    size_t count = 0, rows = 0;
    tune_spot *spots = tune_records_make_list_of_candidates(records, &count);
    tune_point winner = tune_records_get_winner_or_today(records);

    if (spots == NULL || count < 2) {
        free(spots);
        return;
    }
    (void)fprintf(out,
                  "#\n# The front: no other candidate is better in one figure and as good in the "
                  "others\n# (medians, by the ratios within rounds; cpu is that of a request).\n# "
                  "%10s %10s %10s %5s  values\n",
                  "rate", "p99", "cpu", "runs");
    qsort(spots, count, sizeof *spots, compare_candidates_by_rate);
    for (size_t i = 0; i < count; i++) {
        bool is_kept = tune_point_has_only_todays_values(&spots[i].point) ||
                       memcmp(&spots[i].point, &winner, sizeof winner) == 0;
        if (spots[i].runs > 0 && (is_kept || (spots[i].is_front && rows++ < ROWS_MAX)))
            print_row_of_candidate(records, &spots[i], out);
    }
    tune_scatter_print_picture_of_letters(records, spots, count, out);
    free(spots);
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_command_to_repeat(char *const *words, FILE *out)
{
    (void)fputs("#\n# Once more:\n#   domus", out);
    for (; *words != NULL; words++)
        print_word_for_shell(*words, out);
    (void)fputc('\n', out);
}

/* Returns whether the service has used CPU time in any run that has not failed. */
static bool has_service_used_cpu(const tune_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        const tune_figure *cpu = tune_figures_find_by_name(&records->each[i].figures, "cpu");
        if (!records->each[i].has_failed && cpu != NULL && cpu->value > 0)
            return true;
    }
    return false;
}

/* Print how many runs the search had, and how many of them were repeated. */
static void print_number_of_runs(const tune_records *records, FILE *out)
{
    size_t again = 0;

    for (size_t i = 0; i < records->count; i++)
        again += records->each[i].is_first_try;
    (void)fprintf(
        out, "#\n# %zu runs; a sweep of all combinations, %d rounds of each, takes %.0f.\n",
        records->count, TUNE_SWEEP, tune_plan_number_of_runs_of_full_sweep(&records->search->plan));
    if (again > 0)
        (void)fprintf(out, "# Runs that failed and were done once more: %zu\n", again);
    if (!has_service_used_cpu(records))
        (void)fputs("# cpu is 0 in each run: the service may have left its process group.\n", out);
}

void tune_report_print_as_yaml_with_comments(const tune_records *records, char *const *words,
                                             FILE *out)
{
    tune_point winner = tune_records_get_winner_or_today(records);

    print_verdict_of_search(records, out);
    if (!tune_point_has_only_todays_values(&winner)) {
        print_other_figures_of_duel(records, out);
        tune_keys_write_yaml(records->keys, &winner, out);
        print_values_of_pool_or_listener_keys(records, &winner, out);
    }
    print_table_of_undominated_candidates(records, out);
    print_number_of_runs(records, out);
    print_command_to_repeat(words, out);
}
