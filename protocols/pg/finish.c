/* The end of a query at the server, or of its preparation: the query begins its next stage, is sent
 * again, or is answered. */
#include "protocols/pg/pg.h"

#include <string.h>

/* Send a query once more from its beginning, on the same connection. */
static bool send_query_again(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                             domi_pg_query *query)
{
    domi_pg_reset_query_to_unsent(query);
    return domi_pg_send_query(stack, pool, connection, query);
}

/* Remove a prepared statement that the server does not have any more, or not in this form. */
static void remove_unusable_statement(domi_pg_connection *connection, domi_pg_query *query)
{
    domi_pg_statement *statement = query->statement;

    if (statement == NULL)
        return;
    for (domi_pg_query *each = connection->line.first; each != NULL; each = each->next) {
        if (each->statement == statement)
            /* queries that were sent with the removed statement get errors of their own from the
             * server */
            each->statement = NULL;
    }
    domi_pg_remove_statement(&connection->statements, statement);
    query->statement = NULL;
}

/* Returns whether a query's failure was caused by a cancel. If so, one of the cancel's two signals
 * counts as used up. The first signal may have ended the query that was to be cancelled, and the
 * second may hit the next query of the line. */
static bool use_up_signal_if_cancel_caused_failure(domi_pg_connection *connection,
                                                   const domi_pg_query *query)
{
    if (connection->strays == 0 || strcmp(query->failure.sqlstate, "57014") != 0)
        return false;
    connection->strays--;
    return true;
}

/* Returns whether a failed query is to be sent once more, because a stray cancel hit it or its
 * statement was gone. It then goes to the end of the line, because the queries behind it were sent
 * already. */
static bool may_send_failed_query_again(domi_pg_connection *connection, domi_pg_query *query)
{
    bool is_hit = use_up_signal_if_cancel_caused_failure(connection, query);
    bool is_repaired = query->is_repaired;

    if (query->is_answered || connection->in_transaction || query->job > DOMI_PG_ROWS)
        return false;
    query->is_repaired = is_repaired || query->is_stale;
    return is_hit || (query->is_stale && !is_repaired);
}

/* Returns whether a query's failure only says that the server ends the connection, so that the
 * query itself has not failed. */
static bool is_failure_end_of_connection(const domi_pg_query *query)
{
    return strncmp(query->failure.sqlstate, "57P", 3) == 0;
}

/* Fail a query that the server has ended with an error. Returns false if the connection is lost. */
static bool fail_or_repeat_query_failed_by_server(domus_stack *stack, domi_pg_pool *pool,
                                                  domi_pg_connection *connection,
                                                  domi_pg_query *query)
{
    if (query->is_stale || query->stage == DOMI_PG_PREPARES)
        remove_unusable_statement(connection, query);
    if (is_failure_end_of_connection(query)) {
        char words[sizeof query->failure.message];
        memcpy(words, query->failure.message, sizeof words);
        domi_pg_line_add_first(&connection->line, query);
        domi_pg_lose_connection(stack, pool, connection, words);
        return false;
    }
    if (may_send_failed_query_again(connection, query)) {
        pool->counted.repeated++;
        return send_query_again(stack, pool, connection, query);
    }
    if (connection->transaction != 0 && connection->failure.error == 0)
        connection->failure = query->failure;
    bool is_lost = query->job == DOMI_PG_ASIDE && !query->is_optional;
    if (query->job == DOMI_PG_LISTEN)
        domi_pg_remove_refused_subscription(stack, pool, query);
    domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &query->failure);
    domi_pg_free_query(pool, query);
    if (is_lost)
        domi_pg_lose_connection(stack, pool, connection, "a command of the pool itself has failed");
    return !is_lost;
}

/* Answer the ask of a query with its whole result. */
static void answer_query_with_result(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query)
{
    domus_sql_result result;
    uint32_t size = domus_sql_built_size(&query->builder);
    int error = domus_sql_build_end(&query->builder, &result);

    if (error != 0) {
        domi_pg_fail_ask_of_query(stack, pool, query, error);
        return;
    }
    result.affected = query->affected;
    result.last = true;
    if (query->statement != NULL)
        query->statement->is_small =
            size <= DOMI_PG_SMALL_BYTES && result.rows <= DOMI_PG_SMALL_ROWS;
    (void)domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_result_type, &result);
}

