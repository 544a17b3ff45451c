/* The servers of `bench web`: web_domus over either backend, and nginx, whose configuration is
 * written into a scratch directory, as are the files that all of them serve. */
#ifndef DOMUS_BENCH_WEB_SERVERS_H
#define DOMUS_BENCH_WEB_SERVERS_H

#include "bench/support/server.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define WEB_HOME        "hello, world\n" /* what every server answers at / */
#define WEB_SERVERS_KEY "key.pem"        /* in the scratch directory: a certificate and its key */

enum web_server {
    WEB_DOMUS,
    WEB_DOMUS_EPOLL,
    WEB_NGINX,          /* with sendfile off, as is its default */
    WEB_NGINX_SENDFILE, /* with sendfile on */
};

/* Make the scratch directory. Returns 0; -ENOENT if nginx or web_domus is not there, which a line
 * on stderr says; or a negative errno. */
int web_servers_open(void);

/* Remove it, with all that lies in it. */
void web_servers_close(void);

/* Write a file, which all of them serve as /files/NAME. Returns 0, or a negative errno. */
int web_servers_add_file(const char *name, const char *bytes, size_t size);

/* Let all of them speak TLS alone, by the certificate and the key of this text, which is written to
 * WEB_SERVERS_KEY. Returns 0, or a negative errno. */
int web_servers_secure(const char *pem, size_t size);

/* Whether servers keep files, for those that are started from now on. */
enum web_keep {
    WEB_KEEP_NOTHING, /* each request opens and reads its file */
    WEB_KEEP_BY_LOOK, /* domus by default, which looks at each file; nginx cannot, and keeps none */
    WEB_KEEP_A_MINUTE, /* a file counts as it was for a minute: files.keptTime,
                          open_file_cache_valid */
};
void web_servers_keep(enum web_keep keep);

/* Let servers that are started from now on end a connection whose handshake or whose head of a
 * request is not whole after `seconds`, or none (0, the default). */
void web_servers_expire_heads(unsigned seconds);

/* Start one of them on `cpu`. Returns as server_start(). */
int web_servers_start(enum web_server which, int cpu, struct server *server);

#endif
