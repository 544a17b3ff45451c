/* The command `domus config`: the parts that its verbs share, and the verbs.
 *
 * This program contains no library of the tree, so it does not know the keys of configurations. It
 * asks for them: a program that the user names, by its option --tell (domus/main.h), a running
 * program, by its observation port, or domus-keys, which is installed beside this program. */
#ifndef DOMUS_TOOL_CONFIG_H
#define DOMUS_TOOL_CONFIG_H

#include "tools/domus/options.h"

/* The command line behind the verb of domus config. */
typedef struct config_words {
    options all;
    const char *exec; /* path of the program that is asked; NULL: domus-keys */
    const char **sets;
    size_t set_count;
    char **words; /* the words behind the verb that are no options */
    size_t count;
    bool is_json;
    bool is_changed; /* the verb shows only keys that were set */
} config_words;

/* The verbs of domus config. Each returns an exit status. */
int config_check_files(const config_words *given);
int config_print_values(const config_words *given);
int config_print_differences(const config_words *given);
int config_print_explanation_of_keys(const config_words *given);
int config_print_schema(const config_words *given);

#endif
