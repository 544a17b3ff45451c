/* This file writes the table of all schedulers side by side (savina_pools.h). */
#include "bench/savina_pools.h"

#include "bench/support/page.h"

#include <inttypes.h>
#include <math.h>

static void write_head_of_section(FILE *file)
{
    fprintf(file,
            "\n## All schedulers side by side\n\n"
            "Millions of messages per second, median round, with as many threads, runners or "
            "schedulers as\nCPUs. `near` and `spread` are on domus' loops, the next four in a "
            "pool of domus, by its policy;\nthe best pool is bold. A pool's system has one loop, "
            "which sleeps. Goals are for pools with two\nrunners: %.0f times the better peer in "
            "rows that are bound by their messages, 1.3 times near in\nthose that spread "
            "themselves.\n\n"
            "| row | threads | near | spread | rings | deques | stealing | sharing | CAF, stealing "
            "| CAF, sharing | Erlang | best pool to near | to the better peer | goal |\n"
            "|:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|:--|\n",
            SAVINA_POOL_TO_PEER);
}

static const char *get_verdict_on_goal(double ratio, double goal)
{
    if (isnan(ratio))
        return "";
    return ratio >= goal ? ", met" : ", missed";
}

static void write_goal_of_pools(FILE *file, const struct savina_outcome *outcome)
{
    const struct savina_row *row = outcome->row;

    if (outcome->threads > 1 && row->goal_pool != 0)
        fprintf(file, " %.1f near%s |\n", row->goal_pool,
                get_verdict_on_goal(savina_ratio_of_best_pool_to_near(outcome), row->goal_pool));
    else if (outcome->threads > 1 && row->goal >= SAVINA_MESSAGE_BOUND)
        fprintf(
            file, " %.0f peer%s |\n", SAVINA_POOL_TO_PEER,
            get_verdict_on_goal(savina_ratio_of_best_pool_to_peer(outcome), SAVINA_POOL_TO_PEER));
    else
        fprintf(file, " |\n");
}

static void write_line_of_row(FILE *file, const struct savina_outcome *outcome)
{
    char text[PAGE_CELL_MAX];
    int best = (int)savina_best_pool_of_row(outcome);

    fprintf(file, "| %s | %" PRIu32 " |", outcome->row->name, outcome->threads);
    for (int side = 0; side < SAVINA_PEERS_END; side++)
        fprintf(file, side == best ? " **%s** |" : " %s |",
                page_write_rate_in_millions_or_k(outcome->of[side].value, text));
    fprintf(file, " %s |",
            page_write_number_of_cell(savina_ratio_of_best_pool_to_near(outcome), 1, "", text));
    fprintf(file, " %s |",
            page_write_number_of_cell(savina_ratio_of_best_pool_to_peer(outcome), 1, "", text));
    write_goal_of_pools(file, outcome);
}

/* Write a sentence about the program with threads and without actors, if it did this row. */
static void write_sentence_about_threads(FILE *file, const struct savina_outcome *outcome)
{
    char text[PAGE_CELL_MAX];
    double ratio = savina_ratio_of_best_pool_to_threads(outcome);

    if (isnan(outcome->of[SAVINA_THREADS].value))
        return;
    fprintf(file,
            "\n%s without actors, %" PRIu32 " thread%s and a stack of parts:", outcome->row->name,
            outcome->threads, outcome->threads > 1 ? "s" : "");
    fprintf(file, " %s a second.",
            page_write_rate_in_millions_or_k(outcome->of[SAVINA_THREADS].value, text));
    fprintf(file, " The best pool reaches %s\nof that",
            page_write_number_of_cell(ratio, 1, "", text));
    if (outcome->threads > 1)
        fprintf(file, " (goal %.2f%s)", SAVINA_POOL_TO_THREADS,
                get_verdict_on_goal(ratio, SAVINA_POOL_TO_THREADS));
    fprintf(file, ".\n");
}

/* Write a row of the table. Its two outcomes are not neighbours in the array, because the outcomes
 * of all rows with one thread come before those with two. */
static void write_row_of_table(FILE *file, const struct savina_outcome *outcomes, size_t count,
                               const struct savina_row *row)
{
    for (size_t i = 0; i < count; i++) {
        if (outcomes[i].row == row)
            write_line_of_row(file, &outcomes[i]);
    }
}

void savina_write_section_of_pools(FILE *file, const struct savina_outcome *outcomes, size_t count)
{
    write_head_of_section(file);
    for (size_t i = 0; i < SAVINA_ROWS; i++) {
        if (savina_rows[i].kind == SAVINA_MESSAGES)
            write_row_of_table(file, outcomes, count, &savina_rows[i]);
    }
    for (size_t i = 0; i < count; i++)
        write_sentence_about_threads(file, &outcomes[i]);
}
