/* The cluster bench: what a message to another process on this machine costs, through NATS and
 * beside it.
 *
 * Rows: `ask`, 64 asks under way with 16 bytes each way, and `notice`, notices of 64 bytes
 * (support/cluster_side.h says exactly what is done and checked). The contenders do them in turn;
 * each round begins with another one. The CPU time of an ask or notice is that of both sides
 * together; that of the broker stands apart.
 *
 * On a machine that others use, --patience says how many seconds each run may wait for a moment in
 * which they take less than OTHERS_MAX of the CPUs, and be repeated if they took more meanwhile.
 *
 * bench_cluster [--rounds N] [--asks N] [--notices N] [--row ROW] [--patience SECONDS]
 * [CONTENDER ...]: without a name all contenders run. One that is not installed is left out, and a
 * line on stderr says so. stdout: lines `name value unit`, medians over the rounds. stderr:
 * progress, and for each row a table with quartiles. Exit 1 if a contender failed or had a wrong
 * result, never on a missed goal. */
#include "bench/cluster_pair.h"
#include "bench/support/command.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/support/quiet.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS_MAX  100u
#define SECONDS_MAX 120

#define OTHERS_MAX   0.1
#define PATIENCE_MAX 3600u /* seconds that --patience may have, at most */

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

/* Bits for the rows that a contender can do. */
#define ASK    1u
#define NOTICE 2u

struct entry {
    const char *name;
    const char *file; /* file name of the contender's program, in the folder of this program */
    const char *style;
    enum cluster_broker broker;
    unsigned rows;
    const char *needs;
};

static const struct entry entries[] = {
    {"domus", "cluster_domus", NULL, CLUSTER_NATS, ASK | NOTICE, "a build of domus, nats-server"},
    {"bare", "cluster_bare", NULL, CLUSTER_NATS, ASK | NOTICE, "nats-server"},
    {"bare_batch", "cluster_bare", "batch", CLUSTER_NATS, ASK | NOTICE, "nats-server"},
    {"libnats", "cluster_libnats", NULL, CLUSTER_NATS, ASK | NOTICE, "libnats-dev, nats-server"},
    {"libnats_asap", "cluster_libnats", "asap", CLUSTER_NATS, ASK | NOTICE,
     "libnats-dev, nats-server"},
    {"libnats_threads", "cluster_libnats", "threads", CLUSTER_NATS, ASK,
     "libnats-dev, nats-server"},
    {"erlang", "cluster.beam", NULL, CLUSTER_EPMD, ASK | NOTICE, "erlang-base"},
    {"erlang_call", "cluster.beam", "call", CLUSTER_EPMD, ASK, "erlang-base"},
    {"caf", "cluster_caf", NULL, CLUSTER_NO_BROKER, ASK | NOTICE, "g++ and libcaf-dev"},
};

#define ENTRIES LENGTH(entries)

static char paths[ENTRIES][PATH_MAX];
static struct cluster_contender contenders[ENTRIES];
/* the contender takes no part: it is not wanted, not installed, or has failed */
static bool is_out[ENTRIES];

static const struct row {
    const char *name;
    unsigned bit;
} rows[] = {{"ask", ASK}, {"notice", NOTICE}};

static uint64_t counts[LENGTH(rows)] = {200000, 1000000};
static uint32_t rounds = 7;
static const char *only_row;
static uint64_t patience; /* seconds that a run may wait until the machine is quiet */

/* The figures of a row that are printed. CPU times are those of one ask or notice. */
enum figure { RATE, CPU, REQUESTER_CPU, RESPONDER_CPU, BROKER_CPU, OTHERS, FIGURES };

static const struct {
    const char *name;
    const char *unit;
} figures[FIGURES] = {
    [RATE] = {"rate", "1/s"},
    [CPU] = {"cpu", "ns"},
    [REQUESTER_CPU] = {"cpu_requester", "ns"},
    [RESPONDER_CPU] = {"cpu_responder", "ns"},
    [BROKER_CPU] = {"cpu_broker", "ns"},
    [OTHERS] = {"others", "percent"},
};

static double outcomes[ENTRIES][FIGURES][ROUNDS_MAX];

