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

/* A body that is gathered for the handler of a row that wants it whole (whole.c). */
typedef struct domi_http_whole {
    domus_appender bytes; /* the bytes so far; `size_max` is 0 if no body is gathered */
    domus_budget *budget; /* the budget of the stage; NULL: there is none */
    uint64_t charged;
} domi_http_whole;

typedef struct domi_http_exchange {
    domus_http_exchange face;
    struct domi_http_exchange *next;
    uint64_t number; /* number of the exchange's request (domi_http_exchange_number()) */
    const domus_http_chain *chain;
    /* the row of the request; NULL: it was not searched, or none was found */
    const domus_http_row *row;
    /* parts that were entered, first those of the chain and then those of the row */
    uint32_t entered;
    uint32_t of_chain;     /* number of these that belong to the chain */
    bool waits;            /* a part waits, and will call domus_http_go_on() */
    domi_http_whole whole; /* the body for which the handler waits */
    uint64_t words[DOMUS_HTTP_PARTS_MAX];
} domi_http_exchange;

typedef struct domi_http_chained {
    const domus_http_chain *chain;
    domi_http_exchange *first;
    domi_http_exchange *last;
    domi_http_exchange *spare; /* the exchange that ended last, kept for reuse; NULL: none */
    const char *via;           /* name of the protocol, except for requests of HTTP/1.0 */
    bool knows_peer;
    domus_endpoint peer;
} domi_http_chained;

/* Returns the number of an exchange, which is made from that of its request and is never 0. */
static inline uint64_t domi_http_exchange_number(uint32_t made)
{
    return UINT64_C(1) << 32 | made;
}

/* Check the parts of a chain, and their options. Returns 0; a negative errno. */
int domi_http_check_chain(const domus_http_chain *chain);

/* Make the list of a connection's exchanges, and free it with all exchanges in it. Making returns
 * NULL without memory; freeing accepts NULL. */
domi_http_chained *domi_http_chained_new(const domus_http_chain *chain);
void domi_http_chained_free(domi_http_chained *chained, uint64_t now_ns);

/* Begin an exchange, at the end of the list. Returns NULL without memory. */
domi_http_exchange *domi_http_begin_exchange(domi_http_chained *chained, uint64_t number);

/* Find an exchange by its number, or by the id of its request in the stage; for the latter the list
 * may be NULL. Return NULL if there is none. */
domi_http_exchange *domi_http_exchange_at(const domi_http_chained *chained, uint64_t number);

static inline domi_http_exchange *domi_http_find_exchange(const domi_http_chained *chained,
                                                          uint64_t id)
{
    return chained != NULL
               ? domi_http_exchange_at(
                     chained, domi_http_exchange_number((uint32_t)(id >> DOMI_HTTP_ID_NUMBER)))
               : NULL;
}

/* Free what was gathered of the body. */
void domi_http_drop_whole(domi_http_exchange *exchange);

/* Find the exchange of a request in the current channel (dispatch.c), and the state of its stage,
 * which is NULL if there is none. */
domi_http_exchange *domi_http_find_running(domus_stack *stack, const domus_http_request *request,
                                           const domi_http_state **ret_state);

/* Returns the step of a part that was entered. */
const domus_http_step *domi_http_step_at(const domi_http_exchange *exchange, uint32_t index);

/* Pass an answer to the parts, from the last one on. It gets the fields that they have added, which
 * the caller frees, and a body if a part has made one, which `ret_made` shows. Returns 0; a
 * negative errno, with nothing to free. */
int domi_http_leave_answer(domi_http_exchange *exchange, domi_http_outgoing *answer, bool is_whole,
                           domus_slice *ret_made);

/* Pass a failure to the parts, and end the exchange. `exchange` is NULL for one that has entered no
 * part, for which a list is made if there is none. The answer gets what the parts have added, as
 * domi_http_leave_answer() says; without memory nothing is added. `error` is that of the request;
 * 0: the bytes were no request. */
void domi_http_leave_failure(domus_wire *wire, domi_http_chained **chained,
                             const domus_http_chain *chain, domi_http_exchange *exchange, int error,
                             domi_http_outgoing *answer, domus_slice *ret_made);

/* End an exchange whose answer is over: tell its parts, and free it. */
void domi_http_end_exchange(domi_http_chained *chained, domi_http_exchange *exchange,
                            uint64_t now_ns, bool is_cut);
void domi_http_end_exchange_of(domi_http_chained *chained, uint64_t id, uint64_t now_ns,
                               bool is_cut);

/* Add the bytes of a piece to those that the exchange has sent. */
void domi_http_count_sent(domi_http_chained *chained, uint64_t id, size_t size);

#endif
