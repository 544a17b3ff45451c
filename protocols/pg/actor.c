/* The actor that is a pool of connections to PostgreSQL, and the driver that makes it for urls of
 * PostgreSQL. */
#include "protocols/pg/pg.h"

#include <stdlib.h>
#include <string.h>

static const domi_pg_doors doors = {
    .lose = domi_pg_do_lose,
    .settle = domi_pg_do_settle,
    .serve = domi_pg_do_serve,
    .put = domi_pg_do_put,
    .take = domi_pg_do_take,
    .finish = domi_pg_do_finish,
    .drop_flow = domi_pg_do_drop_flow,
    .listener_ready = domi_pg_do_listener_ready,
    .listener_lost = domi_pg_do_listener_lost,
    .copy_give = domi_pg_do_copy_give,
    .copy_abort = domi_pg_do_copy_abort,
};

static int on_mount(domus_stack *stack, void *self)
{
    domi_pg_pool *pool = self;

    pool->self = domus_self(stack);
    pool->doors = &doors;
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++)
        pool->fds[slot] = -1;
    /* make the connections that the options keep open even without use */
    domi_pg_serve(stack, pool);
    return 0;
}

static void fail_queries_of_line(domus_stack *stack, domi_pg_pool *pool, domi_pg_line *line,
                                 int error)
{
    domi_pg_query *query;

    while ((query = domi_pg_line_take(line)) != NULL) {
        domi_pg_fail(stack, pool, query, error);
        domi_pg_query_free(pool, query);
    }
}

static void on_stop(domus_stack *stack, void *self)
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
        domi_pg_connection_free(pool, connection);
    }
    domi_pg_subscriptions_free(pool);
    domi_pg_query_spares_free(pool);
    free(pool->scratch);
    /* the settings are zeroed, because their url may have a password */
    explicit_bzero(&pool->settings, sizeof pool->settings);
}

static const domus_on rows[] = {
    {&domus_sql_query_type, domi_pg_on_query, 0},
    {&domus_ready_type, domi_pg_on_ready, 0},
    {&domus_sql_rows_type, domi_pg_on_rows, 0},
    {&domus_sql_script_type, domi_pg_on_script, 0},
    {&domus_sql_fetch_type, domi_pg_on_fetch, 0},
    {&domus_sql_close_type, domi_pg_on_close, 0},
    {&domus_sql_begin_type, domi_pg_on_begin, 0},
    {&domus_sql_end_type, domi_pg_on_end, 0},
    {&domus_sql_abandon_type, domi_pg_on_abandon, 0},
    {&domus_sql_who_type, domi_pg_on_who, 0},
    {&domus_sql_look_type, domi_pg_on_look, 0},
    {&domus_pg_copy_in_type, domi_pg_on_copy_in, 0},
    {&domus_pg_copy_out_type, domi_pg_on_copy_out, 0},
    {&domus_pg_copy_write_type, domi_pg_on_copy_write, 0},
    {&domus_pg_copy_end_type, domi_pg_on_copy_end, 0},
    {&domus_pg_copy_read_type, domi_pg_on_copy_read, 0},
    {&domus_pg_listen_type, domi_pg_on_listen, 0},
    {&domus_pg_unlisten_type, domi_pg_on_unlisten, 0},
    {&domi_pg_leave_type, domi_pg_on_leave, 0},
    {&domus_down_type, domi_pg_on_down, 0},
    {&domi_pg_look_type, domi_pg_on_late, 0},
    {&domi_pg_step_type, domi_pg_on_step, DOMI_PG_FRAME},
    {&domi_pg_cancel_type, domi_pg_on_cancel, DOMI_PG_FRAME},
    {NULL, NULL, 0},
};

static const domus_behaviour behaviour = {
    .name = "pg",
    .kind = DOMUS_STATE,
    .state_size = sizeof(domi_pg_pool),
    .on = rows,
    .on_mount = on_mount,
    .on_stop = on_stop,
};

static const char *const schemes[] = {"postgresql", "postgres", NULL};

const domus_sql_driver domus_pg_driver = {
    .name = "postgresql",
    .schemes = schemes,
    .check = domi_pg_check,
    .behaviour = &behaviour,
    .per_thread = true,
};
