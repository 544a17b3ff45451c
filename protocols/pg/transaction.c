/* Transactions: each holds a connection, and its queries run one after the other. Its owner is
 * watched. If the owner ends, or does not use the transaction for too long, it is rolled back. */
#include "protocols/pg/pg.h"

int domi_pg_put_begin_of_transaction(domus_stack *stack, void *self, const void *payload)
{
    static const char *const commands[3][2] = {
        {"BEGIN", "BEGIN READ ONLY"},
        {"BEGIN ISOLATION LEVEL REPEATABLE READ",
         "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
        {"BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"},
    };
    const domus_sql_begin_options *options = payload;
    domus_address owner = domus_sender(stack);
    domi_pg_query *query = NULL;

    if ((uint32_t)options->isolation >= sizeof commands / sizeof commands[0])
        return -EINVAL;
    const char *command = commands[options->isolation][options->reads_only ? 1 : 0];
    int error = domi_pg_query_new_with_kept_ask(stack, self, DOMI_PG_BEGIN, NULL, &query);
    if (error != 0)
        return error;
    query->command = command;
    query->owner = owner;
    domi_pg_send_query_or_let_it_wait(stack, self, query);
    return 0;
}

int domi_pg_put_end_into_transaction(domus_stack *stack, void *self, const void *payload)
{
    const domus_sql_end end = *(const domus_sql_end *)payload;
    domi_pg_query *query = NULL;
    int error = domi_pg_query_new_with_kept_ask(stack, self, DOMI_PG_END, NULL, &query);

    if (error != 0)
        return error;
    query->request.transaction = end.transaction;
    query->commits = end.commits;
    query->command = end.commits ? "COMMIT" : "ROLLBACK";
    domi_pg_send_or_queue_in_transaction(stack, self, query);
    return 0;
}

int domi_pg_roll_back_if_abandoned(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_connection *connection =
        domi_pg_find_transaction(self, ((const domus_sql *)payload)->transaction);
    bool is_there = connection != NULL;

    if (is_there && connection->flow != DOMI_PG_NO_FLOW)
        is_there = domi_pg_give_up_flow_of_rows_or_copy(stack, self, connection, -ESTALE);
    if (is_there && connection->transaction != 0) {
        domi_pg_roll_back_abandoned_transaction(stack, self, connection);
        (void)domi_pg_go_on_or_list_as_free(stack, self, connection);
    }
    domi_pg_serve_waiting_queries(stack, self);
    return 0;
}

static void fail_and_free_query_of_transaction(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_query *query, int error)
{
    domi_pg_fail_ask_of_query(stack, pool, query, error);
    domi_pg_free_query(pool, query);
}

void domi_pg_send_or_queue_in_transaction(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_query *query)
{
    domi_pg_connection *connection = domi_pg_find_transaction(pool, query->request.transaction);

    if (connection == NULL) {
        fail_and_free_query_of_transaction(stack, pool, query,
                                           query->request.transaction != 0 ? -ESTALE : -EINVAL);
        return;
    }
    if (query->job != DOMI_PG_END &&
        !domi_pg_has_line_room_for_query(pool, &connection->todo, query)) {
        fail_and_free_query_of_transaction(stack, pool, query, -ENOBUFS);
        return;
    }
    query->until_ns = domus_now_ns(stack) + pool->settings.options.timeout_ns;
    if (query->deadline_ns != 0 && query->deadline_ns < query->until_ns)
        query->until_ns = query->deadline_ns;
    domi_pg_line_add_last(&connection->todo, query);
    /* The end of a transaction does not wait for rows that were not read to their end; they are
     * dropped. */
    bool is_there = query->job != DOMI_PG_END || connection->flow == DOMI_PG_NO_FLOW ||
                    domi_pg_give_up_flow_of_rows_or_copy(stack, pool, connection, -ESTALE);
    if (is_there && domi_pg_go_on_or_list_as_free(stack, pool, connection) &&
        connection->todo.count != 0)
        domi_pg_set_timer_of_pool_for_time(stack, pool, connection->todo.first->until_ns);
}

/* Send a query of the transaction; after a failure only a rollback is sent, and other queries fail.
 * Returns false if the connection is lost. */
static bool send_query_in_transaction(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection, domi_pg_query *query)
{
    if (connection->is_spoiled && query->job != DOMI_PG_END) {
        const domus_sql_error failure = domus_sql_error_make(
            -EINVAL, "25P02", "a statement of this transaction has failed before");
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
        domi_pg_free_query(pool, query);
        return true;
    }
    if (connection->is_spoiled)
        query->command = "ROLLBACK";
    return domi_pg_send_query(stack, pool, connection, query);
}

bool domi_pg_send_queued_of_transaction(domus_stack *stack, domi_pg_pool *pool,
                                        domi_pg_connection *connection)
{
    while (connection->line.count == 0 && connection->todo.first != NULL) {
        if (!send_query_in_transaction(stack, pool, connection,
                                       domi_pg_line_take_first(&connection->todo)))
            return false;
    }
    if (connection->line.count == 0) {
        connection->idle_ns = domus_now_ns(stack) + pool->settings.options.transaction_idle_ns;
        domi_pg_set_timer_of_pool_for_time(stack, pool, connection->idle_ns);
    }
    return true;
}

/* --- begin and end of a transaction ----------------------------------------------------------- */

void domi_pg_answer_begun_transaction(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection, domi_pg_query *query)
{
    const domus_sql sql = {.at = pool->self,
                           .transaction = domi_pg_make_new_number_of_flow(pool, connection)};

    connection->failure.error = 0;
    connection->is_spoiled = false;
    if (query->is_answered ||
        domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_begun_type, &sql) != 0)
        return; /* the asker does not wait any more, so the transaction is rolled back */
    connection->transaction = sql.transaction;
    if (domi_pg_watch_owner(stack, connection, query->owner) != 0)
        domi_pg_roll_back_abandoned_transaction(stack, pool, connection);
}

