/* domus doctor: what is wrong with a program, and what to change. It takes two looks, through the
 * port or from two files, and judges by the same rules as the port (docs/doctor.md). */
#include "protocols/observe/doctor/lasting.h"
#include "protocols/observe/doctor/report.h"
#include "tools/domus/look.h"
#include "tools/domus/options.h"
#include "tools/domus/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ANSWER_MS  10000L
#define SECONDS_MS 10000L
#define LEAST_MS   200L
#define MOST_MS    86400000L

enum { STATUS_FOUND = 3 }; /* exit status of domus doctor if there are findings */

static domi_finding findings[DOMI_RULES_MAX];

/* Print a piece of the doctor's report; the type of this function is domi_report_sink. Findings are
 * printable ASCII already. */
static void print_report_text(void *out, const char *text, size_t size)
{
    (void)fwrite(text, 1, size, out);
}

static const domi_report *make_report_sink_of_stdout(void)
{
    static domi_report report = {.sink = print_report_text};

    report.context = stdout;
    return &report;
}

/* Sleep for some ms. Returns false if a signal has asked this program to end. */
static bool sleep_unless_signalled(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    return say_get_noted_signal() == 0 && nanosleep(&time, NULL) == 0;
}

/* --- judging two looks ------------------------------------------------------------------------ */

static int judge_two_looks_and_print_findings(const domi_look *before, const domi_look *after,
                                              bool as_json)
{
    domi_span span;
    const char *why = domi_span_init(before, after, &span);

    if (why != NULL) {
        say_print_error("%s", why);
        return STATUS_FAILED;
    }
    uint32_t count = domi_judge_span_by_all_rules(&span, findings);
    if (as_json)
        domi_report_findings_as_json(make_report_sink_of_stdout(), &span, findings, count);
    else
        domi_report_findings_as_text(make_report_sink_of_stdout(), &span, findings, count);
    domi_span_fini(&span);
    return count != 0 ? STATUS_FOUND : STATUS_OK;
}

static int read_two_files_and_print_findings(char *const names[], bool as_json)
{
    domi_look before = {0}, after = {0};
    int status = STATUS_FAILED;

    if (look_load_file(names[0], &before) && look_load_file(names[1], &after))
        status = judge_two_looks_and_print_findings(&before, &after, as_json);
    domi_look_free_lists(&before);
    domi_look_free_lists(&after);
    return status;
}

static int take_two_looks_and_print_findings(port *at, long ms, bool as_json)
{
    domi_look before = {0}, after = {0};
    int status = STATUS_FAILED;

    if (look_request_from_port(at, ANSWER_MS, &before) && sleep_unless_signalled(ms) &&
        look_request_from_port(at, ANSWER_MS, &after))
        status = judge_two_looks_and_print_findings(&before, &after, as_json);
    else if (say_get_noted_signal() == 0)
        say_print_error("%s", at->error);
    domi_look_free_lists(&before);
    domi_look_free_lists(&after);
    return status;
}

/* --- watching a program ----------------------------------------------------------------------- */

struct watch {
    /* what the doctor knows of each rule over several looks, by the number of the rule */
    domi_lasting lasting[DOMI_RULES_MAX];
    time_t begun[DOMI_RULES_MAX];
    domi_look before;
    bool has_before, is_lost, as_json;
};

static void print_time_of_day(time_t when)
{
    struct tm utc;
    char text[32] = "";

    if (gmtime_r(&when, &utc) != NULL)
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    (void)printf("%s ", text);
}

static const domi_finding *find_finding_of_rule(const domi_rule *rule, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (findings[i].rule == rule)
            return &findings[i];
    return NULL;
}

static void print_that_finding_begins(const domi_finding *finding)
{
    print_time_of_day(time(NULL));
    (void)printf("begins: %s: %s\n", finding->rule->name, finding->sentence);
    for (const char *line = finding->change; *line != '\0';) {
        size_t size = strcspn(line, "\n");
        (void)printf("    %.*s\n", (int)size, line);
        line += size + (line[size] == '\n');
    }
}

static void print_that_finding_has_ended(const domi_rule *rule, time_t begun)
{
    time_t now = time(NULL);

    print_time_of_day(now);
    (void)printf("ends: %s, after %lld s\n", rule->name, (long long)(now - begun));
}

static void print_which_findings_begin_or_end(struct watch *watch, uint32_t count)
{
    const domi_rule *rule;

    for (uint32_t i = 0; (rule = domi_rule_at_place_in_all_tables(i)) != NULL && i < DOMI_RULES_MAX;
         i++) {
        const domi_finding *finding = find_finding_of_rule(rule, count);
        domi_lasting_change change =
            domi_lasting_record_whether_rule_spoke(&watch->lasting[i], finding != NULL);
        if (change == DOMI_LASTING_BEGUN) {
            watch->begun[i] = time(NULL);
            print_that_finding_begins(finding);
        } else if (change == DOMI_LASTING_ENDED) {
            print_that_finding_has_ended(rule, watch->begun[i]);
        }
    }
}

