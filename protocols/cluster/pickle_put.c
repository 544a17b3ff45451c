/* The functions by which a user's pickling function writes values. Each counts its value as an
 * element of the array or map that was announced, and lets msgpack-c write it. */
#include "protocols/cluster/pickle_pack.h"

#include <stdarg.h>
#include <stdio.h>

/* Count a value to which `count` others belong as elements. Returns 0 if it may be written. */
static int begin_to_write_value(domus_pickle_writer *writer, uint64_t count)
{
    if (writer->fault.error != 0)
        return writer->fault.error;
    switch (domi_nest_count_value_or_open_array(&writer->nest, count)) {
    case 0:
        return 0;
    case -EMSGSIZE:
        return domi_pickle_fault_record(
            &writer->fault, -EINVAL, "has arrays in arrays deeper than %u", DOMUS_PICKLE_DEPTH_MAX);
    default:
        return domi_pickle_fault_record(&writer->fault, -EINVAL,
                                        "its function writes more values than it has announced");
    }
}

int domus_pickle_put_nil(domus_pickle_writer *writer)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : msgpack_pack_nil(&packer);
}

int domus_pickle_put_bool(domus_pickle_writer *writer, bool value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    if (error != 0)
        return error;
    return value ? msgpack_pack_true(&packer) : msgpack_pack_false(&packer);
}

int domus_pickle_put_int(domus_pickle_writer *writer, int64_t value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : msgpack_pack_int64(&packer, value);
}

int domus_pickle_put_uint(domus_pickle_writer *writer, uint64_t value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : msgpack_pack_uint64(&packer, value);
}

int domus_pickle_put_float(domus_pickle_writer *writer, float value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : msgpack_pack_float(&packer, value);
}

int domus_pickle_put_double(domus_pickle_writer *writer, double value)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : msgpack_pack_double(&packer, value);
}

int domus_pickle_put_text(domus_pickle_writer *writer, const char *text)
{
    if (text == NULL)
        return domi_pickle_fault_record(&writer->fault, -EINVAL, "its function writes a NULL");
    return domus_pickle_put_chars(writer, text, strlen(text));
}

int domus_pickle_put_chars(domus_pickle_writer *writer, const char *text, size_t size)
{
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : domi_pickle_put_text_of_size(writer, text, size);
}

int domus_pickle_put_bytes(domus_pickle_writer *writer, const void *bytes, size_t size)
{
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : domi_pickle_put_bytes(writer, bytes, size);
}

int domus_pickle_put_address(domus_pickle_writer *writer, domus_address address)
{
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : domi_pickle_put_address(writer, address);
}

int domus_pickle_put_endpoint(domus_pickle_writer *writer, const domus_endpoint *endpoint)
{
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : domi_pickle_put_endpoint(writer, endpoint);
}

int domus_pickle_put_array(domus_pickle_writer *writer, uint32_t count)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, count);

    return error != 0 ? error : msgpack_pack_array(&packer, count);
}

int domus_pickle_put_map(domus_pickle_writer *writer, uint32_t count)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    int error = begin_to_write_value(writer, 2 * (uint64_t)count);

    return error != 0 ? error : msgpack_pack_map(&packer, count);
}

int domus_pickle_put_struct(domus_pickle_writer *writer, const domus_pickle_table *table,
                            const void *value)
{
    int error = begin_to_write_value(writer, 0);

    return error != 0 ? error : domi_pickle_put_struct(writer, table, value);
}

int domus_pickle_refuse(domus_pickle_writer *writer, int error, const char *format, ...)
{
    char text[DOMI_PICKLE_FAULT_WHAT];
    va_list list;

    va_start(list, format);
    if (vsnprintf(text, sizeof text, format, list) < 0)
        text[0] = '\0';
    va_end(list);
    return domi_pickle_fault_record(&writer->fault, error < 0 ? error : -EINVAL, "%s", text);
}
