/* The configuration from YAML: `libdomus-config`, a library of its own.
 *
 * Reading is strict: an unknown or duplicate key, a wrong unit, a bare number where a unit is
 * needed, a value out of range or of the wrong type is an error, and all errors of a file are
 * reported, each as `file:line:column: path: message`. */
#ifndef DOMUS_YAML_H
#define DOMUS_YAML_H

#include <domus/config_shown.h>
#include <domus/section.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A reader: a configuration, the strings that it points at, and the values of the program's own
 * section. */
typedef struct domus_yaml domus_yaml;

/* Make a reader that holds the defaults.
 *
 * Ownership: the caller's, until domus_yaml_free(). Returns 0; -ENOMEM. Thread-safety of all
 * functions here: one thread at a time may use a reader. */
DOMUS_API int domus_yaml_new(domus_yaml **ret_yaml);

/* Make a reader that also knows the program's own section. `section`, its table and what they point
 * at stay the program's, and must not change while the reader is used. The section's own `check`
 * runs in domus_yaml_finish().
 *
 * Returns 0; -ENOMEM; -EINVAL when the table is wrong (domus/section.h), which is a bug of
 * the program: `error` (may be NULL if the size is 0) then says in one line what is wrong
 * with which row. */
DOMUS_API int domus_yaml_new_with(const domus_section *section, char *error, size_t error_size,
                                  domus_yaml **ret_yaml);

/* Free a reader and the configuration that it holds. NULL is allowed, and does nothing. */
DOMUS_API void domus_yaml_free(domus_yaml *yaml);

/* Read the file at `path`. Its keys replace the values that the reader holds. The file has at most
 * 1 MiB and at most 16 levels.
 *
 * Returns 0; -EINVAL when anything in the file is wrong (domus_yaml_errors() has the lines, and the
 * reader's values are unchanged); a negative errno when the file cannot be read. */
DOMUS_API int domus_yaml_load(domus_yaml *yaml, const char *path);

/* Set one key by an assignment such as `scheduler.ioRatio=60`. Error lines have `--set` in place of
 * a file. An element of a list (of listeners) is addressed by its name:
 * `listeners.echo.address=127.0.0.1:0`. A list of texts in the program's section is written with
 * commas, `chat.rooms=lobby,garden`; no element of it can then hold a comma.
 *
 * Returns 0; -EINVAL with the message in domus_yaml_errors(). */
DOMUS_API int domus_yaml_set(domus_yaml *yaml, const char *assignment);

/* Check the rules between several keys (such as `sendLow` <= `sendHigh`), that each text is there
 * which a program's section demands, and what the section's own check says. Call this when
 * everything is read and set.
 *
 * Returns 0; -EINVAL with the message in domus_yaml_errors(). */
DOMUS_API int domus_yaml_finish(domus_yaml *yaml);

/* Returns the values that the reader holds. Ownership: the reader's; valid until the next call that
 * loads, sets or frees. */
DOMUS_API const domus_config *domus_yaml_config(const domus_yaml *yaml);

/* Returns the values of the program's section: a struct of section->size bytes; NULL when the
 * reader has no section. Ownership: the reader's; valid as domus_yaml_config(). */
DOMUS_API const void *domus_yaml_section(const domus_yaml *yaml);

/* Show all keys with the values that the reader holds, those of the program's section last, and
 * where each value stands (domus/config_shown.h). */
DOMUS_API void domus_yaml_show(const domus_yaml *yaml, domus_config_visit *visit, void *context);

/* Returns all errors since the reader was made, one line each, or "" if there were none. Ownership:
 * the reader's. */
DOMUS_API const char *domus_yaml_errors(const domus_yaml *yaml);

#ifdef __cplusplus
}
#endif

#endif
