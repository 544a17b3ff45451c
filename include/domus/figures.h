/* Figures: tables that a library or a program shows of itself beside the profile, such as the nodes
 * of a cluster.
 *
 * A library adds a table to a system, and whoever looks at the system reads it: the observation
 * port (domus/observe.h) has it as metrics, as JSON and on its live page, and
 * domus_system_profile_table() as text. Neither knows the other. A table is a constant description
 * of its columns and a function that says the rows of now. That is called only while somebody
 * looks, on the thread of whoever does.
 *
 *     static const domus_figure_column columns[] = {
 *         {.name = "shelf", .title = "shelf", .kind = DOMUS_FIGURE_LABEL},
 *         {.name = "books", .title = "books", .kind = DOMUS_FIGURE_AMOUNT,
 *          .metric = "shop_shelf_books", .help = "Books on a shelf."},
 *     };
 *     static const domus_figures_table shelves = {
 *         .set = "shop", .name = "shelves", .title = "Shelves", .columns = columns,
 *         .columns_count = 2, .read = read_shelves};
 *     domus_figures_add(system, &shelves, shop);
 *
 * Tables with the same `set` belong together: the port shows them at /SET, as /shop above. */
#ifndef DOMUS_FIGURES_H
#define DOMUS_FIGURES_H

#include <domus/export.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;

#define DOMUS_FIGURES_TABLES_MAX  32u /* most tables of figures in one system */
#define DOMUS_FIGURES_COLUMNS_MAX 32u /* most columns of a table of figures */
/* most columns of a table that are labels (DOMUS_FIGURE_LABEL) */
#define DOMUS_FIGURES_LABELS_MAX 4u
/* size of a text in a cell in bytes, with its zero; a longer text is cut */
#define DOMUS_FIGURES_TEXT_SIZE 64u

/* The kind of a column of a table. Texts may have any bytes: viewers escape them. */
typedef enum domus_figure_kind {
    /* a column of texts that name the row, alone or with other such columns; these come first; as a
     * metric it is a label */
    DOMUS_FIGURE_LABEL,
    DOMUS_FIGURE_TEXT, /* a column of texts that do not name the row; it is no metric */
    /* a column of numbers that are places of words in `words`; as a metric it is 1 for the word of
     * now, and 0 for the others, by the label `state` */
    DOMUS_FIGURE_STATE,
    DOMUS_FIGURE_COUNT, /* a column of numbers that only grow */
    /* a column of numbers that only grow, and count what should not happen, or not often */
    DOMUS_FIGURE_FAULTS,
    DOMUS_FIGURE_AMOUNT, /* a column of numbers that go up and down */
    DOMUS_FIGURE_BYTES,  /* a column of numbers of bytes that go up and down */
    /* a column of times in ns that go up and down; as a metric they are in seconds */
    DOMUS_FIGURE_TIME,
} domus_figure_kind;

/* A column of a table of figures. */
typedef struct domus_figure_column {
    /* name of the column in JSON, and of its label: small letters, digits and '_' */
    const char *name;
    const char *title;
    domus_figure_kind kind;
    /* The name of the metric, by the rules of Prometheus and without "_total"; NULL: the column is
     * no metric. `help` is one sentence about the metric. */
    const char *metric, *help;
    /* the words of a DOMUS_FIGURE_STATE: 1..8 of small letters, with NULL behind the last */
    const char *const *words;
} domus_figure_column;

/* A cell of a row: a text or a number, by the kind of its column. */
typedef struct domus_figure {
    uint64_t number;
    const char *text; /* the text; NULL is as good as "" */
} domus_figure;

typedef struct domus_figures_shot domus_figures_shot;

/* A table of figures: its columns, and the function that reads its rows. */
typedef struct domus_figures_table {
    /* name of the set that the table belongs to, 1..31 small letters, digits and '_' */
    const char *set;
    const char *name;  /* name of the table in its set, 1..31 small letters, digits and '_' */
    const char *title; /* title of the table for people, such as "Nodes" */
    const domus_figure_column *columns;
    uint32_t columns_count; /* number of the table's columns, 1..DOMUS_FIGURES_COLUMNS_MAX */
    /* whether the table may be long and lists objects: then it is neither in metrics nor in
     * texts */
    bool is_list;

    /* Report the table's rows as they are now, from number `from` on, by domus_figures_put() until
     * that returns false. `ret_total` gets the number of all rows. This function may be called on
     * any thread, by one at a time; it must not block for long, nor call the functions of this
     * header but domus_figures_put(). Returns 0; -ENOMEM. */
    int (*read)(void *context, uint32_t from, domus_figures_shot *to, uint64_t *ret_total);

    /* A function that is called when the system is freed, if the table was not removed before.
     * NULL: no such call. */
    void (*end)(void *context);
} domus_figures_table;

/* Add a table, which has to stay valid until the system is freed. `context` is handed to `read`
 * until the table is removed.
 *
 * Returns 0; -EINVAL for a wrong table; -EEXIST when the set has a table of this name; -ENOSPC at
 * DOMUS_FIGURES_TABLES_MAX; -ECHILD in a forked child. Thread-safety: any thread, from
 * domus_system_new() until domus_system_free(). It may wait for a `read`; so do the next two. */
DOMUS_API int domus_figures_add(struct domus_system *system, const domus_figures_table *table,
                                void *context);

/* Remove a table that was added with this context, if it is there: `read` is not called any more
 * once this has returned, and `end` is not called. */
DOMUS_API void domus_figures_remove(struct domus_system *system, const domus_figures_table *table,
                                    void *context);

/* Add a row, for `read`: as many cells as the table has columns, whose texts are copied. A row that
 * `is_past` is not in metrics: it is of something that has ended, or its labels are those of
 * another row. Returns whether further rows are wanted. */
DOMUS_API bool domus_figures_put(domus_figures_shot *to, const domus_figure *cells, bool is_past);

/* A shot of a table: some of its rows as they were at one moment. */
struct domus_figures_shot {
    const domus_figures_table *table;
    uint32_t from;
    uint32_t count; /* number of rows in `cells` */
    uint64_t total; /* number of rows that the table had at that moment */
    domus_figure *cells;
    bool *is_past; /* for each row its `is_past`, as domus_figures_put() got it */

    /* Fields for the library alone. */
    char *texts;
    uint32_t room, most;
    uint64_t texts_size, texts_room;
    bool is_short; /* whether memory was too short to keep all rows */
};

/* Read the table `index`, in the order in which they were added, from row `from` on, `most` rows at
 * most. Free the rows by domus_figures_free().
 *
 * Returns 0; -ENOENT when there are not so many tables; -ENOMEM; -ECHILD. */
DOMUS_API int domus_figures_read(struct domus_system *system, uint32_t index, uint32_t from,
                                 uint32_t most, domus_figures_shot *ret_shot);
DOMUS_API void domus_figures_free(domus_figures_shot *shot);

/* Returns the table `index`; NULL when there are not so many. Thread-safety: as
 * domus_figures_add(). */
DOMUS_API const domus_figures_table *domus_figures_at(struct domus_system *system, uint32_t index);

/* Returns the cell of a row and a column of a shot. */
static inline const domus_figure *domus_figures_cell(const domus_figures_shot *shot, uint32_t row,
                                                     uint32_t column)
{
    return &shot->cells[(uint64_t)row * shot->table->columns_count + column];
}

#ifdef __cplusplus
}
#endif

#endif
