/* Bodies of the media type multipart/byteranges: several ranges of one resource in one answer (RFC
 * 9110 14.6). Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_BYTERANGES_H
#define DOMI_PROTOCOLS_HTTP_BYTERANGES_H

#include <domus/file.h>
#include <domus/http_range.h>

#define DOMI_HTTP_RANGES_MOST 64u
/* bytes of the boundary between parts, with a zero at its end */
#define DOMI_HTTP_BOUNDARY_SIZE 33u

/* The parts of such a body: each is the head of a range and the range; the last part is the end of
 * the body, without a range. `{.count = 0}` is empty. */
typedef struct domi_http_byteranges {
    domus_file_part parts[DOMI_HTTP_RANGES_MOST + 1];
    uint32_t count;
    uint64_t size; /* bytes of the body */
    char boundary[DOMI_HTTP_BOUNDARY_SIZE];
} domi_http_byteranges;

/* Make the parts for `count` ranges (2..DOMI_HTTP_RANGES_MOST) of a resource with `length` bytes
 * and this media type (NULL: it is not told). The boundary is random, so nobody can have put it
 * into the bytes. The caller frees the texts of the parts, or passes them on. Returns 0; -ENOMEM;
 * the error of getrandom(2). */
int domi_http_make_byteranges(const domus_http_range *ranges, uint32_t count, uint64_t length,
                              const char *media, domi_http_byteranges *ret_body);
void domi_http_free_byteranges(domi_http_byteranges *body);

/* Make the body as one slice, from `whole`, the bytes of the resource. Returns 0; -ENOMEM. */
int domi_http_join_byteranges(const domi_http_byteranges *body, domus_slice whole,
                              domus_slice *ret_slice);

#endif
