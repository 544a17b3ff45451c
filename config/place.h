/* Placing: libcyaml decides where the values of a document belong.
 *
 * libcyaml reads the skeleton of the user's document: the same keys in the same places, each value
 * replaced by the number of its node. It decides which keys there are, and which of them may be a
 * mapping, a list or a single value, and puts each number where it belongs. It never sees a value,
 * because it would take `500us` as 500. When it refuses, the tree is walked along the same schema
 * (explain.h) to name everything that does not fit, with its line, and libcyaml is asked again
 * about the rest. */
#ifndef DOMI_CONFIG_PLACE_H
#define DOMI_CONFIG_PLACE_H

#include "config/schema.h"

/* Let libcyaml place the nodes of `tree`. Nodes that do not fit are added to `issues` and dropped
 * from the tree. If nothing is left to place, `*ret_placed` stays as it was.
 * Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_schema_place(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                           struct domi_yaml_issues *issues, struct domi_yaml_placed **ret_placed);

/* Free the result of domi_yaml_schema_place(); NULL is allowed. */
void domi_yaml_schema_release(const struct domi_yaml_schema *schema,
                              struct domi_yaml_placed *placed);

#endif
