/* HTTP/1.1, server and client, as the message stage of a pipeline (domus/pipeline.h). It is in the
 * library domus-http. docs/http.md is the manual.
 *
 * **A server** (DOMUS_ROLE_SERVER) gets a domus_http_request for each request of the peer, and
 * answers it with a domus_http_response, or a domus_http_text:
 *
 *     static const domus_pipeline web = {
 *         .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {0}},
 *     };
 *     static int answer(domus_stack *stack, void *self, const void *payload)
 *     {
 *         const domus_http_request *request = payload;
 *         if (domus_slice_equals(domus_http_path(request), "/", 1))
 *             return domus_reply(stack, &domus_http_text_type,
 *                                &(domus_http_text){200, "text/plain", "hello\n"});
 *         return domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 404});
 *     }
 *
 * The stage frames the answer (Content-Length, chunks, or the end of the connection), adds Date and
 * Connection, leaves the body away that an answer to HEAD must not have, and keeps the connection
 * or closes it as the peer has asked. A request that fails gets a status for its error. Bytes that
 * are no request, or can be read in two ways, get 400, 413, 414, 417, 431, 501 or 505, and then the
 * connection is closed; docs/http.md has the list.
 *
 * **A client** (DOMUS_ROLE_CLIENT) asks its channel with a domus_http_request, and gets a
 * domus_http_response, whatever its status is. Interim responses (1xx) are passed over.
 *
 * A request with `expects`, and with a body, has "Expect: 100-continue". Its body leaves when the
 * server says 100, when `continue_timeout_ns` is over (a server may not know the field), or when
 * another request is to follow on this connection. If the final answer comes before, the body never
 * leaves: the answer has `close` set, because the server cannot know what the next bytes are, and
 * the writer of a body in pieces hears of it by -EALREADY, as of every answer that comes early.
 *
 * With `unzip` its requests have "Accept-Encoding: gzip", unless their fields say something else,
 * and a body with "Content-Encoding: gzip" is decompressed while it comes: `body_max` bounds what
 * it becomes, and it takes 48 KiB of zlib's own memory meanwhile. The channel fails with -EPROTO if
 * the bytes are no gzip, are cut off, or are followed by others; several parts behind each other
 * are one body. Other encodings are left as they are.
 *
 * **Bodies** come whole, as a slice of their message, up to `body_max` bytes; or, with `streams` of
 * the options, in pieces that are read from `stream` by domus_body_read() (domus/stream.h), perhaps
 * with a domus_http_trailers at the end. "Expect: 100-continue" is answered when the body is
 * wanted. An answer is sent in pieces by domus_reply_begin() with a domus_http_response: in chunks,
 * or plain if its `length` is given.
 *
 * Thread-safety: the stage as all stages (domus/stage.h); all functions here may be called by any
 * thread. */
#ifndef DOMUS_HTTP_H
#define DOMUS_HTTP_H

#include <domus/budget.h>
#include <domus/http_gzip.h>
#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_http_chain;

/* --- the stage ------------------------------------------------------------------------------ */

/* Empty lines that a server passes over before a request line (RFC 9112 2.2). They count as bytes
 * and as time of the head (head_max, channel.headTimeout). One more empty line gets 400. */
#define DOMUS_HTTP_EMPTY_LINES_MAX 8u

/* Options of domus_http_stage. NULL: a server with all defaults. A limit of 0 is its default. */
typedef struct domus_http_options {
    domus_role role; /* role of this side: DOMUS_ROLE_SERVER or DOMUS_ROLE_CLIENT */
    bool streams;    /* whether received bodies come in pieces (domus/stream.h) */
    bool no_date;    /* whether a server's answers have no field Date */
    /* Whether a client sends the target "http://host/path" as "/path", with the host as Host, as
     * servers are asked. False: it sends the target as it is, as proxies are asked. */
    bool origin_form;
    /* whether a client, without `streams`, decompresses the bodies of answers */
    bool unzip;
    /* most bytes of a request's target, 1..60000; 0 means 8192; more gets status 414 */
    uint32_t target_max;
    /* most bytes of the head of a message, 64..61440; 0 means 32768; more gets status 431 */
    uint32_t head_max;
    /* most fields of a head, and of trailers, 1..65535; 0 means 100; more gets status 431 */
    uint32_t fields_max;
    /* with `streams` the length up to which bodies of a known length come whole (bodies of an
     * unknown length do by domus_http_gather()), up to 1 GiB; 0: none comes whole */
    uint32_t whole_max;
    /* most bytes of a received body; 0 means 1 MiB. Up to 1 GiB without `streams`. A request with
     * more gets status 413; a body in pieces fails with -EMSGSIZE, and so does a client's
     * channel */
    uint64_t body_max;
    /* most bytes of the extensions of all chunks of a body; 0 means 4096; more gets status 413 */
    uint32_t extension_max;
    /* most bytes of the trailers of a body, 2..61440; 0 means 8192; more gets status 431 */
    uint32_t trailer_max;
    /* value of the field Host for a client's requests that have none; NULL: such requests are
     * refused with -EINVAL */
    const char *host;
    /* Bound of the bodies that have come in part, over all channels whose options have this
     * budget: a body counts while it is gathered, until it is whole. Beyond the bound the peer
     * gets 503, and the channel is closed. NULL: each channel may gather body_max. Valid as long
     * as the pipeline is used. */
    domus_budget *budget;
    /* settings of the compression of a server's answers (domus/http_gzip.h); NULL: no
     * compression */
    domus_http_gzip *gzip;
    /* time for which a client's body waits for 100 Continue, before it is sent without that; 1
     * ms..60 s; 0 means 1 s */
    uint64_t continue_timeout_ns;
    /* chain of parts around the handlers of a server (domus/http_chain.h); NULL: none */
    const struct domus_http_chain *chain;
} domus_http_options;

