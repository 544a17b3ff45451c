/* Patterns of keys, as of KEYS and SCAN. */
#ifndef KV_GLOB_H
#define KV_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#define KV_PATTERN_MAX 1024u /* most bytes of a pattern */

/* Returns whether a text fits a pattern. */
bool kv_matches_pattern(const char *pattern, size_t pattern_size, const char *text, size_t size);

#endif
