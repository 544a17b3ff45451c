/* Records of queries: each is made from the current ask, stands in a list, and is answered once. A
 * few unused records are kept, so that a query mostly needs no allocation. */
#include "protocols/pg/pg.h"

#include <stdlib.h>
#include <string.h>

#define SPARES_MAX 256u

domi_pg_query *domi_pg_make_query_or_use_spare_one(domi_pg_pool *pool, domi_pg_job job)
{
    domi_pg_query *query = pool->spare;

    if (query != NULL) {
        pool->spare = query->next;
        pool->spares--;
        /* members of a record from `request` on are set before they are read, so they are not
         * zeroed */
        memset(query, 0, offsetof(domi_pg_query, request));
    } else {
        query = malloc(sizeof *query);
        if (query == NULL)
            return NULL;
        memset(query, 0, offsetof(domi_pg_query, request));
    }
    query->job = (uint8_t)job;
    query->builder.bytes_max = pool->settings.options.result_max;
    query->request.statement = NULL;
    query->request.text = query->request.more = (domus_slice){NULL, 0, 0};
    query->request.transaction = 0;
    query->request.count = query->request.size = 0;
    return query;
}

void domi_pg_free_query(domi_pg_pool *pool, domi_pg_query *query)
{
    domus_slice_free(query->request.text);
    domus_slice_free(query->request.more);
    domus_sql_build_drop(&query->builder);
    if (pool->spares >= SPARES_MAX) {
        free(query);
        return;
    }
    query->next = pool->spare;
    pool->spare = query;
    pool->spares++;
}

void domi_pg_free_spare_queries(domi_pg_pool *pool)
{
    while (pool->spare != NULL) {
        domi_pg_query *query = pool->spare;
        pool->spare = query->next;
        free(query);
    }
    pool->spares = 0;
}

int domi_pg_query_new_with_kept_ask(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                                    const domus_sql_request *request, domi_pg_query **ret_query)
{
    domi_pg_query *query = domi_pg_make_query_or_use_spare_one(pool, job);

    if (query == NULL)
        return -ENOMEM;
    if (request != NULL) {
        bool owns = request->text.page != NULL || request->more.page != NULL;
        int error = owns ? domus_take(stack) : 0;
        if (error != 0) {
            domi_pg_free_query(pool, query);
            return error;
        }
        memcpy(&query->request, request, offsetof(domus_sql_request, bytes) + request->size);
    }
    query->deadline_ns = domus_deadline_ns(stack);
    int error = domus_keep_working(stack, &query->kept);
    if (error != 0) {
        domi_pg_free_query(pool, query);
        return error;
    }
    *ret_query = query;
    return 0;
}

static uint64_t count_bytes_of_query(const domi_pg_query *query)
{
    return (uint64_t)query->request.text.size + query->request.more.size;
}

void domi_pg_line_add_last(domi_pg_line *line, domi_pg_query *query)
{
    query->next = NULL;
    if (line->last != NULL)
        line->last->next = query;
    else
        line->first = query;
    line->last = query;
    line->count++;
    line->bytes += count_bytes_of_query(query);
}

void domi_pg_line_add_first(domi_pg_line *line, domi_pg_query *query)
{
    query->next = line->first;
    line->first = query;
    if (line->last == NULL)
        line->last = query;
    line->count++;
    line->bytes += count_bytes_of_query(query);
}

domi_pg_query *domi_pg_line_take_first(domi_pg_line *line)
{
    domi_pg_query *query = line->first;

    if (query == NULL)
        return NULL;
    line->first = query->next;
    if (line->first == NULL)
        line->last = NULL;
    line->count--;
    line->bytes -= count_bytes_of_query(query);
    return query;
}

/* --- answers ---------------------------------------------------------------------------------- */

void domi_pg_mark_transaction_as_failed(domi_pg_pool *pool, uint64_t transaction,
                                        const domus_sql_error *failure)
{
    domi_pg_connection *connection = domi_pg_find_transaction(pool, transaction);

    if (connection == NULL)
        return;
    connection->is_spoiled = true;
    if (connection->failure.error == 0)
        connection->failure = *failure;
}

/* Record in a query's transaction that the query has failed, unless the server itself has reported
 * the failure, and so knows of it. */
static void fail_transaction_unless_server_knows(domi_pg_pool *pool, const domi_pg_query *query,
                                                 const domus_sql_error *failure)
{
    if (query->request.transaction != 0 && query->job != DOMI_PG_END && !query->is_told)
        domi_pg_mark_transaction_as_failed(pool, query->request.transaction, failure);
}

static void fail_transaction_of_query(domi_pg_pool *pool, const domi_pg_query *query, int error)
{
    if (query->request.transaction == 0)
        return;
    const domus_sql_error failure =
        domus_sql_error_make(error, "", "a statement of the transaction has failed");
    fail_transaction_unless_server_knows(pool, query, &failure);
}

/* Mark the ask of a query as answered. Returns false if it was answered before, or if there is no
 * ask. */
static bool mark_and_count_ask_as_answered(domi_pg_pool *pool, domi_pg_query *query)
{
    if (query->is_answered || query->job == DOMI_PG_ASIDE)
        return false;
    query->is_answered = true;
    pool->counted.queries++;
    return true;
}

int domi_pg_answer_ask_of_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                                const domus_type *type, const void *payload)
{
    /* It is no error if the asker has ended: its answer is dropped. But an asker whose deadline has
     * passed may continue its transaction. */
    bool is_asked = mark_and_count_ask_as_answered(pool, query);
    int error = is_asked ? domus_kept_reply(stack, query->kept, type, payload) : -ENOENT;

    if (error != 0 && is_asked)
        fail_transaction_of_query(pool, query, -ETIMEDOUT);
    if (error != 0 && type == &domus_sql_result_type) {
        domus_sql_result dropped = *(const domus_sql_result *)payload;
        type->release(&dropped);
    }
    return error;
}

void domi_pg_fail_ask_of_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                               int error)
{
    fail_transaction_of_query(pool, query, error);
    if (!mark_and_count_ask_as_answered(pool, query))
        return;
    if (error == -ETIMEDOUT)
        pool->counted.timeouts++;
    if (error == -ENOBUFS || error == -EBUSY)
        pool->counted.refused++;
    (void)domus_kept_fail(stack, query->kept, error);
}

void domi_pg_fail_ask_and_count_its_failure(domus_stack *stack, domi_pg_pool *pool,
                                            domi_pg_query *query, const domus_sql_error *failure)
{
    fail_transaction_unless_server_knows(pool, query, failure);
    if (!mark_and_count_ask_as_answered(pool, query))
        return;
    if (failure->sqlstate[0] != '\0')
        pool->counted.errors++;
    if (failure->error == -ENOBUFS || failure->error == -EBUSY)
        pool->counted.refused++;
    if (failure->error == -ETIMEDOUT)
        pool->counted.timeouts++;
    (void)domus_kept_reply(stack, query->kept, &domus_sql_error_type, failure);
}
