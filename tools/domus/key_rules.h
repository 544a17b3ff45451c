/* The rules of the doctor that speak of a key of the configuration, for `domus config explain`. */
#ifndef DOMUS_TOOL_KEY_RULES_H
#define DOMUS_TOOL_KEY_RULES_H

#include <stddef.h>

/* Get the name of the next rule that speaks of a key, such as "scheduler.ioRatio"; `at` is 0 for
 * the first. Returns it; NULL. */
const char *key_rules_next(const char *key, size_t *at);

#endif
