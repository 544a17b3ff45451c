/* Makes connections: each step of a connect is a job on a helper thread, and between two steps the
 * pool waits for the socket. The record of a connection is not freed while a helper thread uses it
 * (DOMI_PG_DEAD). */
#include "protocols/pg/pg.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const domus_type domi_pg_step_type = {.name = "pg step", .size = sizeof(domi_pg_name)};

int domi_pg_send_pool_notice_about_slot(domus_stack *stack, const domi_pg_connection *connection,
                                        const domus_type *type)
{
    domi_pg_name named = {connection->serial, connection->slot};

    if (domus_notice(stack, domus_self(stack), type, &named) == 0)
        return 0;
    return domus_after(stack, 0, type, &named, NULL);
}

domi_pg_connection *domi_pg_find_connection(const domi_pg_pool *pool, uint32_t slot,
                                            uint64_t serial)
{
    domi_pg_connection *connection = slot < DOMI_PG_SLOTS ? pool->connections[slot] : NULL;

    return connection != NULL && connection->serial == serial ? connection : NULL;
}

int domi_pg_begin_connect_in_slot(domus_stack *stack, domi_pg_pool *pool, uint32_t slot)
{
    domi_pg_connection *connection = calloc(1, sizeof *connection);
    uint64_t now_ns = domus_now_ns(stack);

    if (connection == NULL)
        return -ENOMEM;
    connection->slot = slot;
    connection->doors = pool->doors;
    connection->serial = ++pool->serial;
    connection->token = domus_address_hash(pool->self) ^ (now_ns << 20) ^ (uint64_t)getpid() ^
                        (connection->serial << 48);
    connection->phase = DOMI_PG_STARTING;
    connection->until_ns = now_ns + pool->settings.options.connect_timeout_ns;
    int error = domi_pg_send_pool_notice_about_slot(stack, connection, &domi_pg_step_type);
    if (error != 0) {
        free(connection);
        return error;
    }
    pool->connections[slot] = connection;
    if (slot != DOMI_PG_LISTENER) {
        pool->count++;
        pool->connecting++;
    }
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->until_ns);
    return 0;
}

void domi_pg_close_and_free_connection(domi_pg_pool *pool, domi_pg_connection *connection)
{
    if (pool->connections[connection->slot] == connection)
        pool->connections[connection->slot] = NULL;
    connection->phase = DOMI_PG_DEAD;
    if (connection->helpers != 0)
        return;
    PQfreeCancel(connection->cancel);
    PQfinish(connection->pg);
    domi_pg_free_all_statements(&connection->statements);
    domus_append_drop(&connection->piece);
    free(connection);
}

/* --- the socket ------------------------------------------------------------------------------- */

int domi_pg_watch_socket(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                         bool wants_out)
{
    uint32_t events = wants_out ? POLLIN | POLLOUT : POLLIN;

    if (connection->is_watched && connection->wants_out == wants_out)
        return 0;
    connection->wants_out = wants_out;
    if (connection->is_watched)
        return domus_fd_change(stack, connection->watch, events);
    int fd = PQsocket(connection->pg);
    int error = domus_watch_fd(stack, fd, events, &connection->watch);
    if (error == 0) {
        connection->is_watched = true;
        pool->fds[connection->slot] = fd;
    }
    return error;
}

void domi_pg_unwatch_socket(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    if (!connection->is_watched)
        return;
    (void)domus_unwatch_fd(stack, connection->watch);
    connection->is_watched = false;
    pool->fds[connection->slot] = -1;
}

/* Wait for the socket of a connect between two of its steps: libpq has said whether it must be
 * ready to read or to write. */
static int watch_socket_as_libpq_wants(domus_stack *stack, domi_pg_pool *pool,
                                       domi_pg_connection *connection)
{
    uint32_t events = connection->poll == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    int fd = PQsocket(connection->pg);
    int error = domus_watch_fd(stack, fd, events, &connection->watch);

    if (error != 0)
        return error;
    connection->phase = DOMI_PG_CONNECTING;
    connection->is_watched = true;
    connection->wants_out = false;
    pool->fds[connection->slot] = fd;
    return 0;
}

