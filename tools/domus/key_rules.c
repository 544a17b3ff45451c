/* The table of keys and rules; see the header. */
#include "tools/domus/key_rules.h"

#include <string.h>

const key_rule key_rules[] = {
    {NULL, NULL},
};

const char *key_rules_next(const char *key, size_t *at)
{
    while (key_rules[*at].key != NULL) {
        const key_rule *row = &key_rules[(*at)++];
        if (strcmp(row->key, key) == 0)
            return row->rule;
    }
    return NULL;
}
