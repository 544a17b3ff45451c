/* The view of `domus top`, without a terminal: meters of threads and runners, and the behaviours in
 * an order and by a filter. The screen and the plain lines draw the same view. */
#ifndef DOMUS_TOOL_VIEW_H
#define DOMUS_TOOL_VIEW_H

#include "tools/domus/rates.h"

#define METER_PARTS 7
#define LINE_SIZE   512u

/* The columns of behaviours, by which they can be sorted. */
typedef enum column {
    COLUMN_TIME,
    COLUMN_RUNS,
    COLUMN_MESSAGES,
    COLUMN_WAIT,
    COLUMN_FAILURES,
    COLUMN_ALIVE,
    COLUMN_BYTES,
    COLUMN_NAME,
    COLUMNS_,
} column;

/* A bar: the time of a thread or runner in parts, which add up to 1. */
typedef struct meter {
    char label[32];
    const char *letters; /* of each part, as "hsecuo." */
    double shares[METER_PARTS];
    double busy; /* the sum of all parts but the last */
    double rates[COUNTERS];
    uint64_t stalls; /* in the interval */
} meter;

typedef struct row {
    const behaviour_sample *who;
    behaviour_rates rates;
} row;

typedef struct view {
    sample before, now;
    bool has_before; /* without an earlier sample rates are those since the start */
    bool has_now;
    char trouble[512]; /* why the last sample could not be taken; "": it was */
    column sort;
    bool is_reversed;
    char filter[NAME_SIZE]; /* a part of a name, in either case; "": all */
    uint32_t meter_count, row_count;
    meter *meters;
    row *rows;
} view;

/* The letters of a thread's phases, in the order in which they are drawn, and what they mean. */
#define VIEW_LETTERS "hsecuo."
#define VIEW_LEGEND  "h channels  s state  e events  c completions  u submit  o other  . sleep"

/* Take a sample within `ms`, and arrange what it shows. Returns whether that was possible;
 * otherwise the view shows what it did, and has its trouble. */
bool view_update(view *shown, port *from, long ms);

/* Sort and filter the behaviours anew. */
void view_arrange(view *shown);

void view_fini(view *shown);

/* Lines of at most `size` - 1 bytes of printable ASCII. */
void view_head(const view *shown, char *ret_line, size_t size);
void view_totals(const view *shown, char *ret_line, size_t size);
void view_rates(const meter *one, char *ret_line, size_t size);
void view_row(const row *one, char *ret_line, size_t size);

/* The head of the behaviours: columns at the places of view_row(), each of a width that
 * view_column() tells. */
const char *view_column(column which, int *ret_width);

/* Fill a bar of `width` characters with letters, by the shares (NUL-terminated). */
void view_bar(const meter *one, int width, char *ret_bar);

#endif
