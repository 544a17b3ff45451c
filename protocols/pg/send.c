/* Sends queries: a query is added to the line of a connection and leaves at once, with a sync of
 * its own, or with one that several reads share. Scripts and copies, which libpq allows only
 * outside of pipeline mode, wait for an empty line, and then that mode is left, which costs no
 * message. */
#include "protocols/pg/pg.h"

#include <stdio.h>
#include <stdlib.h>

/* Fail a query that could not be sent at all. */
static void fail_unsent_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                              int error, const char *sqlstate, const char *words)
{
    const domus_sql_error failure = domus_sql_error_make(error, sqlstate, "%s", words);

    domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
    domi_pg_free_query(pool, query);
}

bool domi_pg_flush_and_watch_for_rest(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    int left = PQflush(connection->pg);

    if (left >= 0 && (connection->flow_is_paused ||
                      domi_pg_watch_socket(stack, pool, connection, left > 0) == 0))
        return true;
    domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
    return false;
}

/* Enter or leave the pipeline mode of libpq, which is possible only while the connection's line is
 * empty. Returns false if it fails. */
static bool set_pipeline_mode(domi_pg_connection *connection, bool wanted)
{
    if (connection->has_pipeline == wanted)
        return true;
    int done = wanted ? PQenterPipelineMode(connection->pg) : PQexitPipelineMode(connection->pg);
    if (done == 1)
        connection->has_pipeline = wanted;
    return done == 1;
}

static bool send_command_without_parameters(domi_pg_connection *connection, const char *command)
{
    return PQsendQueryParams(connection->pg, command, 0, NULL, NULL, NULL, NULL, 0) == 1;
}

/* Send a command of the pool whose failure does no harm. Returns false if libpq fails. */
static bool send_command_that_may_fail(domi_pg_pool *pool, domi_pg_connection *connection,
                                       const char *command)
{
    domi_pg_query *aside = domi_pg_make_query_or_use_spare_one(pool, DOMI_PG_ASIDE);

    if (aside == NULL)
        return false;
    aside->is_optional = true;
    aside->stage = DOMI_PG_RUNS;
    domi_pg_line_add_last(&connection->line, aside);
    return send_command_without_parameters(connection, command) &&
           PQpipelineSync(connection->pg) == 1;
}

/* Remove the prepared statement that was not used for longest, if the connection has too many. */
static bool evict_oldest_statement(domi_pg_pool *pool, domi_pg_connection *connection)
{
    domi_pg_statements *statements = &connection->statements;
    char command[64];

    /* In a failed transaction the server would refuse the DEALLOCATE, and would keep the
     * statement. */
    if (statements->count < pool->settings.options.statements_max ||
        PQtransactionStatus(connection->pg) == PQTRANS_INERROR)
        return true;
    domi_pg_statement *oldest = statements->oldest;
    for (const domi_pg_query *query = connection->line.first; query != NULL; query = query->next) {
        if (query->statement == oldest)
            /* a query in the line uses the statement, so the connection has one statement too
             * many for a while */
            return true;
    }
    snprintf(command, sizeof command, "DEALLOCATE %s", oldest->name);
    if (!send_command_that_may_fail(pool, connection, command))
        return false;
    domi_pg_remove_statement(statements, oldest);
    return true;
}

/* Ask the server once, before the first query, to check now and then whether its client is still
 * connected, unless it does so anyway. A server that hangs may miss a cancel, and would then run a
 * query long after its connection was closed. Servers that cannot check have no such setting. */
static bool let_server_check_its_client_now_and_then(domi_pg_pool *pool,
                                                     domi_pg_connection *connection)
{
    static const char command[] =
        "SELECT set_config('client_connection_check_interval', '" DOMI_PG_LOOKS_FOR_CLIENT
        "', false) WHERE current_setting('client_connection_check_interval', true) = '0'";

    if (connection->was_asked || connection->in_transaction || connection->slot == DOMI_PG_LISTENER)
        return true;
    connection->was_asked = true;
    return send_command_that_may_fail(pool, connection, command);
}

/* Send the preparation of a statement that is new to the connection, and add its query to the line.
 * It is added even if the rest fails for want of memory. */
