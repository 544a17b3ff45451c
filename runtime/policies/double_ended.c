/* The queue with two ends; the header has its idea, and why two locks suffice. */
#include "runtime/policies/double_ended.h"

#include "base/check.h"

#include <stddef.h>
#include <stdint.h>

#define APART 3u /* with so many jobs, an operation needs the lock of its own end only */

/* --- the list of one end, without locks ------------------------------------------------------- */

/* A link with both neighbours; without one of them, it is the other. */
static domus_job *link_neighbours(const domus_job *one, const domus_job *other)
{
    return (domus_job *)((uintptr_t)one ^ (uintptr_t)other);
}

/* Replace the neighbour `old` of a job by `new`. */
static void change_neighbour(domus_job *job, const domus_job *old, const domus_job *new)
{
    domus_job_link(job, link_neighbours(link_neighbours(domus_job_next(job), old), new));
}

/* Put a job at one end. If the list is empty, it becomes the job of the other end, too. */
static void put_at_end(domi_double_end *end, domi_double_end *other, domus_job *job)
{
    domus_job *neighbour = end->job;

    domus_job_link(job, neighbour);
    if (neighbour != NULL)
        change_neighbour(neighbour, NULL, job);
    else
        other->job = job;
    end->job = job;
}

/* Take the job of one end of a list that has some. */
static domus_job *take_from_end(domi_double_end *end, domi_double_end *other)
{
    domus_job *job = end->job;
    domus_job *neighbour = domus_job_next(job); /* a job at an end has only one neighbour */

    if (neighbour != NULL)
        change_neighbour(neighbour, job, NULL);
    else
        other->job = NULL;
    end->job = neighbour;
    domus_job_link(job, NULL);
    return job;
}

/* --- locks ------------------------------------------------------------------------------------ */

static domi_double_end *other_end(domi_double_ended *queue, const domi_double_end *end)
{
    return end == &queue->head ? &queue->tail : &queue->head;
}

/* The caller holds the lock of one end, and gets both. The head's is taken before the tail's
 * always, or two threads could wait for each other; so whoever holds the tail's gives it up for a
 * moment. */
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

/* Subtract 1 from the count if that leaves the two ends apart. The lock of one end is held. */
static bool try_reserve(domi_double_ended *queue)
{
    uint32_t count = atomic_load_explicit(&queue->count, memory_order_relaxed);

    /* acquire: this end sees the writes to its two jobs from the time when the other end was near.
     * release is not needed: no other thread touches the job any more. */
    while (count >= APART)
        if (atomic_compare_exchange_weak_explicit(&queue->count, &count, count - 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* --- the two operations, at either end -------------------------------------------------------- */

static void add_job_at_end(domi_double_ended *queue, domi_double_end *end, domus_job *job)
{
    domi_double_end *other = other_end(queue, end);

    domi_spinlock_lock(&end->lock);
    /* acquire: as in try_reserve(). The other end cannot bring the count below two while this
     * lock is held. */
    bool alone = atomic_load_explicit(&queue->count, memory_order_acquire) >= APART;
    if (!alone)
        lock_both_ends(queue, end);
    put_at_end(end, other, job);
    /* release: pairs with the acquires of the other end, for this job and all before it. */
    /* seq_cst: whoever has put looks then whether the runner sleeps. */
    atomic_fetch_add_explicit(&queue->count, 1, memory_order_seq_cst);
    if (alone)
        domi_spinlock_unlock(&end->lock);
    else
        unlock_both_ends(queue);
}

static domus_job *remove_job_from_end(domi_double_ended *queue, domi_double_end *end)
{
    domi_double_end *other = other_end(queue, end);
    domus_job *job = NULL;

    /* Relaxed: an older count is as good, because who finds none comes again. */
    if (atomic_load_explicit(&queue->count, memory_order_relaxed) == 0)
        return NULL;
    domi_spinlock_lock(&end->lock);
    if (try_reserve(queue)) {
        job = take_from_end(end, other);
        domi_spinlock_unlock(&end->lock);
        return job;
    }
    lock_both_ends(queue, end);
    if (end->job != NULL) {
        job = take_from_end(end, other);
        /* Relaxed: both locks are held. */
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

void domi_double_ended_prepend(domi_double_ended *queue, domus_job *job)
{
    add_job_at_end(queue, &queue->head, job);
}

void domi_double_ended_append(domi_double_ended *queue, domus_job *job)
{
    add_job_at_end(queue, &queue->tail, job);
}

domus_job *domi_double_ended_take_head(domi_double_ended *queue)
{
    return remove_job_from_end(queue, &queue->head);
}

domus_job *domi_double_ended_take_tail(domi_double_ended *queue)
{
    return remove_job_from_end(queue, &queue->tail);
}
