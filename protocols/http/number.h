/* Whole numbers as text in forms, queries and paths. */
#ifndef DOMI_PROTOCOLS_HTTP_NUMBER_H
#define DOMI_PROTOCOLS_HTTP_NUMBER_H

#include <stdint.h>

/* bytes of a number with its sign and a zero at its end, at most */
#define DOMI_HTTP_NUMBER_ROOM 21u

/* Read a number: digits, perhaps with a '-' before them, without leading zeros. Returns 0; -EINVAL
 * when the text is no number; -ERANGE when it is below `least` or above `most`. */
int domi_http_read_number(const char *text, int64_t least, int64_t most, int64_t *ret_number);

#endif