static bool send_preparation_of_statement(domi_pg_pool *pool, domi_pg_connection *connection,
                                          domi_pg_query *query)
{
    PGconn *pg = connection->pg;

    bool has_room = evict_oldest_statement(pool, connection);
    /* once the query is in the line, it is answered even if this function fails */
    domi_pg_line_add_last(&connection->line, query);
    if (!has_room)
        return false;
    domi_pg_statement *statement = domi_pg_add_statement(
        &connection->statements, query->request.statement, query->request.count, connection->token);
    if (statement == NULL)
        return false;
    query->statement = statement;
    query->stage = DOMI_PG_PREPARES;
    query->described = 0;
    connection->is_preparing = true;
    pool->counted.prepares++;
    return PQsendPrepare(pg, statement->name, statement->of->text, 0, NULL) == 1 &&
           PQsendDescribePrepared(pg, statement->name) == 1 && PQpipelineSync(pg) == 1;
}

/* Queue a query with its parameters at libpq. The connection has prepared its statement, or the
 * query has a text of its own. */
static bool queue_query_with_parameters_at_libpq(domi_pg_connection *connection,
                                                 domi_pg_query *query,
                                                 const domi_pg_parameters *parameters)
{
    const domi_pg_statement *statement = query->statement;
    PGconn *pg = connection->pg;
    int count = (int)query->request.count;
    int queued =
        statement != NULL
            ? PQsendQueryPrepared(pg, statement->name, count, parameters->values, parameters->sizes,
                                  parameters->formats, statement->is_binary)
            : PQsendQueryParams(pg, domus_sql_request_text(&query->request), count, NULL,
                                parameters->values, parameters->sizes, parameters->formats, 0);

    return queued == 1;
}

static bool send_script_outside_pipeline(domi_pg_connection *connection, domi_pg_query *query)
{
    return set_pipeline_mode(connection, false) &&
           PQsendQuery(connection->pg, domus_sql_request_text(&query->request)) == 1;
}

void domi_pg_set_up_reading_of_first_query(domi_pg_connection *connection)
{
    domi_pg_query *first = connection->line.first;

    if (first == NULL || first->stage != DOMI_PG_RUNS)
        return;
    first->reads = 0;
    first->read_bytes = 0;
    first->is_small =
        first->job == DOMI_PG_QUERY && first->statement != NULL && first->statement->is_small;
    if (first->job <= DOMI_PG_SCRIPT && !first->is_small)
        (void)PQsetSingleRowMode(connection->pg);
}

/* Send the query that was added to the end of the line. Returns false if the connection is lost. */
static bool flush_sent_query_or_lose_connection(domus_stack *stack, domi_pg_pool *pool,
                                                domi_pg_connection *connection, bool is_sent)
{
    if (!is_sent) {
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
        return false;
    }
    if (connection->line.count == 1)
        domi_pg_set_up_reading_of_first_query(connection);
    return domi_pg_flush_and_watch_for_rest(stack, pool, connection);
}

/* Set the time at which a query that was sent is cancelled. */
static void set_time_limit_of_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query)
{
    const domus_sql_statement *statement = query->request.statement;
    uint64_t timeout_ns = statement != NULL && statement->timeout_ns != 0
                              ? statement->timeout_ns
                              : pool->settings.options.timeout_ns;
    uint64_t until_ns = domus_now_ns(stack) + timeout_ns;

    query->until_ns =
        query->deadline_ns != 0 && query->deadline_ns < until_ns ? query->deadline_ns : until_ns;
    domi_pg_set_timer_of_pool_for_time(stack, pool, query->until_ns);
}

/* Add a query to the line, and queue it with its parameters at libpq. Returns 0; 1 if its
 * parameters are wrong or lack memory, and it was failed unsent; -EPIPE if libpq fails. */
static int queue_query_with_parameters(domus_stack *stack, domi_pg_pool *pool,
                                       domi_pg_connection *connection, domi_pg_query *query)
{
    domi_pg_parameters parameters;
    int error = 0;

    if (query->statement != NULL && query->statement->params != query->request.count)
        fail_unsent_query(stack, pool, query, -EINVAL, "07001",
                          "another number of parameters is needed");
    else if ((error = domi_pg_write_parameters(pool, &query->request, query->statement,
                                               &parameters)) != 0)
        fail_unsent_query(stack, pool, query, error, error == -EINVAL ? "22021" : "",
                          error == -EINVAL ? "a text has a zero in it"
                                           : "no memory for parameters");
    else {
        query->stage = DOMI_PG_RUNS;
        domi_pg_line_add_last(&connection->line, query);
        return queue_query_with_parameters_at_libpq(connection, query, &parameters) ? 0 : -EPIPE;
    }
    return 1;
}

/* Send a query that is not in the line yet, with its parameters. Returns false if the connection is
 * lost. */
