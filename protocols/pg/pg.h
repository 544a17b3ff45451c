/* The functions by which the files of this folder call each other; state.h has the data that they
 * work on. */
#ifndef DOMI_PROTOCOLS_PG_H
#define DOMI_PROTOCOLS_PG_H

#include "protocols/pg/state.h"

/* --- actor.c: functions called through the table `domi_pg_doors` ------------------------------ */

static inline void domi_pg_lose_connection(domus_stack *stack, domi_pg_pool *pool,
                                           domi_pg_connection *connection, const char *words)
{
    pool->doors->lose(stack, pool, connection, words);
}

static inline bool domi_pg_go_on_or_list_as_free(domus_stack *stack, domi_pg_pool *pool,
                                                 domi_pg_connection *connection)
{
    return pool->doors->settle(stack, pool, connection);
}

static inline void domi_pg_serve_waiting_queries(domus_stack *stack, domi_pg_pool *pool)
{
    pool->doors->serve(stack, pool);
}

static inline void domi_pg_send_query_or_let_it_wait(domus_stack *stack, domi_pg_pool *pool,
                                                     domi_pg_query *query)
{
    pool->doors->put(stack, pool, query);
}

static inline bool domi_pg_use_results_of_libpq(domus_stack *stack, domi_pg_pool *pool,
                                                domi_pg_connection *connection)
{
    return pool->doors->take(stack, pool, connection);
}

static inline bool domi_pg_finish_first_query(domus_stack *stack, domi_pg_pool *pool,
                                              domi_pg_connection *connection)
{
    return pool->doors->finish(stack, pool, connection);
}

static inline bool domi_pg_give_up_flow_of_rows_or_copy(domus_stack *stack, domi_pg_pool *pool,
                                                        domi_pg_connection *connection, int error)
{
    return pool->doors->drop_flow(stack, pool, connection, error);
}

static inline void domi_pg_send_listens_on_ready_listener(domus_stack *stack, domi_pg_pool *pool,
                                                          domi_pg_connection *connection)
{
    pool->doors->listener_ready(stack, pool, connection);
}

static inline void domi_pg_plan_next_listener_when_lost(domus_stack *stack, domi_pg_pool *pool)
{
    pool->doors->listener_lost(stack, pool);
}

static inline bool domi_pg_give_copied_bytes_to_reader(domus_stack *stack,
                                                       domi_pg_connection *connection,
                                                       domi_pg_query *query, bool is_last)
{
    return connection->doors->copy_give(stack, connection, query, is_last);
}

static inline bool domi_pg_end_copy_in_with_error(domus_stack *stack, domi_pg_pool *pool,
                                                  domi_pg_connection *connection)
{
    return pool->doors->copy_abort(stack, pool, connection);
}

/* --- query.c: records ------------------------------------------------------------------------- */

/* Make a record of a query. Returns NULL if there is no memory. */
domi_pg_query *domi_pg_make_query_or_use_spare_one(domi_pg_pool *pool, domi_pg_job job);
void domi_pg_free_query(domi_pg_pool *pool, domi_pg_query *query);
void domi_pg_free_spare_queries(domi_pg_pool *pool);

/* Make a record of a query, and keep the current ask for it. Returns 0, or what the handler must
 * return. */
int domi_pg_query_new_with_kept_ask(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                                    const domus_sql_request *request, domi_pg_query **ret_query);

/* Make a record of the query or COPY that a request names, keep the current ask for it, and give it
 * to a connection, or to the request's transaction; if no record can be made, that transaction
 * fails. Returns 0, or what the handler must return. */
int domi_pg_keep_and_put_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                               const domus_sql_request *request);

void domi_pg_line_add_last(domi_pg_line *line, domi_pg_query *query);
void domi_pg_line_add_first(domi_pg_line *line, domi_pg_query *query);
domi_pg_query *domi_pg_line_take_first(domi_pg_line *line);

/* Answer the ask of a query, which is done once. The record then only waits for the rest of the
 * server's answer. Returns 0; or an error if nobody waits for the answer any more. */