/* The message stage of HTTP/1.1. Memory is taken for bytes that have come, never for those that are
 * only announced. */
DOMUS_API extern const domus_stage domus_http_stage;

/* --- requests ------------------------------------------------------------------------------- */

/* Methods of requests. A request with any other method gets 501, and so does CONNECT, because a
 * tunnel is no request. */
typedef enum domus_http_method {
    DOMUS_HTTP_GET,
    DOMUS_HTTP_HEAD,
    DOMUS_HTTP_POST,
    DOMUS_HTTP_PUT,
    DOMUS_HTTP_DELETE,
    DOMUS_HTTP_OPTIONS,
    DOMUS_HTTP_PATCH,
    DOMUS_HTTP_TRACE,
    DOMUS_HTTP_CONNECT,
    DOMUS_HTTP_COPY,
    DOMUS_HTTP_LOCK,
    DOMUS_HTTP_MKCOL,
    DOMUS_HTTP_MOVE,
    DOMUS_HTTP_PROPFIND,
    DOMUS_HTTP_PROPPATCH,
    DOMUS_HTTP_REPORT,
    DOMUS_HTTP_SEARCH,
    DOMUS_HTTP_UNLOCK,
    DOMUS_HTTP_PURGE,
    DOMUS_HTTP_METHODS /* the number of the methods above */
} domus_http_method;

/* Returns the name of a method, such as "GET"; NULL for a number that is no method. */
DOMUS_API const char *domus_http_method_name(domus_http_method method);

/* A request, as it was received or is to be sent. The message owns the slices.
 *
 * The path of a received target is in its normal form (RFC 3986 6.2.2), so that a filter and a
 * route cannot take it for two: escapes of letters, digits and "-._~" are these bytes ("/%6Ason" is
 * "/json"), and all other escapes have capital digits and stay, such as %2F, %00 and %25. Nothing
 * is decoded twice: "%2541" stays. A '%' without two digits stays as it is, with escapes that
 * would become its digits. Segments "." and ".." are not taken out; "%2e" is one of these then. The
 * query is as it was sent. */
typedef struct domus_http_request {
    /* target: "/path?query", "*", or "http://host/path"; a received one has escapes in normal
     * form */
    domus_slice target;
    /* the fields, each as "name: value" and CR LF (domus_http_field(), domus_http_add()) */
    domus_slice fields;
    /* the whole body of the request; empty if there is none, or it comes in pieces */
    domus_slice body;
    domus_body stream; /* a received body that comes in pieces; if there is none, its number is 0 */
    /* length of the body in bytes; 0 for a body in pieces whose length is not known before its end
     * (it is sent in chunks then) */
    uint64_t length;
    uint8_t method; /* method of the request, as a number of domus_http_method */
    /* received: minor version of HTTP, 1 of HTTP/1.1, 0 of HTTP/1.0; not used to send */
    uint8_t minor;
    bool close; /* whether the connection ends with the answer to this request */
    /* whether the request asks to change to the protocol of its field Upgrade; a request that is
     * sent also gets "Connection: upgrade" */
    bool upgrade;
    bool expects; /* sent: whether the body waits for 100 Continue; received: not used */
    /* Whether the connection becomes a tunnel. Sent with `upgrade`, by domus_request_begin(): the
     * request has no body. If the answer is 101, what is written to this request, and the body of
     * that answer, are the bytes of the other protocol; else nothing may be written. The channel
     * has `streams`. Received: not used */
    bool tunnels;
    uint8_t reserved[2];
    /* received: number of the request in the chain of its connection; 0: there is none; not used
     * to send */
    uint64_t exchange;
} domus_http_request;

/* The type of requests. Its `release` frees the slices. */
DOMUS_API extern const domus_type domus_http_request_type;

/* Return parts of a request: the host and its port, as Host or an absolute target says; the path of
 * the target, which domus/http_query.h decodes; what stands behind its '?'. The empty slice if
 * there is none.
 *
 * Ownership: the slices own nothing, so they are not freed. They are valid as long as the request
 * is, and domus_slice_keep() makes an owner of one. */
