/* The io of one thread: its ring, its receive buffers, its channels and acceptors.
 *
 * Phase 1 reaps completions and queues their bytes and events at their channels; it runs no code of
 * the user. Phase 2 runs the channels actors, whose runs call domi_channels_run() for channels with
 * work. At the end of phase 2 the sends of the iteration are queued, one operation for each
 * channel. Everything here belongs to one thread, except `connections` and the fields behind it. */
#ifndef DOMI_IO_RESOURCES_IO_H
#define DOMI_IO_RESOURCES_IO_H

#include "base/fifo.h"
#include "base/wheel.h"
#include "house/message/manager.h"
#include "io/backend/backend.h"
#include "io/resources/listener_counts.h"
#include "io/resources/pages.h"
#include "io/resources/peers.h"
#include "io/resources/settings.h"
#include "io/resources/shortage.h"
#include "io/wire/wire.h"

#include <domus/channel.h>

#define DOMI_COMPLETIONS_BATCH 64u /* completions that are reaped from the ring in one call */
#define DOMI_ACCEPTORS_MAX     64u /* most acceptors on one thread */

/* Due timers and the start of a drain wait until everything that had arrived is collected, at
 * most for this number of iterations. Each of these collects up to io.completionEntries
 * completions, so together they collect more than can have been in flight. */
#define DOMI_POSTPONED_MAX 64u

/* The kind of an operation: the upper 8 bits of its user_data, which is never 0. Below them are the
 * generation of the slot (24 bits) and the slot (32 bits). */
enum domi_op {
    DOMI_OP_WAKE = 1,
    DOMI_OP_ACCEPT,
    DOMI_OP_RECEIVE,
    DOMI_OP_SEND,
    DOMI_OP_CANCEL, /* the cancel of a receive, or of all operations of a channel */
    /* the cancel of an accept; with slot DOMI_ACCEPTORS_MAX the cancel of another operation, whose
     * completion is ignored */
    DOMI_OP_CANCEL_ACCEPT,
    /* the poll of a descriptor watch; the lower bits are the address of the domi_descriptor */
    DOMI_OP_DESCRIPTOR,
    /* the poll of a connect; the lower bits are the address of the domi_attempt */
    DOMI_OP_CONNECT,
    /* the send of a datagram; the lower bits are the address of the domi_datagram */
    DOMI_OP_DATAGRAM,
    DOMI_OP_ROOM, /* the poll for room of a channel of datagrams */
    /* an operation on a file; the lower bits are the address of the domi_file_try */
    DOMI_OP_FILE,
};

/* the user_data of an operation whose completion is ignored */
#define DOMI_OP_IGNORED domi_op_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX)
/* mask of the bits of user_data that hold a pointer */
#define DOMI_OP_ADDRESS UINT64_C(0xffffffffffff)

/* mask of the bits of a generation for which user_data has room */
#define DOMI_OP_GENERATION_MASK 0xffffffu

static inline uint64_t domi_op_data(enum domi_op op, uint32_t generation, uint32_t slot)
{
    return (uint64_t)op << 56 | (uint64_t)(generation & DOMI_OP_GENERATION_MASK) << 32 | slot;
}

