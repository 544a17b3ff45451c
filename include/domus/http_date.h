/* Dates of HTTP: "Sun, 06 Nov 1994 08:49:37 GMT".
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_DATE_H
#define DOMUS_HTTP_DATE_H

#include <domus/export.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_DATE_SIZE 29u /* bytes of a date of HTTP without the zero at its end */

/* Write a date, and a zero behind it. `seconds` count from 1970, 0..253402300799 (the year 9999);
 * others become the nearest of these. */
DOMUS_API void domus_http_date(int64_t seconds, char to[DOMUS_HTTP_DATE_SIZE + 1]);

/* Read a date, in the form above or in one of the two older ones ("Sunday, 06-Nov-94 08:49:37
 * GMT", "Sun Nov 6 08:49:37 1994"). Two digits of a year mean 1970..2069. Returns false for
 * anything else. */
DOMUS_API bool domus_http_read_date(const char *text, size_t size, int64_t *ret_seconds);

#ifdef __cplusplus
}
#endif

#endif
