/* The environment variables by which systemd speaks to a service, as texts and numbers. They are
 * read once, and then children of the process do not get them.
 *
 * Thread: the main thread, before there are others. */
#ifndef DOMI_CONFIG_ENVIRONMENT_H
#define DOMI_CONFIG_ENVIRONMENT_H

#include <stdint.h>

/* Read an environment variable as a number of decimal digits. Returns 0; -ENOENT if there is no
 * such variable; -EINVAL if it is no decimal number, or more than `max`. */
int domi_environment_read_number(const char *name, uint64_t max, uint64_t *ret_number);

/* Check whether an environment variable holds the number of this process: then the supervisor's
 * other variables are meant for it. Returns 1 if so; 0 if it names another process; -ENOENT if
 * there is no such variable; -EINVAL if it holds no number. */
int domi_environment_names_this_process(const char *name);

/* Take variables out of the environment of the process. `names` ends with NULL. */
void domi_environment_remove_variables(const char *const names[]);

#endif
