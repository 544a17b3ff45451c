/* The view of `domus top`, without a terminal: meters of threads and runners, and the sorted and
 * filtered behaviours. The screen and the plain lines draw the same view. */
#ifndef DOMUS_TOOL_VIEW_H
#define DOMUS_TOOL_VIEW_H

#include "tools/domus/rates.h"

#define METER_PARTS 7
#define LINE_SIZE   512u

/* The columns of the table of behaviours, by which it can be sorted. */
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

/* A meter: the time of a thread or runner in parts, which add up to 1. */
typedef struct meter {
    char label[32];
    const char *letters; /* letter of each part of the meter, such as "hsecuo." */
    double shares[METER_PARTS];
    double busy; /* sum of all parts of the meter except the last */
    double rates[COUNTERS];
    uint64_t stalls; /* stalls of the thread in the interval */
} meter;

typedef struct row {
    const behaviour_sample *who;
    behaviour_rates rates;
} row;

typedef struct view {
    sample before, now;
    bool has_before; /* the view has an earlier sample; without one, rates count from the start */
    bool has_now;
    char trouble[512]; /* reason why the view's last sample could not be taken; "": it was taken */
    column sort;
    bool is_reversed;
    /* part of the names of the behaviours that are shown, in lower or upper case; "": all
     * behaviours */
    char filter[NAME_SIZE];
    uint32_t meter_count, row_count;
    meter *meters;
    row *rows;
} view;

/* The letters for a thread's phases, in the order in which they are drawn, and their meanings. */
#define VIEW_LETTERS "hsecuo."
#define VIEW_LEGEND  "h channels  s state  e events  c completions  u submit  o other  . sleep"

/* Take a sample of the program within `ms`, and arrange the view's meters and rows from it. Returns
 * whether that succeeded; otherwise the view stays as it was, with its `trouble` set. */
bool view_request_next_sample_from_port(view *shown, port *from, long ms);

/* Sort and filter the behaviours of the view again. */
void view_list_filtered_behaviours_sorted(view *shown);

void view_fini(view *shown);

/* Write the lines of the view, each of at most `size` - 1 bytes of printable ASCII. */
void view_write_first_line_of_top(const view *shown, char *ret_line, size_t size);
void view_write_totals(const view *shown, char *ret_line, size_t size);
void view_write_rates_of_meter(const meter *one, char *ret_line, size_t size);
void view_write_row(const row *one, char *ret_line, size_t size);

/* Returns the title and the width of a column of behaviours, for the columns of view_write_row().
 */
const char *view_get_title_of_column(column which, int *ret_width);

/* Fill the bar of a meter with `width` letters by the shares of its parts, and a zero. */
void view_write_bar_of_meter_as_letters(const meter *one, int width, char *ret_bar);

#endif
