/* Queues of houses, linked through `next`: plain ones, and the queue of ready houses, which has two
 * levels.
 *
 * A house is in at most one queue. Its level is decided when it is queued: high if it has no ask
 * under way, or many replies or events wait in it (domi_house_has_high_priority()), otherwise
 * normal. While houses of both levels wait, one of `normal_every` takes is from the normal level,
 * so that its houses do not starve. Owner thread only. */
#ifndef DOMI_HOUSE_MESSAGE_QUEUE_H
#define DOMI_HOUSE_MESSAGE_QUEUE_H

#include "base/fifo.h"
#include "house/message/house.h"

DOMI_FIFO(domi_fifo, domi_house, next);

typedef struct domi_queue {
    domi_fifo high;   /* ready houses of high priority */
    domi_fifo normal; /* all other ready houses */
    /* while both levels have houses, one of this many takes is a normal one; constant, and at least
     * 2, so that neither level starves */
    uint32_t normal_every;
    /* number of high houses taken in a row since the last normal one, while both levels had
     * houses */
    uint32_t high_takes;
    uint32_t count; /* number of houses in both levels of the queue */
} domi_queue;

static inline void domi_queue_put_house(domi_queue *queue, domi_house *house)
{
    queue->count++;
    domi_fifo_put(domi_house_has_high_priority(house) ? &queue->high : &queue->normal, house);
}

/* Returns the house that was queued last in the queue's normal level; if that is empty, in the high
 * level; NULL: there is none. */
static inline domi_house *domi_queue_newest_house(const domi_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    return queue->normal.head != NULL ? queue->normal.tail : queue->high.tail;
}

static inline domi_house *domi_queue_take_house(domi_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    queue->count--;
    if (queue->normal.head == NULL)
        return domi_fifo_take(&queue->high);
    if (queue->high.head == NULL)
        return domi_fifo_take(&queue->normal);
    if (++queue->high_takes < queue->normal_every)
        return domi_fifo_take(&queue->high);
    queue->high_takes = 0;
    return domi_fifo_take(&queue->normal);
}

#endif
