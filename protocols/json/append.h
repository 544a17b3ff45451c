/* Functions that append values as JSON, without the commas and keys before them. A failure of the
 * appender is kept in the appender; these functions return all other errors. */
#ifndef DOMI_PROTOCOLS_JSON_APPEND_H
#define DOMI_PROTOCOLS_JSON_APPEND_H

#include <domus/slice.h>

/* Append a text with its quotes and escapes. A text that is not UTF-8 gives -EILSEQ, or, if
 * `replaces` is true, has U+FFFD for its wrong bytes. */
int domi_json_append_text(domus_appender *to, const char *text, size_t size, bool replaces);

/* Append the name of a field, which needs no escape, in quotes and with its colon. A comma comes
 * before it unless `is_first` is true. */
int domi_json_append_field_name(domus_appender *to, const char *name, size_t size, bool is_first);

int domi_json_append_unsigned(domus_appender *to, uint64_t value);
int domi_json_append_signed(domus_appender *to, int64_t value);

/* Append a double as a number of JSON. Returns -ERANGE if it is not finite. */
int domi_json_append_real(domus_appender *to, double value);

#endif
