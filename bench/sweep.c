/* The sweep: which values of the keys that steer the loop are the best for each of ten loads.
 *
 * bench_sweep [--rounds N] [--seconds N] [--keys KEY,...] [LOAD ...]
 * bench_sweep serve LOAD PORT [OPTION ...]
 * bench_sweep load LOAD PORT [--seconds N] [--watch PID]
 *
 * The first form measures each value of each key alone (sweep_values.h), with defaults for all
 * other keys, in rounds in which all values take turns, each with a fresh service. For each value
 * it prints a line `load key value rate p50 p90 p99 cpu gain` of medians: requests a second, us,
 * us, us, us of the service's CPU for a request; `gain` is the figure by which the load is judged
 * as a ratio to that of the default in the same round, above 1 if the value is better. Progress
 * goes to stderr. Exit 1 on a wrong result.
 *
 * The second form becomes the service of a load, with further options such as `--set KEY=VALUE`;
 * the third one is the load, and prints lines `name value unit`. These two forms are for other
 * programs that measure, such as `domus tune`. */
#include "bench/support/command.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/support/server.h"
#include "bench/sweep_load.h"
#include "bench/sweep_serve.h"
#include "bench/sweep_values.h"
#include "bench/tls_client.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_MAX  100u
#define SECONDS_MAX 60.0

enum { RATE, P50, P90, P99, CPU, FIGURES };

static const char *const names[FIGURES] = {"rate", "p50", "p90", "p99", "cpu"};
static const int goals[] = {[SWEEP_RATE] = RATE, [SWEEP_P90] = P90, [SWEEP_CPU] = CPU};

static struct {
    uint32_t rounds;
    double seconds;
    const char *keys; /* names of the keys that are to be swept, with commas; NULL: all */
    pid_t watched;
} chosen = {.rounds = 5, .seconds = 1};

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: bench_sweep [--rounds N] [--seconds N] [--keys KEY,...] [LOAD ...]\n"
                    "       bench_sweep serve LOAD PORT [OPTION ...]\n"
                    "       bench_sweep load LOAD PORT [--seconds N] [--watch PID]\n"
                    "loads:");
    for (uint32_t i = 0; i < SWEEP_ROWS; i++)
        fprintf(stderr, " %s", sweep_rows[i].name);
    fprintf(stderr, "\nkeys:");
    for (uint32_t i = 0; i < SWEEP_KEYS_COUNT; i++)
        fprintf(stderr, " %s", sweep_keys[i].name);
    fprintf(stderr, "\n");
    exit(2);
}

static void parse_options(int argc, char **argv)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"keys", required_argument, NULL, 'k'},
                                            {"watch", required_argument, NULL, 'w'},
                                            {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            chosen.rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            chosen.seconds = strtod(optarg, NULL);
        else if (option == 'k')
            chosen.keys = optarg;
        else if (option == 'w')
            chosen.watched = (pid_t)strtol(optarg, NULL, 10);
        else
            usage();
    }
    if (chosen.rounds < 1 || chosen.rounds > ROUNDS_MAX || !(chosen.seconds > 0) ||
        chosen.seconds > SECONDS_MAX)
        usage();
}

static uint16_t parse_port(const char *text)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || port > UINT16_MAX)
        usage();
    return (uint16_t)port;
}

/* --- the roles of a service and of a load ----------------------------------------------------- */

static int execute_service_of_row(const struct sweep_row *row, uint16_t port, char *const options[])
{
    char key[TLS_CLIENT_PEM_MAX];
    int size = row->is_secure ? tls_client_make_key(key) : 0;
    int error =
        size < 0 ? size : sweep_execute_service_of_row(row, port, options, key, (size_t)size);

    fprintf(stderr, "bench_sweep: %s: %s\n", row->program, strerror(-error));
    return EXIT_FAILURE;
}

static int run_load_of_row(const struct sweep_row *row, uint16_t port)
{
    struct request_load_link link = {0};
    struct request_load_result result;

    if (row->is_secure)
        link = tls_client_make_link_for_load(tls_client_make_context());
    int error = sweep_load_run_on_service(
        &(struct sweep_load){.row = row,
                             .port = port,
                             .watched = chosen.watched,
                             .duration_ns = (uint64_t)(chosen.seconds * 1e9),
                             .link = &link},
        &result);
    if (error != 0) {
        fprintf(stderr, "bench_sweep: load %s: %s\n", row->name, strerror(-error));
        printf("errors 1\n");
        return EXIT_FAILURE;
    }
    printf("rate %.1f /s\np50 %.1f us\np90 %.1f us\n", result.rate, result.p50_us, result.p90_us);
    printf("p99 %.1f us\nrequests %llu\n", result.p99_us, (unsigned long long)result.requests);
    printf("busy %.2f of its CPU\nerrors 0\n", result.busy);
    if (chosen.watched != 0)
        printf("cpu %.3f us\n", (double)result.watched_cpu_ns * 1e-3 / (double)result.requests);
    return 0;
}

/* --- the sweep -------------------------------------------------------------------------------- */

static char self[PATH_MAX];

/* The figures of a row for each value of the current key, in each round. */
static double figures[SWEEP_VALUES_MAX][FIGURES][ROUNDS_MAX];