typedef struct domi_io_counters {
    domi_counter enters;           /* system calls into the ring */
    domi_counter completions;      /* completions that were reaped */
    domi_counter drained_answered; /* channels that a drain has ended when all was delivered */
    domi_counter drained_idle;     /* channels that a drain has ended with nothing under way */
    domi_counter drained_cut;      /* channels that a drain has ended while something was owed */
    domi_counter channels_busy;    /* times that a channel reached requestsMax */
    domi_counter channels_late;    /* times that a channel waited for its turn to decode */
    domi_counter reads;            /* pieces of bytes that on_read was given */
    domi_counter received_bytes;   /* bytes that the kernel has brought from peers */
    domi_counter sends;            /* sends of which the kernel has taken bytes */
    domi_counter sent_bytes;       /* bytes that the kernel has taken for peers */
    domi_counter accepted;         /* connections that acceptors of this thread have accepted */
    domi_counter accept_pauses;    /* pauses of acceptors that have begun */
    domi_counter channels_opened;  /* channels that were made */
    domi_counter channels_closed;  /* channels that were freed, for whichever reason */
    domi_counter channels_reset;   /* channels closed with an error of either side */
    domi_counter
        /* channels closed because the first byte of the peer did not come in time */
        channels_silent;
    domi_counter receivers_starved; /* receives that ended because no buffer was free */
    /* pauses of accepting that began because memory was short */
    domi_counter memory_pauses;
    /* enters for which the kernel had no room; they were tried again */
    domi_counter enters_refused;
    domi_counter channels_refused;   /* channels reset by an errno of their actor */
    domi_counter requests_failed;    /* requests of peers that ended with an errno */
    domi_counter refused_by_address; /* connections reset because of their address (peers.h) */
    domi_counter address_spells;     /* spells (shortage.h) of refusals by address */
    domi_counter full_spells;        /* spells in which channel.maxConnections was reached */
    /* Spells in which accept failed, because descriptors or memory had run out. */
    domi_counter accept_spells;
    domi_counter buffer_spells;   /* spells in which no receive buffer was free */
    domi_counter channels_cut;    /* channels that the library ended while bytes were owed */
    domi_counter cut_bytes;       /* bytes that were owed on these channels */
    domi_counter discarded_bytes; /* bytes received after this side had closed the channel */
    domi_counter channels_shed;   /* channels reset because memory was short */
    domi_counter listeners_open;  /* open listeners now; this goes up and down */
    domi_counter connects;        /* connects that actors have asked for */
    domi_counter connects_failed; /* connects that brought no connection */
    /* datagrams received and thrown away: too long, or nobody read them */
    domi_counter datagrams_dropped;
    /* datagrams that the kernel has thrown away before they were received */
    domi_counter datagrams_lost;
    domi_counter datagrams_unsent; /* datagrams queued that the kernel did not take */
    domi_counter channels_aged;    /* channels closed at channel.maxAge */
    domi_counter channels_slow;    /* channels closed at channel.minRate */
    domi_counter proxies_refused;  /* connections reset at a listener that proxies use (proxy.h) */
} domi_io_counters;

/* The reason why a connection at a listener for proxies is reset (proxy.h). */
typedef enum domi_proxy_refusal {
    DOMI_PROXY_ELSEWHERE, /* the connection comes from outside the networks of trusted proxies */
    DOMI_PROXY_HEADER,    /* the connection has no valid PROXY header */
    DOMI_PROXY_CLIENT,    /* the client behind the proxy has as many connections as it may have */
    DOMI_PROXY_REFUSALS
} domi_proxy_refusal;

struct domi_acceptor;
struct domi_connect;
struct domi_descriptor;
struct domi_file_try;

typedef enum domi_io_timer_kind {
    DOMI_TIMER_CHANNEL,  /* time-outs of a channel */
    DOMI_TIMER_ACCEPTOR, /* the pause of an acceptor, or its next step of closing */
    DOMI_TIMER_SHORTAGE, /* the check of shortages that last */
    DOMI_TIMER_SWEEP,    /* the next step of a sweep over all channels (shed.c) */
    DOMI_TIMER_CONNECT,  /* the next attempt of a connect */
} domi_io_timer_kind;

typedef struct domi_io_timer {
    domi_wheel_node node;    /* node in io->wheel */
    domi_io_timer_kind kind; /* kind of the object in which the timer lies */
} domi_io_timer;

/* A connection that has no channel yet. */
typedef struct domi_connection {
    int fd; /* the connected socket */
    /* the address on which the connection is counted; NULL: none */
    domi_peer *peer;
    domi_channel_settings *settings; /* the settings of the channel; NULL: those of the thread */
    bool is_proxied;                 /* a proxy sends a header before the client's bytes */
    bool is_outbound;                /* this side has opened the connection */
    /* name or address to which this side has connected; NULL: none */
    const char *server;
    uint16_t server_port;
} domi_connection;

/* The place of a channel. Its generation outlives the channel and grows with each channel. */
typedef struct domi_channel_slot {
    domus_channel *channel; /* the channel; NULL: the slot is free */
    /* grows when a channel leaves, so that late completions are recognized */
    uint32_t generation;
    uint32_t next_free; /* index of the next free slot; UINT32_MAX: none */
} domi_channel_slot;

/* Numbers about memory that the threads of a system share. */
typedef struct domi_io_shared {
    _Atomic int64_t excess;      /* bytes above the budget that have still to be shed */
    _Atomic uint64_t shed;       /* channels that were shed */
    _Atomic uint64_t shed_bytes; /* bytes that these channels held */
} domi_io_shared;

/* The shortage of memory, as far as io has to know it. */
typedef struct domi_io_pressure {
    bool pauses;         /* acceptors pause */
    bool spares;         /* channels read one piece at a time */
    bool counts_sockets; /* the kernel's socket buffers count as used memory */
    uint64_t queue_max;  /* most bytes that this thread may queue for peers; UINT64_MAX: no bound */
} domi_io_pressure;

/* A channel that may be shed, because its peer is deaf: it has acknowledged next to nothing of the
 * bytes that wait for it, for memory.resetAfter (shed.c). */
