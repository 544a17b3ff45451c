/* Reads the tokens of MessagePack, as its specification lists them by their first byte. */
#include "protocols/cluster/pickle_token.h"

#include <msgpack/sysdep.h>

static int refuse_early_end_of_message(domus_pickle_reader *reader)
{
    return domi_pickle_fault_record(&reader->fault, -EBADMSG, "the message ends here");
}

static bool has_fewer_bytes_left_than(const domus_pickle_reader *reader, uint64_t size)
{
    return (uint64_t)(reader->end - reader->at) < size;
}

/* Skip the next `size` bytes of the message. Returns where they are; NULL if the message has not so
 * many, which is recorded as a fault. */
static inline const unsigned char *skip_bytes_of_message(domus_pickle_reader *reader, uint32_t size)
{
    const unsigned char *from = reader->at;

    if (has_fewer_bytes_left_than(reader, size)) {
        (void)refuse_early_end_of_message(reader);
        return NULL;
    }
    reader->at += size;
    return from;
}

/* Load an unsigned number of `size` bytes in network byte order. The size is constant at each call,
 * so the compiler leaves only one branch. */
static inline uint64_t load_big_endian_number(const unsigned char *from, uint32_t size)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;

    switch (size) {
    case 1:
        return *from;
    case 2:
        _msgpack_load16(uint16_t, from, &two);
        return two;
    case 4:
        _msgpack_load32(uint32_t, from, &four);
        return four;
    default:
        _msgpack_load64(uint64_t, from, &eight);
        return eight;
    }
}

static inline int read_unsigned_token(domus_pickle_reader *reader, uint32_t size)
{
    const unsigned char *from = skip_bytes_of_message(reader, size);

    if (from == NULL)
        return -EBADMSG;
    reader->token.value = DOMUS_PICKLE_UNSIGNED;
    reader->token.is.number = load_big_endian_number(from, size);
    return 0;
}

static inline int read_signed_token(domus_pickle_reader *reader, uint32_t size)
{
    const unsigned char *from = skip_bytes_of_message(reader, size);

    if (from == NULL)
        return -EBADMSG;
    int64_t value =
        (int64_t)(load_big_endian_number(from, size) << (64 - 8 * size)) >> (64 - 8 * size);
    reader->token.value = value < 0 ? DOMUS_PICKLE_NEGATIVE : DOMUS_PICKLE_UNSIGNED;
    reader->token.is.number = (uint64_t)value;
    return 0;
}

static int read_float_token(domus_pickle_reader *reader)
{
    const unsigned char *from = skip_bytes_of_message(reader, sizeof(float));
    float real;

    if (from == NULL)
        return -EBADMSG;
    uint32_t bits = (uint32_t)load_big_endian_number(from, sizeof real);
    memcpy(&real, &bits, sizeof real);
    reader->token.value = DOMUS_PICKLE_FLOAT;
    reader->token.is.real = (double)real;
    return 0;
}

static int read_double_token(domus_pickle_reader *reader)
{
    const unsigned char *from = skip_bytes_of_message(reader, sizeof(double));

    if (from == NULL)
        return -EBADMSG;
    uint64_t bits = load_big_endian_number(from, sizeof bits);
    reader->token.value = DOMUS_PICKLE_DOUBLE;
    memcpy(&reader->token.is.real, &bits, sizeof bits);
    return 0;
}

/* Read a number of `size` bytes that is the size of a body, or a count of elements. */
static inline int read_token_size(domus_pickle_reader *reader, uint32_t size)
{
    const unsigned char *from = skip_bytes_of_message(reader, size);

    if (from == NULL)
        return -EBADMSG;
    reader->token.size = (uint32_t)load_big_endian_number(from, size);
    return 0;
}

/* Note where the body of a token is, which has `size` bytes, and skip it. */
static int read_token_body(domus_pickle_reader *reader, domus_pickle_value value, uint32_t size)
{
    if (has_fewer_bytes_left_than(reader, size))
        return domi_pickle_fault_record(
            &reader->fault, -EBADMSG, "has %llu bytes, of which %llu are there",
            (unsigned long long)size, (unsigned long long)(reader->end - reader->at));
    reader->token.value = value;
    reader->token.size = size;
    reader->token.body = reader->at;
    reader->at += size;
    return 0;
}

static int read_extension_token(domus_pickle_reader *reader, uint32_t size)
{
    if (has_fewer_bytes_left_than(reader, 1))
        return refuse_early_end_of_message(reader);
    unsigned char type = *reader->at++; /* the byte is the type of an extension, which is signed */
    reader->token.ext = type < 0x80 ? type : (int32_t)type - 0x100;
    return read_token_body(reader, DOMUS_PICKLE_EXTENSION, size);
}

/* Read the head of an array or a map. Each element has at least one byte, so a count that is too
 * large is found before it is used. */
static int read_head_of_array_or_map(domus_pickle_reader *reader, domus_pickle_value value,
                                     uint32_t count)
{
    if (has_fewer_bytes_left_than(reader,
                                  value == DOMUS_PICKLE_MAP_HEAD ? 2 * (uint64_t)count : count))
        return domi_pickle_fault_record(&reader->fault, -EBADMSG,
                                        "announces %u %s, and %llu bytes are left", count,
                                        value == DOMUS_PICKLE_MAP_HEAD ? "fields" : "elements",
                                        (unsigned long long)(reader->end - reader->at));
    reader->token.value = value;
    reader->token.size = count;
    return 0;
}

