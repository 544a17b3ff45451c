/* The exchanges of an HTTP connection, and how their answers leave the chain (chain.h). */
#include "protocols/http/chain.h"
#include "protocols/http/write.h"

#include <stdlib.h>

/* --- checking a chain ------------------------------------------------------------------------- */

/* Check the steps of one list of a chain, and add their number to `count`. Returns 0; a negative
 * errno. */
static int check_steps_of_list(const domus_http_step *steps, uint32_t *count)
{
    for (; steps != NULL && steps->part != NULL; steps++) {
        int error = steps->part->check != NULL ? steps->part->check(steps->options) : 0;
        if (error != 0)
            return error;
        if (++*count > DOMUS_HTTP_PARTS_MAX)
            return -EINVAL;
    }
    return 0;
}

int domi_http_check_chain(const domus_http_chain *chain)
{
    uint32_t of_chain = 0;
    int error = check_steps_of_list(chain->parts, &of_chain);

    for (const domus_http_row *row = chain->rows; error == 0 && row != NULL && row->on.path != NULL;
         row++) {
        uint32_t count = of_chain;
        error = row->handle != NULL ? check_steps_of_list(row->parts, &count) : -EINVAL;
    }
    return error;
}

/* --- the list of exchanges -------------------------------------------------------------------- */

domi_http_chained *domi_http_exchanges_of_connection_new(const domus_http_chain *chain)
{
    domi_http_chained *chained = calloc(1, sizeof *chained);

    if (chained != NULL)
        *chained = (domi_http_chained){.chain = chain, .via = "HTTP/1.1"};
    return chained;
}

void domi_http_exchanges_free(domi_http_chained *chained, uint64_t now_ns)
{
    if (chained == NULL)
        return;
    while (chained->first != NULL)
        domi_http_end_exchange(chained, chained->first, now_ns, true);
    free(chained->spare);
    free(chained);
}

/* Fill in the members of an exchange that are the same for all exchanges of its connection. */
static void fill_in_shared_members_of_exchange(const domi_http_chained *chained,
                                               domi_http_exchange *exchange)
{
    exchange->chain = chained->chain;
    exchange->face.peer = &chained->peer;
    exchange->face.via = chained->via;
    exchange->face.method = DOMUS_HTTP_METHODS;
}

domi_http_exchange *domi_http_begin_exchange(domi_http_chained *chained, uint64_t number)
{
    domi_http_exchange *exchange =
        chained->spare != NULL ? chained->spare : malloc(sizeof *exchange);

    if (exchange == NULL)
        return NULL;
    chained->spare = NULL;
    memset(exchange, 0, sizeof *exchange);
    fill_in_shared_members_of_exchange(chained, exchange);
    exchange->number = number;
    exchange->face.has_entered = true;
    if (chained->last != NULL)
        chained->last->next = exchange;
    else
        chained->first = exchange;
    chained->last = exchange;
    return exchange;
}

domi_http_exchange *domi_http_find_exchange_by_number(const domi_http_chained *chained,
                                                      uint64_t number)
{
    domi_http_exchange *at = chained->first;

    while (at != NULL && at->number != number)
        at = at->next;
    return at;
}

static void remove_exchange_from_list(domi_http_chained *chained,
                                      const domi_http_exchange *exchange)
{
    domi_http_exchange *before = NULL;

    for (domi_http_exchange *at = chained->first; at != exchange; at = at->next)
        before = at;
    if (before != NULL)
        before->next = exchange->next;
    else
        chained->first = exchange->next;
    if (chained->last == exchange)
        chained->last = before;
}

/* --- leaving the chain ------------------------------------------------------------------------ */

const domus_http_step *domi_http_step_at_place_of_exchange(const domi_http_exchange *exchange,
                                                           uint32_t index)
{
    return index < exchange->of_chain ? &exchange->chain->parts[index]
                                      : &exchange->row->parts[index - exchange->of_chain];
}

/* Call `leave` of each part that the exchange has entered, from the last one to the first. */
static void call_leave_of_entered_parts(domi_http_exchange *exchange, domus_http_leaving *leaving)
{
    exchange->face.status = leaving->status;
    for (uint32_t i = exchange->entered; i-- > 0;) {
        const domus_http_step *step = domi_http_step_at_place_of_exchange(exchange, i);
        exchange->face.word = &exchange->words[i];
        if (step->part->leave != NULL)
            step->part->leave(&exchange->face, leaving, step->options);
    }
}

/* Use the body that a part of the chain has made, if the answer needs one; otherwise free that
 * body. */
static void use_or_free_body_made_by_part(domus_http_leaving *leaving, domi_http_outgoing *answer,
                                          domus_slice *ret_made)
{
    if (!leaving->wants_body || leaving->body.size == 0) {
        domus_slice_free(leaving->body);
        return;
    }
    answer->media = leaving->media != NULL ? leaving->media : "text/plain";
    answer->media_size = strlen(answer->media);
    answer->text = NULL;
    answer->body = *ret_made = leaving->body;
    answer->body_size = leaving->body.size;
}

/* Returns whether a handler's answer has the status of an error, but no body. */
static bool is_error_without_body(const domi_http_outgoing *answer)
{
    return answer->status >= 400 && answer->body_size == 0 && answer->media == NULL &&
           answer->length == 0;
}

