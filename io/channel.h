/* Channels inside: the state machine of a connection (drawn in channel.c). Owner thread. */
#ifndef DOMI_IO_CHANNEL_H
#define DOMI_IO_CHANNEL_H

#include "io/buffer.h"

#include <sys/uio.h>

#define DOMI_GATHER_MAX 16 /* buffers in one send */

typedef enum domi_channel_state {
    DOMI_CHANNEL_OPEN,
    DOMI_CHANNEL_FLUSHING,  /* closed by its actor: sends what is queued */
    DOMI_CHANNEL_LINGERING, /* FIN sent: reads and throws away until the peer closes */
    DOMI_CHANNEL_CLOSING,   /* waits until nothing is in flight */
    DOMI_CHANNEL_CLOSED,    /* the descriptor is closed; on_close is due */
    DOMI_CHANNEL_STATES,
} domi_channel_state;

typedef struct domi_buffer_list {
    domus_buffer *head;
    domus_buffer *tail;
} domi_buffer_list;

struct domus_channel {
    domi_io *io;
    domi_house *house;
    void *data;
    int fd;
    uint32_t slot;
    uint32_t generation;
    int error; /* for on_close */
    uint8_t state;
    uint8_t cancels;     /* cancel operations in flight */
    bool receiving : 1;  /* a receive is armed */
    bool cancelling : 1; /* ... and is being ended */
    bool sending : 1;
    bool opened : 1; /* on_open was called */
    bool ended : 1;  /* the peer has finished sending */
    bool end_told : 1;
    bool paused : 1;  /* back-pressure: does not receive */
    bool blocked : 1; /* ... as too much waits to be sent: on_read is not called either */
    bool starved : 1; /* waits for buffers */
    bool noticed : 1; /* in its actor's ready list */
    bool dirty : 1;   /* in the tick's send list */
    bool cancelled_all : 1;
    bool abort : 1; /* close with RST */
    bool drain : 1; /* the system stops: close once all that had come is answered */
    uint32_t held;  /* pieces it received that are not freed yet */
    domi_buffer_list inbound;
    domi_buffer_list outbound;
    uint64_t queued_bytes; /* in outbound */
    uint32_t head_offset;  /* of outbound's first buffer, sent already */
    uint64_t drain_bytes;  /* that were in the socket when the drain began, still to be read */
    uint64_t active_ns;    /* the last byte came or went */
    uint64_t send_ns;      /* the send in flight began */
    domi_io_timer timer;   /* idle, or linger */
    domus_channel *next_noticed;
    domus_channel *next_dirty;
    domus_channel *next_starved;
    domus_channel *next; /* among its house's */
    domus_channel *previous;
    struct msghdr message;
    struct iovec vector[DOMI_GATHER_MAX];
};

/* A house's channels; house->channels.set. */
typedef struct domi_channels {
    domus_channel *all;
    domus_channel *noticed_head;
    domus_channel *noticed_tail;
    uint32_t count;
    struct domi_acceptor *acceptor; /* an acceptor's house has this instead */
} domi_channels;

static inline void domi_buffer_list_put(domi_buffer_list *list, domus_buffer *buffer)
{
    buffer->next = NULL;
    if (list->head == NULL)
        list->head = buffer;
    else
        list->tail->next = buffer;
    list->tail = buffer;
}

static inline domus_buffer *domi_buffer_list_take(domi_buffer_list *list)
{
    domus_buffer *buffer = list->head;

    if (buffer != NULL)
        list->head = buffer->next;
    return buffer;
}

/* --- channel.c: the machine ------------------------------------------------------------------ */

/* Take `fd` over for the actor in `house`. Returns 0; -ENOMEM (`fd` is still the caller's). */
int domi_channel_adopt(domi_io *io, domi_house *house, int fd);

/* Take the next steps of its state: arm a receive, send FIN, cancel, close. */
void domi_channel_settle(domus_channel *channel);

/* domus_channel_close(). */
int domi_channel_flush(domus_channel *channel);

/* Close with `error`; with `abort`, by RST. */
void domi_channel_shut(domus_channel *channel, int error, bool abort);

/* Its actor has to look at it: put it on the ready list and make the house ready. */
void domi_channel_notice(domus_channel *channel);

/* on_close has returned: free the slot. */
void domi_channel_free(domus_channel *channel);

/* The system stops: answer what has come so far, then close. */
void domi_channel_drain(domus_channel *channel);

/* Close a draining channel if everything is answered. */
void domi_channel_drain_step(domus_channel *channel);

/* Throw away what came and was not read. */
void domi_channel_drop_inbound(domus_channel *channel);

/* A timer of the io wheel belongs to a channel: idle or linger time is over. */
void domi_channel_timer(domus_channel *channel);

/* --- receive.c ------------------------------------------------------------------------------- */

void domi_channel_received(domus_channel *channel, const domi_completion *completion);
bool domi_channel_wants_receive(const domus_channel *channel);
void domi_channel_arm_receive(domus_channel *channel);

/* Back-pressure: stop or go on receiving, by what is queued and held. */
void domi_channel_pressure(domus_channel *channel);

/* It will never receive again: leave the queue of the starved. */
void domi_channel_unstarve(domus_channel *channel);

/* --- send.c ---------------------------------------------------------------------------------- */

void domi_channel_sent(domus_channel *channel, const domi_completion *completion);
void domi_channel_send(domus_channel *channel);
void domi_channel_drop_outbound(domus_channel *channel);

/* --- actor.c: the actor's side --------------------------------------------------------------- */

/* domi_manager.run_channels, .stop_channels and .take_event. */
uint32_t domi_channels_run(domi_manager *manager, domi_house *house, uint32_t budget);
uint32_t domi_channels_stop(domi_manager *manager, domi_house *house);
bool domi_channels_event(domi_manager *manager, domi_house *house, domi_envelope *message);

#endif
