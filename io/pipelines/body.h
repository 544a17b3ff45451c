/* Bodies: the requests and answers of the peer that come in pieces (domus/stream.h).
 *
 * A body is open from the message to which it belongs until its end, and one at a time. A read is
 * an ask of the library to the channel's actor; it waits in the body, and the next piece that is
 * decoded is its answer. Without a read nothing is decoded: the bytes wait as bytes. When the
 * request is answered, the rest is decoded and thrown away, up to a bound. Owner thread. */
#ifndef DOMI_IO_PIPELINES_BODY_H
#define DOMI_IO_PIPELINES_BODY_H

#include "io/pipelines/pipe.h"

/* The type of the asks that read a body; their payload is a domus_body. */
extern const domus_type domi_read_type;

/* Begin the body of the peer's message that was just decoded. */
void domi_body_begin(domi_pipe *pipe);

/* Handle an ask that reads a body. The channel is open. */
void domi_body_handle_ask_for_piece(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask);

/* True if the next piece of the peer's open body has a reader, or is skipped. A read that has
 * expired is dropped here, before a piece is made for it. */
bool domi_body_is_next_piece_wanted(domi_manager *manager, domi_pipe *pipe);

/* Give a new piece of the open body to its reader, or throw it away. */
void domi_body_give_piece_or_throw_away(domi_manager *manager, domi_pipe *pipe, domi_envelope *made,
                                        bool last);

/* Count `size` bytes that were used while the rest of a body is skipped. Returns 0; -EMSGSIZE
 * beyond the bound channel.skipMax. */
int domi_body_count_skipped_bytes(domi_pipe *pipe, uint64_t size);

/* Let the peer's open body fail, because its bytes are wrong or have ended. Nothing more is
 * decoded, and the channel closes when the requests are answered; a channel that has asked is
 * reset. */
void domi_body_fail_and_close(domi_manager *manager, domi_pipe *pipe, int error);

/* Begin to skip the rest of the peer's open body if nobody may read it any more. Called at the end
 * of a run. */
void domi_body_skip_if_unreadable(domi_manager *manager, domi_pipe *pipe);

/* End the open body, because the channel ends. */
void domi_body_end_with_channel(domi_manager *manager, domi_pipe *pipe);

#endif
