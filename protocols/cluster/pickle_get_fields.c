/* Reads a struct by its table, from a map with numbers as keys.
 *
 * The memory begins zeroed, and a pointer is in it as soon as it owns something, so a reader that
 * stops in the midst can free everything by the table. Writers mostly have the same fields in the
 * same order, so the next row is tried first, and others are searched only if it does not fit. */
#include "protocols/cluster/pickle_token.h"
#include "protocols/cluster/pickle_words.h"

#include <stdio.h>
#include <stdlib.h>

/* Tables in tables end at a depth of DOMUS_PICKLE_DEPTH_MAX, which pickle_table.c holds.
 * NOLINTBEGIN(misc-no-recursion) */

static int get_value_of_field(domus_pickle_reader *reader, const domus_pickle_field *field,
                              void *at);

static int get_bool_member(domus_pickle_reader *reader, void *at)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_TRUE_OR_FALSE)
        return domi_pickle_token_refuse_kind(reader, "a boolean");
    *(bool *)at = token->is.number != 0;
    return 0;
}

/* Record the fault that an integer is out of the range of its member, or of its row in the
 * table. */
static int refuse_number_out_of_range(domus_pickle_reader *reader, const domus_pickle_field *field,
                                      bool fits)
{
    const domi_pickle_token *token = &reader->token;
    char number[24];
    const char *sign = field->kind == DOMUS_PICKLE_KIND_INT ? " with a sign" : "";

    if (token->value == DOMUS_PICKLE_NEGATIVE)
        (void)snprintf(number, sizeof number, "%lld", (long long)token->is.number);
    else
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)token->is.number);
    if (!fits && token->value == DOMUS_PICKLE_NEGATIVE && sign[0] == '\0')
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%s is negative", number);
    if (!fits)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%s does not fit into %u bits%s",
                                        number, 8 * field->size, sign);
    if (field->kind == DOMUS_PICKLE_KIND_INT)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%s is not in %lld..%lld", number,
                                        (long long)field->low, (long long)field->high);
    return domi_pickle_fault_record(&reader->fault, -ERANGE, "%s is not in %llu..%llu", number,
                                    (unsigned long long)field->low,
                                    (unsigned long long)field->high);
}

static inline bool is_integer_token(const domi_pickle_token *token)
{
    return token->value == DOMUS_PICKLE_UNSIGNED || token->value == DOMUS_PICKLE_NEGATIVE;
}

static int get_unsigned_member(domus_pickle_reader *reader, const domus_pickle_field *field,
                               void *at)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (!is_integer_token(token))
        return domi_pickle_token_refuse_kind(reader, "an integer");
    uint64_t value = token->is.number;
    if (token->value == DOMUS_PICKLE_NEGATIVE ||
        value > domi_greatest_unsigned_of_size(field->size))
        return refuse_number_out_of_range(reader, field, false);
    if (field->ranged && (value < field->low || value > field->high))
        return refuse_number_out_of_range(reader, field, true);
    domi_store_unsigned_member(at, field->size, value);
    return 0;
}

static int get_signed_member(domus_pickle_reader *reader, const domus_pickle_field *field, void *at)
{
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (!is_integer_token(token))
        return domi_pickle_token_refuse_kind(reader, "an integer");
    int64_t most = domi_greatest_signed_of_size(field->size);
    int64_t value = (int64_t)token->is.number;
    if (token->value == DOMUS_PICKLE_UNSIGNED ? token->is.number > (uint64_t)most
                                              : value < -most - 1)
        return refuse_number_out_of_range(reader, field, false);
    if (field->ranged && (value < (int64_t)field->low || value > (int64_t)field->high))
        return refuse_number_out_of_range(reader, field, true);
    domi_store_unsigned_member(at, field->size, (uint64_t)value);
    return 0;
}

/* Record the fault that a word is not in the list of an enum. Bytes on which a terminal would act
 * are not shown. */
