/* The storeys of house/, io/ and runtime/: each file uses its own storey and those below it, and no
 * circle of files that use each other has more than two.
 *
 * The uses are read from the includes and from the symbols of this build's object files. A file may
 * use something above it only by the tables of functions that are listed below. */
#include "tests/support/suite.h"
#include "tests/tidy/graph.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>

#define STOREYS_MAX 12 /* room for the storeys of one layer, with a NULL behind the last */
#define UNITS_MIN   3  /* the fewest units (sources with their headers) that make a storey */

/* The layers that have storeys, each with its storeys from the bottom up.
 *
 * house: message (objects, pools, queues, a house's states, the put), conversation (stacks, asks,
 * promises, receive, timers), family (birth and death, children, restarts, watches), directory
 * (names, groups, routers), dispatch (sorting, a run, loans, a manager's part of an iteration).
 *
 * io: wire (the stages of pipelines and their bytes; it knows no channel), backend (the ring),
 * resources (what a thread's io has, and what of it can run short), channels (connections and their
 * bytes), pipelines (their messages), acceptors (listeners), connectors (connections that are being
 * made), datagrams (channels of datagrams), inner (channels within channels), completions (what a
 * tick does with all of them).
 *
 * runtime: os (wrappers of the kernel that know no houses), trace (what each thread did last, and
 * how it is written), network (the simulated one), system
 * (what threads share, and who looks after it), outside (foreign and detached threads), files
 * (operations on files), policies (queues of pools), pools (their runners), loop (phases, park,
 * stealing), control (configure, make, stop, look at a system), testkit. */
static const struct layer {
    const char *name;
    const char *storeys[STOREYS_MAX];
} layers[] = {
    {"house", {"message", "conversation", "family", "directory", "dispatch"}},
    {"io",
     {"wire", "backend", "resources", "channels", "pipelines", "acceptors", "connectors",
      "datagrams", "inner", "completions"}},
    {"runtime",
     {"os", "trace", "network", "system", "outside", "files", "policies", "pools", "loop",
      "control", "testkit"}},
};
#define LAYERS_COUNT (sizeof layers / sizeof layers[0])

/* Tables of functions that a lower storey declares and a higher one fills. A use of such a table
 * may lead upwards, and counts as no arrow. */
static const char *const tables[] = {
    "domi_kinds", /* declared in house/message/kind.h, filled in house/dispatch/kinds.c */
    "domi_doors", /* declared in house/message/doors.h, filled in house/dispatch/kinds.c */
    NULL,
};

/* Returns the layer in which the unit `name` lies, or NULL, and the number of its storey, which is
 * -1 if it lies in none. */
static const struct layer *find_layer_and_storey_of_unit(const char *name, int *ret_storey)
{
    char folder[DOMT_UNIT_NAME];

    *ret_storey = -1;
    for (size_t i = 0; i < LAYERS_COUNT; i++) {
        if (!domt_is_unit_in_folder(name, layers[i].name)) {
            continue;
        }
        for (int storey = 0; layers[i].storeys[storey] != NULL; storey++) {
            snprintf(folder, sizeof folder, "%s/%s", layers[i].name, layers[i].storeys[storey]);
            if (domt_is_unit_in_folder(name, folder)) {
                *ret_storey = storey;
            }
        }
        return &layers[i];
    }
    return NULL;
}

static bool does_arrow_point_upwards(const char *from, const char *to)
{
    int lower = 0;
    int upper = 0;

    return find_layer_and_storey_of_unit(from, &lower) ==
               find_layer_and_storey_of_unit(to, &upper) &&
           upper > lower;
}

/* ---- The tree as it is ------------------------------------------------------------------------*/

static domt_graph graph;
static char symbols[4 << 20];

static void read_symbols_of_objects(void)
{
    int status = domt_run_shell(symbols, sizeof symbols,
                                "cd '%s/../CMakeFiles' && find domus-*-objects.dir -name '*.c.o' | "
                                "sort | xargs nm -A -g",
                                DOMT_BIN_DIR);

    ck_assert_int_eq(status, 0);
    ck_assert_uint_lt(strlen(symbols), sizeof symbols - 1);
}

static void read_graph_of_tree(const char *root)
{
    memset(&graph, 0, sizeof graph);
    domt_graph_add_includes(&graph, root);
    read_symbols_of_objects();
    domt_graph_add_symbols(&graph, DOMT_SOURCE_DIR, symbols, tables);
}

/* Report each arrow of the graph that leads upwards within a layer. Returns how many there are. */
static uint32_t report_arrows_upwards(const char *folder, domt_report *report)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < graph.count; i++) {
        for (uint32_t j = 0; domt_is_unit_in_folder(graph.name[i], folder) && j < graph.count;
             j++) {
            if (!graph.arrow[i][j] || !does_arrow_point_upwards(graph.name[i], graph.name[j])) {
                continue;
            }
            count++;
            domt_report_add_offence(report, graph.name[i], 0, "upwards: %s -> %s", graph.name[i],
                                    graph.name[j]);
        }
    }
    return count;
}

/* ---- What holds -------------------------------------------------------------------------------*/

static domt_report report;

DOMT_TEST(storeys_use_only_storeys_below)
{
    read_graph_of_tree(DOMT_SOURCE_DIR);
    report = (domt_report){0};
    for (size_t i = 0; i < LAYERS_COUNT; i++) {
        uint32_t count = report_arrows_upwards(layers[i].name, &report);
        printf("%s: %u arrows upwards\n", layers[i].name, count);
    }
    ck_assert_msg(report.count == 0, "%u:\n%s", report.count, report.text);
}