void domi_pg_answer_ended_transaction(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection, domi_pg_query *query)
{
    const domus_sql_result done = {.last = true};

    domi_pg_query *left;
    connection->transaction = 0;
    while ((left = domi_pg_line_take_first(&connection->todo)) != NULL)
        fail_and_free_query_of_transaction(stack, pool, left, -ESTALE);
    domi_pg_unwatch_owner(stack, connection);
    if (query->has_failed)
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &query->failure);
    else if (query->commits && query->is_rollback) {
        if (connection->failure.error == 0)
            connection->failure =
                domus_sql_error_make(-EINVAL, "25P02", "the transaction was rolled back");
        domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &connection->failure);
    } else
        (void)domi_pg_answer_ask_of_query(stack, pool, query, &domus_sql_result_type, &done);
}

void domi_pg_roll_back_abandoned_transaction(domus_stack *stack, domi_pg_pool *pool,
                                             domi_pg_connection *connection)
{
    domi_pg_query *query;

    connection->transaction = 0;
    domi_pg_unwatch_owner(stack, connection);
    while ((query = domi_pg_line_take_first(&connection->todo)) != NULL)
        fail_and_free_query_of_transaction(stack, pool, query, -ESTALE);
    query = connection->line.first;
    /* the end of the transaction was sent already, and its answer is passed on */
    if (query == NULL || query->job == DOMI_PG_END)
        return;
    /* a command of the pool may stand before the transaction's query in the line */
    for (; query != NULL; query = query->next) {
        domi_pg_fail_ask_of_query(stack, pool, query, -ESTALE);
        query->is_dropped = true;
    }
    domi_pg_cancel_first_of_line(stack, pool, connection);
}

/* --- the owner of a transaction --------------------------------------------------------------- */

int domi_pg_watch_owner(domus_stack *stack, domi_pg_connection *connection, domus_address owner)
{
    /* an owner outside of the system, which has no house, cannot be watched */
    if (connection->has_owner || owner.house == NULL)
        return 0;
    int error = domus_watch_actor(stack, owner, &connection->owner_watch);
    if (error == 0) {
        connection->owner = owner;
        connection->has_owner = true;
    }
    return error;
}

void domi_pg_unwatch_owner(domus_stack *stack, domi_pg_connection *connection)
{
    if (connection->has_owner)
        (void)domus_unwatch(stack, connection->owner_watch);
    connection->has_owner = false;
}

int domi_pg_release_what_ended_actor_had(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    const domus_down *down = payload;

    domi_pg_end_subscriptions_of_ended(stack, pool, down->who);
    for (uint32_t slot = 0; slot < DOMI_PG_CONNECTIONS_MAX; slot++) {
        domi_pg_connection *each = pool->connections[slot];
        if (each == NULL || !each->has_owner || !domus_address_equals(each->owner, down->who))
            continue;
        domi_pg_unwatch_owner(stack, each);
        bool is_there = true;
        if (each->flow != DOMI_PG_NO_FLOW)
            is_there = domi_pg_give_up_flow_of_rows_or_copy(stack, pool, each, -ESTALE);
        if (is_there && each->transaction != 0)
            domi_pg_roll_back_abandoned_transaction(stack, pool, each);
        if (is_there)
            (void)domi_pg_go_on_or_list_as_free(stack, pool, each);
    }
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}
