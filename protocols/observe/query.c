/* Reads numbers and words from the query of a request (texts.h). */
#include "protocols/observe/texts.h"

#include <domus/http_query.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_SIZE 24

/* Read the value of a query's parameter as a text. Returns 0; -ENOENT; -EINVAL, also for a value
 * with a zero byte in it. */
static int read_value_of_parameter(domus_slice query, const char *name, char value[VALUE_SIZE])
{
    int64_t size = domus_http_query_value(query, name, value, VALUE_SIZE - 1);

    if (size == -ENOENT)
        return -ENOENT;
    if (size <= 0 || memchr(value, '\0', (size_t)size) != NULL)
        return -EINVAL;
    value[size] = '\0';
    return 0;
}

int domi_query_read_number(domus_slice query, const char *name, const char *unit, uint32_t most,
                           uint32_t *number)
{
    char value[VALUE_SIZE];
    char *end;
    int error = read_value_of_parameter(query, name, value);

    if (error != 0)
        return error == -ENOENT ? 0 : error;
    if (value[0] < '0' || value[0] > '9')
        return -EINVAL;
    /* strtoul() returns ULONG_MAX for a number that is too large, and that exceeds `most` */
    unsigned long read = strtoul(value, &end, 10);
    bool is_whole = *end == '\0' || (unit != NULL && strcmp(end, unit) == 0);
    if (!is_whole || read > most)
        return -EINVAL;
    *number = (uint32_t)read;
    return 0;
}

int domi_query_find_word(domus_slice query, const char *name, const char *const words[])
{
    char value[VALUE_SIZE];
    int error = read_value_of_parameter(query, name, value);

    if (error != 0)
        return error == -ENOENT ? 0 : error;
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(value, words[i]) == 0)
            return i;
    return -EINVAL;
}
