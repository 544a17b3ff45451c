/* A task is a verb on its way: from the ask, through a queue and a job, to the answer.
 *
 *   WAITS --a job takes it--> GIVEN --the job begins it--> RUNS --the job has ended--> DONE
 *     ^                         |
 *     +---nobody began it-------+
 *
 * From WAITS and GIVEN a task also goes to GONE, when nobody waits for its answer any more. The
 * actor and the helper thread of a job meet only in `stage`: each takes a task out of GIVEN by a
 * compare-and-exchange, so a task is run by one job at most. The slot of the connection is a part
 * of that word, because a task may be taken back from one job and given to another one. A task in
 * RUNS belongs to the helper thread, and in any other stage to the actor. */
#ifndef DOMI_SQLITE_TASK_H
#define DOMI_SQLITE_TASK_H

#include <domus/sql_driver.h>

#include <stdatomic.h>

typedef enum domi_sqlite_verb {
    DOMI_SQLITE_QUERY,
    DOMI_SQLITE_SCRIPT,
    DOMI_SQLITE_ROWS,
    DOMI_SQLITE_FETCH,
    DOMI_SQLITE_BEGIN,
    DOMI_SQLITE_COMMIT,
    DOMI_SQLITE_ROLLBACK,
} domi_sqlite_verb;

typedef enum domi_sqlite_stage {
    DOMI_SQLITE_WAITS,
    DOMI_SQLITE_GIVEN,
    DOMI_SQLITE_RUNS,
    DOMI_SQLITE_DONE,
    DOMI_SQLITE_GONE,
} domi_sqlite_stage;

/* The value of `stage`: a stage, and the slot of the connection whose job has the task. */
#define DOMI_SQLITE_AT(stage, slot) ((uint32_t)(stage) | (uint32_t)(slot) << 8)

struct domi_sqlite_queue;
struct domi_sqlite_cursor;

typedef struct domi_sqlite_task {
    /* --- members of the actor ----------------------------------------------------------------- */
    struct domi_sqlite_task *next; /* the next task in the queue, or in the list of unused tasks */
    struct domi_sqlite_task *before;
    /* the queue in which the task waits; NULL: it is in no queue */
    struct domi_sqlite_queue *queue;
    /* the queue to which the task returns if its job does not run it */
    struct domi_sqlite_queue *home;
    domus_conversation conversation; /* the conversation that answers the ask of this task */
    domus_address owner;
    uint64_t timeout_ns;
    uint64_t deadline_ns; /* deadline of the task's ask, in ns; 0: none */
    uint64_t bytes;       /* bytes of the task's texts and parameters, as its queue counts them */
    uint32_t jobs;        /* number of jobs that name this task in their list */
    bool is_awaited;      /* the task's conversation still waits for it */
    /* --- constant while a job has it ---------------------------------------------------------- */
    domi_sqlite_verb verb;
    bool reads_only; /* a DOMI_SQLITE_BEGIN begins a transaction that only reads */
    uint64_t transaction;
    uint64_t number;    /* number of the cursor that a DOMI_SQLITE_ROWS has made */
    uint64_t within_ns; /* ns for which a job may run the task */
    struct domi_sqlite_cursor *cursor;
    domus_sql_request request;
    /* --- members that both use ---------------------------------------------------------------- */
    _Atomic(uint32_t) stage;
    /* The actor wants the job to end this task early. Relaxed: it guards nothing else. */
    atomic_bool is_unwanted;
    /* --- the outcome; it belongs to the helper thread until the job has ended ----------------- */
    /* the task writes on a connection that only reads, so it is passed to the one that writes */
    bool is_bounced;
    bool has_result;
    /* the task was run in the transaction of a group, so its result holds after the commit */
    bool is_grouped;
    /* errno of `failure`; if there was no memory for a failure, the task's only error */
    int error;
    domus_sql_error *failure;
    domus_sql_result result;
} domi_sqlite_task;

/* A queue of tasks of a database, or of one connection. */
typedef struct domi_sqlite_queue {
    domi_sqlite_task *first;
    domi_sqlite_task *last;
    uint64_t bytes;
    uint32_t count;
} domi_sqlite_queue;

void domi_sqlite_queue_add_last(domi_sqlite_queue *queue, domi_sqlite_task *task);
void domi_sqlite_queue_add_first(domi_sqlite_queue *queue, domi_sqlite_task *task);
void domi_sqlite_queue_remove_task(domi_sqlite_task *task);

/* Move a task from one stage to another, if it is still in the first one. Returns whether it was
 * moved. */
static inline bool domi_sqlite_move_task_if_in_stage(domi_sqlite_task *task, uint32_t from,
                                                     uint32_t to)
{
    /* Acquire and release: the next owner of the task sees all that its last owner has written. */
    return atomic_compare_exchange_strong_explicit(&task->stage, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static inline uint32_t domi_sqlite_stage_of_task(const domi_sqlite_task *task)
{
    /* acquire: pairs with the release of domi_sqlite_move_task_if_in_stage() */
    return atomic_load_explicit(&task->stage, memory_order_acquire);
}

/* Returns whether a task is a statement of a transaction that fails if the task does. */
static inline bool domi_sqlite_is_part_of_transaction(const domi_sqlite_task *task)
{
    return task->transaction != 0 && task->verb != DOMI_SQLITE_COMMIT &&
           task->verb != DOMI_SQLITE_ROLLBACK;
}

/* Free what the outcome of a task owns, and reset it. */
void domi_sqlite_clear_outcome_of_task(domi_sqlite_task *task);

/* Free the texts and parameters of a request. */
void domi_sqlite_free_texts_of_request(domus_sql_request *request);

#endif
