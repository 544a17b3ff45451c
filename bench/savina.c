/* The Savina bench: domus on its loops and in its pools, beside CAF and Erlang, row by row, with
 * one thread and with two.
 *
 * The rows are in bench/savina_rows.c, and bench/savina_report.c writes the results. Each process
 * does several rounds of one row. The contenders alternate: domus runs once for each policy of its
 * pools, with two threads also once for each placement that can matter, and CAF once for each of
 * its schedulers. All this is done several times, and medians are printed. Results
 * and numbers of messages are checked against formulas.
 *
 * bench_savina [--long] [--out DIR] [--gnuplot FILE] [ROW ...]: without a name all rows run. The
 * short form has smaller sizes and one process of each. --out writes DIR/performance.md, .json and
 * .svg (with the script FILE, bench/savina.gp). stdout: lines `name value unit`, the names
 * savina.ROW.THREADS.WHO.FIGURE. stderr: progress. Exit 1 on a wrong result, or when a page cannot
 * be written; never on a missed goal. */
#include "bench/limits.h"
#include "bench/savina_report.h"
#include "bench/support/contender.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS_SHORT    3
#define ROUNDS_LONG     5
#define PROCESSES_LONG  3
#define THREADS_MAX     2
#define SECONDS_MAX     120
#define LIMIT_MESSAGES  4000000
#define LATENCY_FIGURES 3
#define LIMIT_ROUNDS    5

static const struct {
    enum contender who;
    const char *placement;
} sides[SAVINA_SIDES] = {
    [SAVINA_NEAR] = {CONTENDER_DOMUS, "near"},
    [SAVINA_SPREAD] = {CONTENDER_DOMUS, "spread"},
    [SAVINA_RINGS] = {CONTENDER_DOMUS, "rings"},
    [SAVINA_DEQUES] = {CONTENDER_DOMUS, "deques"},
    [SAVINA_STEALING] = {CONTENDER_DOMUS, "stealing"},
    [SAVINA_SHARING] = {CONTENDER_DOMUS, "sharing"},
    [SAVINA_CAF_STEALING] = {CONTENDER_CAF, "stealing"},
    [SAVINA_CAF_SHARING] = {CONTENDER_CAF, "sharing"},
    [SAVINA_ERLANG] = {CONTENDER_ERLANG, NULL},
    [SAVINA_THREADS] = {CONTENDER_THREADS, NULL},
};

static struct {
    struct options_page options;
    char **wanted; /* names of the rows that the command line wants */
    int wanted_count;
    bool there[CONTENDERS];
    bool failed; /* domus has failed in a row, so the exit status of the bench will be 1 */
    int cpus[THREADS_MAX]; /* the first two CPUs that this process may use */
    struct savina_run run;
    struct savina_outcome outcomes[SAVINA_ROWS * THREADS_MAX];
    size_t count;
} bench = {
    .options = {.gnuplot_script = "bench/savina.gp"},
    .run = {.rounds = ROUNDS_SHORT, .processes = 1, .limit = NAN},
};

/* The results of the processes that all contenders run for one row and one number of threads. */
struct turns {
    uint64_t expected; /* the result that each round must have */
    uint64_t messages; /* number of messages of a round; 0: no process has printed it yet */
    bool out[SAVINA_SIDES];
    struct savina_figures of[SAVINA_SIDES][PROCESSES_LONG];
    /* messages/s of limit_measure_ring_of_two_threads(), which is measured beside each process */
    double ring[PROCESSES_LONG];
};

static _Noreturn void report_wrong_result(const struct savina_outcome *outcome,
                                          enum savina_side side, const char *what)
{
    fprintf(stderr, "savina: %s: %s: %s is wrong\n", outcome->row->name, savina_side_name(side),
            what);
    exit(1);
}

static void check_result_of_process(const struct savina_outcome *outcome, enum savina_side side,
                                    struct turns *turns, const struct command_result *result)
{
    double messages = command_first_figure_of_name(result, "messages");

