/* domus cluster: the nodes of a program's cluster as it sees them, its grains, and the names of its
 * actors.
 *
 * The program says which tables there are, and which columns they have (/cluster), so those of
 * other versions are printed as well. */
#include "tools/domus/options.h"
#include "tools/domus/say.h"

#include <jansson.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MS   10000L
#define LIMIT       1000L
#define LIMIT_MAX   10000L
#define COLUMNS_MAX 32u
#define CELL_SIZE   80u

typedef char cell[CELL_SIZE];

/* A table of the answer as it is printed: its cells, row by row. */
typedef struct table {
    size_t columns, rows;
    cell titles[COLUMNS_MAX];
    bool is_number[COLUMNS_MAX];
    bool has_labels; /* the rows of the printed table have names */
    cell *cells;
} table;

/* --- reading ---------------------------------------------------------------------------------- */

static void copy_member_text_as_ascii(const json_t *object, const char *name, cell ret_text)
{
    const json_t *value = json_object_get(object, name);

    escape_name_to_ascii(json_string_value(value), json_string_length(value), ret_text, CELL_SIZE);
}

static void read_columns_of_table(const json_t *list, table *to)
{
    size_t count = json_array_size(list);

    to->columns = count < COLUMNS_MAX ? count : COLUMNS_MAX;
    for (size_t i = 0; i < to->columns; i++) {
        cell kind;
        copy_member_text_as_ascii(json_array_get(list, i), "title", to->titles[i]);
        copy_member_text_as_ascii(json_array_get(list, i), "kind", kind);
        to->has_labels = to->has_labels || strcmp(kind, "label") == 0;
        to->is_number[i] =
            strcmp(kind, "label") != 0 && strcmp(kind, "text") != 0 && strcmp(kind, "state") != 0;
    }
}

static void read_cell_of_table(const json_t *row, const json_t *column, cell ret_text)
{
    const char *name = json_string_value(json_object_get(column, "name"));
    const json_t *value = name != NULL ? json_object_get(row, name) : NULL;
    cell kind;

    copy_member_text_as_ascii(column, "kind", kind);
    if (json_is_string(value))
        escape_name_to_ascii(json_string_value(value), json_string_length(value), ret_text,
                             CELL_SIZE);
    else if (json_is_integer(value) && strcmp(kind, "time") == 0)
        snprintf(ret_text, CELL_SIZE, "%.3fms", (double)json_integer_value(value) / 1e6);
    else if (json_is_number(value))
        snprintf(ret_text, CELL_SIZE, "%.0f", json_number_value(value));
    else
        ret_text[0] = '\0';
}

/* Read a table of the answer with at most `most` rows. Returns false without memory. */
static bool read_table_of_answer(const json_t *from, size_t most, table *ret_table)
{
    const json_t *columns = json_object_get(from, "columns");
    const json_t *rows = json_object_get(from, "rows");

    memset(ret_table, 0, sizeof *ret_table);
    read_columns_of_table(columns, ret_table);
    ret_table->rows = json_array_size(rows) < most ? json_array_size(rows) : most;
    ret_table->cells = calloc(ret_table->rows * ret_table->columns + 1, sizeof(cell));
    if (ret_table->cells == NULL)
        return false;
    for (size_t i = 0; i < ret_table->rows; i++) {
        for (size_t k = 0; k < ret_table->columns; k++)
            read_cell_of_table(json_array_get(rows, i), json_array_get(columns, k),
                               ret_table->cells[i * ret_table->columns + k]);
    }
    return true;
}

/* --- printing --------------------------------------------------------------------------------- */

/* Print a row of a table, or its titles, in columns of these widths, without blanks at its end. */
static void print_row_of_table(const table *shown, cell *cells, const size_t *widths, bool is_head)
{
    size_t last = shown->columns;
    size_t blanks = 0;

    while (last > 0 && cells[last - 1][0] == '\0')
        last--;
    for (size_t k = 0; k < last; k++) {
        size_t length = strlen(cells[k]);
        size_t more = widths[k] - length;
        (void)printf("%*s", (int)(blanks + (shown->is_number[k] ? more : 0)), "");
        for (const char *at = cells[k]; *at != '\0'; at++)
            (void)putchar(is_head ? toupper((unsigned char)*at) : *at);
        blanks = (shown->is_number[k] ? 0 : more) + 1;
    }
    (void)putchar('\n');
}

