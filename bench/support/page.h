/* The common parts of the pages that benches write: numbers as people read them, the machine, a
 * plot. */
#ifndef DOMUS_BENCH_PAGE_H
#define DOMUS_BENCH_PAGE_H

#include <stdint.h>
#include <stdio.h>

#define PAGE_CELL_MAX 32 /* bytes of the `text` that these write to, and return */

/* 1,234,567 */
const char *page_grouped(uint64_t number, char *text);

/* `value` times `scale` in three digits, and the unit behind it; "-" for NAN. */
const char *page_cell(double value, double scale, const char *unit, char *text);

/* A sentence about processor, last-level cache and memory. */
void page_machine(FILE *file);

/* Run gnuplot with the script `script`, which finds the names of its files in `data` and
 * `plot_file`. Returns as command_run(). */
int page_plot(const char *script, const char *data, const char *plot_file);

#endif
