/* The structures of which a wire is made (wire.h says what it is for). */
#ifndef DOMI_IO_WIRE_STATE_H
#define DOMI_IO_WIRE_STATE_H

#include "base/page.h"
#include "io/wire/out.h"
#include "io/wire/window.h"

#include <domus/pipeline.h>
#include <domus/stage_kit.h>

typedef struct domi_wire_stage {
    const domus_stage *stage;
    void *state; /* the stage's own state; NULL: the stage has none */
    domi_window window;
    bool opened;
    bool ended;   /* `end` of the stage was called for the last time, or the stage has no `end` */
    bool again;   /* the byte stage has more to pass on, so it is called also without new bytes */
    bool passed;  /* the stage has passed bytes on during its present call */
    bool expects; /* the byte stage waits for the rest of its handshake */
    bool passes;  /* the byte stage has left the pipeline, but keeps its place: bytes pass by it */
} domi_wire_stage;

/* How far the message has come that the message stage reads. */
typedef enum domi_progress {
    DOMI_MESSAGE_NONE, /* progress: no byte of a message has come */
    /* progress: a message is incomplete, and the stage has not said which part is missing */
    DOMI_MESSAGE_BEGUN,
    DOMI_MESSAGE_IN_HEAD, /* progress: the peer has to send the rest of a message's head */
    /* progress: the peer has to send the rest of a body that does not come in pieces */
    DOMI_MESSAGE_IN_BODY,
} domi_progress;

/* A message that `decode` of the message stage has made. */
typedef struct domi_made {
    domus_stage_kind kind;
    bool any;      /* `decode` has made a message */
    bool has_body; /* a body follows the message in pieces */
    bool is_rest;  /* the body of the message is all that the peer still sends */
    bool last;     /* if the message is a piece: the body ends with it */
    int error;
    const domus_type *type;
    void *payload;
    uint64_t id;
} domi_made;

/* The functions that the owner of a wire provides for it; the owner is a channel, or a kit of
 * stages. */
typedef struct domi_wire_services {
    /* Make the payload of a message of the peer, zeroed. Returns NULL without memory. */
    void *(*make)(domus_wire *wire, domus_stage_kind kind, const domus_type *type);
    /* Let the message stage be called in `delay_ns` (its `wake`); 0: cancel such a call. */
    void (*wake)(domus_wire *wire, uint64_t delay_ns);
    /* Implements domus_wire_is_closing(). NULL: false. */
    bool (*is_closing)(const domus_wire *wire);
    /* Implement domus_wire_now_ns() and domus_wire_peer(). NULL: 0, and -ENOTCONN. */
    uint64_t (*now_ns)(const domus_wire *wire);
    int (*peer)(const domus_wire *wire, domus_endpoint *ret_peer);
    /* Implements domus_wire_tell_failure(). NULL: nothing is done. */
    void (*tell_failure)(domus_wire *wire, const char *what, int error);
} domi_wire_services;

struct domus_wire {
    const domus_pipeline *pipeline;
    /* the front, the byte stages of the listener, before those of the pipeline */
    const domus_pipeline_stage *front;
    uint32_t fronts; /* number of byte stages in the front of the wire */
    /* number of the pipeline's first stages that this wire does not have, because it is that of an
     * inner channel */
    uint32_t skipped;
    uint32_t count;   /* number of stages of the wire, with those of the front */
    uint32_t current; /* index of the stage that runs now */
    int failed;       /* the error with which decoding of the wire has ended; 0: it goes on */
    int broken;    /* the error of a stage's `wrap`, after which nothing can be encoded; 0: none */
    bool finished; /* the peer of the wire has finished sending */
    /* number of stages, counted from the peer's side, that have ended by the rules of one of them
     * (domus_wire_last() of a byte stage) */
    uint32_t closed;
    bool output_ended; /* the stages of the wire have appended what ends their output */
    bool byte_failed;  /* decoding has ended with the error of a byte stage */
    /* the bytes that are encoded next wait for their turn, and are wrapped later, because byte
     * stages see bytes in the order in which they leave. Set by the owner, for one call */
    bool plain;
    bool leaves; /* the first stage behind the front has called domus_wire_leave() */
    bool yields; /* a stage has called domus_wire_yield() in this call of
                    domi_wire_decode_next_message() */
    bool holds;  /* the stage lets the writer of a request in pieces wait (domus_wire_hold()) */
    /* the page by which slices borrow the bytes that the message stage gets; NULL: not made yet */
    domi_page *page;
    domi_made made;
    bool *last;        /* address of a flag of the wire's owner that domus_wire_last() sets */
    bool last_decoded; /* that flag was set by a call of `decode`, not by a later call */
    uint8_t progress;  /* progress of the message that is read, a domi_progress */
    /* the progress is IN_HEAD or IN_BODY, which the wire's owner has not seen yet */
    bool progress_new;
    bool in_body;       /* the message stage is making the pieces of a body */
    uint32_t bodies;    /* number of the last body of the peer */
    domus_address self; /* address of the wire's channel, for its bodies; the owner sets it */
    const char *agreed; /* the protocol on which the stage `agreer` has agreed; NULL: none */
    uint8_t agreed_size;
    uint8_t agreer;
    const char *server; /* name of the server to which this side has connected; NULL: none */
    /* port of the server to which this side has connected; the owner sets `server` and this */
    uint16_t server_port;
    /* number that the stage keeps for the message in pieces that is encoded; NULL: a whole message
     * is encoded */
    uint64_t *stream;
    const char *shown;   /* the bytes that the message stage gets; NULL: it is not decoding */
    uint32_t shown_size; /* number of bytes that the message stage gets, at `shown` */
    uint32_t sliced;     /* number of the bytes at `shown` that lie before the end of some slice */
    uint32_t taken; /* number of bytes of the message stage's window that the message has used */
    /* number of bytes that stages have passed on in this call of domi_wire_decode_next_message() */
    uint32_t passed;
    /* output for bytes that stages append; the owner sets it before it opens the wire */
    domi_out *out;
    /* output for bytes that byte stages have to wrap; the owner sets it; may be NULL if there is
     * one stage */
    domi_out *aside;
    const domi_wire_services *services;
    /* functions for inner channels (inner.h); NULL: the owner has none */
    const struct domi_inners *inners;
    void *owner;
    /* array of the wire's stages, behind the wire in memory, or in a block of its own */
    domi_wire_stage *stages;
    bool owns_stages; /* `stages` is a block of its own, because the pipeline was changed */
};

#endif