static int measure_load_on_service(const struct sweep_row *row, const struct server *server,
                                   double *ret_figures)
{
    struct command_result result;
    char port[8], seconds[32], watched[16];
    char *arguments[] = {self,
                         (char[]){"load"},
                         (char *)(uintptr_t)row->name,
                         port,
                         (char[]){"--seconds"},
                         seconds,
                         (char[]){"--watch"},
                         watched,
                         NULL};
    const struct command command = {
        .arguments = arguments, .cpus = 2, .seconds_max = (uint32_t)chosen.seconds + 30};

    snprintf(port, sizeof port, "%u", server->port);
    snprintf(seconds, sizeof seconds, "%.3f", chosen.seconds);
    snprintf(watched, sizeof watched, "%d", (int)server->pid);
    int error = command_run_and_read_figures(&command, &result);
    for (int i = 0; error == 0 && i < FIGURES; i++)
        ret_figures[i] = command_first_figure_of_name(&result, names[i]);
    return error;
}

/* Start the service of a row with a value of a key, run the load on it, and end it. Returns 0 or a
 * negative errno. */
static int measure_value_of_key(const struct sweep_row *row, const struct sweep_key *key,
                                const char *value, double *ret_figures)
{
    struct server server;
    struct server_usage usage;
    char setting[128];
    char *arguments[] = {self,          (char[]){"serve"}, (char *)(uintptr_t)row->name,
                         (char[]){"0"}, (char[]){"--set"}, setting,
                         NULL};

    snprintf(setting, sizeof setting, "%s=%s", key->name, value);
    int error = server_start(&server, SERVER_ANY_CPU, arguments);
    if (error == 0) {
        error = measure_load_on_service(row, &server, ret_figures);
        int end = server_stop(&server, &usage);
        error = error != 0 ? error : end;
    }
    if (error != 0)
        fprintf(stderr, "sweep: %s with %s: %s\n", row->name, setting, strerror(-error));
    return error;
}

/* Run a round over all values of a key; each round begins with another value. */
static int measure_all_values_of_key_once(const struct sweep_row *row, const struct sweep_key *key,
                                          uint32_t round)
{
    uint32_t count = sweep_count_values_of_key(key);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t which = (round + i) % count;
        double got[FIGURES];
        int error = measure_value_of_key(row, key, key->values[which], got);

        if (error != 0)
            return error;
        for (int j = 0; j < FIGURES; j++)
            figures[which][j][round] = got[j];
    }
    return 0;
}

/* Returns the gain of a value: the median of the ratios of its figure to that of the default, which
 * is the first value. */
static double get_gain_of_value_over_default(const struct sweep_row *row, uint32_t which)
{
    int goal = goals[row->goal];
    double ratios[ROUNDS_MAX];

    for (uint32_t i = 0; i < chosen.rounds; i++) {
        double ratio = figures[which][goal][i] / figures[0][goal][i];
        ratios[i] = goal == RATE ? ratio : 1 / ratio;
    }
    return measure_sort_and_get_median(ratios, chosen.rounds);
}

static void print_results_of_key(const struct sweep_row *row, const struct sweep_key *key)
{
    uint32_t count = sweep_count_values_of_key(key);
    double gains[SWEEP_VALUES_MAX];

    /* the gains come before the medians, because medians sort the rounds */
    for (uint32_t which = 0; which < count; which++)
        gains[which] = get_gain_of_value_over_default(row, which);
    for (uint32_t which = 0; which < count; which++) {
        printf("%s %s %s", row->name, key->name, key->values[which]);
        for (int j = 0; j < FIGURES; j++)
            printf(j == CPU ? " %.3f" : " %.1f",
                   measure_sort_and_get_median(figures[which][j], chosen.rounds));
        printf(" %.3f\n", gains[which]);
    }
    fflush(stdout);
}

static int measure_and_print_values_of_key(const struct sweep_row *row, const struct sweep_key *key)
{
    for (uint32_t round = 0; round < chosen.rounds; round++) {
        int error = measure_all_values_of_key_once(row, key, round);
        if (error != 0)
            return error;
        fprintf(stderr, "sweep: %s %s, round %u of %u\n", row->name, key->name, round + 1,
                chosen.rounds);
    }
    print_results_of_key(row, key);
    return 0;
}

static int sweep_wanted_rows_and_keys(int count, char *const *wanted)
{
    for (uint32_t i = 0; i < SWEEP_ROWS; i++) {
        for (uint32_t j = 0; j < SWEEP_KEYS_COUNT; j++) {
            if (!options_is_name_wanted(count, wanted, sweep_rows[i].name) ||
                !sweep_key_is_wanted(&sweep_keys[j], &sweep_rows[i], chosen.keys))
                continue;
            if (measure_and_print_values_of_key(&sweep_rows[i], &sweep_keys[j]) != 0)
                return EXIT_FAILURE;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *role = argc > 1 ? argv[1] : "";
    bool is_serve = strcmp(role, "serve") == 0;

    if (is_serve || strcmp(role, "load") == 0) {
        const struct sweep_row *row = argc > 3 ? sweep_find_row_by_name(argv[2]) : NULL;
        if (row == NULL)
            usage();
        if (is_serve)
            return execute_service_of_row(row, parse_port(argv[3]), argv + 4);
        parse_options(argc - 3, argv + 3);
        return run_load_of_row(row, parse_port(argv[3]));
    }
    parse_options(argc, argv);
    for (int i = optind; i < argc; i++) {
        if (sweep_find_row_by_name(argv[i]) == NULL)
            usage();
    }
    if (command_find_program_beside("bench_sweep", self) != 0)
        return EXIT_FAILURE;
    printf("load key value rate p50 p90 p99 cpu gain\n");
    return sweep_wanted_rows_and_keys(argc - optind, argv + optind);
}
