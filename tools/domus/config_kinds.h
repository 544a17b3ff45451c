/* JSON Schema for the values of a key: the values that the configuration's reader accepts
 * (config/scalar.c), after a reader of YAML has turned texts that look like numbers or booleans
 * into such. */
#ifndef DOMUS_TOOL_CONFIG_KINDS_H
#define DOMUS_TOOL_CONFIG_KINDS_H

#include <jansson.h>

/* Returns a schema for the values of a key, whose second row is `second` or NULL. Returns NULL
 * without memory. Ownership: the caller's. */
json_t *config_kinds_schema(const json_t *key, const json_t *second);

/* Returns the default of a key as a JSON value; NULL if it has none. Ownership: the caller's. */
json_t *config_kinds_default(const json_t *key);

#endif
