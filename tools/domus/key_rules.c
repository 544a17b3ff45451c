/* Finds the doctor's rules that name a given key (key_rules.h). */
#include "tools/domus/key_rules.h"

#include "protocols/observe/doctor/rule.h"

#include <string.h>

/* Returns whether a list of keys with ", " between them contains a key. */
static bool does_comma_list_contain_key(const char *keys, const char *key)
{
    size_t length = strlen(key);

    for (const char *at = keys; (at = strstr(at, key)) != NULL; at += length) {
        if ((at == keys || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return true;
    }
    return false;
}

const char *key_rules_find_next_rule_that_names_key(const char *key, size_t *at)
{
    const domi_rule *rule;

    while ((rule = domi_rule_at_place_in_all_tables((uint32_t)*at)) != NULL) {
        ++*at;
        if (does_comma_list_contain_key(rule->keys, key))
            return rule->name;
    }
    return NULL;
}
