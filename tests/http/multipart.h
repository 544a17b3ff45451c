/* The events of a parser of multipart/form-data as text, so that a test can compare the same bytes
 * in one piece and in many. */
#ifndef DOMT_HTTP_MULTIPART_H
#define DOMT_HTTP_MULTIPART_H

#include <domus/http_multipart.h>

/* Let a parser for `content_type` take the first `cut` bytes, then the others `step` at a time (0:
 * all at once), and the end. Returns its events as text, valid until the next call but three:
 *
 *   name "file" type [bytes]
 *   name [bytes]
 *   DONE
 *
 * The last line is the error, with its words: "EPROTO a part has no name". */
const char *domt_multipart_trace_of_bytes(const char *content_type,
                                          const domus_http_multipart_limits *limits,
                                          const char *bytes, size_t size, size_t cut, size_t step);

/* Check that the trace of the bytes is `expected`: in one piece, cut in two at each byte, and byte
 * by byte. */
void domt_multipart_expect_trace(const char *content_type,
                                 const domus_http_multipart_limits *limits, const char *bytes,
                                 size_t size, const char *expected);

#endif
