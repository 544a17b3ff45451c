/* The parts of `domus tune`: its command line, a stage of its search, the bounds that a candidate
 * has to keep, and what the user sees of it. */
#ifndef DOMI_TOOLS_DOMUS_TUNE_PARTS_H
#define DOMI_TOOLS_DOMUS_TUNE_PARTS_H

#include "tools/domus/options.h"
#include "tools/domus/tune/figures.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/record.h"
#include "tools/domus/tune/search.h"
#include "tools/domus/tune/trial.h"

#include <stdio.h>

/* ---- bounds.c ---------------------------------------------------------------------------------*/

/* A bound on a figure that a candidate must keep, such as 'p99 < 2ms'. */

#define TUNE_BOUNDS_MAX 8

typedef struct tune_bound {
    char name[TUNE_NAME_SIZE];
    /* kind of the bound: true, the figure may be at most the value; false, at least */
    bool is_most;
    double value; /* the value of the bound, above 0 */
} tune_bound;

/* Read a bound on a figure: NAME < VALUE, or with <=, > or >=; a figure equal to the value keeps
 * each of them. Returns whether it is valid. */
bool tune_bound_read_text(const char *text, tune_bound *ret_bound);

/* Returns by how much a figure breaks a bound, as the logarithm of their ratio; 0 if it keeps the
 * bound. */
double tune_bound_log_of_ratio_if_broken(const tune_bound *bound, double figure);

/* ---- request.c --------------------------------------------------------------------------------*/

/* The command line of `domus tune`. */

typedef struct tune_request {
    tune_setup setup;
    tune_keys keys;
    tune_plan plan;
    char goal[TUNE_NAME_SIZE];
    size_t bounds_count;
    tune_bound bounds[TUNE_BOUNDS_MAX];
    const char *bound_texts[TUNE_BOUNDS_MAX];
    /* names of the files that the report gets; NULL: the file is not wanted */
    const char *plot, *json;
    bool is_dry, has_seed;
    int argc; /* words of the command line of `domus tune`, from "tune" on */
    char **argv;
} tune_request;

/* Read the command line of `domus tune`. Returns whether it is valid; otherwise `ret_status` gets
 * the exit status. */
bool tune_request_read_command_line(const command *self, int argc, char **argv,
                                    tune_request *ret_request, int *ret_status);

/* ---- stage.c ----------------------------------------------------------------------------------*/

/* One stage of a search: tries the values of one key, in rounds (tools/domus/tune/search.h). */

/* Begin the stage for the key search->key, with its first round. */
void tune_stage_begin_with_values_of_key(tune_search *search);

/* Record all outcomes of a round of the stage, and begin the next one. Returns whether the stage
 * continues. */
bool tune_stage_rate_rivals_after_round(tune_search *search);

/* End the stage of a search, and put its best value into search->best. Sets search->verdict if the
 * base has failed. Returns whether the chosen value breaks the bounds. */
bool tune_stage_choose_value_for_key(tune_search *search);

/* Returns the best rival of the stage so far. */
const tune_rival *tune_stage_get_best_rival(const tune_search *search);

/* Returns the logarithm of the ratio to the base that occurs by chance in at most 5 of 100 cases
 * after the rounds so far; INFINITY if it is unknown. */
double tune_stage_noise_of_rival_figure(const tune_search *search);

/* ---- progress.c -------------------------------------------------------------------------------*/

/* The lines of `domus tune` on stderr while it runs: on a terminal one line that changes, otherwise
 * a line for each run. */

typedef struct tune_progress {
    bool is_terminal;
    bool has_line; /* the progress line on the terminal has no line end yet */
} tune_progress;

void tune_progress_begin(tune_progress *progress);

/* Show that a run of the search begins, if the output is a terminal. `records` has the runs before
 * it. */
void tune_progress_draw_line_if_terminal(tune_progress *progress, const tune_records *records);

/* Show the last run of `records`, which has ended. */
void tune_progress_print_run_if_no_terminal(tune_progress *progress, const tune_records *records);

/* End the line on the terminal that changes, so that other text can be printed. */
void tune_progress_erase_line(tune_progress *progress);

/* ---- report.c ---------------------------------------------------------------------------------*/

/* Prints the result of a search as YAML that can be given to --config: all but the values that won
 * are comments. */

/* Print the verdict of a search, the winning values, their effect on other figures, and the front.
 * `words` are the words of a command line that repeats the search; NULL ends them. */
void tune_report_print_as_yaml_with_comments(const tune_records *records, char *const *words,
                                             FILE *out);

/* Print all runs of a search as JSON. Returns whether that succeeded. */
bool tune_report_print_all_runs_as_json(const tune_records *records, FILE *out);

/* Print the candidates as an SVG picture: the rate to the right, and p99, or else cpu, upwards.
 * Returns whether there was anything to show. */
bool tune_report_print_scatter_as_svg(const tune_records *records, FILE *out);

/* ---- scatter.c --------------------------------------------------------------------------------*/

/* Draws the candidates as a picture: the rate to the right, and p99, or else cpu, upwards. */

/* The scale that gives candidates their places in a picture whose sides have the length 1. */
typedef struct tune_scale {
    int axis; /* index in tune_axes of the figure that the picture draws upwards */
    double least[2], most[2];
} tune_scale;

/* Make the scale of a picture of these candidates. Returns false if fewer than two of them have a
 * rate and a p99, and fewer than two have a rate and a cpu. */
bool tune_scale_make_for_candidates(const tune_spot *spots, size_t count, tune_scale *ret_scale);

/* Get the place of a candidate in the picture: to the right, and upwards. Returns whether it has
 * one. */
bool tune_scale_get_place_of_candidate(const tune_scale *scale, const tune_spot *spot,
                                       double ret_place[2]);

/* Print the picture of the candidates with letters, in lines of a comment, unless there is nothing
 * to show. */
void tune_scatter_print_picture_of_letters(const tune_records *records, const tune_spot *spots,
                                           size_t count, FILE *out);

/* ---- shell.c ----------------------------------------------------------------------------------*/

/* Judges the shell command of a service, to which words are added. */

/* Returns why words behind a command would not reach its program, such as a comment, a pipe in the
 * last command, or an operator like `;` or `&` at the end; NULL if no reason is found. Only the
 * text is read, so a script may still ignore its words. */
const char *tune_shell_why_added_words_are_dropped(const char *line);

#endif
