/* The actor of a database: what waits, the connections, and what holds one of them.
 *
 * It has a conversation for each verb, which sleeps until the verb's task is done, and so hears of
 * a cancel; and one for each connection whose job runs. Tasks wait in `reads` or `writes`, and
 * those of a transaction or of rows in the queue of their connection. All here is the actor's,
 * except that a connection is its helper thread's while a job runs (connection.h). */
#ifndef DOMI_SQLITE_DATABASE_H
#define DOMI_SQLITE_DATABASE_H

#include "protocols/sqlite/connection.h"

#define DOMI_SQLITE_SLOTS 64u   /* of connections; a number is a serial and a slot */
#define DOMI_SQLITE_FREE  128u  /* tasks that are kept for others */
#define DOMI_SQLITE_KNOWN 1024u /* statements of which is remembered that they write */

/* A connection, as the actor sees it. */
typedef struct domi_sqlite_slot {
    domi_sqlite_connection *connection; /* NULL: it was never needed */
    domi_sqlite_queue own;              /* of what holds it, or reads its rows */
    domi_sqlite_queue aside;            /* fetches of rows that are no part of the transaction */
    bool is_open;                       /* after the last job */
    bool is_running;                    /* its job is under way */
    bool is_waking;                     /* the slot was told to look for a job */
    bool is_idle;                       /* the connection is to be closed */
    bool loses;                         /* its transaction is over, and is to be rolled back */
    bool ends_rows;                     /* some of its cursors are over */
    uint64_t used_ns;
    /* --- what holds it ------------------------------------------------------------------------ */
    uint64_t transaction; /* 0: none */
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending;   /* the end of the transaction was asked for */
    int failed;       /* of a verb of it that no job has run; 0: none */
    uint64_t held_by; /* the cursor; 0: none */
    domi_sqlite_cursor *cursors;
} domi_sqlite_slot;

typedef struct domi_sqlite_database {
    domus_sql_settings settings; /* first, as drivers have it */
    domi_sqlite_place place;
    domus_address self;
    domi_sqlite_queue reads;
    domi_sqlite_queue writes;
    domi_sqlite_slot slots[DOMI_SQLITE_SLOTS];
    uint32_t slots_count; /* 1, or connections_max */
    bool was_opened;      /* the file has the mode that readers need */
    bool is_ticking;
    uint64_t serial;
    domi_sqlite_task *free;
    uint32_t free_count;
    /* Statements that write although their first word is one of reading, each at its hash. */
    const domus_sql_statement *known[DOMI_SQLITE_KNOWN];
    domus_sql_status counted;
} domi_sqlite_database;

static inline domi_sqlite_slot *domi_sqlite_slot_of(domi_sqlite_database *database, uint64_t number)
{
    return &database->slots[number % DOMI_SQLITE_SLOTS];
}

/* Note that a verb of a transaction has failed of which no job knows: only its rollback is left. */
static inline void domi_sqlite_spoil(domi_sqlite_database *database, uint64_t transaction,
                                     int error)
{
    domi_sqlite_slot *slot = domi_sqlite_slot_of(database, transaction);

    if (transaction != 0 && slot->transaction == transaction && slot->failed == 0)
        slot->failed = error;
}

/* One connection does all. */
static inline bool domi_sqlite_is_single(const domi_sqlite_database *database)
{
    return database->slots_count == 1;
}

/* Where a statement has its place among those that are known. */
static inline uint32_t domi_sqlite_place_of(const domus_sql_statement *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 32) % DOMI_SQLITE_KNOWN;
}

/* --- deliver.c -------------------------------------------------------------------------------- */

/* Make a task of the ask at hand. NULL: no memory. */
domi_sqlite_task *domi_sqlite_new_task(domus_stack *stack, domi_sqlite_database *database,
                                       domi_sqlite_verb verb);

/* Free a task that no queue, job or conversation has any more; otherwise do nothing. */
void domi_sqlite_settle_task(domi_sqlite_database *database, domi_sqlite_task *task);

/* Free a cursor that no list has. */
void domi_sqlite_free_cursor(domi_sqlite_cursor *cursor);

/* Take a task out of its queue, or out of a job that has not come to it. Returns false if it runs,
 * or is done. */
bool domi_sqlite_leave(domi_sqlite_task *task);

/* The task, which no queue and no job has, is done: its conversation answers. Returns false if
 * nobody waits for that. */
bool domi_sqlite_deliver(domus_stack *stack, domi_sqlite_database *database,
                         domi_sqlite_task *task);

