/* A client of HTTP: one actor that is asked for whole addresses.
 *
 *     domus_http_client_open(stack, NULL, &web);
 *     ...
 *     domus_http_request request = {.method = DOMUS_HTTP_GET};
 *     (void)domus_slice_copy("http://example.com/a", 20, &request.target);
 *     return domus_ask(stack, web, &domus_http_request_type, &request, answered);
 *
 * Ask it with a domus_http_request whose target is an address (domus/http_url.h); names and numbers
 * both do. The answer is a domus_http_response, whatever its status is.
 *
 * **Connections.** For each origin (scheme, host, port) it has a pool on demand (domus/pool.h):
 * connections are kept, and used again; a request goes to the first one that is free. When
 * `origins_max` origins have one, the pool that was idle for the longest time ends; its bodies that
 * are still read go on. If none is idle, a request for a further origin fails with -EBUSY.
 *
 * **Repeats.** A server may close a connection that is kept just when a request is sent. GET, HEAD,
 * PUT, DELETE, OPTIONS, TRACE and PROPFIND are then sent again, up to `tries_max` times in all; any
 * other request fails with -EPIPE, because it may have been done.
 *
 * **Redirects.** 301, 302, 303, 307 and 308 are followed as RFC 9110 15.4 says: behind a 303, and a
 * 301 or 302 to POST, comes a GET without a body (HEAD stays HEAD). To another origin no
 * Authorization, Cookie, Proxy-Authorization and Host are sent. More than `redirects_max` of them
 * fail with -ELOOP. A redirect that cannot be followed (no Location, or one that is no address of
 * http) is the answer itself.
 *
 * **Time.** A request may take as long as its ask may (domus_ask_within()), with all redirects, or
 * else `timeout_ns`: then it fails with -ETIMEDOUT, and its connection is reset. A body that comes
 * in pieces is not bound by that, but by channel.bodyTimeout.
 *
 * **Expect.** A request with `expects` waits with its body for 100 Continue (domus/http.h), at each
 * redirect anew. If the answer is 417, it is sent once more, without the expectation.
 *
 * **Bodies** of requests are whole. The body of an answer comes whole, too, up to 1 MiB; or, with
 * &domus_http_streaming_connection as `connection`, in pieces: then whoever has asked reads
 * `stream` of the answer.
 *
 * **https** wants a byte stage, which libdomus-tls has (domus/tls.h):
 *
 *     static domus_tls_options verified;              .tls: a context of a client, without a host
 *     static const domus_pipeline_stage secure[] = {{&domus_tls_stage, &verified}, {NULL, NULL}};
 *     const domus_http_client_options options = {.secure = secure};
 *
 * Then a certificate has to lead to an authority of the system and to have the host's name, as the
 * settings of the context say, before a byte of a request is sent. A redirect from https to http is
 * not followed, but is the answer, unless `redirects_to_http` says so: whoever listens would read
 * what the first address was to hide. With ALPN the context offers "http/1.1" or nothing; also
 * "h2", if the connections may speak HTTP/2 (domus/http2_client.h).
 *
 * Errors of an ask: -EINVAL for what is no address or no request; -EPROTONOSUPPORT for https
 * without `secure`, and for other schemes; -EACCES for a server of https that was not accepted, and
 * other errors of the handshake (domus/tls.h), which further requests also get for up to
 * `backoff_ns`; -EBUSY, -ELOOP, -EPIPE and -ETIMEDOUT as the text before says; -ENOBUFS when
 * `queue_max` requests wait; -EMSGSIZE for an answer beyond the limits; the error of the connect
 * (domus/connect.h), which further requests also get for up to `backoff_ns`; -EOPNOTSUPP for an
 * upgrade; -ENOMEM. Cookies are not kept.
 *
 * Thread-safety of the functions here: as they say. The address may be asked from any thread. */
#ifndef DOMUS_HTTP_CLIENT_H
#define DOMUS_HTTP_CLIENT_H