typedef struct domi_worst {
    uint32_t slot; /* index of the channel in io->slots */
    /* generation of the slot, by which a completion finds whether the channel is still the same */
    uint32_t generation;
    uint64_t bytes; /* number of bytes that the channel holds */
} domi_worst;

/* most failures of requests in one spell that the log tells one by one */
#define DOMI_FAILURES_TOLD 8u
#define DOMI_WORST_MAX     16u /* most channels that one pass of a sweep remembers */

/* The sweep of a careful thread (crowd.h) over all its channels, in steps (shed.c). */
typedef struct domi_sweep {
    domi_io_timer timer; /* timer of the next step */
    uint32_t next;       /* slot at which the next step begins */
    uint64_t begun_ns;   /* time at which this pass over the channels began */
    /* Channels with deaf peers that this pass has found; those that hold most come first. */
    domi_worst worst[DOMI_WORST_MAX];
    uint32_t worst_count; /* number of entries of `worst` in use */
    bool is_clearing;     /* too much is queued: channels are shed until clearly less is queued */
} domi_sweep;

/* The time that the pipelines of a thread take in one phase 2 (io/pipelines/time.h). */
typedef struct domi_stage_time {
    uint32_t steps; /* messages until the clock is read next */
    /* number of iterations left in which each message is measured; 0: stages are cheap */
    uint32_t watched;
    uint64_t begun_ns; /* time at which the first pipeline of this phase ran; 0: none has */
    uint64_t read_ns;  /* time of the last read of the clock in a measured run */
    uint64_t spent_ns; /* measured time of this phase in nanoseconds */
    /* number of the round, in which each channel with bytes to decode gets one turn */
    uint32_t round;
    uint32_t waiting; /* number of channels that have not had their turn in this round */
    bool served;      /* a channel has had its turn in this phase */
    bool put_off;     /* a channel was put off in this phase */
} domi_stage_time;

DOMI_FIFO_TYPE(domi_starved, domus_channel);

