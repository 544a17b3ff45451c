/* Runs PostgreSQL (a Debian package) as a child of the test: with a database cluster in a directory
 * of its own, on a Unix socket in that directory and on a port of 127.0.0.1. PostgreSQL refuses to
 * run as root, so a test that is run by root gives the directory to the user postgres. */
#ifndef DOMT_SUPPORT_POSTGRES_H
#define DOMT_SUPPORT_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct domt_postgres {
    char directory[64];
    pid_t pid;
    pid_t watcher; /* process that removes the cluster's files after the end of the test */
    /* the test's end of a pipe; when it is closed, the watcher knows that the test has ended */
    int watched;
    uint16_t port;
    char url[128]; /* url of the server over TCP: "postgresql://postgres@127.0.0.1:PORT/postgres" */
    char unix_url[160];
} domt_postgres;

/* Returns whether PostgreSQL is installed. If it is not, a test that has nothing else to check says
 * that it is left out. */
bool domt_postgres_is_installed(void);

/* Make a database cluster and start its server. `settings` are more lines for postgresql.conf;
 * NULL: none. The test fails when PostgreSQL is not installed. */
void domt_postgres_start(domt_postgres *server, const char *settings);

/* End the server by `signal`: SIGQUIT ends it at once, as in a crash, and with SIGINT its sessions
 * are told. The server can be started again. */
void domt_postgres_signal_and_wait(domt_postgres *server, int signal);

/* Start the server once more, at the same port and with the same data. */
void domt_postgres_start_again(domt_postgres *server);

/* End the server, and remove the files of its cluster. */
void domt_postgres_stop(domt_postgres *server);

#endif
