/* The service of a row of `bench sweep`. */
#ifndef DOMUS_BENCH_SWEEP_SERVE_H
#define DOMUS_BENCH_SWEEP_SERVE_H

#include "bench/sweep_rows.h"

#include <stddef.h>

/* Become the service: the process is moved to the CPUs of the row, and the program is executed with
 * the configuration of the row and then `options`, a list that ends with NULL and may change each
 * key of it. It listens on 127.0.0.1 at `port`; 0: the kernel chooses one. `key` is the certificate
 * of a secure row with its key, as PEM.
 *
 * Returns a negative errno; it does not return if all went well. */
int sweep_execute_service_of_row(const struct sweep_row *row, uint16_t port, char *const options[],
                                 const char *key, size_t key_size);

#endif
