/* Tables of libraries and of the program, as JSON (sets.h).
 *
 * A text is made at once, on the port's thread, because reading a table takes only a few members of
 * each row. */
#include "protocols/observe/sets.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"

#include <domus/figures.h>
#include <domus/http_query.h>
#include <domus/observe.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NAME_SIZE 32u /* bytes of the name of a set or a table, with its zero byte */

/* --- the path of a set ------------------------------------------------------------------------ */

/* Returns the path of a request without its first '/', which may be the name of a set; empty if the
 * path has further ones. */
static domus_slice possible_name_of_set_in_path(const domus_http_request *request)
{
    domus_slice path = domus_http_path(request);
    const char *data = domus_slice_data(path);

    if (path.size < 2 || data[0] != '/' || memchr(data + 1, '/', path.size - 1) != NULL)
        return (domus_slice){0};
    return (domus_slice){path.page, path.offset + 1, path.size - 1};
}

static bool is_name_of_set(domus_slice name, const char *of)
{
    return name.size == strlen(of) && memcmp(domus_slice_data(name), of, name.size) == 0;
}

bool domi_is_path_of_figure_set(domus_system *system, const domus_http_request *request)
{
    domus_slice name = possible_name_of_set_in_path(request);
    const domus_figures_table *table;

    for (uint32_t i = 0; (table = domus_figures_at(system, i)) != NULL; i++) {
        if (is_name_of_set(name, table->set))
            return true;
    }
    return false;
}

/* Returns whether a table is the first one of its set, so that each set is named once. */
static bool is_first_table_of_set(domus_system *system, uint32_t index, const char *set)
{
    for (uint32_t i = 0; i < index; i++) {
        const domus_figures_table *table = domus_figures_at(system, i);
        if (table != NULL && strcmp(table->set, set) == 0)
            return false;
    }
    return true;
}

void domi_write_names_of_figure_sets(domus_appender *json, domus_system *system)
{
    const domus_figures_table *table;
    const char *comma = "";

    (void)domus_append_text(json, "[");
    for (uint32_t i = 0; (table = domus_figures_at(system, i)) != NULL; i++) {
        if (!is_first_table_of_set(system, i, table->set))
            continue;
        (void)domus_append_text(json, "%s\"%s\"", comma, table->set);
        comma = ",";
    }
    (void)domus_append_text(json, "]");
}

/* --- tables ----------------------------------------------------------------------------------- */

static void write_columns_of_table(domus_appender *json, const domus_figures_table *table)
{
    static const char *const kinds[] = {
        [DOMUS_FIGURE_LABEL] = "label",   [DOMUS_FIGURE_TEXT] = "text",
        [DOMUS_FIGURE_STATE] = "state",   [DOMUS_FIGURE_COUNT] = "count",
        [DOMUS_FIGURE_FAULTS] = "faults", [DOMUS_FIGURE_AMOUNT] = "amount",
        [DOMUS_FIGURE_BYTES] = "bytes",   [DOMUS_FIGURE_TIME] = "time",
    };

    (void)domus_append_text(json, ",\"columns\":[");
    for (uint32_t i = 0; i < table->columns_count; i++) {
        const domus_figure_column *column = &table->columns[i];
        (void)domus_append_text(json, "%s{\"name\":\"%s\",\"title\":", i == 0 ? "" : ",",
                                column->name);
        domi_json_append_string(json, column->title);
        (void)domus_append_text(json, ",\"kind\":\"%s\"}", kinds[column->kind]);
    }
    (void)domus_append_text(json, "]");
}

static void write_cell_of_row_as_json(domus_appender *json, const domus_figure_column *column,
                                      const domus_figure *cell)
{
    if (column->kind == DOMUS_FIGURE_LABEL || column->kind == DOMUS_FIGURE_TEXT)
        domi_json_append_string(json, cell->text);
    else if (column->kind == DOMUS_FIGURE_STATE)
        (void)domus_append_text(json, "\"%s\"", column->words[cell->number]);
    else
        (void)domus_append_text(json, "%" PRIu64, cell->number);
}

