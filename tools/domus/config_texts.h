/* Texts about keys: the comments of config/domus.yaml, which is built into this program. */
#ifndef DOMUS_TOOL_CONFIG_TEXTS_H
#define DOMUS_TOOL_CONFIG_TEXTS_H

#include <jansson.h>

/* The bytes of config/domus.yaml, with a zero behind them (tools/domus/embed.cmake). */
extern const unsigned char config_yaml[];

/* Read the comments of a file in the form of config/domus.yaml: an object with a text for each key
 * and section that has one, by its path; "listeners.address" is the path of a listener's key. Lines
 * of a comment are joined by spaces. Returns NULL without memory. Ownership: the caller's. */
json_t *config_texts_read(const char *yaml);

/* Returns the text of a key, by the list and name in its row (config_keys.h); "" if there is none.
 * A key of a listener's own `channel` has the text of the key in the section `channel`. */
const char *config_texts_of(const json_t *texts, const char *list, const char *key);

#endif
