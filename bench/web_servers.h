/* The servers of `bench web`: web_domus over either backend, and nginx, whose configuration is
 * written into a scratch directory, as are the files that all of them serve. */
#ifndef DOMUS_BENCH_WEB_SERVERS_H
#define DOMUS_BENCH_WEB_SERVERS_H

#include "bench/support/server.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define WEB_HOME "hello, world\n" /* the body that every server answers at / */
/* file in the scratch directory with the servers' certificate and its key */
#define WEB_SERVERS_KEY "key.pem"

enum web_server {
    WEB_DOMUS,
    WEB_DOMUS_EPOLL,
    WEB_NGINX,          /* nginx with sendfile off, which is its default */
    WEB_NGINX_SENDFILE, /* nginx with sendfile on */
};

/* Make the scratch directory for the servers. Returns 0; -ENOENT if nginx or web_domus is missing,
 * which a line on stderr says; or a negative errno. */
int web_servers_make_directory(void);

/* Remove the scratch directory, with all that lies in it. */
void web_servers_remove_directory(void);

/* Write a file, which all servers serve as /files/NAME. Returns 0, or a negative errno. */
int web_servers_write_file_to_serve(const char *name, const char *bytes, size_t size);

/* Let all servers speak TLS alone, with the certificate and the key in `pem`, which is written to
 * WEB_SERVERS_KEY. Returns 0, or a negative errno. */
int web_servers_use_tls(const char *pem, size_t size);

/* How long servers keep the bytes of files. A change holds for servers that are started
 * afterwards. */
enum web_keep {
    WEB_KEEP_NOTHING, /* each request opens and reads its file anew */
    /* the default of domus, which keeps files and looks at each one for a change; nginx cannot look
     * so, and keeps nothing */
    WEB_KEEP_BY_LOOK,
    /* for a minute a file counts as unchanged: files.keptTime, open_file_cache_valid */
    WEB_KEEP_A_MINUTE,
};
void web_servers_set_use_of_file_cache(enum web_keep keep);

/* Let servers that are started from now on end a connection whose handshake or whose head of a
 * request is not whole after `seconds`, or none (0, the default). */
void web_servers_set_timeout_of_heads(unsigned seconds);

/* Start the server `which` on a CPU. Returns as server_start(). */
int web_servers_start_server(enum web_server which, int cpu, struct server *server);

#endif
