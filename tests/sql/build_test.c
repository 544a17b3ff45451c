/* Results of queries are built in order and within their limit, and read back; requests keep their
 * values; and reals have a decimal point in every locale. */
#include "tests/support/comma.h"
#include "tests/support/suite.h"

#include <domus/sql_driver.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Results of queries are built in order and within their limit, and read back; requests keep the
 * values that they were made from. */

static domus_sql_result build_result_of_cells(uint32_t bytes_max, const domus_sql_value *cells,
                                              uint32_t count, uint32_t columns, int *ret_error)
{
    domus_sql_builder builder = {.bytes_max = bytes_max};
    domus_sql_result result = {.rows = 77};
    char name[16];

    domus_sql_build_columns(&builder, columns);
    for (uint32_t i = 0; i < columns; i++) {
        snprintf(name, sizeof name, "c%u", i);
        domus_sql_build_name(&builder, name);
    }
    for (uint32_t i = 0; i < count; i++)
        domus_sql_build_cell(&builder, &cells[i]);
    *ret_error = domus_sql_build_end(&builder, &result);
    ck_assert_uint_eq(domus_sql_built_size(&builder), 0);
    ck_assert_uint_eq(builder.bytes_max, bytes_max);
    return result;
}

static bool are_values_same(domus_sql_value one, domus_sql_value other)
{
    if (one.kind != other.kind)
        return false;
    switch ((domus_sql_kind)one.kind) {
    case DOMUS_SQL_NULL:
        return true;
    case DOMUS_SQL_BOOL:
        return one.as.boolean == other.as.boolean;
    case DOMUS_SQL_INTEGER:
        return one.as.integer == other.as.integer;
    case DOMUS_SQL_REAL:
        return memcmp(&one.as.real, &other.as.real, sizeof one.as.real) == 0;
    case DOMUS_SQL_TEXT:
    case DOMUS_SQL_BYTES:
        return one.size == other.size &&
               (one.size == 0 || memcmp(one.as.bytes, other.as.bytes, one.size) == 0);
    }
    return false;
}

DOMT_TEST(result_cells_are_read_as_built)
{
    domus_sql_value cells[] = {
        domus_sql_null(),           domus_sql_bool(true),     domus_sql_int(INT64_MIN),
        domus_sql_real(-0.0),       domus_sql_text(""),       domus_sql_text("todo"),
        domus_sql_bytes("a\0b", 3), domus_sql_bytes(NULL, 0), domus_sql_text(NULL),
    };
    uint32_t count = sizeof cells / sizeof cells[0];
    int error;

    /* The 9 cells are built as rows with 1, 3 and 9 columns. */
    for (uint32_t columns = 1; columns <= count; columns += 2) {
        if (count % columns != 0)
            continue;
        domus_sql_result result = build_result_of_cells(0, cells, count, columns, &error);
        ck_assert_int_eq(error, 0);
        ck_assert_uint_eq(result.rows, count / columns);
        ck_assert_uint_eq(result.columns, columns);
        for (uint32_t i = 0; i < count; i++) {
            domus_sql_value cell = domus_sql_cell(&result, i / columns, i % columns);

            ck_assert(are_values_same(cell, cells[i]));
            if (cell.kind >= DOMUS_SQL_TEXT) /* a zero byte stands behind the bytes of a text */
                ck_assert_int_eq(((const char *)cell.as.bytes)[cell.size], '\0');
        }
        ck_assert_int_eq(domus_sql_cell(&result, count / columns, 0).kind, DOMUS_SQL_NULL);
        ck_assert_int_eq(domus_sql_cell(&result, 0, columns).kind, DOMUS_SQL_NULL);
        ck_assert_str_eq(domus_sql_column_name(&result, columns - 1), columns == 1   ? "c0"
                                                                      : columns == 3 ? "c2"
                                                                                     : "c8");
        ck_assert_ptr_null(domus_sql_column_name(&result, columns));
        ck_assert_int_eq(domus_sql_column(&result, "c0"), 0);
        ck_assert_int_eq(domus_sql_column(&result, "C0"), -ENOENT);
        domus_sql_result_type.release(&result);
    }
}

