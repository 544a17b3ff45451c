/* Writes parameters as libpq takes them: in binary where the type that the server expects has a
 * binary form for the value, otherwise as text, which the server converts. Numbers, and texts that
 * need a zero at their end, are written into one block of memory, which the pool keeps. */
#include "protocols/pg/pg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_SIZE DOMUS_SQL_REAL_SIZE /* bytes of any number as text, with its zero byte */
#define SCRATCH_MIN 1024u
/* bytes of scratch memory that a pool keeps for the next query, at most */
#define SCRATCH_KEPT 65536u

static bool is_text_type(Oid type)
{
    return type == DOMI_PG_TEXT || type == DOMI_PG_VARCHAR || type == DOMI_PG_BPCHAR;
}

static bool may_parameter_be_sent_as_it_is(const domus_sql_value *value, Oid type)
{
    return (value->kind == DOMUS_SQL_TEXT && is_text_type(type)) ||
           (value->kind == DOMUS_SQL_BYTES && type == DOMI_PG_BYTEA);
}

/* Returns how many bytes of scratch memory a parameter of a query needs, at most. */
static size_t scratch_bytes_of_parameter(const domus_sql_value *value, Oid type)
{
    if (value->kind == DOMUS_SQL_NULL || may_parameter_be_sent_as_it_is(value, type))
        return 0;
    if (value->kind == DOMUS_SQL_TEXT)
        return (size_t)value->size + 1;
    return value->kind == DOMUS_SQL_BYTES ? 2 * (size_t)value->size + 3 : NUMBER_SIZE;
}

static int write_big_endian_integer(char *to, uint64_t number, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        to[i] = (char)(number >> 8 * (size - 1 - i));
    return (int)size;
}

/* Write a number in the server's binary form. Returns its size; 0 if the type has no binary form in
 * this file. */
static int write_number_in_binary(char *to, const domus_sql_value *value, Oid type)
{
    int64_t integer = value->as.integer;
    uint64_t bits;

    if (value->kind == DOMUS_SQL_BOOL && type == DOMI_PG_BOOL)
        return write_big_endian_integer(to, value->as.boolean ? 1 : 0, 1);
    if (value->kind == DOMUS_SQL_INTEGER && type == DOMI_PG_INT8)
        return write_big_endian_integer(to, (uint64_t)integer, 8);
    if (value->kind == DOMUS_SQL_INTEGER && type == DOMI_PG_INT4 && integer == (int32_t)integer)
        return write_big_endian_integer(to, (uint64_t)integer, 4);
    if (value->kind == DOMUS_SQL_INTEGER && type == DOMI_PG_INT2 && integer == (int16_t)integer)
        return write_big_endian_integer(to, (uint64_t)integer, 2);
    if (value->kind == DOMUS_SQL_REAL && type == DOMI_PG_FLOAT8) {
        memcpy(&bits, &value->as.real, sizeof bits);
        return write_big_endian_integer(to, bits, 8);
    }
    return 0;
}

static void write_bytes_as_hex(char *to, const domus_sql_value *value)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = value->as.bytes;

    *to++ = '\\';
    *to++ = 'x';
    for (uint32_t i = 0; i < value->size; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    *to = '\0';
}

/* Write the value of a parameter as text, with a zero byte at its end. Returns 0; -EINVAL for a
 * text with a zero byte in it. */
static int write_value_as_text(char *to, const domus_sql_value *value)
{
    switch (value->kind) {
    case DOMUS_SQL_BOOL:
        memcpy(to, value->as.boolean ? "t" : "f", 2);
        return 0;
    case DOMUS_SQL_INTEGER:
        snprintf(to, NUMBER_SIZE, "%lld", (long long)value->as.integer);
        return 0;
    case DOMUS_SQL_REAL:
        domus_sql_real_write(value->as.real, to);
        return 0;
    case DOMUS_SQL_BYTES:
        write_bytes_as_hex(to, value);
        return 0;
    default:
        if (value->size != 0 && memchr(value->as.bytes, '\0', value->size) != NULL)
            return -EINVAL;
        if (value->size != 0)
            memcpy(to, value->as.bytes, value->size);
        to[value->size] = '\0';
        return 0;
    }
}

/* Write one parameter of a query; a value that must be converted is written to `scratch`. Returns
 * 0; -EINVAL. */
static int write_one_parameter(domi_pg_parameters *parameters, uint32_t index, char *scratch,
                               const domus_sql_value *value, Oid type)
{
    int size = 0;

    parameters->formats[index] = 0;
    parameters->sizes[index] = 0;
    parameters->values[index] = NULL;
    if (value->kind == DOMUS_SQL_NULL)
        return 0;
    if (may_parameter_be_sent_as_it_is(value, type)) {
        parameters->formats[index] = 1;
        parameters->sizes[index] = (int)value->size;
        parameters->values[index] = value->size != 0 ? value->as.bytes : "";
        return 0;
    }
    if (value->kind != DOMUS_SQL_TEXT && value->kind != DOMUS_SQL_BYTES)
        size = write_number_in_binary(scratch, value, type);
    parameters->values[index] = scratch;
    parameters->sizes[index] = size;
    parameters->formats[index] = size != 0;
    return size != 0 ? 0 : write_value_as_text(scratch, value);
}

/* Make the pool's scratch memory large enough. Large memory is not kept for the next query. Returns
 * false if there is no memory. */
static bool make_scratch_memory_large_enough(domi_pg_pool *pool, size_t size)
{
    bool is_right = size <= pool->scratch_size && pool->scratch_size <= SCRATCH_KEPT;

    if (is_right || size == 0)
        return true;
    size = size < SCRATCH_MIN ? SCRATCH_MIN : size;
    char *scratch = malloc(size);
    if (scratch == NULL)
        return false;
    free(pool->scratch);
    pool->scratch = scratch;
    pool->scratch_size = size;
    return true;
}

int domi_pg_write_parameters(domi_pg_pool *pool, const domus_sql_request *request,
                             const domi_pg_statement *statement, domi_pg_parameters *parameters)
{
    size_t size = 0;

    for (uint32_t i = 0; i < request->count; i++) {
        const domus_sql_value value = domus_sql_request_value(request, i);
        size += scratch_bytes_of_parameter(&value, statement != NULL ? statement->types[i] : 0);
    }
    if (!make_scratch_memory_large_enough(pool, size))
        return -ENOMEM;
    size = 0;
    for (uint32_t i = 0; i < request->count; i++) {
        const domus_sql_value value = domus_sql_request_value(request, i);
        Oid type = statement != NULL ? statement->types[i] : 0;
        int error = write_one_parameter(parameters, i, pool->scratch + size, &value, type);
        if (error != 0)
            return error;
        size += scratch_bytes_of_parameter(&value, type);
    }
    return 0;
}
