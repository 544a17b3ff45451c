/* Jobs: commands that look through a large value, or change it, are done in pieces, between which
 * the thread serves others.
 *
 * As with a walk (walk.h), the shard runs nothing else meanwhile, so nobody sees a part of the
 * work, and what a job points to stays where it is. A job that is done with its first piece costs
 * nothing more. In a transaction, which is one turn, a job has some pieces at most.
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
    /* The job is over, with 0 or a negative errno: answer, and free what it has. Returns
     * as a command. */
    int (*finish)(struct kv_call *call, struct kv_job *job, int error);
    struct kv_item **link; /* the pointer to the value in its table */
    uint64_t at, end;      /* the index that is next, and the one at which the job ends */
    uint64_t written;      /* bytes of a string */
    uint64_t cost;         /* the cost of this piece so far */
    struct kv_place place; /* the place in a list that is next */
    /* index of the command's argument that the job copies; 0: it writes `byte` */
    uint32_t argument;
    char byte;              /* the byte with which a string is filled */
    int64_t skip, left;     /* elements still to be skipped, and still wanted */
    int64_t found, first;   /* how many elements were found, and the index of the first one */
    bool from_tail, is_set; /* the second one is the command's */
    domus_resp_builder builder;
    domus_appender bytes;
    char *room; /* the place in `bytes` at which the job writes next */
    void *copy; /* the copy of a list or a table */
    /* the command, whose key is its first argument; set when the job has not ended at once */
    domus_resp_command command;
    domus_slice key;
    uint64_t hash;
};

/* Do a job, which is copied, and answer the call. */
int kv_job_run(struct kv_call *call, const struct kv_job *job);

/* Counts what an element costs, and returns whether the piece is long enough. */
static inline bool kv_job_is_full(struct kv_job *job, uint64_t cost)
{
    job->cost += 64 + cost;
    return job->cost >= KV_JOB_COST;
}

#define KV_TOO_LARGE "ERR the value is too large for a transaction"

#endif
