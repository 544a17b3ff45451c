/* Escapes bytes of strangers to printable ASCII for a string of JSON. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_JSON_TEXT_H
#define DOMI_PROTOCOLS_HTTP_JSON_TEXT_H

#include <stddef.h>

/* Write bytes to `to`, which has `room` bytes, without quotes and without a zero: bytes that are
 * not printable ASCII become escapes, and bytes that are no UTF-8 become U+FFFD. A text that does
 * not fit is cut, but never within an escape. Returns the bytes written. */
size_t domi_http_json_text(const char *bytes, size_t size, char *to, size_t room);

#endif
