/* Rows in pieces, and the parts that they share with copies: while a piece is full and nobody reads
 * it, the socket is not read, so the server waits, too.
 *
 *   flows -> paused -> flows ... -> over
 *
 * A flow that is over holds its connection until the last piece was read, or the flow is
 * dropped. */
#include "protocols/pg/pg.h"

/* --- flows ------------------------------------------------------------------------------------ */

void domi_pg_pause_reading_until_next_fetch(domus_stack *stack, domi_pg_pool *pool,
                                            domi_pg_connection *connection)
{
    connection->flow_is_paused = true;
    if (connection->line.first != NULL)
        connection->line.first->until_ns = 0;
    connection->idle_ns = domus_now_ns(stack) + pool->settings.options.transaction_idle_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->idle_ns);
    domi_pg_unwatch_socket(stack, pool, connection);
}

/* Go on reading from the server after a pause. Returns false if the connection is lost. */
static bool resume_reading_from_server(domus_stack *stack, domi_pg_pool *pool,
                                       domi_pg_connection *connection)
{
    domi_pg_query *first = connection->line.first;

    connection->flow_is_paused = false;
    if (first != NULL && !first->is_late) {
        first->until_ns = domus_now_ns(stack) + pool->settings.options.timeout_ns;
        domi_pg_set_timer_of_pool_for_time(stack, pool, first->until_ns);
    }
    if (domi_pg_watch_socket(stack, pool, connection, false) != 0) {
        domi_pg_lose_connection(stack, pool, connection, "the socket cannot be watched");
        return false;
    }
    /* libpq may have read rows or bytes before the pause that were not taken yet */
    return domi_pg_use_results_of_libpq(stack, pool, connection);
}

void domi_pg_clear_flow(domus_stack *stack, domi_pg_connection *connection)
{
    connection->flow = DOMI_PG_NO_FLOW;
    connection->flow_is_paused = connection->flow_is_over = false;
    connection->has_reader = false;
    domus_append_drop(&connection->piece);
    if (connection->transaction == 0)
        domi_pg_unwatch_owner(stack, connection);
}

bool domi_pg_begin_flow_and_answer_its_ask(domus_stack *stack, domi_pg_pool *pool,
                                           domi_pg_connection *connection, domi_pg_query *query,
                                           domi_pg_flow flow)
{
    domus_sql_cursor cursor = {.at = pool->self,
                               .number = domi_pg_make_new_number_of_flow(pool, connection)};

    connection->flow = (uint8_t)flow;
    connection->flow_number = cursor.number;
    connection->flow_is_paused = connection->flow_is_over = false;
    connection->idle_ns = domus_now_ns(stack) + pool->settings.options.transaction_idle_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->idle_ns);
    if (flow == DOMI_PG_FLOWS_IN)
        query->until_ns = 0;
    return domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_cursor_type, &cursor) == 0 &&
           domi_pg_watch_owner(stack, connection, query->owner) == 0;
}

bool domi_pg_do_give_up_flow(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                             int error)
{
    bool is_over = connection->flow_is_over;
    bool is_paused = connection->flow_is_paused;
    bool is_in = connection->flow == DOMI_PG_FLOWS_IN;
    domi_pg_query *query = connection->line.first;

    if (connection->has_reader)
        (void)domus_kept_fail(stack, connection->reader, error);
    if (is_in && !domi_pg_end_copy_in_with_error(stack, pool, connection))
        return false;
    domi_pg_clear_flow(stack, connection);
    query->is_dropped = query->is_answered = true;
    domus_sql_build_drop(&query->builder);
    if (is_over) {
        /* nobody reads these rows any more, so a failure in them has to make the commit fail */
        if (query->has_failed && connection->transaction != 0)
            domi_pg_mark_transaction_as_failed(pool, connection->transaction, &query->failure);
        query->has_failed = false;
        return domi_pg_finish_first_query(stack, pool, connection);
    }
    /* A cancel would fail the transaction, so within a transaction the rest of the rows is read and
     * discarded. */
    if (!connection->in_transaction)
        domi_pg_cancel_first_of_line(stack, pool, connection);
    /* the server may have refused the copy already, and libpq may have read the refusal */
    if (is_in) {
        query->until_ns = domus_now_ns(stack) + pool->settings.options.timeout_ns;
        domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
        return domi_pg_use_results_of_libpq(stack, pool, connection);
    }
    return !is_paused || resume_reading_from_server(stack, pool, connection);
}

