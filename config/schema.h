/* The structure of a configuration is checked by libcyaml, as follows.
 *
 * The schema is made from the table of keys, so that a key stands in one place only. libcyaml reads
 * the skeleton of the user's document: the same keys in the same places, each value replaced by the
 * number of its node. libcyaml decides whether each key exists and whether its value is a mapping,
 * a list or a single value, and puts each number where it belongs. libcyaml never sees a value,
 * because it would read `500us` as 500. If libcyaml refuses the skeleton, the tree is walked along
 * the same schema to name everything that does not fit, with its line; then libcyaml is asked again
 * with what is left. */
#ifndef DOMI_CONFIG_SCHEMA_H
#define DOMI_CONFIG_SCHEMA_H

#include "config/tree.h"

#include <domus/config.h>

#include <cyaml/cyaml.h>
#include <stdint.h>

#define DOMI_YAML_KEYS_MAX          128         /* rows of the table of keys */
#define DOMI_YAML_LISTENER_KEYS_MAX 8           /* rows of the table of a listener's keys */
#define DOMI_YAML_LISTENERS         "listeners" /* the only key whose value is a list */

#define DOMI_YAML_MAPPINGS_MAX 32 /* the root, the sections and the listener are mappings */
#define DOMI_YAML_FIELDS_MAX   24 /* keys in one mapping */
#define DOMI_YAML_NAME_SIZE    32 /* bytes of a section's name */

struct domi_yaml_schema {
    cyaml_schema_value_t root;
    cyaml_schema_value_t listener;
    uint32_t mappings;
    cyaml_schema_field_t fields[DOMI_YAML_MAPPINGS_MAX][DOMI_YAML_FIELDS_MAX + 1];
    char names[DOMI_YAML_MAPPINGS_MAX]
              [DOMI_YAML_NAME_SIZE]; /* of sections, without the names of the sections around */
};

/* These two structures say where the values of a document are. `node` holds the number of the
 * value's node for each row of the table of keys; 0: the document does not have the key. */
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

/* Free the result of domi_yaml_schema_place(); NULL is allowed. */
void domi_yaml_schema_release(const struct domi_yaml_schema *schema,
                              struct domi_yaml_placed *placed);

#endif
