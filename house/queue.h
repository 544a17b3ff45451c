/* Queues of houses, linked through `next`: plain ones, and the two-level one of the ready.
 *
 * A house is in at most one queue. High and normal are sampled when it is queued; every 4th take is
 * a normal one while both wait, so that middlemen (who have promises pending) do not starve. Owner
 * thread only. */
#ifndef DOMI_HOUSE_QUEUE_H
#define DOMI_HOUSE_QUEUE_H

#include "house/house.h"

typedef struct domi_fifo {
    domi_house *head;
    domi_house *tail;
} domi_fifo;

static inline void domi_fifo_put(domi_fifo *fifo, domi_house *house)
{
    house->next = NULL;
    if (fifo->head == NULL)
        fifo->head = house;
    else
        fifo->tail->next = house;
    fifo->tail = house;
}

static inline domi_house *domi_fifo_take(domi_fifo *fifo)
{
    domi_house *house = fifo->head;

    if (house != NULL)
        fifo->head = house->next;
    return house;
}

/* All of `first`, before what waits. */
static inline void domi_fifo_prepend(domi_fifo *fifo, const domi_fifo *first)
{
    if (first->head == NULL)
        return;
    first->tail->next = fifo->head;
    if (fifo->head == NULL)
        fifo->tail = first->tail;
    fifo->head = first->head;
}

#define DOMI_QUEUE_NORMAL_EVERY 4u /* a power of two */

typedef struct domi_queue {
    domi_fifo high;
    domi_fifo normal;
    uint32_t takes;
    uint32_t count; /* `readies` */
} domi_queue;

static inline void domi_queue_put(domi_queue *queue, domi_house *house)
{
    if (domi_house_high(house)) {
        house->marks |= DOMI_MARK_HIGH;
        domi_fifo_put(&queue->high, house);
    } else {
        house->marks &= (uint16_t)~DOMI_MARK_HIGH;
        domi_fifo_put(&queue->normal, house);
    }
    queue->count++;
}

static inline domi_house *domi_queue_take(domi_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    queue->count--;
    if (queue->normal.head == NULL)
        return domi_fifo_take(&queue->high);
    if (queue->high.head == NULL)
        return domi_fifo_take(&queue->normal);
    return domi_fifo_take(++queue->takes % DOMI_QUEUE_NORMAL_EVERY == 0 ? &queue->normal
                                                                        : &queue->high);
}

#endif
