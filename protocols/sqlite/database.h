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

/* connections of a database, at most; a transaction or cursor has its slot in its number */
#define DOMI_SQLITE_SLOTS 64u
#define DOMI_SQLITE_FREE  128u  /* unused tasks that a database keeps for later asks */
#define DOMI_SQLITE_KNOWN 1024u /* size of the table of statements that are known to write */

/* The place of a connection, with what the actor knows of it. */
typedef struct domi_sqlite_slot {
    domi_sqlite_connection *connection; /* the connection; NULL: it was not needed yet */
    /* tasks of the transaction that holds the connection, or fetches of the rows that hold it */
    domi_sqlite_queue own;
    /* fetches of rows that do not belong to the transaction that holds the connection */
    domi_sqlite_queue aside;
    bool is_open;    /* the handle of the connection was open after its last job */
    bool is_running; /* a job of the connection is under way on a helper thread */
    bool is_waking;  /* the actor has sent itself a notice to start a job of this connection */
    bool is_idle;    /* the connection was not used for long, and its next job closes it */
    bool loses;      /* the transaction cannot go on, and the connection's next job rolls it back */
    bool ends_rows;  /* cursors of the connection are over, and its next job ends them */
    uint64_t used_ns;
    /* --- the transaction or cursor that holds it ---------------------------------------------- */
    uint64_t transaction; /* number of the transaction that holds the connection; 0: none */
    domus_address owner;
    domus_watch watch;
    bool has_watch;
    bool is_ending; /* a commit or rollback of the transaction waits for a job, or runs */
    /* negative errno with which a verb of the transaction has failed before any job; 0: none */
    int failed;
    uint64_t held_by; /* number of the cursor that holds the connection; 0: none */
    domi_sqlite_cursor *cursors;
} domi_sqlite_slot;

typedef struct domi_sqlite_database {
    domus_sql_settings settings; /* this is the first member, because drivers require that */
    domi_sqlite_place place;
    domus_address self;
    domi_sqlite_queue reads;
    domi_sqlite_queue writes;
    domi_sqlite_slot slots[DOMI_SQLITE_SLOTS];
    uint32_t slots_count; /* number of slots in use: 1, or connections_max */
    /* the writing connection has opened the file, so readers will find it in WAL mode */
    bool was_opened;
    bool is_ticking;
    uint64_t serial;
    domi_sqlite_task *free;
    uint32_t free_count;
    /* Statements that write although their first word suggests that they read. The place of each is
     * a hash of its address. */
    const domus_sql_statement *known[DOMI_SQLITE_KNOWN];
    domus_sql_status counted;
} domi_sqlite_database;

static inline domi_sqlite_slot *
domi_sqlite_slot_of_transaction_number(domi_sqlite_database *database, uint64_t number)
{
    return &database->slots[number % DOMI_SQLITE_SLOTS];
}

/* Record that a verb of a transaction has failed before it came into a job, so that only a rollback
 * is possible from then on. */
static inline void domi_sqlite_mark_transaction_as_failed(domi_sqlite_database *database,
                                                          uint64_t transaction, int error)
{
    domi_sqlite_slot *slot = domi_sqlite_slot_of_transaction_number(database, transaction);

    if (transaction != 0 && slot->transaction == transaction && slot->failed == 0)
        slot->failed = error;
}

/* Returns whether the database has one connection only, which does all the work. */
static inline bool domi_sqlite_has_one_connection(const domi_sqlite_database *database)
{
    return database->slots_count == 1;
}

/* Returns the place of a statement in `known`, the table of statements that are known to write. */
static inline uint32_t domi_sqlite_place_of_known_statement(const domus_sql_statement *statement)
{
    uint64_t hash = (uint64_t)(uintptr_t)statement * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 32) % DOMI_SQLITE_KNOWN;
}

/* --- deliver.c -------------------------------------------------------------------------------- */

/* Make a task for the current ask. Returns NULL if there is no memory. */
domi_sqlite_task *domi_sqlite_make_task_of_ask(domus_stack *stack, domi_sqlite_database *database,
                                               domi_sqlite_verb verb);

/* Free a task, unless a queue, a job or a conversation still uses it. */
void domi_sqlite_free_task_if_unused(domi_sqlite_database *database, domi_sqlite_task *task);

/* Free a cursor that is in the list of no connection. */
void domi_sqlite_free_cursor(domi_sqlite_cursor *cursor);

/* Take a task out of its queue, or away from a job that has not begun it. Returns false if the task
 * runs or is done. */
bool domi_sqlite_withdraw_task_if_not_begun(domi_sqlite_task *task);

/* Hand a task that is done, and in no queue or job, to its conversation, which answers the ask.
 * Returns false if nobody waits for the answer. */
bool domi_sqlite_finish_task_and_wake_asker(domus_stack *stack, domi_sqlite_database *database,
                                            domi_sqlite_task *task);

/* Deliver a task as domi_sqlite_finish_task_and_wake_asker() does, failed by `error`. */
void domi_sqlite_fail_task_and_wake_asker(domus_stack *stack, domi_sqlite_database *database,
                                          domi_sqlite_task *task, int error);

/* The handler that resumes a task's conversation after its sleep. */
domus_resumed domi_sqlite_answer_or_withdraw_task;

