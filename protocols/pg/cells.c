/* Builds the cells of a result of PostgreSQL. Each cell has the type of its column, and is read
 * from the binary form or from text. */
#include "protocols/pg/pg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool domi_pg_is_type_read_in_binary(Oid type)
{
    switch (type) {
    case DOMI_PG_BOOL:
    case DOMI_PG_BYTEA:
    case DOMI_PG_NAME:
    case DOMI_PG_INT8:
    case DOMI_PG_INT2:
    case DOMI_PG_INT4:
    case DOMI_PG_TEXT:
    /* the binary form of JSON is its text, as it is for the other types of text */
    case DOMI_PG_JSON:
    case DOMI_PG_FLOAT4:
    case DOMI_PG_FLOAT8:
    case DOMI_PG_BPCHAR:
    case DOMI_PG_VARCHAR:
        return true;
    default:
        return false;
    }
}

static uint64_t read_big_endian_integer(const char *bytes, uint32_t size)
{
    uint64_t number = 0;

    for (uint32_t i = 0; i < size; i++)
        number = number << 8 | (unsigned char)bytes[i];
    return number;
}

/* Read a number from PostgreSQL's binary form. Returns false if the column's type or the size is
 * not that of a number. */
static bool read_binary_number(Oid type, const char *bytes, uint32_t size,
                               domus_sql_value *ret_value)
{
    if (size == 0 || size > 8)
        return false;
    uint64_t number = read_big_endian_integer(bytes, size);
    uint32_t narrow = (uint32_t)number;
    float real;
    double wide;

    if (type == DOMI_PG_BOOL && size == 1)
        *ret_value = domus_sql_bool(number != 0);
    else if (type == DOMI_PG_INT2 && size == 2)
        *ret_value = domus_sql_int((int16_t)number);
    else if (type == DOMI_PG_INT4 && size == 4)
        *ret_value = domus_sql_int((int32_t)narrow);
    else if (type == DOMI_PG_INT8 && size == 8)
        *ret_value = domus_sql_int((int64_t)number);
    else if (type == DOMI_PG_FLOAT4 && size == 4) {
        memcpy(&real, &narrow, sizeof real);
        *ret_value = domus_sql_real((double)real);
    } else if (type == DOMI_PG_FLOAT8 && size == 8) {
        memcpy(&wide, &number, sizeof wide);
        *ret_value = domus_sql_real(wide);
    } else
        return false;
    return true;
}

/* Read a number from PostgreSQL's text form. Returns false if the column's type or the text is not
 * that of a number. */
static bool read_text_number(Oid type, const char *text, uint32_t size, domus_sql_value *ret_value)
{
    char *end = NULL;

    switch (type) {
    case DOMI_PG_BOOL:
        *ret_value = domus_sql_bool(text[0] == 't');
        return size == 1;
    case DOMI_PG_INT8:
    case DOMI_PG_INT2:
    case DOMI_PG_INT4:
        *ret_value = domus_sql_int(strtoll(text, &end, 10));
        return end == text + size && size > 0;
    case DOMI_PG_FLOAT4:
    case DOMI_PG_FLOAT8:
        *ret_value = domus_sql_real(domus_sql_real_read(text, &end));
        return end == text + size && size > 0;
    default:
        return false;
    }
}

static int value_of_hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Add a bytea that came as text: "\x" and hexadecimal digits, as servers since 9.0 write it. (The
 * setting bytea_output may select an older form, which is added as a text.) */
static void build_cell_of_bytea(domus_sql_builder *builder, const char *text, uint32_t size)
{
    if (size < 2 || size % 2 != 0 || text[0] != '\\' || text[1] != 'x') {
        const domus_sql_value value = domus_sql_text_of(text, size);
        (void)domus_sql_build_cell(builder, &value);
        return;
    }
    char *room = domus_sql_build_room(builder, DOMUS_SQL_BYTES, size / 2 - 1);
    if (room == NULL)
        return;
    for (uint32_t i = 2; i < size; i += 2) {
        int high = value_of_hex_digit(text[i]);
        int low = value_of_hex_digit(text[i + 1]);
        room[i / 2 - 1] = (char)((high < 0 ? 0 : high) << 4 | (low < 0 ? 0 : low));
    }
}

static void build_cell_of_result(domus_sql_builder *builder, const PGresult *rows, int row,
                                 int column)
{
    domus_sql_value value;
    Oid type = PQftype(rows, column);
    const char *bytes = PQgetvalue(rows, row, column);
    uint32_t size = (uint32_t)PQgetlength(rows, row, column);
    bool is_binary = PQfformat(rows, column) == 1;

    if (PQgetisnull(rows, row, column) != 0)
        value = domus_sql_null();
    else if (is_binary ? read_binary_number(type, bytes, size, &value)
                       : read_text_number(type, bytes, size, &value))
        ;
    else if (type == DOMI_PG_BYTEA && !is_binary) {
        build_cell_of_bytea(builder, bytes, size);
        return;
    } else
        value =
            type == DOMI_PG_BYTEA ? domus_sql_bytes(bytes, size) : domus_sql_text_of(bytes, size);
    (void)domus_sql_build_cell(builder, &value);
}

int domi_pg_build_rows(domus_sql_builder *builder, const PGresult *rows)
{
    int columns = PQnfields(rows);
    int count = PQntuples(rows);
    int error = 0;

    if (!builder->begun && columns > 0) {
        error = domus_sql_build_columns(builder, (uint32_t)columns);
        for (int i = 0; error == 0 && i < columns; i++)
            error = domus_sql_build_name(builder, PQfname(rows, i));
    }
    for (int row = 0; error == 0 && row < count; row++) {
        for (int column = 0; column < columns; column++)
            build_cell_of_result(builder, rows, row, column);
        error = builder->cells.error;
    }
    return error;
}

uint64_t domi_pg_count_affected_rows(PGresult *result)
{
    const char *status = PQcmdStatus(result);

    /* The number in the tag of a SELECT or FETCH counts rows that were read, and no changes. */
    if (strncmp(status, "SELECT", 6) == 0 || strncmp(status, "FETCH", 5) == 0)
        return 0;
    return strtoull(PQcmdTuples(result), NULL, 10);
}