static void print_rows_of_table(table *shown)
{
    size_t widths[COLUMNS_MAX];

    for (size_t k = 0; k < shown->columns; k++) {
        widths[k] = strlen(shown->titles[k]);
        for (size_t i = 0; i < shown->rows; i++) {
            size_t length = strlen(shown->cells[i * shown->columns + k]);
            widths[k] = length > widths[k] ? length : widths[k];
        }
    }
    print_row_of_table(shown, shown->titles, widths, true);
    for (size_t i = 0; i < shown->rows; i++)
        print_row_of_table(shown, shown->cells + i * shown->columns, widths, false);
}

/* Print the only row of a table whose rows have no names, as "title value, ...". */
static void print_only_row_as_line(const table *shown)
{
    for (size_t k = 0; k < shown->columns; k++)
        (void)printf("%s%s %s", k == 0 ? "" : ", ", shown->titles[k], shown->cells[k]);
    (void)putchar('\n');
}

static bool print_table_of_answer_or_its_only_row(const json_t *from, size_t most)
{
    const json_t *all = json_object_get(from, "total");
    size_t total =
        json_is_integer(all) && json_integer_value(all) > 0 ? (size_t)json_integer_value(all) : 0;
    table shown;
    cell title;

    copy_member_text_as_ascii(from, "title", title);
    if (!read_table_of_answer(from, most, &shown))
        return false;
    if (!shown.has_labels && shown.rows > 0) {
        (void)printf("%s: ", title);
        print_only_row_as_line(&shown);
    } else if (shown.rows > 0) {
        (void)putchar('\n');
        print_rows_of_table(&shown);
        if (total > shown.rows)
            (void)printf("and %zu more\n", total - shown.rows);
    }
    free(shown.cells);
    return true;
}

/* --- the command ------------------------------------------------------------------------------ */

static int print_nodes_of_cluster(const json_t *all, bool as_json, size_t most)
{
    const json_t *tables = json_object_get(all, "tables");
    bool is_done = true;

    if (as_json) {
        char *text = json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII);
        if (text != NULL)
            (void)puts(text);
        is_done = text != NULL;
        free(text);
    } else {
        for (size_t i = 0; is_done && i < json_array_size(tables); i++)
            is_done = print_table_of_answer_or_its_only_row(json_array_get(tables, i), most);
    }
    if (!is_done)
        say_print_error("there is no memory");
    return is_done ? STATUS_OK : STATUS_FAILED;
}

static int request_and_print_tables_of_cluster(port *at, bool as_json, long most)
{
    json_error_t error;
    port_text answer;
    char path[64], endpoint[256];

    escape_name_to_ascii(at->endpoint, strlen(at->endpoint), endpoint, sizeof endpoint);
    snprintf(path, sizeof path, "/cluster?count=%ld", most);
    if (!port_get_and_collect_answer(at, path, ANSWER_MS, &answer)) {
        if (at->status == 404)
            say_print_error("%s: this program is no node of a cluster", endpoint);
        else
            say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    json_t *all = json_loadb(answer.at, answer.size, 0, &error);
    free(answer.at);
    int status = STATUS_FAILED;
    if (json_is_array(json_object_get(all, "tables")))
        status = print_nodes_of_cluster(all, as_json, (size_t)most);
    else
        say_print_error("%s: what it says of its cluster is not to be read", endpoint);
    json_decref(all);
    return status;
}

static int run_command_cluster(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {
        {"json", no_argument, NULL, 'j'}, {"limit", required_argument, NULL, 'n'}, OPTIONS_LONG};
    options all = {.self = self};
    int option, status = STATUS_FAILED;
    bool as_json = false;
    long most = LIMIT;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "jn:", longs)) >= 0) {
        as_json = as_json || option == 'j';
        if (option == 'n' && !options_read_number(&all, optarg, 1, LIMIT_MAX, &most))
            return STATUS_USAGE;
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (options_open_port_of_meant_program(&all, &at))
        status = request_and_print_tables_of_cluster(&at, as_json, most);
    port_close(&at);
    return status;
}

const command command_cluster = {
    .name = "cluster",
    .summary = "the nodes, grains and names of a program's cluster",
    .help = "usage: domus cluster [OPTIONS]\n"
            "\n"
            "Prints what a node knows of its cluster: whether it has a server; each node with its\n"
            "state, the last round trip, the bytes on the way to it, and how many messages were\n"
            "sent, received, refused and lost; its grains; and the names of its actors.\n"
            "\n"
            "  -j, --json               as one line of JSON\n"
            "  -n, --limit N            rows of each table (1000; at most 10000)\n" OPTIONS_HELP,
    .run = run_command_cluster,
};
