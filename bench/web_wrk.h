/* The row of `bench web` that runs wrk. */
#ifndef DOMUS_BENCH_WEB_WRK_H
#define DOMUS_BENCH_WEB_WRK_H

#include "bench/versus.h"

/* Print the rate that wrk has with each server, and the ratios of domus to nginx. If wrk is not
 * installed, a line on stderr says so. Returns 0, or a negative errno. */
int web_wrk_run_row(const struct versus *versus);

#endif
