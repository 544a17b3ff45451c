/* A line for people that says what a system does: how many messages a second, how many connections,
 * and how much memory.
 *
 * Thread-safety: one thread at a time, none of the system's. */
#ifndef DOMI_CONFIG_RATES_H
#define DOMI_CONFIG_RATES_H

#include <domus/domus.h>

/* The counts when the last line of rates was written, from which the next rates are reckoned. */
typedef struct domi_rates {
    uint64_t messages; /* number of messages and pieces of bytes that the system had handled then */
    uint64_t at_ns;    /* time at which these were counted */
} domi_rates;

void domi_rates_begin_counting(domi_rates *ret_rates, domus_system *system);

/* Write a line of the system's rates, such as "1200 messages/s, 31 connections, memory normal (80
 * of 512 MiB)", and begin anew. A line that does not fit is cut. */
void domi_rates_write_line(domi_rates *rates, domus_system *system, char *line, size_t size);

#endif
