/* Makes a locale whose numbers have a comma; tests/support/comma.h says for which tests. */
#include "tests/support/comma.h"

#include "tests/support/suite.h"

#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file LC_NUMERIC of the locale: a head, six offsets, and the values at these offsets, in the
 * form that glibc loads. A machine for tests seldom has a locale with a comma, so the test writes
 * this file itself. */
static const struct {
    uint32_t magic, count, offsets[6];
    char decimal_point[4], thousands_sep[4], grouping[4];
    uint32_t wide_point, wide_sep;
    char codeset[8];
} comma_file = {
    0x20031115u ^ LC_NUMERIC, 6, {32, 36, 40, 44, 48, 52}, ",", "", "\177", ',', 0, "UTF-8"};

static char folder[64], path[128], locale_folder[128];

static void write_locale_file(void)
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

static void remove_locale_file(void)
{
    (void)unlink(path);
    (void)rmdir(locale_folder);
    (void)rmdir(folder);
}

void domt_use_locale_with_comma(void)
{
    char text[8];

    write_locale_file();
    bool is_known = setlocale(LC_NUMERIC, "comma") != NULL;
    remove_locale_file();
    snprintf(text, sizeof text, "%.1f", 1.5);
    ck_assert_msg(is_known && strcmp(text, "1,5") == 0, "no locale with a comma: %s", text);
}
