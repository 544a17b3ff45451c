/* The server of HTTP/2 under test: the example `web`, or any other one, by environment:
 *
 *   DOMT_H2_AT    the port on 127.0.0.1 of a running server with prior knowledge
 *   DOMT_H2_PID   its process, whose memory is measured; without it memory is not tested
 *   DOMT_H2_PATH  the requested path; its answer needs a body of some bytes ("/" without it)
 *
 * For example nghttpd: `nghttpd --no-tls -d DIRECTORY 8080`, and nginx: `listen 127.0.0.1:8080
 * http2`. */
#ifndef DOMT_H2_SERVER_H
#define DOMT_H2_SERVER_H

#include "tests/system/site.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct domt_h2_server {
    uint16_t port;
    pid_t pid; /* process id of the server; 0: not known */
    bool is_site;
    domt_site site;
} domt_h2_server;

/* Returns whether the server under test is the example `web`, and speaks HTTP/2. */
bool domt_h2_is_example_web_tested(void);

/* Find or start the server under test; `settings` are for `web`, up to a NULL. Returns false, and
 * prints a note, if there is no server. */
bool domt_h2_server_begin(domt_h2_server *server, const char *const settings[]);

/* Check that the server still answers, and end it if the test has started it. */
void domt_h2_server_end(domt_h2_server *server);

/* Returns the resident bytes of the server's process; 0 if the process is not known. */
uint64_t domt_h2_server_rss_bytes(const domt_h2_server *server);

#endif