DOMUS_API domus_slice domus_http_host(const domus_http_request *request);
DOMUS_API domus_slice domus_http_path(const domus_http_request *request);
DOMUS_API domus_slice domus_http_query(const domus_http_request *request);

/* Returns whether a host, with its port or without, is a name of loopback: "localhost", a name
 * below it (RFC 6761), or an address. A page of any site can lead its own name to 127.0.0.1 when it
 * was loaded (DNS rebinding), and then read what is served there as its own. So a service on
 * loopback that shows anything answers to the names of loopback alone. */
DOMUS_API bool domus_http_host_is_loopback(domus_slice host);

/* --- responses ------------------------------------------------------------------------------ */

/* A response to a request, as it is to be sent or was received. The message owns the slices. */
typedef struct domus_http_response {
    domus_slice fields; /* the fields of the response, each as "name: value" and CR LF */
    domus_slice body;
    domus_body stream; /* a received body that comes in pieces; if there is none, its number is 0 */
    /* length of the body in bytes; 0 for a body in pieces whose length is not known before its end.
     * In a whole answer to HEAD, and with 304, the length of the body that a GET would get, if
     * `body` is not that body */
    uint64_t length;
    const char *media; /* sent: the Content-Type, a constant of the program; NULL: none, or it is in
                          `fields`. Received: NULL */
    /* status of the response; sent: 101, 200..599; 101 is "Connection: upgrade" */
    uint16_t status;
    uint8_t minor; /* received: minor version of HTTP/1, 1 or 0 */
    bool close;    /* whether the connection ends with this response */
    bool unzipped; /* received: whether `body` was decompressed; `fields` are as they came */
    uint8_t reserved[3];
    domus_slice trailers; /* sent with a whole body: fields behind it, as domus_http_trailers says.
                             Received: empty */
} domus_http_response;

/* The type of responses. Its `release` frees the slices. */
DOMUS_API extern const domus_type domus_http_response_type;

/* A response that needs no memory: constants of the program, which are not copied before
 * they are sent. */
typedef struct domus_http_text {
    uint16_t status;
    const char *media; /* value of the Content-Type; NULL: the answer has no such field */
    const char *text;  /* the whole body as text; NULL: the answer has no body */
} domus_http_text;

DOMUS_API extern const domus_type domus_http_text_type;

/* The fields behind the last piece of a body in chunks. To send them, domus_reply_end() with this
 * type, or `trailers` of a whole answer, which leaves in chunks then. They are sent to peers of
 * HTTP/2, and to those of HTTP/1.1 whose request says "TE: trailers" (RFC 9110 6.5.1); to all
 * others, and if the answer is not in chunks, they are left away. Fields that are none are refused
 * as those of a head are, and so are Host and the fields that frame a message. HTTP/2 has its
 * limits for them (docs/http2.md). */
typedef struct domus_http_trailers {
    domus_slice fields;
} domus_http_trailers;

/* The type of trailers. Its `release` frees the fields. */
DOMUS_API extern const domus_type domus_http_trailers_type;

/* Returns the reason phrase of a status, such as "Not Found"; "" for a status that has none. */
DOMUS_API const char *domus_http_reason(unsigned status);

/* --- fields --------------------------------------------------------------------------------- */

/* A field of a message. Its slices own nothing, and are valid as long as those that it was read
 * from. */
typedef struct domus_http_line {
    domus_slice name;  /* name of the field as it was sent: with capitals or without */
    domus_slice value; /* value of the field without the spaces around it */
} domus_http_line;

/* Find the first field that has a name, which is given in small letters. Returns false if there is
 * none. */
DOMUS_API bool domus_http_field(domus_slice fields, const char *name, domus_slice *ret_value);

/* Read the next field of a message. `*at` begins as 0. Returns false behind the last field. */
DOMUS_API bool domus_http_next(domus_slice fields, uint32_t *at, domus_http_line *ret_line);

/* Add a field to an appender, whose slice (domus_append_end()) becomes the `fields` of a message.
 * The stage sets Content-Length, Transfer-Encoding and Connection itself, and refuses to send
 * fields of these names with -EINVAL.
 *
 * Returns 0; -EINVAL for a name that is no token, and for a value with a control character other
 * than a tab (so no field can end its line); or as domus_append(). After an error nothing is added
 * any more, and domus_append_end() returns it. */
DOMUS_API int domus_http_add(domus_appender *fields, const char *name, const char *value);
DOMUS_API int domus_http_add_bytes(domus_appender *fields, const char *name, const void *value,
                                   size_t size);
DOMUS_API int domus_http_add_number(domus_appender *fields, const char *name, uint64_t value);

/* Add the fields of a received message to one that is made of it, except those that belong to its
 * connection: Connection and those that it names, Keep-Alive, Proxy-Connection, TE, Trailer,
 * Transfer-Encoding, Upgrade and Content-Length. For a proxy. Returns as domus_http_add(). */
DOMUS_API int domus_http_add_end_to_end(domus_appender *fields, domus_slice received);

#ifdef __cplusplus
}
#endif

#endif
