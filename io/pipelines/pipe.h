/* The pipeline of one channel: its wire (io/wire/), the requests of its peer that are not answered
 * yet, and the asks that the peer has to answer. The inside of domus/pipeline.h.
 *
 * Its parts: open.c makes and ends it; change.c changes its stages; decode.c takes messages out of
 * the bytes and handles them, within the run of the channel's actor; answers.c brings answers back
 * in the order of the requests; late.c bounds the time for the rest of a message; mail.c sends what
 * actors have for the peer, and gives them its answers; body.c gives bodies to their readers,
 * stream.c sends answers in pieces, and upload.c requests.
 *
 * Requests are numbered in the order in which they came. A window of numbers, from the oldest that
 * is not answered to the newest, has a place each in `places`. The request at the front may write
 * to the channel; an answer behind it is encoded when it is there, and its bytes wait in its place.
 *
 * Owner thread. */
#ifndef DOMI_IO_PIPELINES_PIPE_H
#define DOMI_IO_PIPELINES_PIPE_H

#include "house/conversation/asks.h"
#include "house/message/owned.h"
#include "io/channels/ready.h"
#include "io/pipelines/asked.h"
#include "io/wire/wire.h"

/* A request of the peer, from its decoding until its answer is queued. */
typedef struct domi_request {
    uint64_t id; /* the identifier that the stage has given to the peer's request */
    /* type of the request; NULL: the request stands for bytes that are wrong */
    const domus_type *type;
    /* buffers with the encoded answer to the request, while answers to earlier requests have not
     * left */
    domi_buffer_list bytes;
    uint64_t size; /* number of bytes of the answer in `bytes` */
    bool answered;
    /* the answer to the request was queued before its turn, because requests have ids, and the
     * request is not counted any more */
    bool over;
    bool alone; /* the stage has marked the request as one that is handled alone (DOMUS_ALONE) */
    bool streaming; /* the answer to the request has begun, and leaves in pieces */
    bool late;      /* the body of the request did not come in time */
    int cut;        /* the error that has cut the answer in pieces before its end; 0: none */
    uint64_t note;  /* number that the stage keeps for the answer in pieces */
} domi_request;

/* The body that the peer sends now, or has sent last (body.h). */
typedef struct domi_body {
    uint32_t number;  /* number of the peer's body in the wire; 0: there was none */
    uint32_t request; /* the number of the peer's request to which the body belongs */
    bool open;        /* the body of the peer has not ended */
    /* the body belongs to an answer of the peer, which is under way until the body ends */
    bool of_answer;
    /* the body is all that the peer still sends, as in a tunnel (domus_wire_rest()) */
    bool is_rest;
    bool wanted;        /* a piece of the body was read, so the stage knows that it is wanted */
    bool over;          /* nobody may read the body any more */
    bool skipping;      /* nobody reads the rest of the body, which is thrown away */
    int error;          /* the error that cut the peer's body; 0: the body was not cut */
    uint32_t readers;   /* number of asks in `reader` that read the body: 0 or 1 */
    domi_node *reader;  /* the ask that reads the next piece of the body; NULL: no read waits */
    uint64_t skip_left; /* number of bytes of the body that may still be skipped */
} domi_body;

/* The upload: the request of this side that leaves in pieces now, or has last (upload.h). */
typedef struct domi_upload {
    uint32_t number; /* number of the ask to which the upload belongs */
    bool open;       /* the end of the upload's body was not sent yet */
    /* the end of the upload was sent, or the upload was cut, and asks behind it still wait */
    bool ended;
    bool answered; /* the peer's answer to the upload has come */
    bool told;     /* the peer's answer to the upload has come, and the writer was told so */
    /* the peer's answer to the upload has come, and has no body or its body has ended */
    bool ask_over;
    /* the error of the reset that follows behind the body of the answer, because the upload was
     * cut; 0: none */
    int doomed;
    uint64_t note;      /* number that the stage keeps for the upload while it sends the body */
    domi_envelope *ask; /* the ask to which the upload belongs; valid until it is answered */
    const domus_stack *asker; /* stack of the conversation that has begun the upload */
    /* serial that this stack had; it has another one when the conversation is over */
    uint32_t asker_serial;
    /* time at which the upload is cut if it is not over; 0: it has no deadline */
    uint64_t deadline_ns;
} domi_upload;

/* The time that the peer has for the rest of a body (late.h). */
typedef struct domi_awaited {
    uint32_t body; /* number of the awaited body, if it comes in pieces; 0: it comes as a whole */
    uint64_t seen; /* value of the channel's received_bytes at the last check of this time */
    /* time for the body that is in stock, in nanoseconds, while it stands still */
    uint64_t left_ns;
} domi_awaited;

/* most requests of the peer from the oldest unanswered one on. With ids there may be more than
 * channel.requestsMax, because answers do not wait for earlier ones */
#define DOMI_REQUESTS_MOST 65536u

