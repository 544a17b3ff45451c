/* The exchanges of a connection whose stage has a chain (domus/http_chain.h): the requests that
 * have entered it and are not answered, from the oldest.
 *
 * Nothing here knows how a message is framed, so that a stage of another version of HTTP can have
 * a chain, too: it keeps a pointer of this kind, and calls these functions where its answers begin,
 * go on and end. The thread of the connection alone uses this. */
#ifndef DOMI_PROTOCOLS_HTTP_CHAIN_H
#define DOMI_PROTOCOLS_HTTP_CHAIN_H

#include "protocols/http/outgoing.h"

#include <domus/http_chain.h>

/* A body that is gathered for the handler of a row (whole.c). */
typedef struct domi_http_whole {
    domus_appender bytes; /* its `size_max` is 0 if nothing is gathered */
    domus_budget *budget; /* of the stage; NULL: none */
    uint64_t charged;
} domi_http_whole;

typedef struct domi_http_exchange {
    domus_http_exchange face;
    struct domi_http_exchange *next;
    uint64_t number; /* the number of the exchange's request (domi_http_exchange_number()) */
    const domus_http_chain *chain;
    const domus_http_row *row; /* NULL: not found yet, or not asked for */
    uint32_t entered;          /* parts that were entered, of the chain and then of the row */
    uint32_t of_chain;         /* how many of them are of the chain */
    bool waits;                /* a part does, and goes on by domus_http_go_on() */
    domi_http_whole whole;     /* the body that its handler waits for */
    uint64_t words[DOMUS_HTTP_PARTS_MAX];
} domi_http_exchange;

typedef struct domi_http_chained {
    const domus_http_chain *chain;
    domi_http_exchange *first;
    domi_http_exchange *last;
    domi_http_exchange *spare; /* the one that ended last, for the next one; NULL: none */
    const char *via;           /* the protocol of a request that does not say HTTP/1.0 */
    bool knows_peer;
    domus_endpoint peer;
} domi_http_chained;

/* The number of an exchange: that of its request, made so that it is never 0. */
static inline uint64_t domi_http_exchange_number(uint32_t made)
{
    return UINT64_C(1) << 32 | made;
}

/* Check the parts of a chain, and their options. Returns 0; a negative errno. */
int domi_http_check_chain(const domus_http_chain *chain);

/* Make the list of a connection; free it, and end what is in it. NULL: no memory; and is
 * allowed. */
domi_http_chained *domi_http_chained_new(const domus_http_chain *chain);
void domi_http_chained_free(domi_http_chained *chained, uint64_t now_ns);

/* Begin an exchange, behind the others. NULL: no memory. */
domi_http_exchange *domi_http_begin_exchange(domi_http_chained *chained, uint64_t number);

/* Find an exchange by its number; and by the id of its request in the stage, in which the list may
 * be NULL. Return NULL if there is none. */
domi_http_exchange *domi_http_exchange_at(const domi_http_chained *chained, uint64_t number);

static inline domi_http_exchange *domi_http_find_exchange(const domi_http_chained *chained,
                                                          uint64_t id)
{
    return chained != NULL
               ? domi_http_exchange_at(
                     chained, domi_http_exchange_number((uint32_t)(id >> DOMI_HTTP_ID_NUMBER)))
               : NULL;
}

/* Forget what was gathered of the body. */
void domi_http_drop_whole(domi_http_exchange *exchange);

/* Find the exchange of a request in the channel that is running (dispatch.c), and the state of its
 * stage, NULL if it has none. */
domi_http_exchange *domi_http_find_running(domus_stack *stack, const domus_http_request *request,
                                           const domi_http_state **ret_state);

/* The step of a part that was entered. */
const domus_http_step *domi_http_step_at(const domi_http_exchange *exchange, uint32_t index);

/* Let the parts see an answer. It gets the fields that they have added, which the caller frees, and
 * perhaps a body that they have made, which shows `ret_made`. Returns 0; a negative errno, with
 * nothing to free. */
int domi_http_leave_answer(domi_http_exchange *exchange, domi_http_outgoing *answer, bool is_whole,
                           domus_slice *ret_made);

/* Let the parts see a failure; `exchange` NULL: one that has entered nothing, for which a list is
 * made if there is none. The answer gets what the parts have made, as above, and the exchange is
 * over. Without memory nothing is added. `error`: that of the request; 0: the bytes are none. */
void domi_http_leave_failure(domus_wire *wire, domi_http_chained **chained,
                             const domus_http_chain *chain, domi_http_exchange *exchange, int error,
                             domi_http_outgoing *answer, domus_slice *ret_made);

/* The answer of an exchange is over: let its parts hear of that, and free it. */
void domi_http_end_exchange(domi_http_chained *chained, domi_http_exchange *exchange,
                            uint64_t now_ns, bool is_cut);
void domi_http_end_exchange_of(domi_http_chained *chained, uint64_t id, uint64_t now_ns,
                               bool is_cut);

/* Count bytes of a piece. */
void domi_http_count_sent(domi_http_chained *chained, uint64_t id, size_t size);

#endif
