/* The io of one thread: its ring, its receive buffers, its channels and acceptors.
 *
 * Phase 1 reaps completions and queues what they bring at their channel; it runs no code of the
 * user. Phase 2 runs the channels actors, whose runs call domi_channels_run() for the channels that
 * have something. At the end of phase 2 the sends of the iteration are queued, one operation per
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

/* The kind of an operation: the upper 8 bits of its user_data, which is never 0. Below them stand
 * the generation of the slot (24 bits) and the slot (32 bits). */
enum domi_op {
    DOMI_OP_WAKE = 1,
    DOMI_OP_ACCEPT,
    DOMI_OP_RECEIVE,
    DOMI_OP_SEND,
    DOMI_OP_CANCEL, /* the cancel of a receive, or of everything that a channel has in flight */
    /* the cancel of an accept; with slot DOMI_ACCEPTORS_MAX, of something else: it is ignored */
    DOMI_OP_CANCEL_ACCEPT,
    DOMI_OP_DESCRIPTOR, /* the lower bits are the address of a domi_descriptor */
    DOMI_OP_CONNECT,    /* the lower bits are the address of a domi_attempt */
    DOMI_OP_DATAGRAM,   /* the lower bits are the address of a domi_datagram that is sent */
    DOMI_OP_ROOM,       /* the poll for room of a channel of datagrams */
    DOMI_OP_FILE,       /* the lower bits are the address of a domi_file_try */
};

/* the user_data of an operation whose completion is ignored */
#define DOMI_OP_IGNORED domi_op_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX)
#define DOMI_OP_ADDRESS UINT64_C(0xffffffffffff) /* the bits of user_data that hold a pointer */

/* the bits of a generation that user_data has room for */
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
    domi_counter channels_busy;    /* times at which a channel reached requestsMax */
    domi_counter channels_late;    /* times at which a channel waited for its turn to decode */
    domi_counter reads;            /* pieces of bytes that on_read was given */
    domi_counter received_bytes;   /* bytes that the kernel has brought from peers */
    domi_counter sends;            /* sends of which the kernel has taken bytes */
    domi_counter sent_bytes;       /* bytes that the kernel has taken for peers */
    domi_counter accepted;         /* connections that acceptors of this thread have accepted */
    domi_counter accept_pauses;    /* pauses of acceptors that have begun */
    domi_counter channels_opened;  /* channels that were made */
    domi_counter channels_closed;  /* channels that were freed, for whichever reason */
    domi_counter channels_reset;   /* closed with an error, whichever side made it */
    domi_counter
        channels_silent; /* closed because the first byte of the peer did not come in time */
    domi_counter receivers_starved; /* receives that ended because no buffer was free */
    /* times at which accepting began to pause because memory was short */
    domi_counter memory_pauses;
    /* enters for which the kernel had no room; they are tried again */
    domi_counter enters_refused;
    domi_counter channels_refused;   /* channels reset by an errno of their actor */
    domi_counter requests_failed;    /* requests of peers that ended with an errno */
    domi_counter refused_by_address; /* connections reset because of their address (peers.h) */
    domi_counter address_spells;     /* spells (shortage.h) of refusals by address */
    domi_counter full_spells;        /* spells in which channel.maxConnections was reached */
    /* Spells in which accept failed, because descriptors or memory had run out. */
    domi_counter accept_spells;
    domi_counter buffer_spells;     /* spells in which no receive buffer was free */
    domi_counter channels_cut;      /* channels that the library ended while bytes were owed */
    domi_counter cut_bytes;         /* bytes that were owed on these channels */
    domi_counter discarded_bytes;   /* bytes received after this side had closed the channel */
    domi_counter channels_shed;     /* channels reset because memory was short */
    domi_counter listeners_open;    /* open listeners now; this goes up and down */
    domi_counter connects;          /* connects that actors have asked for */
    domi_counter connects_failed;   /* connects that brought no connection */
    domi_counter datagrams_dropped; /* received, and thrown away: too long, or nobody read */
    domi_counter datagrams_lost;    /* thrown away by the kernel before they were received */
    domi_counter datagrams_unsent;  /* queued, and not taken by the kernel */
    domi_counter channels_aged;     /* channels closed at channel.maxAge */
    domi_counter channels_slow;     /* channels closed at channel.minRate */
    domi_counter proxies_refused;   /* connections reset at a listener that proxies use (proxy.h) */
} domi_io_counters;

