/* The keys whose values are tried, and the values of each.
 *
 * A table contains the keys that concern speed, with values around their defaults. Any other key of
 * a program can be named with its own values. Their limits are those of a search. */
#ifndef DOMUS_TOOL_TUNE_KEYS_H
#define DOMUS_TOOL_TUNE_KEYS_H

#include "tools/domus/tune/search.h"

#include <stdio.h>

#define TUNE_KEY_SIZE   128 /* most bytes of a key's path, with a zero */
#define TUNE_VALUE_SIZE 64  /* most bytes of a key's value, with a zero */

typedef struct tune_key {
    char path[TUNE_KEY_SIZE];
    size_t count;
    char values[TUNE_VALUES_MAX][TUNE_VALUE_SIZE];
} tune_key;

typedef struct tune_keys {
    size_t count;
    tune_key each[TUNE_KEYS_MAX];
    char error[256]; /* reason why the last call about these keys has failed */
} tune_keys;

/* Add keys of the table to those that are tried, named with commas between them. A name may be
 * the end of a path ("idle.spin"); a pool's is pools.NAME.throughput. Returns whether all were
 * added. */
bool tune_keys_add_comma_list_of_names(tune_keys *keys, const char *names);

/* Add a key with the values that are tried, or replace its values: KEY=VALUE,VALUE. Returns whether
 * the text is valid. */
bool tune_keys_set_values_to_try(tune_keys *keys, const char *text);

/* Add all keys of the table except the keys of pools. */
void tune_keys_add_all_of_table(tune_keys *keys);

/* Write the value of one key of a candidate as an argument for --set: KEY=VALUE. */
void tune_keys_write_key_equals_value(const tune_keys *keys, const tune_point *point, size_t key,
                                      char *ret_text, size_t size);

/* Write a candidate as text for people: "ioRatio=65 idle.spin=0", or "today's values". */
void tune_keys_describe_candidate(const tune_keys *keys, const tune_point *point, char *ret_text,
                                  size_t size);

/* Returns whether a key belongs to an element of a list, below pools or listeners. A second file
 * would replace the whole list, so only --set can change one element. */
bool tune_keys_is_key_of_pool_or_listener(const tune_keys *keys, size_t key);

/* Write the values of a candidate as YAML, without the keys of list elements. */
void tune_keys_write_yaml(const tune_keys *keys, const tune_point *point, FILE *out);

#endif