#include <domus/channel_options.h>
#include <domus/http.h>
#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* greatest value of origins_max, the most origins that one client has connections to */
#define DOMUS_HTTP_ORIGINS_MAX 64u
/* value of redirects_max: no redirect is followed, and each one is the answer */
#define DOMUS_HTTP_NO_REDIRECTS UINT32_MAX

/* Options of a client of HTTP. All fields may be 0. */
typedef struct domus_http_client_options {
    /* The behaviour of connections: domus_http_connection (NULL), domus_http_streaming_connection,
     * or one of the program, which has the stage of HTTP as a client with `origin_form`, and
     * domus_http_client_encodes as its `encodes`. */
    const domus_behaviour *connection;
    uint32_t origins_max;     /* most origins that have connections at a time, 1..64; 0 means 16 */
    uint32_t connections_max; /* most connections to one origin at a time, 1..64; 0 means 8 */
    /* most requests that wait for a connection to one origin; 0 means 128 */
    uint32_t queue_max;
    /* most redirects that are followed for one request, 1..20; 0 means 5 */
    uint32_t redirects_max;
    /* most times that a request that may be done twice is sent, 1..255; 0 means 2 */
    uint32_t tries_max;
    uint64_t timeout_ns; /* longest time of an ask that has no deadline; 0 means 60 s */
    /* longest time of one connect; 0: as the key connect.timeout says */
    uint64_t connect_timeout_ns;
    uint64_t idle_timeout_ns; /* time for which an idle connection is kept open; 0 means 15 s */
    /* time for which a host that cannot be reached is left alone, 1 ms..1 h; 0 means 1 s */
    uint64_t backoff_ns;
    /* settings of connections that differ from the configuration; copied; NULL: none */
    const domus_channel_options *channel;
    /* Byte stages in front of connections of https, up to one whose stage is NULL; they and their
     * options stay valid as long as the client and its connections. NULL: https fails with
     * -EPROTONOSUPPORT. An empty list is -EINVAL. */
    const struct domus_pipeline_stage *secure;
    bool redirects_to_http; /* whether redirects from https to http are followed, too */
    /* whether there is a client on each thread, and one address for all of them: an ask goes to
     * the client on its own thread (domus/router.h) */
    bool per_thread;
} domus_http_client_options;

/* Make a client, an actor on the thread of the running one and its child. `options` may be NULL,
 * and is copied. domus_http_client_open_outside() does the same for a foreign thread: the client is
 * on the next thread, round robin, and the root is its parent.
 *
 * Thread-safety: the first only from within a handler, with its stack; the second any foreign
 * thread.
 * Returns 0; -EINVAL for a wrong option; what `check` of a stage of the connection returned; and as
 * domus_spawn() and domus_spawn_many(), or domus_outside_spawn() and domus_outside_spawn_many(). */
DOMUS_API int domus_http_client_open(domus_stack *stack, const domus_http_client_options *options,
                                     domus_address *ret_address);
DOMUS_API int domus_http_client_open_outside(domus_system *system,
                                             const domus_http_client_options *options,
                                             domus_address *ret_address);

/* Behaviours of connections to servers: one request at a time, targets in origin form, and bodies
 * whole up to 1 MiB; or bodies in pieces, of any length. They may also be given to
 * domus_pool_open(). */
DOMUS_API extern const domus_behaviour domus_http_connection;
DOMUS_API extern const domus_behaviour domus_http_streaming_connection;

/* The types of asks that such a connection sends: domus_http_request_type and
 * domus_http_repeatable_type. */
DOMUS_API extern const domus_type *const domus_http_client_encodes[];

/* A type of requests that may be done twice, with the payload of domus_http_request_type;
 * domus_http_repeatable is the list of it for `repeatable` of a pool. */
DOMUS_API extern const domus_type domus_http_repeatable_type;
DOMUS_API extern const domus_type *const domus_http_repeatable[];

/* Returns whether a method may be done twice: GET, HEAD, PUT, DELETE, OPTIONS, TRACE or
 * PROPFIND. */
DOMUS_API bool domus_http_is_repeatable(domus_http_method method);

#ifdef __cplusplus
}
#endif

#endif
