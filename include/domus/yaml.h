/* The configuration from YAML: `libdomus-config`, a library of its own.
 *
 * Reading is strict: an unknown or duplicate key, a wrong unit, a bare number where a unit is
 * needed, a value out of range or of the wrong type is an error, and all errors of a file are
 * reported, each as `file:line:column: path: message`. */
#ifndef DOMUS_YAML_H
#define DOMUS_YAML_H

#include <domus/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A configuration and the strings that it points at. */
typedef struct domus_yaml domus_yaml;

/* A reader that holds the defaults.
 *
 * Ownership: the caller's, until domus_yaml_free(). Returns 0; -ENOMEM.
 * Thread-safety: one reader, one thread at a time (this holds for all functions here). */
DOMUS_API int domus_yaml_new(domus_yaml **ret_yaml);

/* NULL is taken. */
DOMUS_API void domus_yaml_free(domus_yaml *yaml);

/* Read the file at `path` over what the reader holds. At most 1 MiB, at most 16 levels deep.
 *
 * Returns 0; -EINVAL when anything in it is wrong (domus_yaml_errors() has the lines; what the
 * reader held before is untouched); a negative errno when the file cannot be read. */
DOMUS_API int domus_yaml_load(domus_yaml *yaml, const char *path);

/* Set one key, `scheduler.ioRatio=60`; errors name it `--set`. Lists (listeners) are addressed by
 * the name of their element: `listeners.echo.address=127.0.0.1:0`.
 *
 * Returns 0; -EINVAL with the message in domus_yaml_errors(). */
DOMUS_API int domus_yaml_set(domus_yaml *yaml, const char *assignment);

/* Hold what several keys promise of each other (`sendLow` <= `sendHigh`, ...), once all is read.
 *
 * Returns 0; -EINVAL with the message in domus_yaml_errors(). */
DOMUS_API int domus_yaml_finish(domus_yaml *yaml);

/* The values. Ownership: the reader's; valid until the next load, set or free. */
DOMUS_API const domus_config *domus_yaml_config(const domus_yaml *yaml);

/* What was wrong since the reader was made, one line each, "" when nothing was.
 * Ownership: the reader's. */
DOMUS_API const char *domus_yaml_errors(const domus_yaml *yaml);

#ifdef __cplusplus
}
#endif

#endif
