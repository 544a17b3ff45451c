/* COPY: bytes to the server, one piece at a time, whose writer continues when the kernel has them;
 * and bytes from the server in pieces, which are read as rows are (rows.c). */
#include "protocols/pg/pg.h"

int domi_pg_put_copy_in_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return domi_pg_keep_and_put_query(stack, self, DOMI_PG_COPY_IN, payload);
}

int domi_pg_put_copy_out_of_ask(domus_stack *stack, void *self, const void *payload)
{
    return domi_pg_keep_and_put_query(stack, self, DOMI_PG_COPY_OUT, payload);
}

/* --- the answer of the server ----------------------------------------------------------------- */

/* Refuse a COPY whose text was sent as a plain query, or that goes in the other direction than its
 * ask says. Returns false if the connection is lost. */
static bool refuse_copy_that_was_not_asked_for(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_connection *connection, domi_pg_query *query,
                                               bool is_in)
{
    /* libpq cannot end a copy in pipeline mode, so the connection is given up */
    if (connection->has_pipeline) {
        query->has_failed = true;
        query->failure = domus_sql_error_make(-EINVAL, "", "a COPY is no query (domus/pg.h)");
        domi_pg_lose_connection(stack, pool, connection, "a COPY in a pipeline");
        return false;
    }
    query->has_failed = true;
    query->failure = domus_sql_error_make(-EINVAL, "", "a COPY is no part of a script");
    query->is_dropped = true;
    if (!is_in) {
        connection->copies = true;
        return true;
    }
    if (PQputCopyEnd(connection->pg, "refused") != 1) {
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
        return false;
    }
    return domi_pg_flush_and_watch_for_rest(stack, pool, connection);
}

bool domi_pg_begin_copy_of_query(domus_stack *stack, domi_pg_pool *pool,
                                 domi_pg_connection *connection, domi_pg_query *query,
                                 const PGresult *result)
{
    bool is_in = PQresultStatus(result) == PGRES_COPY_IN;
    domi_pg_flow flow = is_in ? DOMI_PG_FLOWS_IN : DOMI_PG_FLOWS_OUT;

    if (query->job != (is_in ? DOMI_PG_COPY_IN : DOMI_PG_COPY_OUT))
        return refuse_copy_that_was_not_asked_for(stack, pool, connection, query, is_in);
    query->has_copied = true;
    connection->copies = !is_in;
    connection->piece = (domus_appender){.size_max = pool->settings.options.result_max};
    bool is_wanted = !query->is_answered &&
                     domi_pg_begin_flow_and_answer_its_ask(stack, pool, connection, query, flow);
    if (is_wanted)
        return true;
    /* The server waits for the bytes of a copy in, until it is told that the copy is aborted. */
    if (is_in && !domi_pg_end_copy_in_with_error(stack, pool, connection))
        return false;
    connection->flow = DOMI_PG_NO_FLOW;
    return domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -ESTALE);
}

bool domi_pg_do_abort_copy(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    if (PQputCopyEnd(connection->pg, "the copy was aborted") == 1)
        return domi_pg_flush_and_watch_for_rest(stack, pool, connection);
    domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
    return false;
}

/* --- bytes to the server ---------------------------------------------------------------------- */

static domi_pg_connection *find_connection_of_copy(const domi_pg_pool *pool, uint64_t number)
{
    domi_pg_connection *connection = domi_pg_find_connection_of_flow(pool, number);

    return connection != NULL && connection->flow == DOMI_PG_FLOWS_IN ? connection : NULL;
}

static void restart_idle_time_of_copy(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    connection->idle_ns = domus_now_ns(stack) + pool->settings.options.transaction_idle_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->idle_ns);
}

/* Give the query whose copy waits for the server the pool's time-out from now on. */
static void limit_time_of_first_query(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;

    query->until_ns = domus_now_ns(stack) + pool->settings.options.timeout_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
}

int domi_pg_send_bytes_of_copy_in(domus_stack *stack, void *self, const void *payload)
{
    const domus_pg_write *write = payload;
    domi_pg_pool *pool = self;
    domi_pg_connection *connection = find_connection_of_copy(pool, write->copy.number);

    if (connection == NULL)
        return -ESTALE;
    if (connection->has_reader)
        return -EBUSY;
    if (write->bytes.size > DOMUS_PG_WRITE_MAX)
        return -EMSGSIZE;
    /* Kept before libpq has the bytes, because a writer that hears of an error may repeat them. */
    int error = domus_keep_working(stack, &connection->reader);
    if (error != 0)
        return error;
    connection->has_reader = true;
    int done =
        PQputCopyData(connection->pg, domus_slice_data(write->bytes), (int)write->bytes.size);
    if (done == 0) {
        connection->has_reader = false;
        (void)domus_kept_fail(stack, connection->reader, -ENOMEM);
    } else if (done < 0) {
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
    } else if (domi_pg_flush_and_watch_for_rest(stack, pool, connection)) {
        restart_idle_time_of_copy(stack, pool, connection);
        domi_pg_answer_writer_of_sent_bytes(stack, connection);
        if (connection->has_reader)
            limit_time_of_first_query(stack, pool, connection);
    }
    return 0;
}