static void answer_finished_query_by_its_job(domus_stack *stack, domi_pg_pool *pool,
                                             domi_pg_connection *connection, domi_pg_query *query)
{
    const domus_sql_result done = {.affected = query->affected, .last = true};

    switch ((domi_pg_job)query->job) {
    case DOMI_PG_QUERY:
        if (!query->is_answered)
            answer_query_with_result(stack, pool, query);
        break;
    case DOMI_PG_BEGIN:
        domi_pg_answer_begun_transaction(stack, pool, connection, query);
        break;
    case DOMI_PG_END:
        domi_pg_answer_ended_transaction(stack, pool, connection, query);
        break;
    case DOMI_PG_COPY_IN:
    case DOMI_PG_COPY_OUT:
        if (!query->has_copied)
            domi_pg_fail_ask_of_query(stack, pool, query, -EINVAL);
        (void)domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_result_type, &done);
        break;
    default:
        (void)domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_result_type, &done);
        break;
    }
    domi_pg_free_query(pool, query);
}

/* Fail a query whose statement has itself begun a transaction, or has ended the one that the query
 * is in. Returns whether it has begun a transaction. */
static bool fail_query_that_changed_transaction(const domi_pg_connection *connection,
                                                domi_pg_query *query)
{
    bool is_idle = PQtransactionStatus(connection->pg) == PQTRANS_IDLE;
    /* With other queries behind this one, libpq does not tell the status of the transaction. But
     * then this is a single statement, and its tag tells enough. */
    bool begins =
        !connection->in_transaction && (connection->line.count > 1 ? query->is_begin : !is_idle);
    bool ends = connection->transaction != 0 && (is_idle || query->has_ended);

    if (query->job == DOMI_PG_BEGIN || query->job == DOMI_PG_END || query->job >= DOMI_PG_LISTEN ||
        !(begins || ends))
        return false;
    if (!query->has_failed)
        query->failure =
            begins
                ? domus_sql_error_make(-EINVAL, "25001",
                                       "a statement has begun a transaction, which is rolled back")
                : domus_sql_error_make(-EINVAL, "2D000",
                                       "a statement has ended the transaction in which it is");
    query->has_failed = true;
    query->is_told = false; /* the server has no transaction any more that a failure could end */
    return begins;
}

bool domi_pg_do_finish_first_query(domus_stack *stack, domi_pg_pool *pool,
                                   domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;
    bool begins = fail_query_that_changed_transaction(connection, query);

    if (connection->flow != DOMI_PG_NO_FLOW &&
        !domi_pg_give_last_piece_of_flow(stack, pool, connection, query))
        /* the asker has not read all rows or bytes of the query yet, so it is finished later */
        return true;
    (void)domi_pg_line_take_first(&connection->line);
    connection->is_used |= query->job != DOMI_PG_ASIDE;
    domi_pg_set_up_reading_of_first_query(connection);
    if (query->stage == DOMI_PG_PREPARES)
        connection->is_preparing = false;
    if (query->job == DOMI_PG_END && query->has_failed) {
        domi_pg_answer_ended_transaction(stack, pool, connection, query);
        domi_pg_free_query(pool, query);
        return true;
    }
    if (query->has_failed) {
        bool is_there = fail_or_repeat_query_failed_by_server(stack, pool, connection, query);
        if (!is_there || !begins || connection->line.count == 0)
            return is_there;
        /* Queries of other askers that were sent already are now in the begun transaction, and the
         * end of the connection undoes them. */
        domi_pg_lose_connection(stack, pool, connection,
                                "a statement has begun a transaction by itself");
        return false;
    }
    if (query->is_skipped && !query->is_answered) {
        pool->counted.repeated++;
        return send_query_again(stack, pool, connection, query);
    }
    if (query->stage == DOMI_PG_PREPARES && !query->is_answered) {
        if (query->statement->is_ready)
            return domi_pg_send_query(stack, pool, connection, query);
        const domus_sql_error failure =
            domus_sql_error_make(-EINVAL, "07001", "another number of parameters is needed");
        /* the server may still have the statement under this name, so the name is never used
         * again */
        remove_unusable_statement(connection, query);
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
        domi_pg_free_query(pool, query);
        return true;
    }
    answer_finished_query_by_its_job(stack, pool, connection, query);
    return true;
}
