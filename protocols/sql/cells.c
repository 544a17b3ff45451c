/* Finds cells in a result, whose form sql.h tells, and reads them as types of C. */
#include "protocols/sql/sql.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* bytes of a text that is read as a number, at most */
#define NUMBER_SIZE 64u

/* Read the packed cell of a result that has this index; the first cells are the names of the
 * columns. */
static domus_sql_value read_packed_cell(const domus_sql_result *result, uint64_t index)
{
    domus_sql_value cell;

    memcpy(&cell, domus_slice_data(result->cells) + index * sizeof cell, sizeof cell);
    return cell;
}

/* Find the cell of a result in a row and column. Returns false if the result has no such row or
 * column. */
static bool find_cell_of_result(const domus_sql_result *result, uint32_t row, uint32_t column,
                                domus_sql_value *ret_cell)
{
    if (row >= result->rows || column >= result->columns)
        return false;
    *ret_cell = read_packed_cell(result, ((uint64_t)row + 1) * result->columns + column);
    return true;
}

domus_sql_value domus_sql_cell(const domus_sql_result *result, uint32_t row, uint32_t column)
{
    domus_sql_value cell;

    if (!find_cell_of_result(result, row, column, &cell))
        return domus_sql_null();
    return domi_sql_unpack_cell(&cell, domus_slice_data(result->bytes));
}

domus_slice domus_sql_slice(const domus_sql_result *result, uint32_t row, uint32_t column)
{
    domus_slice slice = result->bytes;
    domus_sql_value cell;

    if (!find_cell_of_result(result, row, column, &cell) ||
        !domi_sql_is_value_text_or_bytes(&cell) || cell.size == 0)
        return (domus_slice){NULL, 0, 0};
    slice.offset += (uint32_t)cell.as.integer;
    slice.size = cell.size;
    return slice;
}

const char *domus_sql_column_name(const domus_sql_result *result, uint32_t column)
{
    if (column >= result->columns)
        return NULL;
    return domus_slice_data(result->bytes) + read_packed_cell(result, column).as.integer;
}

int domus_sql_column(const domus_sql_result *result, const char *name)
{
    for (uint32_t column = 0; column < result->columns; column++) {
        if (strcmp(domus_sql_column_name(result, column), name) == 0)
            return (int)column;
    }
    return -ENOENT;
}

/* --- as types --------------------------------------------------------------------------------- */

/* Get the value of a cell. Returns 0; -ENOENT if the result has no such cell; -ENODATA if it is
 * NULL. */
static int get_value_of_cell(const domus_sql_result *result, uint32_t row, uint32_t column,
                             domus_sql_value *ret_value)
{
    if (row >= result->rows || column >= result->columns)
        return -ENOENT;
    domus_sql_value value = domus_sql_cell(result, row, column);
    if (value.kind == DOMUS_SQL_NULL)
        return -ENODATA;
    *ret_value = value;
    return 0;
}

/* Copy a text that is to be a number, with a zero at its end. Returns 0; -EINVAL if it is empty,
 * too long, or has a byte other than digits, signs, '.', 'e' and 'E', because strtod(3) would take
 * spaces and "inf". */
static int copy_text_of_number(const domus_sql_value *text, char number[NUMBER_SIZE])
{
    const char *bytes = text->as.bytes;

    if (text->size == 0 || text->size >= NUMBER_SIZE || memchr(bytes, '\0', text->size) != NULL)
        return -EINVAL;
    for (uint32_t i = 0; i < text->size; i++) {
        if (strchr("+-.0123456789eE", bytes[i]) == NULL)
            return -EINVAL;
    }
    memcpy(number, bytes, text->size);
    number[text->size] = '\0';
    return 0;
}

static int int_of_real(double real, int64_t *ret_value)
{
    if (!isfinite(real) || real != floor(real))
        return -EINVAL;
    if (real < -0x1p63 || real >= 0x1p63)
        return -ERANGE;
    *ret_value = (int64_t)real;
    return 0;
}

