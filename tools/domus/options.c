/* Options that several commands of domus share (options.h). */
#include "tools/domus/options.h"

#include "tools/domus/registry.h"
#include "tools/domus/say.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 8 /* most programs that an error names */

int options_print_usage_error(const options *all, const char *format, ...)
{
    char text[512], shown[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    escape_name_to_ascii(text, strlen(text), shown, sizeof shown);
    say_print_error("%s: %s (domus %s --help)", all->self->name, shown, all->self->name);
    return STATUS_USAGE;
}

int options_get_next(options *all, int argc, char **argv, const char *shorts,
                     const struct option *longs)
{
    for (;;) {
        int option = getopt_long(argc, argv, shorts, longs, NULL);
        switch (option) {
        case 'h':
            (void)fputs(all->self->help, stdout);
            all->status = STATUS_OK;
            return OPTIONS_STOP;
        case 'p':
            all->program = optarg;
            break;
        case 's':
            all->endpoint = optarg;
            break;
        case ':':
            all->status =
                options_print_usage_error(all, "option '%s' needs a value", argv[optind - 1]);
            return OPTIONS_STOP;
        case '?':
            if (optopt != 0 && strncmp(argv[optind - 1], "--", 2) != 0)
                all->status = options_print_usage_error(all, "there is no option '-%c'", optopt);
            else
                all->status =
                    options_print_usage_error(all, "there is no option '%s'", argv[optind - 1]);
            return OPTIONS_STOP;
        default:
            return option;
        }
    }
}

bool options_read_duration(const options *all, const char *text, long least, long most,
                           long *ret_ms)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"", 1000}};
    char *end = NULL;
    double number = text[0] >= '0' && text[0] <= '9' ? strtod(text, &end) : -1;

    for (size_t i = 0; end != NULL && i < sizeof units / sizeof units[0]; i++) {
        double ms = number * units[i].ms;
        if (strcmp(end, units[i].name) != 0 || !(ms >= (double)least) || !(ms <= (double)most))
            continue;
        *ret_ms = lround(ms);
        return true;
    }
    (void)options_print_usage_error(
        all, "'%s' is no time such as 500ms or 2s, from %ld ms to %ld s", text, least, most / 1000);
    return false;
}

bool options_read_number(const options *all, const char *text, long least, long most,
                         long *ret_number)
{
    char *end = NULL;

    errno = 0;
    long number = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    if (end == NULL || *end != '\0' || errno != 0 || number < least || number > most) {
        (void)options_print_usage_error(all, "'%s' is no number from %ld to %ld", text, least,
                                        most);
        return false;
    }
    *ret_number = number;
    return true;
}

/* --- choosing the program --------------------------------------------------------------------- */

static bool has_program_wanted_name_or_pid(const program *one, const char *wanted)
{
    char *end;
    long pid = strtol(wanted, &end, 10);

    return strcmp(one->name, wanted) == 0 || (wanted[0] != '\0' && *end == '\0' && one->pid == pid);
}

/* Print that the options mean several programs, and name some of them. */
static void print_that_several_programs_match(const program *each, size_t count, const char *wanted)
{
    char names[NAMED_MAX * 96] = "";
    size_t used = 0, told = 0;

    for (size_t i = 0; i < count && told < NAMED_MAX; i++) {
        if (wanted != NULL && !has_program_wanted_name_or_pid(&each[i], wanted))
            continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%ld (%s)",
                                 told == 0 ? "" : ", ", each[i].pid, each[i].name);
        told++;
    }
    say_print_error("several programs run: choose one by -p PID, of %s%s", names,
                    told == NAMED_MAX ? ", ..." : "");
}

/* Returns the one running program that the options mean; NULL after the reason was printed. */
static const program *find_only_program_that_matches(const program *each, size_t count,
                                                     const char *wanted)
{
    const program *chosen = NULL;
    char shown[128];

    for (size_t i = 0; i < count; i++) {
        if (wanted != NULL && !has_program_wanted_name_or_pid(&each[i], wanted))
            continue;
        if (chosen != NULL) {
            print_that_several_programs_match(each, count, wanted);
            return NULL;
        }
        chosen = &each[i];
    }
    if (chosen == NULL && wanted == NULL) {
        say_print_error(
            "no program with an observation port was found: its configuration needs the key "
            "observe.listen, such as unix:/run/NAME.sock; or name its port by -s");
    } else if (chosen == NULL) {
        escape_name_to_ascii(wanted, strlen(wanted), shown, sizeof shown);
        say_print_error(
            "no program '%s' with an observation port (key observe.listen) was found: see "
            "domus list",
            shown);
    }
    return chosen;
}

bool options_open_port_of_meant_program(const options *all, port *ret_port)
{
    const char *endpoint = all->endpoint;
    program *each = NULL;

    memset(ret_port, 0, sizeof *ret_port);
    if (endpoint != NULL && all->program != NULL) {
        (void)options_print_usage_error(all, "-p and -s name a program in two ways");
        return false;
    }
    if (endpoint == NULL) {
        size_t count = registry_list_running_programs(&each);
        const program *chosen = find_only_program_that_matches(each, count, all->program);
        endpoint = chosen != NULL ? chosen->endpoint : NULL;
    }
    bool is_open = endpoint != NULL && port_prepare_for_endpoint(ret_port, endpoint);
    if (endpoint != NULL && !is_open)
        say_print_error("%s", ret_port->error);
    free(each);
    return is_open;
}
