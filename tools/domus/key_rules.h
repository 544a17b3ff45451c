/* The rules of the doctor that speak of a key of the configuration, for `domus config explain`. */
#ifndef DOMUS_TOOL_KEY_RULES_H
#define DOMUS_TOOL_KEY_RULES_H

#include <stddef.h>

typedef struct key_rule {
    const char *key;  /* such as "scheduler.ioRatio"; NULL marks the end of the table */
    const char *rule; /* the name of the rule */
} key_rule;

extern const key_rule key_rules[];

/* Get the next rule that speaks of a key; `at` is 0 for the first. Returns it; NULL. */
const char *key_rules_next(const char *key, size_t *at);

#endif
