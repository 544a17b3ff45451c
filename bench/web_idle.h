/* The row of `bench web` for idle connections. */
#ifndef DOMUS_BENCH_WEB_IDLE_H
#define DOMUS_BENCH_WEB_IDLE_H

#include "bench/versus.h"

/* Print the memory that one of 10,000 idle connections takes in each server, and in domus one of as
 * many idle WebSockets. Each connection has had one answer. Returns 0, or a negative errno. */
int web_idle_run_row(const struct versus *versus);

#endif
