/* Ranges of bytes (RFC 9110, section 14): parts of a body that a request asks for.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_RANGE_H
#define DOMUS_HTTP_RANGE_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of a body: the bytes first..last. */
typedef struct domus_http_range {
    uint64_t first;
    uint64_t last;
} domus_http_range;

/* Read the value of the field Range, for a body of `length` bytes. `to` has room for `room` ranges
 * (1 or more). Ranges that lie beyond the body are left away; the others are cut to it.
 *
 * Returns the number of ranges: answer 206 with them. 0 when the field is no list of byte ranges,
 * has more than `room` of them, or some that overlap: answer as without the field. -ERANGE when
 * none of them is in the body: answer 416, with domus_http_add_unsatisfied(). */
DOMUS_API int domus_http_read_range(domus_slice value, uint64_t length, domus_http_range *to,
                                    uint32_t room);

/* Add the field Content-Range for a part of a body of `length` bytes, or for a body of which no
 * part can be had. Return as domus_append(). */
DOMUS_API int domus_http_add_content_range(domus_appender *fields, domus_http_range range,
                                           uint64_t length);
DOMUS_API int domus_http_add_unsatisfied(domus_appender *fields, uint64_t length);

#ifdef __cplusplus
}
#endif

#endif
