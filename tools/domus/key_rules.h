/* The doctor's rules that name a key of the configuration, for `domus config explain`. */
#ifndef DOMUS_TOOL_KEY_RULES_H
#define DOMUS_TOOL_KEY_RULES_H

#include <stddef.h>

/* Find the next rule that names a key such as "scheduler.ioRatio"; `at` must be 0 for the first
 * call. Returns the name of the rule; NULL if there is none. */
const char *key_rules_find_next_rule_that_names_key(const char *key, size_t *at);

#endif