/* --- held.c ----------------------------------------------------------------------------------- */

/* Begin and end that a transaction holds its connection. */
void domi_sqlite_hold_slot_for_transaction(domus_stack *stack, domi_sqlite_database *database,
                                           domi_sqlite_slot *slot, domi_sqlite_task *task);
void domi_sqlite_release_slot_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                             domi_sqlite_slot *slot);

/* Give up a transaction that nobody can end any more; the connection's next job rolls it back. */
void domi_sqlite_plan_rollback_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                              domi_sqlite_slot *slot);

/* Make a cursor for the rows of a request, which the cursor owns from then on. Returns NULL if
 * there is no memory. */
domi_sqlite_cursor *domi_sqlite_new_cursor(const domi_sqlite_task *task,
                                           const domus_sql_request *request);

/* Find the queue in which a fetch of a cursor's rows waits. If one connection does all the work,
 * fetches outside of an open transaction wait for its end, because they would see what is not
 * committed. */
domi_sqlite_queue *domi_sqlite_queue_in_which_fetch_waits(domi_sqlite_slot *slot,
                                                          const domi_sqlite_cursor *cursor);

/* Find the cursor with this number that is not over. Returns NULL if there is none. */
domi_sqlite_cursor *domi_sqlite_find_cursor(domi_sqlite_database *database, uint64_t number);

/* Add the cursor of a task, whose first rows were read, to its connection. */
void domi_sqlite_add_cursor_to_connection(domus_stack *stack, domi_sqlite_database *database,
                                          domi_sqlite_slot *slot, domi_sqlite_task *task);

/* End the rows of a cursor that nobody reads any more. */
void domi_sqlite_mark_cursor_as_ending(domus_stack *stack, domi_sqlite_database *database,
                                       domi_sqlite_slot *slot, domi_sqlite_cursor *cursor);

/* Remove a cursor that is over from the list of its connection, and free it. */
void domi_sqlite_remove_ended_cursor(domus_stack *stack, domi_sqlite_slot *slot,
                                     domi_sqlite_cursor *cursor);

/* End all cursors of the transaction that holds a connection. */
void domi_sqlite_end_rows_of_transaction(domus_stack *stack, domi_sqlite_database *database,
                                         domi_sqlite_slot *slot);

/* --- give.c ----------------------------------------------------------------------------------- */

/* Returns the queue for tasks that any connection may do: the one for writes, or the one for
 * reads. */
domi_sqlite_queue *domi_sqlite_shared_queue(domi_sqlite_database *database, bool writes);

/* Returns whether a connection may take tasks from the queue that it shares with other
 * connections. */
bool domi_sqlite_is_connection_free(domi_sqlite_database *database, uint32_t index);

/* Return whether an idle connection has work: the first one, work that only this connection can do;
 * the second one, any work. */
bool domi_sqlite_has_connection_own_work(const domi_sqlite_database *database, uint32_t index);
bool domi_sqlite_has_connection_work(domi_sqlite_database *database, uint32_t index);

/* Make the next job of a connection from waiting tasks. Returns false if there is none for it. */
bool domi_sqlite_fill_next_job_of_connection(domus_stack *stack, domi_sqlite_database *database,
                                             uint32_t index);

/* Take some tasks back from the jobs of other connections, where they may wait behind a long query,
 * for a reading connection that has no work. */
void domi_sqlite_take_back_reading_tasks(domi_sqlite_database *database);

/* --- finish.c --------------------------------------------------------------------------------- */

/* Finish the job of a connection, which has ended, or which could not begin because of `error`. */
void domi_sqlite_deliver_tasks_of_ended_job(domus_stack *stack, domi_sqlite_database *database,
                                            uint32_t index, int error);

/* --- pump.c ----------------------------------------------------------------------------------- */

/* Wake as many connections as are needed for the tasks that wait. */
void domi_sqlite_wake_connections_with_work(domus_stack *stack, domi_sqlite_database *database);

/* A notice of the actor to itself, on which a connection starts its next job. */
extern const domus_type domi_sqlite_wake_type;
domus_handler domi_sqlite_begin_job_of_woken;

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_sqlite_queue_query_of_ask, domi_sqlite_queue_query_for_rows_of_ask,
    domi_sqlite_queue_script_of_ask;
domus_handler domi_sqlite_queue_fetch_of_rows, domi_sqlite_queue_begin_of_transaction,
    domi_sqlite_queue_end_of_transaction;

/* --- ticks.c ---------------------------------------------------------------------------------- */

/* The event of the actor's timer. There are ticks only while something may become late. */
extern const domus_type domi_sqlite_tick_type;
void domi_sqlite_begin_ticks_if_needed(domus_stack *stack, domi_sqlite_database *database);

/* Returns whether an unused connection may be closed: a database in memory would be lost by
 * that. */
bool domi_sqlite_may_unused_connection_be_closed(const domi_sqlite_database *database);

/* --- watch.c ---------------------------------------------------------------------------------- */

/* Handlers that end transactions and rows that were not used for long, or whose owner has ended or
 * gives them up. */
domus_handler domi_sqlite_end_unused_at_tick;
domus_handler domi_sqlite_give_up_for_ended_owner, domi_sqlite_end_cursor_that_was_closed,
    domi_sqlite_give_up_abandoned;

#endif
