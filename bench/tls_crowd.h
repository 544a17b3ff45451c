/* The rows of `bench tls` for 10,000 connections that wait. */
#ifndef DOMUS_BENCH_TLS_CROWD_H
#define DOMUS_BENCH_TLS_CROWD_H

#include "bench/versus.h"

/* For each server: print the memory that one of 10,000 idle connections takes (each has had an
 * answer), and one of as many unfinished handshakes; and the p99 of a good client beside both.
 * Every second handshake has had the server's part and lacks the client's end, the others lack the
 * end of the ClientHello. `kind` are the requests. Returns 0, or a negative errno. */
int tls_crowd_run(const struct versus *versus, const struct request_load_kind *kind);

#endif
