/* domus stat: how each thread spends its time, as a table or as lines of JSON, in intervals. */
#include "tools/domus/options.h"
#include "tools/domus/rates.h"
#include "tools/domus/say.h"

#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANSWER_MS 10000L
#define COUNT_MAX 1000000000L
#define LEAST_MS  10L
#define MOST_MS   86400000L
#define SHOWN     4

/* The counters that domus stat shows as events a second; stalls are so rare that their number is
 * shown. */
static const counter shown[SHOWN] = {COUNTER_RUNS, COUNTER_MESSAGES, COUNTER_PARKS, COUNTER_STEALS};

/* --- the table -------------------------------------------------------------------------------- */

static void print_titles_of_table(void)
{
    (void)printf("%-10s %6s %6s %6s %6s %6s %6s %6s %10s %10s %9s %9s %7s\n", "thread", "submit",
                 "sleep", "compl", "chann", "events", "state", "other", "runs/s", "msgs/s",
                 "parks/s", "steals/s", "stalls");
}

static void print_rates_in_row(const double *rates, const uint64_t *counts)
{
    (void)printf(" %10.0f %10.0f %9.0f %9.0f %7llu\n", rates[COUNTER_RUNS], rates[COUNTER_MESSAGES],
                 rates[COUNTER_PARKS], rates[COUNTER_STEALS],
                 (unsigned long long)counts[COUNTER_STALLS]);
}

static void print_shares_and_rates_of_thread(const char *name, const thread_rates *one)
{
    (void)printf("%-10s", name);
    for (int i = 0; i < PHASES; i++)
        (void)printf(" %6.1f", one->shares[i] * 100);
    print_rates_in_row(one->rates, one->counts);
}

static void print_rows_of_runners(const sample *before, const sample *now)
{
    char name[NAME_SIZE + 24];

    for (uint32_t i = 0; i < now->runner_count; i++) {
        runner_rates one;
        rates_between_samples_of_runner(before, now, i, &one);
        snprintf(name, sizeof name, "%s/%llu", now->runners[i].pool,
                 (unsigned long long)now->runners[i].runner);
        if (i == 0)
            (void)printf("%-24s %6s %6s %6s %26s %10s %9s %9s %7s\n", "runner", "run", "search",
                         "park", "turns/s", "msgs/s", "parks/s", "steals/s", "stalls");
        (void)printf("%-24s %6.1f %6.1f %6.1f %15s", name, one.run * 100, one.search * 100,
                     one.park * 100, "");
        print_rates_in_row(one.rates, one.counts);
    }
}

static void print_table_of_threads(const sample *before, const sample *now)
{
    thread_rates one;
    char name[24];

    print_titles_of_table();
    for (uint32_t i = 0; i < now->thread_count; i++) {
        rates_between_samples_of_thread(before, now, i, &one);
        snprintf(name, sizeof name, "%u", i);
        print_shares_and_rates_of_thread(name, &one);
    }
    if (now->thread_count > 1) {
        rates_between_samples_of_all_threads(before, now, &one);
        print_shares_and_rates_of_thread("all", &one);
    }
    print_rows_of_runners(before, now);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Round a number so that lines of JSON stay short. */
static json_t *make_short_json_real(double value)
{
    return json_real(round(value * 1e6) / 1e6);
}

static void add_rates_to_json(json_t *to, const double *rates, const uint64_t *counts)
{
    char name[64];

    for (size_t i = 0; i < SHOWN; i++) {
        snprintf(name, sizeof name, "%s_per_second", counter_names[shown[i]]);
        (void)json_object_set_new(to, name, make_short_json_real(rates[shown[i]]));
    }
    (void)json_object_set_new(to, "stalls", json_integer((json_int_t)counts[COUNTER_STALLS]));
}

static json_t *make_json_of_threads(const sample *before, const sample *now)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < now->thread_count; i++) {
        thread_rates one;
        json_t *thread = json_object(), *shares = json_object();
        rates_between_samples_of_thread(before, now, i, &one);
        (void)json_object_set_new(thread, "thread", json_integer(i));
        for (int phase = 0; phase < PHASES; phase++)
            (void)json_object_set_new(shares, phase_names[phase],
                                      make_short_json_real(one.shares[phase]));
        (void)json_object_set_new(thread, "shares", shares);
        add_rates_to_json(thread, one.rates, one.counts);
        (void)json_array_append_new(list, thread);
    }
    return list;
}