    /* A result that was not printed is NAN, which equals no number, so it counts as wrong. */
    if (command_first_figure_of_name(result, "result") != (double)turns->expected)
        report_wrong_result(outcome, side, "the result");
    if (outcome->row->kind != SAVINA_MESSAGES)
        return;
    if (turns->messages == 0 && messages > 0)
        turns->messages = (uint64_t)messages;
    if (messages != (double)turns->messages)
        report_wrong_result(outcome, side, "the number of messages");
}

static struct savina_figures read_figures_of_process(const struct savina_row *row,
                                                     const struct command_result *result)
{
    struct savina_figures figures = {NAN, NAN, NAN, NAN};
    double rounds[ROUNDS_LONG];
    double latencies[LATENCY_FIGURES];
    double messages = command_first_figure_of_name(result, "messages");
    uint32_t count = command_copy_figures_of_name(result, "round_seconds", rounds, ROUNDS_LONG);

    if (row->kind == SAVINA_CPU && count == 1)
        figures.value = command_first_figure_of_name(result, "cpu_seconds") / rounds[0];
    if (row->kind == SAVINA_LATENCY &&
        command_copy_figures_of_name(result, "latency_ns", latencies, LATENCY_FIGURES) ==
            LATENCY_FIGURES)
        figures = (struct savina_figures){NAN, latencies[0], latencies[1], latencies[2]};
    if (row->kind == SAVINA_MESSAGES && count == bench.run.rounds) {
        figures.first = messages / rounds[0];
        figures.value = messages / measure_sort_and_get_median(rounds, count);
    }
    return figures;
}

/* Run one contender once in a turn. A side that has failed once takes no further part. */
static void run_contender_in_turn(const struct savina_outcome *outcome, enum savina_side side,
                                  struct turns *turns, uint32_t turn)
{
    const struct savina_row *row = outcome->row;
    struct contest contest = {
        .suite = "savina",
        .row = row->name,
        .size = outcome->size,
        .threads = outcome->threads,
        .rounds = row->kind == SAVINA_MESSAGES ? bench.run.rounds : 1,
        .placement = sides[side].placement,
        .seconds_max = SECONDS_MAX,
    };
    struct command_result result;
    int error = contender_run_in_contest(sides[side].who, &contest, &result);

    if (error == -EBADMSG)
        report_wrong_result(outcome, side, "the result, as it says itself,");
    if (error != 0) {
        fprintf(stderr, "savina: %s: %s is out: %s\n", row->name, savina_side_name(side),
                strerror(-error));
        turns->out[side] = true;
        return;
    }
    check_result_of_process(outcome, side, turns, &result);
    turns->of[side][turn] = read_figures_of_process(row, &result);
    if (isnan(turns->of[side][turn].value))
        report_wrong_result(outcome, side, "what it printed");
}

/* Returns how many times better a side of domus was than the better peer in a turn: more messages,
 * or less time or CPU time. */
static double get_ratio_to_better_peer_in_turn(const struct savina_row *row,
                                               const struct turns *turns, enum savina_side side,
                                               uint32_t turn)
{
    double best = NAN;
    bool more = row->kind == SAVINA_MESSAGES;

    for (int peer = SAVINA_PLACEMENTS; peer < SAVINA_PEERS_END; peer++) {
        double value = turns->of[peer][turn].value;
        bool is_compared = peer != SAVINA_ERLANG || !row->from_outside;
        if (!turns->out[peer] && is_compared)
            best = more ? fmax(best, value) : fmin(best, value);
    }
    double ours = turns->of[side][turn].value;
    return more ? ours / best : best / ours;
}

/* Returns the median of one figure over the turns; `offset` is where this figure lies in the
 * figures of a turn. */
static double get_median_of_figure(const struct savina_figures *turns, size_t offset)
{
    double values[PROCESSES_LONG];

    for (uint32_t i = 0; i < bench.run.processes; i++)
        memcpy(&values[i], (const char *)&turns[i] + offset, sizeof values[i]);
    return measure_sort_and_get_median(values, bench.run.processes);
}

