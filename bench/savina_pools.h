/* The section of the Savina page that has all schedulers side by side: the loops and the pools of
 * domus, those of CAF, and Erlang's. */
#ifndef DOMUS_BENCH_SAVINA_POOLS_H
#define DOMUS_BENCH_SAVINA_POOLS_H

#include "bench/savina_outcome.h"

#include <stdio.h>

/* Write the section: one table with a line for each row and number of threads, and the goals of
 * pools. The caller checks `file` for errors. */
void savina_write_section_of_pools(FILE *file, const struct savina_outcome *outcomes, size_t count);

#endif
