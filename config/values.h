/* The values of a configuration, their strings, and where each of them came from.
 *
 * One structure of fixed size without allocations: to try a file is to copy it, change the copy,
 * and keep whichever is right. */
#ifndef DOMI_CONFIG_VALUES_H
#define DOMI_CONFIG_VALUES_H

#include "config/issues.h"
#include "config/schema.h"
#include "config/tree.h"

#include <domus/config.h>

#include <stddef.h>
#include <stdint.h>

#define DOMI_YAML_TEXT_SIZE 64   /* of a listener's name or address, its NUL included */
#define DOMI_YAML_CPUS_SIZE 1024 /* of a list of CPUs */

struct domi_yaml_values {
    domus_config config; /* its strings and listeners are those below */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
    char cpus[DOMI_YAML_CPUS_SIZE];
    char texts[DOMUS_LISTENERS_MAX][DOMI_YAML_LISTENER_KEYS_MAX][DOMI_YAML_TEXT_SIZE];
    struct domi_yaml_origin key_origins[DOMI_YAML_KEYS_MAX];
    struct domi_yaml_origin listener_origins[DOMUS_LISTENERS_MAX][DOMI_YAML_LISTENER_KEYS_MAX];
};

/* The defaults; all origins are file 0.
 * Returns 0; -E2BIG when a text of the table of keys has outgrown this structure. */
int domi_yaml_values_init(struct domi_yaml_values *values);

void domi_yaml_values_copy(struct domi_yaml_values *into, const struct domi_yaml_values *from);

/* The listener of that name; -ENOENT. */
int domi_yaml_values_find(const struct domi_yaml_values *values, const char *name, size_t length);

/* Put what libcyaml placed over the values. A list of listeners replaces the one before, or, with a
 * `listener` of 0 or more, its only element changes that one. Faults go to `issues`. */
void domi_yaml_values_apply(struct domi_yaml_values *values, const struct domi_yaml_tree *tree,
                            const struct domi_yaml_placed *placed, int listener,
                            struct domi_yaml_issues *issues);

/* Where the value that a fault is about came from; where both keys of a pair could be meant, the
 * one that is not a default. */
struct domi_yaml_origin domi_yaml_values_origin(const struct domi_yaml_values *values,
                                                const domus_config_fault *fault);

#endif
