/* The client's side of a connection of HTTP/2 (http2.h has what both sides share): its stage
 * (client_stage.c), the callbacks of its session (client_session.c), the requests that inner
 * channels send (client_ask.c), the answers that they get (client_answer.c), whether the server is
 * there (client_silence.c), and the lives of its lanes (client_lane.c):
 *
 *     idle --> busy --> idle           the stream is over, and its answer was used; or the ask has
 *               |  |                   failed before its stream began
 *               |  \--> read --> idle  the answer was not used yet
 *               \-----> the end        the stream or the inner channel was cut
 *
 * An inner channel without an ask ends after a while: that of an idle lane, and one whose answer
 * was used while the server has not ended the stream, which is cut then.
 *
 * All functions are called within a call of the stage, in which `wire` of the connection is set. */
#ifndef DOMI_PROTOCOLS_HTTP2_CLIENT_H
#define DOMI_PROTOCOLS_HTTP2_CLIENT_H

#include "protocols/http2/http2.h"

#include <domus/http2_client.h>

extern const domi_h2_side domi_h2_client;

/* --- client_session.c ------------------------------------------------------------------------- */

/* The server takes no further request. */
void domi_h2_client_go_away(domi_h2 *h2);

/* --- client_ask.c ----------------------------------------------------------------------------- */

/* The inner channel of a busy lane has news: go on with its request. Returns 0; -ENOMEM. */
int domi_h2_client_go_on(domi_h2_lane *lane);

/* --- client_silence.c ------------------------------------------------------------------------- */

/* Bytes of the server have come. */
void domi_h2_client_hear(domi_h2 *h2);

/* The stream of a lane ends without an answer: if nothing has come since it began, ask the server
 * whether it is there. */
void domi_h2_client_doubt(const domi_h2_lane *lane);

/* Returns whether the server was asked that, and has been silent for too long. */
bool domi_h2_client_is_lost(const domi_h2 *h2);

/* --- client_answer.c -------------------------------------------------------------------------- */

/* A block of fields of a stream begins. Its fields follow, and its end. Return 0; -ENOMEM. */
void domi_h2_client_begin_block(domi_h2 *h2, int32_t id);
int domi_h2_client_take_field(domi_h2 *h2, nghttp2_rcbuf *name, nghttp2_rcbuf *value);
int domi_h2_client_end_block(domi_h2 *h2, int32_t id, bool is_last);

/* A part of a body. Returns 0; -ENOMEM. */
int domi_h2_client_take_data(domi_h2 *h2, int32_t id, const uint8_t *bytes, size_t size);

/* --- client_lane.c ---------------------------------------------------------------------------- */

/* The stream of a busy lane is over, with this code, or never began. An answer that has come whole
 * is kept. */
void domi_h2_client_leave(domi_h2_lane *lane, uint32_t code);

/* The request of a busy lane is none that can be sent: its ask fails with this error. */
void domi_h2_client_fail(domi_h2_lane *lane, int error);

/* The ask of a busy lane has failed before it had a stream. */
void domi_h2_client_take_back(domi_h2_lane *lane);

/* The inner channel of a lane that is not busy has news. */
void domi_h2_client_settle(domi_h2_lane *lane);

/* No answer comes any more: end all busy lanes. Nothing is sent after this. */
void domi_h2_client_end(domi_h2 *h2);

#endif
