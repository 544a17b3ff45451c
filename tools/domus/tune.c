/* domus tune: finds by measurement which values of the configuration suit a service and its
 * load. */
#include "tools/domus/output.h"
#include "tools/domus/say.h"
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_SIZE (TUNE_KEY_SIZE + TUNE_VALUE_SIZE)
#define SAID_MAX   2048 /* most bytes of a failed command's output that are shown */
/* exit status of a program that refuses its command line or configuration */
#define USAGE_ENDED 2

/* The state of a search of domus tune that is under way. */
typedef struct tuning {
    const tune_request *request;
    tune_search search;
    tune_records records;
    tune_progress progress;
    tune_trial trial; /* the last run of the service with its load */
    /* files to which the report is written; an output without a name is not wanted */
    output plot, json;
} tuning;

/* --- a single run ----------------------------------------------------------------------------- */

/* Run the service with the values of a candidate, and its load. */
static void run_service_and_load_with_candidate(tuning *all, const tune_point *point)
{
    const tune_keys *keys = &all->request->keys;
    char texts[TUNE_KEYS_MAX][WORDS_SIZE], set[] = "--set";
    char *words[2 * TUNE_KEYS_MAX + 1];
    size_t count = 0;

    for (size_t i = 0; i < keys->count; i++) {
        if (point->choice[i] == 0)
            continue;
        tune_keys_write_key_equals_value(keys, point, i, texts[i], sizeof texts[i]);
        words[count++] = set;
        words[count++] = texts[i];
    }
    words[count] = NULL;
    tune_trial_run_service_with_load(&all->request->setup, words, &all->trial);
}

/* Let a run count as failed that lacks a figure, or, unless that is allowed, has a figure of 0,
 * because there is no ratio to 0. */
static void fail_trial_if_figure_is_missing_or_0(tune_trial *trial, const char *name, bool may_be_0)
{
    const tune_figure *figure = tune_figures_find_by_name(&trial->figures, name);
    char names[128] = "";
    size_t used = 0;

    if (trial->result != TUNE_RAN || (figure != NULL && (may_be_0 || figure->value > 0)))
        return;
    for (size_t i = 0; i < trial->figures.count && used < sizeof names; i++)
        used +=
            (size_t)snprintf(names + used, sizeof names - used, " %s", trial->figures.each[i].name);
    trial->result = TUNE_FAILED;
    snprintf(trial->why, sizeof trial->why, "%s figure %.40s; there are:%s",
             figure == NULL ? "the load has printed no" : "it has 0 as the", name, names);
}

static void fail_trial_if_goal_or_bounds_are_missing(tuning *all)
{
    fail_trial_if_figure_is_missing_or_0(&all->trial, all->request->goal, false);
    for (size_t i = 0; i < all->request->bounds_count; i++)
        fail_trial_if_figure_is_missing_or_0(&all->trial, all->request->bounds[i].name, true);
}

/* Record the last run of the search. `before` is the search when the run began; NULL: the run is
 * the check. */
static void append_last_trial_to_records(tuning *all, const tune_point *point,
                                         const tune_search *before)
{
    tune_record *record = &all->records.each[all->records.count++];

    record->point = *point;
    record->is_check = before == NULL;
    record->is_duel = before != NULL && before->state == TUNE_DUEL;
    if (before != NULL) {
        record->key = before->key;
        record->round = record->is_duel ? before->pairs : before->rounds;
    }
    record->has_failed = all->trial.result != TUNE_RAN;
    snprintf(record->why, sizeof record->why, "%s", all->trial.why);
    record->seconds = all->trial.seconds;
    record->figures = all->trial.figures;
}

/* Do a run of a candidate, and record it. It may fail by chance, so it is repeated once, unless the
 * service refuses its values. Returns false if it was stopped, in which case it is not recorded. */
static bool run_candidate_with_one_retry_and_record(tuning *all, const tune_point *point,
                                                    const tune_search *before)
{
    for (int try = 1;; try++) {
        run_service_and_load_with_candidate(all, point);
        fail_trial_if_goal_or_bounds_are_missing(all);
        if (all->trial.result == TUNE_STOPPED)
            return false;
        append_last_trial_to_records(all, point, before);
        if (all->trial.result == TUNE_RAN || try == TUNE_TRIES ||
            (all->trial.result == TUNE_REFUSED && all->trial.status == USAGE_ENDED))
            return true;
        all->records.each[all->records.count - 1].is_first_try = true;
    }
}

