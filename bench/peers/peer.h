/* The common parts of the bare echo servers: arguments, the listening socket, SIGTERM, the report.
 *
 * A peer is a limit that domus is compared with, so it does nothing that an echo does not need and
 * leaves out nothing that makes an echo fast. Started as `PROGRAM PORT CPU` it serves
 * 127.0.0.1:PORT (0: the kernel chooses) from one thread on CPU, prints `listening PORT` when
 * ready, and on SIGTERM prints `cpu_us N received N` and exits 0. */
#ifndef DOMUS_BENCH_PEER_H
#define DOMUS_BENCH_PEER_H

#include <stdint.h>

struct peer {
    uint16_t port;
    int cpu;
    uint64_t cpu_ns; /* CPU time that the process had used when it printed `listening` */
    uint64_t received;
};

/* Read the arguments and pin the process; if they are wrong, this prints the usage and
 * exits with 2. */
void peer_read_arguments_and_pin(struct peer *peer, int argc, char **argv);

/* Returns a listening socket on peer->port. TCP_NODELAY is set, and accepted sockets inherit it.
 * `flags` is 0 or SOCK_NONBLOCK. If there is no socket, this ends the process. */
int peer_open_listening_socket(struct peer *peer, int flags);

/* Block SIGTERM and return a descriptor that becomes readable when the signal comes. A server waits
 * for the descriptor beside its sockets, so the signal costs nothing and cannot be missed. */
int peer_open_signal_descriptor(void);

/* Print `listening PORT` with the port of the socket. The CPU time of peer_print_cpu_time() counts
 * from here on. */
void peer_print_listening_port(struct peer *peer, int listener);

/* Print the CPU time since peer_print_listening_port(), and how many times bytes were received. */
void peer_print_cpu_time(const struct peer *peer);

/* Print `what` failed and the text of errno, and exit with 1. */
_Noreturn void peer_print_error_and_exit(const char *what);

#endif
