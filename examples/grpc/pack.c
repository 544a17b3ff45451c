/* Packs and unpacks messages of protobuf (pack.h). */
#include "pack.h"

enum { NUMBER = 0, TEXT = 2 }; /* the wire types of protobuf for numbers and for texts */

/* Read a number of protobuf, with 7 bits in each byte. Returns false at the end of the message. */
static bool read_varint(domus_slice message, uint32_t *at, uint64_t *ret_number)
{
    const char *bytes = domus_slice_data(message);
    uint64_t number = 0;

    for (unsigned shift = 0; *at < message.size && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)bytes[(*at)++];
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

bool pack_find_last_value_of_field(domus_slice message, unsigned field, uint64_t *ret_number,
                                   domus_slice *ret_text)
{
    uint64_t tag;
    uint64_t value;

    for (uint32_t at = 0; at < message.size;) {
        if (!read_varint(message, &at, &tag) || !read_varint(message, &at, &value))
            return false;
        bool is_text = (tag & 7) == TEXT;
        if ((!is_text && (tag & 7) != NUMBER) || (is_text && value > message.size - at))
            return false;
        bool is_it = tag >> 3 == field;
        if (is_it && is_text && ret_text != NULL)
            *ret_text = (domus_slice){message.page, message.offset + at, (uint32_t)value};
        if (is_it && !is_text && ret_number != NULL)
            *ret_number = value;
        at += is_text ? (uint32_t)value : 0;
    }
    return true;
}

static void append_varint(domus_appender *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        (void)domus_append(to, &(char){(char)(number | 0x80)}, 1);
    (void)domus_append(to, &(char){(char)number}, 1);
}

void pack_append_number(domus_appender *to, unsigned field, uint64_t number)
{
    if (number == 0)
        return;
    append_varint(to, field << 3 | NUMBER);
    append_varint(to, number);
}

void pack_append_text(domus_appender *to, unsigned field, domus_slice text)
{
    if (text.size == 0)
        return;
    append_varint(to, field << 3 | TEXT);
    append_varint(to, text.size);
    (void)domus_append(to, domus_slice_data(text), text.size);
}
