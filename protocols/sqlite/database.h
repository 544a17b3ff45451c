/* The actor of a database: its queues, its connections, and the transactions and cursors that hold
 * them.
 *
 * The actor has a conversation for each ask, which sleeps until the ask's task is done, and so
 * notices a cancel; and one for each connection whose job runs. Tasks wait in `reads` or `writes`,
 * and tasks of a transaction or of rows in the queue of their connection. Everything here belongs
 * to the actor, except that a connection belongs to a helper thread while a job runs
 * (connection.h). */
#ifndef DOMI_SQLITE_DATABASE_H
#define DOMI_SQLITE_DATABASE_H

#include "protocols/sqlite/connection.h"

/* connections, at most; the number of a transaction or cursor contains its slot */
#define DOMI_SQLITE_SLOTS 64u
#define DOMI_SQLITE_FREE  128u  /* unused tasks that are kept for later asks */
#define DOMI_SQLITE_KNOWN 1024u /* places to remember statements that write */

/* A connection, as the actor sees it. */
typedef struct domi_sqlite_slot {
    domi_sqlite_connection *connection; /* the connection; NULL: it was never needed */
    /* tasks of the transaction that holds the connection, or of its rows */
    domi_sqlite_queue own;
    domi_sqlite_queue aside; /* fetches of rows that do not belong to the transaction */
    bool is_open;            /* the handle was open after the last job */
    bool is_running;         /* a job of the connection is under way */
    bool is_waking;          /* the slot was sent a notice to start a job */
    bool is_idle;            /* the connection was idle for long, and is to be closed */
    bool loses;              /* the transaction is over, and must be rolled back */
    bool ends_rows;          /* some cursors of the connection are over */
    uint64_t used_ns;
    /* --- the transaction or cursor that holds it ---------------------------------------------- */
    uint64_t transaction; /* number of the transaction; 0: none */
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending;   /* a commit or rollback of the transaction waits or runs */
    int failed;       /* negative errno of a verb of the transaction that no job has run; 0: none */
    uint64_t held_by; /* number of the cursor that holds the connection; 0: none */
    domi_sqlite_cursor *cursors;
} domi_sqlite_slot;

typedef struct domi_sqlite_database {
    domus_sql_settings settings; /* first member, as drivers require */
    domi_sqlite_place place;
    domus_address self;
    domi_sqlite_queue reads;
    domi_sqlite_queue writes;
    domi_sqlite_slot slots[DOMI_SQLITE_SLOTS];
    uint32_t slots_count; /* number of slots: 1, or connections_max */
    /* the file was opened by the writing connection, so readers find it in WAL mode */
    bool was_opened;
    bool is_ticking;
    uint64_t serial;
    domi_sqlite_task *free;
    uint32_t free_count;
    /* Statements that write although their first word suggests a read, each at the place of its
     * hash. */
    const domus_sql_statement *known[DOMI_SQLITE_KNOWN];
    domus_sql_status counted;
} domi_sqlite_database;

static inline domi_sqlite_slot *domi_sqlite_slot_of(domi_sqlite_database *database, uint64_t number)
{
    return &database->slots[number % DOMI_SQLITE_SLOTS];
}

/* Record that a verb of a transaction has failed before any job saw it: only a rollback is possible
 * then. */
static inline void domi_sqlite_spoil(domi_sqlite_database *database, uint64_t transaction,
                                     int error)
{
    domi_sqlite_slot *slot = domi_sqlite_slot_of(database, transaction);

    if (transaction != 0 && slot->transaction == transaction && slot->failed == 0)
        slot->failed = error;
}

/* Returns whether one connection does all the work. */
static inline bool domi_sqlite_is_single(const domi_sqlite_database *database)
{
    return database->slots_count == 1;
}

/* Returns the place of a statement in the table of those that are known to write. */
static inline uint32_t domi_sqlite_place_of(const domus_sql_statement *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 32) % DOMI_SQLITE_KNOWN;
}

/* --- deliver.c -------------------------------------------------------------------------------- */

/* Make a task for the current ask. Returns NULL without memory. */
domi_sqlite_task *domi_sqlite_new_task(domus_stack *stack, domi_sqlite_database *database,
                                       domi_sqlite_verb verb);

/* Free a task, unless a queue, a job or a conversation still has it. */
void domi_sqlite_settle_task(domi_sqlite_database *database, domi_sqlite_task *task);

/* Free a cursor that is in no list. */
void domi_sqlite_free_cursor(domi_sqlite_cursor *cursor);

/* Take a task out of its queue, or out of a job that has not begun it. Returns false if the task
 * runs or is done. */
bool domi_sqlite_leave(domi_sqlite_task *task);

/* Deliver a done task, which is in no queue or job: its conversation answers. Returns false if
 * nobody waits for the answer. */
bool domi_sqlite_deliver(domus_stack *stack, domi_sqlite_database *database,
                         domi_sqlite_task *task);

