/* A thread's io: its ring, its receive buffers, its channels and acceptors.
 *
 * Phase 1 reaps completions and queues what they bring at their channel (no user code); phase 2
 * runs the channels actors, whose run calls domi_channels_run() for the channels that have
 * something; at its end the sends of the tick leave, one operation per channel. Everything belongs
 * to one thread except `connections`. */
#ifndef DOMI_IO_IO_H
#define DOMI_IO_IO_H

#include "base/wheel.h"
#include "house/manager.h"
#include "io/backend.h"

#include <domus/channel.h>

#define DOMI_COMPLETIONS_BATCH 64u
#define DOMI_ACCEPTORS_MAX     64u

/* What an operation's user_data says: kind, generation of the slot, slot. Never 0. */
enum domi_op {
    DOMI_OP_WAKE = 1,
    DOMI_OP_ACCEPT,
    DOMI_OP_RECEIVE,
    DOMI_OP_SEND,
    DOMI_OP_CANCEL,        /* of a channel's receive, or of all that a channel has in flight */
    DOMI_OP_CANCEL_ACCEPT, /* with a slot beyond all acceptors: of something else, and ignored */
    DOMI_OP_DESCRIPTOR,    /* the rest is the address of what watches it */
};

#define DOMI_OP_IGNORED domi_op_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX)
#define DOMI_OP_ADDRESS UINT64_C(0xffffffffffff)

#define DOMI_OP_GENERATION_MASK 0xffffffu

static inline uint64_t domi_op_data(enum domi_op op, uint32_t generation, uint32_t slot)
{
    return (uint64_t)op << 56 | (uint64_t)(generation & DOMI_OP_GENERATION_MASK) << 32 | slot;
}

typedef struct domi_io_counters {
    domi_counter enters;
    domi_counter completions;
    domi_counter reads;
    domi_counter received_bytes;
    domi_counter sent_bytes;
    domi_counter accepted;
    domi_counter accept_pauses;
    domi_counter opened;
    domi_counter closed;
    domi_counter reset;
    domi_counter starved;
    domi_counter pressed;
    domi_counter listening; /* accepts in flight: goes up and down */
} domi_io_counters;

struct domi_acceptor;

/* A timer of io's: of a channel (idle, linger) or of an acceptor (back-off). */
typedef struct domi_io_timer {
    domi_wheel_node node;
    bool of_acceptor;
} domi_io_timer;

/* The place of a channel; its generation outlives the channel. */
typedef struct domi_slot {
    domus_channel *channel; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
} domi_slot;

typedef struct domi_io {
    domi_manager *manager;
    const domi_backend *backend;
    const domus_config *config;
    void *ring;
    int wake_fd; /* an eventfd; never read: each write fires the poll */
    bool wake_armed;
    uint32_t wakes; /* completions of the wake poll */
    bool draining;
    bool pressed; /* memory is short: acceptors pause, channels do not read */

    /* Receive buffers. */
    char *memory;
    size_t memory_bytes;
    domus_buffer *buffers; /* one per provided buffer */
    uint32_t buffers_free; /* with the kernel, or given and not yet published */
    uint32_t share;        /* what one channel may hold: 1/16 */
    uint32_t reserve;      /* with fewer free, what comes is copied out */
    uint32_t unpublished;

    /* Channels. */
    domi_slab channel_slab;
    domi_slot *slots; /* found by an operation's user_data */
    uint32_t slot_count;
    uint32_t slots_used; /* how many were ever used */
    uint32_t free_slot;  /* a list through next_free; UINT32_MAX: none */
    uint32_t open;       /* channels that are not freed */
    domus_channel *dirty;
    domus_channel *starved_head;
    domus_channel *starved_tail;
    struct domi_acceptor *acceptors[DOMI_ACCEPTORS_MAX];
    domi_wheel wheel; /* idle and linger time-outs, accept back-off */
    domi_io_counters counters;

    /* Counted up by the acceptor that hands a connection over, down by the owner at close: the
     * thread with the fewest is told by it. A line of its own. */
    alignas(DOMI_LINES) _Atomic uint32_t connections;
} domi_io;

/* Make the ring and the buffers. Any thread, before start. Returns 0; a negative errno and a line
 * in `error`. */
int domi_io_init(domi_io *io, domi_manager *manager, const domi_backend *backend, char *error,
                 size_t error_size);

/* On the owning thread: enable the ring, give the buffers, arm the wake poll. */
int domi_io_start(domi_io *io);

/* After the thread has ended. */
void domi_io_fini(domi_io *io);

/* Phase 1: enter if that would bring anything (what a parking enter brought is reaped without
 * another one). Returns whether it did. */
bool domi_io_submit(domi_io *io);

/* Phase 1: reap up to completions_per_poll. Returns how many completions there were. */
uint32_t domi_io_reap(domi_io *io);

/* Due io timers; the drain's look at its channels. Returns how much was done. */
uint32_t domi_io_events(domi_io *io);

/* The end of phase 2: arm starved receives that may go on, queue a send for every channel that has
 * one. Returns how many sends. */
uint32_t domi_io_flush(domi_io *io);

/* Something must be done before a park: completions wait, sends are not queued, receivers starve
 * beside free buffers. */
bool domi_io_has_work(const domi_io *io);

/* Submit and wait. */
void domi_io_enter(domi_io *io, uint32_t min_complete, uint64_t timeout_ns);

/* Arm the wake poll anew if its last shot has gone; with `again`, in any case. */
void domi_io_arm_wake(domi_io *io, bool again);

/* Memory is short, or not any more: acceptors and open channels pause, or go on. Not in a drain,
 * which has to read. */
void domi_io_press(domi_io *io, bool pressed);

/* Stop accepting; let every channel answer what it was given, send it, and close. */
void domi_io_drain(domi_io *io);

/* Reset what is still open. Returns how many. */
uint32_t domi_io_abort(domi_io *io);

#endif