/* Deliver a task as domi_sqlite_deliver() does, with an error as its outcome. */
void domi_sqlite_deliver_error(domus_stack *stack, domi_sqlite_database *database,
                               domi_sqlite_task *task, int error);

/* The handler of the answer to the sleep of a task's conversation. */
domus_resumed domi_sqlite_on_woken;

/* --- held.c ----------------------------------------------------------------------------------- */

/* A transaction has begun on a connection, and has ended. */
void domi_sqlite_hold(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot,
                      domi_sqlite_task *task);
void domi_sqlite_let_go(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot);

/* Nobody ends this transaction any more. */
void domi_sqlite_lose(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot);

/* Make a cursor, which then owns the request. NULL: no memory. */
domi_sqlite_cursor *domi_sqlite_new_cursor(const domi_sqlite_task *task,
                                           const domus_sql_request *request);

/* Find where a fetch waits. A transaction holds up the rows of all others: on a connection that
 * does all they would see what is not committed. */
domi_sqlite_queue *domi_sqlite_queue_of_rows(domi_sqlite_slot *slot,
                                             const domi_sqlite_cursor *cursor);

/* Find a cursor that is not over. */
domi_sqlite_cursor *domi_sqlite_find_cursor(domi_sqlite_database *database, uint64_t number);

/* The rows of a cursor have begun on a connection. */
void domi_sqlite_keep_cursor(domus_stack *stack, domi_sqlite_database *database,
                             domi_sqlite_slot *slot, domi_sqlite_task *task);

/* Nobody reads these rows any more. */
void domi_sqlite_end_cursor(domus_stack *stack, domi_sqlite_database *database,
                            domi_sqlite_slot *slot, domi_sqlite_cursor *cursor);

/* Take a cursor that is over from its connection, and free it. */
void domi_sqlite_drop_cursor(domus_stack *stack, domi_sqlite_slot *slot,
                             domi_sqlite_cursor *cursor);

/* End all rows of the transaction of a connection. */
void domi_sqlite_end_its_rows(domus_stack *stack, domi_sqlite_database *database,
                              domi_sqlite_slot *slot);

/* --- give.c ----------------------------------------------------------------------------------- */

/* The queue for what needs no connection of its own. */
domi_sqlite_queue *domi_sqlite_queue_for(domi_sqlite_database *database, bool writes);

/* Whether a connection may take of the queue that it shares with others. */
bool domi_sqlite_is_free(domi_sqlite_database *database, uint32_t index);

/* Whether a connection that does nothing has something to do that is for it alone, or anything. */
bool domi_sqlite_has_own_work(const domi_sqlite_database *database, uint32_t index);
bool domi_sqlite_has_work(domi_sqlite_database *database, uint32_t index);

/* Put together the next job of a connection. Returns false if there is none. */
bool domi_sqlite_make_job(domus_stack *stack, domi_sqlite_database *database, uint32_t index);

/* A connection that reads has nothing to do: take back a part of what waits in the jobs of others,
 * where it may wait for a long query. */
void domi_sqlite_take_back(domi_sqlite_database *database);

/* --- finish.c --------------------------------------------------------------------------------- */

/* The job of a connection has ended, or could not begin because of `error`. */
void domi_sqlite_end_job(domus_stack *stack, domi_sqlite_database *database, uint32_t index,
                         int error);

/* --- pump.c ----------------------------------------------------------------------------------- */

/* Wake the connections that are needed. */
void domi_sqlite_pump(domus_stack *stack, domi_sqlite_database *database);

/* A notice to itself: the connection looks for a job. */
extern const domus_type domi_sqlite_wake_type;
domus_handler domi_sqlite_on_wake;

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_sqlite_on_query, domi_sqlite_on_rows, domi_sqlite_on_script;
domus_handler domi_sqlite_on_fetch, domi_sqlite_on_begin, domi_sqlite_on_end;

/* --- ticks.c -----------------------------------------------------------------------------------
 */

/* The event of a timer, which domi_sqlite_on_tick() handles while anything may become late. */
extern const domus_type domi_sqlite_tick_type;
void domi_sqlite_begin_ticks(domus_stack *stack, domi_sqlite_database *database);

/* Whether a connection may be closed if it is not used. A database in memory would be lost. */
bool domi_sqlite_has_spare(const domi_sqlite_database *database);

/* --- watch.c ---------------------------------------------------------------------------------- */

/* Look for things that were not used for a long time. */
domus_handler domi_sqlite_on_tick;
domus_handler domi_sqlite_on_down, domi_sqlite_on_close, domi_sqlite_on_abandon;

#endif
