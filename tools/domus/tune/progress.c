/* Prints the lines that show the progress of `domus tune` (parts.h). */
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_SIZE 512
#define BAR       "##########"

void tune_progress_begin(tune_progress *progress)
{
    *progress = (tune_progress){.is_terminal = isatty(STDERR_FILENO) != 0};
}

/* Returns the number of columns of the terminal. */
static int get_columns_of_terminal(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 80;
    return size.ws_col < LINE_SIZE ? size.ws_col : LINE_SIZE;
}

/* Write how much time the search needs at most, estimated from the runs so far. */
static void write_time_left(const tune_records *records, char *ret_text, size_t size)
{
    const tune_plan *plan = &records->search->plan;
    double seconds = 0;

    for (size_t i = 0; i < records->count; i++)
        seconds += records->each[i].seconds / (double)records->count;
    seconds *= (double)(plan->runs_max - records->search->runs);
    if (records->count == 0)
        snprintf(ret_text, size, "?");
    else if (seconds < 100)
        snprintf(ret_text, size, "%.0f s", seconds);
    else
        snprintf(ret_text, size, "%.0f min", ceil(seconds / 60));
}

/* Write where the search is: in a stage with its round, or in the duel with its pair of runs. */
static void write_place_in_search(const tune_records *records, char *ret_text, size_t size)
{
    const tune_search *search = records->search;

    if (records->count == 0)
        snprintf(ret_text, size, "check");
    else if (search->state == TUNE_STAGE)
        snprintf(ret_text, size, "%s round %zu", records->keys->each[search->key].path,
                 search->rounds + 1);
    else
        snprintf(ret_text, size, "duel, pair %zu of %zu", search->pairs + 1, search->plan.pairs);
}

/* Write the best candidate of the search so far, with its ratio and noise. */
static void write_best_candidate(const tune_records *records, char *ret_text, size_t size)
{
    double ratio_log, noise;
    tune_point best = tune_search_get_best_candidate_so_far(records->search, &ratio_log, &noise);
    char shown[256];

    tune_keys_describe_candidate(records->keys, &best, shown, sizeof shown);
    if (tune_point_has_only_todays_values(&best) || isinf(noise))
        snprintf(ret_text, size, "best %s", shown);
    else
        snprintf(ret_text, size, "best %s %+.1f %% (noise %.1f %%)", shown, expm1(ratio_log) * 100,
                 expm1(noise) * 100);
}

void tune_progress_draw_line_if_terminal(tune_progress *progress, const tune_records *records)
{
    const tune_search *search = records->search;
    int full = (int)(strlen(BAR) * search->runs / search->plan.runs_max);
    char line[LINE_SIZE + 512], place[192], left[32], best[384];

    if (!progress->is_terminal)
        return;
    write_place_in_search(records, place, sizeof place);
    write_time_left(records, left, sizeof left);
    write_best_candidate(records, best, sizeof best);
    snprintf(line, sizeof line, "[%-*.*s] %s, run %zu/%zu, %s left; %s", (int)strlen(BAR), full,
             BAR, place, search->runs + 1, search->plan.runs_max, left, best);
    (void)fprintf(stderr, "\r\033[K%.*s", get_columns_of_terminal() - 1, line);
    (void)fflush(stderr);
    progress->has_line = true;
}

void tune_progress_print_run_if_no_terminal(tune_progress *progress, const tune_records *records)
{
    static const char *const names[] = {"rate", "p50", "p99", "cpu"};
    const tune_record *record = &records->each[records->count - 1];
    char shown[512], value[32];

    if (progress->is_terminal)
        return;
    tune_keys_describe_candidate(records->keys, &record->point, shown, sizeof shown);
    (void)fprintf(stderr, "run %zu of at most %zu: %s:", records->search->runs,
                  records->search->plan.runs_max, shown);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !record->has_failed; i++) {
        const tune_figure *figure = tune_figures_find_by_name(&record->figures, names[i]);
        if (figure == NULL)
            continue;
        tune_value_write_with_unit(names[i], figure->value, value, sizeof value);
        (void)fprintf(stderr, " %s %s", names[i], value);
    }
    (void)fprintf(stderr, "%s%s\n", record->has_failed ? " " : "",
                  record->has_failed ? record->why : "");
}

void tune_progress_erase_line(tune_progress *progress)
{
    if (progress->has_line)
        (void)fputs("\r\033[K", stderr);
    progress->has_line = false;
}