/* Returns the outcome of the last run, as the search needs it. */
static tune_outcome outcome_of_last_trial_for_search(const tuning *all)
{
    const tune_figures *figures = &all->trial.figures;
    tune_outcome outcome = {.has_failed = all->trial.result != TUNE_RAN};

    if (outcome.has_failed)
        return outcome;
    outcome.goal = tune_figures_find_by_name(figures, all->request->goal)->value;
    for (size_t i = 0; i < all->request->bounds_count; i++) {
        const tune_bound *bound = &all->request->bounds[i];
        double figure = tune_figures_find_by_name(figures, bound->name)->value;
        outcome.broken = fmax(outcome.broken, tune_bound_log_of_ratio_if_broken(bound, figure));
    }
    return outcome;
}

/* --- failed runs ------------------------------------------------------------------------------ */

/* Print the last lines of the output of a command. */
static void print_end_of_output(const char *of, const tune_stream *stream)
{
    size_t size = stream->size < SAID_MAX ? stream->size : SAID_MAX;
    const char *text = stream->text + stream->size - size;
    const char *line = size < stream->size ? memchr(text, '\n', size) : NULL;

    if (line != NULL) {
        size -= (size_t)(line + 1 - text);
        text = line + 1;
    }
    if (size == 0)
        return;
    (void)fprintf(stderr, "%s:\n", of);
    say_print_untrusted_text(stderr, text, size);
    if (text[size - 1] != '\n')
        (void)fputc('\n', stderr);
}

/* Print that the run of a candidate has failed, and the output of its commands. */
static void print_why_run_of_candidate_failed(tuning *all, const tune_point *point)
{
    char shown[512];

    tune_progress_erase_line(&all->progress);
    tune_keys_describe_candidate(&all->request->keys, point, shown, sizeof shown);
    say_print_error("tune: with %s: %s", shown, all->trial.why);
    print_end_of_output("the service's stderr", &all->trial.service.err);
    if (all->trial.result == TUNE_FAILED) {
        print_end_of_output("the load's stderr", &all->trial.load.err);
        print_end_of_output("the load's stdout", &all->trial.load.out);
    }
}

static int print_that_search_stopped(tuning *all)
{
    tune_progress_erase_line(&all->progress);
    say_print_error("tune: stopped by a signal after %zu runs", all->records.count);
    return STATUS_FAILED;
}

/* --- the search ------------------------------------------------------------------------------- */

/* Run the service and its load once with today's configuration, to see whether both commands work.
 * The figures are not used, because nothing was warmed up. */
static bool check_that_commands_work(tuning *all)
{
    tune_point today = {{0}};

    tune_progress_draw_line_if_terminal(&all->progress, &all->records);
    if (!run_candidate_with_one_retry_and_record(all, &today, NULL) ||
        all->trial.result == TUNE_RAN)
        return true;
    print_why_run_of_candidate_failed(all, &today);
    return false;
}

/* Do all runs of the search. Returns false if a run was stopped. */
static bool run_candidates_until_search_ends(tuning *all)
{
    tune_point point;

    while (all->trial.result != TUNE_STOPPED &&
           tune_search_get_candidate_of_next_run(&all->search, &point)) {
        tune_search before = all->search;
        tune_progress_draw_line_if_terminal(&all->progress, &all->records);
        if (!run_candidate_with_one_retry_and_record(all, &point, &before))
            return false;
        tune_outcome outcome = outcome_of_last_trial_for_search(all);
        tune_search_use_outcome_of_run(&all->search, &outcome);
        if (outcome.has_failed)
            print_why_run_of_candidate_failed(all, &point);
        tune_progress_print_run_if_no_terminal(&all->progress, &all->records);
    }
    tune_progress_erase_line(&all->progress);
    return all->trial.result != TUNE_STOPPED;
}