static json_t *make_json_of_runners(const sample *before, const sample *now)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < now->runner_count; i++) {
        runner_rates one;
        rates_between_samples_of_runner(before, now, i, &one);
        json_t *runner = json_pack(
            "{s:s, s:I, s:{s:o, s:o, s:o}}", "pool", now->runners[i].pool, "runner",
            (json_int_t)now->runners[i].runner, "shares", "run", make_short_json_real(one.run),
            "search", make_short_json_real(one.search), "park", make_short_json_real(one.park));
        add_rates_to_json(runner, one.rates, one.counts);
        (void)json_array_append_new(list, runner);
    }
    return list;
}

/* Print the rates of one interval as a line of JSON. Returns false without memory. */
static bool print_interval_as_json(const sample *before, const sample *now)
{
    json_t *line = json_pack(
        "{s:I, s:s, s:o, s:o, s:o}", "pid", (json_int_t)now->pid, "program", now->program,
        "seconds", make_short_json_real(rates_get_seconds_between(before, now)), "threads",
        make_json_of_threads(before, now), "runners", make_json_of_runners(before, now));
    bool is_printed =
        line != NULL && json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0;

    (void)putchar('\n');
    json_decref(line);
    return is_printed;
}

/* --- intervals -------------------------------------------------------------------------------- */

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

static bool print_rates_between_two_samples(const sample *before, const sample *now, bool is_json)
{
    bool is_printed = true;

    if (is_json)
        is_printed = print_interval_as_json(before, now);
    else
        print_table_of_threads(before, now);
    return fflush(stdout) == 0 && is_printed;
}

/* Print `count` times (0: no limit) what the threads have done in an interval. */
static int take_samples_and_print_intervals(port *at, long interval_ms, long count, bool is_json)
{
    sample before, now;
    int status = STATUS_OK;

    if (!sample_request_from_port(at, ANSWER_MS, &before)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    for (long i = 0; status == STATUS_OK && (count == 0 || i < count); i++) {
        sleep_ms(interval_ms);
        if (!sample_request_from_port(at, ANSWER_MS, &now)) {
            say_print_error("%s", at->error);
            status = STATUS_FAILED;
            break;
        }
        if (i > 0 && !is_json)
            (void)putchar('\n');
        if (!print_rates_between_two_samples(
                rates_can_samples_be_compared(&before, &now) ? &before : NULL, &now, is_json))
            status = STATUS_FAILED;
        sample_free(&before);
        before = now;
    }
    sample_free(&before);
    return status;
}

static int print_rates_since_start_of_program(port *at, bool is_json)
{
    sample now;

    if (!sample_request_from_port(at, ANSWER_MS, &now)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    bool is_printed = print_rates_between_two_samples(NULL, &now, is_json);
    sample_free(&now);
    return is_printed ? STATUS_OK : STATUS_FAILED;
}

static int run_command_stat(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, OPTIONS_LONG};
    options all = {.self = self};
    long interval_ms = 0, count = 0;
    bool is_json = false;
    int option, status = STATUS_FAILED;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "j", longs)) >= 0)
        is_json = true;
    if (option == OPTIONS_STOP)
        return all.status;
    if (argc - optind > 2)
        return options_print_usage_error(&all, "takes INTERVAL and COUNT, and not '%s'",
                                         argv[optind + 2]);
    if (argc - optind > 0 &&
        !options_read_duration(&all, argv[optind], LEAST_MS, MOST_MS, &interval_ms))
        return STATUS_USAGE;
    if (argc - optind > 1 && !options_read_number(&all, argv[optind + 1], 1, COUNT_MAX, &count))
        return STATUS_USAGE;
    if (options_open_port_of_meant_program(&all, &at))
        status = interval_ms > 0
                     ? take_samples_and_print_intervals(&at, interval_ms, count, is_json)
                     : print_rates_since_start_of_program(&at, is_json);
    port_close(&at);
    return status;
}

const command command_stat = {
    .name = "stat",
    .summary = "where each thread's time goes, in figures",
    .help = "usage: domus stat [OPTIONS] [INTERVAL [COUNT]]\n"
            "\n"
            "Prints the share of each phase in the time of each thread, in percent, and what it\n"
            "did: runs, messages, parks and steals a second, and how many stalls. Without an\n"
            "INTERVAL (500ms, 2s) since the program's start; otherwise of each interval, COUNT\n"
            "times or without an end.\n"
            "\n"
            "  -j, --json               a line of JSON for each interval; shares are "
            "0..1\n" OPTIONS_HELP,
    .run = run_command_stat,
};
