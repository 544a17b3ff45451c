/* The graph of the library's files: its units, the arrows between them, and the circles of arrows;
 * graph.h describes the functions. */
#include "tests/tidy/graph.h"

#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_MAX 4096

static const char *const libraries[] = {"base", "house", "io", "runtime", "config", "protocols"};

bool domt_is_unit_in_folder(const char *name, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(name, folder, length) == 0 && name[length] == '/';
}

static bool is_file_of_library(const char *path)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (domt_is_unit_in_folder(path, libraries[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t find_or_add_unit_of_file(domt_graph *graph, const char *path)
{
    char name[DOMT_UNIT_NAME];
    int length = (int)strlen(path) - 2; /* length of the path without ".c" or ".h" at its end */

    ck_assert_int_gt(length, 0);
    ck_assert_int_lt(length, DOMT_UNIT_NAME);
    snprintf(name, sizeof name, "%.*s", length, path);
    for (uint32_t i = 0; i < graph->count; i++) {
        if (strcmp(graph->name[i], name) == 0) {
            return i;
        }
    }
    ck_assert_uint_lt(graph->count, DOMT_UNITS_MAX);
    memcpy(graph->name[graph->count], name, sizeof name);
    return graph->count++;
}

void domt_graph_add_arrow(domt_graph *graph, const char *from, const char *to)
{
    uint32_t first = find_or_add_unit_of_file(graph, from);
    uint32_t second = to == NULL ? first : find_or_add_unit_of_file(graph, to);

    if (first != second) {
        graph->arrow[first][second] = true;
    }
}

/* ---- Includes ---------------------------------------------------------------------------------*/

/* the graph that add_arrow_for_each_include() fills; a static variable, because a rule gets no
 * context */
static domt_graph *walked;

static void add_arrow_for_each_include(const domt_source *source, domt_report *report)
{
    char to[256];

    if (!is_file_of_library(source->path)) {
        return;
    }
    domt_graph_add_arrow(walked, source->path, NULL);
    for (const char *hash = strchr(source->code, '#'); hash != NULL; hash = strchr(hash + 1, '#')) {
        const char *p = source->text + (hash - source->code) + 1;
        if (sscanf(p, " include \"%255[^\"\n]\"", to) == 1 && is_file_of_library(to)) {
            domt_graph_add_arrow(walked, source->path, to);
        }
    }
}

void domt_graph_add_includes(domt_graph *graph, const char *root)
{
    static domt_report report;

    walked = graph;
    report = (domt_report){0};
    domt_tree_walk_all_files(root, add_arrow_for_each_include, &report);
}

/* ---- Symbols ----------------------------------------------------------------------------------*/

struct symbol {
    char path[DOMT_UNIT_NAME + 8];
    char name[96];
    char kind;
};

/* Read one line of the output of nm: "path:address T name" or "path: U name". Returns false if its
 * object file belongs to no source. */
static bool read_symbol_of_nm_line(const char *root, const char *line, struct symbol *ret_symbol)
{
    char full[DOMT_PATH_MAX];
    char object[DOMT_PATH_MAX];
    char rest[256];
    const char *begin = NULL;

    if (sscanf(line, "%1023[^:\n]:%255[^\n]", object, rest) != 2) {
        return false;
    }
    begin = strstr(object, "objects.dir/");
    if (begin == NULL || (sscanf(rest, " U %95s", ret_symbol->name) != 1 &&
                          sscanf(rest, "%*x %*c %95s", ret_symbol->name) != 1)) {
        return false;
    }
    ret_symbol->kind = 'U';
    (void)sscanf(rest, "%*x %c", &ret_symbol->kind);
    begin += strlen("objects.dir/");
    snprintf(ret_symbol->path, sizeof ret_symbol->path, "%.*s", (int)strlen(begin) - 2, begin);
    snprintf(full, sizeof full, "%s/%s", root, ret_symbol->path);
    return is_file_of_library(ret_symbol->path) && access(full, R_OK) == 0;
}

static const char *skip_to_next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end == NULL ? line + strlen(line) : end + 1;
}

/* Returns whether the symbol is one of the tables of functions that `tables` names. */
static bool is_symbol_listed_table(const struct symbol *symbol, const char *const *tables)
{
    while (*tables != NULL && strcmp(*tables, symbol->name) != 0) {
        tables++;
    }
    ck_assert_msg(*tables == NULL || symbol->kind != 'T', "%s is no table", symbol->name);
    return *tables != NULL;
}

void domt_graph_add_symbols(domt_graph *graph, const char *root, const char *symbols,
                            const char *const *tables)
{
    static struct symbol defined[SYMBOLS_MAX];
    struct symbol symbol;
    size_t count = 0;

    for (const char *line = symbols; *line != '\0'; line = skip_to_next_line(line)) {
        if (read_symbol_of_nm_line(root, line, &symbol) && symbol.kind != 'U' &&
            !is_symbol_listed_table(&symbol, tables)) {
            ck_assert_uint_lt(count, SYMBOLS_MAX);
            defined[count++] = symbol;
        }
    }
    ck_assert_msg(count > 0, "nm found no symbol");
    for (const char *line = symbols; *line != '\0'; line = skip_to_next_line(line)) {
        if (!read_symbol_of_nm_line(root, line, &symbol) || symbol.kind != 'U') {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            if (strcmp(defined[i].name, symbol.name) == 0) {
                domt_graph_add_arrow(graph, symbol.path, defined[i].path);
            }
        }
    }
}

/* ---- Circles ----------------------------------------------------------------------------------*/

/* Compute which unit reaches which other one along arrows that stay in `folder`, by Warshall's
 * algorithm. */
static void compute_reachability_in_folder(const domt_graph *graph, const char *folder,
                                           bool reach[DOMT_UNITS_MAX][DOMT_UNITS_MAX])
{
    for (uint32_t i = 0; i < graph->count; i++) {
        for (uint32_t j = 0; j < graph->count; j++) {
            reach[i][j] = graph->arrow[i][j] && domt_is_unit_in_folder(graph->name[i], folder) &&
                          domt_is_unit_in_folder(graph->name[j], folder);
        }
    }
    for (uint32_t k = 0; k < graph->count; k++) {
        for (uint32_t i = 0; i < graph->count; i++) {
            for (uint32_t j = 0; reach[i][k] && j < graph->count; j++) {
                reach[i][j] |= reach[k][j];
            }
        }
    }
}

static void insert_size_in_descending_order(uint32_t *sizes, uint32_t count, uint32_t size)
{
    uint32_t i = count;

    for (; i > 0 && sizes[i - 1] < size; i--) {
        sizes[i] = sizes[i - 1];
    }
    sizes[i] = size;
}

uint32_t domt_graph_find_circles(const domt_graph *graph, const char *folder, uint32_t *ret_sizes)
{
    static bool reach[DOMT_UNITS_MAX][DOMT_UNITS_MAX];
    uint32_t count = 0;

    compute_reachability_in_folder(graph, folder, reach);
    for (uint32_t i = 0; i < graph->count; i++) {
        uint32_t size = 0;
        bool is_first = true;
        for (uint32_t j = 0; reach[i][i] && j < graph->count; j++) {
            bool is_member = reach[i][j] && reach[j][i];
            size += is_member;
            is_first &= !is_member || j >= i;
        }
        if (size > 1 && is_first) {
            printf("%s: circle:", folder);
            for (uint32_t j = 0; j < graph->count; j++) {
                if (reach[i][j] && reach[j][i])
                    printf(" %s", graph->name[j]);
            }
            printf("\n");
            ck_assert_uint_lt(count, DOMT_CIRCLES_MAX);
            insert_size_in_descending_order(ret_sizes, count++, size);
        }
    }
    return count;
}
