/* A queue of jobs with two ends and a spinlock for each, as the double_ended_queue of CAF: what is
 * done at the head does not disturb what is done at the tail.
 *
 * A job has one link (domus_job_link()), and a list with one link per entry can be walked in one
 * direction only: CAF walks its whole list for the entry before the last one. Here the link of a
 * job holds the bits of both neighbours, one exclusive-or the other, and 0 stands for none. Whoever
 * comes from one neighbour finds the other, and one always comes from an end. So each of the four
 * operations takes the same time however long the queue is.
 *
 * Whoever takes a job touches two: the one at its end, and the next one. Whoever adds a job touches
 * the new one and the one at its end. As long as these are not those of the other end, an operation
 * holds the lock of its own end only. Otherwise it holds both locks; the head's is taken first.
 * `count` tells which: an operation that finds three jobs or more needs one lock.
 *
 * - Whoever takes a job subtracts 1 before it touches the list, by a compare-exchange; whoever adds
 *   a job adds 1 after it has. So while an operation is under way at one end, the list as the other
 *   end finds it has as many jobs as `count`, and one more if that operation takes. With both
 *   locks, `count` is exact.
 * - Two that take at both ends touch four jobs. The second of them finds three in `count` and so
 *   four in the list. One that takes and one that adds touch three old jobs, and there are three.
 *   If there are fewer, the one that comes later waits for the other's lock.
 * - Each sees what the other wrote, though they share no lock. Say that an operation at the head
 *   has written a job, and that a later one at the tail, which has found three, comes to it as one
 *   of the last two. Then one counted job at least lies between that job and the head. It was added
 *   by the first operation, or at the head after that, because whoever takes at the head leaves the
 *   job that it has written as the first. So the increment of that addition, which releases, comes
 *   before the tail's read of `count`, which acquires. The same holds of the ends exchanged.
 *
 * Thread-safety: any thread, except where a function says otherwise. */
#ifndef DOMI_RUNTIME_POLICIES_DOUBLE_ENDED_H
#define DOMI_RUNTIME_POLICIES_DOUBLE_ENDED_H

#include "house/message/parts.h"

#include <domus/policy.h>

typedef struct domi_double_end {
    alignas(DOMI_LINES) domi_spinlock lock;
    domus_job *job; /* job at this end of the queue; NULL: the queue is empty */
} domi_double_end;

typedef struct domi_double_ended {
    domi_double_end head;
    domi_double_end tail;
    alignas(DOMI_LINES) _Atomic uint32_t count; /* number of jobs in the queue */
} domi_double_ended;

/* Make an empty queue with two ends. Called before other threads know it. */
void domi_double_ended_init(domi_double_ended *queue);

/* Put a job before the first job of the queue. */
void domi_double_ended_prepend_job(domi_double_ended *queue, domus_job *job);

/* Put a job behind the last job of the queue. */
void domi_double_ended_append_job(domi_double_ended *queue, domus_job *job);

/* Take the first job of the queue, or the last one. Returns NULL if there is none. */
domus_job *domi_double_ended_take_first_job(domi_double_ended *queue);
domus_job *domi_double_ended_take_last_job(domi_double_ended *queue);

/* True if the queue has a job. Seq_cst, as each change of the number of jobs: a runner looks here
 * after it has said that it sleeps, and a thread that puts a job looks after that whether the
 * runner sleeps. So one of the two sees the other. */
static inline bool domi_double_ended_has_jobs(const domi_double_ended *queue)
{
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&queue->count,
                                memory_order_seq_cst) != 0;
}

#endif
