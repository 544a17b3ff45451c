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

/* Make the wire of a checked pipeline without its first `skipped` stages. The byte stages of the
 * listener's front (NULL: none) stand before the pipeline, and stay when it is changed. The wire
 * has no `out` yet. Returns NULL without memory. */
domus_wire *domi_wire_new(const domus_pipeline *pipeline, const domus_pipeline_stage *front,
                          uint32_t skipped);

/* Returns the row of the stage at `index` for a wire that has this checked pipeline without its
 * first `skipped` stages: the rows of the front come first. */
static inline const domus_pipeline_stage *domi_wire_get_row_of_stage(const domus_wire *wire,
                                                                     const domus_pipeline *pipeline,
                                                                     uint32_t skipped,
                                                                     uint32_t index)
{
    return index < wire->fronts ? &wire->front[index]
                                : &pipeline->stages[index - wire->fronts + skipped];
}

/* Make the stages from `from` to `count` of a wire that gets this checked pipeline, in the same
 * places of `stages`, each with a state of its own, which never moves and is freed with it. Returns
 * 0; -ENOMEM. */
int domi_wire_make_stages(const domus_wire *wire, const domus_pipeline *pipeline, uint32_t skipped,
                          uint32_t from, uint32_t count, domi_wire_stage *stages);

/* Open those stages of the wire that are not open yet. Returns 0, or the error of a stage. */
int domi_wire_open_stages(domus_wire *wire);

/* Change the wire to another checked pipeline, behind the last message, which is done. Byte
 * stages with which both pipelines begin (with the same options) go on as they are; the others
 * are closed, and the new ones are opened and get the unused bytes. Returns 0; -ENOMEM; -EPROTO
 * when a stage that is removed has bytes inside that it has not passed on; -EMSGSIZE when the
 * unused bytes do not fit into one window: with these errors nothing is changed; or the error of
 * a stage's `open`. */
int domi_wire_change_pipeline(domus_wire *wire, const domus_pipeline *next);

/* Remove the stage that leaves the pipeline (domus_wire_leave()), and give its bytes to the next
 * stage. Returns 0; -ENOMEM. */
int domi_wire_remove_leaving_stage(domus_wire *wire);

/* Returns the state of an open stage of the wire; NULL: it is not open, or there is no such
 * stage. */
void *domi_wire_get_state_of_stage(const domus_wire *wire, const domus_stage *stage);

/* Close a stage of the wire, if it is open, and free all that it has. */
void domi_wire_close_stage(domus_wire *wire, uint32_t index);

/* Close all stages of the wire and free it. A `wire` of NULL is allowed. */
void domi_wire_free(domus_wire *wire);

/* Result of domi_wire_decode_next_message(): the stages have done much without making a message, or
 * one has said that it took long (`yields`). It has to be called again, with the bytes that it has
 * not taken. */
#define DOMI_WIRE_BUSY 2

/* Decode up to the next message, with the bytes that were kept and then with `*size` new ones at
 * `*bytes`; `*bytes` and `*size` are moved behind the bytes that were taken. Returns 1 when there
 * is a message (`made`); 0 when all bytes were taken and more are needed, or after
 * domi_wire_record_end_of_peer() nothing is left; DOMI_WIRE_BUSY; or a negative errno, which is
 * returned from then on. If an error comes after a message was begun, `made.any` is true, and the
 * caller releases its payload. */
int domi_wire_decode_next_message(domus_wire *wire, const char **bytes, size_t *size);

/* Let the message stage make pieces of a body of the bytes that follow, as it does after
 * domus_wire_rest(). Returns the number of that body; 0 when one is open already, or the stage
 * cannot do that. */
uint32_t domi_wire_open_body_of_rest(domus_wire *wire);

/* Record that the peer of the wire has finished sending: at its end domi_wire_decode_next_message()
 * calls `end` of the stages. */
void domi_wire_record_end_of_peer(domus_wire *wire);

/* Prepare the wire for the next message, because the last one was handled, and its slices are free
 * or copied. Returns 0; -ENOMEM when bytes that are still in use could not be copied: then they
 * have to stay where they are, and this is called again before the next
 * domi_wire_decode_next_message(). */