/* Print how close candidates have come to a bound that none of them keeps. */
static void print_best_figures_for_broken_bounds(const tuning *all)
{
    for (size_t i = 0; i < all->request->bounds_count; i++) {
        const tune_bound *bound = &all->request->bounds[i];
        double best = NAN;
        char shown[32] = "-";
        for (size_t j = 0; j < all->records.count; j++) {
            const tune_record *record = &all->records.each[j];
            const tune_figure *figure = tune_figures_find_by_name(&record->figures, bound->name);
            if (!record->has_failed && figure != NULL)
                best = bound->is_most ? fmin(best, figure->value) : fmax(best, figure->value);
        }
        tune_value_write_with_unit(bound->name, best, shown, sizeof shown);
        say_print_error("tune: no candidate keeps '%s': the best run had %s",
                        all->request->bound_texts[i], shown);
    }
}

/* Returns the words of the command line that repeats the search, with the seed behind the first
 * word, because `--` may be the last one; NULL without memory. */
static char **make_command_that_repeats_search(const tune_request *request)
{
    static char option[] = "--seed", seed[24];
    char **words = calloc((size_t)request->argc + 3, sizeof *words);

    if (words == NULL)
        return NULL;
    size_t added = request->has_seed ? 0 : 2;
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)request->plan.seed);
    words[0] = request->argv[0];
    words[1] = option;
    words[2] = seed;
    memcpy(words + 1 + added, request->argv + 1, (size_t)(request->argc - 1) * sizeof *words);
    return words;
}

/* Write a file of the search's report, if the file is wanted. Returns whether that succeeded. */
static bool write_file_of_report(const tuning *all, output *to,
                                 bool (*print)(const tune_records *records, FILE *out))
{
    if (to->file == NULL)
        return true;
    bool is_whole = print(&all->records, to->file);
    if (!is_whole)
        say_print_error("tune: there is nothing to write to %s", to->name);
    bool is_there = output_close_and_keep_file_if_whole(to, is_whole);
    to->file = NULL;
    return is_there;
}

/* Begin the files of the report before the runs, which take long. Returns whether that
 * succeeded. */
static bool begin_files_of_report(tuning *all)
{
    const tune_request *request = all->request;

    return (request->plot == NULL ||
            output_open_temporary_file_or_stdout(&all->plot, request->plot)) &&
           (request->json == NULL ||
            output_open_temporary_file_or_stdout(&all->json, request->json));
}

/* Remove files of the report that were begun but not written. */
static void remove_unwritten_files_of_report(tuning *all)
{
    if (all->plot.file != NULL)
        (void)output_close_and_keep_file_if_whole(&all->plot, false);
    if (all->json.file != NULL)
        (void)output_close_and_keep_file_if_whole(&all->json, false);
}

/* Print the report of the search. Returns the exit status of the command. */
static int print_report_of_search(tuning *all)
{
    char **words = make_command_that_repeats_search(all->request);
    tune_verdict verdict = all->search.verdict;

    if (words != NULL)
        tune_report_print_as_yaml_with_comments(&all->records, words, stdout);
    free(words);
    bool is_written = write_file_of_report(all, &all->plot, tune_report_print_scatter_as_svg);
    if (verdict == TUNE_BROKEN)
        print_best_figures_for_broken_bounds(all);
    if (verdict == TUNE_BASE_LOST)
        say_print_error(
            "tune: a run with the values to compare with has failed, so the search ends");
    return is_written && verdict != TUNE_BROKEN && verdict != TUNE_BASE_LOST ? STATUS_OK
                                                                             : STATUS_FAILED;
}

static int check_search_and_print_report(tuning *all)
{
    tune_search_begin_first_stage(&all->search, &all->request->plan);
    int status = STATUS_FAILED;
    if (!check_that_commands_work(all))
        return status;
    status = run_candidates_until_search_ends(all) ? print_report_of_search(all)
                                                   : print_that_search_stopped(all);
    if (!write_file_of_report(all, &all->json, tune_report_print_all_runs_as_json))
        status = STATUS_FAILED;
    return status;
}