static void compute_medians_of_outcome(struct savina_outcome *outcome, const struct turns *turns)
{
    double ratios[PROCESSES_LONG];

    for (int side = 0; side < SAVINA_SIDES; side++) {
        const struct savina_figures *of = turns->of[side];
        if (turns->out[side])
            continue;
        outcome->of[side] = (struct savina_figures){
            .first = get_median_of_figure(of, offsetof(struct savina_figures, first)),
            .value = get_median_of_figure(of, offsetof(struct savina_figures, value)),
            .p99_ns = get_median_of_figure(of, offsetof(struct savina_figures, p99_ns)),
            .p999_ns = get_median_of_figure(of, offsetof(struct savina_figures, p999_ns)),
        };
        if (side >= SAVINA_PLACEMENTS)
            continue;
        for (uint32_t i = 0; i < bench.run.processes; i++)
            ratios[i] =
                get_ratio_to_better_peer_in_turn(outcome->row, turns, (enum savina_side)side, i);
        outcome->ratio[side] = measure_sort_and_get_median(ratios, bench.run.processes);
    }
}

static void print_figure_of_outcome(void *context, const struct savina_outcome *outcome,
                                    const char *who, const char *name, double value,
                                    const char *unit)
{
    (void)context;
    printf("savina.%s.%" PRIu32 "%s%s.%s %.4g %s\n", outcome->row->name, outcome->threads,
           who[0] != '\0' ? "." : "", who, name, value, unit);
}

static bool is_contender_in_row(const struct savina_outcome *outcome, enum savina_side side)
{
    const struct savina_row *row = outcome->row;

    if (side == SAVINA_SPREAD && (!row->parallel || outcome->threads == 1))
        return false;
    if (side == SAVINA_THREADS && !row->bare)
        return false;
    return bench.there[sides[side].who] && (side < SAVINA_PLACEMENTS || !row->domus_only);
}

static bool is_compared_with_ring(const struct savina_outcome *outcome)
{
    return outcome->threads > 1 && outcome->row->under_way != 0;
}

/* Returns the rate of domus in a row as a part of the bare limit. That limit bounds only rows whose
 * messages cross threads; for other rows this returns NAN. */
static double get_rate_as_part_of_bare_limit(const struct savina_outcome *outcome)
{
    bool crosses = outcome->threads > 1 && outcome->row->goal >= SAVINA_MESSAGE_BOUND;

    return crosses ? outcome->of[SAVINA_SPREAD].value / bench.run.limit : NAN;
}

/* Returns the rate of domus in a row as a part of the bare ring: the median of the ratios that each
 * process has. */
static double get_rate_as_part_of_bare_ring(const struct savina_outcome *outcome,
                                            const struct turns *turns)
{
    double parts[PROCESSES_LONG];

    if (!is_compared_with_ring(outcome))
        return NAN;
    for (uint32_t i = 0; i < bench.run.processes; i++)
        parts[i] = turns->of[SAVINA_SPREAD][i].value / turns->ring[i];
    return measure_sort_and_get_median(parts, bench.run.processes);
}

static double measure_bare_ring(uint32_t under_way)
{
    double rounds[LIMIT_ROUNDS];

    for (int i = 0; i < LIMIT_ROUNDS; i++)
        rounds[i] = limit_measure_ring_of_two_threads(LIMIT_MESSAGES, under_way, bench.cpus);
    return measure_sort_and_get_median(rounds, LIMIT_ROUNDS);
}