typedef struct domi_pipe {
    domus_channel *channel;
    domus_wire *wire;
    /* stack with the promises of the peer's requests that have left the house; NULL: none yet */
    domus_stack *holder;

    /* places of the peer's requests: request n is in places[n & (places_count - 1)] */
    domi_request *places;
    uint32_t places_count;
    uint32_t first;     /* number of the peer's oldest request that is not over */
    uint32_t next;      /* number that the peer's next request gets */
    uint32_t answering; /* number of the request whose answer is encoded now, or was encoded last */
    /* the first place for a request, which is enough for a peer that waits for each answer */
    domi_request place;

    /* the envelope in which a stage fills the payload of the next message; NULL: none */
    domi_envelope *made;
    /* the message of the peer that is handled now and has not left the turn; NULL: none */
    domi_envelope *current;
    domi_envelope *held; /* a decoded request of the peer that may not begin yet; NULL: none */
    uint64_t held_id;    /* identifier of the request `held` */
    uint32_t held_marks;
    uint32_t queue_count; /* number of asks for the peer in `queue` */
    domus_buffer *used;   /* the received piece whose last byte the message at hand has used */

    domi_asked asked;      /* asks that the peer has to answer; their number is channel->asks */
    domi_node *queue;      /* asks for the peer that wait to be sent */
    uint64_t looked_ns;    /* time at which expired asks were last removed from the queue `queue` */
    uint32_t next_ask;     /* number of the next ask to the peer, for protocols with ids */
    uint32_t writer_count; /* number of writes to streams in `writers` */

    domi_body body;
    domi_awaited awaited;
    domi_upload upload;
    /* list of the inner channels with news for the stage that carries them (io/inner/) */
    struct domi_inner *news;
    struct domi_inner *news_last;
    /* writes to streams (stream.h) that wait until the next piece may be sent */
    domi_node *writers;

    /* the pipeline that takes the place of this one when the requests so far are answered (life.h);
     * NULL: none */
    const domus_pipeline *change;
    bool change_clean; /* when the pipeline changes, the peer must have sent no further bytes */
    /* no further ask is sent to the peer, and the channel closes when all are answered */
    bool asked_last;
    /* fate of the asks that were sent, as the stage has declared it (returned.h); 0: none
     * declared */
    uint8_t fate;
    /* an answer to an ask of this channel itself was decoded, and has to be handled first */
    bool own_answer;

    bool seen_all;  /* in a drain: all bytes that had come when the drain began were decoded */
    bool has_newer; /* in a drain: a body of the peer has begun since the drain did */

    bool stopped; /* decoding has stopped for `own_answer` or an upload, or an upload has ended */

    /* number of the last round in which the pipeline had its turn (time.h) */
    uint32_t served_round;
    /* number of the last round in which the pipeline waited for its turn (time.h) */
    uint32_t waits_round;

    /* messages of the pipeline are being handled, and the run goes on with the rest */
    bool running;
    bool alone; /* a request that is alone (DOMUS_ALONE) is not answered yet */
    /* a request that is alone is not answered yet, and the actor has to be told at once when the
     * peer has ended */
    bool hears;
    /* a request that is alone is not answered yet, and the channel closes when the peer has
     * ended */
    bool ends;
    /* the newest request has DOMUS_HEARS_END or DOMUS_ENDS_WITH_PEER, or opened the rest as its
     * body; stays true when the actor was told of the end */
    bool heard;
    /* the last message shows bytes where they were received, because there was no memory to copy
     * them out; the channel was reset */
    bool undone;
    bool dry; /* all received bytes of the channel were decoded */
    /* the peer's bytes are wrong, or its last message was made: nothing more is decoded, and the
     * channel will close */
    bool failed;
} domi_pipe;

/* Returns the number of the peer's requests that are not over. */
static inline uint32_t domi_pipe_count_requests(const domi_pipe *pipe)
{
    return pipe->next - pipe->first;
}

/* Returns the channel of a house; NULL: the house belongs to no channel, or the channel is gone. */
static inline domus_channel *domi_pipe_channel_of_house(const domi_house *house)
{
    return domi_house_is_channel(house) ? house->channels.owned : NULL;
}

/* Returns the pipeline of the channel of a house; NULL: the house has no channel, or its channel
 * has no pipeline. */
static inline domi_pipe *domi_pipe_of_house(const domi_house *house)
{
    const domus_channel *channel = domi_pipe_channel_of_house(house);

    return channel != NULL ? channel->pipe : NULL;
}

/* Throw away a message of the peer that was not handled. A `message` of NULL is allowed. */
static inline void domi_pipe_drop_message(domi_manager *manager, domi_envelope *message)
{
    if (message != NULL)
        domi_envelope_release_and_free(manager, message);
}

/* Free the received piece whose last byte was used, when no message shows its bytes any more. */
static inline void domi_pipe_free_used_piece(domi_pipe *pipe)
{
    if (pipe->used != NULL) /* mostly there is no such piece, and this test spares a call */
        domus_buffer_free(pipe->used);
    pipe->used = NULL;
}

/* Mark the open body of the peer as one that nobody may read any more: the next run handles the
 * rest of it (body.h). */
static inline void domi_pipe_mark_body_unreadable(domi_pipe *pipe)
{
    pipe->body.over = true;
    if (!pipe->running)
        domi_channel_make_actor_ready(pipe->channel);
}

/* Let the bytes that are encoded next belong to the answer of this request. If they have to wait
 * for the answers before, byte stages wrap them when they leave. */
static inline void domi_pipe_begin_encoding_answer(domi_pipe *pipe, uint32_t number)
{
    pipe->answering = number;
    if (DOMI_UNLIKELY(pipe->channel->wraps))
        pipe->wire->plain = number != pipe->first && !pipe->wire->pipeline->by_id;
}

static inline domi_request *domi_pipe_place_of_request(domi_pipe *pipe, uint32_t number)
{
    return &pipe->places[number & (pipe->places_count - 1)];
}

/* True if the body of the upload with this number is open. */
static inline bool domi_upload_is_open(const domi_pipe *pipe, uint32_t number)
{
    return pipe->upload.open && pipe->upload.number == number;
}

/* Returns true once, when the answer to the upload has come and the writer of the upload was not
 * told yet. */
static inline bool domi_upload_take_news_of_answer(domi_pipe *pipe)
{
    bool is_news = pipe->upload.answered && !pipe->upload.told;

    pipe->upload.told = pipe->upload.told || is_news;
    return is_news;
}

#endif
