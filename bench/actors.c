/* The actor bench: domus, CAF and Erlang do the same work in turn, each in its own process.
 *
 * Each row runs ROUNDS times, the contenders alternating on the same CPUs. It prints the median of
 * each contender, and the median of the ratios of domus to the better peer, which are taken round
 * by round. Every program checks its own result. The rows on one thread are asks one after the
 * other, asks to 10,000 actors at once, spawn and stop, and timers. The row on two threads is asks
 * between two actors; domus has one on each thread, and the peers' schedulers place them as they
 * like.
 *
 * Timers are spread over 100 ms, and no contender can be faster than that. So the CPU time of one
 * timer is printed beside their rate.
 *
 * bench_actors [ROW ...]: without a name all rows run. stdout: lines `name value unit`. stderr:
 * progress. Exit 1 on a wrong result, never on a missed goal. */
#include "bench/support/contender.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS      5
#define SECONDS_MAX 120
/* number of actors that one round of the row `fan_out` asks at once, as in all contenders */
#define FAN_OUT_TARGETS 10000

struct row {
    const char *name;
    const char *unit;
    uint64_t size;
    double per_size; /* how many operations, whose name is `unit`, a size of 1 makes */
    uint32_t threads;
    bool cpu; /* for this row the CPU time of one operation is printed, too */
};

static const struct row rows[] = {
    {"ask", "asks/s", 1000000, 1, 1, false},
    {"ask_cross", "asks/s", 500000, 1, 2, false},
    {"fan_out", "asks/s", 50, FAN_OUT_TARGETS, 1, false},
    {"spawn_stop", "actors/s", 1000000, 1, 1, false},
    {"timers", "timers/s", 1000000, 1, 1, true},
    {"timers_cancel", "timers/s", 1000000, 1, 1, true},
};

static bool there[CONTENDERS];

/* The results of one contender in one row. A contender that has failed once is out, and has no more
 * rounds in this row. */
struct outcome {
    bool out;
    double rate[ROUNDS];
    double cpu_ns[ROUNDS];
};

static void run_contender_and_store_round(const struct row *row, enum contender who,
                                          struct outcome *outcome, int round)
{
    struct contest contest = {
        .suite = "actors",
        .row = row->name,
        .size = row->size,
        .threads = row->threads,
        .seconds_max = SECONDS_MAX,
    };
    struct command_result result;
    int error = contender_run_in_contest(who, &contest, &result);

    if (error == -EBADMSG)
        exit(1);
    if (error != 0) {
        fprintf(stderr, "actors: %s: %s is out: %s\n", row->name, contender_name(who),
                strerror(-error));
        outcome->out = true;
        return;
    }
    double count = (double)row->size * row->per_size;
    outcome->rate[round] = count / command_first_figure_of_name(&result, "seconds");
    outcome->cpu_ns[round] = command_first_figure_of_name(&result, "cpu_seconds") / count * 1e9;
    if (isnan(outcome->rate[round])) {
        fprintf(stderr, "actors: %s: %s printed no seconds\n", row->name, contender_name(who));
        exit(1);
    }
    fprintf(stderr, "actors: %s: round %d: %s %.4g %s\n", row->name, round + 1, contender_name(who),
            outcome->rate[round], row->unit);
}

/* Returns the rate of the better peer (CAF or Erlang) in this round; 0 if there is no peer. */
static double rate_of_better_peer(const struct outcome *outcomes, int round)
{
    double best = 0;

    for (int who = CONTENDER_CAF; who < CONTENDERS; who++) {
        if (!outcomes[who].out && outcomes[who].rate[round] > best)
            best = outcomes[who].rate[round];
    }
    return best;
}

static void print_medians_of_row(const struct row *row, struct outcome *outcomes)
{
    double ratio[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        double best = rate_of_better_peer(outcomes, round);
        ratio[round] = best == 0 ? 0 : outcomes[CONTENDER_DOMUS].rate[round] / best;
    }
    for (int who = 0; who < CONTENDERS; who++) {
        struct outcome *outcome = &outcomes[who];
        const char *name = contender_name((enum contender)who);
        if (outcome->out)
            continue;
        printf("actors.%s.%s %.4g %s\n", row->name, name,
               measure_sort_and_get_median(outcome->rate, ROUNDS), row->unit);
        if (row->cpu)
            printf("actors.%s.%s.cpu %.1f ns\n", row->name, name,
                   measure_sort_and_get_median(outcome->cpu_ns, ROUNDS));
    }
    double median = measure_sort_and_get_median(ratio, ROUNDS);
    if (!outcomes[CONTENDER_DOMUS].out && median != 0)
        printf("actors.%s.ratio %.2f ratio\n", row->name, median);
    fflush(stdout);
}

/* Run all rounds of a row with all contenders. Returns false if domus failed. */
static bool run_all_rounds_of_row(const struct row *row)
{
    struct outcome outcomes[CONTENDERS] = {0};

    for (int who = 0; who < CONTENDERS; who++)
        outcomes[who].out = !there[who];
    for (int round = 0; round < ROUNDS; round++) {
        for (int who = 0; who < CONTENDERS; who++) {
            if (!outcomes[who].out)
                run_contender_and_store_round(row, (enum contender)who, &outcomes[who], round);
        }
    }
    print_medians_of_row(row, outcomes);
    return !outcomes[CONTENDER_DOMUS].out;
}

int main(int argc, char **argv)
{
    int status = 0;

    for (int who = 0; who < CONTENDERS; who++)
        there[who] =
            who != CONTENDER_THREADS && contender_can_be_run("actors", (enum contender)who);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (options_is_name_wanted(argc - 1, argv + 1, rows[i].name) &&
            !run_all_rounds_of_row(&rows[i]))
            status = 1;
    }
    return status;
}
