/* The chain: what stands around the handlers of a service, as a table beside its routes.
 *
 *     static const domus_http_row rows[] = {
 *         {{DOMUS_HTTP_ON(GET), "/", 0}, show_home, NULL},
 *         {{DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(PUT), "/kv/{key}", 0}, serve_key, for_users},
 *         {{0, NULL, 0}, NULL, NULL},
 *     };
 *     static const domus_http_chain chain = {
 *         .parts = (const domus_http_step[]){{&domus_http_request_id, NULL},
 *                                            {&domus_http_access_log, &log},
 *                                            {&domus_http_cross_origin, &cors},
 *                                            {&domus_http_limits, &limit},
 *                                            {NULL, NULL}},
 *         .rows = rows,
 *     };
 *     static const domus_http_options options = {.chain = &chain};
 *     ... .on_peer = (const domus_on_peer[]){
 *             {.type = &domus_http_request_type, .handle = domus_http_dispatch}, {.type = NULL}}
 *
 * **On the way in** the parts are entered from top to bottom; then the row of the request is found,
 * the parts of the row are entered from top to bottom, and the handler of the row is called. A
 * part may answer the request itself (429), fail it, or wait for another actor: then nothing behind
 * it is entered until it goes on. A request for which there is no row gets 404, 405, or the answer
 * to OPTIONS (domus_http_unrouted()), behind the parts of the chain.
 *
 * **On the way out** the parts that were entered are left from bottom to top, when the head of the
 * answer is made, however the answer has come: in the same turn, after a wait, from another actor,
 * in pieces, from a file, as an error that becomes a status, or from a part. A part may add fields
 * then. When the answer is over, each of these parts hears of its end once, from bottom to top.
 * There is no other order, and nothing is hidden.
 *
 * Bytes that are no request (400, 408, 431, ...), and requests that have failed before their
 * handler was called, have entered nothing. For them all parts of the chain, but of no row, are
 * left and ended with an exchange that `has_entered` none; so they are logged, too.
 *
 * **Handlers of one's own.** A program that finds its handlers otherwise calls domus_http_enter()
 * as the first thing in its handler. A handler that answers a request which has not entered the
 * chain gets its answer refused, and the peer gets 500: so nobody can forget the chain, and leave a
 * door open.
 *
 * **Costs.** A service without a chain has one test of a pointer more for each answer. A
 * connection of one with a chain has about 600 bytes from its first request on, and 400 more for
 * each further request under way, of which there are at most channel.requestsMax.
 *
 * Thread-safety: everything runs on the thread of the connection; options that parts of several
 * connections share are used by several threads. */
#ifndef DOMUS_HTTP_CHAIN_H
#define DOMUS_HTTP_CHAIN_H

#include <domus/endpoint.h>
#include <domus/http_router.h>
#include <domus/http_trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most parts of a chain and of one of its rows together. With more, the actor is refused
 * with -EINVAL. */
#define DOMUS_HTTP_PARTS_MAX 16u

#define DOMUS_HTTP_USER_MAX 64u /* most bytes of the name of a user (domus_http_set_user()) */

/* Most bytes of fields that the parts may add to one answer together. With more, the request
 * fails with -EMSGSIZE. */
#define DOMUS_HTTP_ADDED_MAX 2048u

/* Most bytes of a body that a part makes for an error. A larger body is not used. */
#define DOMUS_HTTP_FAILURE_MAX 4096u

/* The result with which `enter` of a part says that it has answered the request, forwarded it or
 * kept it. */
#define DOMUS_HTTP_ANSWERED 2

/* --- exchanges ------------------------------------------------------------------------------ */

/* A request and its answer, as the parts see them. Parts read it; they write to `word` and, by
 * domus_http_set_user(), to `user`. It is gone when the answer is over. */
