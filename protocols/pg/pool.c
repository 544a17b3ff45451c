/* Decides which connection runs a query: the one that was used last, so that connections beyond the
 * need stay idle and are closed (late.c). A query that finds no connection waits, and another
 * connection is made. */
#include "protocols/pg/pg.h"

#include <string.h>
#include <strings.h>

static bool is_connection_idle(const domi_pg_connection *connection)
{
    return connection->phase == DOMI_PG_READY && connection->line.count == 0 &&
           !connection->is_cancelled && !connection->in_transaction &&
           connection->flow == DOMI_PG_NO_FLOW;
}

void domi_pg_unlist_free_connection(domi_pg_pool *pool, domi_pg_connection *connection)
{
    domi_pg_connection **place = &pool->free;

    if (!connection->is_free)
        return;
    while (*place != connection)
        place = &(*place)->next;
    *place = connection->next;
    connection->is_free = false;
}

static void list_free_connection(domus_stack *stack, domi_pg_pool *pool,
                                 domi_pg_connection *connection)
{
    connection->next = pool->free;
    pool->free = connection;
    connection->is_free = true;
    connection->until_ns = domus_now_ns(stack) + pool->settings.options.idle_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->until_ns);
}

bool domi_pg_do_go_on_or_list_as_free(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    /* the late query may have ended, and then another query that is late may be the first */
    if (connection->has_late)
        domi_pg_cancel_first_if_late(stack, pool, connection);
    if (connection->awaits_cancel &&
        (connection->line.first == NULL || !connection->line.first->is_cancelled))
        domi_pg_forget_waiting_cancel(connection);
    if (connection->phase != DOMI_PG_READY || connection->slot == DOMI_PG_LISTENER ||
        connection->is_free || connection->line.count != 0 || connection->is_cancelled)
        return true;
    /* no cancel is under way, and the signals of all earlier ones have arrived before the answer
     * that has come */
    connection->strays = 0;
    connection->has_late = false;
    if (connection->in_transaction && connection->transaction != 0)
        return domi_pg_send_queued_of_transaction(stack, pool, connection);
    if (PQtransactionStatus(connection->pg) != PQTRANS_IDLE) {
        /* The owner of a transaction has ended, or a statement has begun a transaction by itself,
         * so it is rolled back. */
        return domi_pg_send_command_of_pool_itself(stack, pool, connection, "ROLLBACK");
    }
    connection->in_transaction = false;
    if (is_connection_idle(connection))
        list_free_connection(stack, pool, connection);
    return true;
}

/* --- choosing a connection -------------------------------------------------------------------- */

/* Returns whether other queries may be in one line with this query. A cancel of one may hit the
 * next, which is then sent again as if it had done nothing; but a procedure may have committed a
 * part of its work. */
static bool may_query_share_line_with_others(const domi_pg_query *query)
{
    if (query->job != DOMI_PG_QUERY)
        return false;
    const char *text = domus_sql_skip_blanks(domus_sql_request_text(&query->request));
    return strncasecmp(text, "CALL", 4) != 0 && strncasecmp(text, "DO", 2) != 0;
}

/* Returns whether a further query may be added to the line of a connection that is at work. */
static bool has_line_place_for_query(const domi_pg_pool *pool, const domi_pg_connection *connection)
{
    return connection->phase == DOMI_PG_READY && !connection->is_cancelled &&
           !connection->is_preparing && !connection->in_transaction &&
           connection->flow == DOMI_PG_NO_FLOW && connection->line.count != 0 &&
           connection->line.count < pool->settings.options.pipeline_max &&
           may_query_share_line_with_others(connection->line.first);
}

/* Find a connection for a query that is in no transaction. Returns NULL if the query has to
 * wait. */
static domi_pg_connection *pick_connection_for_query(domi_pg_pool *pool, const domi_pg_query *query)
{
    domi_pg_connection *found = pool->free;

    if (found != NULL) {
        domi_pg_unlist_free_connection(pool, found);
        return found;
    }
    if (pool->settings.options.pipeline_max < 2 || !may_query_share_line_with_others(query) ||
        pool->count < pool->settings.options.connections_max)
        return NULL;
    for (uint32_t slot = 0; slot < pool->settings.options.connections_max; slot++) {
        domi_pg_connection *each = pool->connections[slot];
        if (each != NULL && has_line_place_for_query(pool, each) &&
            (found == NULL || each->line.count < found->line.count))
            found = each;
    }
    return found;
}

