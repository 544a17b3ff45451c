/* The first pass turns the text of a YAML file into a tree.
 *
 * libcyaml stops at the first error and knows only the line of the event before it. So this
 * pass reads libyaml's events itself, within limits. It finds everything that is wrong whatever
 * the keys mean: syntax, duplicate keys, anchors, tags, a second document, and nodes that are
 * too deep or too large. Everything before a syntax error stays in the tree and is checked by
 * the next passes. */
#ifndef DOMI_CONFIG_PARSE_H
#define DOMI_CONFIG_PARSE_H

#include "config/tree.h"

#include <stddef.h>
#include <stdint.h>

#define DOMI_YAML_KEY_MAX   128  /* most bytes of a key */
#define DOMI_YAML_VALUE_MAX 4096 /* most bytes of a value */

/* Read `size` bytes of YAML into `tree`, which the caller has zeroed and will fini in every case.
 * `file` becomes the file of every origin. If the text holds no document, the tree stays empty.
 * Returns 0, also when issues were added; -ENOMEM. */
int domi_yaml_index_read(struct domi_yaml_tree *tree, const char *text, size_t size, uint32_t file,
                         struct domi_yaml_issues *issues);

#endif
