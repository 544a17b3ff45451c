/* Lists of texts in a document.
 *
 * A value of the kind DOMUS_CONFIG_TEXTS is one text with commas, in C and in an assignment. In a
 * file it may also be a list of YAML. Such a list becomes that one text before the schema is asked,
 * so nothing behind this knows of lists. */
#ifndef DOMI_CONFIG_TEXTS_H
#define DOMI_CONFIG_TEXTS_H

#include "config/issues.h"
#include "config/tree.h"

/* Join each list that is a value of this kind. A list with an element that is no text, is empty or
 * holds a comma is reported and dropped. Returns 0, also if issues were added; -ENOMEM. */
int domi_yaml_texts_join(struct domi_yaml_tree *tree, struct domi_yaml_issues *issues);

#endif
