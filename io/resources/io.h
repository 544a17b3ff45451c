/* The io of one thread: its ring, its receive buffers, its channels and acceptors.
 *
 * Phase 1 reaps completions and queues their bytes and events at their channels; it runs no code of
 * the user. Phase 2 runs the channels actors, whose runs call domi_channels_run_channel_of_actor()
 * for channels with work. At the end of phase 2 the sends of the iteration are queued, one
 * operation for each channel. Everything here belongs to one thread, except `connections` and the
 * fields behind it. */
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

#define DOMI_COMPLETIONS_BATCH 64u /* most completions that are taken from the ring in one call */
#define DOMI_ACCEPTORS_MAX     64u /* most acceptors that one thread may have */

/* Number of iterations for which due timers, and the start of a drain, wait at most until
 * everything that had arrived is collected. Each of these iterations collects up to
 * io.completionEntries completions, so together they collect more than can have been in flight. */
#define DOMI_POSTPONED_MAX 64u

/* The kind of an operation: the upper 8 bits of its user_data, which is never 0. Below them are the
 * generation of the slot (24 bits) and the slot (32 bits). */
enum domi_op {
    DOMI_OP_WAKE = 1,
    DOMI_OP_ACCEPT,
    DOMI_OP_RECEIVE,
    DOMI_OP_SEND,
    /* kind of an operation: the cancel of a receive, or of all operations of a channel */
    DOMI_OP_CANCEL,
    /* kind of an operation: the cancel of an accept; with slot DOMI_ACCEPTORS_MAX the cancel of
     * another operation, whose completion is ignored */
    DOMI_OP_CANCEL_ACCEPT,
    /* kind of an operation: the poll of a descriptor watch; the lower bits are the address of the
     * domi_descriptor */
    DOMI_OP_DESCRIPTOR,
    /* kind of an operation: the poll of a connect; the lower bits are the address of the
     * domi_attempt */
    DOMI_OP_CONNECT,
    /* kind of an operation: the send of a datagram; the lower bits are the address of the
     * domi_datagram */
    DOMI_OP_DATAGRAM,
    /* kind of an operation: the poll for room in the socket of a channel of datagrams */
    DOMI_OP_ROOM,
    /* kind of an operation: one on a file; the lower bits are the address of the domi_file_try */
    DOMI_OP_FILE,
};

/* the user_data of an operation whose completion is ignored */
#define DOMI_OP_IGNORED domi_op_user_data(DOMI_OP_CANCEL_ACCEPT, 0, DOMI_ACCEPTORS_MAX)
/* mask of the bits of user_data that hold a pointer to an object */
#define DOMI_OP_ADDRESS UINT64_C(0xffffffffffff)

/* mask of the bits of a slot's generation for which user_data has room */
#define DOMI_OP_GENERATION_MASK 0xffffffu

static inline uint64_t domi_op_user_data(enum domi_op op, uint32_t generation, uint32_t slot)
{
    return (uint64_t)op << 56 | (uint64_t)(generation & DOMI_OP_GENERATION_MASK) << 32 | slot;
}

