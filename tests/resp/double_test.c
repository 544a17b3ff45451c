/* Doubles are written and read with a point, also in a program whose locale has a comma. */
#include <domus/resp.h>

#include "tests/support/suite.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- a locale with a comma -------------------------------------------------------------------- */

/* Machines for tests seldom have one, so this writes the file that glibc would load: a head, six
 * offsets, and what stands there. */
static const struct {
    uint32_t magic, count, offsets[6];
    char decimal_point[4], thousands_sep[4], grouping[4];
    uint32_t wide_point, wide_sep;
    char codeset[8];
} comma_file = {
    0x20031115u ^ LC_NUMERIC, 6, {32, 36, 40, 44, 48, 52}, ",", "", "\177", ',', 0, "UTF-8"};

static char folder[64], path[128], locale_folder[128];

static void write_locale(void)
{
    snprintf(folder, sizeof folder, "/tmp/domus-locale-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(locale_folder, sizeof locale_folder, "%s/comma", folder);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    ck_assert_int_eq(mkdir(locale_folder, 0700), 0);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&comma_file, sizeof comma_file, 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(setenv("LOCPATH", folder, 1), 0);
}

static void remove_locale(void)
{
    (void)unlink(path);
    (void)rmdir(locale_folder);
    (void)rmdir(folder);
}

/* Returns whether numbers have a comma now: not every C library knows this file. */
static bool use_comma(void)
{
    char text[8];

    write_locale();
    bool is_known = setlocale(LC_NUMERIC, "comma") != NULL;
    remove_locale();
    snprintf(text, sizeof text, "%.1f", 1.5);
    return is_known && strcmp(text, "1,5") == 0;
}

/* --- doubles ---------------------------------------------------------------------------------- */

static void hold(double value, const char *text)
{
    domus_resp_builder builder = {0};
    domus_resp_reply reply;
    domus_resp_value read;

    ck_assert_int_eq(domus_resp_add_double(&builder, value), 0);
    ck_assert_int_eq(domus_resp_end(&builder, &reply), 0);
    ck_assert_msg(domus_slice_equals(reply.bytes, text, strlen(text)), "%.*s",
                  (int)reply.bytes.size, domus_slice_data(reply.bytes));
    domus_resp_reader reader = {.bytes = reply.bytes};
    ck_assert_int_eq(domus_resp_read(&reader, &read), 1);
    ck_assert(read.kind == DOMUS_RESP_DOUBLE);
    ck_assert(read.number == value || (isnan(read.number) && isnan(value)));
    domus_slice_free(reply.bytes);
}

START_TEST(doubles_have_a_point_in_every_locale)
{
    bool has_comma = use_comma(); /* else this C library has no such locale */
    char text[8];

    hold(3.5, ",3.5\r\n");
    hold(-0.1, ",-0.1\r\n");
    hold(1.0 / 3, ",0.3333333333333333\r\n");
    hold(1.5e300, ",1.5e+300\r\n");
    hold(7, ",7\r\n");
    hold(NAN, ",nan\r\n");
    hold(-INFINITY, ",-inf\r\n");
    /* the locale of the program is as it was */
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_str_eq(text, has_comma ? "1,5" : "1.5");
}
END_TEST

DOMT_MAIN("double", 30, doubles_have_a_point_in_every_locale)
