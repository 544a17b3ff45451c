/* Writes a struct by its table. The functions recurse as deep as tables are nested, which
 * DOMUS_JSON_DEPTH_MAX bounds. NOLINTBEGIN(misc-no-recursion) */
#include "protocols/json/append.h"
#include "protocols/json/reader.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

typedef struct domi_json_writing {
    domus_appender *to;
    domi_json_fault fault;
    uint32_t depth; /* number of objects and arrays that are open while the struct is written */
} domi_json_writing;

static int write_struct_as_object(domi_json_writing *writing, const domus_json_table *table,
                                  const char *value);

static __attribute__((format(printf, 3, 4), cold)) int
record_fault_of_writing(domi_json_writing *writing, int error, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    domi_json_fault_record(&writing->fault, error, format, list);
    va_end(list);
    return error;
}

/* Record a fault for `error`, which a function of append.h has returned, unless it is 0. Returns
 * the errno. */
static int record_append_error(domi_json_writing *writing, int error)
{
    if (error == 0)
        return 0;
    if (error == -EILSEQ)
        return record_fault_of_writing(writing, error, "no UTF-8");
    if (error == -ERANGE)
        return record_fault_of_writing(writing, error, "not a finite number");
    return record_fault_of_writing(writing, error,
                                   error == -ENOMEM ? "no memory" : "the text gets too large");
}

static int count_depth_of_nested_value(domi_json_writing *writing)
{
    if (writing->depth == DOMUS_JSON_DEPTH_MAX)
        return record_fault_of_writing(writing, -EINVAL, "nested deeper than %u",
                                       DOMUS_JSON_DEPTH_MAX);
    writing->depth++;
    return 0;
}

/* --- values ----------------------------------------------------------------------------------- */

static int write_int_member(domi_json_writing *writing, const domus_json_field *field,
                            const char *at)
{
    uint64_t bits = domi_json_load_unsigned_of_size(at, field->size);
    uint32_t unused = 64 - 8 * field->size;
    int64_t value = (int64_t)(bits << unused) >> unused;

    if (value < (int64_t)field->low || value > (int64_t)field->high)
        return record_fault_of_writing(writing, -ERANGE, "%lld is not in %lld..%lld",
                                       (long long)value, (long long)field->low,
                                       (long long)field->high);
    return record_append_error(writing, domi_json_append_signed(writing->to, value));
}

static int write_uint_member(domi_json_writing *writing, const domus_json_field *field,
                             const char *at)
{
    uint64_t value = domi_json_load_unsigned_of_size(at, field->size);

    if (value < field->low || value > field->high)
        return record_fault_of_writing(writing, -ERANGE, "%llu is not in %llu..%llu",
                                       (unsigned long long)value, (unsigned long long)field->low,
                                       (unsigned long long)field->high);
    return record_append_error(writing, domi_json_append_unsigned(writing->to, value));
}

static int write_real_member(domi_json_writing *writing, const domus_json_field *field,
                             const char *at)
{
    double value;

    memcpy(&value, at, sizeof value);
    if (value < field->real_low || value > field->real_high)
        return record_fault_of_writing(writing, -ERANGE, "%.9g is not in %.9g..%.9g", value,
                                       field->real_low, field->real_high);
    return record_append_error(writing, domi_json_append_real(writing->to, value));
}

static int write_text_member(domi_json_writing *writing, const domus_json_field *field,
                             const char *text)
{
    bool is_inside = field->kind == DOMUS_JSON_KIND_TEXT;
    size_t most = is_inside ? field->size - 1 : field->bytes_max;

    if (text == NULL)
        return record_fault_of_writing(writing, -EINVAL, "is missing");
    size_t size = strnlen(text, most + 1);
    if (size > most && is_inside)
        return record_fault_of_writing(writing, -EINVAL, "has no zero");
    if (size > most)
        return record_fault_of_writing(writing, -EMSGSIZE, "longer than %u bytes",
                                       field->bytes_max);
    return record_append_error(writing, domi_json_append_text(writing->to, text, size, false));
}

static int write_word_of_enum(domi_json_writing *writing, const domus_json_field *field,
                              const char *at)
{
    uint64_t value = domi_json_load_unsigned_of_size(at, field->size);
    uint64_t i = 0;

    while (i < value && field->words[i] != NULL)
        i++;
    const char *word = field->words[i];
    if (word == NULL)
        return record_fault_of_writing(writing, -ERANGE, "%llu is none of its words",
                                       (unsigned long long)value);
    return record_append_error(writing,
                               domi_json_append_text(writing->to, word, strlen(word), false));
}

static int write_raw_member(domi_json_writing *writing, const domus_json_field *field,
                            const char *at)
{
    domus_json_options options = {.bytes_max = DOMUS_JSON_BYTES_MAX};
    domus_json_raw raw;

    memcpy(&raw, at, sizeof raw);
    if (raw.text == NULL)
        return record_fault_of_writing(writing, -EINVAL, "is missing");
    if (raw.size > field->bytes_max)
        return record_fault_of_writing(writing, -EMSGSIZE, "longer than %u bytes",
                                       field->bytes_max);
    if (domus_json_check(&options, raw.text, raw.size, NULL) != 0)
        return record_fault_of_writing(writing, -EINVAL, "not JSON");
    return record_append_error(writing, domus_append(writing->to, raw.text, raw.size));
}