int domi_http_pass_answer_through_parts(domi_http_exchange *exchange, domi_http_outgoing *answer,
                                        bool is_whole, domus_slice *ret_made)
{
    domus_appender added = {.size_max = DOMUS_HTTP_ADDED_MAX};
    domus_http_leaving leaving = {.status = (uint16_t)answer->status,
                                  .fields = answer->fields,
                                  .added = &added,
                                  .wants_body = is_whole && is_error_without_body(answer)};

    call_leave_of_entered_parts(exchange, &leaving);
    int error = domus_append_end(&added, &answer->added);
    if (error == 0) {
        use_or_free_body_made_by_part(&leaving, answer, ret_made);
        return 0;
    }
    domus_slice_free(leaving.body);
    exchange->face.status = 0;
    return error;
}

/* Store the address of the connection's peer in the list of exchanges, once. */
static void store_peer_address(const domus_wire *wire, domi_http_chained *chained)
{
    if (!chained->knows_peer)
        chained->knows_peer = domus_wire_peer(wire, &chained->peer) == 0;
}

static void make_failed_answer_through_parts(domi_http_exchange *exchange, int error,
                                             domi_http_outgoing *answer, domus_slice *ret_made)
{
    exchange->face.error = error;
    domus_appender added = {.size_max = DOMUS_HTTP_ADDED_MAX};
    domus_http_leaving leaving = {
        .status = (uint16_t)answer->status, .error = error, .added = &added, .wants_body = true};

    call_leave_of_entered_parts(exchange, &leaving);
    if (leaving.body.size > DOMUS_HTTP_FAILURE_MAX)
        leaving.wants_body = false;
    use_or_free_body_made_by_part(&leaving, answer, ret_made);
    if (domus_append_end(&added, &answer->added) != 0)
        answer->added = (domus_slice){NULL, 0, 0};
    if (answer->added.size != 0 && domi_http_check_fields(answer->added) < 0) {
        domus_slice_free(answer->added);
        answer->added = (domus_slice){NULL, 0, 0};
    }
}

/* Call `end` of each part that the exchange has entered, from the last one to the first. */
static void call_end_of_entered_parts(domi_http_exchange *exchange, uint64_t now_ns, bool is_cut)
{
    exchange->face.ended_ns = now_ns;
    exchange->face.is_cut = is_cut;
    for (uint32_t i = exchange->entered; i-- > 0;) {
        const domus_http_step *step = domi_http_step_at_place_of_exchange(exchange, i);
        exchange->face.word = &exchange->words[i];
        if (step->part->end != NULL)
            step->part->end(&exchange->face, step->options);
    }
}

void domi_http_pass_failure_through_parts(domus_wire *wire, domi_http_chained **chained,
                                          const domus_http_chain *chain,
                                          domi_http_exchange *exchange, int error,
                                          domi_http_outgoing *answer, domus_slice *ret_made)
{
    domi_http_exchange none = {.number = 0};
    uint64_t now_ns = domus_wire_now_ns(wire);

    if (exchange != NULL) {
        make_failed_answer_through_parts(exchange, error, answer, ret_made);
        if (exchange->face.method != DOMUS_HTTP_HEAD)
            exchange->face.sent += answer->body_size;
        domi_http_end_exchange(*chained, exchange, now_ns, false);
        return;
    }
    if (*chained == NULL)
        *chained = domi_http_exchanges_of_connection_new(chain);
    if (*chained == NULL)
        return;
    store_peer_address(wire, *chained);
    fill_in_shared_members_of_exchange(*chained, &none);
    while (chain->parts != NULL && chain->parts[none.of_chain].part != NULL)
        none.of_chain++;
    none.entered = none.of_chain;
    make_failed_answer_through_parts(&none, error, answer, ret_made);
    none.face.sent = answer->body_size;
    call_end_of_entered_parts(&none, now_ns, false);
}

/* --- the end of an exchange ------------------------------------------------------------------- */

void domi_http_free_gathered_body(domi_http_exchange *exchange)
{
    (void)domus_budget_charge(exchange->whole.budget, &exchange->whole.charged, 0);
    domus_append_drop(&exchange->whole.bytes);
    exchange->whole = (domi_http_whole){.budget = NULL};
}

void domi_http_end_exchange(domi_http_chained *chained, domi_http_exchange *exchange,
                            uint64_t now_ns, bool is_cut)
{
    remove_exchange_from_list(chained, exchange);
    call_end_of_entered_parts(exchange, now_ns, is_cut);
    domi_http_free_gathered_body(exchange);
    free(chained->spare);
    chained->spare = exchange;
}

void domi_http_end_exchange_of_request(domi_http_chained *chained, uint64_t id, uint64_t now_ns,
                                       bool is_cut)
{
    domi_http_exchange *exchange = domi_http_find_exchange_of_request(chained, id);

    if (exchange != NULL)
        domi_http_end_exchange(chained, exchange, now_ns, is_cut);
}

void domi_http_count_sent_bytes_of_request(domi_http_chained *chained, uint64_t id, size_t size)
{
    domi_http_exchange *exchange = domi_http_find_exchange_of_request(chained, id);

    if (exchange != NULL)
        exchange->face.sent += size;
}
