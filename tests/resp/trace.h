/* The messages that the stage of RESP makes of bytes, as text, so that a test can compare the same
 * bytes in one piece and in many. */
#ifndef DOMT_RESP_TRACE_H
#define DOMT_RESP_TRACE_H

#include "tests/support/codec.h"

#include <domus/resp.h>

/* Make a kit with the stage of RESP in it. */
void domt_resp_make_kit(domt_codec *resp, const domus_resp_options *options);

/* Encode a message, and return the bytes that the stage sends. The test fails if the stage refuses
 * the message. */
const char *domt_resp_message_to_bytes(domt_codec *resp, const domus_type *type,
                                       const void *payload);

/* Print a message to `text`, which has room for `size` bytes: "command [GET] [a]", "reply *2 :1
 * $[a]". Long texts are printed as their size and a checksum. */
void domt_resp_print_message(const domus_stage_message *message, char *text, size_t size);

/* Let a stage with `options` decode: the first `cut` bytes, then the others `step` at a time (0:
 * all at once), and then the end. Returns its messages as text, a line for each, and finally the
 * error and the bytes sent to the peer; valid until the next call but three. */
const char *domt_resp_trace_decoding(const domus_resp_options *options, const char *bytes,
                                     size_t size, size_t cut, size_t step);

/* Check that the trace of the bytes is `expected` in one piece, cut in two at each byte, and byte
 * by byte. */
void domt_resp_expect_trace(const domus_resp_options *options, const char *bytes, size_t size,
                            const char *expected);

#endif
