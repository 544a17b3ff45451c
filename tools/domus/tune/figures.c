/* Reads the figures of loads (figures.h). The outputs of known tools are matched by a table of
 * patterns, so if a tool changes a line, its figure is missing rather than wrong. */
#include "tools/domus/tune/figures.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 512 /* most bytes of a line of a load's output; longer lines are ignored */
#define VALUES_MAX     8   /* most values in the pattern of a line */
#define COLUMNS_MAX    16  /* most columns of a CSV line of redis-benchmark */

/* --- values ----------------------------------------------------------------------------------- */

static const struct unit {
    const char *name;
    double factor;
} units[] = {{"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6}, {"\xc2\xb5s", 1e-6},
             {"ns", 1e-9}, {"m", 60}, {"secs", 1},  {"k", 1e3},   {"M", 1e6},
             {"1/s", 1},   {"/s", 1}, {"req/s", 1}};

/* Read a decimal number at `*at`, and move behind it. Signs, infinities and hexadecimal numbers are
 * refused. Returns whether a number was read. */
static bool read_decimal_number(const char **at, double *ret_number)
{
    char *end;
    size_t digits = strspn(*at, "0123456789");

    if (digits == 0 || ((*at)[0] == '0' && tolower((unsigned char)(*at)[1]) == 'x'))
        return false;
    *ret_number = strtod(*at, &end);
    *at = end;
    return isfinite(*ret_number);
}

/* Returns the factor of a unit whose name has `length` bytes; 0 if it is unknown. */
static double get_factor_of_unit(const char *unit, size_t length)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == length && strncmp(units[i].name, unit, length) == 0)
            return units[i].factor;
    }
    return 0;
}

bool tune_value_read_with_unit(const char *text, double *ret_value)
{
    double number;

    text += strspn(text, " ");
    if (!read_decimal_number(&text, &number))
        return false;
    text += strspn(text, " ");
    size_t length = strcspn(text, " ");
    double factor = get_factor_of_unit(text, length);
    if (factor == 0 || text[length + strspn(text + length, " ")] != '\0')
        return false;
    *ret_value = number * factor;
    return true;
}

bool tune_is_figure_a_time(const char *name)
{
    return (name[0] == 'p' && isdigit((unsigned char)name[1])) || strcmp(name, "max") == 0 ||
           strcmp(name, "cpu") == 0 || strcmp(name, "seconds") == 0;
}

void tune_value_write_with_unit(const char *name, double value, char *ret_text, size_t size)
{
    static const struct {
        double least;
        const char *unit;
    } times[] = {{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}, {0, " ns"}},
      counts[] = {{1e6, " M"}, {1e3, " k"}, {0, ""}};
    size_t i = 0;

    if (tune_is_figure_a_time(name)) {
        while (value < times[i].least)
            i++;
        snprintf(ret_text, size, "%.4g%s", value / (i == 3 ? 1e-9 : times[i].least), times[i].unit);
    } else {
        while (value < counts[i].least)
            i++;
        snprintf(ret_text, size, "%.4g%s", value / (i == 2 ? 1 : counts[i].least), counts[i].unit);
    }
}

/* --- the set of figures ----------------------------------------------------------------------- */

static tune_figure *find_figure_by_name(tune_figures *figures, const char *name)
{
    for (size_t i = 0; i < figures->count; i++) {
        if (strcmp(figures->each[i].name, name) == 0)
            return &figures->each[i];
    }
    return NULL;
}

const tune_figure *tune_figures_find_by_name(const tune_figures *figures, const char *name)
{
    return find_figure_by_name((tune_figures *)(uintptr_t)figures, name);
}

bool tune_figures_set_figure(tune_figures *figures, const char *name, double value)
{
    tune_figure *figure = find_figure_by_name(figures, name);

    if (figure == NULL) {
        if (figures->count == TUNE_FIGURES_MAX)
            return false;
        figure = &figures->each[figures->count++];
        snprintf(figure->name, sizeof figure->name, "%s", name);
    }
    figure->value = value;
    return true;
}

/* Set a figure that a tool has printed: errors of several lines are added up, and so are figures
 * with a `+` before their names; for others the last line counts. */
static void set_or_add_up_figure_of_tool(tune_figures *figures, const char *name, double value)
{
    bool adds_up = name[0] == '+' || strcmp(name, "errors") == 0;
    name += name[0] == '+';
    const tune_figure *before = find_figure_by_name(figures, name);

    if (adds_up && before != NULL)
        value += before->value;
    (void)tune_figures_set_figure(figures, name, value);
}

/* --- the outputs of tools --------------------------------------------------------------------- */

/* A pattern for a line of a tool. In `text` a space stands for white space, `@` for a number, `^`
 * for a time with its unit, and a `*` at the end for anything. `names` has the name of each value;
 * "-": it is ignored; `+`: it is added to that of earlier lines. */
