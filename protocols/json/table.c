/* Checks tables, so that reading and writing may rely on them: no row reaches beyond its struct, no
 * two share a byte, and what a row says of a number or a text holds for its member. */
#include "protocols/json/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The caller's buffer for an error text, and the row of the table that the error is about. */
typedef struct complaint {
    char *error;
    size_t size;
    const char *name; /* name of the row; NULL: the error is about the whole table */
} complaint;

static __attribute__((format(printf, 2, 3))) int write_complaint_about_row(const complaint *about,
                                                                           const char *format, ...)
{
    va_list list;
    int done = 0;

    if (about->size == 0)
        return -EINVAL;
    if (about->name != NULL)
        done = snprintf(about->error, about->size, "%s: ", about->name);
    if (done < 0 || (size_t)done >= about->size)
        return -EINVAL;
    va_start(list, format);
    (void)vsnprintf(about->error + done, about->size - (size_t)done, format, list);
    va_end(list);
    return -EINVAL;
}

static bool is_number_size(uint32_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static int check_number_of_row(const domus_json_field *field, const complaint *about)
{
    uint64_t most = domi_json_greatest_unsigned_of_size(field->size);

    if (field->kind == DOMUS_JSON_KIND_UINT) {
        if (field->low > field->high)
            return write_complaint_about_row(about, "the range is empty");
        return field->high <= most
                   ? 0
                   : write_complaint_about_row(about, "the range is larger than the member");
    }
    int64_t low = (int64_t)field->low;
    int64_t high = (int64_t)field->high;
    int64_t limit = (int64_t)(most >> 1);
    if (low > high)
        return write_complaint_about_row(about, "the range is empty");
    if (low < -limit - 1 || high > limit)
        return write_complaint_about_row(about, "the range is larger than the member");
    return 0;
}

static int check_words_of_enum(const domus_json_field *field, const complaint *about)
{
    uint64_t count = 0;

    if (field->words == NULL || field->words[0] == NULL)
        return write_complaint_about_row(about, "no words");
    for (; field->words[count] != NULL; count++) {
        for (uint64_t i = 0; i < count; i++) {
            if (strcmp(field->words[i], field->words[count]) == 0)
                return write_complaint_about_row(about, "the word \"%s\" is there twice",
                                                 field->words[i]);
        }
    }
    if (count - 1 > domi_json_greatest_unsigned_of_size(field->size))
        return write_complaint_about_row(about, "more words than the member has values");
    return 0;
}

static int check_kind_of_row(const domus_json_field *field, const complaint *about)
{
    switch ((domus_json_kind)field->kind) {
    case DOMUS_JSON_KIND_BOOL:
        return field->size == sizeof(bool) ? 0 : write_complaint_about_row(about, "not a bool");
    case DOMUS_JSON_KIND_INT:
    case DOMUS_JSON_KIND_UINT:
        return is_number_size(field->size)
                   ? check_number_of_row(field, about)
                   : write_complaint_about_row(about, "a number of %u bytes", field->size);
    case DOMUS_JSON_KIND_WORD:
        return is_number_size(field->size)
                   ? check_words_of_enum(field, about)
                   : write_complaint_about_row(about, "a number of %u bytes", field->size);
    case DOMUS_JSON_KIND_REAL:
        if (field->size != sizeof(double))
            return write_complaint_about_row(about, "not a double");
        return field->real_low <= field->real_high
                   ? 0
                   : write_complaint_about_row(about, "the range is empty");
    case DOMUS_JSON_KIND_TEXT:
        return field->size != 0 ? 0 : write_complaint_about_row(about, "an array without elements");
    case DOMUS_JSON_KIND_STRING:
        return field->size == sizeof(char *) ? 0
                                             : write_complaint_about_row(about, "not a pointer");
    case DOMUS_JSON_KIND_RAW:
        return field->size == sizeof(domus_json_raw)
                   ? 0
                   : write_complaint_about_row(about, "not a domus_json_raw");
    case DOMUS_JSON_KIND_OBJECT:
        if (field->table == NULL || field->table->size != field->size)
            return write_complaint_about_row(about, "the table is of another struct");
        return 0;
    }
    return write_complaint_about_row(about, "has no kind");
}

/* Returns the offset in the struct at which the members of a row begin. */
static uint64_t begin_of_row_in_struct(const domus_json_field *field)
{
    return field->offset;
}

static uint64_t end_of_row_in_struct(const domus_json_field *field)
{
    uint64_t bytes = field->shape == DOMUS_JSON_ONE       ? field->size
                     : field->shape == DOMUS_JSON_COUNTED ? (uint64_t)field->size * field->count_max
                                                          : sizeof(void *);

    return field->offset + bytes;
}

static int check_shape_of_row(const domus_json_table *table, const domus_json_field *field,
                              const complaint *about)
{
    if (end_of_row_in_struct(field) > table->size)
        return write_complaint_about_row(about, "reaches beyond the struct");
    if (field->has && field->has_offset + sizeof(bool) > table->size)
        return write_complaint_about_row(about, "its bool is beyond the struct");
    if (field->shape == DOMUS_JSON_ONE)
        return 0;
    if (field->shape > DOMUS_JSON_POINTED)
        return write_complaint_about_row(about, "has no shape");
    if (!is_number_size(field->count_size) || field->count_offset + field->count_size > table->size)
        return write_complaint_about_row(about, "the count is no integer of the struct");
    if (field->count_max == 0 || field->count_max > DOMUS_JSON_ELEMENTS_MAX ||
        field->count_max > domi_json_greatest_unsigned_of_size(field->count_size))
        return write_complaint_about_row(about, "a bound of %u elements", field->count_max);
    return 0;
}

static int check_name_of_row(const domus_json_field *field, const complaint *about)
{
    if (field->name_size == 0 || field->name_size != strnlen(field->name, sizeof field->name) ||
        field->name_size > DOMUS_JSON_NAME_MAX)
        return write_complaint_about_row(about, "a name of %u bytes", field->name_size);
    for (uint32_t i = 0; i < field->name_size; i++) {
        if ((unsigned char)field->name[i] < 0x20 || field->name[i] == '"' || field->name[i] == '\\')
            return write_complaint_about_row(about,
                                             "the name has a character that needs an escape");
    }
    return 0;
}

static int check_name_and_place_against_rows_before(const domus_json_table *table, uint32_t row,
                                                    const complaint *about)
{
    const domus_json_field *field = &table->fields[row];

    for (uint32_t i = 0; i < row; i++) {
        const domus_json_field *other = &table->fields[i];
        if (strcmp(field->name, other->name) == 0)
            return write_complaint_about_row(about, "the name is there twice");
        if (begin_of_row_in_struct(field) < end_of_row_in_struct(other) &&
            begin_of_row_in_struct(other) < end_of_row_in_struct(field))
            return write_complaint_about_row(about, "shares bytes with %s", other->name);
    }
    return 0;
}

/* The tables that enclose the current one, so that a table which is nested in itself by a list is
 * checked once. Texts are nested at most DOMUS_JSON_DEPTH_MAX deep, so the check goes no deeper.
 * NOLINTBEGIN(misc-no-recursion) */
typedef struct trail {
    const struct trail *before;
    const domus_json_table *table;
    uint32_t depth;
} trail;

static int check_nested_table(const domus_json_table *table, const trail *before, char *error,
                              size_t error_size)
{
    trail here = {before, table, before != NULL ? before->depth + 1 : 1};
    complaint about = {error, error_size, NULL};

    for (const trail *at = before; at != NULL; at = at->before) {
        if (at->table == table)
            return 0;
    }
    if (here.depth > DOMUS_JSON_DEPTH_MAX)
        return write_complaint_about_row(&about, "nested deeper than %u", DOMUS_JSON_DEPTH_MAX);
    if (table->count == 0 || table->count > DOMUS_JSON_FIELDS_MAX)
        return write_complaint_about_row(&about, "a table of %u rows", table->count);
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_json_field *field = &table->fields[i];
        about.name = field->name;
        int bad = check_name_of_row(field, &about);
        if (bad == 0)
            bad = check_kind_of_row(field, &about);
        if (bad == 0)
            bad = check_shape_of_row(table, field, &about);
        if (bad == 0)
            bad = check_name_and_place_against_rows_before(table, i, &about);
        if (bad == 0 && field->kind == DOMUS_JSON_KIND_OBJECT)
            bad = check_nested_table(field->table, &here, error, error_size);
        if (bad != 0)
            return bad;
    }
    return 0;
}

int domus_json_check_table(const domus_json_table *table, char *error, size_t error_size)
{
    return check_nested_table(table, NULL, error, error_size);
}

/* NOLINTEND(misc-no-recursion) */
