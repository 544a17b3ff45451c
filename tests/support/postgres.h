/* Debian's PostgreSQL as a child of the test: a cluster in a directory of its own, on a Unix socket
 * there and on a port of loopback. It does not run as root, so root gives it to the user postgres.
 */
#ifndef DOMT_SUPPORT_POSTGRES_H
#define DOMT_SUPPORT_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct domt_postgres {
    char directory[64];
    pid_t pid;
    pid_t watcher; /* process that removes the cluster after the end of the test */
    /* the test's end of a pipe, whose closing tells the watcher that the test has ended */
    int watched;
    uint16_t port;
    char url[128]; /* "postgresql://postgres@127.0.0.1:PORT/postgres" */
    char unix_url[160];
} domt_postgres;

/* Whether PostgreSQL is installed. A test that needs it and has nothing else to check says that it
 * is left out. */
bool domt_postgres_is_there(void);

/* Make a cluster and start its server. `settings` are further lines of postgresql.conf; NULL: none.
 * The test fails when PostgreSQL is not installed. */
void domt_postgres_start(domt_postgres *server, const char *settings);

/* Make the server end by SIGQUIT (at once, as a crash) or SIGINT (its sessions are told), and start
 * it again at the same port with the same data. */
void domt_postgres_halt(domt_postgres *server, int signal);
void domt_postgres_again(domt_postgres *server);

/* Stop the server, and remove the cluster. */
void domt_postgres_stop(domt_postgres *server);

#endif
