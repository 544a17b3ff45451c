/* Whole numbers as they stand in forms, queries and paths. */
#ifndef DOMI_PROTOCOLS_HTTP_NUMBER_H
#define DOMI_PROTOCOLS_HTTP_NUMBER_H

#include <stdint.h>

#define DOMI_HTTP_NUMBER_ROOM 21u /* bytes of a number with its sign, and a zero */

/* Read a text that is digits alone, with perhaps a '-' before them, and without zeros before it.
 * Returns 0; -EINVAL when it is no number; -ERANGE when it is below `least` or above `most`. */
int domi_http_read_number(const char *text, int64_t least, int64_t most, int64_t *ret_number);

#endif