/* Why a connection at a listener that proxies use is reset (proxy.h). */
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
    DOMI_TIMER_CHANNEL,  /* the time-outs of a channel */
    DOMI_TIMER_ACCEPTOR, /* the pause of an acceptor, or its next step of closing */
    DOMI_TIMER_SHORTAGE, /* the look at shortages that go on */
    DOMI_TIMER_SWEEP,    /* the next step of a sweep over all channels (shed.c) */
    DOMI_TIMER_CONNECT,  /* the next attempt of a connect */
} domi_io_timer_kind;

typedef struct domi_io_timer {
    domi_wheel_node node;    /* links in io->wheel */
    domi_io_timer_kind kind; /* tells which object the timer lies in */
} domi_io_timer;

/* A connection that has no channel yet. */
typedef struct domi_connection {
    int fd;                          /* the connected socket */
    domi_peer *peer;                 /* the address that it is counted on; NULL: none */
    domi_channel_settings *settings; /* the settings of the channel; NULL: those of the thread */
    bool is_proxied;                 /* a proxy sends a header before the client's bytes */
    bool is_outbound;                /* this side has opened the connection */
    const char *server;              /* the name or address that it was opened to; NULL: none */
    uint16_t server_port;
} domi_connection;

/* The place of a channel. Its generation outlives the channel and grows with each. */
typedef struct domi_channel_slot {
    domus_channel *channel; /* NULL: free */
    uint32_t generation;    /* grows when a channel leaves, so that late completions are known */
    uint32_t next_free;     /* index of the next free slot; UINT32_MAX: none */
} domi_channel_slot;

/* Figures about memory that the threads of a system share. */
typedef struct domi_io_shared {
    _Atomic int64_t excess;      /* bytes above the budget that are still to be shed */
    _Atomic uint64_t shed;       /* channels that were shed */
    _Atomic uint64_t shed_bytes; /* bytes that these channels held */
} domi_io_shared;

/* How short memory is, as far as io has to know. */
typedef struct domi_io_pressure {
    bool pauses;         /* acceptors pause */
    bool spares;         /* channels read one piece at a time */
    bool counts_sockets; /* the kernel's socket buffers count as used memory */
    uint64_t queue_max;  /* bytes that this thread may queue for peers; UINT64_MAX: no bound */
} domi_io_pressure;

/* A channel that may be shed, because its peer is deaf: it has acknowledged next to nothing of the
 * bytes that wait for it, for memory.resetAfter (shed.c). */
typedef struct domi_worst {
    uint32_t slot; /* the channel's index in io->slots */
    /* the slot's generation, by which a completion sees whether the channel is still the same */
    uint32_t generation;
    uint64_t bytes; /* bytes that the channel holds */
} domi_worst;

#define DOMI_FAILURES_TOLD 8u  /* failures of requests that one spell tells each by itself */
#define DOMI_WORST_MAX     16u /* channels that one pass of a sweep remembers */

/* The sweep: how a careful thread (crowd.h) goes over all its channels, in steps (shed.c). */
typedef struct domi_sweep {
    domi_io_timer timer; /* fires when the next step is due */
    uint32_t next;       /* the slot at which the next step begins */
    uint64_t begun_ns;   /* the time at which this pass over the channels began */
    /* Channels with deaf peers that this pass has found; those that hold most come first. */
    domi_worst worst[DOMI_WORST_MAX];
    uint32_t worst_count; /* entries of `worst` in use */
    bool is_clearing;     /* too much is queued: channels are shed until clearly less is queued */
} domi_sweep;