static int int_of_text(const domus_sql_value *text, int64_t *ret_value)
{
    char number[NUMBER_SIZE], *end;
    int error = copy_text_of_number(text, number);

    if (error != 0)
        return error;
    errno = 0;
    intmax_t value = strtoimax(number, &end, 10);
    if (end == number || *end != '\0')
        return -EINVAL;
    if (errno == ERANGE)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

int domus_sql_get_int(const domus_sql_result *result, uint32_t row, uint32_t column,
                      int64_t *ret_value)
{
    domus_sql_value value;
    int error = get_value_of_cell(result, row, column, &value);

    if (error != 0)
        return error;
    switch ((domus_sql_kind)value.kind) {
    case DOMUS_SQL_INTEGER:
        *ret_value = value.as.integer;
        return 0;
    case DOMUS_SQL_BOOL:
        *ret_value = value.as.boolean;
        return 0;
    case DOMUS_SQL_REAL:
        return int_of_real(value.as.real, ret_value);
    case DOMUS_SQL_TEXT:
        return int_of_text(&value, ret_value);
    case DOMUS_SQL_NULL:
    case DOMUS_SQL_BYTES:
        break;
    }
    return -EINVAL;
}

int domus_sql_get_bool(const domus_sql_result *result, uint32_t row, uint32_t column,
                       bool *ret_value)
{
    domus_sql_value value;
    int error = get_value_of_cell(result, row, column, &value);

    if (error != 0)
        return error;
    if (value.kind == DOMUS_SQL_BOOL)
        *ret_value = value.as.boolean;
    else if (value.kind == DOMUS_SQL_INTEGER)
        *ret_value = value.as.integer != 0;
    else if (value.kind == DOMUS_SQL_TEXT && value.size == 1 &&
             (*(const char *)value.as.bytes == 't' || *(const char *)value.as.bytes == 'f'))
        *ret_value = *(const char *)value.as.bytes == 't';
    else
        return -EINVAL;
    return 0;
}

static int real_of_text(const domus_sql_value *text, double *ret_value)
{
    char number[NUMBER_SIZE], *end;
    int error = copy_text_of_number(text, number);

    if (error != 0)
        return error;
    double value = domus_sql_real_read(number, &end);
    if (end == number || *end != '\0')
        return -EINVAL;
    if (!isfinite(value))
        return -ERANGE;
    *ret_value = value;
    return 0;
}

int domus_sql_get_real(const domus_sql_result *result, uint32_t row, uint32_t column,
                       double *ret_value)
{
    domus_sql_value value;
    int error = get_value_of_cell(result, row, column, &value);

    if (error != 0)
        return error;
    switch ((domus_sql_kind)value.kind) {
    case DOMUS_SQL_REAL:
        *ret_value = value.as.real;
        return 0;
    case DOMUS_SQL_INTEGER:
        *ret_value = (double)value.as.integer;
        return 0;
    case DOMUS_SQL_TEXT:
        return real_of_text(&value, ret_value);
    case DOMUS_SQL_NULL:
    case DOMUS_SQL_BOOL:
    case DOMUS_SQL_BYTES:
        break;
    }
    return -EINVAL;
}

int domus_sql_get_text(const domus_sql_result *result, uint32_t row, uint32_t column,
                       char *ret_text, size_t text_size)
{
    char number[NUMBER_SIZE];
    domus_sql_value value;
    int error = get_value_of_cell(result, row, column, &value);

    if (error != 0)
        return error;
    if (value.kind == DOMUS_SQL_INTEGER) {
        snprintf(number, sizeof number, "%" PRId64, value.as.integer);
        value = domus_sql_text(number);
    } else if (value.kind == DOMUS_SQL_REAL) {
        domus_sql_real_write(value.as.real, number);
        value = domus_sql_text(number);
    }
    /* A program that reads the text as a string of C would see it end at a zero byte within it. */
    if (value.kind != DOMUS_SQL_TEXT ||
        (value.size != 0 && memchr(value.as.bytes, '\0', value.size) != NULL))
        return -EINVAL;
    if (value.size >= text_size)
        return -EMSGSIZE;
    if (value.size != 0)
        memcpy(ret_text, value.as.bytes, value.size);
    ret_text[value.size] = '\0';
    return 0;
}