static void run_row_with_all_contenders(const struct savina_row *row, uint32_t threads)
{
    struct savina_outcome *outcome = &bench.outcomes[bench.count++];
    struct turns turns = {0};

    *outcome = (struct savina_outcome){
        .row = row,
        .size = bench.options.is_long ? row->size_long : row->size_short,
        .threads = threads,
        .of_ring = NAN,
    };
    for (int side = 0; side < SAVINA_SIDES; side++)
        outcome->of[side] = (struct savina_figures){NAN, NAN, NAN, NAN};
    for (int side = 0; side < SAVINA_PLACEMENTS; side++)
        outcome->ratio[side] = NAN;
    turns.expected = savina_expected_result_of_round(row, outcome->size);
    turns.messages = savina_message_count_of_round(row, outcome->size);
    fprintf(stderr, "savina: %s, threads: %" PRIu32 "\n", row->name, threads);
    for (int side = 0; side < SAVINA_SIDES; side++)
        turns.out[side] = !is_contender_in_row(outcome, (enum savina_side)side);
    for (uint32_t turn = 0; turn < bench.run.processes; turn++) {
        if (is_compared_with_ring(outcome))
            turns.ring[turn] = measure_bare_ring(row->under_way);
        for (int side = 0; side < SAVINA_SIDES; side++) {
            if (!turns.out[side])
                run_contender_in_turn(outcome, (enum savina_side)side, &turns, turn);
        }
    }
    compute_medians_of_outcome(outcome, &turns);
    outcome->of_limit = get_rate_as_part_of_bare_limit(outcome);
    outcome->of_ring = get_rate_as_part_of_bare_ring(outcome, &turns);
    bench.failed |= turns.out[SAVINA_NEAR];
    savina_call_for_each_figure(outcome, print_figure_of_outcome, NULL);
    fflush(stdout);
}

/* Find the first two CPUs that this process may use, which the contenders get. */
static bool find_first_two_cpus(int *ret_cpus)
{
    cpu_set_t set;
    int found = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < THREADS_MAX; cpu++) {
        if (CPU_ISSET((size_t)cpu, &set))
            ret_cpus[found++] = cpu;
    }
    return found == THREADS_MAX;
}

static void measure_bare_limit(const int *cpus)
{
    double rounds[LIMIT_ROUNDS];

    for (int i = 0; i < LIMIT_ROUNDS; i++)
        rounds[i] = limit_measure_many_senders_to_one(LIMIT_MESSAGES, 1, cpus);
    bench.run.limit = measure_sort_and_get_median(rounds, LIMIT_ROUNDS);
    printf("savina.limit %.4g messages/s\n", bench.run.limit);
}

static bool read_options(int argc, char **argv)
{
    if (!options_parse_of_page_bench(argc, argv, &bench.options))
        return false;
    bench.wanted = argv + optind;
    bench.wanted_count = argc - optind;
    for (int i = 0; i < bench.wanted_count; i++) {
        if (savina_find_row_by_name(bench.wanted[i]) == NULL)
            return false;
    }
    return true;
}

static void run_all_rows(void)
{
    uint32_t threads_max = find_first_two_cpus(bench.cpus) ? THREADS_MAX : 1;

    if (threads_max == 1)
        fprintf(stderr, "savina: only one CPU: nothing runs on two threads\n");
    else
        measure_bare_limit(bench.cpus);
    for (uint32_t threads = 1; threads <= threads_max; threads++) {
        for (size_t i = 0; i < SAVINA_ROWS; i++) {
            if (options_is_name_wanted(bench.wanted_count, bench.wanted, savina_rows[i].name))
                run_row_with_all_contenders(&savina_rows[i], threads);
        }
    }
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv)) {
        fprintf(stderr, "usage: bench_savina [--long] [--out DIR] [--gnuplot FILE] [ROW ...]\n");
        return 2;
    }
    bench.run.is_long = bench.options.is_long;
    if (bench.options.is_long) {
        bench.run.rounds = ROUNDS_LONG;
        bench.run.processes = PROCESSES_LONG;
    }
    for (int who = 0; who < CONTENDERS; who++)
        bench.there[who] = contender_can_be_run("savina", (enum contender)who);
    run_all_rows();
    int error = bench.options.out == NULL
                    ? 0
                    : savina_report(bench.options.out, bench.options.gnuplot_script, &bench.run,
                                    bench.outcomes, bench.count);
    if (error != 0)
        fprintf(stderr, "savina: the page in %s: %s\n", bench.options.out, strerror(-error));
    return error != 0 || bench.failed ? 1 : 0;
}