DOMT_TEST(slice_of_cell_outlives_its_result)
{
    domus_sql_value cells[] = {domus_sql_text("first"), domus_sql_text("second"), domus_sql_int(2),
                               domus_sql_text("")};
    domus_slice kept;
    int error;
    domus_sql_result result = build_result_of_cells(0, cells, 4, 2, &error);

    ck_assert_int_eq(domus_slice_keep(domus_sql_slice(&result, 0, 1), &kept), 0);
    ck_assert_uint_eq(domus_sql_slice(&result, 1, 0).size, 0);
    ck_assert_uint_eq(domus_sql_slice(&result, 1, 1).size, 0);
    ck_assert_uint_eq(domus_sql_slice(&result, 2, 0).size, 0);
    domus_sql_result_type.release(&result);
    ck_assert(domus_slice_equals(kept, "second", 6));
    domus_slice_free(kept);
}

/* A result's bytes are 16 for each cell, each text with a zero behind it, and the names of its
 * columns. */
DOMT_TEST(result_fills_its_limit_exactly)
{
    domus_sql_value cells[] = {domus_sql_text("12345")};
    const uint32_t size = 2 * 16 + 3 + 6;
    int error;

    for (uint32_t bound = size - 3; bound < size + 2; bound++) {
        domus_sql_result result = build_result_of_cells(bound, cells, 1, 1, &error);
        ck_assert_int_eq(error, bound < size - 1 ? -EFBIG : 0);
        if (error == 0)
            domus_sql_result_type.release(&result);
        else
            ck_assert_uint_eq(result.rows, 77);
    }
}

DOMT_TEST(builder_refuses_calls_out_of_order)
{
    domus_sql_value seven = domus_sql_int(7), wrong = domus_sql_int(7);
    domus_sql_result result;

    wrong.kind = DOMUS_SQL_BYTES + 1;
    for (int order = 0; order < 7; order++) {
        domus_sql_builder builder = {0};
        if (order != 0)
            ck_assert_int_eq(domus_sql_build_columns(&builder, order == 1 ? 65536 : 2),
                             order == 1 ? -EINVAL : 0);
        if (order == 2)
            ck_assert_int_eq(domus_sql_build_columns(&builder, 2), -EINVAL);
        domus_sql_build_name(&builder, "a");
        if (order == 3) /* a cell before the last column's name is refused */
            ck_assert_int_eq(domus_sql_build_cell(&builder, &seven), -EINVAL);
        domus_sql_build_name(&builder, "b");
        if (order == 4) /* one name more than there are columns is refused */
            ck_assert_int_eq(domus_sql_build_name(&builder, "c"), -EINVAL);
        if (order == 5)
            ck_assert_int_eq(domus_sql_build_cell(&builder, &wrong), -EINVAL);
        if (order == 6) /* the row is incomplete when the result ends, which is refused */
            ck_assert_int_eq(domus_sql_build_cell(&builder, &seven), 0);
        ck_assert_int_eq(domus_sql_build_end(&builder, &result), -EINVAL);
    }
    domus_sql_builder builder = {0};
    domus_sql_build_columns(&builder, 1);
    domus_sql_build_name(&builder, "a");
    ck_assert_ptr_null(domus_sql_build_room(&builder, DOMUS_SQL_INTEGER, 8));
    domus_sql_build_drop(&builder);
}

DOMT_TEST(result_without_columns_is_empty)
{
    domus_sql_builder builder = {0};
    domus_sql_result result;

    ck_assert_int_eq(domus_sql_build_end(&builder, &result), 0);
    ck_assert_uint_eq(result.rows, 0);
    ck_assert_uint_eq(result.columns, 0);
    domus_sql_build_columns(&builder, 1);
    domus_sql_build_name(&builder, "a");
    ck_assert_int_eq(domus_sql_build_end(&builder, &result), 0);
    ck_assert_uint_eq(result.rows, 0);
    ck_assert_str_eq(domus_sql_column_name(&result, 0), "a");
    domus_sql_result_type.release(&result);
}

/* --- cells as types --------------------------------------------------------------------------- */

#define WAS 4242

/* A value and how it is read as an integer and as a real: an error such as -ERANGE stands for a
 * value that cannot be read so. */
