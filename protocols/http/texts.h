/* Texts in the forms that HTTP uses: numbers, names of parameters, normal paths, and bytes of
 * strangers within JSON. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_TEXTS_H
#define DOMI_PROTOCOLS_HTTP_TEXTS_H

#include <domus/slice.h>

#include <stddef.h>
#include <stdint.h>

/* ---- number.c ---------------------------------------------------------------------------------*/

/* Whole numbers as text, as forms, queries and paths have them. */

/* bytes of a whole number as text with its sign and a zero at its end, at most */
#define DOMI_HTTP_NUMBER_ROOM 21u

/* Read a whole number: digits, perhaps with a '-' before them, without leading zeros. Returns 0;
 * -EINVAL when the text is no number; -ERANGE when it is below `least` or above `most`. */
int domi_http_read_whole_number(const char *text, int64_t least, int64_t most, int64_t *ret_number);

/* ---- query.c ----------------------------------------------------------------------------------*/

/* Compares names of parameters in queries and forms. Any thread. */

/* Returns whether `encoded`, a name in a query or form that may have escapes, is the given name. */
bool domi_http_does_encoded_name_equal(domus_slice encoded, const char *name);

/* ---- json_text.c ------------------------------------------------------------------------------*/

/* Escapes bytes of strangers, so that they become printable ASCII in a string of JSON. Any
 * thread. */

/* Write bytes as the text of a JSON string to `to`, which has `room` bytes, without quotes and
 * without a zero: bytes that are not printable ASCII become escapes, and bytes that are no UTF-8
 * become U+FFFD. A text that does not fit is cut, but never within an escape. Returns the bytes
 * written. */
size_t domi_http_escape_text_for_json(const char *bytes, size_t size, char *to, size_t room);

/* ---- normal.c ---------------------------------------------------------------------------------*/

/* The normal form of paths (RFC 3986 6.2.2). Escapes of letters, digits and "-._~" mean the same as
 * these bytes, and the digits of an escape may be small or capital, so one path can be written in
 * many ways. Code that compares paths needs only one of them: bytes that need no escape have none,
 * and the digits of all other escapes are capitals. Segments "." and ".." stay, with no dot
 * escaped, and so does a '%' without two digits behind it. */

/* Change the path in a target, which may be a whole URL, to the normal form in place. The query
 * stays as it is. Returns the bytes of the new target. Decoding gives the same bytes as before, and
 * a second call changes nothing. */
size_t domi_http_normalize_path_of_target(char *target, size_t size);

#endif
