/* Writes the four wire types of protobuf that a trace needs. A field begins with its number and its
 * wire type, as one varint: 7 bits in each byte, the lowest first, and the highest bit set in each
 * but the last. */
#include "runtime/trace/protobuf.h"

#include "base/check.h"

#include <string.h>

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_LENGTH = 2,
};

#define LENGTH_BYTES 2u /* number of bytes of the length in front of a message */

static void add_byte_to_message(domi_protobuf *to, uint64_t byte)
{
    DOMI_CHECK(to->used < to->size);
    to->bytes[to->used++] = (uint8_t)byte;
}

static void add_number_as_varint(domi_protobuf *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        add_byte_to_message(to, (value & 0x7F) | 0x80);
    add_byte_to_message(to, value);
}

static void add_begin_of_field(domi_protobuf *to, uint32_t field, enum wire_type type)
{
    add_number_as_varint(to, (uint64_t)field << 3 | type);
}

void domi_protobuf_add_number(domi_protobuf *to, uint32_t field, uint64_t value)
{
    add_begin_of_field(to, field, WIRE_VARINT);
    add_number_as_varint(to, value);
}

void domi_protobuf_add_fixed_number(domi_protobuf *to, uint32_t field, uint64_t value)
{
    add_begin_of_field(to, field, WIRE_FIXED64);
    for (uint32_t shift = 0; shift < 64; shift += 8)
        add_byte_to_message(to, (value >> shift) & 0xFF);
}

void domi_protobuf_add_text(domi_protobuf *to, uint32_t field, const char *text, size_t length)
{
    add_begin_of_field(to, field, WIRE_LENGTH);
    add_number_as_varint(to, length);
    DOMI_CHECK(length <= to->size - to->used);
    memcpy(to->bytes + to->used, text, length);
    to->used += length;
}

size_t domi_protobuf_begin_message(domi_protobuf *to, uint32_t field)
{
    add_begin_of_field(to, field, WIRE_LENGTH);
    for (uint32_t i = 0; i < LENGTH_BYTES; i++)
        add_byte_to_message(to, 0);
    return to->used;
}

void domi_protobuf_end_message(domi_protobuf *to, size_t mark)
{
    size_t length = to->used - mark;

    DOMI_CHECK(length <= DOMI_PROTOBUF_LENGTH_MAX);
    to->bytes[mark - 2] = (uint8_t)((length & 0x7F) | 0x80);
    to->bytes[mark - 1] = (uint8_t)(length >> 7);
}