/* --- making connections ----------------------------------------------------------------------- */

/* Returns how many connects of the pool should be under way now, to give waiting queries a
 * connection and to keep the least number of connections. */
static uint32_t count_connects_that_should_be_under_way(const domi_pg_pool *pool)
{
    const domus_sql_options *options = &pool->settings.options;
    uint32_t ready = pool->count - pool->connecting;
    uint32_t wanted = pool->waiting.count;

    if (ready < options->connections_min && wanted < options->connections_min - ready)
        wanted = options->connections_min - ready;
    /* no query waits, but one connect is tried, so that the pool notices when the server is back */
    if (wanted == 0 && pool->down_since_ns != 0)
        wanted = 1;
    if (wanted > options->connections_max - ready)
        wanted = options->connections_max - ready;
    /* after a failed connect a single one is tried, which finds out for all */
    return pool->failures != 0 && wanted > 1 ? 1 : wanted;
}

static void begin_connects_for_waiting_queries(domus_stack *stack, domi_pg_pool *pool)
{
    uint32_t wanted = count_connects_that_should_be_under_way(pool);

    if (wanted > pool->connecting && domus_now_ns(stack) < pool->connect_ns) {
        domi_pg_set_timer_of_pool_for_time(stack, pool, pool->connect_ns);
        return;
    }
    for (uint32_t slot = 0; slot < DOMI_PG_CONNECTIONS_MAX && pool->connecting < wanted; slot++) {
        if (pool->connections[slot] == NULL &&
            domi_pg_begin_connect_in_slot(stack, pool, slot) != 0)
            return;
    }
}

/* --- waiting queries -------------------------------------------------------------------------- */

bool domi_pg_is_server_down_for_too_long(domus_stack *stack, domi_pg_pool *pool)
{
    return pool->down_since_ns != 0 &&
           domus_now_ns(stack) >= pool->down_since_ns + pool->settings.options.wait_ns;
}

void domi_pg_do_serve_waiting_queries(domus_stack *stack, domi_pg_pool *pool)
{
    while (pool->waiting.first != NULL) {
        domi_pg_connection *connection = pick_connection_for_query(pool, pool->waiting.first);
        if (connection == NULL)
            break;
        if (domi_pg_send_waiting_queries(stack, pool, connection))
            (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    }
    begin_connects_for_waiting_queries(stack, pool);
}

static void fail_query_at_limits_or_while_down(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_query *query)
{
    domus_sql_error failure = domus_sql_error_make(
        -ENOBUFS, "",
        "%u queries with %llu bytes wait for a connection (queue_max, queue_bytes_max)",
        pool->waiting.count, (unsigned long long)pool->waiting.bytes);

    if (domi_pg_is_server_down_for_too_long(stack, pool))
        failure = pool->down;
    domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
    domi_pg_free_query(pool, query);
}

void domi_pg_do_send_query_or_let_it_wait(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_query *query)
{
    domi_pg_connection *connection = pick_connection_for_query(pool, query);

    if (connection != NULL) {
        if (domi_pg_send_query(stack, pool, connection, query))
            (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
        return;
    }
    if (!domi_pg_has_line_room_for_query(pool, &pool->waiting, query) ||
        domi_pg_is_server_down_for_too_long(stack, pool)) {
        fail_query_at_limits_or_while_down(stack, pool, query);
        begin_connects_for_waiting_queries(stack, pool);
        return;
    }
    query->until_ns = domus_now_ns(stack) + pool->settings.options.wait_ns;
    if (query->deadline_ns != 0 && query->deadline_ns < query->until_ns)
        query->until_ns = query->deadline_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
    domi_pg_line_add_last(&pool->waiting, query);
    begin_connects_for_waiting_queries(stack, pool);
}

void domi_pg_unlist_and_close_free_connection(domus_stack *stack, domi_pg_pool *pool,
                                              domi_pg_connection *connection)
{
    domi_pg_unlist_free_connection(pool, connection);
    domi_pg_unwatch_socket(stack, pool, connection);
    pool->count--;
    domi_pg_close_and_free_connection(pool, connection);
}
