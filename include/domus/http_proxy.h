/* A reverse proxy: a handler hands its request on to another server, and the answer back.
 *
 *     static const domus_pool_options options = {.behaviour = &domus_http_streaming_connection,
 *                                                .connections_max = 32,
 *                                                .repeatable = domus_http_repeatable,
 *                                                .on_demand = true};
 *     static domus_http_proxy proxy = {.path = "/app", .name = "edge"};
 *     domus_pool_open(stack, "127.0.0.1:8080", &options, &proxy.upstream); (domus/http_client.h)
 *
 *     static int serve(domus_stack *stack, void *self, const void *payload)
 *     {
 *         return domus_http_pass(stack, payload, &proxy);
 *     }
 *     static const domus_on_peer rows[] = {
 *         {&domus_http_request_type, serve, DOMUS_HTTP_PROXY_FRAME, DOMUS_HTTP_PROXY_MARKS, NULL},
 *         {.type = NULL}};
 *
 * **The request** goes on with its method, query and body, with its path in the normal form in
 * which handlers see it (domus_http_request), and with all fields but those that
 * belong to the connection (domus_http_add_end_to_end()) and Expect. A client that asks to be told
 * to send its body is told when the body is read. A path with a segment "." or "..", also by
 * escapes, between escaped slashes or backslashes, or with a parameter behind ';', gets 400: the
 * server could take it for another path than the one that was routed here.
 *
 * **The asker.** A stranger can write what he likes, so what he says of himself is left away:
 * Forwarded, X-Real-IP and all fields that begin with X-Forwarded-, also with '_' in place of '-',
 * which servers behind CGI take for the same. The server gets X-Forwarded-For (the client's
 * address), X-Forwarded-Proto ("http", or "https" if `secure`) and X-Forwarded-Host (the Host that
 * the client has named). With `trusts_clients`, for clients that are proxies themselves, such
 * fields are kept: the address stands behind those that X-Forwarded-For has, and the other two are
 * added if they are missing. Via gets this side's name behind the others, both ways.
 *
 * **An upgrade** to WebSocket, or to one of the `upgrades`, is passed on if the request has no body
 * and its row is alone (DOMUS_ALONE, which is one of DOMUS_HTTP_PROXY_MARKS). If the server answers
 * 101 with the same protocol, the client gets that, and from then on the bytes of both sides go
 * through as they are: a tunnel. Bytes that the client has sent before wait until then. Any other
 * answer goes back as always, but ends the client's connection, because it may have sent bytes of
 * the other protocol, which must not be read as requests; the server's connection stays in the
 * pool. An upgrade to WebSocket that may not pass gets 501, and any other one is passed on as a
 * request without one, as HTTP allows. HTTP/2 in clear ("h2c") never passes, because nobody here
 * could look at its requests.
 *
 * A tunnel holds one piece (up to 64 KiB) for each direction, and what waits to be sent, up to
 * channel.sendHigh; a side that does not read slows the other one down, and nothing else. A side
 * that has finished sending lets the other one get a FIN, and may go on to read (half close); a
 * reset of one resets the other. It ends when the client's connection was idle both ways for
 * channel.idleTimeout; the other time-outs of HTTP do not bound it, except `request_timeout_ns` of
 * the pipeline, if that is set. It takes a connection of its pool for as long as it is there, so
 * `connections_max` bounds tunnels. With a pool of their own (`tunnels`) they take none from other
 * requests; without one, whoever opens as many tunnels as the pool has connections keeps all others
 * waiting. In a drain a tunnel goes on until it ends, and is cut behind shutdown.drainTimeout.
 *
 * **The answer** comes back with its status, body and fields. Location is rewritten if it names the
 * server (`keeps_location`: it is not), so that the client comes to this proxy again: "/b" and
 * "http://NAME/b" become "/app/b", a path, which clients resolve with the scheme and the name that
 * they have used; "/app/b" stays, since the server knows its path. NAME is the Host that the client
 * or the server got, or `origin`. An https address of the client's own Host keeps its start unless
 * `secure`, because then the server leads to https. All others stay: relative ones, which are right
 * as they are, those of other hosts, "//NAME/b". Nothing else is rewritten, neither cookies nor
 * documents. If the connections of the pool `unzip`, Content-Encoding, ETag and digests of a
 * decompressed body are left away.
 *
 * **Trailers** are left away, unless `passes_trailers`. Then those of a request go on, and those of
 * an answer if the client says "TE: trailers"; but no field that means something before a body
 * alone (RFC 9110 6.5.1), such as those of who has asked, of cookies, of passwords and of caches.
 * A server is not told that trailers are taken.
 *
 * Bodies go through piece by piece, both ways at a time, and each side is read as fast as the other
 * takes it. If the server answers with 300 or more before it has the whole body, the rest of the
 * body is not sent.
 *
 * **Errors.** 502 when the server cannot be reached, ends or sends wrong bytes before its answer
 * has begun; 503 when no connection is free (`queue_max` of the pool); 504 when its time is over.
 * When the answer has begun, it is cut off by a reset, so the client sees that it is not all.
 *
 * **A client that goes** while the server works ends its request. With DOMUS_HTTP_PROXY_MARKS it
 * has gone when it has finished sending, so that it does not keep a descriptor until the answer
 * comes; without them only a reset tells. The connection to the server is given up if a body is
 * under way, and otherwise waits for the answer, which is thrown away, up to answer_timeout_ns of
 * the pool.
 *
 * Thread-safety: only from within a handler of a request on its channel, with its stack. */
