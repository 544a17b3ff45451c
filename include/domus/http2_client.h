/* HTTP/2 (RFC 9113) for clients of HTTP, as a byte stage in front of domus_http_stage. It is in the
 * library domus-http2, and made with nghttp2. docs/http2.md is the manual.
 *
 *     static const domus_http_options to_servers = {.role = DOMUS_ROLE_CLIENT,
 *                                                   .origin_form = true};
 *     static const domus_pipeline_stage stages[] = {
 *         {&domus_http2_client_stage, NULL}, {&domus_http_stage, &to_servers}, {NULL, NULL}};
 *
 * Requests are made as those of HTTP/1.1 (domus/http_client.h, domus/pool.h, domus_connect()), and
 * nothing else is changed: bodies in pieces both ways, trailers, Expect, time-outs, repeats.
 *
 * **Which protocol.** Behind TLS the two sides choose by ALPN: the context of the client offers
 * "h2" and "http/1.1", and without "h2" the stage takes itself out, and HTTP/1.1 is spoken as if it
 * had never been there. In clear, and with `prior_knowledge`, it speaks HTTP/2 only if that is set.
 * The stage is the first one of its pipeline; that of TLS stands in front of it (`secure` of
 * domus/http_client.h, `front` of domus/pool.h and domus/connect.h).
 *
 * **Streams.** Each request travels in an inner channel (domus/lend.h): a channel of the same
 * behaviour. A connection takes as many at a time as `streams_max` and the server allow, and a pool
 * opens another one only when its connections are full. Asks wait until the SETTINGS of the server
 * have come, within channel.headTimeout. While the server takes no stream at all, one request waits
 * for that; when its time is over, the connection is left.
 *
 * **Errors.** A request that runs out of time gets -ETIMEDOUT, and its stream is reset with CANCEL;
 * its neighbours go on. A request that the server has refused (REFUSED_STREAM), or has not looked
 * at (above the last stream of its GOAWAY), was not done: a pool sends it again, whatever its
 * method is, `tries_max` times in all, and without a pool it fails with -ENOTCONN. Any other reset
 * is the end of a connection to its request: a pool repeats what may be done twice, and all else
 * fails with -EPIPE. Behind GOAWAY the connection takes no further request, and ends when those
 * that it has are answered. A request of more than 124 fields, 4 KiB of names or 64 KiB of head
 * fails with -E2BIG. An answer that has come whole is kept, whatever the connection does behind it;
 * if its server does not end the stream, that is reset with CANCEL after DOMUS_INNER_REST_NS.
 *
 * **A server that goes beyond a limit** of its connection gets GOAWAY with ENHANCE_YOUR_CALM, and
 * one of a stream gets that stream reset. Pushes are refused.
 *
 * Thread-safety: as all stages (domus/stage.h). */
#ifndef DOMUS_HTTP2_CLIENT_H
#define DOMUS_HTTP2_CLIENT_H

#include <domus/lend.h>
#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Time within which a server that seems to be lost has to answer a PING. It gets the PING when
 * nothing has come from it since a request began that was given up (its deadline was over, or
 * nobody wanted the answer). If nothing comes in this time either, the server counts as lost: the
 * next request does not go to it but to another connection, as one that was refused, and this
 * connection ends. So a server that is gone without a word costs as few requests as over HTTP/1.1,
 * and one that is idle or slow costs nothing but that it has to answer a PING. */
#define DOMUS_HTTP2_SILENCE_NS UINT64_C(2000000000)

/* Options of domus_http2_client_stage. NULL: all defaults. A limit of 0 is its default. */
typedef struct domus_http2_client_options {
    /* whether the server is known to speak HTTP/2, so that ALPN is not used */
    bool prior_knowledge;
    /* most streams of a connection at a time, if the server allows them, 1..1000; 0 means 100.
     * Further requests wait */
    uint32_t streams_max;
    /* Most bytes of the names and values of the head of an answer, or of its trailers, with 32 more
     * for each field, 1024..61440; 0 means 32768. More: the stream is reset. */
    uint32_t head_max;
    /* most fields of a head, or of trailers, 1..65535; 0 means 100. More: the stream is reset */
    uint32_t fields_max;
    /* most bytes of one answer's body that may come before they are used, 1024..16777216; 0 means
     * 65535. A server that sends more gets FLOW_CONTROL_ERROR */
    uint32_t stream_window;
    /* most unused bytes of bodies, of all streams of a connection together, 65535..16777216; 0
     * means 1 MiB */
    uint32_t window;
    /* Most frames within a second that ask for nothing: SETTINGS, PING, PRIORITY, DATA without a
     * byte, answers of 1xx, kinds of frames that nobody knows, RST_STREAM, HEADERS and
     * WINDOW_UPDATE for streams that are closed, and WINDOW_UPDATE, as far as these are more than
     * two for each frame of a body that was sent, and one for each 512 bytes of it, 1..100000; 0
     * means 1000 */
    uint32_t controls_max;
} domus_http2_client_options;

DOMUS_API extern const domus_stage domus_http2_client_stage;

#ifdef __cplusplus
}
#endif

#endif
