/* Opening a database: its driver is found by the scheme of the url, the options get their defaults,
 * and the actor of the driver is spawned with both. */
#include "protocols/sql/sql.h"

#include <domus/router.h>
#include <domus/system.h>

#include <stdio.h>
#include <stdlib.h>

#define MS   UINT64_C(1000000)
#define HOUR (3600 * UINT64_C(1000000000))
#define KIB  UINT64_C(1024)
#define OPTION(field)                                                                              \
#field, offsetof(domus_sql_options, field), sizeof(((domus_sql_options *)NULL)->field)

/* The options of a database that are numbers, with their ranges and defaults. */
static const struct option {
    const char *name;
    size_t offset;
    size_t size; /* bytes of the option's field: 4 or 8 */
    uint64_t low;
    uint64_t high;
    uint64_t preset; /* the value that is used if the option is 0 */
} rows[] = {
    {OPTION(connections_max), 1, 64, DOMUS_SQL_CONNECTIONS_MAX},
    {OPTION(connections_min), 0, 64, 0},
    {OPTION(queue_max), 1, 1000000, DOMUS_SQL_QUEUE_MAX},
    {OPTION(statements_max), 1, 65535, DOMUS_SQL_STATEMENTS_MAX},
    {OPTION(result_max), KIB, DOMUS_SLICE_MAX, DOMUS_SQL_RESULT_MAX},
    {OPTION(piece_size), KIB, KIB *KIB, DOMUS_SQL_PIECE},
    {OPTION(wait_ns), MS, HOUR, DOMUS_SQL_WAIT},
    {OPTION(timeout_ns), MS, 24 * HOUR, DOMUS_SQL_TIMEOUT},
    {OPTION(connect_timeout_ns), MS, HOUR, DOMUS_SQL_CONNECT_TIMEOUT},
    {OPTION(idle_ns), MS, 24 * HOUR, DOMUS_SQL_IDLE},
    {OPTION(transaction_idle_ns), MS, 24 * HOUR, DOMUS_SQL_TRANSACTION_IDLE},
    {OPTION(backoff_min_ns), MS, HOUR, DOMUS_SQL_BACKOFF_MIN},
    {OPTION(backoff_max_ns), MS, HOUR, DOMUS_SQL_BACKOFF_MAX},
    {OPTION(pipeline_max), 1, 64, DOMUS_SQL_PIPELINE_MAX},
    {OPTION(together_max), 1, 64, DOMUS_SQL_TOGETHER_MAX},
    {OPTION(queue_bytes_max), KIB, KIB *KIB *KIB *KIB, DOMUS_SQL_QUEUE_BYTES_MAX},
};

static uint64_t read_number_of_option(const domus_sql_options *options, const struct option *row)
{
    const char *field = (const char *)options + row->offset;
    uint64_t wide;
    uint32_t narrow;

    if (row->size == sizeof wide) {
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
    memcpy(&narrow, field, sizeof narrow);
    return narrow;
}

static void write_number_of_option(domus_sql_options *options, const struct option *row,
                                   uint64_t value)
{
    char *field = (char *)options + row->offset;
    uint32_t narrow = (uint32_t)value;

    if (row->size == sizeof value)
        memcpy(field, &value, sizeof value);
    else
        memcpy(field, &narrow, sizeof narrow);
}

/* Replace zeros in the options by their defaults. Returns 0; -EINVAL for a value out of its
 * range. */
static int set_defaults_and_check_options(domus_sql_options *options, char *error,
                                          size_t error_size)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t value = read_number_of_option(options, &rows[i]);

        if (value == 0)
            write_number_of_option(options, &rows[i], rows[i].preset);
        else if (value < rows[i].low || value > rows[i].high) {
            snprintf(error, error_size, "%s: %llu is not in %llu..%llu", rows[i].name,
                     (unsigned long long)value, (unsigned long long)rows[i].low,
                     (unsigned long long)rows[i].high);
            return -EINVAL;
        }
    }
    if (options->connections_min > options->connections_max) {
        snprintf(error, error_size, "connections_min: %u is more than connections_max, %u",
                 options->connections_min, options->connections_max);
        return -EINVAL;
    }
    /* only one of the two limits was given, and the default of the other one is on its wrong
     * side */
    if (options->backoff_max_ns < options->backoff_min_ns)
        options->backoff_max_ns = options->backoff_min_ns;
    return 0;
}

