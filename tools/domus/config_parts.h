/* The parts of `domus config`: a program is asked for its keys and their values, and both become
 * texts, schemas and patterns. */
#ifndef DOMI_TOOLS_DOMUS_CONFIG_PARTS_H
#define DOMI_TOOLS_DOMUS_CONFIG_PARTS_H

#include "tools/domus/config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- config_ask.c -----------------------------------------------------------------------------*/

/* Asks a program that uses domus about its configuration, by its option --tell. */

typedef struct config_question {
    const char *exec; /* path of the program that is asked; NULL: domus-keys */
    const char *tell; /* word behind --tell that says what is asked: "keys", "values" or "check" */
    char *const *files;
    size_t file_count;
    const char *const *sets;
    size_t set_count;
} config_question;

/* Run the program that is asked for at most 30 s, and read its answer. Returns the answer; NULL if
 * there is none, or if the configuration is wrong, and then the lines that tell why were printed on
 * stderr. Ownership: the caller's. */
json_t *config_run_program_for_answer(const config_question *question);

/* ---- config_keys.c ----------------------------------------------------------------------------*/

/* The keys that a program knows: the facts of `--tell keys` (config/tell.h describes them). */

/* Ask a program for the keys of its configuration; NULL: ask domus-keys. Returns the keys; NULL,
 * after the error was printed. Ownership: the caller's. */
json_t *config_ask_program_for_key_table(const char *exec);

/* Find a key in the table of keys by its name in a row of values, "listeners.NAME.KEY" for a
 * listener's key. Returns NULL if there is none. */
const json_t *config_keys_find_key_of_value_path(const json_t *keys, const char *path);

/* Find a key in the table of keys by a name in one of the forms that users write: also
 * "listeners.KEY", "listeners[].KEY" and "listeners[3].KEY". */
const json_t *config_keys_find_key_by_name(const json_t *keys, const char *path);

/* Returns the second row, in the table of keys, of a key that can be written in two ways; NULL if
 * it has only one. */
const json_t *config_keys_get_second_row_of_key(const json_t *keys, const json_t *key);

/* Returns one of the texts that describe a key, by the name of that text; "" if the key has
 * none. */
const char *config_key_get_text_of_member(const json_t *key, const char *name);

bool config_key_is_member_true(const json_t *key, const char *name);

/* ---- config_values.c --------------------------------------------------------------------------*/

/* The values of a configuration, each with its origin: of files, as a program reads them, or of a
 * running program. */

/* A key with its value and where that comes from; all three texts end with a zero, and none is
 * trusted. */
typedef struct config_value {
    const char *key, *value, *origin;
} config_value;

/* Read configuration files over the defaults, with the assignments of the command line. Returns the
 * rows of values, an array; NULL after the error was printed. Ownership: the caller's. */
json_t *config_values_read_files(const config_words *given, char *const *files, size_t count);

/* Ask the running program that the options name for its values. Returns as
 * config_values_read_files(). */
json_t *config_values_of_running_program(const config_words *given);

/* Get one row of values. A row of an invalid form has empty texts. */
config_value config_values_get_value_of_row(const json_t *rows, size_t row);

/* Find the row of values that a key has. Returns whether there is one. */
bool config_values_find_value_of_key(const json_t *rows, const char *key, config_value *ret_value);

/* ---- config_texts.c ---------------------------------------------------------------------------*/

/* Texts about keys: the comments of config/domus.yaml, which is built into this program. */

/* The bytes of config/domus.yaml, with a zero behind them (tools/domus/embed.cmake). */
extern const unsigned char config_yaml[];

/* Read the comments of a file in the form of config/domus.yaml: an object with a text for each key
 * and section that has one, by its path; "listeners.address" is the path of a listener's key. Lines
 * of a comment are joined by spaces. Returns NULL without memory. Ownership: the caller's. */
json_t *config_texts_read_comments(const char *yaml);

/* Returns the text that explains a key, by the list and name in its row (config_keys.c); "" if
 * there is none. A key of a listener's own `channel` has the text of the key in the section
 * `channel`. */
const char *config_texts_get_text_of_key(const json_t *texts, const char *list, const char *key);

/* ---- config_kinds.c ---------------------------------------------------------------------------*/

/* JSON Schema for the values of a key: the values that the configuration's reader accepts
 * (runtime/control/config_read.c), after a reader of YAML has turned texts that look like numbers
 * or booleans into such. */

/* Returns a JSON schema for the values of a key, whose second row is `second` or NULL. Returns NULL
 * without memory. Ownership: the caller's. */
json_t *config_kinds_make_schema(const json_t *key, const json_t *second);

/* Returns the default of a key of the configuration as a JSON value; NULL if it has none.
 * Ownership: the caller's. */
json_t *config_kinds_make_json_of_default(const json_t *key);

/* ---- config_pattern.c -------------------------------------------------------------------------*/

/* Regular expressions that match the numbers of a range, as the configuration's reader accepts
 * them: decimal digits without a sign and without leading zeros. They use only features that both
 * ECMAScript and Python have. */

/* A unit of numbers, and its size in the smallest unit. */
typedef struct config_unit {
    const char *name;
    uint64_t factor;
} config_unit;

/* The range of numbers that a key accepts, in the smallest unit. */
typedef struct config_range {
    uint64_t low, high;
    bool is_power;   /* of the numbers only powers of two are accepted */
    bool takes_zero; /* the number 0 is accepted, too, with or without a unit */
} config_range;

/* Write the alternatives of a pattern that matches the numbers from `low` to `high`, such as
 * "[5-9]|[1-4][0-9]|50". */
void config_pattern_write_number_range(FILE *out, uint64_t low, uint64_t high);

/* Write the alternatives of a pattern that matches the numbers of a range with each of their units,
 * an array that ends with a unit without a name. Returns whether there is any alternative. */
bool config_pattern_write_range_in_all_units(FILE *out, const config_range *range,
                                             const config_unit *units);

#endif