/* Returns whether the program of a contender and its broker are installed. */
static bool is_contender_available(size_t who)
{
    const struct entry *entry = &entries[who];
    char *path = paths[who];
    int error = command_find_program_beside(entry->file, path);
    bool is_erlang = entry->broker == CLUSTER_EPMD;

    /* Erlang runs a module and no program of its own, and erl wants the folder that contains that
     * module */
    bool there = is_erlang ? access(path, R_OK) == 0 : error == 0;
    there = there && cluster_is_broker_installed(entry->broker);
    if (!there) {
        fprintf(stderr, "cluster: %s is left out: it needs %s\n", entry->name, entry->needs);
        return false;
    }
    if (is_erlang)
        *strrchr(path, '/') = '\0';
    contenders[who] = (struct cluster_contender){
        .name = entry->name,
        .program = path,
        .is_erlang = is_erlang,
        .broker = entry->broker,
        .style = entry->style,
    };
    return true;
}

static void store_result_of_run(size_t who, uint32_t round, double count,
                                const struct cluster_result *result)
{
    double requester = (double)result->requester_cpu_ns / count;
    double responder = (double)result->responder_cpu_ns / count;

    outcomes[who][RATE][round] = count / (double)result->took_ns * 1e9;
    outcomes[who][CPU][round] = requester + responder;
    outcomes[who][REQUESTER_CPU][round] = requester;
    outcomes[who][RESPONDER_CPU][round] = responder;
    outcomes[who][BROKER_CPU][round] = (double)result->broker_cpu_ns / count;
    outcomes[who][OTHERS][round] = result->others * 100;
}

/* Run a pair of processes once; with --patience, repeatedly until other programs were quiet during
 * the run. Returns as cluster_run_fresh_pair(). */
static int run_pair_until_machine_was_quiet(const struct cluster_contender *contender,
                                            const struct cluster_work *work,
                                            struct cluster_result *ret_result, const char **ret_who)
{
    uint64_t end_ns = measure_now_ns() + patience * UINT64_C(1000000000);
    int error;

    do {
        if (patience != 0)
            (void)quiet_await_quiet_machine(OTHERS_MAX, end_ns);
        error = cluster_run_fresh_pair(contender, work, ret_result, ret_who);
    } while (error == 0 && ret_result->others > OTHERS_MAX && measure_now_ns() < end_ns);
    return error;
}

/* Run a contender once in a round. Returns false if it failed, and then it takes no further
 * part. */
static bool run_contender_once(const struct row *row, uint64_t count, size_t who, uint32_t round)
{
    struct cluster_work work = {.row = row->name, .count = count, .seconds_max = SECONDS_MAX};
    struct cluster_result result;
    const char *side;
    int error = run_pair_until_machine_was_quiet(&contenders[who], &work, &result, &side);

    if (error != 0) {
        fprintf(stderr, "cluster: %s %s is out: %s: %s\n", row->name, entries[who].name, side,
                error == -EBADMSG ? "a wrong result" : strerror(-error));
        is_out[who] = true;
        return false;
    }
    fprintf(stderr,
            "%s %s: %" PRIu64 " in %" PRIu64 " ns, requester cpu %" PRIu64
            " ns, responder cpu %" PRIu64 " ns, broker cpu %" PRIu64 " ns, others %.0f %%, ok\n",
            row->name, entries[who].name, count, result.took_ns, result.requester_cpu_ns,
            result.responder_cpu_ns, result.broker_cpu_ns, result.others * 100);
    store_result_of_run(who, round, (double)count, &result);
    return true;
}

static double quantile_of_contender_figure(size_t who, enum figure figure, double part)
{
    return cluster_result_sort_and_get_quantile(outcomes[who][figure], rounds, part);
}

/* Print the ratios of domus to each peer, for rates and for CPU time: medians over the rounds. This
 * comes before outcomes are sorted. */
static void print_ratios_to_peers(const struct row *row)
{
    static const enum figure kinds[] = {RATE, CPU};
    double ratios[ROUNDS_MAX];

    for (size_t who = 1; who < ENTRIES && !is_out[0]; who++) {
        for (size_t i = 0; i < LENGTH(kinds) && !is_out[who] && (entries[who].rows & row->bit);
             i++) {
            for (uint32_t round = 0; round < rounds; round++)
                ratios[round] = outcomes[0][kinds[i]][round] / outcomes[who][kinds[i]][round];
            printf("cluster.%s.ratio.%s.domus.%s %.3f ratio\n", row->name, figures[kinds[i]].name,
                   entries[who].name, cluster_result_sort_and_get_quantile(ratios, rounds, 0.5));
        }
    }
}

