/* The end of a connection: its queries that are under way fail, or are repeated where that is
 * harmless, and the next connect is delayed by a time that doubles with each failure in a row. */
#include "protocols/pg/pg.h"

#include <string.h>

/* Returns whether the query may be sent again on another connection: it had not begun, or may be
 * done twice. The number of repeats is small, because a server that ends may take the next
 * connection, too. */
static bool may_repeat_on_other_connection(const domi_pg_connection *connection,
                                           const domi_pg_query *query)
{
    if (query->job == DOMI_PG_LISTEN)
        return !query->is_answered;
    if (query->is_answered || query->repeats == DOMI_PG_REPEATS_MAX || connection->transaction != 0)
        return false;
    if (query->job == DOMI_PG_BEGIN)
        return true;
    if (query->job != DOMI_PG_QUERY && query->job != DOMI_PG_ROWS)
        return false;
    const domus_sql_statement *statement = query->request.statement;
    return query->stage != DOMI_PG_RUNS ||
           (statement != NULL && (statement->repeatable || statement->reads));
}

/* Reset a query to the state in which it was before it was sent. */
void domi_pg_reset_query_to_unsent(domi_pg_query *query)
{
    query->stage = DOMI_PG_WAITS;
    query->statement = NULL;
    query->has_failed = query->is_told = query->is_begin = query->has_ended = query->is_stale =
        query->is_dropped = false;
    query->is_joined = query->has_result = query->is_skipped = query->is_cancelled = false;
    query->affected = 0;
    domus_sql_build_drop(&query->builder);
}

/* Take the queries off the line of a lost connection: fail them, or add those that may be repeated
 * to the list `again`. */
static void fail_or_requeue_queries_of_lost_line(domus_stack *stack, domi_pg_pool *pool,
                                                 domi_pg_connection *connection,
                                                 const domus_sql_error *failure,
                                                 domi_pg_line *again)
{
    domi_pg_query *query;

    while ((query = domi_pg_line_take_first(&connection->line)) != NULL) {
        if (may_repeat_on_other_connection(connection, query)) {
            domi_pg_reset_query_to_unsent(query);
            query->repeats++;
            pool->counted.repeated++;
            domi_pg_line_add_last(again, query);
            continue;
        }
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query,
                                               query->has_failed ? &query->failure : failure);
        domi_pg_free_query(pool, query);
    }
    while ((query = domi_pg_line_take_first(&connection->todo)) != NULL) {
        domi_pg_fail_ask_of_query(stack, pool, query, -ESTALE);
        domi_pg_free_query(pool, query);
    }
}

/* Delay the pool's next connect, because a connect has failed, or a connection has ended on which
 * no query was answered. */
static void delay_next_connect(domus_stack *stack, domi_pg_pool *pool)
{
    const domus_sql_options *options = &pool->settings.options;
    uint64_t now_ns = domus_now_ns(stack);
    uint64_t time_ns = options->backoff_min_ns;

    for (uint32_t i = 0; i < pool->failures && time_ns < options->backoff_max_ns; i++)
        time_ns *= 2;
    if (time_ns > options->backoff_max_ns)
        time_ns = options->backoff_max_ns;
    pool->failures++;
    /* The delay is a random part between a half and the whole, so that many clients do not come
     * back at the same moment. */
    domus_address chance = {.house = pool->self.house, .lease = (uint32_t)now_ns};
    pool->connect_ns = now_ns + time_ns / 2 + domus_address_hash(chance) % (time_ns / 2 + 1);
    if (pool->count - pool->connecting == 0 && pool->down_since_ns == 0) {
        pool->down_since_ns = now_ns;
        domi_pg_set_timer_of_pool_for_time(stack, pool, now_ns + options->wait_ns);
    }
}

static void fail_ask_of_reader_of_flow(domus_stack *stack, domi_pg_connection *connection,
                                       int error)
{
    if (connection->has_reader)
        (void)domus_kept_fail(stack, connection->reader, error);
    connection->has_reader = false;
}

void domi_pg_do_lose_connection(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *connection, const char *words)
{
    bool was_ready = connection->phase == DOMI_PG_READY;
    bool is_used = connection->is_used;
    domus_sql_error failure =
        domus_sql_error_make(-EPIPE, "", "the connection is lost: %s", words != NULL ? words : "");
    domi_pg_line again = {NULL, NULL, 0, 0};
    domi_pg_query *query;

    domi_pg_unlist_free_connection(pool, connection);
    domi_pg_unwatch_socket(stack, pool, connection);
    domi_pg_unwatch_owner(stack, connection);
    fail_ask_of_reader_of_flow(stack, connection, -EPIPE);
    fail_or_requeue_queries_of_lost_line(stack, pool, connection, &failure, &again);
    pool->counted.failures++;
    bool listens = connection->slot == DOMI_PG_LISTENER;
    if (!listens) {
        pool->count--;
        pool->connecting -= was_ready ? 0 : 1;
    }
    if (!was_ready)
        pool->down = domus_sql_error_make(-ENOTCONN, "08001", "%s", words != NULL ? words : "");
    domi_pg_close_and_free_connection(pool, connection);
    if (listens) {
        /* Asks for a LISTEN that were sent on the lost connection come before those that wait for
         * the next one. */
        while ((query = domi_pg_line_take_first(&pool->listening)) != NULL)
            domi_pg_line_add_last(&again, query);
        pool->listening = again;
        domi_pg_plan_next_listener_when_lost(stack, pool);
        return;
    }
    if (!was_ready || !is_used)
        delay_next_connect(stack, pool);
    while (again.first != NULL)
        domi_pg_send_query_or_let_it_wait(stack, pool, domi_pg_line_take_first(&again));
    /* other waiting queries may need a new connection, so the pool is checked now */
    domi_pg_set_timer_of_pool_for_time(stack, pool, domus_now_ns(stack));
}
