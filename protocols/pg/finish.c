/* The end of a query at the server: it goes on to its next stage, is sent once more, or is
 * answered.
 */
#include "protocols/pg/pg.h"

#include <string.h>

/* Send a query from its beginning again, on the same connection. */
static bool send_query_again(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                             domi_pg_query *query)
{
    domi_pg_rewind(query);
    return domi_pg_run(stack, pool, connection, query);
}

/* Forget a statement that the server does not have, or not so any more. */
static void forget_statement(domi_pg_connection *connection, domi_pg_query *query)
{
    domi_pg_statement *statement = query->statement;

    if (statement == NULL)
        return;
    for (domi_pg_query *each = connection->line.first; each != NULL; each = each->next) {
        if (each->statement == statement)
            each->statement = NULL; /* it was sent, and will find out by itself */
    }
    domi_pg_statement_remove(&connection->statements, statement);
    query->statement = NULL;
}

/* Returns whether the failure is that of a cancel which was sent, and count it as the hit of one of
 * its signals. The first of them may have ended the query that it was for, and the second one come
 * while the server works at the next query of the line already. */
static bool take_hit(domi_pg_connection *connection, const domi_pg_query *query)
{
    if (connection->strays == 0 || strcmp(query->failure.sqlstate, "57014") != 0)
        return false;
    connection->strays--;
    return true;
}

/* Returns whether a failure is to be mended by sending the query once more. It goes to the end of
 * its line, because the queries behind it were sent. */
static bool may_mend(domi_pg_connection *connection, domi_pg_query *query)
{
    bool is_hit = take_hit(connection, query);
    bool is_repaired = query->is_repaired;

    if (query->is_answered || connection->in_transaction || query->job > DOMI_PG_ROWS)
        return false;
    query->is_repaired = is_repaired || query->is_stale;
    return is_hit || (query->is_stale && !is_repaired);
}

/* The server ends the connection: it is not the query that has failed. */
static bool ends_connection(const domi_pg_query *query)
{
    return strncmp(query->failure.sqlstate, "57P", 3) == 0;
}

/* A query has failed. False: the connection is lost. */
static bool fail_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query)
{
    if (query->is_stale || query->stage == DOMI_PG_PREPARES)
        forget_statement(connection, query);
    if (ends_connection(query)) {
        char words[sizeof query->failure.message];
        memcpy(words, query->failure.message, sizeof words);
        domi_pg_line_add_first(&connection->line, query);
        domi_pg_lose(stack, pool, connection, words);
        return false;
    }
    if (may_mend(connection, query)) {
        pool->counted.repeated++;
        return send_query_again(stack, pool, connection, query);
    }
    if (connection->transaction != 0 && connection->failure.error == 0)
        connection->failure = query->failure;
    bool is_lost = query->job == DOMI_PG_ASIDE && !query->is_optional;
    if (query->job == DOMI_PG_LISTEN)
        domi_pg_refuse_subscription(stack, pool, query);
    domi_pg_fail_with(stack, pool, query, &query->failure);
    domi_pg_query_free(pool, query);
    if (is_lost)
        domi_pg_lose(stack, pool, connection, "a command of the pool itself has failed");
    return !is_lost;
}

/* Answer with the whole result. */
static void answer_result(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query)
{
    domus_sql_result result;
    uint32_t size = domus_sql_built_size(&query->builder);
    int error = domus_sql_build_end(&query->builder, &result);

    if (error != 0) {
        domi_pg_fail(stack, pool, query, error);
        return;
    }
    result.affected = query->affected;
    result.last = true;
    if (query->statement != NULL)
        query->statement->is_small =
            size <= DOMI_PG_SMALL_BYTES && result.rows <= DOMI_PG_SMALL_ROWS;
    (void)domi_pg_answer(stack, pool, query, &domus_sql_result_type, &result);
}

static void answer_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                         domi_pg_query *query)
{
    const domus_sql_result done = {.affected = query->affected, .last = true};

    switch ((domi_pg_job)query->job) {
    case DOMI_PG_QUERY:
        if (!query->is_answered)
            answer_result(stack, pool, query);
        break;
    case DOMI_PG_BEGIN:
        domi_pg_has_begun(stack, pool, connection, query);
        break;
    case DOMI_PG_END:
        domi_pg_has_ended(stack, pool, connection, query);
        break;
    case DOMI_PG_COPY_IN:
    case DOMI_PG_COPY_OUT:
        if (!query->has_copied)
            domi_pg_fail(stack, pool, query, -EINVAL);
        (void)domi_pg_answer(stack, pool, query, &domus_sql_result_type, &done);
        break;
    default:
        (void)domi_pg_answer(stack, pool, query, &domus_sql_result_type, &done);
        break;
    }
    domi_pg_query_free(pool, query);
}

/* A statement has begun a transaction by itself, or ended that in which it is: let it fail. Returns
 * whether it has begun one. */
static bool look_at_transaction(const domi_pg_connection *connection, domi_pg_query *query)
{
    bool is_idle = PQtransactionStatus(connection->pg) == PQTRANS_IDLE;
    /* With others behind it libpq does not tell the status; but then it is one statement, whose tag
     * says enough. */
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
    query->is_told = false; /* the server has no transaction any more that could fail */
    return begins;
}

bool domi_pg_do_finish(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;
    bool begins = look_at_transaction(connection, query);

    if (connection->flow != DOMI_PG_NO_FLOW && !domi_pg_flow_end(stack, pool, connection, query))
        return true; /* the flow has still to be read */
    (void)domi_pg_line_take(&connection->line);
    connection->is_used |= query->job != DOMI_PG_ASIDE;
    domi_pg_begin_first(connection);
    if (query->stage == DOMI_PG_PREPARES)
        connection->is_preparing = false;
    if (query->job == DOMI_PG_END && query->has_failed) {
        domi_pg_has_ended(stack, pool, connection, query);
        domi_pg_query_free(pool, query);
        return true;
    }
    if (query->has_failed) {
        bool is_there = fail_query(stack, pool, connection, query);
        if (!is_there || !begins || connection->line.count == 0)
            return is_there;
        /* Queries of others, which were sent already, are in that transaction, and undone. */
        domi_pg_lose(stack, pool, connection, "a statement has begun a transaction by itself");
        return false;
    }
    if (query->is_skipped && !query->is_answered) {
        pool->counted.repeated++;
        return send_query_again(stack, pool, connection, query);
    }
    if (query->stage == DOMI_PG_PREPARES && !query->is_answered) {
        if (query->statement->is_ready)
            return domi_pg_run(stack, pool, connection, query);
        const domus_sql_error failure =
            domus_sql_error_make(-EINVAL, "07001", "another number of parameters is needed");
        forget_statement(connection, query); /* the name is never used again */
        domi_pg_fail_with(stack, pool, query, &failure);
        domi_pg_query_free(pool, query);
        return true;
    }
    answer_query(stack, pool, connection, query);
    return true;
}
