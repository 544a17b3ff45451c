/* Which file of the library uses which: arrows between units, and the circles that they form.
 *
 * A unit is a source with its header ("house/message/pool"), or one of both that stands alone. An
 * arrow leads from it to another one whose header it includes, or whose symbol its object needs. */
#ifndef DOMT_TIDY_GRAPH_H
#define DOMT_TIDY_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_UNITS_MAX   1024
#define DOMT_UNIT_NAME   64
#define DOMT_CIRCLES_MAX 16

typedef struct domt_graph {
    uint32_t count;
    char name[DOMT_UNITS_MAX][DOMT_UNIT_NAME];
    /* arrow[from][to] is true if unit number `from` uses unit number `to` */
    bool arrow[DOMT_UNITS_MAX][DOMT_UNITS_MAX];
} domt_graph;

/* Add an arrow from the unit of the file `from`, such as "io/completions/ring.c", to that of `to`.
 * Units are added as they are named. There is no arrow if one file is NULL, or both are of one
 * unit. */
void domt_graph_add_arrow(domt_graph *graph, const char *from, const char *to);

/* Add the units of all sources below `root`, and an arrow for each include. */
void domt_graph_add_includes(domt_graph *graph, const char *root);

/* Add the arrows of `symbols`, which is the output of `nm -A -g` for objects whose path holds
 * "objects.dir/" before the path of their source. An object without a source below `root` is
 * left out: it is of a build before this one. The names in `tables`, up to a NULL, make no
 * arrow: they are tables that a lower file declares and a higher one fills. Each has to be data
 * and no function. */
void domt_graph_add_symbols(domt_graph *graph, const char *root, const char *symbols,
                            const char *const *tables);

/* Find the circles of two or more units in `folder`, and print their members. Returns how many
 * there are; `ret_sizes` gets their sizes, the largest first, and has room for DOMT_CIRCLES_MAX. */
uint32_t domt_graph_find_circles(const domt_graph *graph, const char *folder, uint32_t *ret_sizes);

/* Returns whether the unit or file `name` lies in `folder`, at any depth. */
bool domt_is_unit_in_folder(const char *name, const char *folder);

#endif
