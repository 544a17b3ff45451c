/* Many clients of an echo service, which run in one thread: each client sends a stream of bytes in
 * pieces of random sizes, as fast as the service reads, and compares each byte that comes back with
 * the byte that was sent.
 *
 * Each byte of a stream is computed from the client's number and the byte's place, so no stream is
 * stored. */
#ifndef DOMT_CROWD_H
#define DOMT_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domt_client {
    int fd; /* descriptor of the client's connection; -1: closed */
    uint32_t number;
    uint64_t bytes;     /* bytes that the client sends in all */
    uint32_t piece_max; /* most bytes that the client sends at once; 0: 16 KiB */
    bool deaf;          /* the client never reads what the service sends */
    bool stays;         /* the client sends no FIN when it has sent all its bytes */
    /* number of sent bytes after which the client resets its connection; 0: never */
    uint64_t reset_at;
    uint64_t sent;
    uint64_t received;
    uint32_t wrong; /* number of bytes that came back and differ from what the client sent */
    bool finished;  /* the client has sent FIN */
    bool ended;     /* the client has received FIN */
    /* errno with which the client's connection failed, for instance ECONNRESET; 0: none */
    int error;
    uint32_t chance;
} domt_client;

typedef struct domt_crowd {
    domt_client *clients;
    uint32_t count;
    int epoll;
    uint16_t port;
    /* SO_SNDBUF and SO_RCVBUF of each connection in bytes; 0: the kernel's default */
    int socket_bytes;
} domt_crowd;

/* Make a crowd of `count` clients, with the numbers from 1 on; none is connected yet. */
void domt_crowd_init(domt_crowd *crowd, uint16_t port, uint32_t count);

/* Connect the clients with the indices [from, to), and let the loop of the crowd watch their
 * connections. */
void domt_crowd_connect_clients(domt_crowd *crowd, uint32_t from, uint32_t to);

/* Let all clients send and read until `done` returns true, or until `ms` milliseconds have passed.
 * Returns whether `done` has returned true. */
bool domt_crowd_run_until(domt_crowd *crowd, bool (*done)(const domt_crowd *crowd), uint32_t ms);

/* Returns whether no client has an open connection: each was closed by FIN both ways, was reset, or
 * has failed. */
bool domt_crowd_all_are_closed(const domt_crowd *crowd);

/* Returns whether each client that is connected and not deaf has got back all its bytes. */
bool domt_crowd_has_all_echoes(const domt_crowd *crowd);

/* Returns whether a client has got back all bytes that it has to send. */
bool domt_client_has_whole_echo(const domt_client *client);

/* Check each client that neither resets its connection nor is deaf: all its bytes came back, no
 * byte differs, and FIN came from the service. */
void domt_crowd_check_echoes(const domt_crowd *crowd);

/* Close a client's connection, if it is open; with `reset` by an RST. */
void domt_client_close(domt_client *client, bool reset);

void domt_crowd_fini(domt_crowd *crowd);

/* Make a blocking connection to the port on 127.0.0.1, and return its descriptor. It has no
 * time-out for receives, because the kernel does not begin such a receive again when it interrupts
 * it, and it interrupts one call of a thread after a ring of that thread was closed
 * (domus_system_new() makes a ring to see what the kernel allows). */
int domt_connect_to_port(uint16_t port);

/* Returns whether a connection to the port on 127.0.0.1 is accepted. */
bool domt_port_has_listener(uint16_t port);

/* Send `text` on a connection, and wait for the echo. Returns whether the same text came back. */
bool domt_send_and_get_echo(int fd, const char *text);

/* Read from a connection into the string `text` until it contains `part`. The test fails after 10
 * s. Returns the length of `text`. */
size_t domt_read_until_text(int fd, const char *part, char *text, size_t room);

/* Raise the process's limit of open descriptors to at least `count`. Returns whether the limit is
 * now that high. */
bool domt_raise_descriptor_limit(uint32_t count);

#endif