int domi_wire_prepare_next_message(domus_wire *wire);

/* Let an idle wire keep no memory for bytes, because all bytes that came were used. Returns true if
 * no stage has bytes, so domi_wire_decode_next_message() would find nothing; false if it has to be
 * called. */
bool domi_wire_return_page_if_all_bytes_used(domus_wire *wire);

/* Copy the bytes that slices of the last message show, if it has any slices, because the message
 * lives on. Returns 0; -ENOMEM. */
int domi_wire_copy_slices_of_message(domus_wire *wire);

/* Let the page of the message's slices keep the memory in which their bytes lie, because the
 * message lives on, there is no memory for a copy, and the wire will be freed. The memory is the
 * window of the message stage, or the buffer of the owner, which `lender` keeps. Returns whether it
 * has taken `lender`. */
bool domi_wire_hold_memory_of_slices(domus_wire *wire, domi_lender lender);

/* True if decoding has stopped because the peer has said that its message is the last, and for no
 * other reason. */
static inline bool domi_wire_has_decoded_last_message(const domus_wire *wire)
{
    return wire->last_decoded && wire->failed == 0;
}

/* True if a byte stage of the wire has not finished the handshake with which its protocol
 * begins. */
static inline bool domi_wire_is_in_handshake(const domus_wire *wire)
{
    for (uint32_t i = 0; i + 1 < wire->count; i++) {
        if (wire->stages[i].expects)
            return true;
    }
    return false;
}

/* True if no byte of the peer waits in the wire to be decoded, or in a stage to be passed on. Bytes
 * of a message that is not done do not count. */
bool domi_wire_has_no_undecoded_bytes(const domus_wire *wire);

/* Encode a message, or the failure of a request, into `out`. Returns 0; or a negative errno, and
 * `out` is as it was. If `broken` is set then, byte stages can encode nothing more, and the channel
 * has to be reset. */
int domi_wire_encode_message(domus_wire *wire, uint64_t id, const domus_type *type,
                             const void *payload);
int domi_wire_encode_failure_of_request(domus_wire *wire, uint64_t id, const domus_type *request,
                                        int error);

/* Encode bytes that tell the peer to send the open body (domi_wire_encode_that_body_is_wanted()),
 * or that an answer is cut (domi_wire_encode_cut_of_answer(), with `stream` set). Return as
 * domi_wire_encode_message(); for a stage without such a function 0, and `error`. */
int domi_wire_encode_that_body_is_wanted(domus_wire *wire);
int domi_wire_encode_cut_of_answer(domus_wire *wire, uint64_t id, int error);

/* Append bytes of the wire's owner to `out`, after the byte stages have wrapped them. The slice
 * stays the caller's. Returns 0; a negative errno, and `out` is as it was. */
int domi_wire_append_bytes_of_owner(domus_wire *wire, const void *data, size_t size);
int domi_wire_append_slice_of_owner(domus_wire *wire, domus_slice slice);

/* Call `wake` of the message stage, because the time of domus_wire_wake() has come. Returns as
 * domi_wire_encode_message(); the error of the stage, and then the caller resets the channel. */
int domi_wire_call_wake_of_stage(domus_wire *wire, bool owed);

/* Call `carry` of the stage that carries inner channels, because these have news. Returns as
 * domi_wire_call_wake_of_stage(). */
int domi_wire_call_carry_of_stage(domus_wire *wire);

/* Let the stage choose an inner channel for an ask, on a wire that lends inner channels. Returns as
 * domi_wire_call_wake_of_stage(); -EOPNOTSUPP if there is no such stage. */
int domi_wire_choose_inner_for_ask(domus_wire *wire, domus_inner **ret_inner);

/* True if a stage of the wire carries inner channels. */
bool domi_wire_carries_inner_channels(const domus_wire *wire);

/* True if a stage of the wire appends bytes at the end of the output. */
bool domi_wire_has_end_of_output(const domus_wire *wire);

/* Call `finish` of each stage once, because nothing more will be sent: it appends what ends the
 * stage's output. Returns 0; or the error of a stage, and then the caller resets the channel. */
int domi_wire_append_end_of_output(domus_wire *wire);

#endif
