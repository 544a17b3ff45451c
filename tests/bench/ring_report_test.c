/* The page that the ring bench writes. */
#include "tests/support/suite.h"

#include "bench/ring_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/domt-ring-XXXXXX";

static struct ring_point make_point(uint64_t size)
{
    struct ring_point made = {.size = size};

    for (int order = 0; order < RING_ORDERS; order++) {
        for (int who = 0; who < CONTENDERS; who++)
            made.of[order][who] = (struct ring_figures){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    }
    return made;
}

static void read_page(char *text, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/ring.md", directory);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
    unlink(path);
}

DOMT_TEST(ring_page_groups_digits_scales_seconds_and_marks_what_is_missing)
{
    static char text[16384];
    struct ring_point points[] = {make_point(10), make_point(1000000)};

    points[0].of[0][CONTENDER_DOMUS] =
        (struct ring_figures){51.26e6, 13.04e-6, 1.9e-6, 11e-6, 4.5e-6, 1.185, 2048};
    points[1].of[0][CONTENDER_DOMUS] =
        (struct ring_figures){4.2e6, 1.25, 0.139, 0.8, 0.33, 1.5, 241.6};
    points[1].of[0][CONTENDER_CAF].passes_s = 1.26e6;
    points[1].of[0][CONTENDER_CAF].startup_s = 3.47;
    points[0].of[0][CONTENDER_THREADS].passes_s = 77.86e3;
    points[0].of[0][CONTENDER_THREADS].startup_s = 0.25;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    /* If gnuplot or its script is missing, the page is written anyway, and an error is returned. */
    ck_assert_int_lt(ring_report(directory, "/nonexistent.gp", points, 2, 5, true, "A note.\n"), 0);
    read_page(text, sizeof text);
    ck_assert_ptr_nonnull(
        strstr(text, "| 10 | 51.3 | - | - | 77.9 k | 13.0 us | - | - | 250 ms |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 1,000,000 | 4.20 | 1.26 | - | - | 1.25 s | 3.47 s | - | - |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 10 | 2048 | 13.0 us | 11.0 us | 1.19 | 4.50 us | 1.90 us |\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "| 1,000,000 | 242 | 1.25 s | 800 ms | 1.50 | 330 ms | 139 ms |\n"));
    ck_assert_ptr_nonnull(strstr(text, "median of 5,"));
    ck_assert_ptr_nonnull(strstr(text, " a stack of 64 KiB,"));
    ck_assert_ptr_nonnull(strstr(text, "`./dev bench ring --long --out docs` wrote"));
    ck_assert_str_eq(text + strlen(text) - strlen("\nA note.\n"), "\nA note.\n");
    rmdir(directory);
}

DOMT_TEST(ring_page_that_cannot_be_written_is_an_error)
{
    struct ring_point one = make_point(10);

    ck_assert_int_eq(ring_report("/nonexistent", "bench/ring.gp", &one, 1, 1, false, ""), -ENOENT);
}

DOMT_SUITE(60)
