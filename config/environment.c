/* Reads numbers of environment variables strictly: a text with a sign, a space or a letter is no
 * number. */
#include "config/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int domi_environment_read_number(const char *name, uint64_t max, uint64_t *ret_number)
{
    const char *text = getenv(name);
    char *end = NULL;

    if (text == NULL)
        return -ENOENT;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
        return -EINVAL;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || number > max)
        return -EINVAL;
    *ret_number = number;
    return 0;
}

int domi_environment_names_this_process(const char *name)
{
    uint64_t number = 0;
    int result = domi_environment_read_number(name, INT32_MAX, &number);

    if (result != 0)
        return result;
    return number == (uint64_t)getpid() ? 1 : 0;
}

void domi_environment_remove_variables(const char *const names[])
{
    for (; *names != NULL; names++)
        (void)unsetenv(*names);
}
