/* A load of handshakes on one thread: connect, handshake, send one request, check its answer,
 * close.
 *
 * It takes the options of a request load, and its requests are those of `kind`: `connections` run
 * at once at most, and with a rate so many are begun each second. A load with a rate is paced; what
 * is due waits while all connections are under way. The latency is that from connect(2) to the end
 * of the answer. */
#ifndef DOMUS_BENCH_TLS_SHAKE_H
#define DOMUS_BENCH_TLS_SHAKE_H

#include "bench/request_load.h"

/* Run the load to its end. Each handshake is a full one, or each resumes the session of a
 * connection that was made before the time counts; any other result is -EPROTO. Both functions
 * return as request_load_run_to_its_end(). */
int tls_shake_run_full_ones(const struct request_load_options *options,
                            struct request_load_result *ret_result);
int tls_shake_run_resumed_ones(const struct request_load_options *options,
                               struct request_load_result *ret_result);

#endif
