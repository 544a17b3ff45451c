/* Reads the answers of the server: results of the first query of a line, until its sync ends it and
 * the next query is the first. The ask is answered at the sync, because a commit comes behind the
 * rows. */
#include "protocols/pg/pg.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FREE_READS 8u /* reads from the socket for one result whose bytes are not counted */
/* bytes that libpq takes from a socket at a time, at least, if they are there */
#define LEAST_READ 8192u

static void record_failure_of_result(domi_pg_query *query, const PGresult *result)
{
    const char *place = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);

    if (query->has_failed)
        return;
    query->has_failed = query->is_told = true;
    domi_pg_read_failure_of_result(result, &query->failure);
    const char *sqlstate = query->failure.sqlstate;
    /* The statement is gone at the server (after DISCARD, or on another server behind a proxy), its
     * name is used already, or its columns have changed since it was prepared. */
    query->is_stale = strcmp(sqlstate, "26000") == 0 || strcmp(sqlstate, "42P05") == 0 ||
                      (strcmp(sqlstate, "0A000") == 0 && place != NULL &&
                       strcmp(place, "RevalidateCachedQuery") == 0);
}

/* Fail a query by an error of this library; its further results are discarded. */
static void fail_query_and_discard_its_results(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_query *query, int error, const char *words)
{
    const domus_sql_error failure = domus_sql_error_make(error, "", "%s", words);

    domi_pg_fail_ask_and_count_its_failure(stack, pool, query, &failure);
    query->is_dropped = true;
    domus_sql_build_drop(&query->builder);
}

/* Store the types of parameters and columns that the server has described for a prepared
 * statement. */
static void store_described_types(domi_pg_query *query, const PGresult *result)
{
    domi_pg_statement *statement = query->statement;
    uint32_t params = (uint32_t)PQnparams(result);
    int columns = PQnfields(result);

    for (uint32_t i = 0; i < params && i < statement->params; i++)
        statement->types[i] = PQparamtype(result, (int)i);
    statement->is_binary = columns > 0;
    for (int i = 0; i < columns; i++)
        statement->is_binary =
            statement->is_binary && domi_pg_is_type_read_in_binary(PQftype(result, i));
    statement->is_ready = params == statement->params;
}

static void add_rows_of_result_to_answer(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection, domi_pg_query *query,
                                         const PGresult *rows)
{
    if (query->is_dropped || query->job == DOMI_PG_SCRIPT)
        return;
    if (query->job == DOMI_PG_COPY_IN || query->job == DOMI_PG_COPY_OUT) {
        fail_query_and_discard_its_results(stack, pool, query, -EINVAL,
                                           "the statement is no COPY of this kind");
        return;
    }
    if (query->job == DOMI_PG_ROWS) {
        domi_pg_add_result_to_piece_of_rows(stack, pool, connection, query, rows);
        return;
    }
    int error = domi_pg_build_rows(&query->builder, rows);
    if (error == 0)
        return;
    fail_query_and_discard_its_results(stack, pool, query, error,
                                       "the result is larger than result_max");
    /* within a transaction the rest is only discarded, because a cancel would fail the
     * transaction */
    if (!connection->in_transaction)
        domi_pg_cancel_first_of_line(stack, pool, connection);
}

/* Handle a result without rows: a statement was prepared or described, or a command is done. */
static void record_result_without_rows(domi_pg_query *query, PGresult *result)
{
    if (query->stage == DOMI_PG_PREPARES) {
        if (++query->described == 2)
            store_described_types(query, result);
        return;
    }
    query->affected += domi_pg_count_affected_rows(result);
    domi_pg_record_tag_of_done_command(query, PQcmdStatus(result));
}

/* Handle one result for the first query of the line. Returns false if the connection is lost. */
static bool use_result_for_first_query_of_line(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_connection *connection, PGresult *result)
{
    domi_pg_query *query = connection->line.first;

    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        return domi_pg_finish_first_query(stack, pool, connection);
    case PGRES_SINGLE_TUPLE:
        add_rows_of_result_to_answer(stack, pool, connection, query, result);
        return true;
    case PGRES_TUPLES_OK:
        add_rows_of_result_to_answer(stack, pool, connection, query, result);
        record_result_without_rows(query, result);
        return true;
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
        record_result_without_rows(query, result);
        return true;
    case PGRES_PIPELINE_ABORTED:
        query->is_skipped = !query->has_failed;
        return true;
    case PGRES_FATAL_ERROR:
        record_failure_of_result(query, result);
        return true;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
        return domi_pg_begin_copy_of_query(stack, pool, connection, query, result);
    default:
        domi_pg_lose_connection(stack, pool, connection, "an answer that is none");
        return false;
    }
}

/* Returns whether all results have come for a query that has no sync of its own. */
static bool is_joined_query_complete(const domi_pg_query *query)
{
    return query->is_joined && query->has_result;
}

bool domi_pg_do_use_results_of_libpq(domus_stack *stack, domi_pg_pool *pool,
                                     domi_pg_connection *connection)
{
    uint32_t nothing = 0;

    if (connection->line.first == NULL)
        /* called for its effect: PQisBusy() parses notifications and other messages that belong
         * to no query */
        (void)PQisBusy(connection->pg);
    while (connection->line.first != NULL && !connection->flow_is_paused &&
           !connection->flow_is_over) {
        if (connection->copies && !domi_pg_read_bytes_of_copy_out(stack, pool, connection))
            return true;
        if (connection->flow == DOMI_PG_FLOWS_IN || PQisBusy(connection->pg) != 0)
            return true;
        PGresult *result = PQgetResult(connection->pg);
        bool is_there = true;
        if (result != NULL) {
            nothing = 0;
            connection->line.first->reads = 0;
            connection->line.first->read_bytes = 0;
            connection->line.first->has_result = true;
            is_there = use_result_for_first_query_of_line(stack, pool, connection, result);
        } else if (!connection->has_pipeline || is_joined_query_complete(connection->line.first))
            is_there = domi_pg_finish_first_query(stack, pool, connection);
        else if (++nothing > 2) {
            domi_pg_lose_connection(stack, pool, connection, "an answer is missing");
            is_there = false;
        }
        PQclear(result);
        if (!is_there)
            return false;
    }
    return true;
}

