/* The command `domus config`: what its verbs share, and the verbs.
 *
 * This program has no library of the tree in it, so it does not know the keys. Whoever knows them
 * is asked: a program that the user names, by its option --tell (domus/main.h), a program that
 * runs, by its observation port, or domus-keys, which stands beside this program. */
#ifndef DOMUS_TOOL_CONFIG_H
#define DOMUS_TOOL_CONFIG_H

#include "tools/domus/options.h"

/* The command line, behind the verb. */
typedef struct config_words {
    options all;
    const char *exec; /* the file of a program; NULL: domus-keys */
    const char **sets;
    size_t set_count;
    char **words; /* what is no option */
    size_t count;
    bool is_json;
    bool is_changed; /* only keys that somebody has set */
} config_words;

/* The verbs. Each returns an exit status. */
int config_check(const config_words *given);
int config_show(const config_words *given);
int config_diff(const config_words *given);
int config_explain(const config_words *given);
int config_schema(const config_words *given);

#endif
