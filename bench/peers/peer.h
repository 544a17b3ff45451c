/* The common parts of the bare echo servers: arguments, the listening socket, SIGTERM, the report.
 *
 * A peer is a limit that domus is held against, so it does nothing that an echo does not need and
 * leaves out nothing that makes one fast. Started as `PROGRAM PORT CPU` it serves 127.0.0.1:PORT
 * (0: the kernel chooses) from one thread on CPU, prints `listening PORT` when ready, and on
 * SIGTERM prints `cpu_us N received N` and exits 0. */
#ifndef DOMUS_BENCH_PEER_H
#define DOMUS_BENCH_PEER_H

#include <stdint.h>

struct peer {
    uint16_t port;
    uint64_t cpu_ns; /* used when it said that it was listening */
    uint64_t received;
};

/* Read the arguments and pin the process; prints the usage and exits 2 when they are wrong. */
void peer_init(struct peer *peer, int argc, char **argv);

/* A listening socket on peer->port; TCP_NODELAY is on and goes over to what it accepts. `flags` is
 * 0 or SOCK_NONBLOCK. Ends the process when there is none to be had. */
int peer_listen(struct peer *peer, int flags);

/* Block SIGTERM and give a descriptor that becomes readable on it: a server that waits for it
 * beside its sockets pays nothing for it and cannot miss it. */
int peer_signal_open(void);

/* Say `listening PORT` with the socket's own port. From here on CPU time counts. */
void peer_announce(struct peer *peer, int listener);

/* Say what was used and served. */
void peer_report(const struct peer *peer);

/* Say what failed, with errno, and exit 1. */
_Noreturn void peer_fail(const char *what);

#endif
