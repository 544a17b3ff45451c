/* The queue of completions of a ring that is no io_uring.
 *
 * It is a ring of places whose number is a power of two, and grows when it is full, because an
 * operation that has been carried out needs a place for what came of it. Completions are put at
 * `tail`, and reaped from `head` up to `shown`, which the owner moves in each enter. The three
 * counters wrap. The thread of the ring only. */
#ifndef DOMI_IO_BACKEND_COMPLETION_QUEUE_H
#define DOMI_IO_BACKEND_COMPLETION_QUEUE_H

#include "io/backend/backend.h"

typedef struct domi_completion_queue {
    domi_completion *places;
    uint32_t capacity; /* places; a power of two */
    uint32_t head;     /* the next completion that a reap takes */
    uint32_t shown;    /* completions before this one may be reaped */
    uint32_t tail;     /* where the next completion is put */
} domi_completion_queue;

/* Make an empty queue of `capacity` places, a power of two. Returns whether there was memory. */
bool domi_completion_queue_init(domi_completion_queue *queue, uint32_t capacity);

void domi_completion_queue_fini(domi_completion_queue *queue);

/* Put a completion. Returns false if there is no memory for it. */
bool domi_completion_queue_put(domi_completion_queue *queue, domi_completion completion);

/* Take up to `max` completions that are shown. Returns how many it took. */
uint32_t domi_completion_queue_reap(domi_completion_queue *queue, domi_completion *completions,
                                    uint32_t max);

static inline uint32_t domi_completion_queue_count(const domi_completion_queue *queue)
{
    return queue->tail - queue->head;
}

/* The completion that was put when `tail` was `place`, and that was not reaped. */
static inline domi_completion *domi_completion_queue_at(const domi_completion_queue *queue,
                                                        uint32_t place)
{
    return &queue->places[place & (queue->capacity - 1)];
}

#endif