static const struct {
    domus_sql_value value;
    int int_error;
    int64_t integer;
    int real_error;
    double real;
} numbers[] = {
    {{.kind = DOMUS_SQL_NULL}, -ENODATA, WAS, -ENODATA, WAS},
    {{.kind = DOMUS_SQL_INTEGER, .as.integer = INT64_MAX}, 0, INT64_MAX, 0, 0x1p63},
    {{.kind = DOMUS_SQL_BOOL, .as.boolean = true}, 0, 1, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_REAL, .as.real = -3.0}, 0, -3, 0, -3.0},
    {{.kind = DOMUS_SQL_REAL, .as.real = 2.5}, -EINVAL, WAS, 0, 2.5},
    {{.kind = DOMUS_SQL_REAL, .as.real = 0x1p63}, -ERANGE, WAS, 0, 0x1p63},
    {{.kind = DOMUS_SQL_REAL, .as.real = -0x1p63}, 0, INT64_MIN, 0, -0x1p63},
    {{.kind = DOMUS_SQL_REAL, .as.real = INFINITY}, -EINVAL, WAS, 0, INFINITY},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "12", .size = 2}, 0, 12, 0, 12},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "125", .size = 2}, 0, 12, 0, 12},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = " 12", .size = 3}, -EINVAL, WAS, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "1.5", .size = 3}, -EINVAL, WAS, 0, 1.5},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "inf", .size = 3}, -EINVAL, WAS, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "0x1", .size = 3}, -EINVAL, WAS, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "1e999", .size = 5}, -EINVAL, WAS, -ERANGE, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "-", .size = 1}, -EINVAL, WAS, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "", .size = 0}, -EINVAL, WAS, -EINVAL, WAS},
    {{.kind = DOMUS_SQL_TEXT, .as.bytes = "9223372036854775808", .size = 19},
     -ERANGE,
     WAS,
     0,
     0x1p63},
    {{.kind = DOMUS_SQL_BYTES, .as.bytes = "1", .size = 1}, -EINVAL, WAS, -EINVAL, WAS},
};

DOMT_TEST(cells_are_read_as_numbers_if_they_are_numbers)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int64_t integer = WAS;
        double real = WAS;
        int error;
        domus_sql_result result = build_result_of_cells(0, &numbers[i].value, 1, 1, &error);

        error = domus_sql_get_int(&result, 0, 0, &integer);
        ck_assert_msg(error == numbers[i].int_error && integer == numbers[i].integer,
                      "row %zu: %d, %ld", i, error, (long)integer);
        error = domus_sql_get_real(&result, 0, 0, &real);
        ck_assert_msg(error == numbers[i].real_error && real == numbers[i].real, "row %zu: %d, %f",
                      i, error, real);
        ck_assert_int_eq(domus_sql_get_int(&result, 1, 0, &integer), -ENOENT);
        ck_assert_int_eq(domus_sql_get_real(&result, 0, 1, &real), -ENOENT);
        domus_sql_result_type.release(&result);
    }
}

DOMT_TEST(cells_are_read_as_booleans_and_texts)
{
    domus_sql_value cells[] = {domus_sql_text("t"), domus_sql_text("f"),    domus_sql_text("x"),
                               domus_sql_int(2),    domus_sql_bool(false),  domus_sql_real(1),
                               domus_sql_null(),    domus_sql_bytes("t", 1)};
    static const int errors[] = {0, 0, -EINVAL, 0, 0, -EINVAL, -ENODATA, -EINVAL};
    static const bool values[] = {true, false, true, true, false, true, true, true};
    char text[4] = "was";
    int error;
    domus_sql_result result = build_result_of_cells(0, cells, 8, 8, &error);

    for (uint32_t i = 0; i < 8; i++) {
        bool value = true;
        ck_assert_int_eq(domus_sql_get_bool(&result, 0, i, &value), errors[i]);
        ck_assert(value == values[i]);
    }
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 3, text, sizeof text), 0);
    ck_assert_str_eq(text, "2");
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 6, text, sizeof text), -ENODATA);
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 7, text, sizeof text), -EINVAL);
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 0, text, 1), -EMSGSIZE);
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 0, text, 2), 0);
    ck_assert_str_eq(text, "t");
    domus_sql_result_type.release(&result);
    cells[0] = domus_sql_text_of("a\0b", 3);
    result = build_result_of_cells(0, cells, 1, 1, &error);
    ck_assert_int_eq(domus_sql_get_text(&result, 0, 0, text, sizeof text), -EINVAL);
    domus_sql_result_type.release(&result);
}

/* --- requests --------------------------------------------------------------------------------- */

static const domus_sql_statement statement = {.text = "SELECT $1"};