typedef struct domi_io {
    domi_manager *manager;       /* the manager of the same thread */
    const domi_backend *backend; /* the backend: io_uring or epoll */
    /* configuration of the manager, which the thread replaces when it changes */
    const domus_config *config;
    domi_channel_settings settings; /* settings of channels without settings of their own */
    /* the settings of the channels of each configured listener, by its row */
    domi_channel_settings settings_of[DOMUS_LISTENERS_MAX];
    void *ring;   /* the ring, an object of the backend */
    domi_out out; /* bytes that a pipeline has encoded, until they are queued */
    /* bytes that a pipeline has encoded, before byte stages have wrapped them */
    domi_out aside;
    struct domi_envelope *spare; /* envelope for the next message of a pipeline; NULL: none */
    /* the functions of pipelines that channels call */
    const struct domi_pipe_ways *pipe_ways;
    const struct domi_inners *inners; /* the functions by which stages handle inner channels */
    struct domi_io *next; /* io of the next thread; that of the last thread names the first one */
    /* descriptor of an eventfd; while the ring works it is polled, never read */
    int wake_fd;
    bool wake_armed;        /* the poll on wake_fd is in flight */
    bool sends_queued;      /* phase 2 has queued sends, and no enter has come since */
    uint32_t wakes;         /* number of completions of the poll on wake_fd */
    bool draining;          /* the system drains: channels close once all is answered */
    bool draining_upstream; /* the channels that this side has connected drain, too */
    int failed;        /* the negative errno with which the ring has failed; 0: the ring works */
    uint32_t refusals; /* number of enters in a row for which the kernel had no room */
    domi_io_pressure pressure; /* how short memory is, as this thread was last told */

    /* Fields of receive buffers, which are the provided buffers of the ring. */
    char *memory;
    size_t memory_bytes;   /* number of bytes at `memory` */
    domus_buffer *buffers; /* one descriptor for each provided buffer */
    domi_counter
        /* number of buffers that the kernel neither has nor gets by the next publish */
        buffers_used;
    uint32_t share;       /* most buffers that one channel may hold: 1/16 of all */
    uint32_t reserve;     /* number of free buffers below which arriving pieces are copied */
    uint32_t unpublished; /* number of buffers given to the ring since the last publish */
    /* buffers kept for the next answers: small heap buffers, and those of slices */
    domus_buffer *kept[2];
    uint32_t kept_room; /* number of further buffers that may be kept */

    /* Fields of channels. */
    domi_slab channel_slab;
    domi_slab datagram_slab;  /* holds objects of domi_datagram */
    domi_channel_slot *slots; /* table of channels; an operation names its slot in user_data */
    uint32_t slot_count;      /* number of entries of `slots` */
    uint32_t slots_used;      /* number of slots that were ever used */
    /* first free slot, which leads to the others by next_free; UINT32_MAX: none */
    uint32_t free_slot;
    uint32_t open;           /* number of channels that are not freed yet */
    domus_channel *dirty;    /* channels with something to send, linked by next_dirty */
    domus_channel *carriers; /* channels whose inner channels have news, linked by next_carrier */
    domi_starved starved;    /* channels that wait for a receive buffer */
    struct domi_acceptor *acceptors[DOMI_ACCEPTORS_MAX]; /* acceptors by their slots; NULL: free */
    struct domi_descriptor *watched; /* descriptor watches whose poll is in the ring */
    struct domi_file_try *tries;     /* operations on files that are in the ring */
    struct domi_connect *connects;   /* connects that have begun and are not freed */
    uint32_t connecting;             /* number of connects for which conversations wait */
    domi_wheel wheel;                /* wheel of the io timers */
    /* the system's table of peers; NULL: no address is bounded */
    domi_peers *peers;
    domi_shortage buffers_shortage;       /* spell in which no buffer is free (shortage.h) */
    domi_shortage conversations_shortage; /* spell in which an actor has its most conversations */
    domi_shortage failures_shortage;      /* spell in which requests of peers fail */
    /* numbers of the failures that the log has told in this spell */
    uint64_t failures_told[DOMI_FAILURES_TOLD];
    uint32_t failures_told_count;
    domi_shortage proxies[DOMI_PROXY_REFUSALS]; /* spells of connections reset behind proxies */
    domi_io_timer shortage_timer; /* timer of the next check of spells that last (spells.c) */
    uint32_t look_slot;           /* slot at which the next check of a drain begins */
    uint64_t look_ns;             /* earliest time of the next round of checks in a drain */
    /* number of iterations that the drain has waited (DOMI_POSTPONED_MAX) */
    uint32_t drain_postponed;
    /* number of iterations that due timers have waited (DOMI_POSTPONED_MAX) */
    uint32_t postponed;

    /* Fields of bytes that wait to be sent to peers, and their bound (crowd.h). */
    domi_counter queued;     /* bytes of memory of queued buffers, and of copied pieces */
    domi_queued_pages pages; /* pages of the slices among these */
    uint64_t copied;       /* bytes of the copied pieces among these, which wait for their actor */
    uint64_t careful_mark; /* number of queued bytes above which the thread is careful */
    /* number of free bytes that a channel needs in its part to read a piece */
    uint64_t piece;
    bool careful;              /* each receive brings one piece only */
    domus_channel *crowd_head; /* the first of the crowded channels (crowd.h) */
    domus_channel *crowd_tail; /* the last of the crowded channels */
    uint32_t crowd_count;      /* number of crowded channels */
    uint32_t crowd_left;       /* number of crowded channels that have still to be checked again */
    domi_stage_time stages;    /* time that pipelines have run in this phase */
    domi_sweep sweep;          /* sweep over all channels while memory is short (shed.c) */
    domi_io_shared *shared;    /* numbers about memory, common to the system's threads */
    domi_io_counters counters; /* counters that this thread writes and any thread reads */
    /* counters of listeners by row, which this thread writes and any thread reads */
    domi_listener_counts listeners[DOMI_LISTENER_ROWS];

    /* Connections of this thread. The acceptor that hands one over counts up, the thread that
     * closes it counts down. Acceptors choose the thread with the fewest. The field has a cache
     * line of its own, because other threads write it. */
    alignas(DOMI_LINES) _Atomic uint32_t connections;
    /* Number of connections that this side has opened. Owner thread; acceptors read it. */
    _Atomic uint32_t outbound;
    /* Connections that got no channel, and the bytes that their peers had sent. Any thread. */
    _Atomic uint64_t turned_away; /* connections that were closed or reset without a channel */
    /* bytes that the peers of these connections had sent */
    _Atomic uint64_t turned_away_bytes;
    /* connections of each listener that were turned away, by row */
    _Atomic uint64_t turned_away_of[DOMI_LISTENER_ROWS];
} domi_io;

/* Returns the number of buffers that the kernel has, or gets by the next publish. */
static inline uint32_t domi_io_buffers_free(const domi_io *io)
{
    return io->config->io.buffers.count - (uint32_t)domi_counter_read(&io->buffers_used);
}

/* Returns the counters on this thread of the listener that has these settings (NULL: no listener);
 * NULL if the connection came from no listener. Owner thread. */
static inline domi_listener_counts *domi_io_listener_counts(domi_io *io,
                                                            const domi_channel_settings *settings)
{
    return settings != NULL && settings->row < DOMI_LISTENER_ROWS ? &io->listeners[settings->row]
                                                                  : NULL;
}

#endif
