/* Texts and numbers around the sizes at which a reader takes another path, and doubles that are
 * read as strtod(3) reads them. */
#include "tests/support/suite.h"

#include <domus/json.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

/* Numbers of JSON: doubles are read as strtod(3) reads them, and written so that they read back
 * equal. */

typedef struct one {
    double real;
} one;

static const domus_json_field fields[] = {
    {DOMUS_JSON_REAL("r", one, real, -DBL_MAX, DBL_MAX)},
};
static const domus_json_table table = DOMUS_JSON_TABLE(one, fields);

static int read_real_number(const char *number, double *ret_real)
{
    char text[1200];
    one got;
    int size = snprintf(text, sizeof text, "{\"r\":%s}", number);
    int error = domus_json_read(&table, NULL, text, (size_t)size, &got, NULL, NULL);

    if (error == 0)
        *ret_real = got.real;
    return error;
}

static void check_number_is_read_as(const char *number, double wanted)
{
    double got = 0;

    ck_assert_msg(read_real_number(number, &got) == 0, "%s", number);
    ck_assert_msg(memcmp(&got, &wanted, sizeof got) == 0, "%s: %.17g is not %.17g", number, got,
                  wanted);
}

DOMT_TEST(doubles_are_read_as_nearest_value)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "-0.0",
        "0e5",
        "1",
        "-1",
        "0.1",
        "0.3",
        "1e22",
        "1e23",
        "-1e-22",
        "1e-23",
        "9007199254740991",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        "900719925474099267",
        "12345678901234567890",
        "1.7976931348623157e308",
        "2.2250738585072014e-308",
        "2.2250738585072011e-308",
        "4.9e-324",
        "2.4e-324",
        "1e-400",
        "1e-999999999999",
        "0.000001",
        "123456789.123456789e-5",
        "5e-1",
        "1E+2",
        "100e-2",
        "179769313486231580793728971405301e276",
        "0.00000000000000000000000000000012e30",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "1e0000000000000000000022",
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        check_number_is_read_as(numbers[i], strtod(numbers[i], NULL));
}

/* Numbers with a large exponent, or with as many zeros, must not overflow any counter of the
 * reader. */
DOMT_TEST(large_exponents_overflow_no_counter)
{
    char number[1100] = "0.";
    double got;

    memset(number + 2, '0', 1000);
    (void)snprintf(number + 1002, 30, "1e-2147483647");
    check_number_is_read_as(number, 0.0);
    (void)snprintf(number + 1002, 30, "1e1001");
    check_number_is_read_as(number, 1.0);
    ck_assert_int_eq(read_real_number("1e2147483648", &got), -EBADMSG);
    ck_assert_int_eq(read_real_number("1e99999999999999999999", &got), -EBADMSG);
    check_number_is_read_as("0.0000000001e-99999999999999999999", 0.0);
}

static uint64_t draw_next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

DOMT_TEST(doubles_read_back_equal)
{
    uint64_t state = 88172645463325252u;
    uint32_t rounds = domt_tenfold_if_tests_are_long(20000);
    char text[64];

    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t bits = draw_next_random(&state);
        one value;
        one got;
        domus_appender appender = {0};
        domus_slice bytes;
        memcpy(&value.real, &bits, sizeof bits);
        if (i % 2 == 0) /* every second number is a short decimal one, as people write them */
            value.real = (double)(int64_t)(bits >> 40) / 100.0;
        int error = domus_json_write(&table, &value, &appender, NULL);
        if (error == -ERANGE && value.real - value.real != 0.0) {
            domus_append_drop(&appender);
            continue;
        }
        ck_assert_int_eq(error, 0);
        ck_assert_int_eq(domus_append_end(&appender, &bytes), 0);
        ck_assert_uint_lt(bytes.size, sizeof text);
        ck_assert_int_eq(domus_json_read_slice(&table, NULL, bytes, &got, NULL, NULL), 0);
        ck_assert_mem_eq(&got.real, &value.real, sizeof got.real);
        domus_slice_free(bytes);
    }
}

/* The reader takes a point as the decimal point in any locale. */
DOMT_TEST(numbers_do_not_depend_on_locale)
{
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && setlocale(LC_ALL, "fr_FR.UTF-8") == NULL)
        return;
    check_number_is_read_as("123456789012345678.5e-3", 123456789012345.6785);
}

