/* domus config: reads its verb and options, and runs the verb. */
#include "tools/domus/config.h"

#include "tools/domus/say.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SET 1000 /* value of getopt_long() for the option --set */

static const struct verb {
    const char *name;
    int (*run)(const config_words *given);
    size_t least, most;  /* numbers of words that must, and may, follow the verb of domus config */
    const char *wants;   /* text for the error when other words follow the verb */
    const char *options; /* letters of the verb's options; 'S' is --set */
} verbs[] = {
    {"check", config_check_files, 1, SIZE_MAX, "FILE...", "xS"},
    {"show", config_print_values, 0, SIZE_MAX, "[FILE...]", "xScjps"},
    {"diff", config_print_differences, 1, 2, "[FILE] FILE", "xjps"},
    {"explain", config_print_explanation_of_keys, 0, SIZE_MAX, "[KEY...]", "xj"},
    {"schema", config_print_schema, 0, 0, "nothing", "x"},
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static const struct verb *find_subcommand_of_config(const char *name)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* Returns the letter of an option that was given but that the verb of domus config does not have;
 * 0: none. */
static char find_given_option_that_verb_lacks(const struct verb *verb, const config_words *given)
{
    const struct {
        char letter;
        bool is_given;
    } each[] = {{'x', given->exec != NULL},        {'S', given->set_count > 0},
                {'c', given->is_changed},          {'j', given->is_json},
                {'p', given->all.program != NULL}, {'s', given->all.endpoint != NULL}};

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        if (each[i].is_given && strchr(verb->options, each[i].letter) == NULL)
            return each[i].letter;
    }
    return 0;
}

static int check_arguments_and_run_config_verb(const struct verb *verb, config_words *given)
{
    char strange = find_given_option_that_verb_lacks(verb, given);

    if (strange == 'S')
        return options_print_usage_error(&given->all, "%s has no option '--set'", verb->name);
    if (strange != 0)
        return options_print_usage_error(&given->all, "%s has no option '-%c'", verb->name,
                                         strange);
    if (given->count < verb->least || given->count > verb->most)
        return options_print_usage_error(&given->all, "%s takes %s", verb->name, verb->wants);
    return verb->run(given);
}

/* Read the options of domus config, and find the verb. Returns it; NULL with the exit status of the
 * command. */
static const struct verb *read_config_options_and_find_verb(int argc, char **argv,
                                                            config_words *given)
{
    static const struct option longs[] = {{"exec", required_argument, NULL, 'x'},
                                          {"set", required_argument, NULL, SET},
                                          {"changed", no_argument, NULL, 'c'},
                                          {"json", no_argument, NULL, 'j'},
                                          OPTIONS_LONG};
    int option;

    while ((option = options_get_next(&given->all, argc, argv, OPTIONS_SHORT "x:cj", longs)) >= 0) {
        if (option == 'x')
            given->exec = optarg;
        else if (option == SET)
            given->sets[given->set_count++] = optarg;
        else if (option == 'c')
            given->is_changed = true;
        else
            given->is_json = true;
    }
    if (option == OPTIONS_STOP)
        return NULL;
    const struct verb *verb = optind < argc ? find_subcommand_of_config(argv[optind]) : NULL;
    if (verb == NULL)
        given->all.status = options_print_usage_error(
            &given->all, "the first word is check, show, diff, explain or schema");
    given->words = argv + optind + 1;
    given->count = verb != NULL ? (size_t)(argc - optind - 1) : 0;
    return verb;
}

static int run_command_config(const command *self, int argc, char **argv)
{
    config_words given = {.all = {.self = self}, .sets = calloc((size_t)argc, sizeof *given.sets)};

    if (given.sets == NULL) {
        say_print_error("no memory");
        return STATUS_FAILED;
    }
    const struct verb *verb = read_config_options_and_find_verb(argc, argv, &given);
    int status =
        verb != NULL ? check_arguments_and_run_config_verb(verb, &given) : given.all.status;
    free(given.sets);
    return status;
}

const command command_config = {
    .name = "config",
    .summary = "check, show, compare and explain configurations",
    .help = "usage: domus config check [-x PROGRAM] [--set KEY=VALUE] FILE...\n"
            "       domus config show [-x PROGRAM] [--set KEY=VALUE] FILE...\n"
            "       domus config show [-p PID|NAME | -s ENDPOINT]\n"
            "       domus config diff [-x PROGRAM] FILE FILE\n"
            "       domus config diff [-x PROGRAM] [-p PID|NAME | -s ENDPOINT] FILE\n"
            "       domus config explain [-x PROGRAM] [KEY...]\n"
            "       domus config schema [-x PROGRAM]\n"
            "\n"
            "check prints all that is wrong with files, show all values with their origins, diff\n"
            "what differs and whether a new value needs a restart, explain what a key does, and\n"
            "schema a JSON Schema for editors. Keys of a program's own are known with -x.\n"
            "\n"
            "  -x, --exec PROGRAM       the file of the program that reads the configuration\n"
            "      --set KEY=VALUE      set a key over the files, as the program's own --set\n"
            "  -c, --changed            show: only keys that are not at their defaults\n"
            "  -j, --json               show, diff, explain: print JSON\n" OPTIONS_HELP,
    .run = run_command_config,
};
