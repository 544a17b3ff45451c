/* A task is a verb on its way: from the ask, through a queue and a job, to the answer.
 *
 *   WAITS --a job takes it--> GIVEN --the job comes to it--> RUNS --the job has ended--> DONE
 *     ^                         |
 *     +---nobody began it-------+
 *
 * From WAITS and GIVEN a task also goes to GONE, when nobody waits for it any more. The actor and
 * the helper thread of a job meet in `stage` alone: whoever takes a task out of GIVEN does it by a
 * compare-and-exchange, so a task is run by one job at most. The slot of the connection stands
 * beside the stage, because a task may be taken back from one job and given to another one. A task
 * in RUNS belongs to the helper thread, and in any other stage to the actor. */
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

/* The word of a stage, with the connection whose job has the task. */
#define DOMI_SQLITE_AT(stage, slot) ((uint32_t)(stage) | (uint32_t)(slot) << 8)

struct domi_sqlite_queue;
struct domi_sqlite_cursor;

typedef struct domi_sqlite_task {
    /* --- the actor's -------------------------------------------------------------------------- */
    struct domi_sqlite_task *next; /* in its queue, or in the list of free ones */
    struct domi_sqlite_task *before;
    struct domi_sqlite_queue *queue; /* in which it waits; NULL: in none */
    struct domi_sqlite_queue *home;  /* in which it waits if nobody runs it */
    domus_conversation conversation; /* the conversation that answers the ask */
    domus_address owner;
    uint64_t timeout_ns;
    uint64_t deadline_ns; /* of the ask; 0: none */
    uint64_t bytes;       /* of its texts and parameters, as its queue counts them */
    uint32_t jobs;        /* lists of jobs that name this task */
    bool is_awaited;      /* the conversation is there */
    /* --- constant while a job has it ---------------------------------------------------------- */
    domi_sqlite_verb verb;
    bool reads_only; /* of DOMI_SQLITE_BEGIN */
    uint64_t transaction;
    uint64_t number;    /* of the cursor that DOMI_SQLITE_ROWS has made */
    uint64_t within_ns; /* ns for which the task may run */
    struct domi_sqlite_cursor *cursor;
    domus_sql_request request;
    /* --- shared ------------------------------------------------------------------------------- */
    _Atomic(uint32_t) stage;
    /* The actor asks the job to end the task early. Relaxed: it guards nothing. */
    atomic_bool is_unwanted;
    /* --- the outcome, the helper thread's until the job has ended ------------------------------
     */
    bool is_bounced; /* the task writes, so it belongs to the connection that writes */
    bool has_result;
    bool is_grouped; /* the task was run in a transaction of the group */
    int error;       /* of `failure`, or alone if there was no memory for one */
    domus_sql_error *failure;
    domus_sql_result result;
} domi_sqlite_task;

/* A queue of tasks. */
typedef struct domi_sqlite_queue {
    domi_sqlite_task *first;
    domi_sqlite_task *last;
    uint64_t bytes;
    uint32_t count;
} domi_sqlite_queue;

void domi_sqlite_queue_put(domi_sqlite_queue *queue, domi_sqlite_task *task);
void domi_sqlite_queue_put_first(domi_sqlite_queue *queue, domi_sqlite_task *task);
void domi_sqlite_queue_remove(domi_sqlite_task *task);

/* Move a task from one stage to another one, if it is in it. */
static inline bool domi_sqlite_move(domi_sqlite_task *task, uint32_t from, uint32_t to)
{
    /* Acquire and release: whoever gets a task sees what the one before has written. */
    return atomic_compare_exchange_strong_explicit(&task->stage, &from, to, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

static inline uint32_t domi_sqlite_stage_of(const domi_sqlite_task *task)
{
    return atomic_load_explicit(&task->stage, memory_order_acquire); /* as above */
}

/* Whether a task is a statement of a transaction, whose failure is that of the transaction. */
static inline bool domi_sqlite_is_part(const domi_sqlite_task *task)
{
    return task->transaction != 0 && task->verb != DOMI_SQLITE_COMMIT &&
           task->verb != DOMI_SQLITE_ROLLBACK;
}

/* Forget an outcome, and free what it owns. */
void domi_sqlite_clear_outcome(domi_sqlite_task *task);

/* Free a request's texts and parameters. */
void domi_sqlite_clear_request(domus_sql_request *request);

#endif
