/* Jobs: commands that read or change a large value are done in pieces, between which the thread
 * serves other actors.
 *
 * As with a walk (walk.h), the shard runs no other command in between, so nobody sees a part of the
 * work, and what a job points to stays in place. A job that is done with its first piece costs
 * nothing extra. In a transaction, which is one turn, a job runs at most PIECES_OF_TRANSACTION
 * pieces (job.c), and fails with -EMSGSIZE if it needs more.
 *
 * Thread-safety: the shard that owns the store. */
#ifndef KV_JOB_H
#define KV_JOB_H

#include "kv.h"
#include "list.h"

/* cost at which a piece of a job ends: 1 for each copied byte, 64 for each element */
#define KV_JOB_COST 1048576u

struct kv_job {
    /* Do a piece of the job. Returns 1 if there is more to do; 0 if it is done; or a negative
     * errno. */
    int (*piece)(struct kv_call *call, struct kv_job *job);
    /* Finish the job, with 0 or a negative errno: answer, and free its memory. Returns as a
     * command. */
    int (*finish)(struct kv_call *call, struct kv_job *job, int error);
    struct kv_item **link; /* the link to the item with the value, in its table */
    uint64_t at, end;      /* index of the next element, and index at which the job ends */
    uint64_t written;      /* number of bytes that the job has written to a string */
    uint64_t cost;         /* cost of the job's current piece so far */
    struct kv_place place; /* place of the next element in a list that the job reads */
    /* index of the argument whose bytes the job copies; 0: the job writes `byte` */
    uint32_t argument;
    char byte; /* the byte with which a string is filled */
    /* number of elements that are still to be skipped, and that are still wanted */
    int64_t skip, left;
    int64_t found, first; /* number of elements that were found, and index of the first of them */
    bool from_tail;       /* whether the list is read from its tail */
    /* HRANDFIELD: the values are wanted too; LINSERT: the element goes after the pivot */
    bool is_set;
    domus_resp_builder builder;
    domus_appender bytes;
    char *room; /* place at which the job writes next, in the memory of `bytes` */
    void *copy; /* the copy of a list or a table that the job makes */
    /* the command, whose key is its first argument; set when the job has not ended at once */
    domus_resp_command command;
    domus_slice key;
    uint64_t hash;
};

/* Run a copy of a job in pieces, and answer the call when it is done. */
int kv_run_job_and_park_if_long(struct kv_call *call, const struct kv_job *job);

/* Add the cost of an element to the current piece of a job. Returns whether the piece is long
 * enough, and ends. */
static inline bool kv_job_add_cost_and_is_piece_full(struct kv_job *job, uint64_t cost)
{
    job->cost += 64 + cost;
    return job->cost >= KV_JOB_COST;
}

#define KV_TOO_LARGE "ERR the value is too large for a transaction"

#endif
