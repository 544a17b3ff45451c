/* Answers to --tell: facts and values of a program's keys as JSON, for the command `domus config`
 * and for editors.
 *
 * The facts come from the tables of keys, so there is no second text of a range or a default. Each
 * answer is one object. Its members only grow, and "tell" says which answer it is. A
 * text in it is escaped as in domus/text.h, and secrets are not told. */
#ifndef DOMI_CONFIG_TELL_H
#define DOMI_CONFIG_TELL_H

#include <domus/main.h>
#include <domus/yaml.h>

#include <stdbool.h>
#include <stdio.h>

/* The words of --tell, in the order of domi_tell_words. */
typedef enum domi_tell {
    DOMI_TELL_NOTHING, /* the option --tell was not given */
    DOMI_TELL_KEYS,    /* tell all keys: kind, range, default, and whether they are live */
    DOMI_TELL_VALUES,  /* tell the values that files and options give, and where each stands */
    DOMI_TELL_CHECK,   /* tell whether the program would start with these values */
} domi_tell;

/* The words of --tell, with NULL at the end; that of DOMI_TELL_NOTHING is "". */
extern const char *const domi_tell_words[];

/* Write all keys of domus and of the program's section:
 *     {"tell": "keys", "program": NAME, "listeners_max": N, "pools_max": N, "section": NAME,
 *      "keys": [KEY...], "listeners": [KEY...], "pools": [KEY...]}
 * "section" is missing if the program has none, and the keys of the section have its name before
 * them. A KEY has "key", "field" (as in domus_config_key, where a row has it), "kind" (as in
 * domus_config_kind), "minimum" and "maximum" (texts of plain numbers: nanoseconds, bytes, or bytes
 * of a text), "least" and "most" (the same as users write them, of numbers), "default" (missing:
 * the user has to give one, or it inherits), "special", "words", "list_max" where it has them, and
 * "zero" (0 is a value), "power_of_two", "inherits", "secret" and "live" where that is true. */
void domi_tell_write_keys(FILE *out, const domus_program *program);

/* Write the values of a configuration: {"tell": "values", "program": NAME, "right": true, "keys":
 * [{"key": KEY, "value": TEXT, "origin": TEXT}...]}, with the rows of domus_yaml_show(). */
void domi_tell_write_values(FILE *out, const domus_program *program, const domus_yaml *yaml);

/* Write an answer to --tell without rows: {"tell": WORD, "program": NAME, "right": RIGHT}. */
void domi_tell_write_result(FILE *out, const domus_program *program, domi_tell what, bool right);

#endif