static int refuse_unknown_word_of_enum(domus_pickle_reader *reader)
{
    const domi_pickle_token *token = &reader->token;
    char shown[25];
    uint32_t size = token->size < sizeof shown - 1 ? token->size : (uint32_t)sizeof shown - 1;

    for (uint32_t i = 0; i < size; i++)
        shown[i] = token->body[i] >= 0x20 && token->body[i] < 0x7f ? (char)token->body[i] : '?';
    shown[size] = '\0';
    return domi_pickle_fault_record(&reader->fault, -ERANGE, "\"%s%s\" is none of its words", shown,
                                    size < token->size ? "..." : "");
}

static int get_enum_member(domus_pickle_reader *reader, const domus_pickle_field *field, void *at)
{
    const domus_pickle_word *word = NULL;
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value == DOMUS_PICKLE_CHARS) {
        word = domi_enum_word_with_text(field->words, token->body, token->size);
        if (word == NULL)
            return refuse_unknown_word_of_enum(reader);
    } else if (is_integer_token(token)) {
        if (token->value == DOMUS_PICKLE_NEGATIVE || token->is.number <= (uint64_t)INT64_MAX)
            word = domi_enum_word_with_value(field->words, (int64_t)token->is.number);
        if (word == NULL && token->value == DOMUS_PICKLE_NEGATIVE)
            return domi_pickle_fault_record(&reader->fault, -ERANGE, "%lld is none of its values",
                                            (long long)token->is.number);
        if (word == NULL)
            return domi_pickle_fault_record(&reader->fault, -ERANGE, "%llu is none of its values",
                                            (unsigned long long)token->is.number);
    } else {
        return domi_pickle_token_refuse_kind(reader, "an integer or a word");
    }
    domi_store_unsigned_member(at, field->size, (uint64_t)word->value);
    return 0;
}

static int get_real_member(domus_pickle_reader *reader, const domus_pickle_field *field, void *at)
{
    double value;
    int error = domi_pickle_get_real(reader, &value);

    if (error != 0)
        return error;
    if (field->size == sizeof value) {
        memcpy(at, &value, sizeof value);
        return 0;
    }
    float small = (float)value;
    if ((double)small != value && value == value)
        return domi_pickle_fault_record(&reader->fault, -ERANGE, "%.17g does not fit into a float",
                                        value);
    memcpy(at, &small, sizeof small);
    return 0;
}

static bool is_next_value_nil(const domus_pickle_reader *reader)
{
    return reader->at != reader->end && *reader->at == 0xc0;
}

static int get_owned_text_member(domus_pickle_reader *reader, const domus_pickle_field *field,
                                 void *at)
{
    if (is_next_value_nil(reader)) {
        reader->at++;
        return 0;
    }
    return domi_pickle_get_owned_text(reader, field->bytes_max, at);
}

/* Set a member, or one element of it, to the default of its field. Its memory must be zeroed. */
static int set_member_to_preset(domus_pickle_reader *reader, const domus_pickle_field *field,
                                void *at)
{
    const char *text = field->preset_text;
    float small = (float)field->preset_real;
    int error;

    switch ((domus_pickle_kind)field->kind) {
    case DOMUS_PICKLE_KIND_BOOL:
    case DOMUS_PICKLE_KIND_INT:
    case DOMUS_PICKLE_KIND_UINT:
    case DOMUS_PICKLE_KIND_ENUM:
        domi_store_unsigned_member(at, field->size, field->preset);
        return 0;
    case DOMUS_PICKLE_KIND_REAL:
        if (field->size == sizeof small)
            memcpy(at, &small, sizeof small);
        else
            memcpy(at, &field->preset_real, sizeof field->preset_real);
        return 0;
    case DOMUS_PICKLE_KIND_TEXT:
        if (text != NULL)
            memcpy(at, text, strlen(text));
        return 0;
    case DOMUS_PICKLE_KIND_OWNED_TEXT:
        return text != NULL ? domi_pickle_copy_text(reader, text, strlen(text), at) : 0;
    case DOMUS_PICKLE_KIND_SLICE:
    case DOMUS_PICKLE_KIND_ADDRESS:
    case DOMUS_PICKLE_KIND_ENDPOINT:
        return 0;
    case DOMUS_PICKLE_KIND_STRUCT:
        for (uint32_t i = 0; i < field->table->count; i++) {
            error = domi_pickle_set_missing_to_default(reader, &field->table->fields[i], at);
            if (error != 0)
                return error;
        }
        return 0;
    }
    return domi_pickle_fault_record(&reader->fault, -EINVAL, "has no kind");
}