/* Print once that the program does not answer, or that its looks make no span to be judged. */
static void print_once_why_judging_is_not_possible(struct watch *watch, const char *why)
{
    if (!watch->is_lost) {
        print_time_of_day(time(NULL));
        (void)printf("%s\n", why);
        (void)fflush(stdout);
    }
    watch->is_lost = true;
}

static void judge_span_since_last_look(struct watch *watch, const domi_look *after)
{
    domi_span span;
    const char *why = domi_span_init(&watch->before, after, &span);

    if (why != NULL) {
        print_once_why_judging_is_not_possible(watch, why);
        return;
    }
    watch->is_lost = false;
    print_which_findings_begin_or_end(watch, domi_judge_span_by_all_rules(&span, findings));
    domi_span_fini(&span);
}

static void take_next_look_and_judge_span(port *at, struct watch *watch)
{
    domi_look now;

    if (!look_request_from_port(at, ANSWER_MS, &now)) {
        if (say_get_noted_signal() == 0)
            print_once_why_judging_is_not_possible(watch, at->error);
        return;
    }
    if (watch->has_before)
        judge_span_since_last_look(watch, &now);
    domi_look_free_lists(&watch->before);
    watch->before = now;
    watch->has_before = true;
    (void)fflush(stdout);
}

/* Watch a program until a signal comes. Findings that last until then have not ended, so their end
 * is not printed. */
static int watch_program_until_signal(port *at, long ms)
{
    static struct watch watch;

    say_begin_to_note_signals();
    if (!look_request_from_port(at, ANSWER_MS, &watch.before)) {
        say_print_error("%s", at->error);
        return STATUS_FAILED;
    }
    watch.has_before = true;
    print_time_of_day(time(NULL));
    (void)printf("looks at %s (pid %" PRIu64 ")\n", watch.before.program, watch.before.pid);
    (void)fflush(stdout);
    while (sleep_unless_signalled(ms))
        take_next_look_and_judge_span(at, &watch);
    domi_look_free_lists(&watch.before);
    return STATUS_OK;
}

/* --- the command ------------------------------------------------------------------------------ */

static int run_command_doctor(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {{"seconds", required_argument, NULL, 'n'},
                                          {"watch", no_argument, NULL, 'w'},
                                          {"json", no_argument, NULL, 'j'},
                                          OPTIONS_LONG};
    options all = {.self = self};
    bool as_json = false, is_watched = false;
    int option, status = STATUS_FAILED;
    long ms = SECONDS_MS;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "jwn:", longs)) >= 0) {
        as_json = as_json || option == 'j';
        is_watched = is_watched || option == 'w';
        if (option == 'n' && !options_read_duration(&all, optarg, LEAST_MS, MOST_MS, &ms))
            return STATUS_USAGE;
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (is_watched && as_json)
        return options_print_usage_error(&all, "--watch prints lines, and no JSON");
    if (argc - optind == 2 && !is_watched && all.program == NULL && all.endpoint == NULL)
        return read_two_files_and_print_findings(argv + optind, as_json);
    if (optind < argc)
        return options_print_usage_error(&all,
                                         "takes two files BEFORE and AFTER, without -w, -p and -s");
    if (options_open_port_of_meant_program(&all, &at))
        status = is_watched ? watch_program_until_signal(&at, ms)
                            : take_two_looks_and_print_findings(&at, ms, as_json);
    port_close(&at);
    return status;
}

const command command_doctor = {
    .name = "doctor",
    .summary = "what is wrong with a program, and what to change",
    .help =
        "usage: domus doctor [OPTIONS]\n"
        "       domus doctor [-j] BEFORE AFTER\n"
        "\n"
        "Looks at a program for some seconds, and says in sentences what is wrong, why that is\n"
        "a limit, and the line of YAML to change (docs/doctor.md). BEFORE and AFTER are two\n"
        "saved answers of /profile?machine=1.\n"
        "\n"
        "  -n, --seconds TIME       how long it looks, such as 10s (the default) or 1m\n"
        "  -w, --watch              go on until Ctrl-C, and print what begins and what ends\n"
        "  -j, --json               as one line of JSON\n" OPTIONS_HELP "\n"
        "Exit status: 0 if nothing is wrong, 3 if something is, 1 and 2 as always.\n",
    .run = run_command_doctor,
};
