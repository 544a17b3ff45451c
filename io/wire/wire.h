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

#include "io/wire/state.h"

#include <domus/inner.h>

/* Make the wire of a checked pipeline without the `skipped` stages with which that begins, with the
 * byte stages of a listener in front of it (NULL: none), which stay when the pipeline is changed.
 * It has no `out` yet. NULL: no memory. */
domus_wire *domi_wire_new(const domus_pipeline *pipeline, const domus_pipeline_stage *front,
                          uint32_t skipped);

/* Returns the row of a stage of the wire, if it has this checked pipeline without its first
 * `skipped` stages: first come those in front of it. */
static inline const domus_pipeline_stage *domi_wire_row(const domus_wire *wire,
                                                        const domus_pipeline *pipeline,
                                                        uint32_t skipped, uint32_t index)
{
    return index < wire->fronts ? &wire->front[index]
                                : &pipeline->stages[index - wire->fronts + skipped];
}

/* Make the stages of a wire with a checked pipeline (as above) from `from` to `count`, in the same
 * places of `stages`, each with a state of its own, which never moves and goes with it.
 * Returns 0; -ENOMEM. */
int domi_wire_make_stages(const domus_wire *wire, const domus_pipeline *pipeline, uint32_t skipped,
                          uint32_t from, uint32_t count, domi_wire_stage *stages);

/* Open those stages of the wire that are not open yet. Returns 0, or the error of a stage. */
int domi_wire_open(domus_wire *wire);

/* Go on with another pipeline, which was checked, behind the last message, which is done. Byte
 * stages with which both begin (with the same options) go on as they are; the others are closed,
 * and the new ones are opened and get the bytes that were not used. Returns 0; -ENOMEM; -EPROTO
 * when a stage that goes has bytes inside that it has not passed on; -EMSGSIZE when the unused
 * bytes do not fit into one window: then nothing is changed; or what `open` of a stage returned. */
int domi_wire_change(domus_wire *wire, const domus_pipeline *next);

/* Take the stage out that leaves (domus_wire_leave()), and let the next one have its bytes. Returns
 * 0; -ENOMEM. */
int domi_wire_take_out(domus_wire *wire);

/* Get the state of a stage, if it is open; NULL: it is not, or there is none. */
void *domi_wire_state_of(const domus_wire *wire, const domus_stage *stage);

/* Close a stage, if it is open, and free what it has. */
void domi_wire_close_stage(domus_wire *wire, uint32_t index);

/* Close its stages and free it. NULL is allowed. */
void domi_wire_free(domus_wire *wire);

/* The stages have done much without making a message, or one has said that it took long (`yields`):
 * domi_wire_decode() is to be called again, with the bytes that it has not taken. */
#define DOMI_WIRE_BUSY 2

/* Decode on, with the bytes that were kept and then with `*size` new ones at `*bytes`, which are
 * moved on behind those that were taken. Returns 1 when there is a message (`made`); 0 when all
 * were taken and more are needed, or after domi_wire_finish() nothing is left; DOMI_WIRE_BUSY; or a
 * negative errno, which is returned from then on. If an error comes after a message was begun,
 * `made.any` is true, and the caller releases its payload. */
int domi_wire_decode(domus_wire *wire, const char **bytes, size_t *size);

/* Let the message stage make pieces of what follows, as behind domus_wire_rest(). Returns the
 * number of that body; 0 when one is open already, or the stage knows none. */
uint32_t domi_wire_open_rest(domus_wire *wire);

/* The peer has finished sending: domi_wire_decode() ends with `end` of the stages. */
void domi_wire_finish(domus_wire *wire);

/* The message was handled, and its slices are free or copied out: make ready for the next one.
 * Returns 0; -ENOMEM when bytes that are still in use could not be copied out: then they have to
 * stay where they are, and this is called again before the next domi_wire_decode(). */
int domi_wire_done(domus_wire *wire);

/* Every byte that came was used: let an idle wire keep no memory for them. Returns true if no stage
 * has bytes, so domi_wire_decode() would find nothing; false if it has to be asked. */
bool domi_wire_rest(domus_wire *wire);

/* The message lives on, so copy the bytes of its slices out, if it has any. Returns 0; -ENOMEM. */
int domi_wire_own(domus_wire *wire);

/* The message lives on and there is no memory for a copy of its bytes, and the wire is about to be
 * freed: let the page of its slices keep the memory in which they lie. That is the window of the
 * message stage, or what the owner has got them in. Returns whether it has taken `lender`. */
bool domi_wire_hold(domus_wire *wire, domi_lender lender);

/* True if nothing more is decoded because the peer has said that its message is the last, and for
 * no other reason. */
static inline bool domi_wire_has_last_message(const domus_wire *wire)
{
    return wire->last_decoded && wire->failed == 0;
}

/* True if a byte stage has not come to the end of the dialogue with which its protocol begins. */
static inline bool domi_wire_is_shaking(const domus_wire *wire)
{
    for (uint32_t i = 0; i + 1 < wire->count; i++) {
        if (wire->stages[i].expects)
            return true;
    }
    return false;
}

/* True if no byte waits to be decoded, or in a stage to be passed on. Bytes of a message that is
 * not done do not count. */
bool domi_wire_is_empty(const domus_wire *wire);

/* Encode a message, or a failure, into `out`. Returns 0; or a negative errno, and `out` is as it
 * was. If `broken` is set then, byte stages have lost their place, and the channel is reset. */
int domi_wire_encode(domus_wire *wire, uint64_t id, const domus_type *type, const void *payload);
int domi_wire_fail(domus_wire *wire, uint64_t id, const domus_type *request, int error);

/* Encode what lets the peer send the body that is open, or what tells it that an answer is cut
 * (`stream` is set). Return as domi_wire_encode(); without such a function 0, and `error`. */
int domi_wire_wanted(domus_wire *wire);
int domi_wire_cut(domus_wire *wire, uint64_t id, int error);

/* Put bytes of the owner into `out`, behind the byte stages: they wrap them. The slice stays the
 * caller's. Returns 0; a negative errno, and `out` is as it was. */
int domi_wire_put(domus_wire *wire, const void *data, size_t size);
int domi_wire_put_slice(domus_wire *wire, domus_slice slice);

/* The time of domus_wire_wake() is over: let the message stage append what is due (`wake`). Returns
 * as domi_wire_encode(); what the stage returned, and the channel is reset. */
int domi_wire_wake(domus_wire *wire, bool owed);

/* Inner channels have news: let the stage that carries them append what is to be sent (`carry`).
 * Returns as domi_wire_wake(). */
int domi_wire_carry(domus_wire *wire);

/* An ask is to go to the peer of a wire that lends inner channels: let the stage choose one.
 * Returns as domi_wire_wake(); -EOPNOTSUPP if there is no such stage. */
int domi_wire_lend(domus_wire *wire, domus_inner **ret_inner);

/* True if a stage carries inner channels. */
bool domi_wire_carries(const domus_wire *wire);

/* True if a stage has something to say at the end of the output. */
bool domi_wire_says_end(const domus_wire *wire);

/* Nothing more will be sent: let the stages append what ends their output (`finish`), once. Returns
 * 0; or what one returned, and the channel is reset. */
int domi_wire_end_output(domus_wire *wire);

#endif
