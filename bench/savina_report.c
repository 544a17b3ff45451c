/* This file writes the JSON, the page and the plot of savina_report.h.
 *
 * The JSON is a flat list of numbers under names of our own, none of which needs escaping; so it is
 * printed directly, without a library on which every build would depend. */
#include "bench/savina_report.h"

#include "bench/savina_pools.h"
#include "bench/support/page.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_figure_as_json(void *file_, const struct savina_outcome *outcome, const char *who,
                                 const char *name, double value, const char *unit)
{
    FILE *file = file_;

    fprintf(file,
            ",\n  {\"row\": \"%s\", \"size\": %" PRIu64 ", \"threads\": %" PRIu32
            ", \"who\": \"%s\", \"figure\": \"%s\", \"value\": %.9g, \"unit\": \"%s\"}",
            outcome->row->name, outcome->size, outcome->threads, who, name, value, unit);
}

static int write_json_file(const char *path, const struct savina_run *run,
                           const struct savina_outcome *outcomes, size_t count)
{
    FILE *file = fopen(path, "we");

    if (file == NULL)
        return -errno;
    fprintf(file, "[\n  {\"rounds\": %" PRIu32 ", \"processes\": %" PRIu32, run->rounds,
            run->processes);
    if (!isnan(run->limit))
        fprintf(file, ", \"limit_messages_s\": %.9g", run->limit);
    fputc('}', file);
    for (size_t i = 0; i < count; i++)
        savina_call_for_each_figure(&outcomes[i], write_figure_as_json, file);
    fprintf(file, "\n]\n");
    int failed = ferror(file);
    return fclose(file) != 0 || failed ? -EIO : 0;
}

/* --- the page --------------------------------------------------------------------------------- */

static void write_head_of_page(FILE *file, const struct savina_run *run)
{
    fprintf(
        file,
        "# Performance: the Savina rows\n\n"
        "domus beside CAF and Erlang: the actor benchmarks of Savina (Imam and Sarkar) that are\n"
        "about messages and actors, skynet, a mailbox with many senders, and what quiet and\n"
        "fairness cost. Each row is one protocol for all three, with the same bound of messages\n"
        "in flight, written for each as its users write; each program checks its result, and the\n"
        "runner holds the results of all against the formula. The contenders run in turn, each\n"
        "in a process of its own, pinned to as many CPUs as it has threads: %" PRIu32
        " rounds in a process,\neach from the first spawn to the known result; of the first round "
        "(cold pools) and of the\nmedian round, the median of %" PRIu32 " process%s. `-`: not "
        "installed, or not done.\n\n"
        "`./dev bench savina%s --out docs` wrote this page, on\n",
        run->rounds, run->processes, run->processes == 1 ? "" : "es",
        run->is_long ? " --long" : "");
    page_write_machine(file);
    fprintf(file, "\n![messages per second by row](performance.svg)\n");
}

static void write_first_cells_of_table_line(FILE *file, const struct savina_outcome *outcome,
                                            bool is_first)
{
    char text[PAGE_CELL_MAX];

    if (is_first)
        fprintf(file, "| %s | %s %s | %s |", outcome->row->name,
                page_write_grouped_number(outcome->size, text), outcome->row->parameters,
                outcome->row->in_flight);
    else
        fprintf(file, "| | | |");
}

static void write_figures_of_side(FILE *file, const struct savina_outcome *outcome,
                                  enum savina_side side)
{
    char text[PAGE_CELL_MAX];

    fprintf(file, " %s |", page_write_rate_in_millions_or_k(outcome->of[side].first, text));
    fprintf(file, " %s |", page_write_rate_in_millions_or_k(outcome->of[side].value, text));
}

static void write_goal_of_row(FILE *file, const struct savina_outcome *outcome,
                              enum savina_side placement)
{
    const char *verdict = savina_is_goal_met(outcome, placement) ? ", met" : ", missed";

    if (savina_ratio_goal_of_row(outcome) == 0)
        fprintf(file, " |\n");
    else
        fprintf(file, " %.0f%s |\n", savina_ratio_goal_of_row(outcome),
                isnan(outcome->ratio[placement]) ? "" : verdict);
}

/* Returns whether `placement` was the better one of the two placements of domus without pools. If a
 * row has only one placement, the value of the other is NAN, so this is false. */
static bool is_better_placement_without_pool(const struct savina_outcome *outcome,
                                             enum savina_side placement)
{
    enum savina_side other = placement == SAVINA_NEAR ? SAVINA_SPREAD : SAVINA_NEAR;

    return outcome->of[placement].value > outcome->of[other].value;
}

/* Write how much of the two bare limits domus reached. This belongs to the placement whose line is
 * the second one of the row. */
