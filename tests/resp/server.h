/* Debian's redis-server as a child of the test, behind a Unix socket in a directory of its own, and
 * connections to it. */
#ifndef DOMT_RESP_SERVER_H
#define DOMT_RESP_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* Start the server. Returns false, and prints a note, when redis-server is not installed. Each test
 * that starts it ends it; if a test fails, the server ends with the test. */
bool domt_redis_start_server(void);
void domt_redis_stop_server(void);

/* Send bytes on a new connection, finish sending, and read to the end. Returns the answer, followed
 * by a zero and valid until the next call, and its size. */
const char *domt_redis_send_and_read_answer(const char *bytes, size_t size, size_t *ret_size);

#endif
