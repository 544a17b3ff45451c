/* Checks tables and picklers before they are used, so that reading and writing rely on them: no row
 * reaches beyond its struct, no two rows share a byte, and a default is a value of its field. */
#include "protocols/cluster/pickle.h"

#include <stdarg.h>
#include <stdio.h>

#define WORD_MAX 63u /* bytes of a word of an enum in a table, at most */

/* The buffer for an error text, and the type and row of the table that the error is about. */
typedef struct domi_complaint {
    char *error;
    size_t size;
    const char *name; /* name of the row that is wrong; NULL: the error is about no row */
} domi_complaint;

static int write_error_about_row(const domi_complaint *complaint, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int write_error_about_row(const domi_complaint *complaint, const char *format, ...)
{
    va_list list;
    int done = 0;

    if (complaint->size == 0)
        return -EINVAL;
    if (complaint->name != NULL)
        done = snprintf(complaint->error, complaint->size, "%s: ", complaint->name);
    if (done < 0 || (size_t)done >= complaint->size)
        return -EINVAL;
    va_start(list, format);
    (void)vsnprintf(complaint->error + done, complaint->size - (size_t)done, format, list);
    va_end(list);
    return -EINVAL;
}

static bool is_valid_size_of_number(uint32_t size)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

static bool fits_into_signed_member(int64_t value, uint32_t size)
{
    return value <= domi_greatest_signed_of_size(size) &&
           value >= -domi_greatest_signed_of_size(size) - 1;
}

static int check_range_of_number(const domus_pickle_field *field, const domi_complaint *complaint)
{
    if (!is_valid_size_of_number(field->size))
        return write_error_about_row(complaint, "a number of %u bytes", field->size);
    if (field->kind == DOMUS_PICKLE_KIND_UINT) {
        uint64_t high = field->ranged ? field->high : domi_greatest_unsigned_of_size(field->size);
        if (high > domi_greatest_unsigned_of_size(field->size) ||
            (field->ranged && field->low > high))
            return write_error_about_row(complaint,
                                         "the range is empty, or larger than the member");
        if (field->preset > high || (field->ranged && field->preset < field->low))
            return write_error_about_row(complaint, "the default is out of range");
        return 0;
    }
    int64_t low = (int64_t)field->low;
    int64_t high = (int64_t)field->high;
    int64_t preset = (int64_t)field->preset;
    if (field->ranged && (low > high || !fits_into_signed_member(low, field->size) ||
                          !fits_into_signed_member(high, field->size)))
        return write_error_about_row(complaint, "the range is empty, or larger than the member");
    if (!fits_into_signed_member(preset, field->size) ||
        (field->ranged && (preset < low || preset > high)))
        return write_error_about_row(complaint, "the default is out of range");
    return 0;
}

/* Check one word of an enum against its member and the words before it. */
static int check_word_of_enum(const domus_pickle_field *field, uint32_t i,
                              const domi_complaint *complaint)
{
    const domus_pickle_word *word = &field->words[i];
    size_t size = strnlen(word->word, WORD_MAX + 1);
    bool fits = field->member == 'u'
                    ? word->value >= 0 &&
                          (uint64_t)word->value <= domi_greatest_unsigned_of_size(field->size)
                : field->member == 'i'
                    ? fits_into_signed_member(word->value, field->size)
                    : fits_into_signed_member(word->value, field->size) ||
                          (word->value >= 0 &&
                           (uint64_t)word->value <= domi_greatest_unsigned_of_size(field->size));

    if (size == 0 || size > WORD_MAX)
        return write_error_about_row(complaint, "a word has 1 to %u bytes", WORD_MAX);
    if (!fits)
        return write_error_about_row(complaint, "the value of \"%s\" does not fit into the member",
                                     word->word);
    for (uint32_t j = 0; j < i; j++) {
        uint64_t other = (uint64_t)field->words[j].value;
        if ((((uint64_t)word->value ^ other) & domi_greatest_unsigned_of_size(field->size)) == 0 ||
            strcmp(field->words[j].word, word->word) == 0)
            return write_error_about_row(complaint, "\"%s\" is there twice, or its value",
                                         word->word);
    }
    return 0;
}

static int check_words_of_enum(const domus_pickle_field *field, const domi_complaint *complaint)
{
    bool has_preset = false;
    uint32_t count = 0;

    if (!is_valid_size_of_number(field->size))
        return write_error_about_row(complaint, "an enum of %u bytes", field->size);
    if (field->words == NULL)
        return write_error_about_row(complaint, "an enum without a list of values");
    for (; field->words[count].word != NULL; count++) {
        if (count == DOMUS_PICKLE_WORDS_MAX)
            return write_error_about_row(complaint, "more than %u values", DOMUS_PICKLE_WORDS_MAX);
        int error = check_word_of_enum(field, count, complaint);
        if (error != 0)
            return error;
        has_preset = has_preset || field->words[count].value == (int64_t)field->preset;
    }
    return has_preset ? 0 : write_error_about_row(complaint, "the default is none of the values");
}

static int check_bounds_of_owned_bytes(const domus_pickle_field *field, size_t size,
                                       const domi_complaint *complaint)
{
    if (field->size != size)
        return write_error_about_row(complaint, "the member has %u bytes, not %zu", field->size,
                                     size);
    if (field->bytes_max == 0 || field->bytes_max > DOMUS_SLICE_MAX)
        return write_error_about_row(complaint, "the bound is 0, or above %u", DOMUS_SLICE_MAX);
    if (field->preset_text != NULL &&
        strnlen(field->preset_text, (size_t)field->bytes_max + 1) > field->bytes_max)
        return write_error_about_row(complaint, "the default is too long");
    return 0;
}

static int check_size_of_member(const domus_pickle_field *field, size_t size,
                                const domi_complaint *complaint)
{
    return field->size == size
               ? 0
               : write_error_about_row(complaint, "the member has %u bytes, not %zu", field->size,
                                       size);
}

/* Tables in tables end at a depth of DOMUS_PICKLE_DEPTH_MAX, which pickle_table.c holds.
 * NOLINTBEGIN(misc-no-recursion) */

static int check_table_of_nested_struct(const domus_pickle_field *field, uint32_t depth,
                                        const domi_complaint *complaint);

/* Check the bounds that a row of a table sets for one value. */
static int check_bounds_of_value(const domus_pickle_field *field, uint32_t depth,
                                 const domi_complaint *complaint)
{
    switch ((domus_pickle_kind)field->kind) {
    case DOMUS_PICKLE_KIND_BOOL:
        return check_size_of_member(field, sizeof(bool), complaint);
    case DOMUS_PICKLE_KIND_INT:
    case DOMUS_PICKLE_KIND_UINT:
        return check_range_of_number(field, complaint);
    case DOMUS_PICKLE_KIND_ENUM:
        return check_words_of_enum(field, complaint);
    case DOMUS_PICKLE_KIND_REAL:
        return field->size == sizeof(float)
                   ? 0
                   : check_size_of_member(field, sizeof(double), complaint);
    case DOMUS_PICKLE_KIND_TEXT:
        if (field->size < 2)
            return write_error_about_row(complaint, "a text needs room for a byte and a zero");
        if (field->preset_text != NULL && strnlen(field->preset_text, field->size) == field->size)
            return write_error_about_row(complaint, "the default is too long");
        return 0;
    case DOMUS_PICKLE_KIND_OWNED_TEXT:
        return check_bounds_of_owned_bytes(field, sizeof(char *), complaint);
    case DOMUS_PICKLE_KIND_SLICE:
        return check_bounds_of_owned_bytes(field, sizeof(domus_slice), complaint);
    case DOMUS_PICKLE_KIND_ADDRESS:
        return check_size_of_member(field, sizeof(domus_address), complaint);
    case DOMUS_PICKLE_KIND_ENDPOINT:
        return check_size_of_member(field, sizeof(domus_endpoint), complaint);
    case DOMUS_PICKLE_KIND_STRUCT:
        return check_table_of_nested_struct(field, depth, complaint);
    }
    return write_error_about_row(complaint, "a row without a sort");
}

/* Check that a row's member has the type that the row means, as the compiler has recorded it.
 * Structs and arrays of char have no such record. */
static int check_type_of_member(const domus_pickle_field *field, const domi_complaint *complaint)
{
    static const char words[] = {
        [DOMUS_PICKLE_KIND_BOOL] = 'b',  [DOMUS_PICKLE_KIND_INT] = 'i',
        [DOMUS_PICKLE_KIND_UINT] = 'u',  [DOMUS_PICKLE_KIND_REAL] = 'r',
        [DOMUS_PICKLE_KIND_TEXT] = 0,    [DOMUS_PICKLE_KIND_OWNED_TEXT] = 't',
        [DOMUS_PICKLE_KIND_SLICE] = 's', [DOMUS_PICKLE_KIND_ADDRESS] = 'a',
        [DOMUS_PICKLE_KIND_STRUCT] = 0,  [DOMUS_PICKLE_KIND_ENDPOINT] = 'e',
    };
    bool fits = field->member == 0 || field->member == words[field->kind];

    if (field->kind == DOMUS_PICKLE_KIND_ENUM)
        fits = field->member == 0 || field->member == 'i' || field->member == 'u';
    return fits ? 0
                : write_error_about_row(complaint,
                                        "the member is of another type than the row says");
}

typedef struct domi_extent {
    uint64_t from;
    uint64_t to;
} domi_extent;

/* Find the bytes of the struct that a row uses: those of its member, of its count and of its
 * `has`. */
static uint32_t find_bytes_used_by_row(const domus_pickle_field *field, domi_extent extents[3])
{
    uint32_t count = 0;
    uint64_t size = field->size;

    if (field->shape == DOMUS_PICKLE_POINTED)
        size = sizeof(void *);
    else if (field->shape != DOMUS_PICKLE_ONE)
        size *= field->count_max;
    extents[count++] = (domi_extent){field->offset, field->offset + size};
    if (field->shape == DOMUS_PICKLE_COUNTED || field->shape == DOMUS_PICKLE_POINTED)
        extents[count++] =
            (domi_extent){field->count_offset, (uint64_t)field->count_offset + field->count_size};
    if (field->has != 0)
        extents[count++] =
            (domi_extent){field->has_offset, (uint64_t)field->has_offset + sizeof(bool)};
    return count;
}

/* Check that a row lies within its struct, and uses no byte that a row before it uses. */
static int check_place_of_row_in_struct(const domus_pickle_table *table, uint32_t row,
                                        const domi_complaint *complaint)
{
    domi_extent own[3];
    uint32_t own_count = find_bytes_used_by_row(&table->fields[row], own);

    for (uint32_t i = 0; i < own_count; i++) {
        if (own[i].to > table->size)
            return write_error_about_row(complaint, "the row reaches beyond the struct");
        for (uint32_t j = 0; j < i; j++) {
            if (own[i].from < own[j].to && own[j].from < own[i].to)
                return write_error_about_row(complaint, "its members have the same bytes");
        }
    }
    for (uint32_t before = 0; before < row; before++) {
        domi_extent others[3];
        uint32_t others_count = find_bytes_used_by_row(&table->fields[before], others);
        for (uint32_t i = 0; i < own_count * others_count; i++) {
            const domi_extent *one = &own[i / others_count];
            const domi_extent *other = &others[i % others_count];
            if (one->from < other->to && other->from < one->to)
                return write_error_about_row(complaint, "the row has bytes of \"%s\"",
                                             table->fields[before].name);
        }
    }
    return 0;
}

static int check_shape_of_row(const domus_pickle_field *field, const domi_complaint *complaint)
{
    if (field->shape > DOMUS_PICKLE_POINTED)
        return write_error_about_row(complaint, "a row without a shape");
    if (field->has != 0 && field->has != sizeof(bool))
        return write_error_about_row(complaint,
                                     "the member that says whether it is there is no bool");
    if (field->shape == DOMUS_PICKLE_ONE)
        return 0;
    if (field->elements == (field->shape == DOMUS_PICKLE_POINTED ? 'a' : 'p'))
        return write_error_about_row(complaint, "the elements are not where the row says");
    if (field->count_max == 0 || field->count_max > DOMUS_PICKLE_ELEMENTS_MAX)
        return write_error_about_row(complaint, "the bound of elements is 0, or above %u",
                                     DOMUS_PICKLE_ELEMENTS_MAX);
    if (field->shape == DOMUS_PICKLE_FIXED)
        return 0;
    if (!is_valid_size_of_number(field->count_size) ||
        field->count_max > domi_greatest_unsigned_of_size(field->count_size))
        return write_error_about_row(complaint, "the count cannot be %u", field->count_max);
    return 0;
}

static int check_row_of_table(const domus_pickle_table *table, uint32_t row, uint32_t depth,
                              const domi_complaint *complaint)
{
    const domus_pickle_field *field = &table->fields[row];
    uint32_t before = row == 0 ? 0 : table->fields[row - 1].number;

    if (field->number > DOMUS_PICKLE_NUMBER_MAX || field->number <= before)
        return write_error_about_row(complaint, "the numbers of a table go up, from 1 to %u",
                                     DOMUS_PICKLE_NUMBER_MAX);
    if (field->required && field->has != 0)
        return write_error_about_row(complaint, "a required field cannot be absent");
    int error = check_shape_of_row(field, complaint);
    if (error == 0)
        error = check_bounds_of_value(field, depth, complaint);
    if (error == 0)
        error = check_type_of_member(field, complaint);
    return error != 0 ? error : check_place_of_row_in_struct(table, row, complaint);
}

/* Check a table that is nested in `depth` other tables. */
static int check_nested_table(const domus_pickle_table *table, uint32_t depth,
                              const domi_complaint *complaint)
{
    domi_complaint own = *complaint;

    if (table->count > DOMUS_PICKLE_FIELDS_MAX)
        return write_error_about_row(complaint, "a table of more than %u rows",
                                     DOMUS_PICKLE_FIELDS_MAX);
    for (uint32_t i = 0; i < table->count; i++) {
        own.name = table->fields[i].name;
        if (own.name == NULL)
            return write_error_about_row(complaint, "a row without a name");
        int error = check_row_of_table(table, i, depth, &own);
        if (error != 0)
            return error;
    }
    return 0;
}

static int check_table_of_nested_struct(const domus_pickle_field *field, uint32_t depth,
                                        const domi_complaint *complaint)
{
    if (field->table == NULL)
        return write_error_about_row(complaint, "a struct without a table");
    if (field->size != field->table->size)
        return write_error_about_row(complaint,
                                     "the table is one of %u bytes, and the struct has %u",
                                     field->table->size, field->size);
    if (depth + 1 == DOMUS_PICKLE_DEPTH_MAX)
        return write_error_about_row(complaint, "tables in tables deeper than %u, or in themselves",
                                     DOMUS_PICKLE_DEPTH_MAX);
    return check_nested_table(field->table, depth + 1, complaint);
}

int domus_pickle_check(const domus_pickle_table *table, char *error, size_t error_size)
{
    return check_nested_table(table, 0, &(domi_complaint){error, error_size, NULL});
}

int domi_pickler_check(const domus_pickler *pickler, char *error, size_t error_size)
{
    const domi_complaint complaint = {error, error_size, NULL};
    size_t size = strnlen(domi_pickler_name_on_wire(pickler), DOMUS_PICKLE_NAME_MAX + 1);

    if (size == 0 || size > DOMUS_PICKLE_NAME_MAX)
        return write_error_about_row(&complaint, "a name has 1 to %u bytes", DOMUS_PICKLE_NAME_MAX);
    if (pickler->version == 0 || pickler->oldest > pickler->version)
        return write_error_about_row(&complaint, "the version is 0, or older than the oldest one");
    if ((pickler->write == NULL) != (pickler->read == NULL))
        return write_error_about_row(&complaint, "it has one of two functions");
    if (pickler->table != NULL && pickler->write != NULL)
        return write_error_about_row(&complaint, "it has a table and functions");
    if (pickler->table == NULL)
        return pickler->write != NULL || pickler->type->size == 0
                   ? 0
                   : write_error_about_row(&complaint, "it has neither a table nor functions");
    if (pickler->table->size != pickler->type->size)
        return write_error_about_row(&complaint,
                                     "the table is one of %u bytes, and the payload has %u",
                                     pickler->table->size, pickler->type->size);
    int result = domus_pickle_check(pickler->table, error, error_size);
    if (result == 0 && pickler->type->release == NULL &&
        domi_pickle_does_table_own_memory(pickler->table))
        return write_error_about_row(&complaint, "it owns memory, and its type has no release");
    return result;
}

/* NOLINTEND(misc-no-recursion) */