typedef struct domi_io_counters {
    domi_counter enters;      /* counter of system calls that enter the ring */
    domi_counter completions; /* counter of completions that were reaped */
    /* counter of channels that a drain has ended when everything was delivered */
    domi_counter drained_answered;
    /* counter of channels that a drain has ended with nothing under way */
    domi_counter drained_idle;
    /* counter of channels that a drain has ended while they owed bytes or answers */
    domi_counter drained_cut;
    domi_counter channels_busy; /* counter of times that a channel reached requestsMax */
    domi_counter channels_late; /* counter of times that a channel waited for its turn to decode */
    domi_counter reads; /* counter of pieces of bytes that on_read was given or that were decoded */
    domi_counter received_bytes; /* counter of bytes that the kernel has brought from peers */
    domi_counter sends;          /* counter of sends of which the kernel has taken bytes */
    domi_counter sent_bytes;     /* counter of bytes that the kernel has taken for peers */
    domi_counter accepted; /* counter of connections that acceptors of this thread have accepted */
    domi_counter accept_pauses;   /* counter of pauses of acceptors that have begun */
    domi_counter channels_opened; /* counter of channels that were made */
    domi_counter channels_closed; /* counter of channels that were freed, for whichever reason */
    /* counter of channels that were closed with an error of either side */
    domi_counter channels_reset;
    domi_counter
        /* counter of channels closed because the first byte of the peer did not come in time */
        channels_silent;
    domi_counter receivers_starved; /* counter of receives that ended because no buffer was free */
    /* counter of pauses of accepting that began because memory was short */
    domi_counter memory_pauses;
    /* counter of enters of the ring for which the kernel had no room; they were tried again */
    domi_counter enters_refused;
    domi_counter channels_refused; /* counter of channels reset by an errno of their actor */
    domi_counter requests_failed;  /* counter of requests of peers that ended with an errno */
    /* counter of connections reset because of their address (peers.h) */
    domi_counter refused_by_address;
    domi_counter address_spells; /* counter of spells (shortage.h) of refusals by address */
    /* counter of spells (shortage.h) in which channel.maxConnections was reached */
    domi_counter full_spells;
    /* Counter of spells (shortage.h) in which accept failed, because descriptors or memory had run
     * out. */
    domi_counter accept_spells;
    /* counter of spells (shortage.h) in which no receive buffer was free */
    domi_counter buffer_spells;
    /* counter of channels that the library ended while they owed bytes to the peer */
    domi_counter channels_cut;
    /* counter of bytes that were owed on the channels counted in channels_cut */
    domi_counter cut_bytes;
    /* counter of bytes received after this side had closed the channel */
    domi_counter discarded_bytes;
    domi_counter channels_shed;   /* counter of channels reset because memory was short */
    domi_counter listeners_open;  /* number of listeners that are open now; this goes up and down */
    domi_counter connects;        /* counter of connects that actors have asked for */
    domi_counter connects_failed; /* counter of connects that brought no connection */
    /* counter of datagrams received and thrown away: too long, or nobody read them */
    domi_counter datagrams_dropped;
    /* counter of datagrams that the kernel has thrown away before they were received */
    domi_counter datagrams_lost;
    domi_counter datagrams_unsent; /* counter of queued datagrams that the kernel did not take */
    domi_counter channels_aged;    /* counter of channels closed at the age channel.maxAge */
    /* counter of channels closed because the peer was slower than channel.minRate */
    domi_counter channels_slow;
    /* counter of connections reset at a listener that proxies use (proxy.h) */
    domi_counter proxies_refused;
} domi_io_counters;

/* A reason why a connection at a listener for proxies is reset (proxy.h). */
typedef enum domi_proxy_refusal {
    /* reason for a reset: the connection comes from outside the networks of trusted proxies */
    DOMI_PROXY_ELSEWHERE,
    DOMI_PROXY_HEADER, /* reason for a reset: the connection has no valid PROXY header */
    /* reason for a reset: the client behind the proxy has as many connections as it may have */
    DOMI_PROXY_CLIENT,
    DOMI_PROXY_REFUSALS
} domi_proxy_refusal;

struct domi_acceptor;
struct domi_connect;
struct domi_descriptor;
struct domi_file_try;

typedef enum domi_io_timer_kind {
    DOMI_TIMER_CHANNEL, /* kind of an io timer: the time-outs of a channel */
    /* kind of an io timer: the pause of an acceptor, or its next step of closing */
    DOMI_TIMER_ACCEPTOR,
    DOMI_TIMER_SHORTAGE, /* kind of an io timer: the check of shortages that last (spells.h) */
    DOMI_TIMER_SWEEP, /* kind of an io timer: the next step of a sweep over all channels (shed.c) */
    DOMI_TIMER_CONNECT, /* kind of an io timer: the next attempt of a connect */
} domi_io_timer_kind;

typedef struct domi_io_timer {
    domi_wheel_node node;    /* node of the timer in io->wheel */
    domi_io_timer_kind kind; /* kind of the object in which the io timer lies */
} domi_io_timer;

