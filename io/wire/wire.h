/* The wire of a channel: its stages with their states, the bytes that they have not used yet, and
 * the bytes that they have made for the peer. The insides of domus/stage.h.
 *
 * It knows no channel and no actor. Its owner brings bytes and takes messages and bytes out
 * (io/pipelines/, or the kit of domus/stage_kit.h). A message is decoded from the bytes where they
 * lie; only those of a message that is not whole yet are copied, into the window of their stage.
 *
 *     in:   bytes -> stage 0 -> window 1 -> stage 1 ... -> message
 *     out:  message -> encode -> `out` -> wrap -> ... -> `out`
 *
 * One thread at a time. */
#ifndef DOMI_IO_WIRE_WIRE_H
#define DOMI_IO_WIRE_WIRE_H

#include "base/page.h"

#include <domus/pipeline.h>
#include <domus/stage_kit.h>

/* Bytes that came, and that a stage has not used. */
typedef struct domi_window {
    char *memory;   /* NULL: there are none */
    uint32_t begin; /* of the first byte in `memory` */
    uint32_t size;  /* bytes */
    uint32_t room;  /* bytes of `memory` */
    uint32_t need;  /* `decode` need not be called with fewer */
    bool stuck;     /* `decode` has seen all of them and needs more */
} domi_window;

typedef struct domi_wire_stage {
    const domus_stage *stage;
    void *state; /* NULL: it has none */
    domi_window window;
    bool opened;
    bool ended; /* its `end` was called, or the stage has none */
} domi_wire_stage;

/* Bytes for the peer: a block, and slices that stand between its bytes. */
typedef struct domi_out_piece {
    uint32_t at; /* the slice goes before this byte of the block */
    domus_slice slice;
} domi_out_piece;

typedef struct domi_out {
    char *bytes;
    uint32_t size;
    uint32_t room;
    domi_out_piece *pieces;
    uint32_t pieces_count;
    uint32_t pieces_room;
} domi_out;

/* A message that `decode` has made. */
typedef struct domi_made {
    domus_stage_kind kind;
    bool any; /* there is one */
    int error;
    const domus_type *type;
    void *payload;
    uint64_t id;
} domi_made;

struct domus_wire {
    const domus_pipeline *pipeline;
    uint32_t count;   /* stages */
    uint32_t current; /* index of the stage that runs */
    int failed;       /* the error with which decoding has ended; 0: it goes on */
    bool finished;    /* the peer has finished sending */
    domi_page *page;  /* borrows the bytes that the message stage is shown; NULL: not made yet */
    domi_made made;
    uint32_t taken;  /* bytes of the last window that the message has used */
    domi_out *out;   /* where appended bytes go; the owner's */
    domi_out *aside; /* the same for bytes that are to be wrapped; the owner's, may be NULL if there
                        is one stage */
    /* Make the payload of a message, zeroed. NULL: no memory. */
    void *(*make)(domus_wire *wire, domus_stage_kind kind, const domus_type *type);
    void *owner;
    domi_wire_stage stages[];
};

/* Check a pipeline before it is used. Returns 0; -EINVAL; what `check` of a stage returned. */
int domi_pipeline_check(const domus_pipeline *pipeline);

/* Make the wire of a checked pipeline. It has no `out` yet. NULL: no memory. */
domus_wire *domi_wire_new(const domus_pipeline *pipeline);

/* Open its stages. Returns 0, or what one returned. */
int domi_wire_open(domus_wire *wire);

/* Close its stages and free it. NULL is allowed. */
void domi_wire_free(domus_wire *wire);

/* Decode on, with the bytes that were kept and then with `*size` new ones at `*bytes`, which are
 * moved on behind those that were taken. Returns 1 when there is a message (`made`); 0 when all
 * were taken and more are needed, or after domi_wire_finish() nothing is left; or a negative errno,
 * which is returned from then on. */
int domi_wire_decode(domus_wire *wire, const char **bytes, size_t *size);

/* The peer has finished sending: domi_wire_decode() ends with `end` of the stages. */
void domi_wire_finish(domus_wire *wire);

/* The message was handled, and its slices are free or copied out: make ready for the next one.
 * Returns 0; -ENOMEM when bytes that are still in use could not be copied out. */
int domi_wire_done(domus_wire *wire);

/* The message lives on, so copy the bytes of its slices out. Returns 0; -ENOMEM. */
int domi_wire_own(domus_wire *wire);

/* True if no byte waits to be decoded. */
bool domi_wire_is_empty(const domus_wire *wire);

/* Encode a message, or a failure, into `out`. Returns 0; or a negative errno, and `out` is as it
 * was. */
int domi_wire_encode(domus_wire *wire, uint64_t id, const domus_type *type, const void *payload);
int domi_wire_fail(domus_wire *wire, uint64_t id, const domus_type *request, int error);

/* --- bytes out (out.c) ------------------------------------------------------------------------ */

/* Make room for `size` bytes. NULL: no memory. */
char *domi_out_room(domi_out *out, size_t size);
int domi_out_append(domi_out *out, const void *data, size_t size);
int domi_out_append_slice(domi_out *out, domus_slice slice);

/* Forget everything behind `size` bytes and `pieces` slices. */
void domi_out_cut(domi_out *out, uint32_t size, uint32_t pieces);

static inline bool domi_out_is_empty(const domi_out *out)
{
    return out->size == 0 && out->pieces_count == 0;
}

/* Empty it, and free its memory if it is large or if `all`. */
void domi_out_clear(domi_out *out, bool all);

#endif
