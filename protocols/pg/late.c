/* Finds whatever is late in a pool by checking everything of it, at most 5 ms after it was due. */
#include "protocols/pg/pg.h"

/* Returns whether `time_ns` has passed. If it has not, the pool's timer is set for it. */
static bool is_time_over_or_set_timer(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns)
{
    if (domus_now_ns(stack) >= time_ns)
        return true;
    domi_pg_set_timer_of_pool_for_time(stack, pool, time_ns);
    return false;
}

/* --- queries ---------------------------------------------------------------------------------- */

static void fail_query_that_waited_too_long(domus_stack *stack, domi_pg_pool *pool,
                                            domi_pg_query *query)
{
    domus_sql_error failure =
        domus_sql_error_make(-EBUSY, "", "no connection was free within wait_ns");

    if (query->deadline_ns != 0 && domus_now_ns(stack) >= query->deadline_ns)
        failure = domus_sql_error_make(-ETIMEDOUT, "", "the deadline has passed");
    else if (query->request.transaction != 0)
        failure = domus_sql_error_make(-ETIMEDOUT, "57014",
                                       "the time of the query was over before it began");
    else if (pool->count == pool->connecting && pool->down.error != 0)
        failure = pool->down;
    domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
    domi_pg_free_query(pool, query);
}

/* Fail the queries of a list that have waited for too long, or all of them with `all`. None of them
 * was sent. */
static void fail_queries_that_waited_too_long(domus_stack *stack, domi_pg_pool *pool,
                                              domi_pg_line *line, bool all)
{
    domi_pg_line left = {NULL, NULL, 0, 0};
    domi_pg_query *query;

    while ((query = domi_pg_line_take_first(line)) != NULL) {
        if (all || is_time_over_or_set_timer(stack, pool, query->until_ns))
            fail_query_that_waited_too_long(stack, pool, query);
        else
            domi_pg_line_add_last(&left, query);
    }
    *line = left;
}

/* Cancel the queries of a connection's line that take too long. Returns false if the connection is
 * lost. */
static bool cancel_late_queries(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *connection)
{
    for (domi_pg_query *query = connection->line.first; query != NULL; query = query->next) {
        if (query->until_ns == 0 || query->is_late ||
            !is_time_over_or_set_timer(stack, pool, query->until_ns))
            continue;
        query->is_late = connection->has_late = true;
        domus_sql_error failure = domus_sql_error_make(
            -ETIMEDOUT, "57014", "the time of the query is over; it is cancelled");
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
        query->is_dropped = true;
        /* a command of the pool has no time limit of its own, so it counts as late when a query of
         * its line is */
        if (connection->line.first->job == DOMI_PG_ASIDE)
            connection->line.first->is_late = true;
    }
    domi_pg_query *first = connection->line.first;
    if (first == NULL)
        return true;
    if (first->is_late && connection->slot == DOMI_PG_LISTENER) {
        /* After a cancel it would be unknown whether the server listens to the channel, so the
         * listening connection is replaced. */
        domi_pg_lose_connection(stack, pool, connection, "the time of a LISTEN is over");
        return false;
    }
    if (!first->is_cancelled) {
        domi_pg_cancel_first_if_late(stack, pool, connection);
        if (first->is_cancelled && connection->flow != DOMI_PG_NO_FLOW)
            return domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -ETIMEDOUT);
        return true;
    }
    if (!is_time_over_or_set_timer(stack, pool, connection->until_ns)) {
        if (!connection->is_cancelled &&
            is_time_over_or_set_timer(stack, pool, connection->again_ns))
            domi_pg_begin_cancel_now_or_queue_it(stack, pool, connection);
        return true;
    }
    domi_pg_lose_connection(stack, pool, connection, "a query did not end when it was cancelled");
    return false;
}

/* --- connections ------------------------------------------------------------------------------ */

/* End a transaction, or the reading of rows or a copy, that its owner has not used for too long. */
static void end_idle_transaction_or_flow(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection)
{
    bool flows = connection->flow != DOMI_PG_NO_FLOW;

    if (flows) {
        bool waits_for_user =
            !connection->has_reader && (connection->flow_is_paused || connection->flow_is_over ||
                                        connection->flow == DOMI_PG_FLOWS_IN);
        if (waits_for_user && is_time_over_or_set_timer(stack, pool, connection->idle_ns) &&
            domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -ESTALE))
            (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
        return;
    }
    if (connection->transaction != 0 && connection->line.count == 0 &&
        is_time_over_or_set_timer(stack, pool, connection->idle_ns)) {
        domi_pg_roll_back_abandoned_transaction(stack, pool, connection);
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    }
}

static bool has_end_of_transaction(const domi_pg_line *line)
{
    for (const domi_pg_query *query = line->first; query != NULL; query = query->next) {
        if (query->job == DOMI_PG_END)
            return true;
    }
    return false;
}

static void end_what_is_late_on_connection(domus_stack *stack, domi_pg_pool *pool,
                                           domi_pg_connection *connection)
{
    if (connection->phase != DOMI_PG_READY) {
        if (is_time_over_or_set_timer(stack, pool, connection->until_ns))
            domi_pg_lose_connection(stack, pool, connection,
                                    "the connect took longer than connect_timeout_ns");
        return;
    }
    if (connection->is_free) {
        if (pool->count > pool->settings.options.connections_min &&
            is_time_over_or_set_timer(stack, pool, connection->until_ns))
            domi_pg_unlist_and_close_free_connection(stack, pool, connection);
        return;
    }
    bool ends = has_end_of_transaction(&connection->todo);
    fail_queries_that_waited_too_long(stack, pool, &connection->todo, false);
    /* the ask that was to end the transaction has failed, because it waited too long */
    if (ends && !has_end_of_transaction(&connection->todo)) {
        domi_pg_roll_back_abandoned_transaction(stack, pool, connection);
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
        return;
    }
    if (cancel_late_queries(stack, pool, connection))
        end_idle_transaction_or_flow(stack, pool, connection);
}

int domi_pg_end_what_is_late_at_timer(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;

    (void)payload;
    pool->look_ns = 0;
    fail_queries_that_waited_too_long(stack, pool, &pool->waiting,
                                      domi_pg_is_server_down_for_too_long(stack, pool));
    fail_queries_that_waited_too_long(stack, pool, &pool->listening, false);
    if (pool->down_since_ns != 0)
        (void)is_time_over_or_set_timer(stack, pool,
                                        pool->down_since_ns + pool->settings.options.wait_ns);
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++) {
        if (pool->connections[slot] != NULL)
            end_what_is_late_on_connection(stack, pool, pool->connections[slot]);
    }
    domi_pg_serve_waiting_queries(stack, pool);
    domi_pg_make_listener_if_wanted(stack, pool);
    return 0;
}
