/* Turns the tables of options into those of getopt_long(), and does what the options say. */
#include "config/main_options.h"

#include "config/passes.h"
#include "config/reader.h"
#include "config/tree.h"

#include <domus/text.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_MAX    256 /* most bytes of a wrong argument that a message shows */
#define MESSAGE_SIZE 256
#define LEFT_SIZE    96 /* bytes of the left column of --help in one row, with a NUL */
/* most bytes of the name of an option, and of its value's name in --help */
#define LONG_NAME_MAX 31
#define TELL_CODE     255 /* code of --tell, which has no letter, as a result of getopt_long() */
/* code of the program's first long option as a result of getopt_long(); the others follow by row */
#define OWN_FIRST 256

/* The options of domus itself; getopt_long() returns their letter, or TELL_CODE. */
static const domus_option ours[] = {
    {.name = "config",
     .letter = 'c',
     .argument = "FILE",
     .help = "read the configuration (YAML); without it the defaults hold"},
    {.name = "set",
     .letter = 's',
     .argument = "KEY=VALUE",
     .help = "set one key over it, such as scheduler.ioRatio=60"},
    {.name = "tell",
     .argument = "WHAT",
     .help = "print keys or values as JSON, or check them, and end (docs/config.md)"},
    {.name = "help", .letter = 'h', .help = "print this"},
    {.name = NULL},
};

#define OURS (sizeof ours / sizeof ours[0] - 1)

/* The options as tables for getopt_long(). */
struct tables {
    struct option longs[OURS + DOMUS_OPTIONS_MAX + 1];
    char letters[1 + 2 * (OURS + DOMUS_OPTIONS_MAX) + 1];
};

/* --- the table -------------------------------------------------------------------------------- */

static bool is_letter_or_digit(char letter)
{
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9');
}

static bool is_option_name_valid(const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < length; i++)
        if (!is_letter_or_digit(name[i]) && (name[i] != '-' || i == 0))
            return false;
    return length > 0 && length <= LONG_NAME_MAX;
}

/* Returns whether an option before `end` in `options` has the name or the letter of `option`. */
static bool is_option_name_taken(const domus_option *options, const domus_option *end,
                                 const domus_option *option)
{
    for (; options != end; options++)
        if (strcmp(options->name, option->name) == 0 ||
            (option->letter != 0 && options->letter == option->letter))
            return true;
    return false;
}

/* Returns a text that says what is wrong with an option of the program's table, or NULL. */
static const char *find_fault_of_option(const domus_option *options, const domus_option *option)
{
    if (option - options >= DOMUS_OPTIONS_MAX)
        return "there are too many options";
    if (!is_option_name_valid(option->name))
        return "the name is none";
    if (option->letter != 0 && !is_letter_or_digit(option->letter))
        return "the letter is none";
    if (is_option_name_taken(ours, ours + OURS, option) ||
        is_option_name_taken(options, option, option))
        return "another option has its name or its letter";
    if (option->help == NULL)
        return "there is no help for it";
    if (option->argument != NULL && strlen(option->argument) > LONG_NAME_MAX)
        return "the name of its value is too long";
    if ((option->key == NULL) == (option->take == NULL))
        return "it needs either a key or a function";
    return NULL;
}

int domi_options_check_table(const domus_option *options, char *error, size_t error_size)
{
    for (const domus_option *option = options; option != NULL && option->name != NULL; option++) {
        const char *fault = find_fault_of_option(options, option);
        if (fault != NULL) {
            snprintf(error, error_size, "option '%s': %s", option->name, fault);
            return -EINVAL;
        }
    }
    return 0;
}

/* --- getopt ----------------------------------------------------------------------------------- */

static void add_option_to_tables(struct tables *tables, size_t row, const domus_option *option,
                                 int code)
{
    size_t used = strlen(tables->letters);

    tables->longs[row] = (struct option){
        option->name, option->argument != NULL ? required_argument : no_argument, NULL, code};
    if (option->letter != 0)
        snprintf(tables->letters + used, sizeof tables->letters - used, "%c%s", option->letter,
                 option->argument != NULL ? ":" : "");
}