/* Set the elements of a fixed array, from the index `from` on, to the default of their field. */
static int set_elements_to_preset(domus_pickle_reader *reader, const domus_pickle_field *field,
                                  char *at, uint64_t from)
{
    for (uint64_t i = from; i < field->count_max; i++) {
        int error = set_member_to_preset(reader, field, at + i * field->size);
        if (error != 0)
            return domi_pickle_fault_put_element_index(&reader->fault, i);
    }
    return 0;
}

int domi_pickle_set_missing_to_default(domus_pickle_reader *reader, const domus_pickle_field *field,
                                       void *value)
{
    char *at = (char *)value + field->offset;
    int error = 0;

    if (field->shape == DOMUS_PICKLE_ONE)
        error = set_member_to_preset(reader, field, at);
    else if (field->shape == DOMUS_PICKLE_FIXED)
        error = set_elements_to_preset(reader, field, at, 0);
    return error != 0 ? domi_pickle_fault_put_field_name(&reader->fault, field->name) : 0;
}

static int get_elements_of_member(domus_pickle_reader *reader, const domus_pickle_field *field,
                                  char *value)
{
    char *at = value + field->offset;
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_ARRAY_HEAD)
        return domi_pickle_token_refuse_kind(reader, "an array");
    uint32_t count = token->size;
    if (count > field->count_max)
        return domi_pickle_fault_record(&reader->fault, -EMSGSIZE, "has %u elements, more than %u",
                                        count, field->count_max);
    if (field->shape == DOMUS_PICKLE_POINTED && count != 0) {
        error = domi_pickle_charge_memory_of_message(reader, (uint64_t)count * field->size);
        if (error != 0)
            return error;
        char *memory = calloc(count, field->size);
        if (memory == NULL)
            return domi_pickle_fault_record(&reader->fault, -ENOMEM, "no memory");
        memcpy(at, &memory, sizeof memory);
        at = memory;
    }
    if (field->shape != DOMUS_PICKLE_FIXED)
        domi_store_unsigned_member(value + field->count_offset, field->count_size, count);
    for (uint32_t i = 0; i < count; i++) {
        error = get_value_of_field(reader, field, at + (size_t)i * field->size);
        if (error != 0)
            return domi_pickle_fault_put_element_index(&reader->fault, i);
    }
    return field->shape == DOMUS_PICKLE_FIXED ? set_elements_to_preset(reader, field, at, count)
                                              : 0;
}

static int get_value_of_field(domus_pickle_reader *reader, const domus_pickle_field *field,
                              void *at)
{
    switch ((domus_pickle_kind)field->kind) {
    case DOMUS_PICKLE_KIND_BOOL:
        return get_bool_member(reader, at);
    case DOMUS_PICKLE_KIND_INT:
        return get_signed_member(reader, field, at);
    case DOMUS_PICKLE_KIND_UINT:
        return get_unsigned_member(reader, field, at);
    case DOMUS_PICKLE_KIND_ENUM:
        return get_enum_member(reader, field, at);
    case DOMUS_PICKLE_KIND_REAL:
        return get_real_member(reader, field, at);
    case DOMUS_PICKLE_KIND_TEXT:
        return domi_pickle_get_text_into_array(reader, at, field->size);
    case DOMUS_PICKLE_KIND_OWNED_TEXT:
        return get_owned_text_member(reader, field, at);
    case DOMUS_PICKLE_KIND_SLICE:
        return domi_pickle_get_slice(reader, field->bytes_max, at);
    case DOMUS_PICKLE_KIND_ADDRESS:
        return domi_pickle_get_address(reader, at);
    case DOMUS_PICKLE_KIND_ENDPOINT:
        return domi_pickle_get_endpoint(reader, at);
    case DOMUS_PICKLE_KIND_STRUCT:
        return domi_pickle_get_struct(reader, field->table, at);
    }
    return domi_pickle_fault_record(&reader->fault, -EINVAL, "has no kind");
}

