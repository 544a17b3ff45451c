/* The rows of `bench tls` that measure 10,000 connections that wait. */
#ifndef DOMUS_BENCH_TLS_CROWD_H
#define DOMUS_BENCH_TLS_CROWD_H

#include "bench/versus.h"

#include <stdbool.h>

/* Measure the server `which` of `versus`, and print two things: the memory of one of 10,000 idle
 * connections (each has had an answer), and of one of as many unfinished handshakes (tls_attack.h);
 * and the p90 and p99 of a good client beside both, with the ratio of the two. A ratio has the unit
 * `void` if idle spans beside idle spans differ by more than a quarter, if the load was too busy,
 * or if less than 99 % of the handshakes were held. `versus->rounds` is the number of attacks, and
 * `kind` are the requests. If `stands`, the server waits for the handshakes as long as the row
 * takes; otherwise it gives up each after 10 s, and the attacker begins another. Returns 0, or a
 * negative errno. */
int tls_crowd_run_row(const struct versus *versus, const struct request_load_kind *kind,
                      uint32_t which, bool stands);

#endif
