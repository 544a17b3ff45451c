/* Streams of zlib that compress, taken from the pool of a domus_http_gzip (deflate.c). A stream is
 * used by one thread at a time. */
#ifndef DOMI_PROTOCOLS_HTTP_DEFLATE_H
#define DOMI_PROTOCOLS_HTTP_DEFLATE_H

#include <domus/http_gzip.h>
#include <domus/slice.h>

#define DOMI_HTTP_WHOLE_MOST    (UINT32_C(1) << 20)
#define DOMI_HTTP_STREAMS_MOST  UINT32_C(65536)
#define DOMI_HTTP_LEVEL_MOST    9
#define DOMI_HTTP_DEFLATED_ROOM 16384u /* bytes that one step produces, at most */

typedef struct domi_http_deflater domi_http_deflater;

/* Return an option of the compression, or its default. */
uint32_t domi_http_gzip_least(const domus_http_gzip *gzip);
uint32_t domi_http_gzip_whole_max(const domus_http_gzip *gzip);

/* Take a stream, ready to begin, from the pool, and give it back. Taking returns NULL when all are
 * in use, or without memory. */
domi_http_deflater *domi_http_deflater_take(domus_http_gzip *gzip);
void domi_http_deflater_give(domi_http_deflater *deflater);

/* Add a stream to the list of a channel, and give back all streams of the list. A stream that is
 * taken is in no list. */
void domi_http_deflater_list(domi_http_deflater *deflater, domi_http_deflater **list);
void domi_http_deflaters_give(domi_http_deflater **list);

/* Give `size` bytes to the stream; with `is_last` it ends behind them. Then call
 * domi_http_deflate() until it returns 0: each call returns compressed bytes, valid until the next
 * call. Together they are all that can be made of the bytes given. */
void domi_http_deflate_begin(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                             bool is_last);
uint32_t domi_http_deflate(domi_http_deflater *deflater, const char **ret_bytes);

/* Compress a whole body. Returns 0; -EMSGSIZE if it becomes no smaller; -ENOMEM. */
int domi_http_deflate_whole(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                            domus_slice *ret_slice);

/* Set the length that the head of the answer has announced; count some of its bytes, and return
 * false if they exceed it; return whether the length was reached, or none was announced. */
void domi_http_deflater_expect(domi_http_deflater *deflater, uint64_t length);
bool domi_http_deflater_count(domi_http_deflater *deflater, uint32_t size);
bool domi_http_deflater_is_met(const domi_http_deflater *deflater);

#endif