typedef struct domus_http_exchange {
    /* address of the client (domus_channel_peer()); it may name nothing */
    const domus_endpoint *peer;
    const char *via; /* protocol of the request: "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0" */
    /* time at which the request entered the chain, as domus_now_ns() says; 0: it has not entered */
    uint64_t begun_ns;
    /* time at which the answer was over; set when `end` is called, and not before */
    uint64_t ended_ns;
    /* Bytes of the body of the answer that were handed to the connection, without the framing of
     * chunks, and for a body in pieces before compression. */
    uint64_t sent;
    /* a word that the part that is called may use, for this exchange alone; 0 at first */
    uint64_t *word;
    uint32_t thread; /* number of the thread that runs the connection (domus_channel_thread()) */
    uint16_t status; /* status of the answer, for `leave` and `end`; 0: there was no answer */
    /* method of the request, a domus_http_method; DOMUS_HTTP_METHODS: it is not known */
    uint8_t method;
    bool has_entered; /* whether `enter` of the part that runs now was called for this request */
    bool is_cut;      /* for `end`: whether the answer was cut, and did not come to its end */
    /* for `end`: the negative errno with which the request has failed; 0: it has not failed */
    int error;
    /* ids of the request; zeros until domus_http_request_id sets them */
    domus_http_trace trace;
    /* name of the user; "" until a part sets it (domus_http_set_user()) */
    char user[DOMUS_HTTP_USER_MAX + 1];
} domus_http_exchange;

/* Set the user of an exchange. Returns 0; -EMSGSIZE beyond DOMUS_HTTP_USER_MAX bytes; -EINVAL for a
 * name with a NUL in it. */
DOMUS_API int domus_http_set_user(domus_http_exchange *exchange, const char *name, size_t size);

/* Returns a number that all requests of a client have, over all its connections and streams, for
 * shares of what clients have together (domus/waiters.h): the address of IPv4, or the first 64 bits
 * of one of IPv6, because a customer gets so many addresses. 0: the client has no address (a Unix
 * socket). `proxies`: as in domus/http_limit.h. */
DOMUS_API uint64_t domus_http_client_number(const domus_http_exchange *exchange,
                                            const domus_http_request *request, uint32_t proxies);

/* --- parts ------------------------------------------------------------------------------------ */

/* An answer whose head is about to be sent, as `leave` of a part sees it. */
typedef struct domus_http_leaving {
    uint16_t status;
    /* negative errno with which the request has failed; 0: it was answered, or, without
     * `has_entered`, the bytes were no request */
    int error;
    domus_slice fields; /* fields of the answer, as its handler has set them */
    /* An appender for fields that parts add, by domus_http_add(). The first error of an addition
     * lets the request fail. */
    domus_appender *added;
    /* Whether a body is missing: true for a failure, whose body the library makes (the reason as
     * text), and for a whole answer from 400 on to which its handler has given no body. A part may
     * set one then: `body`, of up to DOMUS_HTTP_FAILURE_MAX bytes, which the library frees, and its
     * media type, a constant. */
    bool wants_body;
    const char *media; /* media type of `body`; NULL: text/plain */
    domus_slice body;  /* body that a part has made; a part that finds one here leaves it */
} domus_http_leaving;

/* A kind of part: a constant table of functions, all of which may be NULL. `options` are those of
 * its step in the chain. */
typedef struct domus_http_part {
    const char *name;

    /* Returns whether `options` are right: 0, or a negative errno. It is called when an actor with
     * such a chain is made, on any thread. */
    int (*check)(const void *options);

    /* A function that is called when a request has come. It may change the request, whose slices it
     * frees then, and it may call everything that a handler may call. A part of a row leaves the
     * target as it is: behind a wait, or when its handler gathers the body, the request fails
     * otherwise (-EINVAL).
     *
     * Returns 0, and the next part is entered; DOMUS_HTTP_ANSWERED; a negative errno, with which
     * the request fails; or DOMUS_PARKED, as domus_ask() and its like have returned it. The
     * function that is resumed then does one of three things: it answers the request; it returns a
     * negative errno; or it ends with `return domus_http_go_on(stack, self)`. It finds the exchange
     * by domus_http_exchange_of(). Waiting is for domus_http_dispatch() alone. */
    int (*enter)(domus_stack *stack, domus_http_exchange *exchange, domus_http_request *request,
                 const void *options);

    /* A function that is called when the head of the answer is made. It must not call anything that
     * wants a stack. If the answer cannot be sent (its handler has set a wrong field), this is
     * called again for the failure. */
    void (*leave)(domus_http_exchange *exchange, domus_http_leaving *leaving, const void *options);

    /* A function that is called when the exchange is over, once for each part that was entered, and
     * gives back what `word` has. */
    void (*end)(domus_http_exchange *exchange, const void *options);
} domus_http_part;

/* A step of a chain. The last one of a list has a NULL part. */
typedef struct domus_http_step {
    const domus_http_part *part;
    /* options of the part, which its header describes, and says whether NULL is allowed; valid as
     * long as the chain is used */
    const void *options;
} domus_http_step;

/* --- chains ----------------------------------------------------------------------------------- */

