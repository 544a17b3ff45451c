/* The functions of the files of this folder that others of them call; state.h has what they work
 * on. */
#ifndef DOMI_PROTOCOLS_PG_H
#define DOMI_PROTOCOLS_PG_H

#include "protocols/pg/state.h"

/* --- actor.c: the doors ----------------------------------------------------------------------- */

static inline void domi_pg_lose(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *connection, const char *words)
{
    pool->doors->lose(stack, pool, connection, words);
}

static inline bool domi_pg_settle(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection)
{
    return pool->doors->settle(stack, pool, connection);
}

static inline void domi_pg_serve(domus_stack *stack, domi_pg_pool *pool)
{
    pool->doors->serve(stack, pool);
}

static inline void domi_pg_put(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query)
{
    pool->doors->put(stack, pool, query);
}

static inline bool domi_pg_take(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *connection)
{
    return pool->doors->take(stack, pool, connection);
}

static inline bool domi_pg_finish(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection)
{
    return pool->doors->finish(stack, pool, connection);
}

static inline bool domi_pg_drop_flow(domus_stack *stack, domi_pg_pool *pool,
                                     domi_pg_connection *connection, int error)
{
    return pool->doors->drop_flow(stack, pool, connection, error);
}

static inline void domi_pg_listener_ready(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_connection *connection)
{
    pool->doors->listener_ready(stack, pool, connection);
}

static inline void domi_pg_listener_lost(domus_stack *stack, domi_pg_pool *pool)
{
    pool->doors->listener_lost(stack, pool);
}

static inline bool domi_pg_copy_give(domus_stack *stack, domi_pg_connection *connection,
                                     domi_pg_query *query, bool is_last)
{
    return connection->doors->copy_give(stack, connection, query, is_last);
}

static inline bool domi_pg_copy_abort(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection)
{
    return pool->doors->copy_abort(stack, pool, connection);
}

/* --- query.c: records ------------------------------------------------------------------------- */

/* Make a record. NULL: there is no memory. */
domi_pg_query *domi_pg_query_new(domi_pg_pool *pool, domi_pg_job job);
void domi_pg_query_free(domi_pg_pool *pool, domi_pg_query *query);
void domi_pg_query_spares_free(domi_pg_pool *pool);

/* Keep the ask at hand for a new record. Returns 0, or what the handler returns. */
int domi_pg_query_keep(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                       const domus_sql_request *request, domi_pg_query **ret_query);

void domi_pg_line_add(domi_pg_line *line, domi_pg_query *query);
void domi_pg_line_add_first(domi_pg_line *line, domi_pg_query *query);
domi_pg_query *domi_pg_line_take(domi_pg_line *line);

/* Answer the ask, once. The query then only waits for what the server still has to say. Returns 0;
 * or an error if nobody waits for the answer any more. */
int domi_pg_answer(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                   const domus_type *type, const void *payload);
void domi_pg_fail(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query, int error);
void domi_pg_fail_with(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                       const domus_sql_error *failure);

/* Note that a verb of a transaction has failed: only its rollback is left. */
void domi_pg_spoil(domi_pg_pool *pool, uint64_t transaction, const domus_sql_error *failure);

/* --- pool.c: which connection does what ------------------------------------------------------- */

/* Give a query of no transaction to a connection, or let it wait, or refuse it. */
void domi_pg_do_put(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query);

/* Something of a connection has ended: send what is next in its transaction, or roll back what
 * nobody ends, or let it be free. False: the connection is lost. */