/* Find the connection on which the rows or the copy with this number are read. */
domi_pg_connection *domi_pg_find_connection_of_flow(const domi_pg_pool *pool, uint64_t number)
{
    uint32_t slot = (uint32_t)(number & 0xff);
    domi_pg_connection *connection =
        slot < DOMI_PG_CONNECTIONS_MAX ? pool->connections[slot] : NULL;

    return connection != NULL && connection->flow != DOMI_PG_NO_FLOW &&
                   connection->flow_number == number
               ? connection
               : NULL;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Discard the rows that the server still sends. A cancel would fail the transaction, so within a
 * transaction all of them are read. */
static void discard_rows_that_server_still_sends(domus_stack *stack, domi_pg_pool *pool,
                                                 domi_pg_connection *connection,
                                                 domi_pg_query *query)
{
    query->is_dropped = true;
    if (!connection->in_transaction)
        domi_pg_cancel_first_of_line(stack, pool, connection);
}

/* Let this read and all later reads of these rows fail, with a text that says why. */
static void fail_this_and_later_reads_of_rows(domus_stack *stack, domi_pg_pool *pool,
                                              domi_pg_connection *connection, domi_pg_query *query,
                                              int error, const char *words)
{
    query->has_failed = true;
    query->failure = domus_sql_error_make(error, "", "%s", words);
    discard_rows_that_server_still_sends(stack, pool, connection, query);
}

/* Answer the waiting reader with the piece of rows that was built. Returns whether there was a
 * reader. */
static bool answer_reader_with_piece_of_rows(domus_stack *stack, domi_pg_connection *connection,
                                             domi_pg_query *query, bool is_last)
{
    domus_sql_result result;
    int error = query->has_failed ? -EIO : domus_sql_build_end(&query->builder, &result);

    connection->has_reader = false;
    if (query->has_failed)
        return domus_kept_reply(stack, connection->reader, &domus_sql_error_type,
                                &query->failure) == 0;
    if (error != 0) {
        (void)domus_kept_fail(stack, connection->reader, error);
        return false;
    }
    result.last = is_last;
    result.affected = query->affected;
    error = domus_kept_reply(stack, connection->reader, &domus_sql_result_type, &result);
    if (error != 0)
        domus_sql_result_type.release(&result);
    return error == 0;
}

void domi_pg_add_result_to_piece_of_rows(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection, domi_pg_query *query,
                                         const PGresult *rows)
{
    if (connection->flow == DOMI_PG_NO_FLOW &&
        !domi_pg_begin_flow_and_answer_its_ask(stack, pool, connection, query,
                                               DOMI_PG_FLOWS_ROWS)) {
        domi_pg_clear_flow(stack, connection);
        discard_rows_that_server_still_sends(stack, pool, connection, query);
        return;
    }
    int error = domi_pg_build_rows(&query->builder, rows);
    if (error != 0) {
        fail_this_and_later_reads_of_rows(stack, pool, connection, query, error,
                                          "a row is larger than result_max");
        return;
    }
    if (domus_sql_built_size(&query->builder) < pool->settings.options.piece_size ||
        PQresultStatus(rows) == PGRES_TUPLES_OK)
        return;
    if (!connection->has_reader)
        domi_pg_pause_reading_until_next_fetch(stack, pool, connection);
    else if (!answer_reader_with_piece_of_rows(stack, connection, query, false))
        fail_this_and_later_reads_of_rows(stack, pool, connection, query, -EIO,
                                          "a piece was lost, its reader had ended");
}

bool domi_pg_give_last_piece_of_flow(domus_stack *stack, domi_pg_pool *pool,
                                     domi_pg_connection *connection, domi_pg_query *query)
{
    if (query->is_dropped && !query->has_failed) {
        domi_pg_clear_flow(stack, connection);
        return true;
    }
    if (!connection->has_reader) {
        connection->flow_is_over = true;
        query->until_ns = 0;
        connection->idle_ns = domus_now_ns(stack) + pool->settings.options.transaction_idle_ns;
        domi_pg_set_timer_of_pool_for_time(stack, pool, connection->idle_ns);
        return false;
    }
    if (connection->flow == DOMI_PG_FLOWS_ROWS)
        (void)answer_reader_with_piece_of_rows(stack, connection, query, true);
    else
        (void)domi_pg_give_copied_bytes_to_reader(stack, connection, query, true);
    domi_pg_clear_flow(stack, connection);
    return true;
}

int domi_pg_read_next_piece_of_rows(domus_stack *stack, void *self, const void *payload)
{
    const domus_sql_cursor *cursor = payload;
    domi_pg_pool *pool = self;
    domi_pg_connection *connection = domi_pg_find_connection_of_flow(pool, cursor->number);

    if (connection == NULL || connection->flow != DOMI_PG_FLOWS_ROWS)
        return -ESTALE;
    return domi_pg_read_next_piece_of_flow(stack, pool, connection);
}

int domi_pg_read_next_piece_of_flow(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;

    if (connection->has_reader)
        return -EBUSY;
    int error = domus_keep_working(stack, &connection->reader);
    if (error != 0)
        return error;
    connection->has_reader = true;
    bool is_there = true;
    if (connection->flow_is_over) {
        connection->flow_is_over = false;
        is_there = domi_pg_finish_first_query(stack, pool, connection);
    } else if (connection->flow_is_paused) {
        bool is_taken = connection->flow == DOMI_PG_FLOWS_ROWS
                            ? answer_reader_with_piece_of_rows(stack, connection, query, false)
                            : domi_pg_give_copied_bytes_to_reader(stack, connection, query, false);
        is_there = is_taken ? resume_reading_from_server(stack, pool, connection)
                            : domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -EIO);
    }
    if (is_there)
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}

int domi_pg_drop_rows_and_settle(domus_stack *stack, void *self, const void *payload)
{
    const domus_sql_cursor *cursor = payload;
    domi_pg_pool *pool = self;
    domi_pg_connection *connection = domi_pg_find_connection_of_flow(pool, cursor->number);

    if (connection == NULL)
        return 0;
    if (domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -ESTALE))
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}