static void print_plan_of_search(const tune_request *request)
{
    const tune_plan *plan = &request->plan;
    const tune_setup *setup = &request->setup;
    double longest = (double)(setup->start_ms + setup->load_ms + setup->stop_ms) / 1e3;

    for (size_t i = 0; i < request->keys.count; i++) {
        (void)printf("%s: today's value", request->keys.each[i].path);
        for (size_t j = 0; j < request->keys.each[i].count; j++)
            (void)printf(", %s", request->keys.each[i].values[j]);
        (void)putchar('\n');
    }
    (void)printf("at most %zu runs, and 1 to see that all works; a sweep of all combinations, %d "
                 "rounds of each, takes %.0f\n"
                 "each takes the time of the load and %.0f s at most, so all of them take %.1f h "
                 "at most\n",
                 plan->runs_max, TUNE_SWEEP, tune_plan_number_of_runs_of_full_sweep(plan), longest,
                 (double)(plan->runs_max + 1) * longest / 3600);
}

static int run_command_tune(const command *self, int argc, char **argv)
{
    static tune_request request;
    tuning *all = calloc(1, sizeof *all);
    int status = STATUS_FAILED;

    if (!tune_request_read_command_line(self, argc, argv, &request, &status))
        goto free_all;
    if (request.is_dry) {
        print_plan_of_search(&request);
        status = STATUS_OK;
        goto free_all;
    }
    tune_record *each = calloc(TUNE_TRIES * (request.plan.runs_max + 1), sizeof *each);
    if (all == NULL || each == NULL) {
        say_print_error("tune: there is no memory");
        goto free_records;
    }
    all->request = &request;
    all->records = (tune_records){.keys = &request.keys,
                                  .search = &all->search,
                                  .goal = request.goal,
                                  .is_more_better = request.plan.is_more_better,
                                  .each = each};
    say_begin_to_note_signals();
    tune_become_adopter_of_orphans();
    tune_progress_begin(&all->progress);
    status = begin_files_of_report(all) ? check_search_and_print_report(all) : STATUS_FAILED;
    remove_unwritten_files_of_report(all);

free_records:
    free(each);
free_all:
    free(all);
    return status;
}

const command command_tune = {
    .name = "tune",
    .summary = "which values of the configuration suit a service and its load",
    .help =
        "usage: domus tune [OPTIONS] --service 'COMMAND ...' --load 'COMMAND ...'\n"
        "\n"
        "Starts the service with other values of its configuration again and again, each time "
        "runs\n"
        "the load, and finds the values that are best for the goal. Prints them as YAML, with how\n"
        "much is gained, how sure that is, and what it costs elsewhere.\n"
        "\n"
        "      --service CMD        the service; words '--set KEY=VALUE' are put behind it\n"
        "      --load CMD           the load; it prints lines 'NAME VALUE [UNIT]' (rate, p50, "
        "p99,\n"
        "                           errors, ...), or is wrk, ab, h2load, hey or redis-benchmark "
        "--csv\n"
        "      --keys KEY,...       the keys to try, such as ioRatio,idle.spin; without this and "
        "the\n"
        "                           next one, all keys that concern speed\n"
        "      --values K=V,...     a key with values of its own\n"
        "      --goal NAME          rate (more is better; so it is without this), p99, cpu (a\n"
        "                           request's CPU time of the service), or max:NAME or min:NAME\n"
        "      --keep BOUND         a bound that the values have to keep: 'p99 < 2ms'\n"
        "      --ready CMD          has status 0 when the service is ready; without it a line\n"
        "                           'listening ...' of the service says so\n"
        "      --runs N             so many runs at most\n"
        "      --pairs N            so many pairs of the duel of the best with today's values: 9\n"
        "      --least PERCENT      the least difference that matters: 2\n"
        "      --seed N             the seed of the order of the runs\n"
        "      --limit TIME         how long the load may take: 60s\n"
        "      --start-limit TIME   how long the service may take to be ready: 10s\n"
        "      --stop-limit TIME    how long it may take to end behind SIGTERM: 15s\n"
        "      --plot FILE          draw the candidates as SVG\n"
        "      --json FILE          write all runs as JSON\n"
        "      --dry-run            only print what would be tried\n"
        "  -h, --help               this text\n",
    .run = run_command_tune,
};
