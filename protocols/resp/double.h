/* Doubles as text of RESP, which has a point in them, whatever locale the program has. */
#ifndef DOMI_RESP_DOUBLE_H
#define DOMI_RESP_DOUBLE_H

#include <stddef.h>

/* Bytes that the text of a double takes, at most, with its zero byte. */
#define DOMI_RESP_DOUBLE_MAX 32u

/* Read a double from a text that domi_resp_scan_head_of_value() has checked; it has at most 63
 * bytes. */
double domi_resp_read_double(const char *text, size_t size);

/* Write the shortest text with 15 to 17 digits from which the same double is read. Returns its
 * bytes. */
size_t domi_resp_write_double(char text[DOMI_RESP_DOUBLE_MAX], double value);

#endif
