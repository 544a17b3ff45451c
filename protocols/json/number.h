/* Converts the texts of numbers. The parse has checked before that they are numbers of JSON. */
#ifndef DOMI_PROTOCOLS_JSON_NUMBER_H
#define DOMI_PROTOCOLS_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Read an integer: its sign and its digits. `ret_negative` is false for -0. Returns 0; -EINVAL when
 * the number has a point or an exponent; -ERANGE when its digits need more than 64 bits. */
int domi_json_read_integer(const char *text, size_t size, bool *ret_negative, uint64_t *ret_value);

/* Read the double that is nearest to a number's text. The byte behind the text is overwritten and
 * then restored. */
double domi_json_read_real(char *text, size_t size);

#endif
