/* domus actors: what the actors of a program do, by their behaviour, their state and the time for
 * which they wait. */
#include "tools/domus/dump.h"
#include "tools/domus/options.h"
#include "tools/domus/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ANSWER_MS  30000L
#define PAGE_COUNT 100u
#define PAGES_MAX  100000u
#define LIMIT      1000L
#define LIMIT_MAX  100000L

/* A search of domus actors: which actors are wanted, and those that were found. */
typedef struct search {
    const char *behaviour, *state; /* behaviour and state of the wanted actors; NULL: any */
    bool is_full;                  /* print the text that the dump has for each actor found */
    size_t limit;
    size_t count, room;
    actor *each;
    bool is_cut; /* more actors were found than the limit of the search allows */
} search;

static bool has_actor_wanted_state(const search *wanted, const actor *one)
{
    return wanted->state == NULL || strcasecmp(wanted->state, one->state) == 0;
}

/* Keep an actor that the search has found. Returns false without memory. */
static bool append_actor_to_found_ones(search *found, const actor *one)
{
    if (found->count == found->room) {
        size_t room = found->room * 2 + 64;
        actor *larger = realloc(found->each, room * sizeof *larger);
        if (larger == NULL)
            return false;
        found->each = larger;
        found->room = room;
    }
    found->each[found->count++] = *one;
    return true;
}

/* Read the actors of one page of the dump. Returns how many there are; -1 without memory. */
static long find_wanted_actors_in_page_of_dump(search *found, const char *page)
{
    const char *text;
    size_t size;
    long count = 0;
    actor one;

    for (; dump_read_next_actor(&page, &one, &text, &size); count++) {
        if (!has_actor_wanted_state(found, &one))
            continue;
        if (found->count == found->limit) {
            found->is_cut = true;
            break;
        }
        if (found->is_full)
            say_print_untrusted_text(stdout, text, size);
        if (!append_actor_to_found_ones(found, &one))
            return -1;
    }
    return count;
}

/* Print which threads do not answer, so that their actors are not described. */
static void print_stuck_threads(const char *page)
{
    size_t size;

    for (const char *line; (line = dump_find_next_stuck_thread(&page, &size)) != NULL;) {
        say_print_untrusted_text(stdout, line, size);
        (void)putchar('\n');
    }
}

/* Get all pages of the dump from the program. A page that is cut is requested again with fewer
 * actors. */
static int request_and_search_all_pages_of_dump(port *at, search *found)
{
    char path[512], name[3 * DUMP_NAME + 1] = "";
    unsigned from = 0, count = PAGE_COUNT;

    if (found->behaviour != NULL && !port_escape_query_value(found->behaviour, name, sizeof name)) {
        say_print_error("the name of a behaviour has at most 63 bytes");
        return STATUS_USAGE;
    }
    for (unsigned page = 0; page < PAGES_MAX && !found->is_cut; page++) {
        port_text answer;
        snprintf(path, sizeof path, "/actors?from=%u&count=%u%s%s", from, count,
                 found->behaviour != NULL ? "&behaviour=" : "", name);
        if (!port_get_and_collect_answer(at, path, ANSWER_MS, &answer)) {
            say_print_error("%s", at->error);
            return STATUS_FAILED;
        }
        if (dump_does_text_say_actors_were_left_out(answer.at) && count > 1) {
            count /= 2;
            free(answer.at);
            continue;
        }
        if (page == 0 || from == 0)
            print_stuck_threads(answer.at);
        long taken = find_wanted_actors_in_page_of_dump(found, answer.at);
        free(answer.at);
        if (taken < 0) {
            say_print_error("no memory");
            return STATUS_FAILED;
        }
        if (taken == 0)
            break;
        from += count;
    }
    return STATUS_OK;
}

/* --- the table -------------------------------------------------------------------------------- */

static int compare_actors_by_waiting_time(const void *one_, const void *other_)
{
    const actor *one = one_, *other = other_;
    int order = strcmp(one->behaviour, other->behaviour);

    if (order == 0)
        order = strcmp(one->state, other->state);
    if (order == 0)
        order = (one->since_ms < other->since_ms) - (one->since_ms > other->since_ms);
    return order != 0 ? order : strcmp(one->id, other->id);
}

static void print_table_of_actors(const search *found)
{
    if (found->count > 0)
        (void)printf("%-12s %-20s %-10s %6s %5s %9s  %s\n", "ACTOR", "BEHAVIOUR", "STATE", "MAIL",
                     "CONV", "SINCE", "WAITS FOR; MARKS");
    for (size_t i = 0; i < found->count; i++) {
        const actor *one = &found->each[i];
        char since[32] = "";
        if (one->waits_for[0] != '\0')
            snprintf(since, sizeof since, "%.3fs", (double)one->since_ms / 1000);
        (void)printf("%-12s %-20s %-10s %6llu %5llu %9s  %s%s%s%s%s\n", one->id, one->behaviour,
                     one->state, (unsigned long long)one->mail,
                     (unsigned long long)one->conversations, since, one->waits_for,
                     one->waits_for[0] != '\0' && one->marks[0] != '\0' ? "; " : "", one->marks,
                     one->name[0] != '\0' ? "  " : "", one->name);
    }
}

