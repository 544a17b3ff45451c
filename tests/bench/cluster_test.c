/* `bench cluster` checks its contenders strictly: the lines that they print, their CPU clocks, and
 * how they end. */
#include "bench/cluster_pair.h"
#include "bench/cluster_result.h"
#include "bench/support/cluster_side.h"
#include "bench/support/command.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The functions by which `bench cluster` checks: the tests show which lines of a requester it
 * refuses, and which numbers and notices each side refuses. */

/* ---- The line of a requester --------------------------------------------------------------- */

static int read_line_of_requester(const char *line)
{
    uint64_t took_ns = 0;
    int error = cluster_result_read_line(line, "ask", 10, UINT64_C(1000000000), &took_ns);

    ck_assert(error != 0 || (took_ns >= 450000000 && took_ns <= 1000000000));
    return error;
}

DOMT_TEST(right_line_of_requester_gives_its_time)
{
    uint64_t took_ns = 0;

    ck_assert_int_eq(
        cluster_result_read_line("ask: 10 in 700000000 ns, ok", "ask", 10, 1000000000, &took_ns),
        0);
    ck_assert_uint_eq(took_ns, 700000000);
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 450000000 ns, ok"), 0);
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 1000000000 ns, ok"), 0);
}

DOMT_TEST(unknown_line_of_requester_is_refused)
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
        ck_assert_msg(read_line_of_requester(lines[i]) == -EPROTO, "%s", lines[i]);
}

DOMT_TEST(line_that_reports_an_error_is_refused)
{
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 700000000 ns, wrong: an answer"), -EBADMSG);
}

DOMT_TEST(time_that_differs_from_the_benchs_is_refused)
{
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 1000000001 ns, ok"), -ERANGE);
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 449999999 ns, ok"), -ERANGE);
    ck_assert_int_eq(read_line_of_requester("ask: 10 in 0 ns, ok"), -ERANGE);

    uint64_t took_ns = 0;
    ck_assert_int_eq(cluster_result_read_line("ask: 10 in 0 ns, ok", "ask", 10, 9, &took_ns),
                     -ERANGE);
    ck_assert_int_eq(cluster_result_read_line("ask: 10 in 1 ns, ok", "ask", 10, 9, &took_ns), 0);
}

DOMT_TEST(cluster_quantiles_are_interpolated)
{
    double values[] = {4, 1, 3, 2, 5};
    double two[] = {7, 5};

    ck_assert(cluster_result_sort_and_get_quantile(values, 5, 0.5) == 3);
    ck_assert(cluster_result_sort_and_get_quantile(values, 5, 0.25) == 2);
    ck_assert(cluster_result_sort_and_get_quantile(values, 5, 0.75) == 4);
    ck_assert(cluster_result_sort_and_get_quantile(values, 5, 1) == 5);
    ck_assert(cluster_result_sort_and_get_quantile(two, 2, 0.5) == 6);
    ck_assert(cluster_result_sort_and_get_quantile(two, 2, 0.25) == 5.5);
    ck_assert(cluster_result_sort_and_get_quantile(two, 1, 0.75) == 5);
}

/* ---- What the sides have in common ----------------------------------------------------------- */

/* Split a command line, whose words are separated by single spaces, and let a side of the bench
 * read it. */
static bool is_command_line_of_side(const char *line, struct cluster_side *side)
{
    static char text[128];
    char *argv[8] = {(char[]){"program"}};
    int argc = 1;
    char *rest;

    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return cluster_side_parse_arguments(side, argc, argv);
}

DOMT_TEST(command_line_of_side_is_read)
{
    struct cluster_side side;

    ck_assert(is_command_line_of_side("responder ask 100 4222", &side));
    ck_assert(side.responds && !side.notices);
    ck_assert(side.count == 100 && side.port == 4222);
    ck_assert_str_eq(side.style, "");
    ck_assert(is_command_line_of_side("requester notice 1000000000 65535 batch", &side));
    ck_assert(!side.responds && side.notices);
    ck_assert_str_eq(side.style, "batch");
}

DOMT_TEST(wrong_command_line_of_side_is_refused)
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
        ck_assert_msg(!is_command_line_of_side(lines[i], &side), "%s", lines[i]);
}

/* The peer may answer the asks that are under way in any order; in this test it answers the newest
 * ask first. */
