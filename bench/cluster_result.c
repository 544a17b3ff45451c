/* Reads the line that a requester prints (cluster_result.h). */
#include "bench/cluster_result.h"

#include "bench/support/measure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Skip `text` in the requester's line. Returns false if the line does not continue with it. */
static bool skip_text_of_line(const char **line, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*line, text, length) != 0)
        return false;
    *line += length;
    return true;
}

/* Read a number of digits only from the requester's line. Returns false if there is none. */
static bool read_number_of_line(const char **line, uint64_t *ret_number)
{
    char *end;

    if (**line < '0' || **line > '9')
        return false;
    errno = 0;
    *ret_number = strtoull(*line, &end, 10);
    *line = end;
    return errno == 0;
}

int cluster_result_read_line(const char *line, const char *row, uint64_t count, uint64_t waited_ns,
                             uint64_t *ret_took_ns)
{
    uint64_t counted;
    uint64_t took_ns;

    if (!skip_text_of_line(&line, row) || !skip_text_of_line(&line, ": ") ||
        !read_number_of_line(&line, &counted) || !skip_text_of_line(&line, " in ") ||
        !read_number_of_line(&line, &took_ns) || !skip_text_of_line(&line, " ns, "))
        return -EPROTO;
    if (strncmp(line, "wrong", strlen("wrong")) == 0)
        return -EBADMSG;
    if (strcmp(line, "ok") != 0 || counted != count)
        return -EPROTO;
    if (took_ns == 0 || took_ns > waited_ns ||
        waited_ns - took_ns > took_ns + CLUSTER_RESULT_SLACK_NS)
        return -ERANGE;
    *ret_took_ns = took_ns;
    return 0;
}

double cluster_result_sort_and_get_quantile(double *values, size_t count, double part)
{
    double place = part * (double)(count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < count ? below + 1 : below;

    /* measure_sort_and_get_median() is called only because it sorts the values */
    (void)measure_sort_and_get_median(values, count);
    return values[below] + (values[above] - values[below]) * (place - (double)below);
}
