/* The passes of the reader of YAML: the text of a file, or an assignment, becomes a tree, lists of
 * texts in it become texts, libcyaml places the values, and what it refuses is explained. */
#ifndef DOMI_CONFIG_PASSES_H
#define DOMI_CONFIG_PASSES_H

#include "config/issues.h"
#include "config/schema.h"
#include "config/tree.h"
#include "config/values.h"

#include <stddef.h>
#include <stdint.h>

/* ---- parse.c ----------------------------------------------------------------------------------*/

/* The first pass turns the text of a YAML file into a tree.
 *
 * libcyaml stops at the first error and knows only the line of the event before it. So this
 * pass reads libyaml's events itself, within limits. It finds everything that is wrong whatever
 * the keys mean: syntax, duplicate keys, anchors, tags, a second document, and nodes that are
 * too deep or too large. Everything before a syntax error stays in the tree and is checked by
 * the next passes. */

#define DOMI_YAML_KEY_MAX   128  /* most bytes of a key in a document */
#define DOMI_YAML_VALUE_MAX 4096 /* most bytes of a value in a document */

/* Read `size` bytes of YAML into `tree`, which the caller has zeroed and frees by
 * domi_yaml_tree_fini() in every case. `file` becomes the file of every origin. If the text holds
 * no document, the tree stays empty. Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_read_text_into_tree(struct domi_yaml_tree *tree, const char *text, size_t size,
                                  uint32_t file, struct domi_yaml_issues *issues);

/* ---- texts.c ----------------------------------------------------------------------------------*/

/* Lists of texts in a document.
 *
 * A value of the kind DOMUS_CONFIG_TEXTS is one text with commas, in C and in an assignment. In a
 * file it may also be a list of YAML. Such a list becomes that one text before the schema is asked,
 * so nothing behind this knows of lists. */

/* Join each list that is the value of a key of the kind DOMUS_CONFIG_TEXTS. A list with an element
 * that is no text, is empty or holds a comma is reported and dropped. Returns 0, also if issues
 * were added; -ENOMEM. */
int domi_yaml_join_lists_of_texts(struct domi_yaml_tree *tree, struct domi_yaml_issues *issues);

/* ---- assignment.c -----------------------------------------------------------------------------*/

/* One `--set` becomes a tree, so that it is checked and applied in the same way as a file.
 *
 * `scheduler.ioRatio=60` becomes a document with that one key. A listener, or a pool, is addressed
 * by its name: `listeners.echo.address=127.0.0.1:0` becomes a list with one element, which changes
 * the listener "echo" that the reader has already. */

/* Read `assignment` into the empty `tree`; each node has the origin `at`. If the assignment cannot
 * be understood, the tree stays empty and an issue is added to `issues`. `shown` gets the path, and
 * `ret_element` the element of a list that the assignment changes. Returns 0, also if issues were
 * added; -ENOMEM. */
int domi_yaml_read_assignment(struct domi_yaml_tree *tree, const char *assignment,
                              struct domi_yaml_origin at, const struct domi_yaml_values *values,
                              char shown[DOMI_YAML_PATH_SIZE],
                              struct domi_yaml_element *ret_element,
                              struct domi_yaml_issues *issues);

/* ---- place.c ----------------------------------------------------------------------------------*/

/* Placing: libcyaml decides where the values of a document belong.
 *
 * libcyaml reads the skeleton of the user's document: the same keys in the same places, each value
 * replaced by the number of its node. It decides which keys there are, and which of them may be a
 * mapping, a list or a single value, and puts each number where it belongs. It never sees a value,
 * because it would take `500us` as 500. When it refuses, the tree is walked along the same schema
 * (explain.c) to name everything that does not fit, with its line, and libcyaml is asked again
 * about the rest. */

/* Let libcyaml place the nodes of `tree`. Nodes that do not fit are added to `issues` and dropped
 * from the tree. If nothing is left to place, `*ret_placed` stays as it was.
 * Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_place_nodes_by_schema(const struct domi_yaml_schema *schema,
                                    struct domi_yaml_tree *tree, struct domi_yaml_issues *issues,
                                    struct domi_yaml_placed **ret_placed);

/* Free the result of domi_yaml_place_nodes_by_schema(); NULL is allowed. */
void domi_yaml_free_placed(const struct domi_yaml_schema *schema, struct domi_yaml_placed *placed);

/* ---- explain.c --------------------------------------------------------------------------------*/

/* If libcyaml refuses a document, the function of this section finds every key and value that does
 * not fit, with its line. */

/* Walk the tree of a document along the schema. Each node that does not fit is added to `issues`
 * and dropped from the tree. */
void domi_yaml_report_misfits(const struct domi_yaml_schema *schema, struct domi_yaml_tree *tree,
                              struct domi_yaml_issues *issues);

#endif
