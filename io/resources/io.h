/* A thread's io: its ring, its receive buffers, its channels and acceptors.
 *
 * Phase 1 reaps completions and queues what they bring at their channel (no user code); phase 2
 * runs the channels actors, whose run calls domi_channels_run() for the channels that have
 * something; at its end the sends of the tick leave, one operation per channel. Everything belongs
 * to one thread except `connections`. */
#ifndef DOMI_IO_RESOURCES_IO_H
#define DOMI_IO_RESOURCES_IO_H

#include "base/wheel.h"
#include "house/message/manager.h"
#include "io/backend/backend.h"
#include "io/resources/peers.h"
#include "io/resources/shortage.h"

#include <domus/channel.h>

#define DOMI_COMPLETIONS_BATCH 64u
#define DOMI_ACCEPTORS_MAX     64u

/* For so many turns, of io.completionEntries each, due timers and the beginning of a drain wait for
 * what had arrived: that is more than can have been in flight. */
#define DOMI_POSTPONED_MAX 64u

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
    domi_counter silent; /* closed because their peer's first byte did not come in time */
    domi_counter starved;
    domi_counter pressed;
    domi_counter enters_refused;
    domi_counter channels_refused; /* by a handler, or by what it began */
    domi_counter refused;          /* connections, because of their address */
    domi_counter greedy;           /* spells in which that happened */
    domi_counter full;             /* spells at channel.maxConnections */
    domi_counter unacceptable; /* spells in which accept failed for want of descriptors or memory */
    domi_counter bufferless;   /* spells without a receive buffer */
    domi_counter cut;          /* channels that the library ended while bytes were owed */
    domi_counter cut_bytes;    /* that were owed then */
    domi_counter discarded_bytes; /* received after their channel was closed on this side */
    domi_counter shed;            /* channels reset for want of memory */
    domi_counter listening;       /* listeners that are open: goes up and down */
} domi_io_counters;

struct domi_acceptor;
struct domi_descriptor;

typedef enum domi_io_timer_kind {
    DOMI_TIMER_CHANNEL,  /* its time-outs */
    DOMI_TIMER_ACCEPTOR, /* its back-off */
    DOMI_TIMER_SHORTAGE, /* of the io itself */
    DOMI_TIMER_SWEEP,    /* ... the next look at its channels */
} domi_io_timer_kind;

typedef struct domi_io_timer {
    domi_wheel_node node;
    domi_io_timer_kind kind;
} domi_io_timer;

/* The place of a channel; its generation outlives the channel. */
typedef struct domi_channel_slot {
    domus_channel *channel; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
} domi_channel_slot;

/* What the threads of a system share about memory. NULL: they share nothing. */
typedef struct domi_io_shared {
    _Atomic int64_t excess; /* bytes by which the library is above its budget, still to be shed */
    _Atomic uint64_t shed;  /* channels that were reset for that */
    _Atomic uint64_t shed_bytes; /* ... and what they held */
} domi_io_shared;

/* How short memory is, for io. */
typedef struct domi_io_pressure {
    bool pauses;         /* nothing is accepted */
    bool spares;         /* a channel reads one piece at a time */
    bool counts_sockets; /* the kernel's socket buffers count as used memory */
    uint64_t queue_max;  /* bytes that may be queued for peers; UINT64_MAX: no bound */
} domi_io_pressure;

/* A channel that may be reset: its peer takes nothing. */
typedef struct domi_worst {
    uint32_t slot;
    uint32_t generation;
    uint64_t bytes; /* that it holds */
} domi_worst;

#define DOMI_WORST_MAX 16u

/* A careful thread's way through its channels (shed.c). */
typedef struct domi_sweep {
    domi_io_timer timer;
    uint32_t next; /* slot */
    uint64_t begun_ns;
    domi_worst worst[DOMI_WORST_MAX]; /* found in this pass, the worst first */
    uint32_t worst_count;
    bool is_clearing; /* it sheds because the bound of queued bytes was reached */
} domi_sweep;

