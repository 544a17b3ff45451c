/* Functions that append the texts of values, without commas and keys. A failure of the appender
 * stays in the appender; these functions return all others. */
#ifndef DOMI_PROTOCOLS_JSON_APPEND_H
#define DOMI_PROTOCOLS_JSON_APPEND_H

#include <domus/slice.h>

/* Append a text with its quotes and escapes. Returns -EILSEQ for a text that is not UTF-8, unless
 * `replaces` is true. */
int domi_json_append_text(domus_appender *to, const char *text, size_t size, bool replaces);

/* Append the name of a field, which needs no escape, with its colon, and with a comma before it if
 * `comma` is true. */
int domi_json_append_name(domus_appender *to, const char *name, size_t size, bool is_first);

int domi_json_append_uint(domus_appender *to, uint64_t value);
int domi_json_append_int(domus_appender *to, int64_t value);

/* Append a double. Returns -ERANGE if it is not finite. */
int domi_json_append_real(domus_appender *to, double value);

#endif