DOMT_TEST(each_ask_is_answered_once_in_any_order)
{
    static const uint64_t counts[] = {1, 63, 64, 65, 1000};
    struct cluster_asks asks;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        cluster_asks_init(&asks, counts[i]);
        for (uint64_t first = 0; first < counts[i]; first += CLUSTER_UNDER_WAY) {
            uint64_t end = first + CLUSTER_UNDER_WAY;
            for (uint64_t number = end < counts[i] ? end : counts[i]; number-- > first;) {
                struct cluster_words words = {number, 0};
                ck_assert(cluster_asks_check_and_count_answer(
                    &asks, cluster_side_right_answer_to_ask(words)));
                ck_assert(!cluster_asks_check_and_count_answer(
                    &asks, cluster_side_right_answer_to_ask(words)));
            }
        }
        ck_assert_uint_eq(asks.answered, counts[i]);
    }
}

DOMT_TEST(wrong_or_unasked_answers_are_refused)
{
    struct cluster_asks asks;

    cluster_asks_init(&asks, 100);
    /* These words are those of an ask, not of its answer. */
    ck_assert(!cluster_asks_check_and_count_answer(&asks, (struct cluster_words){5, 0}));
    /* No ask with this number was sent, so an answer to it is refused. */
    ck_assert(
        !cluster_asks_check_and_count_answer(&asks, (struct cluster_words){64, ~UINT64_C(64)}));
    ck_assert(
        !cluster_asks_check_and_count_answer(&asks, (struct cluster_words){100, ~UINT64_C(100)}));
    ck_assert(!cluster_asks_check_and_count_answer(
        &asks, (struct cluster_words){CLUSTER_COUNT_MAX, ~(uint64_t)CLUSTER_COUNT_MAX}));
    ck_assert(cluster_asks_check_and_count_answer(&asks, (struct cluster_words){0, ~UINT64_C(0)}));
    ck_assert(
        cluster_asks_check_and_count_answer(&asks, (struct cluster_words){64, ~UINT64_C(64)}));
    ck_assert_uint_eq(asks.answered, 2);
}

DOMT_TEST(lost_doubled_or_reordered_notices_are_detected)
{
    static const uint64_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 4}, {0, 1, 1, 2}, {0, 2, 1, 3}};

    for (size_t i = 0; i < 4; i++) {
        struct cluster_words counts = {0, 0};
        for (size_t j = 0; j < 4; j++)
            counts = cluster_side_counts_with_notice(counts, orders[i][j]);
        ck_assert(cluster_side_is_mark_answer_right(counts, 4) == (i == 0));
        ck_assert(!cluster_side_is_mark_answer_right(counts, 5));
    }
}

/* --- cluster pair ----------------------------------------------------------------------------- */

/* `bench cluster` trusts its contenders as little as possible: it reads the CPU clocks of their
 * processes itself, ends a run if a side ends or is silent, and leaves no process. In most tests
 * both sides are shell scripts. */

static const char *who;
static struct cluster_result result;
static uint32_t seconds_max = 30;

/* Run a pair of shell scripts as the responder and the requester of `bench cluster`. Returns the
 * error of the run. */
static int run_pair_of_scripts(const char *responder, const char *requester)
{
    char script[] = "/tmp/cluster-test-XXXXXX";
    int fd = mkstemp(script);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "#!/bin/sh\n"
            "if [ $1 = responder ]; then\n%s\nelse\n%s\nfi\n",
            responder, requester);
    fclose(file);
    ck_assert_int_eq(chmod(script, 0700), 0);
    struct cluster_contender contender = {.name = "script", .program = script};
    struct cluster_work work = {.row = "ask", .count = 10, .seconds_max = seconds_max};
    result = (struct cluster_result){.took_ns = 77};
    int error = cluster_run_fresh_pair(&contender, &work, &result, &who);
    unlink(script);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD); /* after the run no child process is left */
    ck_assert(error == 0 || result.took_ns == 77);
    return error;
}

#define RESPONDER    "echo ready; cat >/dev/null"
#define BEGIN        "echo ready; read go; begin=$(date +%s%N); "
#define END          "; took=$(($(date +%s%N) - begin)); "
#define SAY(verdict) "echo \"ask: $3 in $took ns, " verdict "\"; cat >/dev/null"

DOMT_TEST(pair_that_does_its_work_gives_a_result)
{
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN "sleep 0.2" END SAY("ok")), 0);
    ck_assert_uint_ge(result.took_ns, 200000000);
    ck_assert_uint_eq(result.broker_cpu_ns, 0);
}