/* Returns whether a url begins with this scheme and a colon. Schemes are in small letters. */
static bool has_url_scheme(const char *url, const char *scheme)
{
    size_t size = strlen(scheme);

    return strncmp(url, scheme, size) == 0 && url[size] == ':';
}

/* Find the driver for the scheme of a url. Returns NULL if there is none. */
static const domus_sql_driver *find_driver_of_url(const char *url,
                                                  const domus_sql_driver *const *drivers)
{
    for (; drivers != NULL && *drivers != NULL; drivers++) {
        for (const char *const *scheme = (*drivers)->schemes; *scheme != NULL; scheme++) {
            if (has_url_scheme(url, *scheme))
                return *drivers;
        }
    }
    return NULL;
}

int domi_sql_make_settings(const char *url, const domus_sql_options *options, char *error,
                           size_t error_size, domus_sql_settings *ret_settings)
{
    domus_sql_settings settings = {.options = *options};

    if (strlen(url) >= sizeof settings.url) {
        snprintf(error, error_size, "the url has more than %zu bytes", sizeof settings.url - 1);
        return -EINVAL;
    }
    memcpy(settings.url, url, strlen(url) + 1);
    settings.driver = find_driver_of_url(url, options->drivers);
    if (settings.driver == NULL) {
        /* The characters of a url before its colon are no secret, so they are shown; without a
         * colon nothing is shown. */
        const char *colon = strchr(url, ':');

        snprintf(error, error_size, "no driver for the scheme \"%.*s\"",
                 colon != NULL && colon - url < 32 ? (int)(colon - url) : 0, url);
        return -EINVAL;
    }
    int result = set_defaults_and_check_options(&settings.options, error, error_size);
    if (result == 0)
        result = settings.driver->check(&settings, error, error_size);
    if (result == 0)
        *ret_settings = settings;
    return result;
}

int domus_sql_check(const char *url, const domus_sql_options *options, char *error,
                    size_t error_size)
{
    domus_sql_settings settings;

    return domi_sql_make_settings(url, options, error, error_size, &settings);
}

/* Make the initial state of a database's actor: the settings, followed by zeros for the driver's
 * own members. */
static int make_initial_state_of_actor(const char *url, const domus_sql_options *options,
                                       domus_sql_settings **ret_state)
{
    domus_sql_settings settings;
    char error[8];
    int result = domi_sql_make_settings(url, options, error, sizeof error, &settings);

    if (result != 0)
        return result;
    domus_sql_settings *state = calloc(1, settings.driver->behaviour->state_size);
    if (state == NULL)
        return -ENOMEM;
    *state = settings;
    *ret_state = state;
    return 0;
}

static uint32_t count_actors_of_driver(const domus_sql_driver *driver)
{
    return driver->per_thread ? DOMUS_PER_THREAD : 1;
}

int domus_sql_open(domus_stack *stack, const char *url, const domus_sql_options *options,
                   domus_sql *ret_sql)
{
    domus_sql_settings *state;
    domus_sql sql = {.transaction = 0};
    int error = make_initial_state_of_actor(url, options, &state);

    if (error != 0)
        return error;
    error = domus_spawn_many(stack, state->driver->behaviour, state,
                             count_actors_of_driver(state->driver), NULL, NULL, &sql.at);
    free(state);
    if (error == 0)
        *ret_sql = sql;
    return error;
}

int domus_outside_sql_open(struct domus_system *system, const char *url,
                           const domus_sql_options *options, domus_sql *ret_sql)
{
    domus_sql_settings *state;
    domus_sql sql = {.transaction = 0};
    int error = make_initial_state_of_actor(url, options, &state);

    if (error != 0)
        return error;
    error = domus_outside_spawn_many(system, state->driver->behaviour, state,
                                     count_actors_of_driver(state->driver), NULL, NULL, &sql.at);
    free(state);
    if (error == 0)
        *ret_sql = sql;
    return error;
}