/* --- steps ------------------------------------------------------------------------------------ */

typedef struct helper_job {
    domi_pg_connection *connection;
    /* settings of the pool; they stay valid, because the pool waits for the job before it ends */
    const domus_sql_settings *settings;
} helper_job;

static_assert(sizeof(void *) == 8 ? sizeof(helper_job) == DOMI_PG_FRAME
                                  : sizeof(helper_job) <= DOMI_PG_FRAME,
              "as the rows say");

static int begin_connect_on_helper(void *argument)
{
    const helper_job *job = argument;
    domi_pg_connection *connection = job->connection;

    connection->pg = domi_pg_begin_libpq_connect(job->settings);
    connection->poll =
        PQstatus(connection->pg) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    return 0;
}

static int poll_connect_on_helper(void *argument)
{
    const helper_job *job = argument;

    job->connection->poll = PQconnectPoll(job->connection->pg);
    return 0;
}

/* The server has accepted the connection: prepare it for queries, and take it into use. */
static int take_connection_into_use(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection)
{
    connection->phase = DOMI_PG_READY;
    pool->counted.connects++;
    if (PQsetnonblocking(connection->pg, 1) != 0 ||
        domi_pg_watch_socket(stack, pool, connection, false) != 0) {
        domi_pg_lose_connection(stack, pool, connection, "no memory for the connection");
        return 0;
    }
    if (connection->slot == DOMI_PG_LISTENER) {
        domi_pg_send_listens_on_ready_listener(stack, pool, connection);
        return 0;
    }
    pool->connecting--;
    pool->failures = 0;
    pool->down_since_ns = 0;
    (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}

/* A helper thread has ended a step of a connect: wait for the next step, take the connection into
 * use, or give it up. The connection may have been given up during the step. */
static int wait_for_next_step_or_use_connection(domus_stack *stack, void *self,
                                                const domus_answer *answer)
{
    domi_pg_pool *pool = self;
    const helper_job *job = domus_frame(stack);
    domi_pg_connection *connection = job->connection;

    connection->helpers--;
    if (connection->phase == DOMI_PG_DEAD) {
        domi_pg_close_and_free_connection(pool, connection);
        return 0;
    }
    /* the pool's actor is stopping, or there was no helper thread for the step */
    if (answer->error != 0) {
        domi_pg_lose_connection(stack, pool, connection, "no helper thread");
        return 0;
    }
    if (connection->poll == PGRES_POLLING_OK)
        return take_connection_into_use(stack, pool, connection);
    if (connection->poll == PGRES_POLLING_FAILED ||
        watch_socket_as_libpq_wants(stack, pool, connection) != 0)
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
    return 0;
}

/* Start a step of a connect on a helper thread. */
static int begin_connect_step_on_helper(domus_stack *stack, domi_pg_pool *pool,
                                        domi_pg_connection *connection, int (*step)(void *argument))
{
    helper_job *job = domus_frame(stack);

    *job = (helper_job){connection, &pool->settings};
    connection->helpers++;
    int result = domus_blocking(stack, step, job, wait_for_next_step_or_use_connection);
    if (result < 0) {
        connection->helpers--;
        domi_pg_lose_connection(stack, pool, connection, "no memory for a step");
        return 0;
    }
    return result;
}

int domi_pg_start_helper_for_connect_step(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    const domi_pg_name *which = payload;
    domi_pg_connection *connection = domi_pg_find_connection(pool, which->slot, which->serial);

    if (connection == NULL)
        return 0;
    return begin_connect_step_on_helper(stack, pool, connection,
                                        connection->pg == NULL ? begin_connect_on_helper
                                                               : poll_connect_on_helper);
}

void domi_pg_plan_next_connect_step(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection)
{
    domi_pg_unwatch_socket(stack, pool, connection);
    connection->phase = DOMI_PG_STEPPING;
    if (domi_pg_send_pool_notice_about_slot(stack, connection, &domi_pg_step_type) != 0)
        domi_pg_lose_connection(stack, pool, connection, "no memory for a step");
}
