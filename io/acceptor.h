/* Acceptors: channels actors that own a listening socket and hand connections over.
 *
 * Each accepted connection goes to the thread with the fewest, as an event to the channels actor
 * that serves there. At descriptor limits the accept is paused and tried again after a time that
 * doubles from 10 ms to 1 s; at connections_max it is paused and looked at every 10 ms, and what
 * was accepted before the pause took hold waits for its turn. The same while memory is short. */
#ifndef DOMI_IO_ACCEPTOR_H
#define DOMI_IO_ACCEPTOR_H

#include "io/io.h"

typedef struct domi_acceptor_target {
    domus_address actor;
    domi_io *io;
} domi_acceptor_target;

typedef struct domi_acceptor {
    domi_io *io; /* where it runs; set when it is mounted */
    domi_house *house;
    int fd;
    uint32_t slot; /* in io->acceptors */
    bool armed;
    bool cancelling;
    bool stopping;
    bool full;           /* paused at connections_max, or for memory, not at a descriptor limit */
    uint64_t backoff_ns; /* of the next pause */
    domi_io_timer timer;
    int *waiting; /* accepted beyond connections_max, before the pause took hold; oldest first */
    uint32_t waiting_count;
    uint32_t waiting_room;
    uint32_t turn; /* ties are broken round robin */
    uint32_t target_count;
    domi_acceptor_target targets[];
} domi_acceptor;

/* The behaviour of its actor; its state is a pointer to the acceptor, which it frees. */
extern const domus_behaviour domi_acceptor_behaviour;

/* The event that hands a connection over. */
typedef struct domi_accepted {
    int fd;
    domi_io *io; /* whose count it is on */
} domi_accepted;
extern const domus_type domi_accepted_type;

/* Make a bound, listening socket for "127.0.0.1:7000" or "[::1]:7000". `ret_port` gets its port.
 * Returns the descriptor; a negative errno. Any thread. */
int domi_acceptor_listen(const char *address, uint32_t backlog, uint16_t *ret_port);

void domi_acceptor_completed(domi_acceptor *acceptor, const domi_completion *completion);
void domi_acceptor_cancelled(domi_acceptor *acceptor);
void domi_acceptor_timer(domi_acceptor *acceptor);

/* io->pressed has changed: pause the accept; it goes on by its timer. */
void domi_acceptor_press(domi_acceptor *acceptor);

/* Begin to stop: cancel the accept. Returns 1 while it is still in flight, else 0. */
uint32_t domi_acceptor_stop(domi_acceptor *acceptor);

#endif
