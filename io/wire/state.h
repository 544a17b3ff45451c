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
    void *state; /* NULL: it has none */
    domi_window window;
    bool opened;
    bool ended;   /* `end` was called for the last time, or the stage has no `end` */
    bool again;   /* a byte stage that has more to pass on: it is called without new bytes, too */
    bool passed;  /* the stage has passed bytes on in this call */
    bool expects; /* a byte stage that waits for the rest of what its protocol begins with */
    bool passes;  /* a byte stage that has left, but keeps its place: bytes go by it */
} domi_wire_stage;

/* The state of the message that the message stage reads. */
typedef enum domi_progress {
    DOMI_MESSAGE_NONE,    /* no byte of a message has come */
    DOMI_MESSAGE_BEGUN,   /* the message is not whole, and the stage has not said more */
    DOMI_MESSAGE_IN_HEAD, /* the peer is to send the rest of a head */
    DOMI_MESSAGE_IN_BODY, /* or of a body that does not come in pieces */
} domi_progress;

/* A message that `decode` has made. */
typedef struct domi_made {
    domus_stage_kind kind;
    bool any;      /* there is one */
    bool has_body; /* a body follows */
    bool is_rest;  /* the body is all that the peer still sends */
    bool last;     /* for a piece: the body ends with this piece */
    int error;
    const domus_type *type;
    void *payload;
    uint64_t id;
} domi_made;

/* The services of whoever has a wire: of its channel, or of a kit of stages. */
typedef struct domi_wire_services {
    /* Make the payload of a message, zeroed. NULL: no memory. */
    void *(*make)(domus_wire *wire, domus_stage_kind kind, const domus_type *type);
    /* Call the message stage in `delay_ns`; 0: a call that was wanted is wanted no more. */
    void (*wake)(domus_wire *wire, uint64_t delay_ns);
    /* Returns what domus_wire_is_closing() does. NULL: false. */
    bool (*is_closing)(const domus_wire *wire);
    /* Return what domus_wire_now_ns() and domus_wire_peer() do. NULL: 0, and -ENOTCONN. */
    uint64_t (*now_ns)(const domus_wire *wire);
    int (*peer)(const domus_wire *wire, domus_endpoint *ret_peer);
    /* Do what domus_wire_tell_failure() does. NULL: nothing. */
    void (*tell_failure)(domus_wire *wire, const char *what, int error);
} domi_wire_services;

struct domus_wire {
    const domus_pipeline *pipeline;
    const domus_pipeline_stage *front; /* the listener's, before those of the pipeline */
    uint32_t fronts;                   /* how many they are */
    uint32_t skipped; /* stages with which the pipeline begins, and which are not there */
    uint32_t count;   /* stages, with those in front */
    uint32_t current; /* index of the stage that runs */
    int failed;       /* the error with which decoding has ended; 0: it goes on */
    int broken;       /* the error of a `wrap`, after which nothing is encoded; 0: none */
    bool finished;    /* the peer has finished sending */
    /* how many stages, from the wire on, have ended by the rules of one of them (domus_wire_last()
     * of a byte stage) */
    uint32_t closed;
    bool output_ended; /* the stages have ended what they send */
    bool byte_failed;  /* decoding has ended with the error of a byte stage */
    bool plain;  /* what is encoded next waits for its turn, and is wrapped then: byte stages see
                    bytes in the order in which they leave. The owner's, for one call */
    bool leaves; /* the first stage behind those in front has called domus_wire_leave() */
    bool yields; /* a stage has called domus_wire_yield() in this call of domi_wire_decode() */
    bool holds;  /* the writer of a request waits (domus_wire_hold()) */
    domi_page *page; /* borrows the bytes that the message stage is shown; NULL: not made yet */
    domi_made made;
    bool *last;         /* a variable of the owner that domus_wire_last() sets */
    bool last_decoded;  /* the flag was set by a call of `decode`, not by a later call */
    uint8_t progress;   /* domi_progress */
    bool progress_new;  /* the progress is IN_HEAD or IN_BODY, and the owner has not seen that */
    bool in_body;       /* the message stage is making pieces of a body */
    uint32_t bodies;    /* number of the last body */
    domus_address self; /* address of the channel, for bodies; the owner sets it */
    const char *agreed; /* the protocol that the stage `agreer` has agreed on; NULL: none has */
    uint8_t agreed_size;
    uint8_t agreer;
    const char *server;   /* name of the server to which this side has connected; NULL: none */
    uint16_t server_port; /* the port of that server; the owner sets both */
    uint64_t *stream;     /* the word of the stream that is encoded; NULL: a whole message */
    const char *shown;    /* the bytes that the message stage is shown; NULL: it is not decoding */
    uint32_t shown_size;  /* how many they are */
    uint32_t sliced;      /* how many of them lie before the end of some slice */
    uint32_t taken;       /* bytes of the last window that the message has used */
    uint32_t passed;      /* bytes that stages have passed on in this call of domi_wire_decode() */
    domi_out *out;        /* where appended bytes go; the owner sets it before it opens the wire */
    domi_out *aside;      /* the same for bytes that are to be wrapped; the owner's, may be NULL if
                             there is one stage */
    const domi_wire_services *services;
    const struct domi_inners *inners; /* inner channels (inner.h); NULL: the owner has none */
    void *owner;
    domi_wire_stage *stages; /* behind the wire, or a block of their own */
    bool owns_stages;        /* `stages` is a block of its own, because the pipeline was changed */
};

#endif