int domi_pg_answer_ask_of_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                                const domus_type *type, const void *payload);
void domi_pg_fail_ask_of_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                               int error);
void domi_pg_fail_ask_and_count_its_failure(domus_stack *stack, domi_pg_pool *pool,
                                            domi_pg_query *query, const domus_sql_error *failure);

/* Record that a verb in a transaction has failed, so that only a rollback is possible from then
 * on. */
void domi_pg_mark_transaction_as_failed(domi_pg_pool *pool, uint64_t transaction,
                                        const domus_sql_error *failure);

/* --- pool.c: which connection does what ------------------------------------------------------- */

/* Give a query that is in no transaction to a connection, let it wait for one, or refuse it. */
void domi_pg_do_send_query_or_let_it_wait(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_query *query);

/* Go on with a connection after something on it has ended: send the next query of its transaction,
 * roll back a transaction that nobody ends, or make the connection free. Returns false if the
 * connection is lost. */
bool domi_pg_do_go_on_or_list_as_free(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection);

/* Give the free connections to waiting queries, and make more connections if they are needed. */
void domi_pg_do_serve_waiting_queries(domus_stack *stack, domi_pg_pool *pool);

void domi_pg_unlist_free_connection(domi_pg_pool *pool, domi_pg_connection *connection);

/* Fail the pool's waiting queries if no connection could be made for too long. Returns whether they
 * failed for that. */
bool domi_pg_is_server_down_for_too_long(domus_stack *stack, domi_pg_pool *pool);

/* Close `connection`, which is free: take it off the list of free connections and out of the
 * pool. */
void domi_pg_unlist_and_close_free_connection(domus_stack *stack, domi_pg_pool *pool,
                                              domi_pg_connection *connection);

/* --- lose.c ----------------------------------------------------------------------------------- */

/* Reset a query to the state in which it was before it was sent. */
void domi_pg_reset_query_to_unsent(domi_pg_query *query);

/* End a connection, or a connect that has failed: its queries under way fail or are repeated.
 * `words`, the reason as text, may be NULL. */
void domi_pg_do_lose_connection(domus_stack *stack, domi_pg_pool *pool,
                                domi_pg_connection *connection, const char *words);

/* --- look.c and late.c: time ------------------------------------------------------------------ */

extern const domus_type domi_pg_look_type;
domus_handler domi_pg_end_what_is_late_at_timer;
/* Set the pool's timer so that the pool is checked for late queries at `time_ns` or before. */
void domi_pg_set_timer_of_pool_for_time(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns);

/* --- connect.c -------------------------------------------------------------------------------- */

/* bytes of the frames of handlers that take a domi_pg_name, and of jobs on helper threads */
#define DOMI_PG_FRAME 16u
/* a notice of a pool to itself: do the next step of a connect on a helper thread */
extern const domus_type domi_pg_step_type;
/* The name by which a timer or a job finds a connection: its slot, and its number, which no later
 * connection has. */
typedef struct domi_pg_name {
    uint64_t serial;
    uint32_t slot;
} domi_pg_name;
/* Send the pool itself a notice, whose handler begins a job for a connection. If the mailbox is
 * full, a timer sends the notice a tick later. */
int domi_pg_send_pool_notice_about_slot(domus_stack *stack, const domi_pg_connection *connection,
                                        const domus_type *type);
domus_handler domi_pg_start_helper_for_connect_step;
/* Begin a connect in a free slot of the pool. */
int domi_pg_begin_connect_in_slot(domus_stack *stack, domi_pg_pool *pool, uint32_t slot);
/* Do the next step of a connect, whose socket is ready. */
void domi_pg_plan_next_connect_step(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection);
/* Watch the socket of a connection for input, and with `wants_out` for output, too. Returns 0 or a
 * negative errno. */
