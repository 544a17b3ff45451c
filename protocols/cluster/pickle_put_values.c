/* Makes room for the bytes of a pickled message, and writes values that need more than a call of
 * msgpack-c, both for tables and for a user's functions. */
#include "protocols/cluster/pickle_pack.h"

#include <sys/socket.h>

int domi_pickle_make_room_to_write(domus_pickle_writer *writer, size_t size)
{
    uint32_t used = (uint32_t)(writer->at - writer->begin);

    if (size > writer->left - used)
        return domi_pickle_fault_record(&writer->fault, -EMSGSIZE,
                                        "the message has more bytes than it may");
    if (writer->appender == NULL)
        return domi_pickle_fault_record(&writer->fault, -EMSGSIZE, "the buffer is too small");
    domus_append_written(writer->appender, used);
    writer->left -= used;
    size_t room = size > 2 * (size_t)used ? size : 2 * (size_t)used;
    if (room > writer->left)
        room = writer->left;
    writer->begin = writer->at = writer->end = domus_append_room(writer->appender, room);
    if (writer->begin == NULL)
        return domi_pickle_fault_record(&writer->fault, writer->appender->error, "no memory");
    writer->end += room;
    return 0;
}

/* Refuse a value that is too large: sizes in MessagePack have 32 bits, and every bound in this file
 * is smaller. */
static int refuse_too_large_value(domus_pickle_writer *writer)
{
    return domi_pickle_fault_record(&writer->fault, -EMSGSIZE, "has more bytes than a message may");
}

int domi_pickle_put_text_of_size(domus_pickle_writer *writer, const char *text, size_t size)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);

    return size > DOMUS_SLICE_MAX ? refuse_too_large_value(writer)
                                  : msgpack_pack_str_with_body(&packer, text, size);
}

int domi_pickle_put_bytes(domus_pickle_writer *writer, const void *bytes, size_t size)
{
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);

    return size > DOMUS_SLICE_MAX ? refuse_too_large_value(writer)
                                  : msgpack_pack_bin_with_body(&packer, bytes, size);
}

int domi_pickle_put_address(domus_pickle_writer *writer, domus_address address)
{
    const domus_pickle_context *context = writer->context;
    /* zeroed, so that the message has no bytes that only happened to lie on the stack */
    unsigned char bytes[DOMUS_PICKLE_ADDRESS_MAX] = {0};
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);

    if (domus_address_equals(address, (domus_address){NULL, 0}))
        return msgpack_pack_nil(&packer);
    if (context->write_address == NULL)
        return domi_pickle_fault_record(&writer->fault, -EOPNOTSUPP,
                                        "addresses cannot travel here");
    int size = context->write_address(context->context, address, bytes);
    if (size < 1 || (unsigned)size > sizeof bytes)
        return domi_pickle_fault_record(&writer->fault, size < 0 ? size : -EINVAL,
                                        "the address cannot be written");
    return msgpack_pack_ext_with_body(&packer, bytes, (size_t)size, DOMUS_PICKLE_EXT_ADDRESS);
}

/* Write an endpoint: a byte for the family, then the address, and for IPv4 and IPv6 the port behind
 * it, in network byte order. */
int domi_pickle_put_endpoint(domus_pickle_writer *writer, const domus_endpoint *endpoint)
{
    unsigned char bytes[1 + sizeof endpoint->bytes + 2];
    msgpack_packer packer = domi_pickle_packer_of_writer(writer);
    size_t size = 1;

    if (endpoint->family == 0)
        return msgpack_pack_nil(&packer);
    if (endpoint->size > sizeof endpoint->bytes ||
        (endpoint->family == AF_INET && endpoint->size != 4) ||
        (endpoint->family == AF_INET6 && endpoint->size != 16) ||
        (endpoint->family != AF_INET && endpoint->family != AF_INET6 &&
         endpoint->family != AF_UNIX))
        return domi_pickle_fault_record(&writer->fault, -EINVAL, "is no endpoint");
    bytes[0] = endpoint->family == AF_INET ? 4 : endpoint->family == AF_INET6 ? 6 : 1;
    memcpy(bytes + size, endpoint->bytes, endpoint->size);
    size += endpoint->size;
    if (endpoint->family != AF_UNIX) {
        bytes[size++] = (unsigned char)(endpoint->port >> 8);
        bytes[size++] = (unsigned char)endpoint->port;
    }
    return msgpack_pack_ext_with_body(&packer, bytes, size, DOMUS_PICKLE_EXT_ENDPOINT);
}
