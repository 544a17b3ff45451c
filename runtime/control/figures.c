/* Tables of figures (domus/figures.h) that libraries and programs show of themselves: the tables
 * are added, removed, and read into rows that belong to the reader. */
#include "runtime/control/figures.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>

#define WORDS_MAX   8u
#define LETTERS_MAX 31u

/* --- tables ----------------------------------------------------------------------------------- */

/* True if a name of a table or column has 1..31 small letters, digits and '_'. */
static bool is_name_of_figures_valid(const char *name)
{
    size_t length = name != NULL ? strnlen(name, LETTERS_MAX + 1) : 0;

    return length > 0 && length <= LETTERS_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

static uint32_t count_words_of_state_column(const domus_figure_column *column)
{
    uint32_t count = 0;

    while (column->words != NULL && count <= WORDS_MAX && column->words[count] != NULL)
        count++;
    return count;
}

/* Returns whether a table of figures is valid: its names, its number of columns, and its labels,
 * which must be the first columns. */
static bool is_table_of_figures_valid(const domus_figures_table *table)
{
    if (!is_name_of_figures_valid(table->set) || !is_name_of_figures_valid(table->name) ||
        table->title == NULL || table->read == NULL || table->columns_count == 0 ||
        table->columns_count > DOMUS_FIGURES_COLUMNS_MAX)
        return false;
    for (uint32_t i = 0; i < table->columns_count; i++) {
        const domus_figure_column *column = &table->columns[i];
        bool is_late = i >= DOMUS_FIGURES_LABELS_MAX ||
                       (i > 0 && table->columns[i - 1].kind != DOMUS_FIGURE_LABEL);
        bool is_text_column =
            column->kind == DOMUS_FIGURE_LABEL || column->kind == DOMUS_FIGURE_TEXT;
        uint32_t words = count_words_of_state_column(column);
        if (!is_name_of_figures_valid(column->name) || column->title == NULL ||
            (unsigned)column->kind > DOMUS_FIGURE_TIME ||
            (column->metric != NULL &&
             (is_text_column || column->help == NULL || table->is_list)) ||
            (column->kind == DOMUS_FIGURE_STATE) != (words > 0 && words <= WORDS_MAX) ||
            (column->kind == DOMUS_FIGURE_LABEL && is_late))
            return false;
    }
    return true;
}

int domus_figures_add(domus_system *system, const domus_figures_table *table, void *context)
{
    domi_figures *figures = &system->figures;
    int error = 0;

    if (!is_table_of_figures_valid(table))
        return -EINVAL;
    if (domi_system_is_forked(system))
        return -ECHILD;
    pthread_mutex_lock(&figures->mutex);
    for (uint32_t i = 0; i < figures->count; i++) {
        if (strcmp(figures->each[i].table->set, table->set) == 0 &&
            strcmp(figures->each[i].table->name, table->name) == 0)
            error = -EEXIST;
    }
    if (error == 0 && figures->count == DOMUS_FIGURES_TABLES_MAX)
        error = -ENOSPC;
    if (error == 0) {
        figures->each[figures->count].table = table;
        figures->each[figures->count++].context = context;
    }
    pthread_mutex_unlock(&figures->mutex);
    return error;
}

void domus_figures_remove(domus_system *system, const domus_figures_table *table, void *context)
{
    domi_figures *figures = &system->figures;
    uint32_t kept = 0;

    if (domi_system_is_forked(system))
        return;
    pthread_mutex_lock(&figures->mutex);
    for (uint32_t i = 0; i < figures->count; i++) {
        if (figures->each[i].table != table || figures->each[i].context != context)
            figures->each[kept++] = figures->each[i];
    }
    figures->count = kept;
    pthread_mutex_unlock(&figures->mutex);
}

void domi_figures_end_all_tables(domus_system *system)
{
    domi_figures *figures = &system->figures;

    for (uint32_t i = 0; i < figures->count; i++) {
        if (figures->each[i].table->end != NULL)
            figures->each[i].table->end(figures->each[i].context);
    }
    pthread_mutex_destroy(&figures->mutex);
}

const domus_figures_table *domus_figures_at(domus_system *system, uint32_t index)
{
    domi_figures *figures = &system->figures;

    if (domi_system_is_forked(system))
        return NULL;
    pthread_mutex_lock(&figures->mutex);
    const domus_figures_table *table = index < figures->count ? figures->each[index].table : NULL;
    pthread_mutex_unlock(&figures->mutex);
    return table;
}

/* --- rows --------------------------------------------------------------------------------------
 */

/* Grow a block of memory from `*room` to at least `wanted` bytes; a new block has `first` bytes.
 * Returns the grown block; NULL without memory, and then the old block is as it was. */
static void *grow_block_of_shot(void *block, uint64_t *room, uint64_t wanted, uint64_t first)
{
    uint64_t next = *room != 0 ? *room : first;

    while (next < wanted)
        next *= 2;
    if (next == *room)
        return block;
    void *grown = block == NULL ? domi_memory_new_bytes((size_t)next)
                                : domi_memory_grow_block(block, (size_t)next);
    if (grown != NULL)
        *room = next;
    return grown;
}

/* Make room for one more row in a shot, which is a copy of a table's rows. Returns false without
 * memory. */
static bool make_room_for_row_of_shot(domus_figures_shot *to)
{
    uint64_t row = to->table->columns_count * sizeof(domus_figure);
    uint64_t texts = to->table->columns_count * (uint64_t)DOMUS_FIGURES_TEXT_SIZE;

    if (to->count == to->room) {
        uint32_t room = to->room != 0 ? 2 * to->room : 16;
        uint64_t cells_room = to->room * row, marks_room = to->room * sizeof(bool);
        void *cells = grow_block_of_shot(to->cells, &cells_room, room * row, room * row);
        if (cells == NULL)
            return false;
        to->cells = cells;
        void *marks =
            grow_block_of_shot(to->is_past, &marks_room, room * sizeof(bool), room * sizeof(bool));
        if (marks == NULL)
            return false;
        to->is_past = marks;
        to->room = room;
    }
    void *grown = grow_block_of_shot(to->texts, &to->texts_room, to->texts_size + texts, 2048);
    if (grown == NULL)
        return false;
    to->texts = grown;
    return true;
}

/* Copy a text behind the other texts of a shot. Returns its offset and not its address, because the
 * block of texts may move until all rows are read. */
static uint64_t add_text_to_shot(domus_figures_shot *to, const char *text)
{
    uint64_t place = to->texts_size;
    size_t length = text != NULL ? strnlen(text, DOMUS_FIGURES_TEXT_SIZE - 1) : 0;

    if (length > 0)
        memcpy(to->texts + place, text, length);
    to->texts[place + length] = '\0';
    to->texts_size += length + 1;
    return place;
}

static bool has_column_texts(const domus_figure_column *column)
{
    return column->kind == DOMUS_FIGURE_LABEL || column->kind == DOMUS_FIGURE_TEXT;
}

bool domus_figures_put(domus_figures_shot *to, const domus_figure *cells, bool is_past)
{
    if (to->count >= to->most || to->is_short)
        return false;
    to->is_short = !make_room_for_row_of_shot(to);
    if (to->is_short)
        return false;
    domus_figure *row = &to->cells[(uint64_t)to->count * to->table->columns_count];
    for (uint32_t i = 0; i < to->table->columns_count; i++) {
        const domus_figure_column *column = &to->table->columns[i];
        row[i].text = NULL;
        row[i].number =
            has_column_texts(column) ? add_text_to_shot(to, cells[i].text) : cells[i].number;
        if (column->kind == DOMUS_FIGURE_STATE &&
            row[i].number >= count_words_of_state_column(column))
            row[i].number = 0;
    }
    to->is_past[to->count++] = is_past;
    return to->count < to->most;
}

/* Turn the offsets of texts in the shot's cells into addresses, when all rows are read and the
 * block of texts moves no more. */
static void point_cells_at_texts(domus_figures_shot *shot)
{
    for (uint32_t i = 0; i < shot->count; i++) {
        domus_figure *row = &shot->cells[(uint64_t)i * shot->table->columns_count];
        for (uint32_t k = 0; k < shot->table->columns_count; k++) {
            if (has_column_texts(&shot->table->columns[k]))
                row[k] = (domus_figure){.text = shot->texts + row[k].number};
        }
    }
}

int domus_figures_read(domus_system *system, uint32_t index, uint32_t from, uint32_t most,
                       domus_figures_shot *ret_shot)
{
    domi_figures *figures = &system->figures;
    domus_figures_shot shot = {.from = from, .most = most};
    int error = -ENOENT;

    if (domi_system_is_forked(system))
        return -ECHILD;
    pthread_mutex_lock(&figures->mutex);
    if (index < figures->count) {
        shot.table = figures->each[index].table;
        error = shot.table->read(figures->each[index].context, from, &shot, &shot.total);
    }
    pthread_mutex_unlock(&figures->mutex);
    if (error == 0 && shot.is_short)
        error = -ENOMEM;
    if (error != 0) {
        domus_figures_free(&shot);
        return error;
    }
    point_cells_at_texts(&shot);
    *ret_shot = shot;
    return 0;
}

void domus_figures_free(domus_figures_shot *shot)
{
    domi_memory_free(shot->cells);
    domi_memory_free(shot->is_past);
    domi_memory_free(shot->texts);
    *shot = (domus_figures_shot){.table = shot->table};
}
