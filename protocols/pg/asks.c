/* Handlers of the asks of domus/sql.h: each ask becomes a record of a query, which is given to a
 * connection or to the transaction that it names. */
#include "protocols/pg/pg.h"

/* Fail an ask for which no record of a query could be made, and fail its transaction, too. */
static int fail_transaction_and_return_error(domi_pg_pool *pool, uint64_t transaction, int error)
{
    const domus_sql_error failure =
        domus_sql_error_make(error, "", "a statement could not be begun");

    domi_pg_mark_transaction_as_failed(pool, transaction, &failure);
    return error;
}

int domi_pg_keep_and_put_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                               const domus_sql_request *request)
{
    domi_pg_query *query = NULL;
    domus_address owner = domus_sender(stack);
    int error = domi_pg_query_new_with_kept_ask(stack, pool, job, request, &query);

    if (error != 0)
        return fail_transaction_and_return_error(pool, request->transaction, error);
    query->owner = owner;
    if (query->request.transaction != 0)
        domi_pg_send_or_queue_in_transaction(stack, pool, query);
    else
        domi_pg_send_query_or_let_it_wait(stack, pool, query);
    return 0;
}

int domi_pg_put_query_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return domi_pg_keep_and_put_query(stack, self, DOMI_PG_QUERY, payload);
}

int domi_pg_put_query_for_rows_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return domi_pg_keep_and_put_query(stack, self, DOMI_PG_ROWS, payload);
}

int domi_pg_put_script_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return domi_pg_keep_and_put_query(stack, self, DOMI_PG_SCRIPT, payload);
}

int domi_pg_reply_with_driver_of_pool(domus_stack *stack, void *self, const void *payload)
{
    const domi_pg_pool *pool = self;
    const domus_sql_driver *driver = pool->settings.driver;

    (void)payload;
    return domus_reply(stack, &domus_sql_driver_type, &driver);
}

int domi_pg_reply_with_status_of_pool(domus_stack *stack, void *self, const void *payload)
{
    const domi_pg_pool *pool = self;
    domus_sql_status status = pool->counted;

    (void)payload;
    status.connections = pool->count - pool->connecting;
    status.connecting = pool->connecting;
    status.waiting = pool->waiting.count;
    if (pool->failures != 0 && pool->connecting == 0)
        status.connecting = 1; /* the pool is waiting for its back-off to end, and then connects */
    for (uint32_t slot = 0; slot < DOMI_PG_CONNECTIONS_MAX; slot++) {
        const domi_pg_connection *each = pool->connections[slot];
        if (each != NULL && each->phase == DOMI_PG_READY && !each->is_free)
            status.busy++;
    }
    return domus_reply(stack, &domus_sql_status_type, &status);
}
