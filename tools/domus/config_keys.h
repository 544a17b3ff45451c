/* The keys that a program knows: the facts of `--tell keys` (config/tell.h describes them). */
#ifndef DOMUS_TOOL_CONFIG_KEYS_H
#define DOMUS_TOOL_CONFIG_KEYS_H

#include <jansson.h>

#include <stdbool.h>

/* Ask a program for its keys; NULL: domus-keys. Returns the keys; NULL, after the error was
 * printed. Ownership: the caller's. */
json_t *config_keys_load(const char *exec);

/* Find a key by its name in a row of values, "listeners.NAME.KEY" for a listener's key. Returns
 * NULL if there is none. */
const json_t *config_keys_of_row(const json_t *keys, const char *path);

/* Find a key by a name in one of the forms that users write: also "listeners.KEY",
 * "listeners[].KEY" and "listeners[3].KEY". */
const json_t *config_keys_find(const json_t *keys, const char *path);

/* Returns the second row of a key that can be written in two ways; NULL if it has only one. */
const json_t *config_keys_second(const json_t *keys, const json_t *key);

/* Returns a text of a key by its name; "" if the key has none. */
const char *config_key_text(const json_t *key, const char *name);

bool config_key_has(const json_t *key, const char *name);

#endif
