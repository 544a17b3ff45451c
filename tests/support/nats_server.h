/* Runs nats-server (a Debian package) as a child of the test, in a directory of its own, on a port
 * of 127.0.0.1. */
#ifndef DOMT_SUPPORT_NATS_SERVER_H
#define DOMT_SUPPORT_NATS_SERVER_H

#include <stdint.h>
#include <sys/types.h>

typedef struct domt_nats_server {
    char directory[64];
    pid_t pid;
    uint16_t port;
    char url[64]; /* address at which the server listens: "127.0.0.1:PORT" */
} domt_nats_server;

/* Start nats-server at `port`; with 0 it chooses a port itself. `config` is more text for its
 * configuration, in which paths are relative to the server's directory; NULL: none. The test fails
 * when nats-server is not installed. */
void domt_nats_server_start(domt_nats_server *server, const char *config, uint16_t port);
void domt_nats_server_stop(domt_nats_server *server);
/* Returns the port at which nats-server listens for other servers of its cluster. */
uint16_t domt_nats_server_cluster_port(const domt_nats_server *server);
void domt_nats_server_kill(domt_nats_server *server, int signal);

#endif
