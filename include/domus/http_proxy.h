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
 *         {&domus_http_request_type, serve, DOMUS_HTTP_PROXY_FRAME, 0, NULL}, {.type = NULL}};
 *
 * **The request** goes on with its method, path, query and body, and with all fields but those that
 * belong to the connection (domus_http_add_end_to_end()) and Expect. X-Forwarded-For gets the
 * client's address behind those that it has, and Via this side's name. A client that asks to be
 * told to send its body is told when the body is read. An upgrade is passed on as a request without
 * one.
 *
 * **The answer** comes back with its status, body and fields, and Via. Trailers are left
 * away, and a Location is not changed.
 *
 * Bodies go through piece by piece, both ways at a time, and each side is read as fast as the other
 * takes it. If the server answers with 300 or more before it has the whole body, the rest of the
 * body is not sent.
 *
 * **Errors.** 502 when the server cannot be reached, ends or sends wrong bytes before its answer
 * has begun; 503 when no connection is free (`queue_max` of the pool); 504 when its time is over.
 * When the answer has begun, it is cut off by a reset, so the client sees that it is not all. A
 * client that goes away costs the connection that serves it.
 *
 * Thread-safety: only from within a handler of a request on its channel, with its stack. */
#ifndef DOMUS_HTTP_PROXY_H
#define DOMUS_HTTP_PROXY_H

#include <domus/http_client.h>
#include <domus/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The frame that the row of the handler has to give, at least. */
#define DOMUS_HTTP_PROXY_FRAME 224u

/* Where requests go. It stays valid as long as a request is under way. */
typedef struct domus_http_proxy {
    domus_address upstream; /* a pool of connections whose bodies come in pieces */
    const char *path;       /* taken off the begin of paths that begin with it; NULL: nothing */
    const char *host;       /* the Host that the server gets; NULL: that of the request */
    const char *name;       /* in Via, a token; NULL: "domus" */
    uint64_t timeout_ns;    /* for the answer to begin to a request without a body, or with a whole
                               one; 0: 60 s. For others, and for pauses within bodies,
                               answer_timeout_ns of the channel options of the pool */
} domus_http_proxy;

/* Pass a request on, and its answer back: `return domus_http_pass(...)`, as the last thing that a
 * handler or a sequence does. It uses the frame of the conversation from its begin on, so the row
 * that has begun it gives at least DOMUS_HTTP_PROXY_FRAME bytes.
 *
 * Returns as a handler does; -EINVAL without a frame, or for a wrong `name` or `host`. */
DOMUS_API int domus_http_pass(domus_stack *stack, const domus_http_request *request,
                              const domus_http_proxy *proxy);

#ifdef __cplusplus
}
#endif

#endif
