/* The stage of NATS in a kit, and its messages as text, one in each line. */
#ifndef DOMT_NATS_TRACE_H
#define DOMT_NATS_TRACE_H

#include "tests/support/codec.h"

#include <domus/nats.h>

/* Decode a server's bytes in one piece (step 0) or in pieces of `step` bytes. Returns the messages
 * as text. */
const char *domt_nats_trace_decoding(const domus_nats_stage_options *options, const char *bytes,
                                     size_t size, size_t step);

/* Check that the trace of a server's bytes is `expected` wherever they are cut. */
void domt_nats_expect_trace_of_decoding(const domus_nats_stage_options *options, const char *bytes,
                                        size_t size, const char *expected);

/* Encode one message with a new stage. Returns the bytes for the server, valid until the next call,
 * or the name of the error. */
const char *domt_nats_encode_message(const domus_type *type, const void *payload);

#endif
