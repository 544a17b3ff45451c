/* The structure of a configuration, as libcyaml holds it.
 *
 * The schema is made from the table of keys, so that a key stands in one place only. libcyaml reads
 * the skeleton of the user's document: the same keys in the same places, each value replaced by the
 * number of its node. libcyaml decides which keys there are, what may be a mapping, a list or a
 * single value, and puts each number where it belongs; it never sees a value, of which it would
 * take `500us` as 500. When it refuses, the tree is walked along the same schema to name everything
 * that does not fit, with its line, and it is asked again about what is left. */
#ifndef DOMI_CONFIG_SCHEMA_H
#define DOMI_CONFIG_SCHEMA_H

#include "config/tree.h"

#include <domus/config.h>

#include <cyaml/cyaml.h>
#include <stdint.h>

#define DOMI_YAML_KEYS_MAX          128         /* rows of the table of keys */
#define DOMI_YAML_LISTENER_KEYS_MAX 8           /* rows of the table of a listener */
#define DOMI_YAML_LISTENERS         "listeners" /* the one list */

#define DOMI_YAML_MAPPINGS_MAX 32 /* root, sections and the listener */
#define DOMI_YAML_FIELDS_MAX   24 /* keys in one of them */
#define DOMI_YAML_NAME_SIZE    32 /* of a section's name */

struct domi_yaml_schema {
    cyaml_schema_value_t root;
    cyaml_schema_value_t listener;
    uint32_t mappings;
    cyaml_schema_field_t fields[DOMI_YAML_MAPPINGS_MAX][DOMI_YAML_FIELDS_MAX + 1];
    char names[DOMI_YAML_MAPPINGS_MAX]
              [DOMI_YAML_NAME_SIZE]; /* the section's, without those above */
};

/* Where the values are: numbers of nodes, by row of the table; 0: the key is not there. */
struct domi_yaml_placed_listener {
    uint32_t node[DOMI_YAML_LISTENER_KEYS_MAX];
};

struct domi_yaml_placed {
    uint32_t node[DOMI_YAML_KEYS_MAX];
    struct domi_yaml_placed_listener *listeners;
    uint32_t listener_count;
};

/* Returns 0; -E2BIG when the table of keys has outgrown this structure. */
int domi_yaml_schema_init(struct domi_yaml_schema *schema);

/* Let libcyaml place the nodes of `tree`. Nodes that do not fit are added to `issues` and dropped
 * from the tree. If nothing is left to place, `*ret_placed` stays as it was.
 * Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_schema_place(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                           struct domi_yaml_issues *issues, struct domi_yaml_placed **ret_placed);

/* NULL is taken. */
void domi_yaml_schema_release(const struct domi_yaml_schema *schema,
                              struct domi_yaml_placed *placed);

#endif
