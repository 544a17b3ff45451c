/* Strings of JSON in the texts of the observation port. */
#ifndef DOMI_PROTOCOLS_OBSERVE_JSON_H
#define DOMI_PROTOCOLS_OBSERVE_JSON_H

#include <domus/slice.h>

/* Append a text in quotes. Bytes that are not printable ASCII are escaped as in domus/text.h, so
 * that the result is valid JSON for any bytes. */
void domi_json_append_string(domus_appender *json, const char *text);

#endif