/* A connected socket that has no channel yet. */
typedef struct domi_connection {
    int fd; /* descriptor of the connected socket */
    /* the entry of the address on which the connection is counted; NULL: it is not counted */
    domi_peer *peer;
    /* the settings that the connection's channel gets; NULL: those of the thread */
    domi_channel_settings *settings;
    bool is_proxied;  /* a proxy sends a PROXY header before the bytes of its client */
    bool is_outbound; /* this side has opened the connection to a server */
    /* name or address of the server to which this side has connected; NULL: none */
    const char *server;
    uint16_t server_port;
} domi_connection;

/* The slot of a channel in the thread's table. Its generation outlives the channel and grows with
 * each channel. */
typedef struct domi_channel_slot {
    domus_channel *channel; /* the channel that has the slot; NULL: the slot is free */
    /* generation of the slot, which grows when a channel leaves, so that late completions are
     * recognized */
    uint32_t generation;
    uint32_t next_free; /* index of the next free slot behind this one; UINT32_MAX: none */
} domi_channel_slot;

/* Numbers about shed channels and memory that the threads of a system share. */
typedef struct domi_io_shared {
    _Atomic int64_t excess; /* bytes of memory above the budget that have still to be shed */
    _Atomic uint64_t shed;  /* number of channels that were shed (reset because memory was short) */
    _Atomic uint64_t shed_bytes; /* number of bytes that the shed channels held */
} domi_io_shared;

/* How short memory is, as far as the io of a thread has to know it. */
typedef struct domi_io_pressure {
    bool pauses;         /* memory is so short that acceptors pause */
    bool spares;         /* memory is so short that channels read one piece at a time */
    bool counts_sockets; /* memory counts the socket buffers of the kernel as used */
    uint64_t queue_max;  /* most bytes that this thread may queue for peers; UINT64_MAX: no bound */
} domi_io_pressure;

/* A channel that may be shed, because its peer is deaf: it has acknowledged next to nothing of the
 * bytes that wait for it, for memory.resetAfter (shed.c). */
typedef struct domi_worst {
    uint32_t slot; /* index of the remembered channel in io->slots */
    /* generation of the slot, by which its user finds whether the channel is still the same */
    uint32_t generation;
    uint64_t bytes; /* number of bytes that the remembered channel holds */
} domi_worst;

/* most failures of requests that the log tells one by one in one spell */
#define DOMI_FAILURES_TOLD 8u
#define DOMI_WORST_MAX     16u /* most channels that one pass of a sweep remembers */

/* The sweep of a careful thread (crowd.h) over all its channels, in steps (shed.c). */
typedef struct domi_sweep {
    domi_io_timer timer; /* timer of the sweep's next step */
    uint32_t next;       /* slot of the channel at which the sweep's next step begins */
    uint64_t begun_ns;   /* time at which the sweep's present pass over the channels began */
    /* Channels with deaf peers that the present pass has found; those that hold most come first. */
    domi_worst worst[DOMI_WORST_MAX];
    uint32_t worst_count; /* number of channels in `worst` */
    /* too much is queued on the thread: channels are shed until clearly less is queued */
    bool is_clearing;
} domi_sweep;

/* The time that the pipelines of a thread take in one phase 2 (io/pipelines/time.h). */
typedef struct domi_stage_time {
    uint32_t steps; /* number of messages of pipelines until the clock is read next */
    /* number of iterations left in which the time of each message is measured; 0: stages are
     * cheap */
    uint32_t watched;
    uint64_t begun_ns; /* time at which the first pipeline ran in this phase 2; 0: none has run */
    uint64_t read_ns;  /* time of the last read of the clock in a measured run of a pipeline */
    uint64_t spent_ns; /* measured time of pipelines in this phase 2 in nanoseconds */
    /* number of the present round, in which each channel with bytes to decode gets one turn */
    uint32_t round;
    uint32_t waiting; /* number of channels that wait for their turn in this round */
    bool served;      /* a channel has had its turn to decode in this phase 2 */
    bool put_off;     /* in this phase 2 the decoding of a channel was put off to a later one */
} domi_stage_time;

DOMI_FIFO_TYPE(domi_starved, domus_channel);

