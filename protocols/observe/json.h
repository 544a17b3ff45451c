/* Strings of JSON in the texts of the observation port. */
#ifndef DOMI_PROTOCOLS_OBSERVE_JSON_H
#define DOMI_PROTOCOLS_OBSERVE_JSON_H

#include <domus/slice.h>

/* Append a text in quotes. Bytes that are no printable ASCII are written as domus/text.h does, so
 * that the text is JSON whatever bytes it has. */
void domi_json_append_string(domus_appender *json, const char *text);

#endif
