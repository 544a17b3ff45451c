/* The queue of completions of a ring that is no io_uring. The queue doubles when it is full;
 * completions keep their numbers, and so their order. */
#include "io/backend/completion_queue.h"

#include "base/memory.h"

bool domi_completion_queue_init(domi_completion_queue *queue, uint32_t capacity)
{
    *queue = (domi_completion_queue){
        .places = domi_memory_new(capacity * sizeof *queue->places),
        .capacity = capacity,
    };
    return queue->places != NULL;
}

void domi_completion_queue_fini(domi_completion_queue *queue)
{
    domi_memory_free(queue->places);
}

static bool grow_completion_queue(domi_completion_queue *queue)
{
    uint32_t capacity = queue->capacity * 2;
    domi_completion *places = domi_memory_new(capacity * sizeof *places);

    if (places == NULL)
        return false;
    for (uint32_t i = queue->head; i != queue->tail; i++)
        places[i & (capacity - 1)] = *domi_completion_queue_get_at(queue, i);
    domi_memory_free(queue->places);
    queue->places = places;
    queue->capacity = capacity;
    return true;
}

bool domi_completion_queue_put(domi_completion_queue *queue, domi_completion completion)
{
    if (domi_completion_queue_count(queue) == queue->capacity && !grow_completion_queue(queue))
        return false;
    *domi_completion_queue_get_at(queue, queue->tail++) = completion;
    return true;
}

uint32_t domi_completion_queue_reap(domi_completion_queue *queue, domi_completion *completions,
                                    uint32_t max)
{
    uint32_t count = 0;

    for (; count < max && queue->head != queue->shown; count++)
        completions[count] = *domi_completion_queue_get_at(queue, queue->head++);
    return count;
}
