/* Asks a program of domus what it knows of its configuration, by its option --tell. */
#ifndef DOMUS_TOOL_CONFIG_ASK_H
#define DOMUS_TOOL_CONFIG_ASK_H

#include <jansson.h>

#include <stddef.h>

typedef struct config_question {
    const char *exec; /* the file of the program; NULL: domus-keys */
    const char *tell; /* "keys", "values" or "check" */
    char *const *files;
    size_t file_count;
    const char *const *sets;
    size_t set_count;
} config_question;

/* Run the program, and read its answer. Returns it; NULL if there is none, or if the configuration
 * is wrong: then the lines that say so are on stderr. It has 30 s. Ownership: the caller's. */
json_t *config_ask(const config_question *question);

#endif
