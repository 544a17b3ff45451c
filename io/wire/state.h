/* The parts of a wire (wire.h says what it is for). */
#ifndef DOMI_IO_WIRE_STATE_H
#define DOMI_IO_WIRE_STATE_H

#include "base/page.h"
#include "io/wire/out.h"
#include "io/wire/window.h"

#include <domus/pipeline.h>
#include <domus/stage_kit.h>

typedef struct domi_wire_stage {
    const domus_stage *stage;
    void *state; /* state of the stage; NULL: it has none */
    domi_window window;
    bool opened;
    bool ended;   /* `end` was called for the last time, or the stage has no `end` */
    bool again;   /* a byte stage has more to pass on, so it is called also without new bytes */
    bool passed;  /* the stage has passed bytes on in this call */
    bool expects; /* a byte stage waits for the rest of its handshake */
    bool passes;  /* a byte stage has left, but keeps its place: bytes pass by it */
} domi_wire_stage;

/* The state of the message that the message stage reads. */
typedef enum domi_progress {
    DOMI_MESSAGE_NONE,    /* no byte of a message has come */
    DOMI_MESSAGE_BEGUN,   /* a message is incomplete, and the stage has not said which part */
    DOMI_MESSAGE_IN_HEAD, /* the peer has to send the rest of a head */
    DOMI_MESSAGE_IN_BODY, /* the peer has to send the rest of a body that does not come in pieces */
} domi_progress;

/* A message that `decode` has made. */
typedef struct domi_made {
    domus_stage_kind kind;
    bool any;      /* a message was made */
    bool has_body; /* a body follows */
    bool is_rest;  /* the body is all that the peer still sends */
    bool last;     /* for a piece: the body ends with this piece */
    int error;
    const domus_type *type;
    void *payload;
    uint64_t id;
} domi_made;

/* The functions that the owner of a wire provides: a channel, or a kit of stages. */
typedef struct domi_wire_services {
    /* Make the payload of a message, zeroed. Returns NULL without memory. */
    void *(*make)(domus_wire *wire, domus_stage_kind kind, const domus_type *type);
    /* Call the message stage in `delay_ns`; 0: cancel such a call. */
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
    uint32_t fronts; /* number of stages in the front */
    /* number of stages with which the pipeline begins and which this wire does not have */
    uint32_t skipped;
    uint32_t count;   /* number of stages, with those of the front */
    uint32_t current; /* index of the stage that runs */
    int failed;       /* the error with which decoding has ended; 0: it goes on */
    int broken;       /* the error of a `wrap`, after which nothing can be encoded; 0: none */
    bool finished;    /* the peer has finished sending */
    /* number of stages, from the wire on, that have ended by the rules of one of them
     * (domus_wire_last() of a byte stage) */
    uint32_t closed;
    bool output_ended; /* the stages have appended what ends their output */
    bool byte_failed;  /* decoding has ended with the error of a byte stage */
    /* the bytes that are encoded next wait for their turn, and are wrapped then, because byte
     * stages see bytes in the order in which they leave. Set by the owner, for one call */
    bool plain;
    bool leaves; /* the first stage behind the front has called domus_wire_leave() */
    bool yields; /* a stage has called domus_wire_yield() in this call of domi_wire_decode() */
    bool holds;  /* the writer of a request waits (domus_wire_hold()) */
    /* the page that borrows the bytes which the message stage gets; NULL: not made yet */
    domi_page *page;
    domi_made made;
    bool *last;         /* address of a variable of the owner that domus_wire_last() sets */
    bool last_decoded;  /* the flag was set by a call of `decode`, not by a later call */
    uint8_t progress;   /* progress of the message, a domi_progress */
    bool progress_new;  /* the progress is IN_HEAD or IN_BODY, and the owner has not seen that */
    bool in_body;       /* the message stage is making pieces of a body */
    uint32_t bodies;    /* number of the last body */
    domus_address self; /* address of the channel, for bodies; the owner sets it */
    const char *agreed; /* the protocol on which the stage `agreer` has agreed; NULL: none */
    uint8_t agreed_size;
    uint8_t agreer;
    const char *server;   /* name of the server to which this side has connected; NULL: none */
    uint16_t server_port; /* port of that server; the owner sets `server` and this */
    /* number that the stage keeps for the stream that is encoded; NULL: a whole message is
     * encoded */
    uint64_t *stream;
    const char *shown;   /* the bytes that the message stage gets; NULL: it is not decoding */
    uint32_t shown_size; /* number of these bytes */
    uint32_t sliced;     /* number of these bytes that lie before the end of some slice */
    uint32_t taken;      /* number of bytes of the last window that the message has used */
    /* number of bytes that stages have passed on in this call of domi_wire_decode() */
    uint32_t passed;
    /* output for appended bytes; the owner sets it before it opens the wire */
    domi_out *out;
    /* output for bytes that have to be wrapped; the owner sets it; may be NULL if there is one
     * stage */
    domi_out *aside;
    const domi_wire_services *services;
    /* functions for inner channels (inner.h); NULL: the owner has none */
    const struct domi_inners *inners;
    void *owner;
    /* array of stages, behind the wire in memory, or in a block of its own */
    domi_wire_stage *stages;
    bool owns_stages; /* `stages` is a block of its own, because the pipeline was changed */
};

#endif