static void make_tables_for_getopt(struct tables *tables, const domus_option *own)
{
    /* the colon makes getopt_long() return ':' for an option whose value is missing */
    *tables = (struct tables){.letters = ":"};
    for (size_t row = 0; row < OURS; row++)
        add_option_to_tables(tables, row, &ours[row],
                             ours[row].letter != 0 ? ours[row].letter : TELL_CODE);
    for (size_t row = 0; own != NULL && own[row].name != NULL; row++)
        add_option_to_tables(tables, OURS + row, &own[row], OWN_FIRST + (int)row);
}

/* Begin a pass of getopt_long() over the arguments. */
static void prepare_getopt_for_new_pass(void)
{
    /* getopt_long() prints no errors, because it would print an argument without escapes */
    opterr = 0;
    optind = 0; /* 0 makes getopt_long() begin anew, also if a pass has ended within "-ab" */
}

static int read_next_option_by_getopt(const struct tables *tables,
                                      const struct domi_arguments *arguments)
{
    return getopt_long(arguments->argc, arguments->argv, tables->letters, tables->longs, NULL);
}

/* Returns the program's option that has this code of getopt_long(), or NULL. */
static const domus_option *find_program_option(const domus_option *own, int code)
{
    for (int row = 0; own != NULL && own[row].name != NULL; row++)
        if (code == OWN_FIRST + row || (own[row].letter != 0 && code == own[row].letter))
            return &own[row];
    return NULL;
}

/* --- what is printed -------------------------------------------------------------------------- */

void domi_options_print_fault(const char *name, const char *argument, const char *what)
{
    char shown[SHOWN_MAX];

    (void)domus_text_escape(argument, strlen(argument), shown, sizeof shown);
    fprintf(stderr, "%s: %s: %s\n", name, shown, what);
}

/* Write the left column of --help, such as "-p, --port PORT". Returns its width. */
static int write_left_column_of_help(const domus_option *option, char left[LEFT_SIZE])
{
    char letter[] = "    ";

    if (option->letter != 0)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    return snprintf(left, LEFT_SIZE, "%s--%s%s%s", letter, option->name,
                    option->argument != NULL ? " " : "",
                    option->argument != NULL ? option->argument : "");
}

/* Returns the width that the left column of --help needs for a table of options, at least
 * `width`. */
static int get_width_of_left_column_of_help(const domus_option *options, int width)
{
    char left[LEFT_SIZE];

    for (; options != NULL && options->name != NULL; options++) {
        int length = write_left_column_of_help(options, left);
        width = length > width ? length : width;
    }
    return width;
}

static void print_table_of_options(FILE *to, const domus_option *options, int width)
{
    char left[LEFT_SIZE];

    for (; options != NULL && options->name != NULL; options++) {
        (void)write_left_column_of_help(options, left);
        fprintf(to, "  %-*s  %s\n", width, left, options->help);
    }
}

static void print_usage(FILE *to, const domus_program *program)
{
    const domus_option *own = program->options;
    int width = get_width_of_left_column_of_help(ours, get_width_of_left_column_of_help(own, 0));

    fprintf(to, "usage: %s%s [--config FILE] [--set KEY=VALUE ...]\n", program->name,
            own != NULL ? " [OPTION ...]" : "");
    print_table_of_options(to, own, width);
    print_table_of_options(to, ours, width);
}

/* Print which option is wrong, and why. `code` is what getopt_long() returned for it. */
static void print_fault_of_option(const struct domi_arguments *arguments, int code)
{
    const domus_program *program = arguments->program;
    const char *argument = arguments->argv[optind - 1];
    const char letter[] = {'-', (char)optopt, '\0'};

    if (code == ':')
        domi_options_print_fault(program->name, argument, "its value is missing");
    else if (optopt == 0)
        domi_options_print_fault(program->name, argument, "unknown option");
    else if (find_program_option(program->options, optopt) != NULL || strchr("csh", optopt) != NULL)
        domi_options_print_fault(program->name, argument, "takes no value");
    else /* getopt_long() has not yet left an argument with several letters, one of them unknown */
        domi_options_print_fault(program->name, letter, "unknown option");
}

/* Find the word that was given with --tell. Returns whether it is a known word; if not, an error is
 * printed. */
