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

#define DOMUS_FIGURES_TABLES_MAX  32u /* tables of a system */
#define DOMUS_FIGURES_COLUMNS_MAX 32u /* columns of a table */
#define DOMUS_FIGURES_LABELS_MAX  4u  /* columns of a table that are labels */
#define DOMUS_FIGURES_TEXT_SIZE   64u /* bytes of a text with its zero; a longer one is cut */

/* The kind of a column. Texts may have any bytes: viewers escape them. */
typedef enum domus_figure_kind {
    DOMUS_FIGURE_LABEL,  /* a text that names the row, alone or with other such columns, which come
                            first; a label of metrics */
    DOMUS_FIGURE_TEXT,   /* another text, which is no metric */
    DOMUS_FIGURE_STATE,  /* a number that is the place of a word in `words`; as a metric it is 1 for
                            this word, and 0 for the others, by the label `state` */
    DOMUS_FIGURE_COUNT,  /* a number that only grows */
    DOMUS_FIGURE_FAULTS, /* likewise, of what should not happen, or not often */
    DOMUS_FIGURE_AMOUNT, /* a number that goes up and down */
    DOMUS_FIGURE_BYTES,  /* likewise */
    DOMUS_FIGURE_TIME,   /* likewise, ns; seconds as a metric */
} domus_figure_kind;

/* A column of a table. */
typedef struct domus_figure_column {
    const char *name; /* in JSON, and of a label: small letters, digits and '_' */
    const char *title;
    domus_figure_kind kind;
    /* The metric, by the rules of Prometheus and without "_total"; NULL: it is none. `help` is one
     * sentence about it. */
    const char *metric, *help;
    const char *const *words; /* of a state: 1..8 of small letters, with NULL behind the last one */
} domus_figure_column;

/* A cell of a row: the text, or the number, as the kind of its column is. */
typedef struct domus_figure {
    uint64_t number;
    const char *text; /* NULL is "" */
} domus_figure;

typedef struct domus_figures_shot domus_figures_shot;

/* A table: its columns, and how its rows are read. */
typedef struct domus_figures_table {
    const char *set;   /* 1..31 small letters, digits and '_' */
    const char *name;  /* likewise; no other table of the set has it */
    const char *title; /* for people: "Nodes" */
    const domus_figure_column *columns;
    uint32_t columns_count; /* 1..32 */
    bool is_list; /* the table may be long, and lists what there is: it is no metrics, and not in
                     texts */

    /* Say the rows of now, from number `from` on, by domus_figures_put() until that returns false.
     * `ret_total` gets how many rows there are in all. It may be called on any thread, by one at a
     * time; it must not block for long, nor call the functions of this header but
     * domus_figures_put(). Returns 0; -ENOMEM. */
    int (*read)(void *context, uint32_t from, domus_figures_shot *to, uint64_t *ret_total);

    /* Hear that the system is freed, and with it the table, which was not removed. NULL: no such
     * call. */
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

/* Rows as they were at one moment. */
struct domus_figures_shot {
    const domus_figures_table *table;
    uint32_t from;
    uint32_t count; /* rows in `cells` */
    uint64_t total; /* rows that there were */
    domus_figure *cells;
    bool *is_past; /* `is_past` of each row, as domus_figures_put() got it */

    /* For the library. */
    char *texts;
    uint32_t room, most;
    uint64_t texts_size, texts_room;
    bool is_short; /* memory was too short */
};

/* Read the table `index`, in the order in which they were added, from row `from` on, `most` rows at
 * most. Free the rows by domus_figures_free().
 *
 * Returns 0; -ENOENT when there are not so many tables; -ENOMEM; -ECHILD. */
DOMUS_API int domus_figures_read(struct domus_system *system, uint32_t index, uint32_t from,
                                 uint32_t most, domus_figures_shot *ret_shot);
DOMUS_API void domus_figures_free(domus_figures_shot *shot);

/* The table `index`; NULL when there are not so many. Thread-safety: as domus_figures_add(). */
DOMUS_API const domus_figures_table *domus_figures_at(struct domus_system *system, uint32_t index);

/* The cell of a row and a column. */
static inline const domus_figure *domus_figures_cell(const domus_figures_shot *shot, uint32_t row,
                                                     uint32_t column)
{
    return &shot->cells[(uint64_t)row * shot->table->columns_count + column];
}

#ifdef __cplusplus
}
#endif

#endif
