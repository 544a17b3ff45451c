/* Operations on sockets of the simulated network, and their completions (ring.h). */
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

/* An operation that is queued and not carried out yet. */
typedef struct domi_net_entry {
    uint64_t user_data; /* number that comes back with the completion */
    /* for a cancel: user_data of the operation to cancel */
    uint64_t target;
    domi_net_output output;     /* for a send: the bytes to write */
    domi_datagram_out datagram; /* for a send of a datagram: the datagram */
    domi_net_op op;             /* kind of the operation */
    int fd;                     /* descriptor on which the operation works */
    uint32_t events;            /* for a one-shot poll: the events that it waits for */
} domi_net_entry;

typedef struct domi_net_buffer {
    void *data;    /* start of the memory of a provided buffer */
    uint32_t size; /* size of the provided buffer in bytes */
} domi_net_buffer;

struct domi_net_ring {
    domi_net *net;
    domi_net_entry *entries; /* queue of operations that the next enter carries out */
    uint32_t entry_count;    /* number of operations in the queue */
    uint32_t entry_capacity; /* most operations in the queue: io.ringEntries */

    domi_completion_queue queue;
    uint32_t visible_max; /* most completions that one enter can show: io.completionEntries */

    domi_net_buffer *buffers; /* all provided buffers, by index */
    /* ring of indexes of the free buffers, which receives take, oldest first */
    uint16_t *free;
    uint32_t buffer_mask; /* number of places in `free`, minus 1 */
    uint32_t free_head;   /* position in `free` of the next buffer to take; it wraps */
    uint32_t free_tail;   /* position in `free` behind the last published buffer; it wraps */
    uint32_t given_tail;  /* position in `free` where the next buffer is returned; it wraps */

    domi_net_ready ready; /* sockets on which an operation can go on */
};

/* Queue a completion. `flags` has DOMI_MORE unless the operation has ended. */
void domi_net_complete_operation(domi_net_ring *ring, uint64_t user_data, int result,
                                 uint32_t flags, uint16_t buffer);

/* Begin the operation of an entry; an entry that cancels ends other operations. */
void domi_net_begin_operation(domi_net_ring *ring, const domi_net_entry *entry);

/* Continue the operations of all sockets that are listed as ready, each with a bounded number of
 * completions. */
void domi_net_continue_ready(domi_net_ring *ring);

#endif