/* --- short ------------------------------------------------------------------------------------ */

/* The short paths of a reader: bytes that are handled several at a time, and texts and names whose
 * lengths are around the ones at which another path is taken. */

#define LENGTH                                                                                     \
    100u /* length of the texts: more than three steps of the 32 bytes that are read at once */

/* Bytes that are put into the middle of a text of plain bytes, and the error of the reader. */
static const struct {
    const char *bytes;
    int error;
} odd[] = {
    {"\x01", -EBADMSG}, {"\x1f", -EBADMSG},         {"\n", -EBADMSG},
    {"\x80", -EBADMSG}, {"\xff", -EBADMSG},         {"\x7f", 0},
    {"\xc3\xa4", 0},    {"\xf0\x9f\x98\x80", 0},    {"\\n", 0},
    {"\\u00e4", 0},     {"\xed\xa0\x80", -EBADMSG}, {"\\q", -EBADMSG},
};

DOMT_TEST(each_byte_is_checked_at_every_place)
{
    char text[LENGTH + 16];

    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        size_t size = strlen(odd[i].bytes);
        for (size_t at = 1; at <= LENGTH; at++) {
            memset(text, 'x', sizeof text);
            text[0] = '"';
            memcpy(text + at, odd[i].bytes, size);
            text[LENGTH + size] = '"';
            int error = domus_json_check(NULL, text, LENGTH + size + 1, NULL);
            ck_assert_msg(error == odd[i].error, "row %zu at %zu: %d", i, at, error);
        }
    }
}

struct wide {
    char text[64];
    char guard[8];
};

static const domus_json_field wide_fields[] = {{DOMUS_JSON_TEXT("text", struct wide, text)}};
static const struct wide wide_preset = {.guard = "guarded"};
static const domus_json_table wide_table =
    DOMUS_JSON_TABLE_WITH(struct wide, wide_fields, .preset = &wide_preset);

DOMT_TEST(texts_of_each_length_are_read_whole)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
    char text[128];
    struct wide got;

    for (int size = 0; size < 64; size++) {
        snprintf(text, sizeof text, "{\"text\":\"%.*s\"}", size, letters);
        ck_assert_int_eq(domus_json_read(&wide_table, NULL, text, strlen(text), &got, NULL, NULL),
                         0);
        ck_assert_uint_eq(strlen(got.text), (size_t)size);
        ck_assert_mem_eq(got.text, letters, (size_t)size);
        ck_assert_str_eq(got.guard, "guarded");
    }
}

/* A struct whose fields have names of one length that differ in one place; each place lies in
 * another part of the comparison of names. */
struct alike {
    int32_t numbers[6];
};

#define ROW(name, index)                                                                           \
    {                                                                                              \
        DOMUS_JSON_INT(name, struct alike, numbers[index], 0, 9)                                   \
    }

static const domus_json_field alike_fields[] = {
    ROW("axxxxxx", 0),      ROW("bxxxxxx", 1),      ROW("axxxxxxxxxxx", 2),
    ROW("axxxxxxxxxxy", 3), ROW("bxxxxxxxxxxx", 4), ROW("axxxxxxxxxxxxxxxxxxxx", 5),
};
static const domus_json_table alike_table = DOMUS_JSON_TABLE(struct alike, alike_fields);

DOMT_TEST(similar_field_names_are_distinguished)
{
    for (uint32_t i = 0; i < 6; i++) {
        /* The fields come in other orders than that of the table, which the reader expects. */
        for (uint32_t k = 0; k < 6; k++) {
            char text[192];
            struct alike got;

            snprintf(text, sizeof text, "{\"%s\":1,\"%s\":2}                ", alike_fields[i].name,
                     alike_fields[k].name);
            int error = domus_json_read(&alike_table, NULL, text, strlen(text), &got, NULL, NULL);
            ck_assert_int_eq(error, i == k ? -EPROTO : 0);
            for (uint32_t row = 0; row < 6 && error == 0; row++)
                ck_assert_int_eq(got.numbers[row], row == i ? 1 : row == k ? 2 : 0);
        }
    }
}

DOMT_SUITE(60)