static const struct pattern {
    const char *text;
    const char *names;
    double factor;
} patterns[] = {
    {"Requests/sec: @", "rate", 1},            /* patterns of lines of wrk and hey */
    {"@ requests in ^,*", "count seconds", 1}, /* pattern of a line of wrk */
    {"50% ^", "p50", 1},
    {"90% ^", "p90", 1},
    {"99% ^", "p99", 1},
    {"Socket errors: connect @, read @, write @, timeout @", "errors errors errors errors", 1},
    {"Non-2xx or 3xx responses: @", "errors", 1},
    {"Requests per second: @ [*", "rate", 1}, /* ab */
    {"Time taken for tests: @ seconds", "seconds", 1},
    {"Complete requests: @", "count", 1},
    {"Failed requests: @", "errors", 1},
    {"Non-2xx responses: @", "errors", 1},
    {"50% @", "p50", 1e-3},
    {"90% @", "p90", 1e-3},
    {"95% @", "p95", 1e-3},
    {"99% @", "p99", 1e-3},
    {"100% @ (longest request)", "max", 1e-3},
    {"finished in ^, @ req/s,*", "seconds rate", 1}, /* patterns of lines of h2load */
    {"requests: @ total, @ started, @ done, @ succeeded, @ failed, @ errored, @ timeout",
     "- - - count errors - -", 1},
    {"time for request: ^ ^ ^ ^*", "- max - -", 1},
    {"Total: @ secs", "seconds", 1}, /* pattern of a line of hey */
    {"50%* in @ secs", "p50", 1},
    {"90%* in @ secs", "p90", 1},
    {"95%* in @ secs", "p95", 1},
    {"99%* in @ secs", "p99", 1},
    {"[4@] @ responses", "- errors", 1},
    {"[5@] @ responses", "- errors", 1},
    /* hey prints a line of this pattern for each HTTP status */
    {"[2@] @ responses", "- +count", 1},
};

/* Read a number that is followed by a unit of time, in seconds. */
static bool read_number_with_time_unit(const char **at, double *ret_seconds)
{
    if (!read_decimal_number(at, ret_seconds))
        return false;
    size_t length = strcspn(*at, " \t,");
    double factor = length > 0 ? get_factor_of_unit(*at, length) : 0;
    *at += length;
    *ret_seconds *= factor;
    return factor != 0;
}

/* Returns whether a line of a tool matches a pattern, whose values `ret_values` gets. */
static bool match_line_and_read_values_of_pattern(const char *line, const char *text,
                                                  double *ret_values)
{
    size_t count = 0;

    for (; *text != '\0'; text++) {
        if (*text == '*' && text[1] == '\0')
            return true;
        /* newer versions of hey print "50%%" where older ones print "50%" */
        if (*text == '*' && *line == '%') {
            line++;
        } else if (*text == ' ') {
            if (!isspace((unsigned char)*line))
                return false;
            line += strspn(line, " \t");
        } else if (*text == '@' || *text == '^') {
            if (!(*text == '@' ? read_decimal_number
                               : read_number_with_time_unit)(&line, &ret_values[count++]))
                return false;
        } else if (*text != '*' && *line++ != *text) {
            return false;
        }
    }
    return *line == '\0';
}

/* Read a line of a load's output into the figures. Returns whether it is a line of a known tool. */
static bool read_figures_if_line_is_of_known_tool(tune_figures *figures, const char *line)
{
    double values[VALUES_MAX] = {0};

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char names[64], *rest = names, *name;
        if (!match_line_and_read_values_of_pattern(line, patterns[i].text, values))
            continue;
        snprintf(names, sizeof names, "%s", patterns[i].names);
        for (size_t j = 0; (name = strsep(&rest, " ")) != NULL; j++) {
            if (strcmp(name, "-") != 0)
                set_or_add_up_figure_of_tool(figures, name, values[j] * patterns[i].factor);
        }
        return true;
    }
    /* hey prints no sum of its errors, so all of them count as one */
    if (strcmp(line, "Error distribution:") == 0)
        set_or_add_up_figure_of_tool(figures, "errors", 1);
    return strcmp(line, "Error distribution:") == 0;
}

/* --- redis-benchmark --csv -------------------------------------------------------------------- */

/* Split a line of CSV of the form "...","...". Returns the number of columns; 0 if it has another
 * form. */
static size_t split_line_of_csv(char *line, char *ret_columns[COLUMNS_MAX])
{
    size_t count = 0;

    while (*line == '"' && count < COLUMNS_MAX) {
        char *end = strchr(line + 1, '"');
        if (end == NULL)
            return 0;
        *end = '\0';
        ret_columns[count++] = line + 1;
        if (end[1] == '\0')
            return count;
        if (end[1] != ',')
            return 0;
        line = end + 2;
    }
    return 0;
}

/* The columns of redis-benchmark that are read. Several tests run one after the other, so their
 * rates are joined by the time for one request of each, and the worst latency counts. */
