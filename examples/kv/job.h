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

#define KV_JOB_COST 1048576u /* cost of a piece: 1 for each copied byte, 64 for each element */

struct kv_job {
    /* Do a piece. Returns 1 if there is more; 0; or a negative errno. */
    int (*piece)(struct kv_call *call, struct kv_job *job);
    /* Finish the job, with 0 or a negative errno: answer, and free its memory. Returns as a
     * command. */
    int (*finish)(struct kv_call *call, struct kv_job *job, int error);
    struct kv_item **link; /* the pointer to the value in its table */
    uint64_t at, end;      /* index of the next element, and index at which the job ends */
    uint64_t written;      /* bytes that were written to a string */
    uint64_t cost;         /* the cost of this piece so far */
    struct kv_place place; /* place of the next element in a list */
    /* index of the command's argument that the job copies; 0: it writes `byte` */
    uint32_t argument;
    char byte;            /* the byte with which a string is filled */
    int64_t skip, left;   /* number of elements still to be skipped, and still wanted */
    int64_t found, first; /* number of elements that were found, and index of the first one */
    bool from_tail;       /* the list is read from its tail */
    /* HRANDFIELD: the values are wanted too; LINSERT: the element goes after the pivot */
    bool is_set;
    domus_resp_builder builder;
    domus_appender bytes;
    char *room; /* place in `bytes` where the job writes next */
    void *copy; /* the copy of a list or a table */
    /* the command, whose key is its first argument; set when the job has not ended at once */
    domus_resp_command command;
    domus_slice key;
    uint64_t hash;
};

/* Run a copy of a job, and answer the call. */
int kv_job_run(struct kv_call *call, const struct kv_job *job);

/* Add the cost of an element. Returns whether the piece is long enough. */
static inline bool kv_job_is_full(struct kv_job *job, uint64_t cost)
{
    job->cost += 64 + cost;
    return job->cost >= KV_JOB_COST;
}

#define KV_TOO_LARGE "ERR the value is too large for a transaction"

#endif
