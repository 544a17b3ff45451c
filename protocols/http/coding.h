/* Compressed bodies of HTTP: which encodings a peer accepts, and the streams of zlib that compress
 * and decompress bodies. */
#ifndef DOMI_PROTOCOLS_HTTP_CODING_H
#define DOMI_PROTOCOLS_HTTP_CODING_H

#include "protocols/http/http.h"

#include <domus/http_gzip.h>
#include <domus/slice.h>

#include <zlib.h>

/* ---- encoding.c -------------------------------------------------------------------------------*/

/* Encodings of bodies: which one a client accepts, and which one the body of a message has. Any
 * thread. */

/* Returns whether the fields of a request prefer gzip to plain bytes, or accept both equally. */
bool domi_http_does_client_prefer_gzip(domus_slice fields);

/* Returns whether the fields of a message tell that its body is encoded by gzip alone. */
bool domi_http_is_body_gzip(domus_slice fields);

/* Returns whether the field If-None-Match contains `etag`, a strong tag, in the weak form ("W/"
 * before it) that the tag has in answers which the stage compresses. */
bool domi_http_do_fields_list_weak_tag(domus_slice fields, const char *etag);

/* ---- inflater.c -------------------------------------------------------------------------------*/

/* The state of zlib while the body of a response is decompressed. */

struct domi_http_inflater {
    z_stream zlib;
    bool is_begun;
    bool is_whole; /* the current member of the gzip stream was read to its end */
};

/* Begin to decompress the body of a response, whose head was read. Returns 0; -ENOMEM. */
int domi_http_begin_to_decompress(domi_http_state *state);

/* Returns whether the compressed body may end here: it is empty, or the last member of its gzip
 * stream is complete. */
bool domi_http_may_compressed_body_end(const domi_http_state *state);

/* Free the state of zlib that decompresses a body. */
void domi_http_free_inflater(domi_http_state *state);

/* ---- unzip.c ----------------------------------------------------------------------------------*/

/* Decompresses the body of a response while it is gathered. */

/* Compressed bytes that one step decompresses, at most: a hostile peer can let them become 1 MiB,
 * and normally they become some KiB. */
#define DOMI_HTTP_UNZIP_STEP 1024u

/* Decompress some bytes of a body, and gather the result. Returns 0; -EPROTO for bytes that are not
 * gzip; -EMSGSIZE when the body becomes too large; -ENOMEM. */
int domi_http_decompress_and_gather(domi_http_state *state, const char *bytes, size_t size);

/* ---- deflate.c --------------------------------------------------------------------------------*/

/* Streams of zlib that compress bodies, taken from the pool of a domus_http_gzip. One thread at a
 * time uses a stream. */

#define DOMI_HTTP_WHOLE_MOST   (UINT32_C(1) << 20)
#define DOMI_HTTP_STREAMS_MOST UINT32_C(65536)
#define DOMI_HTTP_LEVEL_MOST   9
/* compressed bytes that one step of a stream produces, at most */
#define DOMI_HTTP_DEFLATED_ROOM 16384u

typedef struct domi_http_deflater domi_http_deflater;

/* Return an option of the compression of bodies, or its default if it is 0. */
uint32_t domi_http_gzip_least_size(const domus_http_gzip *gzip);
uint32_t domi_http_gzip_max_whole_size(const domus_http_gzip *gzip);

/* Take a compressing stream from the pool, ready to begin; give a stream back to the pool. Taking
 * returns NULL when all are in use, or without memory. */
domi_http_deflater *domi_http_deflater_take_from_pool(domus_http_gzip *gzip);
void domi_http_deflater_give_back(domi_http_deflater *deflater);

/* Add a stream to a channel's list of streams in use; give back all streams of such a list. A
 * stream that was just taken is in no list. */
void domi_http_deflater_add_to_list(domi_http_deflater *deflater, domi_http_deflater **list);
void domi_http_deflaters_give_all_back(domi_http_deflater **list);

/* Give `size` bytes to the stream; with `is_last` the stream ends behind them. Then call
 * domi_http_deflate_next_output() until it returns 0: each call returns compressed bytes, which are
 * valid until the next call. Together they are all that can be made of the bytes given. */
void domi_http_deflate_set_input(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                                 bool is_last);
uint32_t domi_http_deflate_next_output(domi_http_deflater *deflater, const char **ret_bytes);

/* Compress a whole body with a stream. Returns 0; -EMSGSIZE if the body would become no smaller;
 * -ENOMEM. */
int domi_http_deflate_whole_body(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                                 domus_slice *ret_slice);

/* Set the length of the body that the head of the answer has announced; count bytes of the body,
 * and return false if they exceed that length; return whether the length is reached, or none was
 * announced. */
void domi_http_deflater_expect_length(domi_http_deflater *deflater, uint64_t length);
bool domi_http_deflater_count_body_bytes(domi_http_deflater *deflater, uint32_t size);
bool domi_http_deflater_is_announced_length_reached(const domi_http_deflater *deflater);

#endif