static void write_parts_of_limits(FILE *file, const struct savina_outcome *outcome, bool is_first)
{
    char text[PAGE_CELL_MAX];

    fprintf(file, " %s |",
            is_first ? "" : page_write_number_of_cell(outcome->of_limit, 1, "", text));
    fprintf(file, " %s |",
            is_first || isnan(outcome->of_ring)
                ? ""
                : page_write_number_of_cell(outcome->of_ring, 1, "", text));
}

/* Write one line of the table: the figures of domus in one placement, and in the first line of a
 * row also those of the peers. */
static void write_table_line_of_placement(FILE *file, const struct savina_outcome *outcome,
                                          enum savina_side placement)
{
    char text[PAGE_CELL_MAX];
    bool is_first = placement == SAVINA_NEAR;

    write_first_cells_of_table_line(file, outcome, is_first);
    if (outcome->threads > 1)
        fprintf(file, is_better_placement_without_pool(outcome, placement) ? " **%s** |" : " %s |",
                savina_side_name(placement));
    write_figures_of_side(file, outcome, placement);
    if (is_first) {
        write_figures_of_side(file, outcome, savina_better_caf_of_row(outcome));
        write_figures_of_side(file, outcome, SAVINA_ERLANG);
    } else {
        fprintf(file, " | | | |");
    }
    fprintf(file, " %s |", page_write_number_of_cell(outcome->ratio[placement], 1, "", text));
    if (outcome->threads > 1)
        write_parts_of_limits(file, outcome, is_first);
    write_goal_of_row(file, outcome, placement);
}

static void write_table_of_messages(FILE *file, const struct savina_outcome *outcomes, size_t count,
                                    uint32_t threads)
{
    fprintf(file,
            "\nMillions of messages per second, first and median round; ratio: the median round of "
            "domus\nto that of the better peer. CAF is the better of its two schedulers in each "
            "row.\n\n");
    fprintf(file,
            "| row | parameters | in flight |%s domus, first | domus | CAF, first | CAF | "
            "Erlang, first | Erlang | ratio |%s goal |\n",
            threads > 1 ? " placement |" : "", threads > 1 ? " of the limit | of the ring |" : "");
    fprintf(file, "|:--|:--|--:|%s--:|--:|--:|--:|--:|--:|--:|%s:--|\n", threads > 1 ? ":--|" : "",
            threads > 1 ? "--:|--:|" : "");
    for (size_t i = 0; i < count; i++) {
        const struct savina_outcome *outcome = &outcomes[i];
        if (outcome->threads != threads || outcome->row->kind != SAVINA_MESSAGES)
            continue;
        write_table_line_of_placement(file, outcome, SAVINA_NEAR);
        if (!isnan(outcome->of[SAVINA_SPREAD].value))
            write_table_line_of_placement(file, outcome, SAVINA_SPREAD);
    }
}

static void write_latencies_of_side(FILE *file, const struct savina_outcome *outcome,
                                    enum savina_side side)
{
    static const char *const names[SAVINA_SIDES] = {
        "domus",          "domus, spread", "domus, rings", "domus, deques", "domus, stealing",
        "domus, sharing", "CAF, stealing", "CAF, sharing", "Erlang",        "threads",
    };
    const struct savina_figures *of = &outcome->of[side];
    char text[PAGE_CELL_MAX];

    fprintf(file, "| %s | %s %s | %s |", outcome->row->name,
            page_write_grouped_number(outcome->size, text), outcome->row->parameters, names[side]);
    if (outcome->row->kind == SAVINA_CPU) {
        fprintf(file, " | | | %s |", page_write_number_of_cell(of->value, 1e3, " ms/s", text));
    } else {
        fprintf(file, " %s |", page_write_number_of_cell(of->value, 1e-3, " us", text));
        fprintf(file, " %s |", page_write_number_of_cell(of->p99_ns, 1e-3, " us", text));
        fprintf(file, " %s | |", page_write_number_of_cell(of->p999_ns, 1e-3, " us", text));
    }
    if (side >= SAVINA_PLACEMENTS) {
        fprintf(file, " | |\n");
        return;
    }
    fprintf(file, " %s |", page_write_number_of_cell(outcome->ratio[side], 1, "", text));
    write_goal_of_row(file, outcome, side);
}

static void write_table_of_quiet_rows(FILE *file, const struct savina_outcome *outcomes,
                                      size_t count, uint32_t threads)
{
    bool has_head = false;

    for (size_t i = 0; i < count; i++) {
        for (int side = 0; side < SAVINA_SIDES; side++) {
            if (outcomes[i].threads != threads || outcomes[i].row->kind == SAVINA_MESSAGES ||
                isnan(outcomes[i].of[side].value))
                continue;
            if (!has_head)
                fprintf(file, "\n| row | parameters | who | p50 | p99 | p99.9 | CPU | ratio | goal "
                              "|\n|:--|:--|:--|--:|--:|--:|--:|--:|:--|\n");
            has_head = true;
            write_latencies_of_side(file, &outcomes[i], (enum savina_side)side);
        }
    }
}

