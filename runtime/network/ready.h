/* Operations on sockets, and how they become completions (ring.h). */
#ifndef DOMI_RUNTIME_NETWORK_READY_H
#define DOMI_RUNTIME_NETWORK_READY_H

#include "io/backend/completion_queue.h"
#include "runtime/network/network.h"

typedef enum domi_net_op {
    DOMI_NET_OP_ACCEPT,
    DOMI_NET_OP_RECEIVE,
    DOMI_NET_OP_RECEIVE_ONCE,
    DOMI_NET_OP_RECEIVE_DATAGRAMS,
    DOMI_NET_OP_POLL,
    DOMI_NET_OP_POLL_ONCE,
    DOMI_NET_OP_SEND,
    DOMI_NET_OP_SEND_DATAGRAM,
    DOMI_NET_OP_CANCEL,
} domi_net_op;

/* An operation that is not carried out yet. */
typedef struct domi_net_entry {
    uint64_t user_data; /* number that comes back with the completion */
    /* user_data of the operation that has to be cancelled, in a cancel */
    uint64_t target;
    domi_net_output output;     /* the bytes to write, in a send */
    domi_datagram_out datagram; /* the datagram to send */
    domi_net_op op;             /* the operation */
    int fd;                     /* the descriptor of the operation */
    uint32_t events;            /* the events that a one-shot poll waits for */
} domi_net_entry;

typedef struct domi_net_buffer {
    void *data;    /* start of the memory of a provided buffer */
    uint32_t size; /* bytes of that memory */
} domi_net_buffer;

struct domi_net_ring {
    domi_net *net;
    domi_net_entry *entries; /* operations that are queued */
    uint32_t entry_count;    /* entries in use */
    uint32_t entry_capacity; /* io.ringEntries */

    domi_completion_queue queue;
    uint32_t visible_max; /* io.completionEntries: so many can be shown at once */

    domi_net_buffer *buffers; /* all provided buffers, by index */
    uint16_t *free;           /* a ring of the buffers that receives may take, oldest first */
    uint32_t buffer_mask;     /* places in `free`, minus 1 */
    uint32_t free_head;       /* the buffer that is taken next; it wraps */
    uint32_t free_tail;       /* buffers before this one were published; it wraps */
    uint32_t given_tail;      /* where the next buffer is given; it wraps */

    domi_net_ready ready; /* sockets on which an operation can go on */
};

/* Queue a completion. `flags` without DOMI_MORE if the operation has ended. */
void domi_net_complete(domi_net_ring *ring, uint64_t user_data, int result, uint32_t flags,
                       uint16_t buffer);

/* Begin an operation, or cancel some. */
void domi_net_begin(domi_net_ring *ring, const domi_net_entry *entry);

/* Let the sockets that are listed as ready go on, each within a bound. */
void domi_net_go_on(domi_net_ring *ring);

#endif