/* Print the line of a contender in the table of a row, for a page of docs/decisions. */
static void print_line_of_contender(size_t who)
{
    fprintf(stderr, "| %s | %.0f | %.0f to %.0f ", entries[who].name,
            quantile_of_contender_figure(who, RATE, 0.5) / 1e3,
            quantile_of_contender_figure(who, RATE, 0.25) / 1e3,
            quantile_of_contender_figure(who, RATE, 0.75) / 1e3);
    fprintf(stderr, "| %.2f | %.2f to %.2f ", quantile_of_contender_figure(who, CPU, 0.5) / 1e3,
            quantile_of_contender_figure(who, CPU, 0.25) / 1e3,
            quantile_of_contender_figure(who, CPU, 0.75) / 1e3);
    fprintf(stderr, "| %.2f | %.2f | %.2f | %.0f |\n",
            quantile_of_contender_figure(who, REQUESTER_CPU, 0.5) / 1e3,
            quantile_of_contender_figure(who, RESPONDER_CPU, 0.5) / 1e3,
            quantile_of_contender_figure(who, BROKER_CPU, 0.5) / 1e3,
            quantile_of_contender_figure(who, OTHERS, 0.5));
}

static void print_table_of_row(const struct row *row)
{
    print_ratios_to_peers(row);
    fprintf(stderr,
            "\n| %s | thousand a second | quartiles | CPU of both, us | quartiles | requester "
            "| responder | broker | others, %% |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
            row->name);
    for (size_t who = 0; who < ENTRIES; who++) {
        if (is_out[who] || !(entries[who].rows & row->bit))
            continue;
        for (int figure = 0; figure < FIGURES; figure++)
            printf("cluster.%s.%s.%s %.1f %s\n", row->name, entries[who].name, figures[figure].name,
                   quantile_of_contender_figure(who, (enum figure)figure, 0.5),
                   figures[figure].unit);
        print_line_of_contender(who);
    }
    fprintf(stderr, "\n");
    fflush(stdout);
}

/* Run all rounds of a row with all contenders. Returns false if a contender failed. */
static bool run_all_rounds_of_row(const struct row *row, uint64_t count)
{
    bool well = true;

    for (uint32_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < ENTRIES; i++) {
            size_t who = (i + round) % ENTRIES;
            if (!is_out[who] && (entries[who].rows & row->bit))
                well = run_contender_once(row, count, who, round) && well;
        }
    }
    print_table_of_row(row);
    return well;
}

/* Read a number from 1 to `max` from an option. Returns false for any other text. */
static bool parse_positive_number_up_to(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end;
    uint64_t number = strtoull(text, &end, 10);

    if (*end != '\0' || number == 0 || number > max)
        return false;
    *ret_number = number;
    return true;
}

static bool read_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, 'r'},   {"asks", required_argument, NULL, 'a'},
        {"notices", required_argument, NULL, 'n'},  {"row", required_argument, NULL, 'o'},
        {"patience", required_argument, NULL, 'p'}, {NULL, 0, NULL, 0},
    };
    uint64_t number = rounds;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        bool well = true;
        if (option == 'r')
            well = parse_positive_number_up_to(optarg, ROUNDS_MAX, &number);
        else if (option == 'a')
            well = parse_positive_number_up_to(optarg, INT32_MAX, &counts[0]);
        else if (option == 'n')
            well = parse_positive_number_up_to(optarg, INT32_MAX, &counts[1]);
        else if (option == 'p')
            well = parse_positive_number_up_to(optarg, PATIENCE_MAX, &patience);
        else if (option == 'o')
            only_row = optarg;
        else
            well = false;
        if (!well)
            return false;
    }
    rounds = (uint32_t)number;
    return true;
}

int main(int argc, char **argv)
{
    int status = 0;

    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: bench_cluster [--rounds N] [--asks N] [--notices N] "
                        "[--row ask|notice] [--patience SECONDS] [CONTENDER ...]\n");
        return 2;
    }
    for (size_t who = 0; who < ENTRIES; who++)
        is_out[who] = !options_is_name_wanted(argc - optind, argv + optind, entries[who].name) ||
                      !is_contender_available(who);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        if ((only_row == NULL || strcmp(only_row, rows[i].name) == 0) &&
            !run_all_rounds_of_row(&rows[i], counts[i]))
            status = 1;
    }
    return status;
}
