/* gzip for the answers of a server: an option of the HTTP stage (domus/http.h).
 *
 *     static domus_http_gzip gzip;
 *     static const domus_http_options options = {.gzip = &gzip};
 *
 * An answer is compressed if the client accepts that (Accept-Encoding, at least as much as plain
 * bytes), and if it may be: it has a media type that becomes smaller (text of all kinds, JSON, XML,
 * JavaScript, SVG, WebAssembly), a status with a body but not 206, at least `least` bytes if its
 * length is known, no Content-Encoding or Content-Range of its own, and no "Cache-Control:
 * no-transform". A whole body must have `whole_max` bytes at most, because it is compressed in one
 * step; larger ones leave as they are. An answer in pieces is compressed piece by piece, and each
 * piece leaves at once, so that server-sent events come as they are sent. Its length is not known
 * before its end, so it leaves in chunks, and only to clients of HTTP/1.1.
 *
 * A compressed answer gets "Content-Encoding: gzip", and its ETag becomes a weak one ("W/" before
 * it), because the same tag names plain bytes. Every answer that may be compressed gets "Vary:
 * Accept-Encoding", compressed or not, and so does 304. An answer to HEAD has the fields of a
 * compressed one, without Content-Length, which nobody knows before the body is made.
 *
 * **Memory.** A stream of zlib takes 72 KiB (a window of 8 KiB). There are `streams_max` of them at
 * most; when all are in use, answers leave as they are. A whole body takes one for the time of the
 * call, an answer in pieces from its head to its end. Up to DOMUS_HTTP_GZIP_IDLE streams that are
 * not in use are kept. zlib takes its memory by malloc(3), so it is foreign memory
 * (domus/memory.h).
 *
 * **Time.** Level 1 compresses 50 to 100 MB a second, so 64 KiB take about 1 ms. A piece of more
 * than `whole_max` bytes is stored in the stream, and not compressed.
 *
 * If an answer has both a secret and text that a stranger has chosen, its compressed length tells
 * something of the secret (BREACH). Give such answers "Content-Encoding: identity".
 *
 * Requests that are compressed are handed on as they came, with their Content-Encoding. */
#ifndef DOMUS_HTTP_GZIP_H
#define DOMUS_HTTP_GZIP_H

#include <domus/export.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_GZIP_IDLE 8u

/* How answers are compressed, and the streams of all channels whose options point to it. It is the
 * caller's, and valid as long as the pipeline is used. Threads use it at the same time. */
typedef struct domus_http_gzip {
    uint32_t streams_max; /* most streams of zlib in use at a time, 1..65536; 0 means 64 */
    uint32_t least;       /* least bytes of a body that is compressed; 0 means 512 */
    /* most bytes of a whole body that is compressed, up to 1 MiB; 0 means 64 KiB */
    uint32_t whole_max;
    /* level of compression, from 1, which is quick, to 9, which makes the body smallest; 0 means
     * 1 */
    uint8_t level;
    uint8_t reserved[3]; /* 0 */
    /* The fields below are for the library alone, and begin as 0. */
    uint32_t streams;                 /* number of streams of zlib that exist, in use or not */
    void *idle[DOMUS_HTTP_GZIP_IDLE]; /* the streams of zlib that are not in use */
} domus_http_gzip;

/* Free the streams of zlib that are not in use, at the end of a program, or when there is nothing
 * to do. Thread-safety: any thread. */
DOMUS_API void domus_http_gzip_trim(domus_http_gzip *gzip);

#ifdef __cplusplus
}
#endif

#endif
