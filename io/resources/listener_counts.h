/* Counts of the connections of each listener, kept by each thread. */
#ifndef DOMI_IO_RESOURCES_LISTENER_COUNTS_H
#define DOMI_IO_RESOURCES_LISTENER_COUNTS_H

#include "base/counter.h"

#include <domus/listener_config.h>

/* The rows: a listener of the configuration has its index there; all that actors have made for
 * themselves have one together, because there may be any number of them. Connections of no listener
 * have none. */
#define DOMI_LISTENER_ROWS   (DOMUS_LISTENERS_MAX + 1u)
#define DOMI_LISTENER_OWN    DOMUS_LISTENERS_MAX
#define DOMI_LISTENER_NO_ROW UINT32_MAX

/* Written by the thread, read by any. */
typedef struct domi_listener_counts {
    domi_counter accepted; /* and handed over to a thread */
    domi_counter refused;  /* reset because of their address */
    domi_counter opened;   /* channels, on this thread */
    domi_counter closed;   /* channels that are not there any more */
    domi_counter reset;    /* those of them that an error has closed */
} domi_listener_counts;

#endif
