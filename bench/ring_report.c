/* The page and the plot of the ring bench: one row of the table for each size of a ring. */
#include "bench/ring_report.h"

#include "bench/actors/ring_numbers.h"
#include "bench/support/page.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const orders[RING_ORDERS] = {"in spawn order", "shuffled"};

static const char *format_seconds(double value, char *text)
{
    if (value < 1e-3)
        return page_write_number_of_cell(value, 1e6, " us", text);
    if (value < 1)
        return page_write_number_of_cell(value, 1e3, " ms", text);
    return page_write_number_of_cell(value, 1, " s", text);
}

static void write_table_of_rings(FILE *file, const struct ring_point *points, size_t count,
                                 int order)
{
    char text[PAGE_CELL_MAX];

    fprintf(file, "\n## Rings %s\n\n", orders[order]);
    fprintf(file, "Token passes per second, in millions (k: in thousands), and start-up:\n\n");
    fprintf(file, "| actors | domus | CAF | Erlang | threads | domus, start-up | CAF | Erlang | "
                  "threads |\n"
                  "|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "| %s |", page_write_grouped_number(points[i].size, text));
        for (int who = 0; who < CONTENDERS; who++)
            fprintf(file, " %s |",
                    page_write_rate_in_millions_or_k(points[i].of[order][who].passes_s, text));
        for (int who = 0; who < CONTENDERS; who++)
            fprintf(file, " %s |", format_seconds(points[i].of[order][who].startup_s, text));
        fputc('\n', file);
    }
}

static void write_table_of_memory(FILE *file, const struct ring_point *points, size_t count,
                                  int order)
{
    char text[PAGE_CELL_MAX];

    fprintf(file,
            "\ndomus: all bytes of an actor, start-up, the time to touch as many bytes in the same "
            "run\nas the kernel gives them, the ratio of the two, the time to touch them in huge "
            "pages (which\ndomus asks for), and start-up again after all were stopped:\n\n");
    fprintf(file, "| actors | bytes of one | start-up | touch | ratio | touch, huge | again |\n"
                  "|--:|--:|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < count; i++) {
        const struct ring_figures *domus = &points[i].of[order][CONTENDER_DOMUS];
        fprintf(file, "| %s |", page_write_grouped_number(points[i].size, text));
        fprintf(file, " %s |", page_write_number_of_cell(domus->bytes, 1, "", text));
        fprintf(file, " %s |", format_seconds(domus->startup_s, text));
        fprintf(file, " %s |", format_seconds(domus->touch_s, text));
        fprintf(file, " %s |", page_write_number_of_cell(domus->startup_touch, 1, "", text));
        fprintf(file, " %s |", format_seconds(domus->touch_huge_s, text));
        fprintf(file, " %s |\n", format_seconds(domus->again_s, text));
    }
}

static int write_page_of_results(const char *path, const struct ring_point *points, size_t count,
                                 int rounds, bool is_long, const char *notes)
{
    FILE *file = fopen(path, "we");

    if (file == NULL)
        return -errno;
    fprintf(
        file,
        "# The ring\n\n"
        "n actors in a ring, ten tokens that go round: the experiment of Haller and Odersky,\n"
        "*Event-Based Programming without Inversion of Control*, section 5. Start-up is to\n"
        "spawn all, tell each its next, until each has handled that and waits; then the\n"
        "tokens begin, as far apart as they can. One thread on one CPU, each figure the\n"
        "median of %d, the contenders in turn; `-`: not installed, or it did not fit.\n"
        "There: 310,000 processes in about 10 s, in 256 MB.\n\n"
        "The threads have no actors, as the threads of that experiment: each process is a\n"
        "thread of the kernel with a stack of %d KiB, and its mailbox is a mutex and a\n"
        "condition variable. All of them share the one CPU, too, and pass the tokens a tenth\n"
        "as often. The kernel was asked for a table of futexes as large as the ring. There the\n"
        "threads came to 4,000, and actors that are threads to 2,000.\n\n"
        "`./dev bench ring%s --out docs` wrote this page, on\n",
        rounds, (int)RING_STACK_BYTES / 1024, is_long ? " --long" : "");
    page_write_machine(file);
    fprintf(file, "\n![passes per second and start-up by the size of the ring](ring.svg)\n");
    for (int order = 0; order < RING_ORDERS; order++) {
        write_table_of_rings(file, points, count, order);
        write_table_of_memory(file, points, count, order);
    }
    fprintf(file, "\n%s", notes);
    int failed = ferror(file);
    return fclose(file) != 0 || failed ? -EIO : 0;
}

/* Write a block of data for each line of the plot, with the name by which bench/ring.gp finds
 * it. */
static void write_data_of_plot(FILE *file, const struct ring_point *points, size_t count)
{
    for (int order = 0; order < RING_ORDERS; order++) {
        for (int who = 0; who < CONTENDERS; who++) {
            fprintf(file, "# %s%s\n", contender_name((enum contender)who),
                    order == 0 ? "" : "-shuffled");
            for (size_t i = 0; i < count; i++) {
                const struct ring_figures *of = &points[i].of[order][who];
                fprintf(file, "%" PRIu64 " %g %g %g\n", points[i].size, of->passes_s, of->startup_s,
                        of->touch_s);
            }
            fprintf(file, "\n\n");
        }
    }
}

int ring_report(const char *directory, const char *gnuplot_script, const struct ring_point *points,
                size_t count, int rounds, bool is_long, const char *notes)
{
    char path[PATH_MAX];
    char data[] = "/tmp/domus-ring-XXXXXX";

    snprintf(path, sizeof path, "%s/ring.md", directory);
    int error = write_page_of_results(path, points, count, rounds, is_long, notes);
    if (error != 0)
        return error;

    int descriptor = mkstemp(data);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (file == NULL) {
        error = -errno;
        if (descriptor >= 0)
            close(descriptor);
        return error;
    }
    write_data_of_plot(file, points, count);
    snprintf(path, sizeof path, "%s/ring.svg", directory);
    error = fclose(file) != 0 ? -EIO : page_plot_by_gnuplot(gnuplot_script, data, path);
    unlink(data);
    return error;
}