static bool send_query_with_parameters(domus_stack *stack, domi_pg_pool *pool,
                                       domi_pg_connection *connection, domi_pg_query *query)
{
    int error = queue_query_with_parameters(stack, pool, connection, query);

    if (error == 1)
        return connection->line.count == 0 ||
               domi_pg_flush_and_watch_for_rest(stack, pool, connection);
    return flush_sent_query_or_lose_connection(stack, pool, connection,
                                               error == 0 && PQpipelineSync(connection->pg) == 1);
}

bool domi_pg_send_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query)
{
    bool is_plain = query->job == DOMI_PG_SCRIPT || query->job == DOMI_PG_COPY_IN ||
                    query->job == DOMI_PG_COPY_OUT;
    bool is_sent;

    if (query->stage == DOMI_PG_WAITS)
        set_time_limit_of_query(stack, pool, query);
    if (query->job == DOMI_PG_BEGIN)
        connection->in_transaction = true;
    if (is_plain || query->command != NULL) {
        query->stage = DOMI_PG_RUNS;
        domi_pg_line_add_last(&connection->line, query);
        is_sent = is_plain ? send_script_outside_pipeline(connection, query)
                           : set_pipeline_mode(connection, true) &&
                                 send_command_without_parameters(connection, query->command) &&
                                 PQpipelineSync(connection->pg) == 1;
        return flush_sent_query_or_lose_connection(stack, pool, connection, is_sent);
    }
    if (!set_pipeline_mode(connection, true) ||
        !let_server_check_its_client_now_and_then(pool, connection)) {
        domi_pg_line_add_last(&connection->line, query);
        return flush_sent_query_or_lose_connection(stack, pool, connection, false);
    }
    if (query->request.statement != NULL) {
        query->statement =
            domi_pg_find_statement(&connection->statements, query->request.statement);
        if (query->statement == NULL)
            return flush_sent_query_or_lose_connection(
                stack, pool, connection, send_preparation_of_statement(pool, connection, query));
    }
    return send_query_with_parameters(stack, pool, connection, query);
}

/* --- reads that leave together ---------------------------------------------------------------- */

/* Returns the prepared statement of a waiting query if the query may share its sync with others,
 * because it reads only a little; otherwise NULL. */
static domi_pg_statement *find_statement_to_share_sync(domi_pg_connection *connection,
                                                       const domi_pg_query *query)
{
    const domus_sql_statement *of = query != NULL ? query->request.statement : NULL;

    if (of == NULL || !of->reads || query->job != DOMI_PG_QUERY)
        return NULL;
    domi_pg_statement *statement = domi_pg_find_statement(&connection->statements, of);
    return statement != NULL && statement->is_ready && statement->is_small ? statement : NULL;
}

bool domi_pg_send_waiting_queries(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection)
{
    uint32_t most = pool->settings.options.together_max;
    domi_pg_statement *statement =
        connection->line.count == 0 ? find_statement_to_share_sync(connection, pool->waiting.first)
                                    : NULL;
    domi_pg_query *last = NULL;

    if (statement == NULL)
        return domi_pg_send_query(stack, pool, connection, domi_pg_line_take_first(&pool->waiting));
    int error = set_pipeline_mode(connection, true) ? 0 : -EPIPE;
    for (uint32_t i = 0; error >= 0 && i < most && statement != NULL; i++) {
        domi_pg_query *query = domi_pg_line_take_first(&pool->waiting);
        query->statement = statement;
        set_time_limit_of_query(stack, pool, query);
        error = queue_query_with_parameters(stack, pool, connection, query);
        if (error != 1) {
            query->is_joined = true;
            last = query;
        }
        statement = find_statement_to_share_sync(connection, pool->waiting.first);
    }
    if (last == NULL)
        return error >= 0 || flush_sent_query_or_lose_connection(stack, pool, connection, false);
    last->is_joined = false;
    domi_pg_set_up_reading_of_first_query(connection);
    return flush_sent_query_or_lose_connection(stack, pool, connection,
                                               error >= 0 && PQpipelineSync(connection->pg) == 1);
}

bool domi_pg_send_command_of_pool_itself(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection, const char *command)
{
    domi_pg_query *aside = domi_pg_make_query_or_use_spare_one(pool, DOMI_PG_ASIDE);

    if (aside == NULL) {
        domi_pg_lose_connection(stack, pool, connection, "no memory for a command");
        return false;
    }
    aside->command = command;

    return domi_pg_send_query(stack, pool, connection, aside);
}