typedef struct domi_io {
    domi_manager *manager;
    const domi_backend *backend;
    const domus_config *config;
    void *ring;
    int wake_fd; /* an eventfd; never read: each write fires the poll */
    bool wake_armed;
    uint32_t wakes; /* completions of the wake poll */
    bool draining;
    int failed;        /* negative errno: the ring has, and is not looked at any more; or 0 */
    uint32_t refusals; /* enters in a row for which the kernel had no room */
    domi_io_pressure pressure;

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
    domi_channel_slot *slots; /* found by an operation's user_data */
    uint32_t slot_count;
    uint32_t slots_used; /* how many were ever used */
    uint32_t free_slot;  /* a list through next_free; UINT32_MAX: none */
    uint32_t open;       /* channels that are not freed */
    domus_channel *dirty;
    domus_channel *starved_head;
    domus_channel *starved_tail;
    struct domi_acceptor *acceptors[DOMI_ACCEPTORS_MAX];
    struct domi_descriptor *watched; /* watches whose poll is in the ring */
    domi_wheel wheel;                /* of domi_io_timers */
    domi_peers *peers;               /* the system's; NULL: no address is bounded */
    domi_shortage buffers_shortage;
    domi_io_timer shortage_timer;
    uint32_t look_slot;       /* in a drain: where the next look begins */
    uint64_t look_ns;         /* when the next round of looks may begin */
    uint32_t drain_postponed; /* turns for which the drain has waited for what had arrived */
    uint32_t postponed; /* turns for which due timers have waited for bytes that had arrived */

    /* What waits to be sent to peers (crowd.h). */
    domi_counter queued;   /* bytes that it takes, and copies of what came */
    uint64_t copied;       /* of them, copies that wait for their actor */
    uint64_t careful_mark; /* with more queued the thread is careful */
    uint64_t piece;        /* room that a channel needs in its part to go on */
    bool careful;          /* receives bring one piece each */
    domus_channel *crowd_head;
    domus_channel *crowd_tail;
    uint32_t crowd_count;
    uint32_t crowd_left; /* how many of them to look at again */
    domi_sweep sweep;
    domi_io_shared *shared;
    domi_io_counters counters;

    /* Counted up by the acceptor that hands a connection over, down by the owner at close: the
     * thread with the fewest is told by it. A line of its own. */
    alignas(DOMI_LINES) _Atomic uint32_t connections;
    /* Connections that got no channel, and the bytes that they had sent. Any thread. */
    _Atomic uint64_t turned_away;
    _Atomic uint64_t turned_away_bytes;
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

/* Enter and reap, again and again, until nothing comes any more: then everything that had arrived
 * when this began has been told to its channel. With deferred task work an empty completion queue
 * proves nothing, because only an enter fills it, and by 20 at a time. `ret_taken` gets how many
 * there were. Returns false when `limit` were taken, or as many enters made, and there may be more.
 */
bool domi_io_collect(domi_io *io, uint32_t limit, uint32_t *ret_taken);

/* The thread was held up while it reaped: bytes that came since `since_ns`, the time that it had
 * read before, are as young as the time that it has now. Costs a look at each channel. */
void domi_io_refresh(domi_io *io, uint64_t since_ns);

/* Due io timers, once what had arrived by now is collected; the drain's look at its channels.
 * Returns how much was done, completions included. */
uint32_t domi_io_events(domi_io *io);

/* The end of phase 2: arm starved receives that may go on, queue a send for every channel that has
 * one. Returns how many sends. */
uint32_t domi_io_queue_sends(domi_io *io);

/* Something must be done before a park: completions wait, sends are not queued, receivers starve
 * beside free buffers. */
bool domi_io_has_work(const domi_io *io);

/* Submit and wait. When the ring has failed it waits all the same, but only to be woken. */
void domi_io_enter(domi_io *io, uint32_t min_complete, uint64_t timeout_ns);

/* Arm the wake poll anew if its last shot has gone; with `again`, in any case. */
void domi_io_arm_wake(domi_io *io, bool again);

/* How short memory is now: acceptors pause or go on, channels read less or more. Not in a drain,
 * which has to read. */
void domi_io_press(domi_io *io, const domi_io_pressure *now);

/* A drain begins: nothing pauses or is reset for want of memory any more. */
void domi_io_end_shortage(domi_io *io);

/* --- drain.c -------------------------------------------------------------------------------- */

/* Before a drain: collect what has arrived, at most io.completionEntries in a call. Returns whether
 * the drain may begin; if not, this is called again in the next turn, a bounded number of times. */
bool domi_io_collect_before_drain(domi_io *io);

/* Accept what waits to be accepted, and then no more; let every channel answer what it was given,
 * send it, and close. */
void domi_io_drain(domi_io *io);

/* The ring has failed: end all that it was asked for. Channels are reset with its error, acceptors
 * stop, and actors that watch a descriptor are told the error; from here on nothing is asked of the
 * ring, and connections are refused. */
void domi_io_fail(domi_io *io);

/* A turn of a drain: look at some of its channels. */
void domi_io_look_at_draining(domi_io *io);

/* Reset what is still open, and count what that cuts. Returns how many channels it ended. */
uint32_t domi_io_abort(domi_io *io);

#endif
