/* The keys that a program knows: the facts of `--tell keys` (config/tell.h says what they hold). */
#ifndef DOMUS_TOOL_CONFIG_KEYS_H
#define DOMUS_TOOL_CONFIG_KEYS_H

#include <jansson.h>

#include <stdbool.h>

/* Ask a program for its keys; NULL: domus-keys. Returns them; NULL, and why not has been said.
 * Ownership: the caller's. */
json_t *config_keys_load(const char *exec);

/* Find a key as a row of values names it, "listeners.NAME.KEY" for one of a listener. Returns it;
 * NULL. */
const json_t *config_keys_of_row(const json_t *keys, const char *path);

/* Find a key as users may name it: also "listeners.KEY", "listeners[].KEY" and "listeners[3].KEY".
 */
const json_t *config_keys_find(const json_t *keys, const char *path);

/* Returns the second row of a key that can be written in two ways; NULL: it has one. */
const json_t *config_keys_second(const json_t *keys, const json_t *key);

/* Returns a text of a key; "" if it has none of that name. */
const char *config_key_text(const json_t *key, const char *name);

bool config_key_has(const json_t *key, const char *name);

#endif
