/* JSON Schema for the values of a key: what the reader of the configuration takes
 * (config/scalar.c), seen after a reader of YAML has made numbers and booleans of texts that look
 * like ones. */
#ifndef DOMUS_TOOL_CONFIG_KINDS_H
#define DOMUS_TOOL_CONFIG_KINDS_H

#include <jansson.h>

/* Returns a schema for the values of a key; `second` is its other row, or NULL. NULL without
 * memory. Ownership: the caller's. */
json_t *config_kinds_schema(const json_t *key, const json_t *second);

/* Returns the default of a key as a value of JSON; NULL: it has none. Ownership: the caller's. */
json_t *config_kinds_default(const json_t *key);

#endif