bool domi_pg_do_settle(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* Let those who wait have connections, and make more if they need some. */
void domi_pg_do_serve(domus_stack *stack, domi_pg_pool *pool);

void domi_pg_unlist_free(domi_pg_pool *pool, domi_pg_connection *connection);

/* Fail those who wait, if no connection could be had for long. Returns whether that is so. */
bool domi_pg_is_down(domus_stack *stack, domi_pg_pool *pool);

/* A connection that is free is closed. */
void domi_pg_close(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* --- lose.c ----------------------------------------------------------------------------------- */

/* Make a query as it was before it was sent. */
void domi_pg_rewind(domi_pg_query *query);

/* A connection, or a connect, has come to its end: what is under way fails or is repeated. `words`
 * may be NULL. */
void domi_pg_do_lose(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                     const char *words);

/* --- look.c and late.c: time
 * ----------------------------------------------------------------------------- */

extern const domus_type domi_pg_look_type;
domus_handler domi_pg_on_late;
/* Look at what is late at this time. */
void domi_pg_look_at(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns);

/* --- connect.c -------------------------------------------------------------------------------- */

#define DOMI_PG_FRAME 16u                  /* bytes of the frames of these two */
extern const domus_type domi_pg_step_type; /* a notice to oneself: do the next step */
/* Which connection a timer or a job is for. */
typedef struct domi_pg_name {
    uint64_t serial;
    uint32_t slot;
} domi_pg_name;
/* Let a handler of the pool begin a job for a connection. A full mailbox makes it a tick later. */
int domi_pg_begin_soon(domus_stack *stack, const domi_pg_connection *connection,
                       const domus_type *type);
domus_handler domi_pg_on_step;
/* Begin a connect in a free slot. */
int domi_pg_connect(domus_stack *stack, domi_pg_pool *pool, uint32_t slot);
/* The socket of a connect is ready. */
void domi_pg_step(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Watch the socket, also for POLLOUT. Returns 0 or an error. */
int domi_pg_watch(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                  bool wants_out);
void domi_pg_unwatch(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Close, and free the record unless a helper thread uses it. */
void domi_pg_connection_free(domi_pg_pool *pool, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find(const domi_pg_pool *pool, uint32_t slot, uint64_t serial);

/* --- listen.c --------------------------------------------------------------------------------- */

/* The connection that listens is there, or is gone. */
void domi_pg_do_listener_ready(domus_stack *stack, domi_pg_pool *pool,
                               domi_pg_connection *connection);
void domi_pg_do_listener_lost(domus_stack *stack, domi_pg_pool *pool);
/* Hand out the notifications that have come. False: the connection is gone. */
bool domi_pg_listener_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Make the connection if somebody needs it. */
void domi_pg_listener_look(domus_stack *stack, domi_pg_pool *pool);
void domi_pg_forget_subscriber(domus_stack *stack, domi_pg_pool *pool, domus_address who);
void domi_pg_subscriptions_free(domi_pg_pool *pool);
/* Close the connection that listens, unless an answer is to come. Returns whether it is closed. */
bool domi_pg_close_listener(domus_stack *stack, domi_pg_pool *pool);
domus_handler domi_pg_on_listen, domi_pg_on_unlisten;

/* The server has refused a LISTEN: its subscription is none. */
void domi_pg_refuse_subscription(domus_stack *stack, domi_pg_pool *pool,
                                 const domi_pg_query *query);
extern const domus_type domi_pg_leave_type; /* an ask of one pool to another */
domus_handler domi_pg_on_leave;

/* --- settings.c ------------------------------------------------------------------------------- */

int domi_pg_check(const domus_sql_settings *settings, char *error, size_t error_size);
/* Begin a connect. NULL: there is no memory. It may block. */
PGconn *domi_pg_open(const domus_sql_settings *settings);

/* --- cancel.c --------------------------------------------------------------------------------- */

extern const domus_type domi_pg_cancel_type;
domus_handler domi_pg_on_cancel;
/* A cancel is wanted no more, because what it was for has ended. */
void domi_pg_forget_cancel(domi_pg_connection *connection);
/* Cancel at the server what the first of the line does, unless it was told to. */
void domi_pg_cancel(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Begin another cancel, or let it wait for its turn. None is under way. */
void domi_pg_cancel_again(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Cancel the first if it is late, or one that shares its sync. */
void domi_pg_cancel_late(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* --- send.c ----------------------------------------------------------------------------------- */

/* Put a query into the line of a connection, and send it. False: the connection is lost. */
bool domi_pg_run(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                 domi_pg_query *query);
/* Send the query that has waited longest, and with it those behind it that may share its sync.
 * False: the connection is lost. */
bool domi_pg_run_waiting(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Send what libpq has queued. False: the connection is lost. */
bool domi_pg_flush(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* A query has become the first of its line: say how its result is read. */
void domi_pg_begin_first(domi_pg_connection *connection);
/* Send a command that the pool itself has for a connection, whose failure ends the
 * connection. False: the connection is lost. */
bool domi_pg_say(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                 const char *command);

/* --- parameters.c ----------------------------------------------------------------------------- */

typedef struct domi_pg_parameters {
    const char *values[DOMUS_SQL_PARAMETERS_MAX];
    int sizes[DOMUS_SQL_PARAMETERS_MAX];
    int formats[DOMUS_SQL_PARAMETERS_MAX];
} domi_pg_parameters;

/* Write the parameters of a request as libpq takes them; they are valid until the next call. With
 * no statement all types are the server's choice. Returns 0; -EINVAL; -ENOMEM. */
int domi_pg_parameters_write(domi_pg_pool *pool, const domus_sql_request *request,
                             const domi_pg_statement *statement, domi_pg_parameters *parameters);

/* --- statements.c ----------------------------------------------------------------------------- */

domi_pg_statement *domi_pg_statement_find(domi_pg_statements *statements,
                                          const domus_sql_statement *of);
/* Add one. NULL: there is no memory. */
domi_pg_statement *domi_pg_statement_add(domi_pg_statements *statements,
                                         const domus_sql_statement *of, uint32_t params,
                                         uint64_t token);
void domi_pg_statement_remove(domi_pg_statements *statements, domi_pg_statement *statement);
void domi_pg_statements_drop(domi_pg_statements *statements);

/* --- cells.c ---------------------------------------------------------------------------------- */

bool domi_pg_is_binary(Oid type);
/* Add the rows of a part of a result. Returns 0, or the error of the builder. */
int domi_pg_build(domus_sql_builder *builder, const PGresult *rows);
uint64_t domi_pg_affected(PGresult *result);

/* --- failure.c -------------------------------------------------------------------------------- */

void domi_pg_read_failure(const PGresult *result, domus_sql_error *ret_failure);

/* --- tags.c ----------------------------------------------------------------------------------- */

/* Note what the server says of a statement that it has done. */
void domi_pg_note_tag(domi_pg_query *query, const char *tag);

/* --- take.c: what the server says ------------------------------------------------------------- */

domus_handler domi_pg_on_ready;
/* Take the results that are there. False: the connection is lost. */
bool domi_pg_do_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* The first of the line is over at the server. False: the connection is lost. */
bool domi_pg_do_finish(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* Count what comes while no query is under way. Returns false beyond the bound. */
bool domi_pg_count_unasked(domi_pg_connection *connection, uint64_t bytes_max);

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_query, domi_pg_on_rows, domi_pg_on_script, domi_pg_on_who, domi_pg_on_look;

/* --- transaction.c ---------------------------------------------------------------------------- */

domus_handler domi_pg_on_begin, domi_pg_on_end, domi_pg_on_abandon;
/* Give a query to its transaction, or let it fail. */
void domi_pg_put_inside(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query);
/* Send the next query of a transaction. False: the connection is lost. */
bool domi_pg_go_on(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* The begin or end was answered by the server. */
void domi_pg_has_begun(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query);
void domi_pg_has_ended(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query);
/* Let a transaction be over that nobody ends; domi_pg_settle() rolls it back. */
void domi_pg_abandon(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Watch the owner of a transaction or flow, and no more. */
int domi_pg_own(domus_stack *stack, domi_pg_connection *connection, domus_address owner);
void domi_pg_disown(domus_stack *stack, domi_pg_connection *connection);
domus_handler domi_pg_on_down;

/* --- rows.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_fetch, domi_pg_on_close;
/* Rows have come. */
void domi_pg_rows_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query, const PGresult *rows);
/* The server has sent all of a flow. Returns whether the query is over, because nobody has to read.
 */
bool domi_pg_flow_end(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                      domi_pg_query *query);
/* The ask at hand reads the next piece of a flow. Returns as a handler. */
int domi_pg_flow_read(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Begin a flow: its number is the answer. Returns false if nobody wants it any more. */
bool domi_pg_flow_begin(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query, domi_pg_flow flow);
void domi_pg_flow_clear(domus_stack *stack, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find_flow(const domi_pg_pool *pool, uint64_t number);
/* A piece of rows or of a copy is full, and nobody reads: let the server wait. */
void domi_pg_pause(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Throw the rest of rows or of a copy away, and let its reader fail. False: the connection is lost.
 */
bool domi_pg_do_drop_flow(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                          int error);

/* --- copy.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_copy_in, domi_pg_on_copy_out, domi_pg_on_copy_write, domi_pg_on_copy_end,
    domi_pg_on_copy_read;
/* The server is ready for a copy, or begins one. False: the connection is lost. */
bool domi_pg_copy_begin(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query, const PGresult *result);
/* Take bytes of a copy. Returns whether it is over, and its result comes. */
bool domi_pg_copy_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* The queued bytes have left: so the writer goes on. */
void domi_pg_copy_flushed(domus_stack *stack, domi_pg_connection *connection);
/* Let the server throw a copy away. False: the connection is lost. */
bool domi_pg_do_copy_abort(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Give the reader what there is. Returns whether it took it. */
bool domi_pg_do_copy_give(domus_stack *stack, domi_pg_connection *connection, domi_pg_query *query,
                          bool is_last);

/* Returns the connection of a transaction that is not over; NULL: there is none. */
static inline domi_pg_connection *domi_pg_find_transaction(const domi_pg_pool *pool,
                                                           uint64_t transaction)
{
    uint32_t slot = (uint32_t)(transaction & 0xff);
    domi_pg_connection *connection =
        slot < DOMI_PG_CONNECTIONS_MAX ? pool->connections[slot] : NULL;

    return connection != NULL && transaction != 0 && connection->transaction == transaction
               ? connection
               : NULL;
}

/* Returns whether so many bytes more may wait behind those of `line`. */
static inline bool domi_pg_has_room(const domi_pg_pool *pool, const domi_pg_line *line,
                                    const domi_pg_query *query)
{
    uint64_t bytes = (uint64_t)query->request.text.size + query->request.more.size;

    return line->count < pool->settings.options.queue_max &&
           (bytes == 0 || line->bytes + bytes <= pool->settings.options.queue_bytes_max);
}

/* A new number for a transaction or a flow, which has the slot of its connection. */
static inline uint64_t domi_pg_number(domi_pg_pool *pool, const domi_pg_connection *connection)
{
    return ++pool->serial << 8 | connection->slot;
}

#endif
