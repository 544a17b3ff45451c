/* Streams of zlib that compress, taken from the pool of a domus_http_gzip (deflate.c). A stream is
 * used by one thread at a time. */
#ifndef DOMI_PROTOCOLS_HTTP_DEFLATE_H
#define DOMI_PROTOCOLS_HTTP_DEFLATE_H

#include <domus/http_gzip.h>
#include <domus/slice.h>

#define DOMI_HTTP_WHOLE_MOST    (UINT32_C(1) << 20)
#define DOMI_HTTP_STREAMS_MOST  UINT32_C(65536)
#define DOMI_HTTP_LEVEL_MOST    9
#define DOMI_HTTP_DEFLATED_ROOM 16384u /* bytes that a step brings at most */

typedef struct domi_http_deflater domi_http_deflater;

/* An option with its default. */
uint32_t domi_http_gzip_least(const domus_http_gzip *gzip);
uint32_t domi_http_gzip_whole_max(const domus_http_gzip *gzip);

/* Take a stream that has begun. NULL: all are in use, or there is no memory. Give it back. */
domi_http_deflater *domi_http_deflater_take(domus_http_gzip *gzip);
void domi_http_deflater_give(domi_http_deflater *deflater);

/* The streams of a channel, from its first; a stream that is taken is in no list. */
void domi_http_deflater_list(domi_http_deflater *deflater, domi_http_deflater **list);
void domi_http_deflaters_give(domi_http_deflater **list);

/* Hand `size` bytes to the stream; `is_last`: it ends with them. Then call domi_http_deflate()
 * until it returns 0: each call brings some bytes of what goes to the peer, valid until the next
 * one. Together they are all that can be made of what was handed in. */
void domi_http_deflate_begin(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                             bool is_last);
uint32_t domi_http_deflate(domi_http_deflater *deflater, const char **ret_bytes);

/* Compress a whole body. Returns 0; -EMSGSIZE if it becomes no smaller; -ENOMEM. */
int domi_http_deflate_whole(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                            domus_slice *ret_slice);

/* The length that the answer of this stream has said: count some bytes of it. Returns whether they
 * do not exceed it. And whether it was met, or none was said. */
void domi_http_deflater_expect(domi_http_deflater *deflater, uint64_t length);
bool domi_http_deflater_count(domi_http_deflater *deflater, uint32_t size);
bool domi_http_deflater_is_met(const domi_http_deflater *deflater);

#endif
