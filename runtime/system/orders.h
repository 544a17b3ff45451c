/* The word of orders that a system has for its threads.
 *
 * The upper byte is the step of a stop that is wanted (stop_step.h). The other three bytes count
 * changes of the configuration (live.h), and begin again with 1 after 2^24 - 1. The system writes
 * its word, and each thread has a word with the orders that it has followed: while the two are
 * equal, there is nothing to do, so that a loop compares one word. A later step makes a greater
 * word, whatever the number of changes. */
#ifndef DOMI_RUNTIME_SYSTEM_ORDERS_H
#define DOMI_RUNTIME_SYSTEM_ORDERS_H

#include "runtime/system/stop_step.h"

#include <stdbool.h>
#include <stdint.h>

#define DOMI_ORDERS_CHANGES UINT32_C(0x00ffffff)

/* Returns the least word of orders that has the step `step` of a stop in it. */
static inline uint32_t domi_orders_of_stop(domi_stop_step step)
{
    return (uint32_t)step << 24;
}

static inline domi_stop_step domi_orders_get_stop_step(uint32_t orders)
{
    return (domi_stop_step)(orders >> 24);
}

/* Returns the word of orders with its step of a stop replaced. */
static inline uint32_t domi_orders_with_stop_step(uint32_t orders, domi_stop_step step)
{
    return domi_orders_of_stop(step) | (orders & DOMI_ORDERS_CHANGES);
}

/* Returns the word of orders with one more change of the configuration counted. No change has the
 * number 0, because a thread that begins has followed 0. */
static inline uint32_t domi_orders_with_one_more_change(uint32_t orders)
{
    uint32_t changes = (orders + 1) & DOMI_ORDERS_CHANGES;

    return (orders & ~DOMI_ORDERS_CHANGES) | (changes != 0 ? changes : 1);
}

/* Returns whether two words of orders differ in how many changes of the configuration they
 * count. */
static inline bool domi_orders_differ_in_config_change(uint32_t followed, uint32_t wanted)
{
    return ((followed ^ wanted) & DOMI_ORDERS_CHANGES) != 0;
}

#endif
