/* The queue with two ends; double_ended.h has its idea, and why two locks suffice. */
#include "runtime/policies/double_ended.h"

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>

/* number of jobs in the queue from which on an operation needs the lock of its own end only */
#define APART 3u

/* --- the list of one end, without locks ------------------------------------------------------- */

/* Returns the link that a job has between two neighbours. If one neighbour is missing (NULL), the
 * link is the other one. */
static domus_job *link_between_neighbours(const domus_job *one, const domus_job *other)
{
    return (domus_job *)((uintptr_t)one ^ (uintptr_t)other);
}

/* Replace the neighbour `old` in the link of a job by `new`. */
static void change_neighbour_of_job(domus_job *job, const domus_job *old, const domus_job *new)
{
    domus_job_link(job,
                   link_between_neighbours(link_between_neighbours(domus_job_next(job), old), new));
}

/* Put a job at one end of the queue. If the queue is empty, the job becomes that of the other end,
 * too. */
static void put_job_at_end(domi_double_end *end, domi_double_end *other, domus_job *job)
{
    domus_job *neighbour = end->job;

    domus_job_link(job, neighbour);
    if (neighbour != NULL)
        change_neighbour_of_job(neighbour, NULL, job);
    else
        other->job = job;
    end->job = job;
}

/* Take the job at one end of a queue that is not empty. */
static domus_job *take_job_from_end(domi_double_end *end, domi_double_end *other)
{
    domus_job *job = end->job;
    /* the link of a job at one end is its only neighbour */
    domus_job *neighbour = domus_job_next(job);

    if (neighbour != NULL)
        change_neighbour_of_job(neighbour, job, NULL);
    else
        other->job = NULL;
    end->job = neighbour;
    domus_job_link(job, NULL);
    return job;
}

/* --- locks ------------------------------------------------------------------------------------ */

static domi_double_end *get_other_end(domi_double_ended *queue, const domi_double_end *end)
{
    return end == &queue->head ? &queue->tail : &queue->head;
}

/* Lock the other end of the queue, too; the caller has locked the end `held`. The head's lock is
 * always taken before the tail's, or two threads could wait for each other; so a thread that has
 * the tail's lock releases it for a moment. */
static void lock_both_ends(domi_double_ended *queue, const domi_double_end *held)
{
    if (held == &queue->tail) {
        domi_spinlock_unlock(&queue->tail.lock);
        domi_spinlock_lock(&queue->head.lock);
    }
    domi_spinlock_lock(&queue->tail.lock);
}

static void unlock_both_ends(domi_double_ended *queue)
{
    domi_spinlock_unlock(&queue->tail.lock);
    domi_spinlock_unlock(&queue->head.lock);
}

/* Subtract 1 from the count of jobs if no operation at the other end can touch the same jobs.
 * Returns whether it did. The caller has locked one end. */
static bool try_to_reserve_job(domi_double_ended *queue)
{
    uint32_t count = atomic_load_explicit(&queue->count, memory_order_relaxed);

    /* acquire: this end sees what the other end has written to its two jobs while the two ends were
     * near each other. release is not needed, because no other thread touches the taken job any
     * more. */
    while (count >= APART)
        if (atomic_compare_exchange_weak_explicit(&queue->count, &count, count - 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* --- the two operations, at either end -------------------------------------------------------- */

static void add_job_at_end(domi_double_ended *queue, domi_double_end *end, domus_job *job)
{
    domi_double_end *other = get_other_end(queue, end);

    domi_spinlock_lock(&end->lock);
    /* acquire: as in the reservation of a take. The count cannot become less than two by the other
     * end while this lock is held. */
    bool alone = atomic_load_explicit(&queue->count, memory_order_acquire) >= APART;
    if (!alone)
        lock_both_ends(queue, end);
    put_job_at_end(end, other, job);
    /* seq_cst: after this the thread that puts the job looks whether the runner sleeps. It is a
     * release, too: it pairs with the acquires at the other end, for this job and all jobs that
     * were put before it. */
    atomic_fetch_add_explicit(&queue->count, 1, memory_order_seq_cst);
    if (alone)
        domi_spinlock_unlock(&end->lock);
    else
        unlock_both_ends(queue);
}

static domus_job *remove_job_from_end(domi_double_ended *queue, domi_double_end *end)
{
    domi_double_end *other = get_other_end(queue, end);
    domus_job *job = NULL;

    /* Relaxed: an old count does no harm, because a runner that finds no job looks again before it
     * sleeps. */
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0)
        return NULL;
    domi_spinlock_lock(&end->lock);
    if (try_to_reserve_job(queue)) {
        job = take_job_from_end(end, other);
        domi_spinlock_unlock(&end->lock);
        return job;
    }
    lock_both_ends(queue, end);
    if (end->job != NULL) {
        job = take_job_from_end(end, other);
        /* Relaxed: both locks are held, so no other thread changes the count. */
        atomic_fetch_sub_explicit(&queue->count, 1, memory_order_relaxed);
    }
    unlock_both_ends(queue);
    return job;
}

void domi_double_ended_init(domi_double_ended *queue)
{
    domi_spinlock_init(&queue->head.lock);
    domi_spinlock_init(&queue->tail.lock);
    queue->head.job = NULL;
    queue->tail.job = NULL;
    atomic_init(&queue->count, 0);
}

void domi_double_ended_prepend_job(domi_double_ended *queue, domus_job *job)
{
    add_job_at_end(queue, &queue->head, job);
}

void domi_double_ended_append_job(domi_double_ended *queue, domus_job *job)
{
    add_job_at_end(queue, &queue->tail, job);
}

domus_job *domi_double_ended_take_first_job(domi_double_ended *queue)
{
    return remove_job_from_end(queue, &queue->head);
}

domus_job *domi_double_ended_take_last_job(domi_double_ended *queue)
{
    return remove_job_from_end(queue, &queue->tail);
}