void domi_pg_answer_writer_of_sent_bytes(domus_stack *stack, domi_pg_connection *connection)
{
    static const domus_sql_result taken;

    if (!connection->has_reader || connection->wants_out)
        return;
    connection->has_reader = false;
    /* a copy in has no time limit between pieces: the user has idle_ns to write the next one */
    connection->line.first->until_ns = 0;
    (void)domus_kept_reply(stack, connection->reader, &domus_sql_result_type, &taken);
}

int domi_pg_send_end_of_copy_in(domus_stack *stack, void *self, const void *payload)
{
    const domus_sql_cursor *copy = payload;
    domi_pg_pool *pool = self;
    domi_pg_connection *connection = find_connection_of_copy(pool, copy->number);

    if (connection == NULL)
        return -ESTALE;
    if (connection->has_reader)
        return -EBUSY;
    domi_pg_query *query = connection->line.first;
    uint64_t deadline_ns = domus_deadline_ns(stack);
    int error = domus_keep_working(stack, &query->kept);
    if (error != 0)
        return error;
    query->is_answered = false;
    query->until_ns = domus_now_ns(stack) + pool->settings.options.timeout_ns;
    if (deadline_ns != 0 && deadline_ns < query->until_ns)
        query->until_ns = deadline_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
    domi_pg_clear_flow(stack, connection);
    if (PQputCopyEnd(connection->pg, NULL) != 1)
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
    /* The server may have refused the copy already, and libpq may have read the refusal: then no
     * more bytes come, so the result is taken now. */
    else if (domi_pg_flush_and_watch_for_rest(stack, pool, connection) &&
             domi_pg_use_results_of_libpq(stack, pool, connection))
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}

/* --- bytes from the server -------------------------------------------------------------------- */

bool domi_pg_do_give_copied_bytes_to_reader(domus_stack *stack, domi_pg_connection *connection,
                                            domi_pg_query *query, bool is_last)
{
    domus_pg_piece piece = {.last = is_last};
    uint32_t size_max = connection->piece.size_max;

    connection->has_reader = false;
    if (query->has_failed)
        return domus_kept_reply(stack, connection->reader, &domus_sql_error_type,
                                &query->failure) == 0;
    int error = domus_append_end(&connection->piece, &piece.bytes);
    connection->piece = (domus_appender){.size_max = size_max};
    if (error != 0) {
        (void)domus_kept_fail(stack, connection->reader, error);
        return false;
    }
    error = domus_kept_reply(stack, connection->reader, &domus_pg_piece_type, &piece);
    if (error != 0)
        domus_slice_free(piece.bytes);
    return error == 0;
}

bool domi_pg_read_bytes_of_copy_out(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;

    for (;;) {
        char *bytes = NULL;
        int size = PQgetCopyData(connection->pg, &bytes, 1);
        if (size <= 0) {
            connection->copies = size == 0;
            return size != 0;
        }
        query->reads = 0;
        query->read_bytes = 0;
        if (!query->is_dropped)
            (void)domus_append(&connection->piece, bytes, (size_t)size);
        PQfreemem(bytes);
        if (query->is_dropped || connection->piece.size < pool->settings.options.piece_size)
            continue;
        if (!connection->has_reader) {
            domi_pg_pause_reading_until_next_fetch(stack, pool, connection);
            return false;
        }
        if (!domi_pg_give_copied_bytes_to_reader(stack, connection, query, false)) {
            query->has_failed = query->is_dropped = true;
            query->failure =
                domus_sql_error_make(-EIO, "", "a piece was lost, its reader had ended");
        }
    }
}

int domi_pg_read_next_piece_of_copy_out(domus_stack *stack, void *self, const void *payload)
{
    const domus_sql_cursor *copy = payload;
    domi_pg_pool *pool = self;
    domi_pg_connection *connection = domi_pg_find_connection_of_flow(pool, copy->number);

    if (connection == NULL || connection->flow != DOMI_PG_FLOWS_OUT)
        return -ESTALE;
    return domi_pg_read_next_piece_of_flow(stack, pool, connection);
}
