/* Reals as texts for databases: as few digits as identify the number, and a point in every
 * locale. */
#include "tests/support/comma.h"
#include "tests/support/suite.h"

#include <domus/sql_driver.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    double real;
    const char *text;
} rows[] = {
    {0, "0"},
    {-0.0, "-0"},
    {0.1, "0.1"},
    {-2.5, "-2.5"},
    {1.0 / 3, "0.3333333333333333"},
    {0.1 + 0.2, "0.30000000000000004"},
    {DBL_MAX, "1.7976931348623157e+308"},
    {DBL_TRUE_MIN, "4.94065645841247e-324"},
    {INFINITY, "inf"},
    {-INFINITY, "-inf"},
    {NAN, "nan"},
};

DOMT_TEST(reals_have_a_point_in_every_locale)
{
    char text[DOMUS_SQL_REAL_SIZE], locales[8], *end;

    for (int round = 0; round < 2; round++) {
        if (round == 1)
            domt_use_comma();
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            domus_sql_real_write(rows[i].real, text);
            ck_assert_str_eq(text, rows[i].text);
            double read = domus_sql_real_read(text, &end);
            ck_assert(*end == '\0' && (read == rows[i].real || (isnan(read) && i == 10)));
        }
        /* check that the program's locale is unchanged */
        snprintf(locales, sizeof locales, "%.1f", 1.5);
        ck_assert_str_eq(locales, round == 1 ? "1,5" : "1.5");
    }
}

DOMT_SUITE(20)