#ifndef DOMUS_HTTP_PROXY_H
#define DOMUS_HTTP_PROXY_H

#include <domus/http_client.h>
#include <domus/pipeline.h>
#include <domus/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Least bytes of the frame that the row of the handler has to give. */
#define DOMUS_HTTP_PROXY_FRAME 232u

/* The marks of the row of the handler (domus/pipeline.h): a client that finishes sending is gone,
 * and of requests that come together one is passed on at a time. */
#define DOMUS_HTTP_PROXY_MARKS (DOMUS_ALONE | DOMUS_ENDS_WITH_PEER)

/* Options of a proxy: where requests go, and how. It stays valid as long as a request is under
 * way. */
typedef struct domus_http_proxy {
    /* the pool of connections to the server, whose messages have bodies in pieces */
    domus_address upstream;
    /* another pool, for requests that may become tunnels; {NULL, 0}: tunnels take connections of
     * `upstream` */
    domus_address tunnels;
    /* prefix that is taken off paths that begin with it, in its normal form; NULL: none */
    const char *path;
    const char *host;   /* value of Host that the server gets; NULL: that of the request */
    const char *name;   /* name of this proxy in the field Via, a token; NULL: "domus" */
    const char *origin; /* a further name of the server in its own addresses: a host, perhaps
                           with a port; NULL: none */
    /* whether the clients of this proxy are proxies themselves, which say who has asked */
    bool trusts_clients;
    bool secure;          /* whether clients reach this proxy by https */
    bool passes_trailers; /* whether trailers, the fields behind bodies in chunks, are passed on */
    bool keeps_location;  /* whether the field Location comes back as the server has sent it */
    /* Protocols that requests may change to, in small letters and up to a NULL; NULL: "websocket"
     * alone. "h2c" and "h2" never are */
    const char *const *upgrades;
    /* time within which the answer has to begin, for a request without a body or with a whole one;
     * 0 means 60 s. For other requests, and for pauses within bodies, answer_timeout_ns of the
     * pool's channel options holds */
    uint64_t timeout_ns;
} domus_http_proxy;

/* Pass a request on, and its answer back: `return domus_http_pass(...)`, as the last thing that a
 * handler or a sequence does. It uses the frame of the conversation from its start on, so the row
 * that has begun it gives at least DOMUS_HTTP_PROXY_FRAME bytes.
 *
 * Returns as a handler does; -EINVAL without a frame, or for a wrong `name` or `host`. */
DOMUS_API int domus_http_pass(domus_stack *stack, const domus_http_request *request,
                              const domus_http_proxy *proxy);

#ifdef __cplusplus
}
#endif

#endif
