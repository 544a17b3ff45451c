/* Operations on sockets of the simulated network, and how they are completed in a ring (ring.h). */
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

/* An entry of a ring: an operation that is queued, and that the next enter carries out. */
typedef struct domi_net_entry {
    uint64_t user_data; /* number that the completion of the operation brings back */
    /* user_data of the operation that a cancel is to cancel */
    uint64_t target;
    domi_net_output output;     /* bytes that a send operation writes */
    domi_datagram_out datagram; /* datagram that a send of a datagram sends */
    domi_net_op op;             /* kind of the queued operation */
    int fd;                     /* descriptor on which the queued operation works */
    uint32_t events;            /* events of poll(2) for which a one-shot poll waits */
} domi_net_entry;

typedef struct domi_net_buffer {
    void *data;    /* start of the buffer's memory, which the program has provided */
    uint32_t size; /* size of the provided buffer's memory in bytes */
} domi_net_buffer;

struct domi_net_ring {
    domi_net *net;
    domi_net_entry *entries; /* queue of the operations that the next enter carries out */
    uint32_t entry_count;    /* number of operations in the queue `entries` */
    uint32_t entry_capacity; /* most operations in the queue `entries`: io.ringEntries */

    domi_completion_queue queue;
    /* most completions that one enter shows to the thread: io.completionEntries */
    uint32_t visible_max;

    domi_net_buffer *buffers; /* all provided buffers of the ring, by their indices */
    /* ring of indices of the free buffers; receives take the oldest first */
    uint16_t *free;
    uint32_t buffer_mask; /* number of places in the ring `free`, minus 1 */
    /* position in `free` of the next buffer that a receive takes; it wraps around */
    uint32_t free_head;
    /* position in `free` behind the last buffer that was published; it wraps around */
    uint32_t free_tail;
    /* position in `free` where the next returned buffer is put; it wraps around */
    uint32_t given_tail;

    domi_net_ready ready; /* list of the sockets on which an operation of this ring can go on */
};

/* Queue the completion of an operation. `flags` has DOMI_MORE unless the operation has ended. */
void domi_net_complete_operation(domi_net_ring *ring, uint64_t user_data, int result,
                                 uint32_t flags, uint16_t buffer);

/* Begin the operation of a queued entry. If it is a cancel, the operations that it names end. */
void domi_net_begin_operation(domi_net_ring *ring, const domi_net_entry *entry);

/* Continue the operations on all sockets that are listed as ready; each brings a limited number
 * of completions. */
void domi_net_continue_ready_operations(domi_net_ring *ring);

#endif
