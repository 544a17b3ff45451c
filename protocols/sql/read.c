/* Reads rows into structs, by a table of fields (domus/json.h). Only the type of the table comes
 * from there; the library of JSON is not used. */
#include "protocols/sql/sql.h"

#include <domus/json.h>

/* For each field of a table, the index of the column from which it is read. */
struct columns {
    uint16_t of[DOMUS_JSON_FIELDS_MAX];
};

/* Find the column of each field by its name. Mostly columns stand in the order of the fields.
 * Returns 0; -ENOENT if one is missing; -EOPNOTSUPP for a field whose kind no column can hold. */
static int find_column_of_each_field_by_name(const domus_sql_result *result,
                                             const domus_json_table *table,
                                             struct columns *ret_columns)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_json_field *field = &table->fields[i];
        const char *name = domus_sql_column_name(result, i);
        int column = (int)i;

        if (field->shape != DOMUS_JSON_ONE || field->kind == DOMUS_JSON_KIND_OBJECT)
            return -EOPNOTSUPP;
        if (name == NULL || strcmp(name, field->name) != 0)
            column = domus_sql_column(result, field->name);
        if (column < 0)
            return column;
        ret_columns->of[i] = (uint16_t)column;
    }
    return 0;
}

/* Write an integer to a member of a struct, which has 1, 2, 4 or 8 bytes. */
static void write_integer_to_member(char *member, uint32_t size, uint64_t value)
{
    const uint8_t byte = (uint8_t)value;
    const uint16_t half = (uint16_t)value;
    const uint32_t word = (uint32_t)value;

    switch (size) {
    case 1:
        memcpy(member, &byte, 1);
        break;
    case 2:
        memcpy(member, &half, 2);
        break;
    case 4:
        memcpy(member, &word, 4);
        break;
    default:
        memcpy(member, &value, 8);
        break;
    }
}

/* A cell of a result: its row and its column. */
struct place {
    const domus_sql_result *result;
    uint32_t row;
    uint32_t column;
};

static int read_integer_from_cell(struct place at, const domus_json_field *field, char *member)
{
    bool is_signed = field->kind == DOMUS_JSON_KIND_INT;
    int64_t value;
    int error = domus_sql_get_int(at.result, at.row, at.column, &value);

    if (error != 0)
        return error;
    if (is_signed ? value < (int64_t)field->low || value > (int64_t)field->high
                  : value < 0 || (uint64_t)value < field->low || (uint64_t)value > field->high)
        return -ERANGE;
    write_integer_to_member(member, field->size, (uint64_t)value);
    return 0;
}

static int read_real_from_cell(struct place at, const domus_json_field *field, char *member)
{
    double value;
    int error = domus_sql_get_real(at.result, at.row, at.column, &value);

    if (error != 0)
        return error;
    if (!(value >= field->real_low && value <= field->real_high))
        return -ERANGE;
    memcpy(member, &value, sizeof value);
    return 0;
}

/* Get the text of a cell, which has a zero byte behind it. Returns 0; -EINVAL if the cell is no
 * text. */
static int get_text_of_cell(struct place at, domus_sql_value *ret_text)
{
    domus_sql_value text = domus_sql_cell(at.result, at.row, at.column);

    if (text.kind != DOMUS_SQL_TEXT || memchr(text.as.bytes, '\0', text.size) != NULL)
        return -EINVAL;
    *ret_text = text;
    return 0;
}

static int read_enum_word(struct place at, const domus_json_field *field, char *member)
{
    domus_sql_value text;
    int error = get_text_of_cell(at, &text);

    if (error != 0)
        return error;
    for (uint32_t word = 0; field->words[word] != NULL; word++) {
        if (strcmp(text.as.bytes, field->words[word]) == 0) {
            write_integer_to_member(member, field->size, word);
            return 0;
        }
    }
    return -ERANGE;
}

/* Let a pointer member of a struct point to the text of a cell. */
static int point_member_to_text_of_cell(struct place at, const domus_json_field *field,
                                        char *member)
{
    domus_sql_value text;
    int error = get_text_of_cell(at, &text);

    if (error != 0)
        return error;
    if (text.size > field->bytes_max)
        return -EMSGSIZE;
    const char *bytes = text.as.bytes;
    if (field->kind == DOMUS_JSON_KIND_RAW)
        memcpy(member, &(domus_json_raw){bytes, text.size}, sizeof(domus_json_raw));
    else
        memcpy(member, &bytes, sizeof bytes);
    return 0;
}

static int read_cell_into_member(struct place at, const domus_json_field *field, char *member)
{
    switch ((domus_json_kind)field->kind) {
    case DOMUS_JSON_KIND_BOOL:
        return domus_sql_get_bool(at.result, at.row, at.column, (bool *)member);
    case DOMUS_JSON_KIND_INT:
    case DOMUS_JSON_KIND_UINT:
        return read_integer_from_cell(at, field, member);
    case DOMUS_JSON_KIND_REAL:
        return read_real_from_cell(at, field, member);
    case DOMUS_JSON_KIND_TEXT:
        return domus_sql_get_text(at.result, at.row, at.column, member, field->size);
    case DOMUS_JSON_KIND_WORD:
        return read_enum_word(at, field, member);
    case DOMUS_JSON_KIND_STRING:
    case DOMUS_JSON_KIND_RAW:
        return point_member_to_text_of_cell(at, field, member);
    case DOMUS_JSON_KIND_OBJECT:
        break;
    }
    return -EOPNOTSUPP;
}

/* Read a cell into the member of its field. A cell that is NULL leaves the member at the table's
 * default if the field has a `has` or may be null; else it is an error. */
static int read_field_of_row(struct place at, const domus_json_field *field, char *value)
{
    bool is_null = domus_sql_cell(at.result, at.row, at.column).kind == DOMUS_SQL_NULL;

    if (field->has)
        memcpy(value + field->has_offset, &(bool){!is_null}, sizeof(bool));
    if (is_null)
        return field->has || field->nullable ? 0 : -ENODATA;
    return read_cell_into_member(at, field, value + field->offset);
}

int domus_sql_read(const domus_sql_result *result, uint32_t row, uint32_t count,
                   const struct domus_json_table *table, void *ret_values)
{
    struct columns columns;

    if (row > result->rows || count > result->rows - row)
        return -ENOENT;
    if (count == 0)
        return 0;
    int error = find_column_of_each_field_by_name(result, table, &columns);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        char *value = (char *)ret_values + (size_t)i * table->size;

        if (table->preset != NULL)
            memcpy(value, table->preset, table->size);
        else
            memset(value, 0, table->size);
        for (uint32_t f = 0; f < table->count && error == 0; f++)
            error = read_field_of_row((struct place){result, row + i, columns.of[f]},
                                      &table->fields[f], value);
    }
    return error;
}
