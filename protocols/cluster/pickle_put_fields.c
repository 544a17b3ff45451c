/* Writes a struct by its table: as a map, whose keys are the numbers of the fields. */
#include "protocols/cluster/pickle_pack.h"
#include "protocols/cluster/pickle_words.h"

/* Tables in tables end at a depth of DOMUS_PICKLE_DEPTH_MAX, which pickle_table.c holds.
 * NOLINTBEGIN(misc-no-recursion) */

static int refuse_number_out_of_range(domus_pickle_writer *writer, const domus_pickle_field *field,
                                      uint64_t number)
{
    if (field->kind == DOMUS_PICKLE_KIND_UINT)
        return domi_pickle_fault_record(&writer->fault, -ERANGE, "%llu is not in %llu..%llu",
                                        (unsigned long long)number, (unsigned long long)field->low,
                                        (unsigned long long)field->high);
    return domi_pickle_fault_record(&writer->fault, -ERANGE, "%lld is not in %lld..%lld",
                                    (long long)number, (long long)field->low,
                                    (long long)field->high);
}

static int put_enum_as_word(domus_pickle_writer *writer, const domus_pickle_field *field,
                            const void *at)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    const domus_pickle_word *word =
        domi_word_of_enum_member(field, domi_load_unsigned_member(at, field->size));

    if (word == NULL)
        return domi_pickle_fault_record(&writer->fault, -ERANGE, "%lld is none of its values",
                                        (long long)domi_load_signed_member(at, field->size));
    if (field->as_words)
        return domi_pickle_put_text_of_size(writer, word->word, strlen(word->word));
    return msgpack_pack_int64(&packer, word->value);
}

static int put_text_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                           const char *text)
{
    size_t size = strnlen(text, field->size);

    if (size == field->size)
        return domi_pickle_fault_record(&writer->fault, -EINVAL, "has no zero at its end");
    return domi_pickle_put_text_of_size(writer, text, size);
}

static int put_owned_text_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                                 const char *text)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);

    if (text == NULL)
        return msgpack_pack_nil(&packer);
    size_t size = strnlen(text, (size_t)field->bytes_max + 1);
    if (size > field->bytes_max)
        return domi_pickle_fault_record(&writer->fault, -EMSGSIZE, "has more than %u bytes",
                                        field->bytes_max);
    return domi_pickle_put_text_of_size(writer, text, size);
}

static int put_slice_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                            const domus_slice *slice)
{
    if (slice->size > field->bytes_max)
        return domi_pickle_fault_record(&writer->fault, -EMSGSIZE, "has %u bytes, more than %u",
                                        slice->size, field->bytes_max);
    return domi_pickle_put_bytes(writer, domus_slice_data(*slice), slice->size);
}

static int put_signed_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                             const void *at)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int64_t value = domi_load_signed_member(at, field->size);

    if (field->ranged && (value < (int64_t)field->low || value > (int64_t)field->high))
        return refuse_number_out_of_range(writer, field, (uint64_t)value);
    return msgpack_pack_int64(&packer, value);
}

static int put_unsigned_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                               const void *at)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    uint64_t value = domi_load_unsigned_member(at, field->size);

    if (field->ranged && (value < field->low || value > field->high))
        return refuse_number_out_of_range(writer, field, value);
    return msgpack_pack_uint64(&packer, value);
}

static int put_real_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                           const void *at)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    double large;
    float small;

    if (field->size == sizeof large) {
        memcpy(&large, at, sizeof large);
        return msgpack_pack_double(&packer, large);
    }
    memcpy(&small, at, sizeof small);
    return msgpack_pack_float(&packer, small);
}

/* Write one value of a struct: a member, or one element of a member that is an array. */
static int put_value_of_field(domus_pickle_writer *writer, const domus_pickle_field *field,
                              const void *at)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);

    switch ((domus_pickle_kind)field->kind) {
    case DOMUS_PICKLE_KIND_BOOL:
        return domi_load_unsigned_member(at, 1) != 0 ? msgpack_pack_true(&packer)
                                                     : msgpack_pack_false(&packer);
    case DOMUS_PICKLE_KIND_INT:
        return put_signed_member(writer, field, at);
    case DOMUS_PICKLE_KIND_UINT:
        return put_unsigned_member(writer, field, at);
    case DOMUS_PICKLE_KIND_ENUM:
        return put_enum_as_word(writer, field, at);
    case DOMUS_PICKLE_KIND_REAL:
        return put_real_member(writer, field, at);
    case DOMUS_PICKLE_KIND_TEXT:
        return put_text_member(writer, field, at);
    case DOMUS_PICKLE_KIND_OWNED_TEXT:
        return put_owned_text_member(writer, field, *(char *const *)at);
    case DOMUS_PICKLE_KIND_SLICE:
        return put_slice_member(writer, field, at);
    case DOMUS_PICKLE_KIND_ADDRESS:
        return domi_pickle_put_address(writer, *(const domus_address *)at);
    case DOMUS_PICKLE_KIND_ENDPOINT:
        return domi_pickle_put_endpoint(writer, at);
    case DOMUS_PICKLE_KIND_STRUCT:
        return domi_pickle_put_struct(writer, field->table, at);
    }
    return domi_pickle_fault_record(&writer->fault, -EINVAL, "has no kind");
}

/* Write the elements of a member that is an array. */
static int put_elements_of_member(domus_pickle_writer *writer, const domus_pickle_field *field,
                                  const char *value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    const char *at = value + field->offset;
    uint64_t count = field->count_max;

    if (field->shape != DOMUS_PICKLE_FIXED)
        count = domi_load_unsigned_member(value + field->count_offset, field->count_size);
    if (count > field->count_max)
        return domi_pickle_fault_record(&writer->fault, -EINVAL, "has %llu elements, more than %u",
                                        (unsigned long long)count, field->count_max);
    if (field->shape == DOMUS_PICKLE_POINTED) {
        at = *(const char *const *)(const void *)at;
        if (at == NULL && count != 0)
            return domi_pickle_fault_record(&writer->fault, -EINVAL,
                                            "has %llu elements and is NULL",
                                            (unsigned long long)count);
    }
    int error = msgpack_pack_array(&packer, (size_t)count);
    for (uint64_t i = 0; i < count && error == 0; i++, at += field->size) {
        error = put_value_of_field(writer, field, at);
        if (error != 0)
            return domi_pickle_fault_put_element_index(&writer->fault, i);
    }
    return error;
}

static bool is_field_absent(const domus_pickle_field *field, const char *value)
{
    return field->has != 0 && domi_load_unsigned_member(value + field->has_offset, 1) == 0;
}

int domi_pickle_put_struct(domus_pickle_writer *writer, const domus_pickle_table *table,
                           const void *value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    const char *bytes = value;
    uint32_t count = table->count;

    for (uint32_t i = 0; i < table->count; i++)
        count -= is_field_absent(&table->fields[i], bytes) ? 1 : 0;
    int error = msgpack_pack_map(&packer, count);
    for (uint32_t i = 0; i < table->count && error == 0; i++) {
        const domus_pickle_field *field = &table->fields[i];
        if (is_field_absent(field, bytes))
            continue;
        error = domi_pickle_write_packed_bytes(writer, (const char *)&field->number, 1);
        if (error != 0)
            break;
        error = field->shape == DOMUS_PICKLE_ONE
                    ? put_value_of_field(writer, field, bytes + field->offset)
                    : put_elements_of_member(writer, field, bytes);
        if (error != 0)
            return domi_pickle_fault_put_field_name(&writer->fault, field->name);
    }
    return error;
}

/* NOLINTEND(misc-no-recursion) */