/* Read a token whose first byte is from 0xc0 to 0xdf. */
static int read_token_of_first_byte_c0_to_df(domus_pickle_reader *reader, unsigned char mark)
{
    int error = 0;

    switch (mark) {
    case 0xc0:
        reader->token.value = DOMUS_PICKLE_NIL;
        return 0;
    case 0xc2:
    case 0xc3:
        reader->token.value = DOMUS_PICKLE_TRUE_OR_FALSE;
        reader->token.is.number = mark & 1u;
        return 0;
    case 0xc4: /* 0xc4..0xc6: bytes, whose size takes 1, 2 or 4 bytes */
    case 0xc5:
    case 0xc6:
        error = read_token_size(reader, 1u << (mark - 0xc4u));
        return error != 0 ? error : read_token_body(reader, DOMUS_PICKLE_BYTES, reader->token.size);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        error = read_token_size(reader, 1u << (mark - 0xc7u));
        return error != 0 ? error : read_extension_token(reader, reader->token.size);
    case 0xca:
        return read_float_token(reader);
    case 0xcb:
        return read_double_token(reader);
    case 0xcc:
        return read_unsigned_token(reader, 1);
    case 0xcd:
        return read_unsigned_token(reader, 2);
    case 0xce:
        return read_unsigned_token(reader, 4);
    case 0xcf:
        return read_unsigned_token(reader, 8);
    case 0xd0:
        return read_signed_token(reader, 1);
    case 0xd1:
        return read_signed_token(reader, 2);
    case 0xd2:
        return read_signed_token(reader, 4);
    case 0xd3:
        return read_signed_token(reader, 8);
    case 0xd4: /* 0xd4..0xd8: extensions with bodies of 1, 2, 4, 8 and 16 bytes */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return read_extension_token(reader, 1u << (mark - 0xd4u));
    case 0xd9:
    case 0xda:
    case 0xdb:
        error = read_token_size(reader, 1u << (mark - 0xd9u));
        return error != 0 ? error : read_token_body(reader, DOMUS_PICKLE_CHARS, reader->token.size);
    case 0xdc:
    case 0xdd:
        error = read_token_size(reader, 2u << (mark - 0xdcu));
        return error != 0
                   ? error
                   : read_head_of_array_or_map(reader, DOMUS_PICKLE_ARRAY_HEAD, reader->token.size);
    case 0xde:
    case 0xdf:
        error = read_token_size(reader, 2u << (mark - 0xdeu));
        return error != 0
                   ? error
                   : read_head_of_array_or_map(reader, DOMUS_PICKLE_MAP_HEAD, reader->token.size);
    default:
        return domi_pickle_fault_record(&reader->fault, -EBADMSG, "the byte 0x%02x begins no value",
                                        mark);
    }
}

int domi_pickle_token_read_next_of_any_kind(domus_pickle_reader *reader)
{
    if (reader->at == reader->end)
        return refuse_early_end_of_message(reader);
    unsigned char mark = *reader->at++;
    if (mark >= 0xe0) {
        reader->token.value = DOMUS_PICKLE_NEGATIVE;
        reader->token.is.number = (uint64_t)(int64_t)(int8_t)mark;
        return 0;
    }
    if (mark >= 0xc0)
        return read_token_of_first_byte_c0_to_df(reader, mark);
    if (mark >= 0xa0)
        return read_token_body(reader, DOMUS_PICKLE_CHARS, mark & 0x1fu);
    if (mark >= 0x90)
        return read_head_of_array_or_map(reader, DOMUS_PICKLE_ARRAY_HEAD, mark & 0x0fu);
    if (mark >= 0x80)
        return read_head_of_array_or_map(reader, DOMUS_PICKLE_MAP_HEAD, mark & 0x0fu);
    reader->token.value = DOMUS_PICKLE_UNSIGNED;
    reader->token.is.number = mark;
    return 0;
}

int domi_pickle_token_refuse_kind(domus_pickle_reader *reader, const char *wanted)
{
    static const char *const names[] = {
        [DOMUS_PICKLE_NOTHING] = "nothing",
        [DOMUS_PICKLE_NIL] = "nil",
        [DOMUS_PICKLE_TRUE_OR_FALSE] = "a boolean",
        [DOMUS_PICKLE_UNSIGNED] = "an integer",
        [DOMUS_PICKLE_NEGATIVE] = "an integer",
        [DOMUS_PICKLE_FLOAT] = "a floating-point number",
        [DOMUS_PICKLE_DOUBLE] = "a floating-point number",
        [DOMUS_PICKLE_CHARS] = "a text",
        [DOMUS_PICKLE_BYTES] = "bytes",
        [DOMUS_PICKLE_ARRAY_HEAD] = "an array",
        [DOMUS_PICKLE_MAP_HEAD] = "a map",
        [DOMUS_PICKLE_EXTENSION] = "an extension",
    };

    return domi_pickle_fault_record(&reader->fault, -EBADMSG, "is %s, not %s",
                                    names[reader->token.value], wanted);
}

/* The values that belong to a skipped one are counted, and skipped without recursion, so any
 * depth is allowed. The count is bounded, because no head may announce more values than bytes
 * are left. */
int domi_pickle_skip_value(domus_pickle_reader *reader)
{
    for (uint64_t left = 1; left != 0; left--) {
        int error = domi_pickle_token_read_next(reader);
        if (error != 0)
            return error;
        if (reader->token.value == DOMUS_PICKLE_ARRAY_HEAD)
            left += reader->token.size;
        else if (reader->token.value == DOMUS_PICKLE_MAP_HEAD)
            left += 2 * (uint64_t)reader->token.size;
    }
    return 0;
}