int domi_pg_watch_socket(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                         bool wants_out);
void domi_pg_unwatch_socket(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Close a connection, and free its record; if a helper thread still uses the record, it is freed
 * later. */
void domi_pg_close_and_free_connection(domi_pg_pool *pool, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find_connection(const domi_pg_pool *pool, uint32_t slot,
                                            uint64_t serial);

/* --- listen.c --------------------------------------------------------------------------------- */

/* Go on with the subscriptions of the pool after the listening connection has become ready, or was
 * lost. */
void domi_pg_do_send_listens_on_ready(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection);
void domi_pg_do_plan_next_listener_when_lost(domus_stack *stack, domi_pg_pool *pool);
/* Send the notifications that the server has sent to their subscribers. Returns false if the
 * connection is lost. */
bool domi_pg_send_notifications_on(domus_stack *stack, domi_pg_pool *pool,
                                   domi_pg_connection *connection);
/* Make the listening connection if the pool has subscribers, and no such connection. */
void domi_pg_make_listener_if_wanted(domus_stack *stack, domi_pg_pool *pool);
void domi_pg_end_subscriptions_of_ended(domus_stack *stack, domi_pg_pool *pool, domus_address who);
void domi_pg_free_all_subscriptions(domi_pg_pool *pool);
/* Close the listening connection, unless the server still owes an answer. Returns whether it was
 * closed. */
bool domi_pg_close_listener(domus_stack *stack, domi_pg_pool *pool);
domus_handler domi_pg_add_subscription_and_listen, domi_pg_end_subscriptions_at_all_pools;

/* Remove the subscription whose LISTEN the server has refused. */
void domi_pg_remove_refused_subscription(domus_stack *stack, domi_pg_pool *pool,
                                         const domi_pg_query *query);
/* an ask from one pool of a database to another, to end the subscriptions of an actor */
extern const domus_type domi_pg_leave_type;
domus_handler domi_pg_end_subscriptions_of_asked_actor;

/* --- settings.c ------------------------------------------------------------------------------- */

int domi_pg_check_settings(const domus_sql_settings *settings, char *error, size_t error_size);
/* Begin a connect of libpq, which may block, so a helper thread calls this. Returns NULL if there
 * is no memory. */
PGconn *domi_pg_begin_libpq_connect(const domus_sql_settings *settings);

/* --- cancel.c --------------------------------------------------------------------------------- */

extern const domus_type domi_pg_cancel_type;
domus_handler domi_pg_start_helper_that_cancels;
/* Forget a connection's cancel that waits for its turn, because its query has ended. */
void domi_pg_forget_waiting_cancel(domi_pg_connection *connection);
/* Cancel the first query of a connection's line at the server, unless the server was told
 * already. */
void domi_pg_cancel_first_of_line(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection);
/* Begin another cancel for a connection on which none is under way, or let the cancel wait for its
 * turn. */
void domi_pg_begin_cancel_now_or_queue_it(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_connection *connection);
/* Cancel the first query of a connection's line if it is late, or if a query that shares its sync
 * is late. */
void domi_pg_cancel_first_if_late(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection);

/* --- send.c ----------------------------------------------------------------------------------- */

/* Add a query to the end of a connection's line, and send it. Returns false if the connection is
 * lost. */
bool domi_pg_send_query(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query);
/* Send the waiting query that came first, and those behind it that may share its sync. Returns
 * false if the connection is lost. */
bool domi_pg_send_waiting_queries(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection);
/* Send the bytes that libpq has queued for the server. Returns false if the connection is lost. */
bool domi_pg_flush_and_watch_for_rest(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection);
/* Tell libpq how to read the result of the query that has become the first of its line. */
void domi_pg_set_up_reading_of_first_query(domi_pg_connection *connection);
/* Send a command of the pool itself, which no asker waits for; its failure ends the connection.
 * Returns false if the connection is lost. */
bool domi_pg_send_command_of_pool_itself(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection, const char *command);

/* --- parameters.c ----------------------------------------------------------------------------- */

typedef struct domi_pg_parameters {
    const char *values[DOMUS_SQL_PARAMETERS_MAX];
    int sizes[DOMUS_SQL_PARAMETERS_MAX];
    int formats[DOMUS_SQL_PARAMETERS_MAX];
} domi_pg_parameters;

/* Write the parameters of a query as libpq takes them. They are valid until the next call. If
 * `statement` is NULL, the server chooses the types. Returns 0; -EINVAL; -ENOMEM. */
int domi_pg_write_parameters(domi_pg_pool *pool, const domus_sql_request *request,
                             const domi_pg_statement *statement, domi_pg_parameters *parameters);

/* --- statements.c ----------------------------------------------------------------------------- */

domi_pg_statement *domi_pg_find_statement(domi_pg_statements *statements,
                                          const domus_sql_statement *of);
/* Add a statement to those that a connection has prepared. Returns NULL if there is no memory. */
domi_pg_statement *domi_pg_add_statement(domi_pg_statements *statements,
                                         const domus_sql_statement *of, uint32_t params,
                                         uint64_t token);
void domi_pg_remove_statement(domi_pg_statements *statements, domi_pg_statement *statement);
void domi_pg_free_all_statements(domi_pg_statements *statements);

/* --- cells.c ---------------------------------------------------------------------------------- */

bool domi_pg_is_type_read_in_binary(Oid type);
/* Add the rows of one part of a result to the result that is being built. Returns 0, or the error
 * of the builder. */
int domi_pg_build_rows(domus_sql_builder *builder, const PGresult *rows);
uint64_t domi_pg_count_affected_rows(PGresult *result);

/* --- failure.c -------------------------------------------------------------------------------- */

void domi_pg_read_failure_of_result(const PGresult *result, domus_sql_error *ret_failure);

/* --- tags.c ----------------------------------------------------------------------------------- */

/* Record in a query what the tag says with which the server has answered a statement (tags.c). */
void domi_pg_record_tag_of_done_command(domi_pg_query *query, const char *tag);

/* --- take.c: answers of the server ------------------------------------------------------------ */

domus_handler domi_pg_use_ready_socket;
/* Handle the results that have come from the server. Returns false if the connection is lost. */
bool domi_pg_do_use_results_of_libpq(domus_stack *stack, domi_pg_pool *pool,
                                     domi_pg_connection *connection);
/* Finish the first query of a connection's line, for which the server has sent everything. Returns
 * false if the connection is lost. */
bool domi_pg_do_finish_first_query(domus_stack *stack, domi_pg_pool *pool,
                                   domi_pg_connection *connection);

/* Count bytes that a server sends while no query is under way. Returns false if they are more than
 * `bytes_max`. */
bool domi_pg_count_and_bound_unasked_bytes(domi_pg_connection *connection, uint64_t bytes_max);

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_put_query_of_ask, domi_pg_put_query_for_rows_of_ask,
    domi_pg_put_script_of_ask, domi_pg_reply_with_driver_of_pool, domi_pg_reply_with_status_of_pool;

/* --- transaction.c ---------------------------------------------------------------------------- */

domus_handler domi_pg_put_begin_of_transaction, domi_pg_put_end_into_transaction,
    domi_pg_roll_back_if_abandoned;
/* Give a query to the transaction that it names, or fail it if there is no such transaction. */
void domi_pg_send_or_queue_in_transaction(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_query *query);
/* Send the next query of a connection's transaction. Returns false if the connection is lost. */
bool domi_pg_send_queued_of_transaction(domus_stack *stack, domi_pg_pool *pool,
                                        domi_pg_connection *connection);
/* Handle that the server has answered the command that begins a transaction, or the one that ends
 * it. */
void domi_pg_answer_begun_transaction(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection, domi_pg_query *query);
void domi_pg_answer_ended_transaction(domus_stack *stack, domi_pg_pool *pool,
                                      domi_pg_connection *connection, domi_pg_query *query);
/* Mark a transaction as one that its owner does not end, so that domi_pg_go_on_or_list_as_free()
 * rolls it back. */
void domi_pg_roll_back_abandoned_transaction(domus_stack *stack, domi_pg_pool *pool,
                                             domi_pg_connection *connection);
/* Begin and end the watch on the actor that owns a transaction, rows in pieces, or a copy. */
int domi_pg_watch_owner(domus_stack *stack, domi_pg_connection *connection, domus_address owner);
void domi_pg_unwatch_owner(domus_stack *stack, domi_pg_connection *connection);
domus_handler domi_pg_release_what_ended_actor_had;

/* --- rows.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_read_next_piece_of_rows, domi_pg_drop_rows_and_settle;
/* Add rows that have come to the piece that is being built for the reader. */
void domi_pg_add_result_to_piece_of_rows(domus_stack *stack, domi_pg_pool *pool,
                                         domi_pg_connection *connection, domi_pg_query *query,
                                         const PGresult *rows);
/* Handle that the server has sent all rows or bytes of a query. Returns whether its reader has got
 * all of them, so that the query is over. */
bool domi_pg_give_last_piece_of_flow(domus_stack *stack, domi_pg_pool *pool,
                                     domi_pg_connection *connection, domi_pg_query *query);
/* Answer the current ask with the next piece of rows or of a copy, or keep it until there is one.
 * Returns as a handler does. */
int domi_pg_read_next_piece_of_flow(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection);
/* Begin to read rows in pieces, or a copy: answer the ask with the number of this flow. Returns
 * false if the asker is gone. */
bool domi_pg_begin_flow_and_answer_its_ask(domus_stack *stack, domi_pg_pool *pool,
                                           domi_pg_connection *connection, domi_pg_query *query,
                                           domi_pg_flow flow);
void domi_pg_clear_flow(domus_stack *stack, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find_connection_of_flow(const domi_pg_pool *pool, uint64_t number);
/* Stop reading from the server on a connection, because a piece of rows or of a copy is full and
 * nobody has fetched it. */
void domi_pg_pause_reading_until_next_fetch(domus_stack *stack, domi_pg_pool *pool,
                                            domi_pg_connection *connection);
/* Discard the rest of rows or of a copy, and fail the ask that waits for the next piece. Returns
 * false if the connection is lost. */
bool domi_pg_do_give_up_flow(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                             int error);

/* --- copy.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_put_copy_in_of_ask, domi_pg_put_copy_out_of_ask,
    domi_pg_send_bytes_of_copy_in, domi_pg_send_end_of_copy_in, domi_pg_read_next_piece_of_copy_out;
/* Handle that the server waits for the bytes of a copy in, or begins to send those of a copy out.
 * Returns false if the connection is lost. */
bool domi_pg_begin_copy_of_query(domus_stack *stack, domi_pg_pool *pool,
                                 domi_pg_connection *connection, domi_pg_query *query,
                                 const PGresult *result);
/* Read the bytes of a copy out that have come. Returns whether the copy is over, so that its result
 * comes next. */
bool domi_pg_read_bytes_of_copy_out(domus_stack *stack, domi_pg_pool *pool,
                                    domi_pg_connection *connection);
/* Answer the writer of a copy in, because the bytes of its piece have left. */
void domi_pg_answer_writer_of_sent_bytes(domus_stack *stack, domi_pg_connection *connection);
/* Tell the server to abort a copy. Returns false if the connection is lost. */
bool domi_pg_do_abort_copy(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Send the reader of a copy out the bytes that have come. Returns whether a reader was waiting. */
bool domi_pg_do_give_copied_bytes_to_reader(domus_stack *stack, domi_pg_connection *connection,
                                            domi_pg_query *query, bool is_last);

/* Returns the connection that a transaction holds; NULL if the transaction is over. */
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

/* Returns whether `query` may wait behind the queries of `line`, within the limits of their number
 * and bytes. */
static inline bool domi_pg_has_line_room_for_query(const domi_pg_pool *pool,
                                                   const domi_pg_line *line,
                                                   const domi_pg_query *query)
{
    uint64_t bytes = (uint64_t)query->request.text.size + query->request.more.size;

    return line->count < pool->settings.options.queue_max &&
           (bytes == 0 || line->bytes + bytes <= pool->settings.options.queue_bytes_max);
}

/* Returns a new number for a transaction or a flow on a connection; it contains the connection's
 * slot. */
static inline uint64_t domi_pg_make_new_number_of_flow(domi_pg_pool *pool,
                                                       const domi_pg_connection *connection)
{
    return ++pool->serial << 8 | connection->slot;
}

#endif