/* Handle a request that was found by its row, as a domus_handler does. `match` has the values of
 * the path; it is valid until the handler returns, its slices as long as the request. A sequence
 * is begun from it by DOMUS_BEGIN_SEQUENCE() (domus/await.h), and the row of on_peer gives the
 * frame. */
typedef int domus_http_handler(domus_stack *stack, void *self, const domus_http_request *request,
                               const domus_http_match *match);

/* A row of a chain: a route, its handler, and parts. The last row has a NULL path, and needs no
 * handler. */
typedef struct domus_http_row {
    domus_http_route on;        /* methods and path of the route, and a number for the user */
    domus_http_handler *handle; /* handler of the route, which is not NULL */
    /* further parts that stand around the handler of this row alone; NULL: none */
    const domus_http_step *parts;
} domus_http_row;

/* A chain. It is constant, as a pipeline is, and is the option `chain` of the stage. */
typedef struct domus_http_chain {
    /* parts that stand around all handlers, up to one whose `part` is NULL; NULL: none */
    const domus_http_step *parts;
    /* rows of routes, for domus_http_dispatch(); NULL: every request gets 404 */
    const domus_http_row *rows;
} domus_http_chain;

/* Take a request through the chain of its connection to the handler of its row. It is the handler
 * of a row of on_peer, for domus_http_request_type. The request fails with -EINVAL if its stage
 * has no chain. Returns as a handler does. */
DOMUS_API int domus_http_dispatch(domus_stack *stack, void *self, const void *payload);

/* Go on behind a part that has waited, from the function that was resumed: `return
 * domus_http_go_on(stack, self)`. Returns as a handler does; -EINVAL when no part of a request in
 * this conversation has waited. */
DOMUS_API int domus_http_go_on(domus_stack *stack, void *self);

/* Enter the chain from a handler of one's own, as its first call:
 *
 *     int result;
 *     if (!domus_http_enter(stack, payload, &result))
 *         return result;
 *
 * Returns true if the handler is to go on, also if the stage has no chain. False: the handler
 * returns the result. A part that waits lets the request fail with -EOPNOTSUPP.
 * Thread-safety: only from the handler of a request, on its channel, with its stack. */
DOMUS_API bool domus_http_enter(domus_stack *stack, const domus_http_request *request,
                                int *ret_result);

/* Returns the exchange of a request, for handlers, and for parts that were resumed; NULL when the
 * stage has no chain, the request has not entered it or was answered, and in any other actor than
 * that of the connection. It is valid until the answer is over, so not behind a wait. */
DOMUS_API domus_http_exchange *domus_http_exchange_of(domus_stack *stack,
                                                      const domus_http_request *request);

/* Gather the body of the request whole, from a handler of a row (domus_http_dispatch()), before it
 * does anything else:
 *
 *     int result = domus_http_gather(stack, request, 0);
 *     if (result != 0)
 *         return result;
 *
 * On a stage with `streams` a body whose length was not said comes in pieces: one in chunks, and
 * one of HTTP/2 without content-length, as many clients send every body. This reads such a body, up
 * to `size_max` bytes (0: the `whole_max` of the stage), and then the handler is called again, with
 * a request whose body came whole. Its bytes count on the `budget` of the stage meanwhile. If the
 * body becomes longer, the request fails with -EMSGSIZE (413); if no more of it comes, or the
 * budget is used up, it fails as a read of the body does, or with -ENOMEM (503).
 *
 * Returns 0: the body is whole; DOMUS_PARKED, or a negative errno, which the handler returns:
 * -EMSGSIZE for a body that is longer by its length; -EOPNOTSUPP for one in pieces in any other
 * place than such a handler; or as domus_body_read().
 * Thread-safety: only from the handler of a row, with its stack. */
DOMUS_API int domus_http_gather(domus_stack *stack, const domus_http_request *request,
                                uint32_t size_max);

/* Answer with a status and text, from `enter` of a part, with fields that are NULL or an appender,
 * which this ends. Returns DOMUS_HTTP_ANSWERED; or a negative errno. `text` and `media` are
 * constants of the program, or NULL. */
DOMUS_API int domus_http_answer(domus_stack *stack, uint16_t status, domus_appender *fields,
                                const char *media, const char *text);

/* The part that gives requests their ids. Its options are domus_http_request_id_options, or NULL
 * (domus/http_trace.h). */
DOMUS_API extern const domus_http_part domus_http_request_id;

#ifdef __cplusplus
}
#endif

#endif