DOMT_TEST(request_keeps_short_and_long_values)
{
    static char bytes[300];
    domus_sql sql = {.transaction = 9};

    memset(bytes, 'x', sizeof bytes);
    for (uint32_t size = 0; size < sizeof bytes; size++) {
        domus_sql_value values[] = {domus_sql_int(1), domus_sql_text_of(bytes, size),
                                    domus_sql_bytes("end", 3)};
        domus_sql_request request;

        ck_assert_int_eq(domus_sql_request_make(sql, &statement, NULL, values, 3, &request), 0);
        /* the request is copied, as a message is when it is sent */
        domus_sql_request moved = request;
        memset(&request, 0, sizeof request);
        ck_assert(moved.more.page == NULL ? size + 51 <= DOMUS_SQL_INLINE
                                          : size + 51 > DOMUS_SQL_INLINE);
        ck_assert_uint_eq(moved.transaction, 9);
        ck_assert_str_eq(domus_sql_request_text(&moved), "SELECT $1");
        for (uint32_t i = 0; i < 3; i++)
            ck_assert(are_values_same(domus_sql_request_value(&moved, i), values[i]));
        ck_assert_int_eq(domus_sql_request_value(&moved, 3).kind, DOMUS_SQL_NULL);
        domus_sql_query_type.release(&moved);
    }
}

DOMT_TEST(request_with_wrong_parts_is_refused)
{
    static const domus_sql_statement empty = {.text = NULL};
    static domus_sql_value values[DOMUS_SQL_PARAMETERS_MAX + 1];
    domus_sql_value wrong = domus_sql_int(1);
    domus_sql_request request = {.count = 77};
    domus_sql sql = {.transaction = 0};

    wrong.kind = DOMUS_SQL_BYTES + 1;
    ck_assert_int_eq(domus_sql_request_make(sql, &statement, "SELECT 1", NULL, 0, &request),
                     -EINVAL);
    ck_assert_int_eq(domus_sql_request_make(sql, NULL, NULL, NULL, 0, &request), -EINVAL);
    ck_assert_int_eq(domus_sql_request_make(sql, &empty, NULL, NULL, 0, &request), -EINVAL);
    ck_assert_int_eq(domus_sql_request_make(sql, &statement, NULL, &wrong, 1, &request), -EINVAL);
    wrong = domus_sql_bytes(NULL, 1);
    ck_assert_int_eq(domus_sql_request_make(sql, &statement, NULL, &wrong, 1, &request), -EINVAL);
    wrong = domus_sql_bytes("", DOMUS_SQL_VALUE_MAX - 15);
    ck_assert_int_eq(domus_sql_request_make(sql, &statement, NULL, &wrong, 1, &request), -EMSGSIZE);
    ck_assert_int_eq(domus_sql_request_make(sql, &statement, NULL, values,
                                            DOMUS_SQL_PARAMETERS_MAX + 1, &request),
                     -EINVAL);
    ck_assert_uint_eq(request.count, 77);
    ck_assert_int_eq(
        domus_sql_request_make(sql, &statement, NULL, values, DOMUS_SQL_PARAMETERS_MAX, &request),
        0);
    domus_sql_query_type.release(&request);
    ck_assert_int_eq(domus_sql_request_make(sql, NULL, "SELECT 2", NULL, 0, &request), 0);
    ck_assert_str_eq(domus_sql_request_text(&request), "SELECT 2");
    domus_sql_query_type.release(&request);
}

/* --- real ------------------------------------------------------------------------------------- */

/* Reals are written for databases with as few digits as identify the number, and with a point in
 * every locale. */

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

DOMT_TEST(reals_have_decimal_point_in_every_locale)
{
    char text[DOMUS_SQL_REAL_SIZE], locales[8], *end;

    for (int round = 0; round < 2; round++) {
        if (round == 1)
            domt_use_locale_with_comma();
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            domus_sql_real_write(rows[i].real, text);
            ck_assert_str_eq(text, rows[i].text);
            double read = domus_sql_real_read(text, &end);
            ck_assert(*end == '\0' && (read == rows[i].real || (isnan(read) && i == 10)));
        }
        /* The locale of the program has to be as it was. */
        snprintf(locales, sizeof locales, "%.1f", 1.5);
        ck_assert_str_eq(locales, round == 1 ? "1,5" : "1.5");
    }
}

DOMT_SUITE(20)
