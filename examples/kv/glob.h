/* Patterns of keys. */
#ifndef KV_GLOB_H
#define KV_GLOB_H

#include <stdbool.h>
#include <stddef.h>

#define KV_PATTERN_MAX 1024u /* bytes of a pattern, at most */

/* Returns whether a text fits a pattern. */
bool kv_glob(const char *pattern, size_t pattern_size, const char *text, size_t size);

#endif
