/* One `--set` as a tree, so that it goes the same way as a file.
 *
 * `scheduler.ioRatio=60` becomes a document with that one key. A listener is addressed by the name
 * that it has: `listeners.echo.address=127.0.0.1:0` becomes a list of one element, and goes to the
 * place of "echo" in the list that the reader holds. */
#ifndef DOMI_CONFIG_ASSIGNMENT_H
#define DOMI_CONFIG_ASSIGNMENT_H

#include "config/issues.h"
#include "config/tree.h"
#include "config/values.h"

/* `tree` is empty and gets the document, all of it at `at`; it is left empty when the assignment
 * cannot be understood, which is added to `issues`. `shown` gets the path, `ret_listener` the place
 * of the listener, -1 when it is about none. Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_assignment_read(struct domi_yaml_tree *tree, const char *assignment,
                              struct domi_yaml_origin at, const struct domi_yaml_values *values,
                              char shown[DOMI_YAML_PATH_SIZE], int *ret_listener,
                              struct domi_yaml_issues *issues);

#endif