/* The time that the pipelines of a thread take in one phase 2 (io/pipelines/time.h). */
typedef struct domi_stage_time {
    uint32_t steps;    /* messages until the clock is read next */
    uint32_t watched;  /* iterations for which each message is measured; 0: they are cheap */
    uint64_t begun_ns; /* when the first pipeline of this phase ran; 0: none has */
    uint64_t read_ns;  /* the clock, when it was last read in a run that is measured */
    uint64_t spent_ns; /* measured time of this phase */
    uint32_t round;    /* a round gives one turn to each channel that has bytes to decode */
    uint32_t waiting;  /* channels that have not had theirs */
    bool served;       /* in this phase a channel has had its turn, */
    bool put_off;      /* or has been put off */
} domi_stage_time;

DOMI_FIFO_TYPE(domi_starved, domus_channel);

typedef struct domi_io {
    domi_manager *manager;          /* the manager of the same thread */
    const domi_backend *backend;    /* io_uring or epoll */
    const domus_config *config;     /* the manager's, which the thread replaces when it changes */
    domi_channel_settings settings; /* for channels without settings of their own */
    /* the settings of the channels of each configured listener, by its row */
    domi_channel_settings settings_of[DOMUS_LISTENERS_MAX];
    void *ring;                  /* the backend's own object */
    domi_out out;                /* bytes that a pipeline encodes, until they are queued */
    domi_out aside;              /* the same, before byte stages have wrapped them */
    struct domi_envelope *spare; /* for the next message of a pipeline; NULL: none */
    /* the functions of pipelines that channels call */
    const struct domi_pipe_ways *pipe_ways;
    const struct domi_inners *inners; /* the functions by which stages handle inner channels */
    struct domi_io *next;   /* the io of the next thread; the last one points to the first */
    int wake_fd;            /* an eventfd; while the ring works it is polled, never read */
    bool wake_armed;        /* the poll on wake_fd is in flight */
    bool sends_queued;      /* phase 2 has queued sends, and no enter came since */
    uint32_t wakes;         /* completions of the poll on wake_fd */
    bool draining;          /* the system drains: channels close once all is answered */
    bool draining_upstream; /* and so do those that this side has connected */
    int failed;        /* the negative errno with which the ring has failed; 0: the ring works */
    uint32_t refusals; /* enters in a row that the kernel had no room for */
    domi_io_pressure pressure; /* how short memory is, as this thread was last told */

    /* Receive buffers, which are the provided buffers of the ring. */
    char *memory;
    size_t memory_bytes;   /* bytes at `memory` */
    domus_buffer *buffers; /* one descriptor for each provided buffer */
    domi_counter
        buffers_used;      /* buffers that the kernel does not have, nor gets by the next publish */
    uint32_t share;        /* buffers that one channel may hold: 1/16 of all */
    uint32_t reserve;      /* with fewer free buffers, pieces that arrive are copied out */
    uint32_t unpublished;  /* buffers given to the ring since the last publish */
    domus_buffer *kept[2]; /* for the next answers: small heap buffers, and those of slices */
    uint32_t kept_room;    /* how many more of them may be kept */

    /* Channels. */
    domi_slab channel_slab;
    domi_slab datagram_slab;  /* holds objects of domi_datagram */
    domi_channel_slot *slots; /* an operation names its slot in user_data */
    uint32_t slot_count;      /* entries of `slots` */
    uint32_t slots_used;      /* slots that were ever used */
    uint32_t free_slot;       /* head of a list through next_free; UINT32_MAX: empty */
    uint32_t open;            /* channels that are not freed yet */
    domus_channel *dirty;     /* channels with something to send, linked by next_dirty */
    domus_channel *carriers;  /* those whose inner channels have news, by next_carrier */
    domi_starved starved;     /* channels that wait for a receive buffer */
    struct domi_acceptor *acceptors[DOMI_ACCEPTORS_MAX]; /* by domi_acceptor.slot; NULL: free */
    struct domi_descriptor *watched;      /* descriptor watches whose poll is in the ring */
    struct domi_file_try *tries;          /* operations on files that are in the ring */
    struct domi_connect *connects;        /* connects that have begun and are not freed */
    uint32_t connecting;                  /* connects that conversations wait for */
    domi_wheel wheel;                     /* holds nodes of domi_io_timer */
    domi_peers *peers;                    /* the table of the system; NULL: no address is bounded */
    domi_shortage buffers_shortage;       /* the spell in which no buffer is free (shortage.h) */
    domi_shortage conversations_shortage; /* the one in which an actor has its most conversations */
    domi_shortage failures_shortage;      /* the one in which requests of peers fail */
    uint64_t failures_told[DOMI_FAILURES_TOLD]; /* numbers of those that were told in it */
    uint32_t failures_told_count;
    domi_shortage proxies[DOMI_PROXY_REFUSALS]; /* spells of connections reset behind proxies */
    domi_io_timer shortage_timer; /* fires when spells that go on are looked at (spells.c) */
    uint32_t look_slot;           /* in a drain: the slot at which the next look begins */
    uint64_t look_ns;             /* in a drain: earliest time of the next round of looks */
    uint32_t drain_postponed;     /* iterations that the drain has waited (DOMI_POSTPONED_MAX) */
    uint32_t postponed;           /* iterations that due timers have waited (DOMI_POSTPONED_MAX) */

    /* Bytes that wait to be sent to peers, and their bound (crowd.h). */
    domi_counter queued;     /* bytes of memory that queued buffers take, and copied-out pieces */
    domi_queued_pages pages; /* the pages of slices among them */
    uint64_t copied; /* bytes of the copied-out pieces among them, which wait for their actor */
    uint64_t careful_mark;     /* with more bytes queued the thread is careful */
    uint64_t piece;            /* free bytes that a channel needs in its part to read a piece */
    bool careful;              /* each receive brings one piece only */
    domus_channel *crowd_head; /* the first of the crowded channels (crowd.h) */
    domus_channel *crowd_tail; /* the last of them */
    uint32_t crowd_count;      /* how many channels are in that list */
    uint32_t crowd_left;       /* channels of this list that have still to be looked at again */
    domi_stage_time stages;    /* how long pipelines have run in this phase */
    domi_sweep sweep;          /* the walk over all channels while memory is short (shed.c) */
    domi_io_shared *shared;    /* figures about memory, common to the system's threads */
    domi_io_counters counters; /* written by this thread, read by any */
    domi_listener_counts listeners[DOMI_LISTENER_ROWS]; /* likewise; by row */

    /* Connections of this thread. The acceptor that hands one over counts up, the thread that
     * closes it counts down. Acceptors choose the thread with the fewest. The field has a cache
     * line of its own, because other threads write it. */
    alignas(DOMI_LINES) _Atomic uint32_t connections;
    /* The number of them that this side has opened. Owner thread; acceptors read it. */
    _Atomic uint32_t outbound;
    /* Connections that got no channel, and the bytes that their peers had sent. Any thread. */
    _Atomic uint64_t turned_away; /* connections that were closed or reset without a channel */
    _Atomic uint64_t turned_away_bytes;                  /* bytes that their peers had sent */
    _Atomic uint64_t turned_away_of[DOMI_LISTENER_ROWS]; /* those of each listener, by row */
} domi_io;

/* Buffers that the kernel has, or gets by the next publish. */
static inline uint32_t domi_io_buffers_free(const domi_io *io)
{
    return io->config->io.buffers.count - (uint32_t)domi_counter_read(&io->buffers_used);
}

/* The counts of the listener that has these settings (NULL: no listener) on this thread; NULL if
 * the connection is of none. Owner thread. */
static inline domi_listener_counts *domi_io_listener_counts(domi_io *io,
                                                            const domi_channel_settings *settings)
{
    return settings != NULL && settings->row < DOMI_LISTENER_ROWS ? &io->listeners[settings->row]
                                                                  : NULL;
}

#endif