/* Deliver a task as domi_sqlite_deliver() does, with an error as its outcome. */
void domi_sqlite_deliver_error(domus_stack *stack, domi_sqlite_database *database,
                               domi_sqlite_task *task, int error);

/* The handler that resumes a task's conversation after its sleep. */
domus_resumed domi_sqlite_on_woken;

/* --- held.c ----------------------------------------------------------------------------------- */

/* Begin and end the hold of a transaction on its connection. */
void domi_sqlite_hold(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot,
                      domi_sqlite_task *task);
void domi_sqlite_let_go(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot);

/* Give up a transaction that nobody can end any more; the next job rolls it back. */
void domi_sqlite_lose(domus_stack *stack, domi_sqlite_database *database, domi_sqlite_slot *slot);

/* Make a cursor, which then owns the request. Returns NULL without memory. */
domi_sqlite_cursor *domi_sqlite_new_cursor(const domi_sqlite_task *task,
                                           const domus_sql_request *request);

/* Find the queue for a fetch. While a connection does all the work, a transaction delays the rows
 * of all others, which would see what is not committed. */
domi_sqlite_queue *domi_sqlite_queue_of_rows(domi_sqlite_slot *slot,
                                             const domi_sqlite_cursor *cursor);

/* Find a cursor that is not over. Returns NULL if there is none. */
domi_sqlite_cursor *domi_sqlite_find_cursor(domi_sqlite_database *database, uint64_t number);

/* Add a cursor, whose rows have begun, to its connection. */
void domi_sqlite_keep_cursor(domus_stack *stack, domi_sqlite_database *database,
                             domi_sqlite_slot *slot, domi_sqlite_task *task);

/* End the rows of a cursor that nobody reads any more. */
void domi_sqlite_end_cursor(domus_stack *stack, domi_sqlite_database *database,
                            domi_sqlite_slot *slot, domi_sqlite_cursor *cursor);

/* Remove a cursor that is over from its connection, and free it. */
void domi_sqlite_drop_cursor(domus_stack *stack, domi_sqlite_slot *slot,
                             domi_sqlite_cursor *cursor);

/* End all cursors of the connection's transaction. */
void domi_sqlite_end_its_rows(domus_stack *stack, domi_sqlite_database *database,
                              domi_sqlite_slot *slot);

/* --- give.c ----------------------------------------------------------------------------------- */

/* Returns the queue for tasks that need no particular connection. */
domi_sqlite_queue *domi_sqlite_queue_for(domi_sqlite_database *database, bool writes);

/* Returns whether a connection may take tasks from the queue that it shares with others. */
bool domi_sqlite_is_free(domi_sqlite_database *database, uint32_t index);

/* Return whether an idle connection has work: first, work that only it can do; second, any work. */
bool domi_sqlite_has_own_work(const domi_sqlite_database *database, uint32_t index);
bool domi_sqlite_has_work(domi_sqlite_database *database, uint32_t index);

/* Make the next job of a connection. Returns false if there is no task for it. */
bool domi_sqlite_make_job(domus_stack *stack, domi_sqlite_database *database, uint32_t index);

/* For a reading connection without work, take some tasks back from the jobs of other connections,
 * where they may wait for a long query. */
void domi_sqlite_take_back(domi_sqlite_database *database);

/* --- finish.c --------------------------------------------------------------------------------- */

/* Finish the job of a connection, which has ended, or could not begin because of `error`. */
void domi_sqlite_end_job(domus_stack *stack, domi_sqlite_database *database, uint32_t index,
                         int error);

/* --- pump.c ----------------------------------------------------------------------------------- */

/* Wake as many connections as are needed for the waiting tasks. */
void domi_sqlite_pump(domus_stack *stack, domi_sqlite_database *database);

/* A notice of the actor to itself: a connection starts its next job. */
extern const domus_type domi_sqlite_wake_type;
domus_handler domi_sqlite_on_wake;

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_sqlite_on_query, domi_sqlite_on_rows, domi_sqlite_on_script;
domus_handler domi_sqlite_on_fetch, domi_sqlite_on_begin, domi_sqlite_on_end;

/* --- ticks.c ---------------------------------------------------------------------------------- */

/* The event of a timer, which domi_sqlite_on_tick() handles while anything may become late. */
extern const domus_type domi_sqlite_tick_type;
void domi_sqlite_begin_ticks(domus_stack *stack, domi_sqlite_database *database);

/* Returns whether an unused connection may be closed. A database in memory would be lost by
 * that. */
bool domi_sqlite_has_spare(const domi_sqlite_database *database);

/* --- watch.c ---------------------------------------------------------------------------------- */

/* Handlers that end what was not used for a long time, or whose owner has ended. */
domus_handler domi_sqlite_on_tick;
domus_handler domi_sqlite_on_down, domi_sqlite_on_close, domi_sqlite_on_abandon;

#endif
