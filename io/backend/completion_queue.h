/* The queue of completions of a ring that is no io_uring.
 *
 * It is a ring of places whose number is a power of two, and grows when it is full, because an
 * operation that has been carried out needs a place for its completion. Completions are put at
 * `tail`, and reaped from `head` up to `shown`, which the owner moves in each enter. The three
 * counters wrap. Only the thread of the ring uses it. */
#ifndef DOMI_IO_BACKEND_COMPLETION_QUEUE_H
#define DOMI_IO_BACKEND_COMPLETION_QUEUE_H

#include "io/backend/backend.h"

typedef struct domi_completion_queue {
    domi_completion *places;
    uint32_t capacity; /* number of places of a queue of completions; a power of two */
    uint32_t head;     /* number of the completion that the next reap takes first */
    uint32_t shown;    /* number of the first completion in the queue that may not be reaped yet */
    uint32_t tail;     /* number that the next completion gets in the queue */
} domi_completion_queue;

/* Make an empty queue of completions with `capacity` places, a power of two. Returns false if there
 * is no memory. */
bool domi_completion_queue_init(domi_completion_queue *queue, uint32_t capacity);

void domi_completion_queue_fini(domi_completion_queue *queue);

/* Append a completion to the queue. Returns false if there is no memory for it. */
bool domi_completion_queue_put(domi_completion_queue *queue, domi_completion completion);

/* Take up to `max` completions that are shown out of the queue. Returns their number. */
uint32_t domi_completion_queue_reap(domi_completion_queue *queue, domi_completion *completions,
                                    uint32_t max);

static inline uint32_t domi_completion_queue_count(const domi_completion_queue *queue)
{
    return queue->tail - queue->head;
}

/* Returns the completion that was put when the queue's `tail` was `place`; it must not be reaped
 * yet. */
static inline domi_completion *domi_completion_queue_get_at(const domi_completion_queue *queue,
                                                            uint32_t place)
{
    return &queue->places[place & (queue->capacity - 1)];
}

#endif
