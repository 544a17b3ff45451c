/* The texts of values, appended without commas and keys. A failure is that of the appender, which
 * keeps it, or one that these functions return. */
#ifndef DOMI_PROTOCOLS_JSON_APPEND_H
#define DOMI_PROTOCOLS_JSON_APPEND_H

#include <domus/slice.h>

/* A text with its quotes and escapes. Returns -EILSEQ when it is no UTF-8, unless `replaces`. */
int domi_json_append_text(domus_appender *to, const char *text, size_t size, bool replaces);

/* The name of a field, which needs no escape, with its colon, and with a comma before it. */
int domi_json_append_name(domus_appender *to, const char *name, size_t size, bool is_first);

int domi_json_append_uint(domus_appender *to, uint64_t value);
int domi_json_append_int(domus_appender *to, int64_t value);

/* Returns -ERANGE for a double that is not finite. */
int domi_json_append_real(domus_appender *to, double value);

#endif
