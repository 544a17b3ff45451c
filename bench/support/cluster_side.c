/* This file reads the command line of a side, talks with the bench, and checks numbers
 * (cluster_side.h). */
#include "bench/support/cluster_side.h"

#include "bench/support/measure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read a number from 1 to `max`. Returns false if the text is no such number. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number == 0 || number > max)
        return false;
    *ret_number = number;
    return true;
}

bool cluster_side_parse_arguments(struct cluster_side *side, int argc, char **argv)
{
    uint64_t count;
    uint64_t port;

    if (argc != 5 && argc != 6)
        return false;
    bool responds = strcmp(argv[1], "responder") == 0;
    bool notices = strcmp(argv[2], "notice") == 0;
    if ((!responds && strcmp(argv[1], "requester") != 0) ||
        (!notices && strcmp(argv[2], "ask") != 0) ||
        !parse_number(argv[3], CLUSTER_COUNT_MAX, &count) ||
        !parse_number(argv[4], UINT16_MAX, &port))
        return false;
    *side = (struct cluster_side){
        .responds = responds,
        .notices = notices,
        .count = count,
        .port = (uint16_t)port,
        .style = argc == 6 ? argv[5] : "",
    };
    return true;
}

void cluster_side_parse_or_exit(struct cluster_side *side, int argc, char **argv)
{
    if (cluster_side_parse_arguments(side, argc, argv))
        return;
    fprintf(stderr, "usage: %s responder|requester ask|notice COUNT PORT [STYLE]\n", argv[0]);
    exit(2);
}

void cluster_side_print_ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

void cluster_side_print_ready_and_await_go(struct cluster_side *side)
{
    char line[64];

    cluster_side_print_ready();
    if (fgets(line, sizeof line, stdin) == NULL)
        exit(0);
    side->began_ns = measure_now_ns();
}

void cluster_side_await_end_of_stdin(void)
{
    while (getchar() != EOF)
        continue;
}

void cluster_side_print_result(const struct cluster_side *side, const char *wrong)
{
    uint64_t took_ns = measure_now_ns() - side->began_ns;

    printf("%s: %" PRIu64 " in %" PRIu64 " ns, %s%s\n", side->notices ? "notice" : "ask",
           side->count, took_ns, wrong == NULL ? "ok" : "wrong: ", wrong == NULL ? "" : wrong);
    fflush(stdout);
    cluster_side_await_end_of_stdin();
}

struct cluster_words cluster_side_right_answer_to_ask(struct cluster_words ask)
{
    return (struct cluster_words){ask.first, ~ask.first};
}

struct cluster_words cluster_side_counts_with_notice(struct cluster_words counts, uint64_t number)
{
    counts.second += number != counts.first;
    counts.first++;
    return counts;
}

bool cluster_side_is_mark_answer_right(struct cluster_words counts, uint64_t sent)
{
    return counts.first == sent && counts.second == 0;
}

void cluster_asks_init(struct cluster_asks *asks, uint64_t count)
{
    asks->count = count;
    asks->answered = 0;
    for (uint64_t i = 0; i < CLUSTER_UNDER_WAY; i++)
        asks->numbers[i] = i;
}

bool cluster_asks_check_and_count_answer(struct cluster_asks *asks, struct cluster_words answer)
{
    uint64_t *place = &asks->numbers[answer.first % CLUSTER_UNDER_WAY];

    if (answer.first >= asks->count || *place != answer.first || answer.second != ~answer.first)
        return false;
    *place += CLUSTER_UNDER_WAY;
    asks->answered++;
    return true;
}
