/* Prints tables of figures for people, below the profile: one line for each row of a table, whose
 * first column is the row's name. Lists are left out, and so are the rows of a long table behind
 * its first 64. */
#include "runtime/control/figures.h"

#include "house/dispatch/describe.h"

#include <domus/text.h>

#include <string.h>

#define ROWS_MAX 64u

static void add_words_of_state(domi_text *to, bool is_first, const char *words)
{
    char shown[4 * DOMUS_FIGURES_TEXT_SIZE + 1];

    (void)domus_text_escape(words, strlen(words), shown, sizeof shown);
    domi_text_append_formatted(to, is_first ? "%-22s" : " %15s", shown);
}

static void add_cell_as_text(domi_text *to, const domus_figures_shot *shot, uint32_t row,
                             uint32_t column)
{
    const domus_figure_column *of = &shot->table->columns[column];
    const domus_figure *cell = domus_figures_cell(shot, row, column);

    switch (of->kind) {
    case DOMUS_FIGURE_LABEL:
    case DOMUS_FIGURE_TEXT:
        add_words_of_state(to, column == 0, cell->text);
        break;
    case DOMUS_FIGURE_STATE:
        add_words_of_state(to, column == 0, of->words[cell->number]);
        break;
    case DOMUS_FIGURE_TIME:
        domi_text_append_formatted(to, " %12.3f ms", (double)cell->number / 1e6);
        break;
    case DOMUS_FIGURE_COUNT:
    case DOMUS_FIGURE_FAULTS:
    case DOMUS_FIGURE_AMOUNT:
    case DOMUS_FIGURE_BYTES:
        domi_text_append_formatted(to, " %15llu", (unsigned long long)cell->number);
        break;
    }
}

static void add_table_as_text(domi_text *to, const domus_figures_shot *shot)
{
    const domus_figures_table *table = shot->table;

    domi_text_append_formatted(to, "-- %s: %s\n", table->set, table->title);
    for (uint32_t i = 0; i < table->columns_count; i++)
        add_words_of_state(to, i == 0, table->columns[i].title);
    domi_text_append_formatted(to, "\n");
    for (uint32_t i = 0; i < shot->count; i++) {
        for (uint32_t k = 0; k < table->columns_count; k++)
            add_cell_as_text(to, shot, i, k);
        domi_text_append_formatted(to, "\n");
    }
    if (shot->total > shot->count)
        domi_text_append_formatted(to, "and %llu more\n",
                                   (unsigned long long)(shot->total - shot->count));
}

size_t domi_figures_print_all_tables(domus_system *system, char *at, size_t size)
{
    domi_text to = {.at = at, .size = size};
    domus_figures_shot shot;

    if (size > 0)
        at[0] = '\0';
    for (uint32_t i = 0; i < DOMUS_FIGURES_TABLES_MAX; i++) {
        const domus_figures_table *table = domus_figures_at(system, i);
        if (table == NULL || table->is_list ||
            domus_figures_read(system, i, 0, ROWS_MAX, &shot) != 0)
            continue;
        if (shot.count > 0)
            add_table_as_text(&to, &shot);
        domus_figures_free(&shot);
    }
    return to.length;
}
