/* Stores texts and numbers in the members of a struct that rows describe, or reports why they do
 * not fit. */
#include "protocols/json/number.h"
#include "protocols/json/reader.h"

#include <errno.h>
#include <string.h>

bool domi_json_refuse_kind_of_value(domi_json_reader *reader, const domus_json_field *field,
                                    bool is_element, size_t offset)
{
    static const char *const words[] = {
        [DOMUS_JSON_KIND_BOOL] = "not true or false", [DOMUS_JSON_KIND_INT] = "not an integer",
        [DOMUS_JSON_KIND_UINT] = "not an integer",    [DOMUS_JSON_KIND_REAL] = "not a number",
        [DOMUS_JSON_KIND_TEXT] = "not a text",        [DOMUS_JSON_KIND_STRING] = "not a text",
        [DOMUS_JSON_KIND_WORD] = "not a text",        [DOMUS_JSON_KIND_OBJECT] = "not an object",
    };

    if (field->shape != DOMUS_JSON_ONE && !is_element)
        return domi_json_refuse_text(reader, offset, -EPROTO, "not an array");
    return domi_json_refuse_text(reader, offset, -EPROTO, "%s", words[field->kind]);
}

/* --- texts ------------------------------------------------------------------------------------ */

static bool store_word_of_enum(domi_json_reader *reader, const domus_json_field *field, void *at,
                               const char *text, uint32_t size)
{
    char shown[DOMI_JSON_SHOWN_MAX + 4];

    for (uint32_t i = 0; field->words[i] != NULL; i++) {
        if (strlen(field->words[i]) == size && memcmp(field->words[i], text, size) == 0) {
            domi_json_store_unsigned_of_size(at, field->size, i);
            return true;
        }
    }
    return domi_json_refuse_text(reader, domi_json_offset_of_text(reader, text) - 1, -ERANGE,
                                 "\"%s\" is none of its words",
                                 domi_json_copy_shown_part(text, size, shown));
}

bool domi_json_take_memory_of_struct(domi_json_reader *reader, size_t offset, uint64_t size,
                                     void **ret_bytes)
{
    if (!reader->may_own)
        return domi_json_refuse_text(reader, offset, -EINVAL, "needs memory that nobody takes");
    int error = domi_json_take_bytes_of_arena(&reader->arena, size, ret_bytes);
    if (error == -ENOMEM)
        return domi_json_refuse_text(reader, offset, error, "no memory");
    if (error != 0)
        return domi_json_refuse_text(reader, offset, error, "needs too much memory");
    return true;
}

bool domi_json_store_text(domi_json_reader *reader, const domus_json_field *field, void *at,
                          const char *text, uint32_t size)
{
    size_t offset = domi_json_offset_of_text(reader, text) - 1;
    uint32_t most = field->kind == DOMUS_JSON_KIND_TEXT ? field->size - 1 : field->bytes_max;
    void *copy = at;

    if (field->kind == DOMUS_JSON_KIND_WORD)
        return store_word_of_enum(reader, field, at, text, size);
    if (field->kind != DOMUS_JSON_KIND_TEXT && field->kind != DOMUS_JSON_KIND_STRING)
        return domi_json_refuse_kind_of_value(reader, field, true, offset);
    if (size > most)
        return domi_json_refuse_text(reader, offset, -EMSGSIZE, "longer than %u bytes", most);
    if (reader->has_odd_escape && memchr(text, 0, size) != NULL)
        return domi_json_refuse_text(reader, offset, -EPROTO, "has a zero in it");
    if (field->kind == DOMUS_JSON_KIND_STRING) {
        if (!domi_json_take_memory_of_struct(reader, offset, (uint64_t)size + 1, &copy))
            return false;
        memcpy(at, &copy, sizeof copy);
    }
    memcpy(copy, text, size);
    ((char *)copy)[size] = '\0';
    return true;
}

bool domi_json_store_value_as_raw_text(domi_json_reader *reader, const domus_json_field *field,
                                       domus_json_raw *raw, size_t offset, size_t size)
{
    void *copy;

    if (size > field->bytes_max)
        return domi_json_refuse_text(reader, offset, -EMSGSIZE, "longer than %u bytes",
                                     field->bytes_max);
    if (!domi_json_take_memory_of_struct(reader, offset, size + 1, &copy))
        return false;
    memcpy(copy, reader->text + offset, size);
    ((char *)copy)[size] = '\0';
    *raw = (domus_json_raw){.text = copy, .size = (uint32_t)size};
    return true;
}

/* --- numbers ---------------------------------------------------------------------------------- */

static bool store_real_in_member(domi_json_reader *reader, const domus_json_field *field, void *at,
                                 char *text, uint32_t size)
{
    char shown[DOMI_JSON_SHOWN_MAX + 4];
    double value = domi_json_read_real(text, size);

    if (!(value >= field->real_low && value <= field->real_high))
        return domi_json_refuse_text(
            reader, domi_json_offset_of_text(reader, text), -ERANGE, "%s is not in %.9g..%.9g",
            domi_json_copy_shown_part(text, size, shown), field->real_low, field->real_high);
    memcpy(at, &value, sizeof value);
    return true;
}

static bool refuse_integer_out_of_range(domi_json_reader *reader, const domus_json_field *field,
                                        const char *text, uint32_t size)
{
    char shown[DOMI_JSON_SHOWN_MAX + 4];
    size_t offset = domi_json_offset_of_text(reader, text);

    (void)domi_json_copy_shown_part(text, size, shown);
    if (field->kind == DOMUS_JSON_KIND_INT)
        return domi_json_refuse_text(reader, offset, -ERANGE, "%s is not in %lld..%lld", shown,
                                     (long long)field->low, (long long)field->high);
    return domi_json_refuse_text(reader, offset, -ERANGE, "%s is not in %llu..%llu", shown,
                                 (unsigned long long)field->low, (unsigned long long)field->high);
}

bool domi_json_store_number(domi_json_reader *reader, const domus_json_field *field, void *at,
                            char *text, uint32_t size)
{
    bool is_negative;
    uint64_t value;

    if (field->kind == DOMUS_JSON_KIND_REAL)
        return store_real_in_member(reader, field, at, text, size);
    if (field->kind != DOMUS_JSON_KIND_INT && field->kind != DOMUS_JSON_KIND_UINT)
        return domi_json_refuse_kind_of_value(reader, field, true,
                                              domi_json_offset_of_text(reader, text));
    switch (domi_json_read_integer(text, size, &is_negative, &value)) {
    case 0:
        break;
    case -ERANGE:
        return refuse_integer_out_of_range(reader, field, text, size);
    default:
        return domi_json_refuse_kind_of_value(reader, field, true,
                                              domi_json_offset_of_text(reader, text));
    }
    if (field->kind == DOMUS_JSON_KIND_UINT) {
        if (is_negative || value < field->low || value > field->high ||
            value > domi_json_greatest_unsigned_of_size(field->size))
            return refuse_integer_out_of_range(reader, field, text, size);
    } else {
        uint64_t most =
            (domi_json_greatest_unsigned_of_size(field->size) >> 1) + (is_negative ? 1 : 0);
        int64_t number = (int64_t)(is_negative ? 0 - value : value);
        if (value > most || number < (int64_t)field->low || number > (int64_t)field->high)
            return refuse_integer_out_of_range(reader, field, text, size);
        value = (uint64_t)number;
    }
    domi_json_store_unsigned_of_size(at, field->size, value);
    return true;
}