DOMT_TEST(each_table_of_functions_is_constant_data)
{
    char line[96];

    read_symbols_of_objects();
    for (size_t i = 0; tables[i] != NULL; i++) {
        printf("table: %s\n", tables[i]);
        /* For a table, nm prints D for data that is read-only after relocation, or R for read-only
         * data. */
        snprintf(line, sizeof line, " D %s\n", tables[i]);
        if (strstr(symbols, line) == NULL) {
            memcpy(line, " R", 2);
        }
        ck_assert_msg(strstr(symbols, line) != NULL, "no constant table %s", tables[i]);
    }
}

/* How many pairs of files in each folder use each other. The test also fails if there are fewer, so
 * that this table is corrected. */
static const struct pairs {
    const char *folder;
    uint32_t count;
} pairs[] = {{"base", 0}, {"house", 5}, {"io", 0}, {"runtime", 0}, {"config", 0}, {"protocols", 0}};

/* Report each circle of more than two files in a folder, and also if its number of pairs is not
 * `expected`. */
static void report_wrong_circles(const char *folder, uint32_t expected)
{
    uint32_t sizes[DOMT_CIRCLES_MAX];
    uint32_t count = domt_graph_find_circles(&graph, folder, sizes);

    printf("%s: %u circles\n", folder, count);
    for (uint32_t i = 0; i < count && sizes[i] > 2; i++) {
        domt_report_add_offence(&report, folder, 0, "a circle of %u files", sizes[i]);
    }
    if (count != expected) {
        domt_report_add_offence(&report, folder, 0, "%u circles, not %u", count, expected);
    }
}

DOMT_TEST(no_include_circle_has_more_than_two_files)
{
    read_graph_of_tree(DOMT_SOURCE_DIR);
    report = (domt_report){0};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        report_wrong_circles(pairs[i].folder, pairs[i].count);
    }
    ck_assert_msg(report.count == 0, "%s", report.text);
}

DOMT_TEST(every_file_belongs_to_a_storey)
{
    uint32_t counts[LAYERS_COUNT][STOREYS_MAX] = {{0}};
    int storey = 0;

    memset(&graph, 0, sizeof graph);
    domt_graph_add_includes(&graph, DOMT_SOURCE_DIR);
    for (uint32_t i = 0; i < graph.count; i++) {
        const struct layer *layer = find_layer_and_storey_of_unit(graph.name[i], &storey);
        ck_assert_msg(layer == NULL || storey >= 0, "%s stands in no storey", graph.name[i]);
        if (layer != NULL) {
            counts[layer - layers][storey]++;
        }
    }
    for (size_t i = 0; i < LAYERS_COUNT; i++) {
        for (storey = 0; layers[i].storeys[storey] != NULL; storey++) {
            ck_assert_msg(counts[i][storey] >= UNITS_MIN, "%s/%s has %u files", layers[i].name,
                          layers[i].storeys[storey], counts[i][storey]);
        }
    }
}

/* ---- The test sees ----------------------------------------------------------------------------*/

static void append_text_at_end(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s", more);
}

DOMT_TEST(tidy_sees_include_of_higher_storey)
{
    char copy[DOMT_PATH_MAX];

    domt_tree_copy_parts(DOMT_SOURCE_DIR, "house", copy);
    domt_tree_append_text_to_file(
        copy, "house/message/planted.h",
        "/*\n#include \"house/family/life.h\"\n*/\n"
        "#  include \"house/dispatch/loan.h\"\n#include \"house/message/pool.h\"\n");
    read_graph_of_tree(copy);
    domt_tree_remove_copy(copy);
    report = (domt_report){0};
    report_arrows_upwards("house", &report);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_ptr_nonnull(strstr(report.text, "house/message/planted -> house/dispatch/loan"));
}

DOMT_TEST(tidy_sees_symbol_of_higher_storey)
{
    read_graph_of_tree(DOMT_SOURCE_DIR);
    append_text_at_end(symbols, sizeof symbols,
                       "domus-io-objects.dir/io/backend/uring.c.o:         U domi_acceptor_new\n"
                       "domus-io-objects.dir/io/planted.c.o:         U domi_acceptor_new\n"
                       "domus-io-objects.dir/io/acceptors/serve.c.o:0010 T domi_acceptor_new\n");
    domt_graph_add_symbols(&graph, DOMT_SOURCE_DIR, symbols, tables);
    report = (domt_report){0};
    report_arrows_upwards("io", &report);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_ptr_nonnull(strstr(report.text, "io/backend/uring -> io/acceptors/serve"));
}

DOMT_TEST(tidy_sees_circles_of_files)
{
    static const char *const arrows[][2] = {
        {"base/a.c", "base/b.h"},
        {"base/b.c", "base/c.h"},
        {"base/c.h", "base/a.h"},
        {"base/c.c", "base/d.h"},
        {"base/e.c", "base/f.h"},
        {"base/f.c", "base/e.h"},
        /* the last two arrows leave the folder base, so they close no circle in it */
        {"base/d.c", "io/g.h"},
        {"io/g.c", "base/a.h"},
    };

    memset(&graph, 0, sizeof graph);
    for (size_t i = 0; i < sizeof arrows / sizeof arrows[0]; i++) {
        domt_graph_add_arrow(&graph, arrows[i][0], arrows[i][1]);
    }
    report = (domt_report){0};
    report_wrong_circles("base", 2);
    ck_assert_uint_eq(report.count, 1);
    ck_assert_ptr_nonnull(strstr(report.text, "a circle of 3 files"));
    report_wrong_circles("io", 1);
    ck_assert_uint_eq(report.count, 2);
    ck_assert_ptr_nonnull(strstr(report.text, "0 circles, not 1"));
}

DOMT_SUITE(60)
