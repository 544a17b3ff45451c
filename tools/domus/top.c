/* domus top: the work of a program's threads and behaviours, on a terminal or as plain lines. */
#include "tools/domus/options.h"
#include "tools/domus/say.h"
#include "tools/domus/screen.h"
#include "tools/domus/view.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_MS 1000L
#define LEAST_MS    50L
#define MOST_MS     3600000L
#define COUNT_MAX   1000000000L
#define ANSWER_MS   10000L
#define BAR_WIDTH   40

/* --- plain lines ------------------------------------------------------------------------------ */

static void print_view_as_lines(const view *shown)
{
    char line[LINE_SIZE], bar[BAR_WIDTH + 1];

    view_write_first_line_of_top(shown, line, sizeof line);
    (void)printf("%s\n", line);
    view_write_totals(shown, line, sizeof line);
    (void)printf("%s\n%s\n", line, VIEW_LEGEND);
    for (uint32_t i = 0; i < shown->meter_count; i++) {
        view_write_bar_of_meter_as_letters(&shown->meters[i], BAR_WIDTH, bar);
        view_write_rates_of_meter(&shown->meters[i], line, sizeof line);
        (void)printf("%8s [%s] %s\n", shown->meters[i].label, bar, line);
    }
    if (shown->row_count == 0)
        return;
    (void)putchar('\n');
    for (int i = 0; i < COLUMNS_; i++) {
        int width;
        const char *name = view_get_title_of_column((column)i, &width);
        (void)printf("%*s%s", i == 0 ? width : width - 1, name,
                     i + 2 == COLUMNS_   ? "  "
                     : i + 1 == COLUMNS_ ? "\n"
                                         : " ");
    }
    for (uint32_t i = 0; i < shown->row_count; i++) {
        view_write_row(&shown->rows[i], line, sizeof line);
        (void)printf("%s\n", line);
    }
}

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&time, NULL);
}

/* Print the work of each interval as plain lines, without a terminal. */
static int take_samples_and_print_plain_lines(view *shown, port *from, long interval_ms, long count)
{
    if (!view_request_next_sample_from_port(shown, from, ANSWER_MS)) {
        say_print_error("%s", shown->trouble);
        return STATUS_FAILED;
    }
    for (long i = 0; count == 0 || i < count; i++) {
        sleep_ms(interval_ms);
        if (!view_request_next_sample_from_port(shown, from, ANSWER_MS)) {
            say_print_error("%s", shown->trouble);
            return STATUS_FAILED;
        }
        if (i > 0)
            (void)putchar('\n');
        print_view_as_lines(shown);
        if (fflush(stdout) != 0)
            return STATUS_FAILED;
    }
    return STATUS_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

/* Read the name of a column by which behaviours are sorted. Returns whether it is valid. */
static bool read_name_of_column(const char *text, column *ret_column)
{
    static const char *const names[COLUMNS_] = {
        [COLUMN_TIME] = "time",   [COLUMN_RUNS] = "runs",         [COLUMN_MESSAGES] = "messages",
        [COLUMN_WAIT] = "wait",   [COLUMN_FAILURES] = "failures", [COLUMN_ALIVE] = "alive",
        [COLUMN_BYTES] = "bytes", [COLUMN_NAME] = "name"};

    for (int i = 0; i < COLUMNS_; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *ret_column = (column)i;
            return true;
        }
    }
    return false;
}

static int run_command_top(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"batch", no_argument, NULL, 'b'},
                                          {"delay", required_argument, NULL, 'd'},
                                          {"iterations", required_argument, NULL, 'n'},
                                          {"sort", required_argument, NULL, 'o'},
                                          {"filter", required_argument, NULL, 'F'},
                                          OPTIONS_LONG};
    options all = {.self = self};
    static view shown;
    long interval_ms = INTERVAL_MS, count = 0;
    bool is_plain = !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO);
    int option, status = STATUS_FAILED;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "bd:n:o:", longs)) >= 0) {
        if (option == 'd' && !options_read_duration(&all, optarg, LEAST_MS, MOST_MS, &interval_ms))
            return STATUS_USAGE;
        if (option == 'n' && !options_read_number(&all, optarg, 1, COUNT_MAX, &count))
            return STATUS_USAGE;
        if (option == 'o' && !read_name_of_column(optarg, &shown.sort))
            return options_print_usage_error(&all, "'%s' is no column", optarg);
        if (option == 'F')
            snprintf(shown.filter, sizeof shown.filter, "%s", optarg);
        is_plain = is_plain || option == 'b';
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (options_open_port_of_meant_program(&all, &at))
        status = is_plain ? take_samples_and_print_plain_lines(&shown, &at, interval_ms, count)
                          : screen_show_program_until_end(&shown, &at, interval_ms, count);
    view_fini(&shown);
    port_close(&at);
    return status;
}

const command command_top = {
    .name = "top",
    .summary = "threads and behaviours as they work",
    .help = "usage: domus top [OPTIONS]\n"
            "\n"
            "Shows a bar for each thread, which its phases fill by their share of its time, and\n"
            "the behaviours of a program. h shows the keys. Where stdout is no terminal, it\n"
            "prints plain lines.\n"
            "\n"
            "  " VIEW_LEGEND "\n"
            "\n"
            "  -b, --batch              plain lines, also on a terminal\n"
            "  -d, --delay TIME         between two looks (1s; 50ms at least)\n"
            "  -n, --iterations N       end after so many looks\n"
            "  -o, --sort COLUMN        sort by time, runs, messages, wait, failures, alive,\n"
            "                           bytes or name\n"
            "      --filter TEXT        only behaviours whose name has this part\n" OPTIONS_HELP,
    .run = run_command_top,
};
