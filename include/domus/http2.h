/* HTTP/2 (RFC 9113) for servers of HTTP, as a byte stage in front of domus_http_stage. It is in the
 * library domus-http2, and made with nghttp2. docs/http2.md is the manual.
 *
 *     static const domus_pipeline web = {
 *         .stages = (const domus_pipeline_stage[]){
 *             {&domus_http2_stage, NULL}, {&domus_http_stage, &http}, {0}},
 *     };
 *
 * A connection whose first bytes are those of HTTP/2 is served as such, with TLS in front or
 * without; on any other the stage takes itself out, and HTTP/1.1 is spoken as if it had never been
 * there. Browsers ask for HTTP/2 by ALPN: the protocols of TLS have to be "h2, http/1.1".
 *
 * No line of a handler is changed. Each stream is served by an inner channel (domus/inner.h): a
 * channel of the same actor's behaviour, whose requests are those of HTTP/1.1 in all things, with
 * bodies in pieces, streams, trailers, time-outs and limits. It serves one stream at a time, and
 * later ones when that is answered, as a connection that is kept alive does. Flow control follows
 * what the handlers have read: a peer gets credit for the bytes of a body that were used.
 *
 * The streams of a connection are answered in the order of their priorities (RFC 9218: the field
 * Priority, and PRIORITY_UPDATE).
 *
 * A peer that goes beyond a limit of its connection gets GOAWAY with ENHANCE_YOUR_CALM.
 *
 * Thread-safety: as all stages (domus/stage.h). */
#ifndef DOMUS_HTTP2_H
#define DOMUS_HTTP2_H

#include <domus/inner.h>
#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of domus_http2_stage. NULL: all defaults. A limit of 0 is its default. */
typedef struct domus_http2_options {
    /* Most streams at a time, 1..1000; 0 means 100. More: REFUSED_STREAM. A peer that reads no
     * refusals, and goes 1,000 streams beyond, gets GOAWAY with PROTOCOL_ERROR. */
    uint32_t streams_max;
    /* Most bytes of the names and values of a head, with 32 more for each field, 1024..61440; 0
     * means 32768; more gets status 431. */
    uint32_t head_max;
    /* most fields of a head, and of trailers, 1..65535; 0 means 100; more gets status 431 */
    uint32_t fields_max;
    /* most bytes of the body of one stream that may come before they are used,
     * 1024..16777216; 0 means 65535. A peer that sends more gets FLOW_CONTROL_ERROR */
    uint32_t stream_window;
    /* most unused bytes of bodies, of all streams of a connection together, 65535..16777216; 0
     * means 1 MiB */
    uint32_t window;
    /* Most streams within a second that the peer takes back, or begins wrongly, 1..100000; 0 means
     * 200. */
    uint32_t resets_max;
    /* Most frames within a second that ask for nothing: SETTINGS, PING, PRIORITY, empty DATA, kinds
     * of frames that nobody knows, and WINDOW_UPDATE, as far as these are more than two for each
     * frame of a body that was sent, and one for each 512 bytes of it, 1..100000; 0 means 1000 */
    uint32_t controls_max;
    /* Whether WebSockets may be opened in streams (RFC 8441): the peer is told that by
     * SETTINGS_ENABLE_CONNECT_PROTOCOL. For listeners one of whose handlers accepts them
     * (domus/websocket.h); without it browsers open a connection of HTTP/1.1 for each. */
    bool websockets;
    uint8_t reserved[3]; /* 0 */
} domus_http2_options;

DOMUS_API extern const domus_stage domus_http2_stage;

#ifdef __cplusplus
}
#endif

#endif
