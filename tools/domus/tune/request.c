/* Reads the command line of `domus tune` (parts.h). */
#include "tools/domus/tune/parts.h"

#include "tools/domus/say.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAIRS_USUAL 9
#define START_MS    10000L
#define LOAD_MS     60000L
/* ms for the end of the service, longer than shutdown.drainTimeout (10 s) */
#define STOP_MS     15000L
#define TIME_MIN_MS 10L
#define TIME_MAX_MS 3600000L
#define LEAST_MAX   50.0 /* most percent for the option of the smallest difference that matters */
#define SEED_MAX    999999999L

enum {
    OPTION_SERVICE = 256,
    OPTION_LOAD,
    OPTION_KEYS,
    OPTION_VALUES,
    OPTION_GOAL,
    OPTION_KEEP,
    OPTION_READY,
    OPTION_RUNS,
    OPTION_PAIRS,
    OPTION_LEAST,
    OPTION_SEED,
    OPTION_LIMIT,
    OPTION_START,
    OPTION_STOP,
    OPTION_PLOT,
    OPTION_JSON,
    OPTION_DRY,
};

static const struct option longs[] = {
    {"service", required_argument, NULL, OPTION_SERVICE},
    {"load", required_argument, NULL, OPTION_LOAD},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"values", required_argument, NULL, OPTION_VALUES},
    {"goal", required_argument, NULL, OPTION_GOAL},
    {"keep", required_argument, NULL, OPTION_KEEP},
    {"ready", required_argument, NULL, OPTION_READY},
    {"runs", required_argument, NULL, OPTION_RUNS},
    {"pairs", required_argument, NULL, OPTION_PAIRS},
    {"least", required_argument, NULL, OPTION_LEAST},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"start-limit", required_argument, NULL, OPTION_START},
    {"stop-limit", required_argument, NULL, OPTION_STOP},
    {"plot", required_argument, NULL, OPTION_PLOT},
    {"json", required_argument, NULL, OPTION_JSON},
    {"dry-run", no_argument, NULL, OPTION_DRY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* --- single options --------------------------------------------------------------------------- */

/* Read the goal of a search: NAME, max:NAME or min:NAME. A goal without max or min is to be large
 * if it is a rate, and small otherwise. */
static bool read_goal_of_search(const options *all, const char *text, tune_request *request)
{
    const char *name = text;

    if (strncmp(text, "max:", 4) == 0 || strncmp(text, "min:", 4) == 0)
        name += 4;
    request->plan.is_more_better = name == text ? strcmp(name, "rate") == 0 : text[1] == 'a';
    size_t length = strlen(name);
    bool is_right = length > 0 && length < sizeof request->goal;
    for (size_t i = 0; i < length; i++)
        is_right &= isalnum((unsigned char)name[i]) || strchr("._-/", name[i]) != NULL;
    if (!is_right)
        (void)options_print_usage_error(all, "'%s' is no name of a figure such as rate, p99 or cpu",
                                        text);
    else
        snprintf(request->goal, sizeof request->goal, "%s", name);
    return is_right;
}

static bool add_bound_of_figure(const options *all, const char *text, tune_request *request)
{
    if (request->bounds_count == TUNE_BOUNDS_MAX) {
        (void)options_print_usage_error(all, "more than %d bounds", TUNE_BOUNDS_MAX);
        return false;
    }
    if (!tune_bound_read_text(text, &request->bounds[request->bounds_count])) {
        (void)options_print_usage_error(all, "'%s' is no bound such as 'p99 < 2ms'", text);
        return false;
    }
    request->bound_texts[request->bounds_count++] = text;
    return true;
}

static bool read_smallest_difference(const options *all, const char *text, double *ret_least)
{
    char *end = NULL;
    double percents = isdigit((unsigned char)text[0]) ? strtod(text, &end) : -1;

    if (end == NULL || (*end != '\0' && strcmp(end, "%") != 0) || !(percents > 0) ||
        !(percents <= LEAST_MAX)) {
        (void)options_print_usage_error(all, "'%s' is no percentage above 0, up to %.0f", text,
                                        LEAST_MAX);
        return false;
    }
    *ret_least = log1p(percents / 100);
    return true;
}

static bool read_keys_or_values_to_try(const options *all, int option, const char *text,
                                       tune_keys *keys)
{
    bool is_right = option == OPTION_KEYS ? tune_keys_add_comma_list_of_names(keys, text)
                                          : tune_keys_set_values_to_try(keys, text);

    if (!is_right)
        (void)options_print_usage_error(all, "%s", keys->error);
    return is_right;
}

static bool read_count_of_runs(const options *all, const char *text, long least, long most,
                               size_t *ret_count)
{
    long number;
    bool is_right = options_read_number(all, text, least, most, &number);

    if (is_right)
        *ret_count = (size_t)number;
    return is_right;
}

static bool read_seed_of_search(const options *all, const char *text, tune_request *request)
{
    long seed;

    request->has_seed = options_read_number(all, text, 0, SEED_MAX, &seed);
    if (request->has_seed)
        request->plan.seed = (uint64_t)seed;
    return request->has_seed;
}

static bool read_time_of_option(const options *all, const char *text, long *ret_ms)
{
    return options_read_duration(all, text, TIME_MIN_MS, TIME_MAX_MS, ret_ms);
}

/* Store an option of `domus tune` that is a text or a switch. */
static void store_text_or_switch(int option, tune_request *request)
{
    if (option == OPTION_SERVICE)
        request->setup.service = optarg;
    else if (option == OPTION_LOAD)
        request->setup.load = optarg;
    else if (option == OPTION_READY)
        request->setup.ready = optarg;
    else if (option == OPTION_PLOT)
        request->plot = optarg;
    else if (option == OPTION_JSON)
        request->json = optarg;
    else if (option == OPTION_DRY)
        request->is_dry = true;
}

/* Read one option of `domus tune`. Returns whether it is valid. */
static bool read_option_of_tune(const options *all, int option, tune_request *request)
{
    tune_plan *plan = &request->plan;

    switch (option) {
    case OPTION_KEYS:
    case OPTION_VALUES:
        return read_keys_or_values_to_try(all, option, optarg, &request->keys);
    case OPTION_GOAL:
        return read_goal_of_search(all, optarg, request);
    case OPTION_KEEP:
        return add_bound_of_figure(all, optarg, request);
    case OPTION_RUNS:
        return read_count_of_runs(all, optarg, 1, TUNE_RUNS_MAX, &plan->runs_max);
    case OPTION_PAIRS:
        return read_count_of_runs(all, optarg, TUNE_PAIRS_MIN, TUNE_PAIRS_MAX, &plan->pairs);
    case OPTION_LEAST:
        return read_smallest_difference(all, optarg, &plan->least);
    case OPTION_SEED:
        return read_seed_of_search(all, optarg, request);
    case OPTION_LIMIT:
        return read_time_of_option(all, optarg, &request->setup.load_ms);
    case OPTION_START:
        return read_time_of_option(all, optarg, &request->setup.start_ms);
    case OPTION_STOP:
        return read_time_of_option(all, optarg, &request->setup.stop_ms);
    default:
        store_text_or_switch(option, request);
        return true;
    }
}

/* --- the whole command line ------------------------------------------------------------------- */

/* Returns a seed for a search that differs from search to search, and is short enough to type. */
static uint64_t choose_seed_of_search(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)(now.tv_sec ^ now.tv_nsec) % 1000000;
}