static int write_value_of_field(domi_json_writing *writing, const domus_json_field *field,
                                const char *at)
{
    const char *text = at;
    bool is_true;

    switch ((domus_json_kind)field->kind) {
    case DOMUS_JSON_KIND_BOOL:
        memcpy(&is_true, at, sizeof is_true);
        return record_append_error(writing, is_true ? domus_append(writing->to, "true", 4)
                                                    : domus_append(writing->to, "false", 5));
    case DOMUS_JSON_KIND_INT:
        return write_int_member(writing, field, at);
    case DOMUS_JSON_KIND_UINT:
        return write_uint_member(writing, field, at);
    case DOMUS_JSON_KIND_REAL:
        return write_real_member(writing, field, at);
    case DOMUS_JSON_KIND_STRING:
        memcpy(&text, at, sizeof text);
        return write_text_member(writing, field, text);
    case DOMUS_JSON_KIND_TEXT:
        return write_text_member(writing, field, text);
    case DOMUS_JSON_KIND_WORD:
        return write_word_of_enum(writing, field, at);
    case DOMUS_JSON_KIND_OBJECT:
        return write_struct_as_object(writing, field->table, at);
    case DOMUS_JSON_KIND_RAW:
        return write_raw_member(writing, field, at);
    }
    return record_fault_of_writing(writing, -EINVAL, "has no kind");
}

static int write_elements_of_array(domi_json_writing *writing, const domus_json_field *field,
                                   const char *value)
{
    uint64_t count =
        domi_json_load_unsigned_of_size(value + field->count_offset, field->count_size);
    const char *at = value + field->offset;
    int error = count_depth_of_nested_value(writing);

    if (error != 0)
        return error;
    if (field->shape == DOMUS_JSON_POINTED)
        memcpy(&at, value + field->offset, sizeof at);
    if (count > field->count_max)
        return record_fault_of_writing(writing, -EINVAL, "%llu elements, more than %u",
                                       (unsigned long long)count, field->count_max);
    if (count != 0 && at == NULL)
        return record_fault_of_writing(writing, -EINVAL, "is missing");
    (void)domus_append(writing->to, "[", 1);
    for (uint64_t i = 0; i < count && error == 0; i++) {
        if (i != 0)
            (void)domus_append(writing->to, ",", 1);
        error = write_value_of_field(writing, field, at + i * field->size);
        if (error != 0)
            domi_json_fault_put_index_before(&writing->fault, i);
    }
    writing->depth--;
    return error != 0 ? error : record_append_error(writing, domus_append(writing->to, "]", 1));
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Returns whether the member of a field has no value, so that its field is left out of the text. */
static bool is_member_absent(const domus_json_field *field, const char *value)
{
    const char *text;
    bool has;

    if (field->has) {
        memcpy(&has, value + field->has_offset, sizeof has);
        return !has;
    }
    if (field->shape != DOMUS_JSON_ONE ||
        (field->kind != DOMUS_JSON_KIND_STRING && field->kind != DOMUS_JSON_KIND_RAW))
        return false;
    static_assert(offsetof(domus_json_raw, text) == 0, "the pointer of a RAW is its begin");
    memcpy(&text, value + field->offset, sizeof text);
    return text == NULL;
}

static int write_field_of_struct(domi_json_writing *writing, const domus_json_field *field,
                                 const char *value, bool is_absent_one)
{
    if (is_absent_one)
        return record_append_error(writing, domus_append(writing->to, "null", 4));
    return field->shape == DOMUS_JSON_ONE
               ? write_value_of_field(writing, field, value + field->offset)
               : write_elements_of_array(writing, field, value);
}

static int write_struct_as_object(domi_json_writing *writing, const domus_json_table *table,
                                  const char *value)
{
    bool is_first = true;
    int error = count_depth_of_nested_value(writing);

    if (error != 0)
        return error;
    (void)domus_append(writing->to, "{", 1);
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_json_field *field = &table->fields[i];
        bool absent = is_member_absent(field, value);
        if (absent && !field->required)
            continue;
        (void)domi_json_append_field_name(writing->to, field->name, field->name_size, is_first);
        is_first = false;
        error = absent && !field->has && !field->nullable
                    ? record_fault_of_writing(writing, -EINVAL, "is missing")
                    : write_field_of_struct(writing, field, value, absent);
        if (error != 0) {
            domi_json_fault_put_name_before(&writing->fault, field->name);
            return error;
        }
    }
    writing->depth--;
    return record_append_error(writing, domus_append(writing->to, "}", 1));
}

int domus_json_write(const domus_json_table *table, const void *value, domus_appender *to,
                     domus_json_error *ret_error)
{
    domi_json_writing writing = {.to = to};
    int error = write_struct_as_object(&writing, table, value);

    if (error != 0)
        (void)domi_json_fault_fill_in_error(&writing.fault, ret_error);
    return error;
}

/* NOLINTEND(misc-no-recursion) */
