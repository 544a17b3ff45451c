/* Bodies that are compressed: which encodings a peer takes, and the streams of zlib that pack and
 * unpack them. */
#ifndef DOMI_PROTOCOLS_HTTP_CODING_H
#define DOMI_PROTOCOLS_HTTP_CODING_H

#include "protocols/http/http.h"

#include <domus/http_gzip.h>
#include <domus/slice.h>

#include <zlib.h>

/* ---- encoding.c -------------------------------------------------------------------------------*/

/* Encodings of bodies: which one a client accepts, and which one a body has. Any thread. */

/* Returns whether the fields of a request prefer gzip to plain bytes, or accept both equally. */
bool domi_http_wants_gzip(domus_slice fields);

/* Returns whether the fields of a message tell that gzip is the only encoding of its body. */
bool domi_http_is_gzip(domus_slice fields);

/* Returns whether If-None-Match of the fields contains `etag`, a strong tag, in its weak form ("W/"
 * before it), which it has in answers that the stage compresses. */
bool domi_http_lists_weakly(domus_slice fields, const char *etag);

/* ---- inflater.c -------------------------------------------------------------------------------*/

/* The state of zlib while the body of a response is decompressed. */

struct domi_http_inflater {
    z_stream zlib;
    bool is_begun;
    bool is_whole; /* the current part of the gzip body was read to its end */
};

/* Begin to decompress the body of the response whose head was read. Returns 0; -ENOMEM. */
int domi_http_unzip_begin(domi_http_state *state);

/* Returns whether the body may end here: it is empty, or its last part is complete. */
bool domi_http_unzip_is_whole(const domi_http_state *state);

/* Free the state of the decompression. */
void domi_http_unzip_end(domi_http_state *state);

/* ---- unzip.c ----------------------------------------------------------------------------------*/

/* Decompresses the body of a response while it is gathered. */

/* Compressed bytes that are decompressed in one step, at most: a hostile peer can make them 1 MiB,
 * and normally they become some KiB. */
#define DOMI_HTTP_UNZIP_STEP 1024u

/* Decompress some bytes, and gather the result. Returns 0; -EPROTO for bytes that are not gzip;
 * -EMSGSIZE when the body is too large; -ENOMEM. */
int domi_http_unzip(domi_http_state *state, const char *bytes, size_t size);

/* ---- deflate.c --------------------------------------------------------------------------------*/

/* Streams of zlib that compress, taken from the pool of a domus_http_gzip. A stream is
 * used by one thread at a time. */

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
