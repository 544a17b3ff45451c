/* Small texts of the observation port: strings of JSON, queries, and times by the calendar. */
#ifndef DOMI_PROTOCOLS_OBSERVE_TEXTS_H
#define DOMI_PROTOCOLS_OBSERVE_TEXTS_H

#include <domus/slice.h>

#include <stdint.h>

/* ---- json.c -----------------------------------------------------------------------------------*/

/* Strings of JSON in the texts of the observation port. */

/* Append a text to JSON as a string in quotes. Bytes that are not printable ASCII are escaped as in
 * domus/text.h, so that the result is valid JSON for any bytes. */
void domi_json_append_string(domus_appender *json, const char *text);

/* ---- query.c ----------------------------------------------------------------------------------*/

/* Reads numbers and words from the queries of the observation port. */

/* Read the number of a query's parameter, from 0 to `most`: digits, behind which `unit` may stand
 * (NULL: no unit is allowed). Returns 0, also if the parameter is missing, and then `number` is
 * unchanged; -EINVAL. */
int domi_query_read_number(domus_slice query, const char *name, const char *unit, uint32_t most,
                           uint32_t *number);

/* Find the value of a query's parameter in a list of words that ends with NULL. Returns its index;
 * 0 if the parameter is missing; -EINVAL for an unknown word. */
int domi_query_find_word(domus_slice query, const char *name, const char *const words[]);

/* ---- times.c ----------------------------------------------------------------------------------*/

/* Calendar times in the texts of the observation port. */

#define DOMI_UTC_SIZE 40 /* bytes of a calendar time as text, with its zero byte */

/* Write nanoseconds since 1970 (UTC) as "2026-01-31T23:59:59.123Z" (ISO 8601). */
void domi_observe_write_utc(uint64_t utc_ns, char text[DOMI_UTC_SIZE]);

#endif