static int get_field_of_struct(domus_pickle_reader *reader, const domus_pickle_field *field,
                               char *value)
{
    int error;

    /* nil in place of a value means that the field is absent */
    if (field->has != 0 && is_next_value_nil(reader)) {
        reader->at++;
        error = domi_pickle_set_missing_to_default(reader, field, value);
        return error;
    }
    error = field->shape == DOMUS_PICKLE_ONE
                ? get_value_of_field(reader, field, value + field->offset)
                : get_elements_of_member(reader, field, value);
    if (error != 0)
        return domi_pickle_fault_put_field_name(&reader->fault, field->name);
    if (field->has != 0)
        domi_store_unsigned_member(value + field->has_offset, 1, 1);
    return 0;
}

/* Returns the index of the table's row for the field with this number; the number of rows if there
 * is none. */
static uint32_t find_row_by_number(const domus_pickle_table *table, uint64_t number)
{
    uint32_t low = 0;
    uint32_t high = table->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->fields[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->count && table->fields[low].number == number ? low : table->count;
}

/* Read a key of the map that is not the expected one. `ret_row` gets the index of the key's row, or
 * the number of rows if the field is unknown and its value was skipped. */
static int read_unexpected_key(domus_pickle_reader *reader, const domus_pickle_table *table,
                               uint32_t *ret_row)
{
    const unsigned char *begin = reader->at;
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    *ret_row = token->value == DOMUS_PICKLE_UNSIGNED ? find_row_by_number(table, token->is.number)
                                                     : table->count;
    if (*ret_row != table->count)
        return 0;
    reader->at = begin;
    error =
        domi_pickle_skip_value(reader); /* an unknown key is skipped, which may even be an array */
    return error != 0 ? error : domi_pickle_skip_value(reader);
}

/* Set the fields that the message does not have to their defaults, or fail: `seen` has a bit for
 * each row that was read. */
static int fill_missing_fields(domus_pickle_reader *reader, const domus_pickle_table *table,
                               uint64_t seen, void *value)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_pickle_field *field = &table->fields[i];
        if ((seen >> i & 1) != 0)
            continue;
        if (field->required) {
            (void)domi_pickle_fault_record(&reader->fault, -EBADMSG, "is missing");
            return domi_pickle_fault_put_field_name(&reader->fault, field->name);
        }
        int error = domi_pickle_set_missing_to_default(reader, field, value);
        if (error != 0)
            return error;
    }
    return 0;
}

int domi_pickle_get_struct(domus_pickle_reader *reader, const domus_pickle_table *table,
                           void *value)
{
    uint64_t seen = 0;
    uint32_t known = 0;
    uint32_t row = 0;
    const domi_pickle_token *token = &reader->token;
    int error = domi_pickle_token_read_next(reader);

    if (error != 0)
        return error;
    if (token->value != DOMUS_PICKLE_MAP_HEAD)
        return domi_pickle_token_refuse_kind(reader, "a map");
    for (uint32_t left = token->size; left != 0; left--) {
        if (row < table->count && reader->at != reader->end &&
            *reader->at == table->fields[row].number) {
            reader->at++;
        } else {
            error = read_unexpected_key(reader, table, &row);
            if (error != 0)
                return error;
            if (row == table->count) /* the field is unknown, and its value was skipped */
                continue;
        }
        const domus_pickle_field *field = &table->fields[row];
        if ((seen >> row & 1) != 0) {
            (void)domi_pickle_fault_record(&reader->fault, -EBADMSG, "is there twice");
            return domi_pickle_fault_put_field_name(&reader->fault, field->name);
        }
        seen |= UINT64_C(1) << row++;
        error = get_field_of_struct(reader, field, value);
        if (error != 0)
            return error;
        known++;
    }
    return known == table->count ? 0 : fill_missing_fields(reader, table, seen, value);
}

/* NOLINTEND(misc-no-recursion) */
