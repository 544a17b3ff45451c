/* The JSON Schema of one field, for callers that write it outside of its table's schema. */
#ifndef DOMI_PROTOCOLS_JSON_SCHEMA_H
#define DOMI_PROTOCOLS_JSON_SCHEMA_H

#include <domus/json_writer.h>

/* Write the JSON Schema of a field's value; it allows null if the field may be null. */
int domi_json_put_field_schema(domus_json_writer *writer, const domus_json_field *field);

#endif