static bool find_known_word_of_tell_option(const char *program, const char *word,
                                           domi_tell *ret_tell)
{
    for (int i = DOMI_TELL_KEYS; domi_tell_words[i] != NULL; i++) {
        if (strcmp(domi_tell_words[i], word) != 0)
            continue;
        *ret_tell = (domi_tell)i;
        return true;
    }
    domi_options_print_fault(program, word, "--tell takes keys, values or check");
    return false;
}

int domi_options_check_arguments(const struct domi_arguments *arguments, domi_tell *ret_tell)
{
    const domus_program *program = arguments->program;
    struct tables tables;
    int code;

    *ret_tell = DOMI_TELL_NOTHING;
    make_tables_for_getopt(&tables, program->options);
    prepare_getopt_for_new_pass();
    while ((code = read_next_option_by_getopt(&tables, arguments)) != -1) {
        if (code == TELL_CODE && !find_known_word_of_tell_option(program->name, optarg, ret_tell))
            return DOMI_STATUS_USAGE;
        if (code == 'h') {
            print_usage(stdout, program);
            return DOMI_STATUS_OK;
        }
        if (code == '?' || code == ':') {
            print_fault_of_option(arguments, code);
            print_usage(stderr, program);
            return DOMI_STATUS_USAGE;
        }
    }
    if (optind == arguments->argc)
        return -1;
    domi_options_print_fault(program->name, arguments->argv[optind], "unexpected argument");
    print_usage(stderr, program);
    return DOMI_STATUS_USAGE;
}

/* --- what the options say --------------------------------------------------------------------- */

/* The parameters of domi_options_read_configuration(), for the functions below: where it reads to
 * and how it reports. */
struct reading {
    const domus_program *program;
    bool again;
    domus_yaml *yaml;
    const struct domi_options_faults *faults;
};

static bool read_configuration_file(const struct reading *reading, const char *path)
{
    size_t told = strlen(domus_yaml_errors(reading->yaml));
    int result = domus_yaml_load(reading->yaml, path);

    /* report the errno only if the reader has added no error, because its errors say why and are
     * printed */
    if (result != 0 && strlen(domus_yaml_errors(reading->yaml)) == told)
        reading->faults->report(reading->faults->context, path, strerror(-result));
    return result == 0;
}

/* Carry out one of the program's options; `value` is NULL if it takes none. Returns whether it was
 * right; if not, the fault was reported. */
static bool carry_out_program_option(const struct reading *reading, const domus_option *option,
                                     const char *value)
{
    char assignment[DOMI_YAML_PATH_SIZE + DOMI_YAML_VALUE_MAX + 2], shown[LONG_NAME_MAX + 3];
    char message[MESSAGE_SIZE] = "is refused";
    bool taken;

    snprintf(shown, sizeof shown, "--%s", option->name);
    if (option->take != NULL) {
        taken = reading->again ||
                option->take(value, reading->program->argument, message, sizeof message) >= 0;
    } else {
        if (value == NULL)
            value = option->value != NULL ? option->value : "true";
        int length = snprintf(assignment, sizeof assignment, "%s=%s", option->key, value);
        snprintf(message, sizeof message, "the value is too long");
        taken = (size_t)length < sizeof assignment;
        if (taken)
            return domi_yaml_set_value_from_source(reading->yaml, shown, assignment) == 0;
    }
    if (!taken)
        reading->faults->report(reading->faults->context, shown, message);
    return taken;
}

bool domi_options_read_configuration(const struct domi_arguments *arguments, bool again,
                                     domus_yaml *yaml, const struct domi_options_faults *faults)
{
    const struct reading reading = {
        .program = arguments->program, .again = again, .yaml = yaml, .faults = faults};
    struct tables tables;
    bool right = true;
    int code;

    make_tables_for_getopt(&tables, reading.program->options);
    prepare_getopt_for_new_pass();
    while ((code = read_next_option_by_getopt(&tables, arguments)) != -1)
        if (code == 'c')
            right = read_configuration_file(&reading, optarg) && right;
    prepare_getopt_for_new_pass();
    while ((code = read_next_option_by_getopt(&tables, arguments)) != -1) {
        const domus_option *own = find_program_option(reading.program->options, code);
        if (code == 's')
            right = domus_yaml_set(yaml, optarg) == 0 && right;
        else if (own != NULL)
            right = carry_out_program_option(&reading, own, optarg) && right;
    }
    return right && domus_yaml_finish(yaml) == 0;
}
