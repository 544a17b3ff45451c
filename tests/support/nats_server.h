/* Runs Debian's nats-server as a child of the test, on loopback with a port of its own, in a
 * directory of its own. */
#ifndef DOMT_SUPPORT_NATS_SERVER_H
#define DOMT_SUPPORT_NATS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct domt_nats_server {
    char directory[64];
    pid_t pid;
    uint16_t port;
    char url[64]; /* "127.0.0.1:PORT" */
} domt_nats_server;

/* Start a server. `config` is further text of its configuration, whose paths begin in the directory
 * of the server; NULL: none. With a port of 0 the server chooses one, else it listens at that port.
 * The test fails when nats-server is not installed. */
void domt_nats_server_start(domt_nats_server *server, const char *config, uint16_t port);
void domt_nats_server_stop(domt_nats_server *server);
/* Returns the port at which the server listens for other servers. */
uint16_t domt_nats_server_cluster(const domt_nats_server *server);
void domt_nats_server_kill(domt_nats_server *server, int signal);

#endif
