/* The values of a configuration, each with its origin: of files, as a program reads them, or of a
 * running program. */
#ifndef DOMUS_TOOL_CONFIG_VALUES_H
#define DOMUS_TOOL_CONFIG_VALUES_H

#include "tools/domus/config.h"

#include <jansson.h>

/* A key with its value and origin; all three texts end with a zero, and none is trusted. */
typedef struct config_value {
    const char *key, *value, *origin;
} config_value;

/* Read files over the defaults, with the assignments of the command line. Returns the rows, an
 * array; NULL after the error was printed. Ownership: the caller's. */
json_t *config_values_of_files(const config_words *given, char *const *files, size_t count);

/* Ask the running program that the options name. Returns as config_values_of_files(). */
json_t *config_values_of_running(const config_words *given);

/* Get a row. A row of an invalid form has empty texts. */
config_value config_values_get(const json_t *rows, size_t row);

/* Find the row of a key. Returns whether there is one. */
bool config_values_find(const json_t *rows, const char *key, config_value *ret_value);

#endif