/* The responder computes while the requester waits for a file that the responder then makes; so
 * only one side uses CPU time at a time. CPU time that a side uses before it is ready does not
 * count. */
DOMT_TEST(cpu_time_of_each_side_counts_from_go)
{
#define COMPUTE "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, COMPUTE "; " BEGIN "sleep 0.1" END SAY("ok")),
                     0);
    uint64_t idle_ns = result.requester_cpu_ns;

    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN COMPUTE END SAY("ok")), 0);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * idle_ns);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * result.responder_cpu_ns);
    ck_assert_int_eq(run_pair_of_scripts(COMPUTE "; " RESPONDER, BEGIN COMPUTE END SAY("ok")), 0);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * result.responder_cpu_ns);
    ck_assert_int_eq(
        run_pair_of_scripts("echo ready; " COMPUTE "; : >$0.done; cat >/dev/null", BEGIN
                            "until [ -e $0.done ]; do sleep 0.1; done; rm $0.done" END SAY("ok")),
        0);
    ck_assert_uint_gt(result.responder_cpu_ns, 4 * result.requester_cpu_ns);
}

DOMT_TEST(pair_with_wrong_result_gives_none)
{
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN "sleep 0.1" END SAY("wrong: x")),
                     -EBADMSG);
    ck_assert_str_eq(who, "requester");
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN "sleep 0.1" END "set 1 2 9; " SAY("ok")),
                     -EPROTO);
    ck_assert_int_eq(
        run_pair_of_scripts(RESPONDER, BEGIN "sleep 0.3" END "took=$((took / 1000)); " SAY("ok")),
        -ERANGE);
}

DOMT_TEST(run_ends_when_a_side_ends_or_is_silent)
{
    ck_assert_int_eq(run_pair_of_scripts("exit 1", BEGIN), -ECHILD);
    ck_assert_str_eq(who, "responder");
    ck_assert_int_eq(run_pair_of_scripts("echo hello; cat >/dev/null", BEGIN), -EPROTO);
    ck_assert_str_eq(who, "responder");
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, "exit 1"), -ECHILD);
    ck_assert_str_eq(who, "requester");
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, "echo ready"), -ECHILD);
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN "printf %0300d 0; cat >/dev/null"),
                     -EMSGSIZE);
    seconds_max = 1;
    ck_assert_int_eq(run_pair_of_scripts(RESPONDER, BEGIN "sleep 10"), -ETIMEDOUT);
}

DOMT_TEST(run_ends_when_a_program_is_missing)
{
    struct cluster_contender contender = {.name = "none", .program = "/nonexistent/program"};
    struct cluster_work work = {.row = "ask", .count = 10, .seconds_max = 2};

    ck_assert_int_eq(cluster_run_fresh_pair(&contender, &work, &result, &who), -ECHILD);
    ck_assert_str_eq(who, "responder");
}

/* ---- The bench ------------------------------------------------------------------------------- */

static int run_cluster_bench(char *contender, struct command_result *ret_result)
{
    char *const arguments[] = {(char[]){DOMT_BIN_DIR "/bench_cluster"},
                               (char[]){"--rounds"},
                               (char[]){"2"},
                               (char[]){"--asks"},
                               (char[]){"1001"},
                               (char[]){"--notices"},
                               (char[]){"20500"},
                               contender,
                               NULL};
    struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 100};

    return command_run_and_read_figures(&command, ret_result);
}

/* The counts of messages are no multiples of the number of asks under way, and more notices are
 * sent than may be under way. */
DOMT_TEST(cluster_bench_measures_domus_and_bare_protocol)
{
    char *const contenders[] = {(char[]){"domus"}, (char[]){"bare"}, (char[]){"bare_batch"}};
    static const char *const names[] = {"rate", "cpu", "cpu_requester", "cpu_responder",
                                        "cpu_broker"};
    struct command_result figures;
    char name[64];

    ck_assert_msg(cluster_is_broker_installed(CLUSTER_NATS), "nats-server is missing: ./dev setup");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(run_cluster_bench(contenders[i], &figures), 0);
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            snprintf(name, sizeof name, "cluster.ask.%s.%s", contenders[i], names[j]);
            ck_assert_msg(command_first_figure_of_name(&figures, name) > 0, "%s", name);
            snprintf(name, sizeof name, "cluster.notice.%s.%s", contenders[i], names[j]);
            ck_assert_msg(command_first_figure_of_name(&figures, name) > 0, "%s", name);
        }
    }
}

DOMT_SUITE(120)
