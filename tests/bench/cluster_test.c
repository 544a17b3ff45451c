/* `bench cluster` checks strictly: the tests show which lines of a requester it refuses, and which
 * numbers and notices each side refuses. */
#include "tests/support/suite.h"

#include "bench/cluster_result.h"
#include "bench/support/cluster_side.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- The line of a requester --------------------------------------------------------------- */

static int read_line(const char *line)
{
    uint64_t took_ns = 0;
    int error = cluster_result_read(line, "ask", 10, UINT64_C(1000000000), &took_ns);

    ck_assert(error != 0 || (took_ns >= 450000000 && took_ns <= 1000000000));
    return error;
}

DOMT_TEST(line_that_is_right_has_the_time)
{
    uint64_t took_ns = 0;

    ck_assert_int_eq(
        cluster_result_read("ask: 10 in 700000000 ns, ok", "ask", 10, 1000000000, &took_ns), 0);
    ck_assert_uint_eq(took_ns, 700000000);
    ck_assert_int_eq(read_line("ask: 10 in 450000000 ns, ok"), 0);
    ck_assert_int_eq(read_line("ask: 10 in 1000000000 ns, ok"), 0);
}

DOMT_TEST(line_of_something_else_is_refused)
{
    static const char *const lines[] = {
        "",
        "ask",
        "notice: 10 in 700000000 ns, ok",
        "ask: 11 in 700000000 ns, ok",
        "ask: -10 in 700000000 ns, ok",
        "ask: 10 in 700000000 us, ok",
        "ask: 10 in +700000000 ns, ok",
        "ask: 10 in  700000000 ns, ok",
        "ask: 10 in 700000000 ns",
        "ask: 10 in 700000000 ns, okay",
        "ask: 10 in 99999999999999999999 ns, ok",
        " ask: 10 in 700000000 ns, ok",
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(read_line(lines[i]) == -EPROTO, "%s", lines[i]);
}

DOMT_TEST(line_that_says_wrong_is_no_result)
{
    ck_assert_int_eq(read_line("ask: 10 in 700000000 ns, wrong: an answer"), -EBADMSG);
}

DOMT_TEST(time_that_is_not_the_time_of_the_bench_is_refused)
{
    ck_assert_int_eq(read_line("ask: 10 in 1000000001 ns, ok"), -ERANGE);
    ck_assert_int_eq(read_line("ask: 10 in 449999999 ns, ok"), -ERANGE);
    ck_assert_int_eq(read_line("ask: 10 in 0 ns, ok"), -ERANGE);

    uint64_t took_ns = 0;
    ck_assert_int_eq(cluster_result_read("ask: 10 in 0 ns, ok", "ask", 10, 9, &took_ns), -ERANGE);
    ck_assert_int_eq(cluster_result_read("ask: 10 in 1 ns, ok", "ask", 10, 9, &took_ns), 0);
}

DOMT_TEST(quantiles_lie_between_the_values)
{
    double values[] = {4, 1, 3, 2, 5};
    double two[] = {7, 5};

    ck_assert(cluster_result_quantile(values, 5, 0.5) == 3);
    ck_assert(cluster_result_quantile(values, 5, 0.25) == 2);
    ck_assert(cluster_result_quantile(values, 5, 0.75) == 4);
    ck_assert(cluster_result_quantile(values, 5, 1) == 5);
    ck_assert(cluster_result_quantile(two, 2, 0.5) == 6);
    ck_assert(cluster_result_quantile(two, 2, 0.25) == 5.5);
    ck_assert(cluster_result_quantile(two, 1, 0.75) == 5);
}

/* ---- What the sides have in common ----------------------------------------------------------- */

/* Read a command line, whose words are separated by single spaces. */
static bool is_command_line(const char *line, struct cluster_side *side)
{
    static char text[128];
    char *argv[8] = {(char[]){"program"}};
    int argc = 1;
    char *rest;

    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return cluster_side_parse(side, argc, argv);
}

DOMT_TEST(command_line_of_a_side_is_read)
{
    struct cluster_side side;

    ck_assert(is_command_line("responder ask 100 4222", &side));
    ck_assert(side.responds && !side.notices);
    ck_assert(side.count == 100 && side.port == 4222);
    ck_assert_str_eq(side.style, "");
    ck_assert(is_command_line("requester notice 1000000000 65535 batch", &side));
    ck_assert(!side.responds && side.notices);
    ck_assert_str_eq(side.style, "batch");
}

DOMT_TEST(command_line_that_is_none_is_refused)
{
    static const char *const lines[] = {
        "",
        "responder",
        "responder ask 100",
        "listener ask 100 4222",
        "responder asks 100 4222",
        "responder ask 0 4222",
        "responder ask -1 4222",
        "responder ask 1000000001 4222",
        "responder ask 1x 4222",
        "responder ask 100 0",
        "responder ask 100 65536",
        "responder ask 100 4222 batch more",
    };
    struct cluster_side side;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(!is_command_line(lines[i], &side), "%s", lines[i]);
}

/* The peer answers the asks that are under way; here it answers the newest ask first. */
DOMT_TEST(asks_are_answered_once_each_in_any_order)
{
    static const uint64_t counts[] = {1, 63, 64, 65, 1000};
    struct cluster_asks asks;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        cluster_asks_begin(&asks, counts[i]);
        for (uint64_t first = 0; first < counts[i]; first += CLUSTER_UNDER_WAY) {
            uint64_t end = first + CLUSTER_UNDER_WAY;
            for (uint64_t number = end < counts[i] ? end : counts[i]; number-- > first;) {
                struct cluster_words words = {number, 0};
                ck_assert(cluster_asks_take(&asks, cluster_side_answer(words)));
                ck_assert(!cluster_asks_take(&asks, cluster_side_answer(words)));
            }
        }
        ck_assert_uint_eq(asks.answered, counts[i]);
    }
}

DOMT_TEST(answer_to_nothing_and_answer_that_is_wrong_are_refused)
{
    struct cluster_asks asks;

    cluster_asks_begin(&asks, 100);
    /* these words are those of an ask, not of its answer */
    ck_assert(!cluster_asks_take(&asks, (struct cluster_words){5, 0}));
    /* no ask with the number 64 was sent */
    ck_assert(!cluster_asks_take(&asks, (struct cluster_words){64, ~UINT64_C(64)}));
    ck_assert(!cluster_asks_take(&asks, (struct cluster_words){100, ~UINT64_C(100)}));
    ck_assert(!cluster_asks_take(
        &asks, (struct cluster_words){CLUSTER_COUNT_MAX, ~(uint64_t)CLUSTER_COUNT_MAX}));
    ck_assert(cluster_asks_take(&asks, (struct cluster_words){0, ~UINT64_C(0)}));
    ck_assert(cluster_asks_take(&asks, (struct cluster_words){64, ~UINT64_C(64)}));
    ck_assert_uint_eq(asks.answered, 2);
}

DOMT_TEST(notices_lost_doubled_or_turned_around_fail_a_mark)
{
    static const uint64_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 4}, {0, 1, 1, 2}, {0, 2, 1, 3}};

    for (size_t i = 0; i < 4; i++) {
        struct cluster_words counts = {0, 0};
        for (size_t j = 0; j < 4; j++)
            counts = cluster_side_count(counts, orders[i][j]);
        ck_assert(cluster_side_mark_is_right(counts, 4) == (i == 0));
        ck_assert(!cluster_side_mark_is_right(counts, 5));
    }
}

DOMT_SUITE(20)
