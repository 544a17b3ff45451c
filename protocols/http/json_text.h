/* Bytes of strangers as the inside of a string of JSON, in printable ASCII. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_JSON_TEXT_H
#define DOMI_PROTOCOLS_HTTP_JSON_TEXT_H

#include <stddef.h>

/* Write bytes to `to`, which has `room` bytes, without quotes and without a NUL: what is no
 * printable ASCII as escapes, and what is no UTF-8 as U+FFFD. A text that does not fit is cut, but
 * never within an escape. Returns the bytes written. */
size_t domi_http_json_text(const char *bytes, size_t size, char *to, size_t room);

#endif
