/* One `--set` becomes a tree, so that it is checked and applied in the same way as a file.
 *
 * `scheduler.ioRatio=60` becomes a document with that one key. A listener, or a pool, is addressed
 * by its name: `listeners.echo.address=127.0.0.1:0` becomes a list with one element, which changes
 * the listener "echo" that the reader has already. */
#ifndef DOMI_CONFIG_ASSIGNMENT_H
#define DOMI_CONFIG_ASSIGNMENT_H

#include "config/issues.h"
#include "config/tree.h"
#include "config/values.h"

/* Read `assignment` into the empty `tree`; each node has the origin `at`. If the assignment cannot
 * be understood, the tree stays empty and an issue is added to `issues`. `shown` gets the path, and
 * `ret_element` the element of a list that the assignment changes. Returns 0, also if issues were
 * added; -ENOMEM. */
int domi_yaml_assignment_read(struct domi_yaml_tree *tree, const char *assignment,
                              struct domi_yaml_origin at, const struct domi_yaml_values *values,
                              char shown[DOMI_YAML_PATH_SIZE],
                              struct domi_yaml_element *ret_element,
                              struct domi_yaml_issues *issues);

#endif
