/* The actor that is a pool of connections to PostgreSQL, and the driver that makes it for urls of
 * PostgreSQL. */
#include "protocols/pg/pg.h"

#include <stdlib.h>
#include <string.h>

static const domi_pg_doors doors = {
    .lose = domi_pg_do_lose_connection,
    .settle = domi_pg_do_go_on_or_list_as_free,
    .serve = domi_pg_do_serve_waiting_queries,
    .put = domi_pg_do_send_query_or_let_it_wait,
    .take = domi_pg_do_use_results_of_libpq,
    .finish = domi_pg_do_finish_first_query,
    .drop_flow = domi_pg_do_give_up_flow,
    .listener_ready = domi_pg_do_send_listens_on_ready,
    .listener_lost = domi_pg_do_plan_next_listener_when_lost,
    .copy_give = domi_pg_do_give_copied_bytes_to_reader,
    .copy_abort = domi_pg_do_abort_copy,
};

static int make_least_connections_of_pool_at_mount(domus_stack *stack, void *self)
{
    domi_pg_pool *pool = self;

    pool->self = domus_self(stack);
    pool->doors = &doors;
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++)
        pool->fds[slot] = -1;
    /* make the connections that the options keep open even without use */
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}

static void fail_queries_of_line(domus_stack *stack, domi_pg_pool *pool, domi_pg_line *line,
                                 int error)
{
    domi_pg_query *query;

    while ((query = domi_pg_line_take_first(line)) != NULL) {
        domi_pg_fail_ask_of_query(stack, pool, query, error);
        domi_pg_free_query(pool, query);
    }
}

static void fail_queries_and_close_pool_at_stop(domus_stack *stack, void *self)
{
    domi_pg_pool *pool = self;

    fail_queries_of_line(stack, pool, &pool->waiting, -ESTALE);
    fail_queries_of_line(stack, pool, &pool->listening, -ESTALE);
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++) {
        domi_pg_connection *connection = pool->connections[slot];
        if (connection == NULL)
            continue;
        /* the connection ends, and the server may have done this query or not */
        fail_queries_of_line(stack, pool, &connection->line, -EPIPE);
        fail_queries_of_line(stack, pool, &connection->todo, -ESTALE);
        domi_pg_close_and_free_connection(pool, connection);
    }
    domi_pg_free_all_subscriptions(pool);
    domi_pg_free_spare_queries(pool);
    free(pool->scratch);
    /* the settings are zeroed, because their url may have a password */
    explicit_bzero(&pool->settings, sizeof pool->settings);
}

static const domus_on rows[] = {
    {&domus_sql_query_type, domi_pg_put_query_of_ask, 0},
    {&domus_ready_type, domi_pg_use_ready_socket, 0},
    {&domus_sql_rows_type, domi_pg_put_query_for_rows_of_ask, 0},
    {&domus_sql_script_type, domi_pg_put_script_of_ask, 0},
    {&domus_sql_fetch_type, domi_pg_read_next_piece_of_rows, 0},
    {&domus_sql_close_type, domi_pg_drop_rows_and_settle, 0},
    {&domus_sql_begin_type, domi_pg_put_begin_of_transaction, 0},
    {&domus_sql_end_type, domi_pg_put_end_into_transaction, 0},
    {&domus_sql_abandon_type, domi_pg_roll_back_if_abandoned, 0},
    {&domus_sql_who_type, domi_pg_reply_with_driver_of_pool, 0},
    {&domus_sql_look_type, domi_pg_reply_with_status_of_pool, 0},
    {&domus_pg_copy_in_type, domi_pg_put_copy_in_of_ask, 0},
    {&domus_pg_copy_out_type, domi_pg_put_copy_out_of_ask, 0},
    {&domus_pg_copy_write_type, domi_pg_send_bytes_of_copy_in, 0},
    {&domus_pg_copy_end_type, domi_pg_send_end_of_copy_in, 0},
    {&domus_pg_copy_read_type, domi_pg_read_next_piece_of_copy_out, 0},
    {&domus_pg_listen_type, domi_pg_add_subscription_and_listen, 0},
    {&domus_pg_unlisten_type, domi_pg_end_subscriptions_at_all_pools, 0},
    {&domi_pg_leave_type, domi_pg_end_subscriptions_of_asked_actor, 0},
    {&domus_down_type, domi_pg_release_what_ended_actor_had, 0},
    {&domi_pg_look_type, domi_pg_end_what_is_late_at_timer, 0},
    {&domi_pg_step_type, domi_pg_start_helper_for_connect_step, DOMI_PG_FRAME},
    {&domi_pg_cancel_type, domi_pg_start_helper_that_cancels, DOMI_PG_FRAME},
    {NULL, NULL, 0},
};

static const domus_behaviour behaviour = {
    .name = "pg",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_pg_pool),
    .on = rows,
    .on_mount = make_least_connections_of_pool_at_mount,
    .on_stop = fail_queries_and_close_pool_at_stop,
};

static const char *const schemes[] = {"postgresql", "postgres", NULL};

const domus_sql_driver domus_pg_driver = {
    .name = "postgresql",
    .schemes = schemes,
    .check = domi_pg_check_settings,
    .behaviour = &behaviour,
    .per_thread = true,
};
