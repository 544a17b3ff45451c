/* Many clients of an echo service in one thread: each sends a stream of its own in pieces of random
 * sizes, as fast as it is read, and holds every byte that comes back against what it sent.
 *
 * The byte at a place of a stream follows from the client's number, so nothing is kept. */
#ifndef DOMT_CROWD_H
#define DOMT_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct domt_client {
    int fd; /* -1: closed */
    uint32_t number;
    uint64_t bytes;     /* to send in all */
    uint32_t piece_max; /* at most this many at a time; 0: 16 KiB */
    bool deaf;          /* never reads */
    bool stays;         /* does not send FIN when all is sent */
    uint64_t reset_at;  /* resets the connection when so much is sent; 0: never */
    uint64_t sent;
    uint64_t received;
    uint32_t wrong; /* bytes that were not what was sent */
    bool finished;  /* sent FIN */
    bool ended;     /* got FIN */
    int error;      /* the errno of the connection, e.g. ECONNRESET */
    uint32_t chance;
} domt_client;

typedef struct domt_crowd {
    domt_client *clients;
    uint32_t count;
    int epoll;
    uint16_t port;
    int socket_bytes; /* SO_SNDBUF and SO_RCVBUF; 0: as the kernel has it */
} domt_crowd;

/* `count` clients of number 1 and up, not connected. */
void domt_crowd_init(domt_crowd *crowd, uint16_t port, uint32_t count);

/* Connect clients `from` up to but not including `to`; they are watched from then on. */
void domt_crowd_connect(domt_crowd *crowd, uint32_t from, uint32_t to);

/* Let all clients send and read until `done` says so, at most `ms`. Returns whether it did. */
bool domt_crowd_run(domt_crowd *crowd, bool (*done)(const domt_crowd *crowd), uint32_t ms);

/* Whether each connection was closed by FIN both ways, was reset, or has failed. */
bool domt_crowd_all_over(const domt_crowd *crowd);

/* Whether all bytes of the clients that read are back. */
bool domt_crowd_all_back(const domt_crowd *crowd);

/* Whether all bytes of one client are back. */
bool domt_client_is_back(const domt_client *client);

/* Check that every client that was to end well did: all bytes are back, none is wrong, and FIN went
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

/* Whether a listener serves the port. */
bool domt_is_served(uint16_t port);

/* Send `text` and wait for it to come back. Returns whether it did. */
bool domt_echoes(int fd, const char *text);

/* Read from a connection until `part` has come, into `text`, which has a zero behind it. Fails
 * after 10 s. Returns the bytes in `text`. */
size_t domt_read_until(int fd, const char *part, char *text, size_t room);

/* Raise the limit of descriptors to at least `count`. Returns whether there are so many. */
bool domt_descriptors(uint32_t count);

#endif
