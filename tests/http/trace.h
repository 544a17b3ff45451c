/* The messages that the stage of HTTP makes of bytes, as text, so that a test can compare the same
 * bytes in one piece and in many. */
#ifndef DOMT_HTTP_TRACE_H
#define DOMT_HTTP_TRACE_H

#include "tests/support/codec.h"

#include <domus/http.h>

/* Begin with the stage of HTTP in a kit, with these options. */
void domt_http_start_codec(domt_codec *http, const domus_http_options *options);

/* Let a peer send a request or a part of its body, and return the id of the message that the stage
 * has decoded. */
uint64_t domt_http_feed_request_text(domt_codec *http, const char *bytes);

/* Encode requests of a client, one for each letter of a text: G is a GET, H a HEAD, U a GET that
 * requests an upgrade. */
void domt_http_encode_requests(domt_codec *http, const char *asks);

/* Returns a slice with a text, which the test frees. */
domus_slice domt_slice_of_text(const char *text);

/* Let a stage with `options` decode: the first `cut` bytes, then the others `step` at a time (0:
 * all at once), and then the end. A client has asked `asks` before. Returns its messages as text, a
 * line for each, valid until the next call but three:
 *
 *     GET /path 1.1 (Host: a|Accept: b) [body]
 *     200 1.1 close (Server: c) [body]
 *     POST / 1.1 (Host: a) 5 in pieces: [body] (Trailer: d)
 *
 * At last comes the error, with the status that the peer gets: "EPROTO 400". */
const char *domt_http_trace_of_bytes(const domus_http_options *options, const char *asks,
                                     const char *bytes, size_t size, size_t cut, size_t step);

/* Check that the trace of the bytes is `expected`: in one piece, cut in two at each byte, and byte
 * by byte. */
void domt_http_expect_trace(const domus_http_options *options, const char *asks, const char *bytes,
                            size_t size, const char *expected);

#endif