static void write_table_as_json(domus_appender *json, const domus_figures_shot *shot)
{
    const domus_figures_table *table = shot->table;

    (void)domus_append_text(json, "{\"name\":\"%s\",\"title\":", table->name);
    domi_json_append_string(json, table->title);
    (void)domus_append_text(json, ",\"is_list\":%s,\"from\":%" PRIu32 ",\"total\":%" PRIu64,
                            table->is_list ? "true" : "false", shot->from, shot->total);
    write_columns_of_table(json, table);
    (void)domus_append_text(json, ",\"rows\":[");
    for (uint32_t i = 0; i < shot->count; i++) {
        for (uint32_t k = 0; k < table->columns_count; k++) {
            (void)domus_append_text(json,
                                    k > 0   ? ",\"%s\":"
                                    : i > 0 ? ",{\"%s\":"
                                            : "{\"%s\":",
                                    table->columns[k].name);
            write_cell_of_row_as_json(json, &table->columns[k], domus_figures_cell(shot, i, k));
        }
        (void)domus_append_text(json, "}");
    }
    (void)domus_append_text(json, "]}");
}

/* --- requests --------------------------------------------------------------------------------- */

/* The tables and rows that a viewer's query asks for. */
typedef struct wish {
    uint32_t from, count;
    char table[NAME_SIZE]; /* name of the wanted table; "": all tables of the set */
} wish;

static int read_wanted_table_and_rows_from_query(domus_slice query, wish *ret_wish)
{
    int64_t size = domus_http_query_value(query, "table", ret_wish->table, NAME_SIZE - 1);

    if (size < 0 && size != -ENOENT)
        return -EINVAL;
    ret_wish->table[size > 0 ? size : 0] = '\0';
    ret_wish->from = 0;
    ret_wish->count = DOMUS_OBSERVE_ROWS_COUNT;
    if (domi_query_read_number(query, "from", NULL, UINT32_MAX - 1, &ret_wish->from) != 0 ||
        domi_query_read_number(query, "count", NULL, DOMUS_OBSERVE_ROWS_MAX, &ret_wish->count) != 0)
        return -EINVAL;
    return 0;
}

static int write_set_as_json(domus_system *system, domus_slice name, const wish *wanted,
                             domus_slice *ret_text)
{
    const domus_figures_table *table;
    domus_appender json = {0};
    domus_figures_shot shot;
    const char *comma = "";

    (void)domus_append_text(&json, "{\"set\":\"%.*s\",\"tables\":[", (int)name.size,
                            domus_slice_data(name));
    for (uint32_t i = 0; (table = domus_figures_at(system, i)) != NULL; i++) {
        if (!is_name_of_set(name, table->set) ||
            (wanted->table[0] != '\0' && strcmp(table->name, wanted->table) != 0))
            continue;
        int error = domus_figures_read(system, i, wanted->from, wanted->count, &shot);
        if (error == -ENOENT || error == -ECHILD)
            break; /* the table was removed since the set was found, so it is left out */
        if (error != 0) {
            domus_append_drop(&json);
            return error;
        }
        /* the shot is of another table if this table, or one before it, was removed meanwhile, and
         * is left out then */
        if (shot.table == table) {
            (void)domus_append_text(&json, "%s", comma);
            write_table_as_json(&json, &shot);
            comma = ",";
        }
        domus_figures_free(&shot);
    }
    (void)domus_append_text(&json, "]}\n");
    return domus_append_end(&json, ret_text);
}

int domi_observe_serve_figure_set(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text;
    wish wanted;

    (void)self;
    if (read_wanted_table_and_rows_from_query(domus_http_query(payload), &wanted) != 0)
        return domi_observe_answer_with_line(stack, 400,
                                             "from and count are numbers, count is 0..10000, and "
                                             "the name of a table has at most 31 bytes\n");
    int error = write_set_as_json(domi_observed.observed, possible_name_of_set_in_path(payload),
                                  &wanted, &text);
    return error != 0 ? error : domi_observe_answer_with_bytes(stack, "application/json", text);
}
