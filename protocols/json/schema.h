/* The schema of one field, for those who put it elsewhere than into that of its table. */
#ifndef DOMI_PROTOCOLS_JSON_SCHEMA_H
#define DOMI_PROTOCOLS_JSON_SCHEMA_H

#include <domus/json_writer.h>

/* Put the schema of a value of a field, which may be null if the field may be. */
int domi_json_put_field_schema(domus_json_writer *writer, const domus_json_field *field);

#endif