static void write_text_about_two_threads(FILE *file, const struct savina_run *run)
{
    char text[PAGE_CELL_MAX];

    fprintf(file,
            "\nThe placement is that of domus' actors: near, the default, is where their parent "
            "lives;\nspread is on the threads in turn; the better one is bold. Rows that can use "
            "one thread only are placed "
            "near. The\npeers' schedulers place theirs as they like. The limit is bare C in the "
            "same run: one thread\npushes messages on a lock-free stack, the other takes them, %s "
            "million a second. A\nmessage-bound row is to reach 5 times the better peer, or, "
            "spread, half of that limit. The\nring is bare C, too: slots of 64 bytes by value, as "
            "many messages under way as in the\nrow, measured beside each process of domus.\n",
            page_write_number_of_cell(run->limit, 1e-6, "", text));
}

static void write_notes_of_page(FILE *file)
{
    fprintf(
        file,
        "\n## Notes\n\n"
        "- `wake`: the system was idle for 1 ms, all its threads parked; then a foreign thread "
        "asks\n"
        "  and waits. In Erlang no foreign thread can: there a process does that slept for 1 ms, "
        "so\n"
        "  that its scheduler runs already, and domus is not compared with it.\n"
        "- `idle`: CPU time of the whole process; in a pool that is the loop's thread, too.\n"
        "- `fair`: an actor that answers at once, on a thread that also runs one whose mailbox "
        "is\n"
        "  always full, and who fills it. With two threads the asker lives on the other one;\n"
        "  in a pool all of them go where its runners take them.\n"
        "- `bndbuffer` and `quicksort` compute, in the sine and in each language's own sort: what "
        "that takes\n  bounds the ratio.\n");
}

static int write_page_of_results(const char *path, const struct savina_run *run,
                                 const struct savina_outcome *outcomes, size_t count)
{
    static const char *const titles[] = {"One thread", "Two threads"};
    char *rest = page_copy_text_from_heading_on(path, "## The web bench");
    FILE *file = fopen(path, "we");

    if (file == NULL) {
        int error = -errno;
        free(rest);
        return error;
    }
    write_head_of_page(file, run);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        if (threads == 2 && outcomes[count - 1].threads != threads)
            break;
        fprintf(file, "\n## %s\n", titles[threads - 1]);
        if (threads == 2)
            write_text_about_two_threads(file, run);
        write_table_of_messages(file, outcomes, count, threads);
        write_table_of_quiet_rows(file, outcomes, count, threads);
    }
    savina_write_section_of_pools(file, outcomes, count);
    write_notes_of_page(file);
    if (rest != NULL)
        fprintf(file, "\n%s", rest);
    free(rest);
    int failed = ferror(file);
    return fclose(file) != 0 || failed ? -EIO : 0;
}

/* --- the plot --------------------------------------------------------------------------------- */

/* Write a block of data for each number of threads, with the name by which bench/savina.gp finds
 * it. A missing figure is written as "?". */
static void write_data_of_plot(FILE *file, const struct savina_outcome *outcomes, size_t count)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        fprintf(file, "# threads-%" PRIu32 "\n", threads);
        for (size_t i = 0; i < count; i++) {
            if (outcomes[i].threads != threads || outcomes[i].row->kind != SAVINA_MESSAGES)
                continue;
            fprintf(file, "%s", outcomes[i].row->name);
            for (int side = 0; side < SAVINA_SIDES; side++) {
                double value = outcomes[i].of[side].value;
                if (isnan(value))
                    fprintf(file, " ?");
                else
                    fprintf(file, " %g", value);
            }
            fputc('\n', file);
        }
        fprintf(file, "\n\n");
    }
}

static int write_plot_by_gnuplot(const char *path, const char *script,
                                 const struct savina_outcome *outcomes, size_t count)
{
    char data[] = "/tmp/domus-savina-XXXXXX";
    int descriptor = mkstemp(data);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");

    if (file == NULL) {
        int error = -errno;
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    write_data_of_plot(file, outcomes, count);
    int error = fclose(file) != 0 ? -EIO : page_plot_by_gnuplot(script, data, path);
    unlink(data);
    return error;
}

int savina_report(const char *directory, const char *gnuplot_script, const struct savina_run *run,
                  const struct savina_outcome *outcomes, size_t count)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/performance.md", directory);
    int error = write_page_of_results(path, run, outcomes, count);
    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/performance.json", directory);
    error = write_json_file(path, run, outcomes, count);
    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/performance.svg", directory);
    return write_plot_by_gnuplot(path, gnuplot_script, outcomes, count);
}
