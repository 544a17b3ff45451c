/* Cancels: each is a connection of its own to the server, made by libpq on a helper thread, which
 * waits for the server without a limit.
 *
 * A server that hangs would thus take all helper threads of the process, so a pool has only a few
 * cancels under way, and the others wait. A connection is closed if its cancel has had no effect
 * after DOMI_PG_CANCEL_NS, even if the cancel is still under way, or waits while no other cancel
 * ends for as long. */
#include "protocols/pg/pg.h"

#include <assert.h>

const domus_type domi_pg_cancel_type = {.name = "pg cancel", .size = sizeof(domi_pg_name)};

/* The connection whose query a job on a helper thread cancels. The pool waits for such a job before
 * it ends. */
typedef struct cancel_job {
    domi_pg_connection *connection;
} cancel_job;

static_assert(sizeof(cancel_job) <= DOMI_PG_FRAME, "as the rows say");

static int send_cancel_on_helper(void *argument)
{
    const cancel_job *job = argument;
    char words[256];

    (void)PQcancel(job->connection->cancel, words, sizeof words);
    return 0;
}

/* Set the time by which a cancel must have had an effect on this connection. */
static void set_time_by_which_cancel_must_work(domus_stack *stack, domi_pg_pool *pool,
                                               domi_pg_connection *connection)
{
    connection->until_ns = domus_now_ns(stack) + DOMI_PG_CANCEL_NS;
    domi_pg_set_timer_of_pool_for_time(stack, pool, connection->until_ns);
}

/* Begin a cancel, a job on a helper thread that ends in free_cancel_and_settle_connection(). If
 * there is no memory for it, the cancel goes on waiting, and the connection is closed at until_ns.
 */
static void begin_cancel_on_helper_thread(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_connection *connection)
{
    connection->cancel = PQgetCancel(connection->pg);
    connection->awaits_cancel =
        connection->cancel == NULL ||
        domi_pg_send_pool_notice_about_slot(stack, connection, &domi_pg_cancel_type) != 0;
    if (!connection->awaits_cancel) {
        if (connection->strays <= UINT8_MAX - DOMI_PG_SIGNALS)
            connection->strays += DOMI_PG_SIGNALS;
        connection->was_told = true;
        pool->cancels++;
        return;
    }
    PQfreeCancel(connection->cancel);
    connection->cancel = NULL;
}

/* Begin cancels that wait for their turn. With `were_told`, begin the repeated ones, for whose
 * query the server was told once before; otherwise begin the others, and set their time anew. */
static void begin_queued_cancels_of_pool(domus_stack *stack, domi_pg_pool *pool, bool were_told)
{
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++) {
        domi_pg_connection *each = pool->connections[slot];
        if (each == NULL || each->phase != DOMI_PG_READY || !each->awaits_cancel ||
            each->was_told != were_told)
            continue;
        if (!were_told)
            set_time_by_which_cancel_must_work(stack, pool, each);
        if (pool->cancels < DOMI_PG_CANCELS_MAX)
            begin_cancel_on_helper_thread(stack, pool, each);
    }
}

/* End one cancel, to which the server has answered, so that waiting ones get their turn.
 * Connections whose cancels have had no effect get no more time, because otherwise dead sessions
 * could give each other time for ever. */
static void end_cancel_and_begin_waiting(domus_stack *stack, domi_pg_pool *pool)
{
    pool->cancels--;
    begin_queued_cancels_of_pool(stack, pool, false);
    begin_queued_cancels_of_pool(stack, pool, true);
}

static int free_cancel_and_settle_connection(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    domi_pg_pool *pool = self;
    const cancel_job *job = domus_frame(stack);
    domi_pg_connection *connection = job->connection;

    (void)answer;
    connection->helpers--;
    end_cancel_and_begin_waiting(stack, pool);
    if (connection->phase == DOMI_PG_DEAD) {
        domi_pg_close_and_free_connection(pool, connection);
        return 0;
    }
    PQfreeCancel(connection->cancel);
    connection->cancel = NULL;
    connection->is_cancelled = false;
    if (connection->line.first != NULL && connection->line.first->is_cancelled) {
        /* The server ignores a cancel that comes between two queries, so the cancel is repeated
         * later. */
        connection->again_ns = domus_now_ns(stack) + DOMI_PG_AGAIN_NS;
        domi_pg_set_timer_of_pool_for_time(stack, pool, connection->again_ns);
    }
    if (domi_pg_go_on_or_list_as_free(stack, pool, connection))
        domi_pg_serve_waiting_queries(stack, pool);
    return 0;
}

int domi_pg_start_helper_that_cancels(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    const domi_pg_name *which = payload;
    domi_pg_connection *connection = domi_pg_find_connection(pool, which->slot, which->serial);

    /* the connection was lost before its cancel could begin, so nothing is cancelled */
    if (connection == NULL) {
        end_cancel_and_begin_waiting(stack, pool);
        return 0;
    }
    cancel_job *job = domus_frame(stack);
    *job = (cancel_job){connection};
    connection->helpers++;
    int result =
        domus_blocking(stack, send_cancel_on_helper, job, free_cancel_and_settle_connection);
    if (result < 0) {
        connection->helpers--;
        end_cancel_and_begin_waiting(stack, pool);
        domi_pg_lose_connection(stack, pool, connection, "no memory for a cancel");
        return 0;
    }
    return result;
}

void domi_pg_forget_waiting_cancel(domi_pg_connection *connection)
{
    connection->awaits_cancel = connection->is_cancelled = false;
}

void domi_pg_begin_cancel_now_or_queue_it(domus_stack *stack, domi_pg_pool *pool,
                                          domi_pg_connection *connection)
{
    connection->is_cancelled = true;
    if (pool->cancels < DOMI_PG_CANCELS_MAX)
        begin_cancel_on_helper_thread(stack, pool, connection);
    else
        connection->awaits_cancel = true;
}

void domi_pg_cancel_first_of_line(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection)
{
    domi_pg_query *first = connection->line.first;

    if (first->is_cancelled)
        return;
    first->is_cancelled = true;
    connection->was_told = false;
    set_time_by_which_cancel_must_work(stack, pool, connection);
    /* if a cancel for the query before is still under way, it may hit this query, so no other one
     * is begun */
    if (!connection->is_cancelled)
        domi_pg_begin_cancel_now_or_queue_it(stack, pool, connection);
}

/* Returns whether a query that the server now runs is late: the first one of the line, or one that
 * shares its sync with the first, because the server keeps the results of all of these until the
 * sync. */
static bool is_any_query_before_sync_late(const domi_pg_query *first)
{
    while (first != NULL && first->is_joined && !first->is_late)
        first = first->next;
    return first != NULL && first->is_late;
}

void domi_pg_cancel_first_if_late(domus_stack *stack, domi_pg_pool *pool,
                                  domi_pg_connection *connection)
{
    if (is_any_query_before_sync_late(connection->line.first))
        domi_pg_cancel_first_of_line(stack, pool, connection);
}
