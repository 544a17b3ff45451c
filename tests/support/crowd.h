/* Many clients of an echo service in one thread: each sends a stream of its own in pieces of random
 * sizes, as fast as the service reads, and compares each byte that comes back with the byte that
 * was sent.
 *
 * The byte at a place of a stream follows from the client's number, so no stream is stored. */
#ifndef DOMT_CROWD_H
#define DOMT_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domt_client {
    int fd; /* the connection; -1: closed */
    uint32_t number;
    uint64_t bytes;     /* bytes to send in all */
    uint32_t piece_max; /* most bytes of one send; 0: 16 KiB */
    bool deaf;          /* the client never reads */
    bool stays;         /* the client sends no FIN when all is sent */
    uint64_t reset_at;  /* bytes after which the client resets the connection; 0: never */
    uint64_t sent;
    uint64_t received;
    uint32_t wrong; /* bytes that came back and differ from the bytes that were sent */
    bool finished;  /* the client has sent FIN */
    bool ended;     /* the client has received FIN */
    int error;      /* errno of the connection, for instance ECONNRESET */
    uint32_t chance;
} domt_client;

typedef struct domt_crowd {
    domt_client *clients;
    uint32_t count;
    int epoll;
    uint16_t port;
    int socket_bytes; /* SO_SNDBUF and SO_RCVBUF in bytes; 0: the kernel's default */
} domt_crowd;

/* Make `count` clients with the numbers 1 and up, not connected. */
void domt_crowd_init(domt_crowd *crowd, uint16_t port, uint32_t count);

/* Connect the clients [from, to), which are then watched. */
void domt_crowd_connect(domt_crowd *crowd, uint32_t from, uint32_t to);

/* Let all clients send and read until `done` returns true, for at most `ms` milliseconds. Returns
 * whether `done` did. */
bool domt_crowd_run(domt_crowd *crowd, bool (*done)(const domt_crowd *crowd), uint32_t ms);

/* Whether each connection was closed by FIN both ways, was reset, or has failed. */
bool domt_crowd_all_over(const domt_crowd *crowd);

/* Whether all bytes of the clients that read have come back. */
bool domt_crowd_all_back(const domt_crowd *crowd);

/* Whether all bytes of one client have come back. */
bool domt_client_is_back(const domt_client *client);

/* Check each client that should end well: all its bytes came back, no byte differs, and FIN went
 * both ways. */
void domt_crowd_holds(const domt_crowd *crowd);

/* Close a client's connection (with `reset`, by RST), if it is open. */
void domt_client_close(domt_client *client, bool reset);

void domt_crowd_fini(domt_crowd *crowd);

/* Make a blocking connection to the port on 127.0.0.1. Its receives have no time-out: when a
 * thread has made a ring and the ring is gone (domus_system_new() looks by one what the
 * kernel allows), the kernel interrupts one call of that thread, and a receive with a
 * time-out is not begun again. */
int domt_connect(uint16_t port);

/* Whether a listener accepts connections at the port. */
bool domt_is_served(uint16_t port);

/* Send `text` and wait for it to come back. Returns whether it did. */
bool domt_echoes(int fd, const char *text);

/* Read from a connection into `text`, which stays a string, until `part` has come. Fails after 10
 * s. Returns the number of bytes in `text`. */
size_t domt_read_until(int fd, const char *part, char *text, size_t room);

/* Raise the limit of descriptors to at least `count`. Returns whether the limit is that high. */
bool domt_descriptors(uint32_t count);

#endif
