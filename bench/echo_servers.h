/* The echo servers that `bench echo` compares, as processes on ECHO_SERVER_CPU: domus on each of
 * its backends, and the bare ones of bench/peers. */
#ifndef DOMUS_BENCH_ECHO_SERVERS_H
#define DOMUS_BENCH_ECHO_SERVERS_H

#include "bench/support/server.h"

#define ECHO_SERVER_CPU 0

enum {
    ECHO_DOMUS,
    ECHO_DOMUS_EPOLL,
    ECHO_IO_URING,
    ECHO_EPOLL,
    ECHO_LIBUV,
    ECHO_SERVERS,
};

const char *echo_server_name(int which);

/* Returns the index of the server that has this name; -1: there is none. */
int echo_server_index_of_name(const char *name);

/* Write the path of a server's program to `path`, which has PATH_MAX bytes. The program lies beside
 * the running one. Returns 0; -ENOENT if there is no such program, and `path` still names it. */
int echo_server_find_program(int which, char *path);

struct echo_setting {
    char *config; /* path of the configuration file for domus */
    /* bytes of a receive buffer, a multiple of 4096, where a server has buffers of a fixed size; 0:
     * 4 KiB, the default of domus */
    uint32_t buffer_size;
};

/* Start the server `which` by the path `program`. Returns as server_start(). */
int echo_server_start(int which, char *program, const struct echo_setting *setting,
                      struct server *server);

#endif
