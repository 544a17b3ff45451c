/* Asks a program that uses domus about its configuration, by its option --tell. */
#ifndef DOMUS_TOOL_CONFIG_ASK_H
#define DOMUS_TOOL_CONFIG_ASK_H

#include <jansson.h>

#include <stddef.h>

typedef struct config_question {
    const char *exec; /* path of the program's file; NULL: domus-keys */
    const char *tell; /* word behind --tell: "keys", "values" or "check" */
    char *const *files;
    size_t file_count;
    const char *const *sets;
    size_t set_count;
} config_question;

/* Run the program for at most 30 s, and read its answer. Returns the answer; NULL if there is none,
 * or if the configuration is wrong, and then the lines that tell why were printed on stderr.
 * Ownership: the caller's. */
json_t *config_ask(const config_question *question);

#endif