typedef struct table {
    int place[5]; /* index of the column of each name in `known`; -1: the column is missing */
    double seconds;
    size_t rows;
} table;

static const struct {
    const char *column, *name;
} known[5] = {{"rps", "rate"},
              {"p50_latency_ms", "p50"},
              {"p95_latency_ms", "p95"},
              {"p99_latency_ms", "p99"},
              {"max_latency_ms", "max"}};

static void read_titles_of_csv(table *to, char *const *columns, size_t count)
{
    for (int i = 0; i < 5; i++) {
        to->place[i] = -1;
        for (size_t j = 0; j < count; j++) {
            if (strcmp(columns[j], known[i].column) == 0)
                to->place[i] = (int)j;
        }
    }
}

static void add_figures_of_redis_benchmark_row(tune_figures *figures, table *to,
                                               char *const *columns, size_t count)
{
    for (int i = 0; i < 5; i++) {
        double value;
        if (to->place[i] < 0 || (size_t)to->place[i] >= count ||
            !tune_value_read_with_unit(columns[to->place[i]], &value))
            continue;
        const tune_figure *before = find_figure_by_name(figures, known[i].name);
        if (i == 0) {
            to->seconds += value > 0 ? 1 / value : INFINITY;
            value = (double)++to->rows / to->seconds;
        } else {
            value = before == NULL ? value / 1e3 : fmax(before->value, value / 1e3);
        }
        (void)tune_figures_set_figure(figures, known[i].name, value);
    }
}

/* Read a line of a load's output into the figures. Returns whether it is a line of
 * redis-benchmark. */
static bool read_line_if_of_redis_benchmark(tune_figures *figures, table *to, char *line)
{
    char *columns[COLUMNS_MAX];
    size_t count = line[0] == '"' ? split_line_of_csv(line, columns) : 0;

    if (count < 2)
        return false;
    if (strcmp(columns[0], "test") == 0)
        read_titles_of_csv(to, columns, count);
    else
        add_figures_of_redis_benchmark_row(figures, to, columns, count);
    return true;
}

/* --- own lines -------------------------------------------------------------------------------- */

static bool is_name_of_figure(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && (i == 0 || strchr("._-/", name[i]) == NULL))
            return false;
    }
    return length > 0 && length < TUNE_NAME_SIZE && isalpha((unsigned char)name[0]);
}

/* Read a line NAME VALUE [UNIT], as the benches of this tree print it, into the figures. Returns
 * false if such a line is invalid. */
static bool read_name_and_value_line_of_bench(tune_figures *figures, const char *line)
{
    char name[TUNE_NAME_SIZE];
    double value;
    size_t length = strcspn(line, " \t");
    const char *at = line + length;

    if (!is_name_of_figure(line, length) || *at == '\0')
        return true;
    at += strspn(at, " \t");
    if (!read_decimal_number(&at, &value) || (*at != '\0' && !isspace((unsigned char)*at)))
        return true;
    at += strspn(at, " \t");
    if (at[strcspn(at, " \t")] != '\0')
        return true; /* a line of more than three words is no line of this form */
    double factor = get_factor_of_unit(at, strlen(at));
    snprintf(name, sizeof name, "%.*s", (int)length, line);
    if (find_figure_by_name(figures, name) != NULL) {
        snprintf(figures->error, sizeof figures->error, "'%s' stands in its output twice", name);
        return false;
    }
    if (tune_figures_set_figure(figures, name, value * (factor != 0 ? factor : 1)))
        return true;
    snprintf(figures->error, sizeof figures->error, "its output has more than %d figures",
             TUNE_FIGURES_MAX);
    return false;
}

/* --- the whole output ------------------------------------------------------------------------- */

bool tune_figures_read_output(const char *text, size_t size, tune_figures *ret_figures)
{
    /* older versions of redis-benchmark print no head, so these are the columns */
    table csv = {.place = {1, -1, -1, -1, -1}};
    char line[LINE_MAX_BYTES];

    *ret_figures = (tune_figures){.count = 0};
    for (const char *at = text, *end; at < text + size; at = end + 1) {
        end = memchr(at, '\n', size - (size_t)(at - text));
        end = end != NULL ? end : text + size;
        while (at < end && isspace((unsigned char)*at))
            at++;
        size_t length = (size_t)(end - at);
        while (length > 0 && isspace((unsigned char)at[length - 1]))
            length--;
        if (length == 0 || length >= sizeof line || memchr(at, '\0', length) != NULL)
            continue;
        memcpy(line, at, length);
        line[length] = '\0';
        if (!read_line_if_of_redis_benchmark(ret_figures, &csv, line) &&
            !read_figures_if_line_is_of_known_tool(ret_figures, line) &&
            !read_name_and_value_line_of_bench(ret_figures, line))
            return false;
    }
    return true;
}
