/* Counters of the connections of each listener, kept by each thread. */
#ifndef DOMI_IO_RESOURCES_LISTENER_COUNTS_H
#define DOMI_IO_RESOURCES_LISTENER_COUNTS_H

#include "base/counter.h"

#include <domus/listener_config.h>

/* Number of rows of counters: a listener of the configuration has the row of its index; all
 * listeners that actors have made for themselves share one row, because there may be any number of
 * them. Connections of no listener have no row. */
#define DOMI_LISTENER_ROWS   (DOMUS_LISTENERS_MAX + 1u)
#define DOMI_LISTENER_OWN    DOMUS_LISTENERS_MAX
#define DOMI_LISTENER_NO_ROW UINT32_MAX

/* The counters of one listener on one thread, which writes them; any thread reads. */
typedef struct domi_listener_counts {
    /* connections of the listener that were accepted and handed over to a thread */
    domi_counter accepted;
    domi_counter refused; /* connections of the listener that were reset because of their address */
    domi_counter opened;  /* channels of the listener that were made on this thread */
    domi_counter closed;  /* channels of the listener that were freed on this thread */
    /* channels of the listener that were closed by an error, among those freed */
    domi_counter reset;
} domi_listener_counts;

#endif
