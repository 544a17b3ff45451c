/* The exchanges of a connection whose stage has a chain (domus/http_chain.h): the requests that
 * have entered the chain and are not answered, from the oldest.
 *
 * Nothing here depends on how a message is framed, so a stage for another version of HTTP can have
 * a chain, too: it keeps a pointer to such a list, and calls these functions where its answers
 * begin, continue and end. Only the thread of the connection uses this. */
#ifndef DOMI_PROTOCOLS_HTTP_CHAIN_H
#define DOMI_PROTOCOLS_HTTP_CHAIN_H

#include "protocols/http/outgoing.h"

#include <domus/http_chain.h>

/* A request's body that is gathered for a handler whose row wants it whole (whole.c). */
typedef struct domi_http_whole {
    domus_appender bytes; /* the bytes of the body so far; `size_max` is 0 if no body is gathered */
    /* the budget of the stage, on which the gathered bytes count; NULL: there is none */
    domus_budget *budget;
    uint64_t charged;
} domi_http_whole;

typedef struct domi_http_exchange {
    domus_http_exchange face;
    struct domi_http_exchange *next;
    /* number of the exchange, made from that of its request (domi_http_make_exchange_number()) */
    uint64_t number;
    const domus_http_chain *chain;
    /* the row of the service that the request's target matches; NULL: not searched, or none */
    const domus_http_row *row;
    /* number of parts that the exchange has entered: those of the chain, then those of the row */
    uint32_t entered;
    uint32_t of_chain;     /* number of the entered parts that are the chain's own */
    bool waits;            /* a part of the chain waits, and will call domus_http_go_on() */
    domi_http_whole whole; /* the body of the request, if the handler gets it whole */
    uint64_t words[DOMUS_HTTP_PARTS_MAX];
} domi_http_exchange;

typedef struct domi_http_chained {
    const domus_http_chain *chain;
    domi_http_exchange *first;
    domi_http_exchange *last;
    /* the exchange of the connection that ended last, kept for reuse; NULL: none */
    domi_http_exchange *spare;
    const char *via; /* protocol of requests that are not of HTTP/1.0: "HTTP/1.1" or "HTTP/2.0" */
    bool knows_peer;
    domus_endpoint peer;
} domi_http_chained;

/* Returns the number of an exchange, which is made from that of its request, and is never 0. */
static inline uint64_t domi_http_make_exchange_number(uint32_t made)
{
    return UINT64_C(1) << 32 | made;
}

/* Check the parts of a chain, and the options of each part. Returns 0; a negative errno. */
int domi_http_check_chain(const domus_http_chain *chain);

/* Make the list of a connection's exchanges; free it, with all exchanges in it. Making returns NULL
 * without memory; freeing accepts NULL. */
domi_http_chained *domi_http_exchanges_of_connection_new(const domus_http_chain *chain);
void domi_http_exchanges_free(domi_http_chained *chained, uint64_t now_ns);

/* Begin an exchange for a request, at the end of the connection's list. Returns NULL without
 * memory. */
domi_http_exchange *domi_http_begin_exchange(domi_http_chained *chained, uint64_t number);

/* Find an exchange in the list by its number; find one by the id of its request in the stage, for
 * which the list may be NULL. Return NULL if there is none. */
domi_http_exchange *domi_http_find_exchange_by_number(const domi_http_chained *chained,
                                                      uint64_t number);

static inline domi_http_exchange *
domi_http_find_exchange_of_request(const domi_http_chained *chained, uint64_t id)
{
    return chained != NULL
               ? domi_http_find_exchange_by_number(
                     chained, domi_http_make_exchange_number((uint32_t)(id >> DOMI_HTTP_ID_NUMBER)))
               : NULL;
}

/* Free what was gathered of the exchange's body. */
void domi_http_free_gathered_body(domi_http_exchange *exchange);

/* Find the exchange of a request in the channel that runs now (dispatch.c), and the state of the
 * channel's stage, which is NULL if there is none. */
domi_http_exchange *domi_http_find_exchange_of_channel(domus_stack *stack,
                                                       const domus_http_request *request,
                                                       const domi_http_state **ret_state);

/* Returns the step, in the chain or in the row, of a part that the exchange has entered. */
const domus_http_step *domi_http_step_at_place_of_exchange(const domi_http_exchange *exchange,
                                                           uint32_t index);

/* Pass an answer through the parts that its exchange has entered, from the last to the first. The
 * answer gets the fields that they have added, which the caller frees, and a body if a part has
 * made one, which `ret_made` then owns. Returns 0; a negative errno, with nothing to free. */
int domi_http_pass_answer_through_parts(domi_http_exchange *exchange, domi_http_outgoing *answer,
                                        bool is_whole, domus_slice *ret_made);

/* Pass the answer to a failed request through the parts, and end the exchange. `exchange` is NULL
 * if the request has entered no part; then a list is made if there is none. The answer gets what
 * the parts have added, as domi_http_pass_answer_through_parts() says; without memory nothing is
 * added. `error` is the request's error; 0: the bytes were no request. */
void domi_http_pass_failure_through_parts(domus_wire *wire, domi_http_chained **chained,
                                          const domus_http_chain *chain,
                                          domi_http_exchange *exchange, int error,
                                          domi_http_outgoing *answer, domus_slice *ret_made);

/* End an exchange whose answer has left, or was cut (`is_cut`): tell its parts, and free it. */
void domi_http_end_exchange(domi_http_chained *chained, domi_http_exchange *exchange,
                            uint64_t now_ns, bool is_cut);
void domi_http_end_exchange_of_request(domi_http_chained *chained, uint64_t id, uint64_t now_ns,
                                       bool is_cut);

/* Add the bytes of a piece of an answer to the bytes that its exchange has sent. */
void domi_http_count_sent_bytes_of_request(domi_http_chained *chained, uint64_t id, size_t size);

#endif
