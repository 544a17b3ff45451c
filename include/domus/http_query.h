/* Queries and paths of HTTP: parameters, and bytes that are written as "%41".
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_QUERY_H
#define DOMUS_HTTP_QUERY_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Decode "%41" to "A" in `size` bytes at `text`, and if it is a `form`, '+' to a space. `to` has
 * room for `size` bytes, and may be `text`.
 *
 * Returns the bytes written; -EINVAL for a '%' without two digits of base 16 behind it. */
DOMUS_API int64_t domus_http_decode(char *to, const char *text, size_t size, bool form);

/* Decode a path, and take out its empty segments and "." and "..", so that the result names a place
 * below the root. It begins with '/', and ends with one if the path does. `to` has room for `size`
 * + 1 bytes, and may not be `text`.
 *
 * Returns the bytes written, with no zero behind them; -EINVAL for a wrong escape, a byte 0, a '/'
 * or '\' that is written as an escape, a path that leaves the root, or one that does not begin with
 * '/'. */
DOMUS_API int64_t domus_http_decode_path(char *to, const char *text, size_t size);

/* Append bytes as a part of a query or a path: each byte but letters, digits and "-._~" is written
 * as an escape. Returns as domus_append(). */
DOMUS_API int domus_http_encode(domus_appender *appender, const void *bytes, size_t size);

/* A parameter of a query or a form, not decoded. Its slices own nothing. */
typedef struct domus_http_parameter {
    domus_slice name;
    domus_slice value; /* value of the parameter; empty if there is no '=' */
} domus_http_parameter;

/* Read the next parameter of a query such as "a=b&c". `*at` begins as 0. Empty parameters are
 * passed over. Returns false behind the last one. */
DOMUS_API bool domus_http_next_parameter(domus_slice query, uint32_t *at,
                                         domus_http_parameter *ret_parameter);

/* Find the first parameter whose decoded name is `name`, and decode its value into `to`, which has
 * room for `room` bytes.
 *
 * Returns the bytes of the value; -ENOENT without such a parameter; -EINVAL for a wrong escape in
 * it; -EMSGSIZE when the value, before it is decoded, is longer than `room`. */
DOMUS_API int64_t domus_http_query_value(domus_slice query, const char *name, char *to,
                                         size_t room);

#ifdef __cplusplus
}
#endif

#endif
