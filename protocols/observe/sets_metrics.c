/* Writes tables of libraries and of the program as metrics (sets.h). */
#include "protocols/observe/sets.h"

#include <domus/figures.h>
#include <domus/observe.h>

#include <stdio.h>
#include <string.h>

/* Bytes of the labels of a table's row: each label has a name of up to 31 bytes and an escaped
 * value. A further label for the word of a state may follow. */
#define LABELS_SIZE (DOMUS_FIGURES_LABELS_MAX * (DOMI_LABEL_SIZE + 40))

static void write_labels_of_row(const domus_figures_shot *shot, uint32_t row,
                                char labels[LABELS_SIZE])
{
    const domus_figures_table *table = shot->table;
    char value[DOMI_LABEL_SIZE];
    size_t size = 0;

    labels[0] = '\0';
    for (uint32_t i = 0; table->columns[i].kind == DOMUS_FIGURE_LABEL; i++) {
        domi_escape_name_for_label(domus_figures_cell(shot, row, i)->text, value);
        size += (size_t)snprintf(labels + size, LABELS_SIZE - size, "%s%s=\"%s\"",
                                 i == 0 ? "" : ",", table->columns[i].name, value);
        if (i + 1 == table->columns_count)
            return;
    }
}

/* Write a sample for each word that a state may have: 1 for the current word, and 0 for the
 * others. */
static void write_sample_for_each_word_of_state(domi_metrics *to, const domus_figure_column *column,
                                                const char *labels, uint64_t number)
{
    char all[LABELS_SIZE + 64];

    for (uint32_t i = 0; column->words[i] != NULL; i++) {
        snprintf(all, sizeof all, "%s%sstate=\"%s\"", labels, labels[0] != '\0' ? "," : "",
                 column->words[i]);
        domi_write_metric_name_and_labels(to, column->metric, "", all);
        domi_write_metric_count_and_line_end(to, i == number);
    }
}

static void write_family_of_column(domi_metrics *to, const domus_figures_shot *shot,
                                   uint32_t number)
{
    const domus_figure_column *column = &shot->table->columns[number];
    bool grows = column->kind == DOMUS_FIGURE_COUNT || column->kind == DOMUS_FIGURE_FAULTS;
    char labels[LABELS_SIZE];

    domi_begin_metric_family(to, column->metric, grows ? DOMI_COUNTER : DOMI_GAUGE, column->help);
    for (uint32_t i = 0; i < shot->count; i++) {
        uint64_t value = domus_figures_cell(shot, i, number)->number;
        if (shot->is_past[i])
            continue;
        write_labels_of_row(shot, i, labels);
        if (column->kind == DOMUS_FIGURE_STATE) {
            write_sample_for_each_word_of_state(to, column, labels, value);
            continue;
        }
        domi_write_metric_name_and_labels(to, column->metric, grows ? "_total" : "", labels);
        if (column->kind == DOMUS_FIGURE_TIME)
            domi_write_metric_time_and_line_end(to, value);
        else
            domi_write_metric_count_and_line_end(to, value);
    }
}

/* Returns whether a table has a row that is not past, and so samples. A family of metrics without
 * samples is left out. */
static bool has_table_samples(const domus_figures_shot *shot)
{
    for (uint32_t i = 0; i < shot->count; i++) {
        if (!shot->is_past[i])
            return true;
    }
    return false;
}

void domi_write_metrics_of_figure_sets(domi_metrics *to, domus_system *system)
{
    const domus_figures_table *table;
    domus_figures_shot shot;

    for (uint32_t i = 0; (table = domus_figures_at(system, i)) != NULL; i++) {
        if (table->is_list ||
            domus_figures_read(system, i, 0, DOMUS_OBSERVE_ROWS_COUNT, &shot) != 0)
            continue;
        for (uint32_t k = 0; has_table_samples(&shot) && k < table->columns_count; k++) {
            if (shot.table->columns[k].metric != NULL)
                write_family_of_column(to, &shot, k);
        }
        domus_figures_free(&shot);
    }
}