typedef struct domi_io {
    domi_manager *manager;       /* the manager of the same thread as this io */
    const domi_backend *backend; /* the backend by which the ring and sockets are used */
    /* configuration of the thread's manager, which the thread replaces when it changes */
    const domus_config *config;
    /* settings of those channels of the thread that have no settings of their own */
    domi_channel_settings settings;
    /* settings for the channels of each listener of the configuration, by its row */
    domi_channel_settings settings_of[DOMUS_LISTENERS_MAX];
    void *ring;   /* the thread's ring, an object of the backend */
    domi_out out; /* the scratch: bytes that a pipeline has encoded, until they are queued */
    /* bytes that a pipeline has encoded, before its byte stages have wrapped them */
    domi_out aside;
    /* envelope that the next message of a pipeline can use; NULL: none */
    struct domi_envelope *spare;
    /* the functions that channels call for their pipelines (io/pipelines/) */
    const struct domi_pipe_ways *pipe_ways;
    /* the functions by which stages handle inner channels (io/inner/) */
    const struct domi_inners *inners;
    struct domi_io *next; /* io of the next thread in a circle of all threads */
    /* descriptor of the eventfd that wakes the thread; while the ring works it is polled, never
     * read */
    int wake_fd;
    bool wake_armed;   /* the poll of the wake descriptor is in flight */
    bool sends_queued; /* phase 2 has queued sends, and no enter of the ring has come since */
    uint32_t wakes;    /* number of times that the poll of the wake descriptor has completed */
    bool draining;     /* the system drains: channels close once all is answered */
    /* the drain has come to the channels that this side has connected, which drain, too */
    bool draining_upstream;
    int failed;        /* the negative errno with which the ring has failed; 0: the ring works */
    uint32_t refusals; /* number of enters of the ring in a row for which the kernel had no room */
    domi_io_pressure pressure; /* how short memory is, as this thread was last told */

    /* Fields of an io for its receive buffers, which are the provided buffers of the ring. */
    char *memory;
    size_t memory_bytes;   /* size of the memory of all receive buffers, at `memory`, in bytes */
    domus_buffer *buffers; /* one descriptor for each receive buffer */
    domi_counter
        /* number of receive buffers that the kernel neither has nor gets by the next publish */
        buffers_used;
    uint32_t share;   /* most receive buffers that one channel may hold: 1/16 of all */
    uint32_t reserve; /* number of free receive buffers below which arriving pieces are copied */
    uint32_t unpublished; /* number of receive buffers given to the ring since the last publish */
    /* heap buffers that are kept for the next answers: small ones, and those of slices */
    domus_buffer *kept[2];
    uint32_t kept_room; /* number of further heap buffers that may be kept */

    /* Fields of an io for its channels. */
    domi_slab channel_slab;
    domi_slab datagram_slab;  /* slab of the thread's domi_datagram objects */
    domi_channel_slot *slots; /* table of channels; an operation names its slot in user_data */
    uint32_t slot_count;      /* number of slots in `slots` */
    uint32_t slots_used;      /* number of slots of the table that were ever used */
    /* index of the first free slot, which leads to the others by next_free; UINT32_MAX: none */
    uint32_t free_slot;
    uint32_t open;        /* number of channels of the thread that are not freed yet */
    domus_channel *dirty; /* channels that have bytes to send, linked by next_dirty */
    /* outer channels whose inner channels have news, linked by next_carrier */
    domus_channel *carriers;
    domi_starved starved; /* queue of the channels that wait for a receive buffer */
    /* acceptors of the thread by their slots; NULL: the slot is free */
    struct domi_acceptor *acceptors[DOMI_ACCEPTORS_MAX];
    struct domi_descriptor *watched; /* list of the descriptor watches whose poll is in the ring */
    /* tries of operations on files (io/completions/file.h) that are in the ring */
    struct domi_file_try *tries;
    struct domi_connect *connects; /* list of the connects that have begun and are not freed */
    uint32_t connecting;           /* number of connects for whose result conversations wait */
    domi_wheel wheel;              /* wheel of the thread's io timers */
    /* the system's table of connections by address (peers.h); NULL: no address is bounded */
    domi_peers *peers;
    /* spell of the shortage in which no receive buffer is free (shortage.h) */
    domi_shortage buffers_shortage;
    /* spell in which an actor has as many conversations as it may have */
    domi_shortage conversations_shortage;
    /* spell in which requests of peers fail by a fault of this side */
    domi_shortage failures_shortage;
    /* numbers of the failures of requests that the log has told in this spell */
    uint64_t failures_told[DOMI_FAILURES_TOLD];
    uint32_t failures_told_count;
    /* spells of connections that are reset behind proxies, by reason */
    domi_shortage proxies[DOMI_PROXY_REFUSALS];
    /* timer of the next check of spells of shortage that last (spells.c) */
    domi_io_timer shortage_timer;
    uint32_t look_slot; /* slot of the channel at which the next check of a drain begins */
    uint64_t look_ns;   /* earliest time of the next round of checks of channels in a drain */
    /* number of iterations for which the begin of a drain has waited (DOMI_POSTPONED_MAX) */
    uint32_t drain_postponed;
    /* number of iterations for which due timers have waited (DOMI_POSTPONED_MAX) */
    uint32_t postponed;

    /* Fields of an io for the bytes that wait to be sent to peers, and their bound (crowd.h). */
    domi_counter queued;     /* bytes of memory of queued buffers, and of copied pieces */
    domi_queued_pages pages; /* pages of those slices that are queued */
    /* bytes of memory of copied pieces, which wait for their actor and count in `queued` */
    uint64_t copied;
    uint64_t careful_mark; /* number of queued bytes above which the thread is careful (crowd.h) */
    /* number of bytes that must be free in a channel's part before it reads a piece */
    uint64_t piece;
    bool careful; /* much is queued for peers, or memory is short, so each receive brings one piece
                     only (crowd.h) */
    domus_channel *crowd_head; /* the first of the thread's crowded channels (crowd.h) */
    domus_channel *crowd_tail; /* the last of the thread's crowded channels (crowd.h) */
    uint32_t crowd_count;      /* number of the thread's crowded channels (crowd.h) */
    /* number of crowded channels that have still to be checked again after bytes were freed */
    uint32_t crowd_left;
    domi_stage_time stages; /* time for which pipelines have run in this phase 2 */
    domi_sweep sweep; /* sweep over all channels of the thread while memory is short (shed.c) */
    domi_io_shared *shared; /* numbers about memory that all threads of the system share */
    /* counters of the thread's io, which this thread writes and any thread reads */
    domi_io_counters counters;
    /* counters of listeners by row, which this thread writes and any thread reads */
    domi_listener_counts listeners[DOMI_LISTENER_ROWS];

    /* Number of connections of this thread. The acceptor that hands a connection over counts up,
     * the thread that closes it counts down. Acceptors choose the thread with the fewest. The field
     * has a cache line of its own, because other threads write it. */
    alignas(DOMI_LINES) _Atomic uint32_t connections;
    /* Number of connections of this thread that this side has opened. Owner thread; acceptors read
     * it. */
    _Atomic uint32_t outbound;
    /* Numbers of connections that got no channel, and of the bytes that their peers had sent. Any
     * thread. */
    _Atomic uint64_t turned_away; /* connections that were closed or reset without a channel */
    /* bytes that the peers of connections without a channel had sent */
    _Atomic uint64_t turned_away_bytes;
    /* connections without a channel, by the row of their listener */
    _Atomic uint64_t turned_away_of[DOMI_LISTENER_ROWS];
} domi_io;

/* Returns the number of receive buffers that the kernel has, or gets by the next publish. */
static inline uint32_t domi_io_count_free_buffers(const domi_io *io)
{
    return io->config->io.buffers.count - (uint32_t)domi_counter_read(&io->buffers_used);
}

/* Returns the counters that this thread has for the listener with these settings (NULL: no
 * listener); NULL if the connection came from no listener. Owner thread. */
static inline domi_listener_counts *
domi_io_counters_of_listener(domi_io *io, const domi_channel_settings *settings)
{
    return settings != NULL && settings->row < DOMI_LISTENER_ROWS ? &io->listeners[settings->row]
                                                                  : NULL;
}

#endif