/* Print how many actors of each behaviour are in each state. */
static void print_counts_by_behaviour_and_state(const search *found)
{
    if (found->count > 0)
        (void)printf("%-20s %-10s %8s %8s %9s\n", "BEHAVIOUR", "STATE", "ACTORS", "MAIL", "SINCE");
    for (size_t i = 0, end; i < found->count; i = end) {
        const actor *first = &found->each[i];
        unsigned long long mail = 0;
        for (end = i; end < found->count; end++) {
            const actor *one = &found->each[end];
            if (strcmp(one->behaviour, first->behaviour) != 0 ||
                strcmp(one->state, first->state) != 0)
                break;
            mail += one->mail;
        }
        char since[32] = "";
        if (first->waits_for[0] != '\0') /* the first actor is the one that has waited longest */
            snprintf(since, sizeof since, "%.3fs", (double)first->since_ms / 1000);
        (void)printf("%-20s %-10s %8zu %8llu %9s\n", first->behaviour, first->state, end - i, mail,
                     since);
    }
}

static int search_and_print_actors(port *at, search *found, bool is_counted)
{
    int status = request_and_search_all_pages_of_dump(at, found);

    if (status != STATUS_OK)
        return status;
    if (found->count > 0)
        qsort(found->each, found->count, sizeof *found->each, compare_actors_by_waiting_time);
    if (is_counted)
        print_counts_by_behaviour_and_state(found);
    else if (!found->is_full)
        print_table_of_actors(found);
    if (found->is_cut)
        say_print_error("there are more actors than the %zu that were looked at (-n)",
                        found->limit);
    return STATUS_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static bool is_name_of_state(const char *text)
{
    static const char *const states[] = {"CREATED", "MOUNTING",  "WAITING",
                                         "READY",   "SCHEDULED", "RUNNING"};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcasecmp(text, states[i]) == 0)
            return true;
    }
    return false;
}

static int run_command_actors(const command *self, int argc, char **argv)
{
    static const struct option longs[] = {
        {"behaviour", required_argument, NULL, 'b'}, {"state", required_argument, NULL, 'S'},
        {"count", no_argument, NULL, 'c'},           {"full", no_argument, NULL, 'f'},
        {"limit", required_argument, NULL, 'n'},     OPTIONS_LONG};
    options all = {.self = self};
    search found = {0};
    bool is_counted = false;
    long limit = LIMIT;
    int option, status = STATUS_FAILED;
    port at;

    while ((option = options_get_next(&all, argc, argv, OPTIONS_SHORT "b:cfn:", longs)) >= 0) {
        if (option == 'b')
            found.behaviour = optarg;
        else if (option == 'S')
            found.state = optarg;
        else if (option == 'n' && !options_read_number(&all, optarg, 1, LIMIT_MAX, &limit))
            return STATUS_USAGE;
        is_counted = is_counted || option == 'c';
        found.is_full = found.is_full || option == 'f';
    }
    if (option == OPTIONS_STOP)
        return all.status;
    if (optind < argc)
        return options_print_usage_error(&all, "takes no '%s'", argv[optind]);
    if (found.state != NULL && !is_name_of_state(found.state))
        return options_print_usage_error(&all, "'%s' is no state of an actor", found.state);
    if (is_counted && found.is_full)
        return options_print_usage_error(&all, "--count and --full are two forms of the same");
    found.limit = (size_t)limit;
    if (options_open_port_of_meant_program(&all, &at))
        status = search_and_print_actors(&at, &found, is_counted);
    port_close(&at);
    free(found.each);
    return status;
}

const command command_actors = {
    .name = "actors",
    .summary = "what actors do: behaviour, state, and for what they wait",
    .help =
        "usage: domus actors [OPTIONS]\n"
        "\n"
        "Prints a line for each actor: its state, its mail, its conversations, and what it\n"
        "has waited for the longest. They are sorted by behaviour, state and that time.\n"
        "Threads that do not answer are named before.\n"
        "\n"
        "  -b, --behaviour NAME     only actors of this behaviour\n"
        "      --state STATE        only actors in this state: created, mounting, waiting,\n"
        "                           ready, scheduled or running\n"
        "  -c, --count              only how many of each behaviour are in each state\n"
        "  -f, --full               all that the program says of each, as it is\n"
        "  -n, --limit N            how many are looked at (1000; at most 100000)\n" OPTIONS_HELP,
    .run = run_command_actors,
};
