/* The common parts of the pages that benches write: numbers as people read them, the
 * machine, a plot. */
#ifndef DOMUS_BENCH_PAGE_H
#define DOMUS_BENCH_PAGE_H

#include <stdint.h>
#include <stdio.h>

/* bytes of the buffer `text` to which page_write_grouped_number(), page_write_number_of_cell() and
 * page_write_rate_in_millions_or_k() write; they return that buffer */
#define PAGE_CELL_MAX 32

/* Write a number with commas between its thousands, such as 1,234,567. */
const char *page_write_grouped_number(uint64_t number, char *text);

/* Write `value` times `scale` with three digits and the unit behind them; NAN is written as "-". */
const char *page_write_number_of_cell(double value, double scale, const char *unit, char *text);

/* Write a rate in millions, or in thousands with a "k" if in millions all digits would be zeros. */
const char *page_write_rate_in_millions_or_k(double rate, char *text);

/* Copy the part of a page that begins with the line `heading`. Another program has written it, and
 * it is to be kept when the page is written anew. Returns a string, which the caller frees; NULL:
 * there is no such line. */
char *page_copy_text_from_heading_on(const char *path, const char *heading);

/* Write a sentence about the machine's processor, last-level cache and memory. */
void page_write_machine(FILE *file);

/* Run gnuplot with the script `script`, which gets the names of its two files in its variables
 * `data` and `plot_file`. Returns as command_run_and_read_figures(). */
int page_plot_by_gnuplot(const char *script, const char *data, const char *plot_file);

#endif