/* Fill in the options of `domus tune` that the user has left out. Returns whether the search is
 * possible. */
static bool check_and_complete_options_of_tune(const options *all, tune_request *request)
{
    tune_plan *plan = &request->plan;

    if (request->setup.service == NULL || request->setup.load == NULL) {
        (void)options_print_usage_error(all, "needs --service and --load");
        return false;
    }
    const char *why = tune_shell_why_added_words_are_dropped(request->setup.service);
    if (why != NULL) {
        (void)options_print_usage_error(
            all,
            "--service %s, so the words behind it would not reach the program: "
            "write it as a script that hands on \"$@\"",
            why);
        return false;
    }
    if (request->keys.count == 0)
        tune_keys_add_all_of_table(&request->keys);
    plan->keys = request->keys.count;
    for (size_t i = 0; i < plan->keys; i++)
        plan->values[i] = request->keys.each[i].count;
    size_t least = tune_plan_least_number_of_runs(plan);
    if (plan->runs_max != 0 && plan->runs_max < least) {
        (void)options_print_usage_error(
            all, "--runs has to be at least %zu with these keys and pairs", least);
        return false;
    }
    if (plan->runs_max == 0)
        plan->runs_max = tune_plan_usual_number_of_runs(plan);
    if (!request->has_seed)
        plan->seed = choose_seed_of_search();
    return true;
}

bool tune_request_read_command_line(const command *self, int argc, char **argv,
                                    tune_request *ret_request, int *ret_status)
{
    options all = {.self = self};
    int option;

    *ret_request = (tune_request){
        .setup = {.start_ms = START_MS, .load_ms = LOAD_MS, .stop_ms = STOP_MS},
        .plan = {.pairs = PAIRS_USUAL, .least = log1p(0.02), .is_more_better = true},
        .goal = "rate",
        .argc = argc,
        .argv = argv,
    };
    *ret_status = STATUS_USAGE;
    while ((option = options_get_next(&all, argc, argv, ":h", longs)) >= 0) {
        if (!read_option_of_tune(&all, option, ret_request))
            return false;
    }
    if (option == OPTIONS_STOP) {
        *ret_status = all.status;
        return false;
    }
    if (optind < argc) {
        (void)options_print_usage_error(&all, "takes no '%s'", argv[optind]);
        return false;
    }
    return check_and_complete_options_of_tune(&all, ret_request);
}
