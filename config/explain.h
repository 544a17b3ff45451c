/* If libcyaml refuses a document, this function finds every key and value that does not fit, with
 * its line. */
#ifndef DOMI_CONFIG_EXPLAIN_H
#define DOMI_CONFIG_EXPLAIN_H

#include "config/schema.h"

/* Walk the tree along the schema. Each node that does not fit is added to `issues` and dropped from
 * the tree. */
void domi_yaml_report_misfits(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                              struct domi_yaml_issues *issues);

#endif
