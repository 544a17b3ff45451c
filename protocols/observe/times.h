/* Calendar times in the texts of the observation port. */
#ifndef DOMI_PROTOCOLS_OBSERVE_TIMES_H
#define DOMI_PROTOCOLS_OBSERVE_TIMES_H

#include <stdint.h>

#define DOMI_UTC_SIZE 40 /* bytes of such a time, with its zero */

/* Write nanoseconds since 1970 (UTC) as "2026-01-31T23:59:59.123Z" (ISO 8601). */
void domi_observe_write_utc(uint64_t utc_ns, char text[DOMI_UTC_SIZE]);

#endif
