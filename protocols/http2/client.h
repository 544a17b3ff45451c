/* The client's side of a connection of HTTP/2 (http2.h has the parts that both sides share): its
 * stage (client_stage.c), the callbacks of its session (client_session.c), the requests that inner
 * channels send (client_ask.c), the answers that they get (client_answer.c), whether the server
 * still responds (client_silence.c), and the states of its lanes (client_lane.c):
 *
 *   idle --> busy --> idle           the stream is over, and its answer was used; or the ask has
 *             |  |                   failed before its stream began
 *             |  \--> read --> idle  the answer was not used yet
 *             \-----> the end        the stream or the inner channel was cut
 *
 * An inner channel without an ask ends after a while: the one of an idle lane, and one whose answer
 * was used while the server has not ended the stream, which is reset then.
 *
 * All functions are called within a call of the stage, in which `wire` of the connection is set. */
#ifndef DOMI_PROTOCOLS_HTTP2_CLIENT_H
#define DOMI_PROTOCOLS_HTTP2_CLIENT_H

#include "protocols/http2/http2.h"

#include <domus/http2_client.h>

extern const domi_h2_side domi_h2_client;

/* --- client_session.c ------------------------------------------------------------------------- */

/* Handle that the server accepts no further request on the connection (GOAWAY). */
void domi_h2_client_stop_lending_at_goaway(domi_h2 *h2);

/* --- client_ask.c ----------------------------------------------------------------------------- */

/* Continue the request of a busy lane whose inner channel has new bytes, or has ended. Returns 0;
 * -ENOMEM. */
int domi_h2_client_continue_request(domi_h2_lane *lane);

/* --- client_silence.c ------------------------------------------------------------------------- */

/* Record that bytes of the server have come, so it responds. */
void domi_h2_client_record_server_was_heard(domi_h2 *h2);

/* Handle a stream that ends without an answer: if no byte has come since it began, the server is
 * sent a PING. */
void domi_h2_client_ping_if_server_is_silent(const domi_h2_lane *lane);

/* Returns whether the server was sent a PING because it was in doubt, and has been silent for too
 * long since. */
bool domi_h2_client_is_server_lost(const domi_h2 *h2);

/* --- client_answer.c -------------------------------------------------------------------------- */

/* Begin a block of fields that comes on a stream; take a field of it; end the block. Return 0;
 * -ENOMEM. */
void domi_h2_client_begin_block_of_fields(domi_h2 *h2, int32_t id);
int domi_h2_client_take_field_of_answer(domi_h2 *h2, nghttp2_rcbuf *name, nghttp2_rcbuf *value);
int domi_h2_client_end_block_of_fields(domi_h2 *h2, int32_t id, bool is_last);

/* Pass a part of an answer's body to the lane of its stream. Returns 0; -ENOMEM. */
int domi_h2_client_pass_part_of_body(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size);

/* --- client_lane.c ---------------------------------------------------------------------------- */

/* End the stream of a busy lane with this error code of HTTP/2, even if it never began. An answer
 * that has come completely is kept. */
void domi_h2_client_end_stream_of_lane(domi_h2_lane *lane, uint32_t code);

/* Fail the ask of a busy lane whose request cannot be sent, with this errno. */
void domi_h2_client_fail_ask_of_lane(domi_h2_lane *lane, int error);

/* Free a busy lane whose ask has failed before it had a stream. */
void domi_h2_client_make_failed_lane_idle(domi_h2_lane *lane);

/* Handle events of the inner channel of a lane that is not busy: its answer is used up, or it
 * ends. */
void domi_h2_client_settle_or_end_idle_lane(domi_h2_lane *lane);

/* End all busy lanes, because no answer of the server comes any more. Nothing is sent after
 * this. */
void domi_h2_client_end_busy_lanes(domi_h2 *h2);

#endif
