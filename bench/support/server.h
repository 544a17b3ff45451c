/* A server under measurement: start it, wait until it listens, end it, and learn what it used.
 *
 * The bench reads the server's stdout: `listening PORT` or `listening NAME ADDRESS:PORT` when it is
 * ready, and a last line `cpu_us N received N`, if it prints one. The CPU time of each server is
 * measured in the same way: the kernel's figure when it has ended, minus the process clock when it
 * said that it was listening. A server is killed if the bench dies. */
#ifndef DOMUS_BENCH_SERVER_H
#define DOMUS_BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVER_LINE_MAX 256
/* values of `cpu`: SERVER_ANY_CPU lets the server use each CPU of the bench, SERVER_TWO_CPUS the
 * CPUs 0 and 1 */
#define SERVER_ANY_CPU  (-1)
#define SERVER_TWO_CPUS (-2)

struct server {
    pid_t pid;
    int watch;  /* pidfd of the server, which becomes readable when the server has ended */
    int output; /* descriptor from which the bench reads the server's stdout */
    uint16_t port;
    uint64_t listening_cpu_ns;
    bool has_received;
    uint64_t received;
    uint32_t line_length;
    char line[SERVER_LINE_MAX]; /* beginning of an output line whose end has not come yet */
    int stop_signal;            /* the signal by which server_stop() ends the server */
    const char *error;          /* why a call has failed, as text */
};

struct server_usage {
    uint64_t cpu_ns; /* user and system time of all the server's threads since it listened */
    bool has_received;
    uint64_t received; /* how many times the server has received bytes, by its own count */
};

/* Start `arguments[0]` on `cpu` and wait until it listens (at most 10 s). The server starts pinned,
 * so that its threads run on `cpu` even if it pins none itself; with SERVER_ANY_CPU it is not
 * pinned, and with SERVER_TWO_CPUS it gets these two. On failure no process is left. Returns 0;
 * -ETIMEDOUT; -ECHILD if the server ended instead; or the negative errno of a system call. On each
 * failure `server->error` is a text. */
int server_start(struct server *server, int cpu, char *const arguments[]);

/* Start a server as server_start() does, for a program that prints no line `listening`: it listens
 * when a connection to 127.0.0.1:`port` succeeds. `stop_signal` ends the program in order. */
int server_start_at_port(struct server *server, int cpu, char *const arguments[], uint16_t port,
                         int stop_signal);

/* Send SIGTERM, or the server's `stop_signal`, and wait for the end (at most 10 s, then it is
 * killed). Returns 0; -ETIMEDOUT; -ECHILD if the server did not exit with 0 or had ended before. On
 * failure `server->error` is a text. */
int server_stop(struct server *server, struct server_usage *ret_usage);

#endif
