/* Cancels: each is a connection of its own to the server, made by libpq on a helper thread, which
 * waits for the server without a limit. A server that hangs would so take all helper threads of the
 * process; so a pool has few cancels under way, and the others wait. A connection whose cancel has
 * had no effect after DOMI_PG_CANCEL_NS is closed, also when its cancel is under way, or waits and
 * no other one has come to its end as long. */
#include "protocols/pg/pg.h"

#include <assert.h>

const domus_type domi_pg_cancel_type = {.name = "pg cancel", .size = sizeof(domi_pg_name)};

/* Which connection a job is for. The pool waits for the job before it ends. */
typedef struct cancel_job {
    domi_pg_connection *connection;
} cancel_job;

static_assert(sizeof(cancel_job) <= DOMI_PG_FRAME, "as the rows say");

static int cancel_on_helper(void *argument)
{
    const cancel_job *job = argument;
    char words[256];

    (void)PQcancel(job->connection->cancel, words, sizeof words);
    return 0;
}

/* Note that the server has from now on to do what a cancel asks. */
static void set_time(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    connection->until_ns = domus_now_ns(stack) + DOMI_PG_CANCEL_NS;
    domi_pg_look_at(stack, pool, connection->until_ns);
}

/* Begin a cancel, whose job ends in end_cancel(). Without memory it goes on waiting, and
 * the connection ends at until_ns. */
static void begin_cancel(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    connection->cancel = PQgetCancel(connection->pg);
    connection->awaits_cancel = connection->cancel == NULL ||
                                domi_pg_begin_soon(stack, connection, &domi_pg_cancel_type) != 0;
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

/* Let those that wait go on: those for which the server was told before, or the others, which get
 * time for it anew. */
static void begin_waiting(domus_stack *stack, domi_pg_pool *pool, bool were_told)
{
    for (uint32_t slot = 0; slot < DOMI_PG_SLOTS; slot++) {
        domi_pg_connection *each = pool->connections[slot];
        if (each == NULL || each->phase != DOMI_PG_READY || !each->awaits_cancel ||
            each->was_told != were_told)
            continue;
        if (!were_told)
            set_time(stack, pool, each);
        if (pool->cancels < DOMI_PG_CANCELS_MAX)
            begin_cancel(stack, pool, each);
    }
}

/* A cancel is over, so the server answers. Connections whose cancels have had no effect get no more
 * time by that: sessions that are dead would give it to each other for ever. */
static void end_one_cancel(domus_stack *stack, domi_pg_pool *pool)
{
    pool->cancels--;
    begin_waiting(stack, pool, false);
    begin_waiting(stack, pool, true);
}

static int end_cancel(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_pg_pool *pool = self;
    const cancel_job *job = domus_frame(stack);
    domi_pg_connection *connection = job->connection;

    (void)answer;
    connection->helpers--;
    end_one_cancel(stack, pool);
    if (connection->phase == DOMI_PG_DEAD) {
        domi_pg_connection_free(pool, connection);
        return 0;
    }
    PQfreeCancel(connection->cancel);
    connection->cancel = NULL;
    connection->is_cancelled = false;
    if (connection->line.first != NULL && connection->line.first->is_cancelled) {
        /* It may have come between two queries, where a server pays no heed to it. */
        connection->again_ns = domus_now_ns(stack) + DOMI_PG_AGAIN_NS;
        domi_pg_look_at(stack, pool, connection->again_ns);
    }
    if (domi_pg_settle(stack, pool, connection))
        domi_pg_serve(stack, pool);
    return 0;
}

int domi_pg_on_cancel(domus_stack *stack, void *self, const void *payload)
{
    domi_pg_pool *pool = self;
    const domi_pg_name *which = payload;
    domi_pg_connection *connection = domi_pg_find(pool, which->slot, which->serial);

    if (connection == NULL) { /* the connection was lost meanwhile */
        end_one_cancel(stack, pool);
        return 0;
    }
    cancel_job *job = domus_frame(stack);
    *job = (cancel_job){connection};
    connection->helpers++;
    int result = domus_blocking(stack, cancel_on_helper, job, end_cancel);
    if (result < 0) {
        connection->helpers--;
        end_one_cancel(stack, pool);
        domi_pg_lose(stack, pool, connection, "no memory for a cancel");
        return 0;
    }
    return result;
}

void domi_pg_forget_cancel(domi_pg_connection *connection)
{
    connection->awaits_cancel = connection->is_cancelled = false;
}

void domi_pg_cancel_again(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    connection->is_cancelled = true;
    if (pool->cancels < DOMI_PG_CANCELS_MAX)
        begin_cancel(stack, pool, connection);
    else
        connection->awaits_cancel = true;
}

void domi_pg_cancel(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    domi_pg_query *first = connection->line.first;

    if (first->is_cancelled)
        return;
    first->is_cancelled = true;
    connection->was_told = false;
    set_time(stack, pool, connection);
    if (!connection->is_cancelled) /* else that for the one before is under way, and may hit it */
        domi_pg_cancel_again(stack, pool, connection);
}

/* Returns whether one of those that run at the server just now is late: the first of the line, or
 * one that shares its sync, because the server keeps all their results until then. */
static bool is_group_late(const domi_pg_query *first)
{
    while (first != NULL && first->is_joined && !first->is_late)
        first = first->next;
    return first != NULL && first->is_late;
}

void domi_pg_cancel_late(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection)
{
    if (is_group_late(connection->line.first))
        domi_pg_cancel(stack, pool, connection);
}
