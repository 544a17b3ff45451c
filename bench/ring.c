/* The ring bench: n actors, ten tokens; start-up and token passes per second, n by n, beside CAF,
 * Erlang and threads without actors.
 *
 * Each contender is a program (bench/actors/ring.c says what it does) that runs alone on one CPU,
 * in turn with the others. A contender that cannot do a ring, because memory or time runs out, is
 * left out of larger ones, and the largest ring that it did is printed. Address space is limited to
 * most of the memory that is free at the start, so that the kernel kills no program because memory
 * is short. The ring of threads is tried up to what the limits of the machine bear
 * (bench/support/thread_limits.h), and the others do a ring of that size, too.
 *
 * bench_ring [--long] [--out DIR] [--gnuplot FILE]: the short form goes to a million actors, once;
 * --long to ten millions and takes medians of three. --out writes DIR/ring.md and DIR/ring.svg with
 * the script FILE (bench/ring.gp). stdout: lines `name value unit`. stderr: progress. Exit 1 on a
 * wrong result, or when a page cannot be written; never on a missed goal. */
#include "bench/ring_report.h"
#include "bench/support/contender.h"
#include "bench/support/measure.h"
#include "bench/support/options.h"
#include "bench/support/page.h"
#include "bench/support/thread_limits.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS_MAX  3
#define SECONDS_MAX 120
#define SIZE_FIRST  UINT64_C(10)
#define SIZE_SHORT  UINT64_C(1000000)
#define SIZE_LONG   UINT64_C(10000000)
/* sizes of rings, at most: the powers of ten, and the largest ring of threads */
#define SIZES_MAX    8
#define THREADS_MOST UINT64_C(32000)
/* address space that a contender may have, in percent of the memory that is free at the start */
#define MEMORY_SHARE 85
#define NOTES_MAX    1024

static const struct {
    const char *row;
    const char *name;
} orders[RING_ORDERS] = {{"ring", "spawned"}, {"ring_shuffled", "shuffled"}};

static struct {
    struct options_page options;
    int rounds;
    uint64_t memory_max_bytes;
    uint64_t threads_max; /* size of the largest ring that is tried with threads */
    bool out_of[RING_ORDERS][CONTENDERS];
    uint64_t largest[RING_ORDERS][CONTENDERS];
} bench = {.options = {.gnuplot_script = "bench/ring.gp"}};

/* Returns how many bytes of memory are available; 0 if the kernel does not tell, and then
 * contenders have no limit. */
static uint64_t read_available_memory_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    uint64_t kib = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    return kib * 1024;
}

static bool run_contender_in_ring_of_size(uint64_t size, int order, enum contender who,
                                          struct ring_figures *ret_figures)
{
    struct contest contest = {
        .suite = "actors",
        .row = orders[order].row,
        .size = size,
        .threads = 1,
        .seconds_max = SECONDS_MAX,
        .memory_max_bytes = bench.memory_max_bytes,
    };
    struct command_result result;
    int error = contender_run_in_contest(who, &contest, &result);

    if (error == -EBADMSG)
        exit(1);
    if (error != 0) {
        fprintf(stderr, "ring: %s of %" PRIu64 ": %s is out: %s\n", orders[order].name, size,
                contender_name(who), strerror(-error));
        return false;
    }
    double startup_s = command_first_figure_of_name(&result, "startup_seconds");
    double touch_s = command_first_figure_of_name(&result, "touch_seconds");
    *ret_figures = (struct ring_figures){
        .passes_s = command_first_figure_of_name(&result, "passes") /
                    command_first_figure_of_name(&result, "seconds"),
        .startup_s = startup_s,
        .again_s = command_first_figure_of_name(&result, "again_seconds"),
        .touch_s = touch_s,
        .touch_huge_s = command_first_figure_of_name(&result, "touch_huge_seconds"),
        .startup_touch = startup_s / touch_s,
        .bytes = command_first_figure_of_name(&result, "bytes") / (double)size,
    };
    if (isnan(ret_figures->passes_s) || isnan(startup_s)) {
        fprintf(stderr, "ring: %s left out a figure\n", contender_name(who));
        exit(1);
    }
    return true;
}

/* Returns the median of one figure over the rounds; `offset` is where this figure lies in the
 * figures of a round. */
static double get_median_of_figure(const struct ring_figures *rounds, size_t offset)
{
    double values[ROUNDS_MAX];

    for (int i = 0; i < bench.rounds; i++)
        memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof values[i]);
    return measure_sort_and_get_median(values, (size_t)bench.rounds);
}

static struct ring_figures compute_medians_of_rounds(const struct ring_figures *rounds)
{
    return (struct ring_figures){
        .passes_s = get_median_of_figure(rounds, offsetof(struct ring_figures, passes_s)),
        .startup_s = get_median_of_figure(rounds, offsetof(struct ring_figures, startup_s)),
        .again_s = get_median_of_figure(rounds, offsetof(struct ring_figures, again_s)),
        .touch_s = get_median_of_figure(rounds, offsetof(struct ring_figures, touch_s)),
        .touch_huge_s = get_median_of_figure(rounds, offsetof(struct ring_figures, touch_huge_s)),
        .startup_touch = get_median_of_figure(rounds, offsetof(struct ring_figures, startup_touch)),
        .bytes = get_median_of_figure(rounds, offsetof(struct ring_figures, bytes)),
    };
}