/* --- the socket ------------------------------------------------------------------------------- */

/* Returns how many bytes wait in a socket to be read. */
static uint32_t count_bytes_in_socket(int fd)
{
    int bytes = 0;

    return ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0 ? (uint32_t)bytes : 0;
}

bool domi_pg_count_and_bound_unasked_bytes(domi_pg_connection *connection, uint64_t bytes_max)
{
    connection->unasked += count_bytes_in_socket(PQsocket(connection->pg));
    return connection->unasked <= bytes_max;
}

/* Get the number of bytes that were read from a TCP socket so far. Bytes that come between the two
 * system calls make the number too large before a read and too small after it; it is below zero if
 * more have come than were ever read. */
static bool get_bytes_read_from_tcp_so_far(int fd, bool is_before, int64_t *ret_bytes)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    uint32_t there = is_before ? count_bytes_in_socket(fd) : 0;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    *ret_bytes =
        (int64_t)info.tcpi_bytes_received - (is_before ? there : count_bytes_in_socket(fd));
    return true;
}

/* Let libpq read from the socket. Returns how many bytes it took: never too many, and too few only
 * if more bytes have come meanwhile. */
static uint64_t read_and_count_bytes(PGconn *pg, int *ret_done)
{
    int64_t from, to;
    int fd = PQsocket(pg);
    bool tells = get_bytes_read_from_tcp_so_far(fd, true, &from);
    uint32_t before = tells ? 0 : count_bytes_in_socket(fd);

    *ret_done = PQconsumeInput(pg);
    if (tells)
        return get_bytes_read_from_tcp_so_far(fd, false, &to) && to > from ? (uint64_t)(to - from)
                                                                           : 0;
    uint32_t after = count_bytes_in_socket(fd);
    uint32_t least = before < LEAST_READ ? before : LEAST_READ;
    return before > after && before - after > least ? before - after : least;
}

/* Read the bytes that the server has sent, within bounds. Libpq collects a row, or all rows of a
 * result that is expected to be small, and a value may need twice as many bytes in the server's
 * form as here. While no query is under way, only few bytes may come. Returns false if the
 * connection is lost. */
static bool read_from_server(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    domi_pg_query *query = connection->line.first;
    int done;

    if (query == NULL) {
        connection->unasked += read_and_count_bytes(connection->pg, &done);
    } else {
        connection->unasked = 0;
        if (++query->reads <= FREE_READS)
            done = PQconsumeInput(connection->pg);
        else
            query->read_bytes += read_and_count_bytes(connection->pg, &done);
    }
    if (done != 1) {
        domi_pg_lose_connection(stack, pool, connection, PQerrorMessage(connection->pg));
        return false;
    }
    uint64_t result_max = pool->settings.options.result_max;
    /* A single notification may be larger than result_max, and libpq reads several at a time. */
    uint64_t unasked_max = result_max > DOMI_PG_UNASKED ? result_max : DOMI_PG_UNASKED;
    if (query != NULL ? query->read_bytes / 2 <= result_max : connection->unasked <= unasked_max)
        return true;
    if (query != NULL)
        fail_query_and_discard_its_results(stack, pool, query, -EFBIG,
                                           "the result is larger than result_max");
    domi_pg_lose_connection(stack, pool, connection, "a result that is too large");
    return false;
}

static domi_pg_connection *find_connection_by_fd(const domi_pg_pool *pool, int fd)
{
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++) {
        if (pool->fds[slot] == fd)
            return pool->connections[slot];
    }
    return NULL;
}

int domi_pg_use_ready_socket(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    const domus_ready *ready = payload;
    domi_pg_connection *connection = find_connection_by_fd(pool, ready->fd);

    if (connection == NULL)
        return 0;
    if (ready->error != 0) {
        domi_pg_lose_connection(stack, pool, connection, "the socket cannot be watched");
        domi_pg_serve_waiting_queries(stack, pool);
        return 0;
    }
    if (connection->phase == DOMI_PG_CONNECTING) {
        if (domi_pg_count_and_bound_unasked_bytes(connection, DOMI_PG_GREETING))
            domi_pg_plan_next_connect_step(stack, pool, connection);
        else
            domi_pg_lose_connection(stack, pool, connection,
                                    "the server sends too much before it is ready");
        return 0;
    }
    bool is_there = true;
    if ((ready->events & POLLOUT) != 0)
        is_there = domi_pg_flush_and_watch_for_rest(stack, pool, connection);
    if (is_there && connection->flow == DOMI_PG_FLOWS_IN)
        domi_pg_answer_writer_of_sent_bytes(stack, connection);
    if (is_there && (ready->events & ~(uint32_t)POLLOUT) != 0)
        is_there = read_from_server(stack, pool, connection) &&
                   domi_pg_use_results_of_libpq(stack, pool, connection);
    if (is_there && connection->slot == DOMI_PG_LISTENER)
        is_there = domi_pg_send_notifications_on(stack, pool, connection);
    if (is_there)
        (void)domi_pg_go_on_or_list_as_free(stack, pool, connection);
    if (pool->waiting.first != NULL || !is_there)
        domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}
