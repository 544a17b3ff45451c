/* The values of a configuration, the strings that they point to, and the origin of each value.
 *
 * It is one structure of fixed size without allocations. To read a source, the reader copies the
 * structure, changes the copy, and keeps the copy if nothing was wrong. */
#ifndef DOMI_CONFIG_VALUES_H
#define DOMI_CONFIG_VALUES_H

#include "config/issues.h"
#include "config/schema.h"
#include "config/section.h"
#include "config/tree.h"

#include <domus/section.h>

#include <stddef.h>
#include <stdint.h>

#define DOMI_YAML_TEXT_SIZE 4096 /* bytes of a text of a listener, its NUL included */
/* most texts of a listener; only the first rows of its table of keys are texts */
#define DOMI_YAML_TEXTS_MAX 10
/* most texts of the table of keys, and bytes of each, its NUL included */
#define DOMI_YAML_KEY_TEXTS_MAX 24
#define DOMI_YAML_KEY_TEXT_SIZE 4096
/* most texts of a pool, which are the first rows of its table, and bytes of each with its NUL */
#define DOMI_YAML_POOL_TEXTS_MAX 2
#define DOMI_YAML_POOL_TEXT_SIZE 64

/* An element of a list of mappings, such as a pool: what an assignment such as
 * "pools.work.runners=2" changes. */
struct domi_yaml_element {
    /* name of the element's list, DOMI_YAML_LISTENERS or DOMI_YAML_POOLS; NULL: it is of no list */
    const char *list;
    size_t index;
};

struct domi_yaml_values {
    domus_config config; /* the configuration; its strings and listeners are in the fields below */
    /* the listeners to which `config.listeners` points */
    domus_listener_config listeners[DOMUS_LISTENERS_MAX];
    /* texts of the table of keys, such as system.cpus, in its order */
    char key_texts[DOMI_YAML_KEY_TEXTS_MAX][DOMI_YAML_KEY_TEXT_SIZE];
    /* texts of each listener, by the first rows of its table of keys */
    char texts[DOMUS_LISTENERS_MAX][DOMI_YAML_TEXTS_MAX][DOMI_YAML_TEXT_SIZE];
    /* place in a source of the value of each row of the table of keys, and of each listener */
    struct domi_yaml_origin value_origins[DOMI_YAML_KEYS_MAX];
    /* place in a source of the value of each key of a listener */
    struct domi_yaml_origin listener_origins[DOMUS_LISTENERS_MAX][DOMI_YAML_LISTENER_KEYS_MAX];
    domus_pool_config pools[DOMUS_POOLS_MAX]; /* the pools to which `config.pools` points */
    char pool_texts[DOMUS_POOLS_MAX][DOMI_YAML_POOL_TEXTS_MAX][DOMI_YAML_POOL_TEXT_SIZE];
    struct domi_yaml_origin pool_origins[DOMUS_POOLS_MAX][DOMI_YAML_POOL_KEYS_MAX];
    /* keys that some source has given for each listener and each pool, a bit for each row of their
     * table */
    uint64_t listeners_given[DOMUS_LISTENERS_MAX];
    uint64_t pools_given[DOMUS_POOLS_MAX];
    struct domi_section_values own; /* values of the program's section */
};

/* Fill in the defaults of a configuration; `values` is zeroed. `section` may be NULL. The origin of
 * each value is file 0, "default". Returns 0; -E2BIG when a text of the table of keys has outgrown
 * this structure. */
int domi_yaml_values_init(struct domi_yaml_values *values, const domus_section *section);

/* Copy only the values that are in use: a program reads a file and some assignments when it starts,
 * and the room of all listeners is 2.6 MB. */
void domi_yaml_values_copy(struct domi_yaml_values *into, const struct domi_yaml_values *from);

/* Returns the index of the element with this name in a list, which is DOMI_YAML_LISTENERS or
 * DOMI_YAML_POOLS; -ENOENT. */
int domi_yaml_values_find_element(const struct domi_yaml_values *values, const char *list,
                                  const char *name, size_t length);

/* Write the values that libcyaml has placed over the present ones. If `element` is of no list, the
 * lists of the document replace the present ones. Otherwise the list of `element` has one element
 * in the document, which changes `element`. Faults are added to `issues`. */
void domi_yaml_values_apply_placed(struct domi_yaml_values *values,
                                   const struct domi_yaml_tree *tree,
                                   const struct domi_yaml_placed *placed,
                                   struct domi_yaml_element element,
                                   struct domi_yaml_issues *issues);

/* Returns the origin of the value that a fault is about. If the fault is about two keys and the
 * value of the first key is a default, this is the origin of the second key's value. */
struct domi_yaml_origin
domi_yaml_values_get_origin_of_faulty_key(const struct domi_yaml_values *values,
                                          const domus_config_fault *fault);

/* Returns the origin of the value of a key of domus_config; file 0: it is the default. */
struct domi_yaml_origin domi_yaml_values_get_key_origin(const struct domi_yaml_values *values,
                                                        const domus_config_key *key);

/* Returns the origin of a value of element `element` of a list, by the row of its key in the table;
 * file 0: no source has given it. */
struct domi_yaml_origin domi_yaml_values_get_element_origin(const struct domi_yaml_values *values,
                                                            const char *list, size_t element,
                                                            size_t row);

/* Returns whether a key has different values in two structures that hold it: two domus_config, or
 * for a key of a listener two domus_listener_config. A text that is NULL is as good as "". */
bool domi_value_is_different(const domus_config_key *key, const void *before, const void *now);

#endif