static void print_figures_of_rings(uint64_t size, int order, enum contender who,
                                   const struct ring_figures *figures)
{
    const struct {
        const char *name;
        double value;
        const char *unit;
    } lines[] = {
        {"passes", figures->passes_s, "passes/s"},  {"startup", figures->startup_s, "s"},
        {"touch", figures->touch_s, "s"},           {"touched", figures->startup_touch, "ratio"},
        {"touch_huge", figures->touch_huge_s, "s"}, {"again", figures->again_s, "s"},
        {"actor", figures->bytes, "bytes"},
    };

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (!isnan(lines[i].value))
            printf("ring.%s.%" PRIu64 ".%s.%s %.4g %s\n", orders[order].name, size,
                   contender_name(who), lines[i].name, lines[i].value, lines[i].unit);
    }
    fflush(stdout);
}

static bool does_contender_take_part(uint64_t size, int order, enum contender who)
{
    return !bench.out_of[order][who] && (who != CONTENDER_THREADS || size <= bench.threads_max);
}

static void measure_ring_of_size(struct ring_point *point, int order)
{
    struct ring_figures rounds[CONTENDERS][ROUNDS_MAX];

    fprintf(stderr, "ring: %s, %" PRIu64 "\n", orders[order].name, point->size);
    for (int round = 0; round < bench.rounds; round++) {
        for (int who = 0; who < CONTENDERS; who++) {
            if (does_contender_take_part(point->size, order, (enum contender)who))
                bench.out_of[order][who] = !run_contender_in_ring_of_size(
                    point->size, order, (enum contender)who, &rounds[who][round]);
        }
    }
    for (int who = 0; who < CONTENDERS; who++) {
        struct ring_figures *figures = &point->of[order][who];
        *figures = (struct ring_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
        if (!does_contender_take_part(point->size, order, (enum contender)who))
            continue;
        *figures = compute_medians_of_rounds(rounds[who]);
        bench.largest[order][who] = point->size;
        print_figures_of_rings(point->size, order, (enum contender)who, figures);
    }
}

/* Print how much the rate of passes falls from the smallest ring to the largest one that fits into
 * the last-level cache. */
static void print_fall_of_rate(const struct ring_point *points, size_t count)
{
    double cache_bytes = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
    const struct ring_figures *first = &points[0].of[0][CONTENDER_DOMUS];

    for (size_t i = count; i-- > 1;) {
        const struct ring_figures *held = &points[i].of[0][CONTENDER_DOMUS];
        if (held->bytes * (double)points[i].size > cache_bytes || isnan(held->bytes))
            continue;
        printf("ring.spawned.cache %" PRIu64 " actors\n", points[i].size);
        printf("ring.spawned.fall %.3f ratio\n", first->passes_s / held->passes_s);
        return;
    }
}

static void print_largest_rings(char *notes, size_t size)
{
    char text[PAGE_CELL_MAX];
    int used = snprintf(notes, size,
                        "The limits of this machine bear a ring of %s threads; larger ones were "
                        "not\ntried. The largest ring of each, of those tried:",
                        page_write_grouped_number(bench.threads_max, text));

    for (int order = 0; order < RING_ORDERS; order++) {
        for (int who = 0; who < CONTENDERS; who++) {
            const char *name = contender_name((enum contender)who);
            uint64_t largest = bench.largest[order][who];
            printf("ring.%s.%s.largest %" PRIu64 " actors\n", orders[order].name, name, largest);
            used += snprintf(notes + used, size - (size_t)used, "%s\n%s (%s) %s",
                             order + who == 0 ? "" : ",", name, orders[order].name,
                             page_write_grouped_number(largest, text));
        }
    }
    snprintf(notes + used, size - (size_t)used, ".\n");
}

/* Find the sizes of rings to measure: the powers of ten, and between them the largest ring of
 * threads. Returns how many there are. */
static size_t fill_in_sizes_of_rings_to_measure(struct ring_point *points)
{
    uint64_t last = bench.options.is_long ? SIZE_LONG : SIZE_SHORT;
    size_t count = 0;

    for (uint64_t size = SIZE_FIRST; size <= last; size *= 10) {
        points[count++].size = size;
        if (bench.threads_max > size && bench.threads_max < size * 10)
            points[count++].size = bench.threads_max;
    }
    return count;
}

static void find_memory_and_thread_limits(void)
{
    struct thread_limits limits;

    bench.memory_max_bytes = read_available_memory_bytes() / 100 * MEMORY_SHARE;
    thread_limits_read(&limits);
    bench.threads_max = thread_limits_count_startable_threads(&limits, THREADS_MOST);
}

int main(int argc, char **argv)
{
    static struct ring_point points[SIZES_MAX];
    char notes[NOTES_MAX];

    if (!options_parse_of_page_bench(argc, argv, &bench.options) || optind != argc) {
        fprintf(stderr, "usage: bench_ring [--long] [--out DIR] [--gnuplot FILE]\n");
        return 2;
    }
    bench.rounds = bench.options.is_long ? ROUNDS_MAX : 1;
    find_memory_and_thread_limits();
    for (int who = 0; who < CONTENDERS; who++)
        bench.out_of[0][who] = bench.out_of[1][who] =
            !contender_can_be_run("actors", (enum contender)who);
    size_t count = fill_in_sizes_of_rings_to_measure(points);
    for (size_t i = 0; i < count; i++) {
        for (int order = 0; order < RING_ORDERS; order++)
            measure_ring_of_size(&points[i], order);
    }
    print_fall_of_rate(points, count);
    print_largest_rings(notes, sizeof notes);
    int error = bench.options.out == NULL
                    ? 0
                    : ring_report(bench.options.out, bench.options.gnuplot_script, points, count,
                                  bench.rounds, bench.options.is_long, notes);
    if (error != 0)
        fprintf(stderr, "ring: the page in %s: %s\n", bench.options.out, strerror(-error));
    return error != 0 || bench.largest[0][CONTENDER_DOMUS] == 0 ? 1 : 0;
}
