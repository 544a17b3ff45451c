/* The tokens of MessagePack, as its specification lists them by their first byte. */
#include "protocols/cluster/token.h"

#include <msgpack/sysdep.h>

static int refuse_end(domus_pickle_reader *reader)
{
    return domi_fault_say(&reader->fault, -EBADMSG, "the message ends here");
}

static bool lacks(const domus_pickle_reader *reader, uint64_t size)
{
    return (uint64_t)(reader->end - reader->at) < size;
}

/* Read a number of `size` bytes in network byte order behind the mark. */
static int read_number(domus_pickle_reader *reader, uint32_t size, uint64_t *ret_number)
{
    uint64_t eight;
    uint32_t four;
    uint16_t two;

    if (lacks(reader, size))
        return refuse_end(reader);
    switch (size) {
    case 1:
        *ret_number = *reader->at;
        break;
    case 2:
        _msgpack_load16(uint16_t, reader->at, &two);
        *ret_number = two;
        break;
    case 4:
        _msgpack_load32(uint32_t, reader->at, &four);
        *ret_number = four;
        break;
    default:
        _msgpack_load64(uint64_t, reader->at, &eight);
        *ret_number = eight;
    }
    reader->at += size;
    return 0;
}

static int read_signed(domus_pickle_reader *reader, uint32_t size, domi_token *token)
{
    uint64_t number;
    int error = read_number(reader, size, &number);

    if (error != 0)
        return error;
    int64_t value = (int64_t)(number << (64 - 8 * size)) >> (64 - 8 * size);
    token->value = value < 0 ? DOMUS_PICKLE_NEGATIVE : DOMUS_PICKLE_UNSIGNED;
    token->is.number = (uint64_t)value;
    return 0;
}

static int read_real(domus_pickle_reader *reader, uint32_t size, domi_token *token)
{
    uint64_t bits;
    int error = read_number(reader, size, &bits);

    if (error != 0)
        return error;
    if (size == sizeof(float)) {
        uint32_t few = (uint32_t)bits;
        float real;
        memcpy(&real, &few, sizeof real);
        token->value = DOMUS_PICKLE_FLOAT;
        token->is.real = (double)real;
    } else {
        token->value = DOMUS_PICKLE_DOUBLE;
        memcpy(&token->is.real, &bits, sizeof bits);
    }
    return 0;
}

/* Pass over a body of `size` bytes. */
static int read_body(domus_pickle_reader *reader, domus_pickle_value value, uint64_t size,
                     domi_token *token)
{
    if (lacks(reader, size))
        return domi_fault_say(&reader->fault, -EBADMSG, "has %llu bytes, of which %llu are there",
                              (unsigned long long)size,
                              (unsigned long long)(reader->end - reader->at));
    token->value = value;
    token->size = (uint32_t)size;
    token->body = reader->at;
    reader->at += size;
    return 0;
}

static int read_extension(domus_pickle_reader *reader, uint64_t size, domi_token *token)
{
    if (lacks(reader, 1))
        return refuse_end(reader);
    token->ext = (int8_t)*reader->at++;
    return read_body(reader, DOMUS_PICKLE_EXTENSION, size, token);
}

/* Each element has a byte at least, so a count that lies is found before anybody believes it. */
static int read_head(domus_pickle_reader *reader, domus_pickle_value value, uint64_t count,
                     domi_token *token)
{
    if (lacks(reader, value == DOMUS_PICKLE_MAP_HEAD ? 2 * count : count))
        return domi_fault_say(
            &reader->fault, -EBADMSG, "announces %llu %s, and %llu bytes are left",
            (unsigned long long)count, value == DOMUS_PICKLE_MAP_HEAD ? "fields" : "elements",
            (unsigned long long)(reader->end - reader->at));
    token->value = value;
    token->size = (uint32_t)count;
    return 0;
}

/* Read the token of a mark of 0xc0 to 0xdf. */
static int read_marked(domus_pickle_reader *reader, unsigned char mark, domi_token *token)
{
    uint64_t size = 0;
    int error = 0;

    switch (mark) {
    case 0xc0:
        token->value = DOMUS_PICKLE_NIL;
        return 0;
    case 0xc2:
    case 0xc3:
        token->value = DOMUS_PICKLE_TRUE_OR_FALSE;
        token->is.number = mark & 1u;
        return 0;
    case 0xc4: /* bytes, with a size of 1, 2 and 4 bytes */
    case 0xc5:
    case 0xc6:
        error = read_number(reader, 1u << (mark - 0xc4u), &size);
        return error != 0 ? error : read_body(reader, DOMUS_PICKLE_BYTES, size, token);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        error = read_number(reader, 1u << (mark - 0xc7u), &size);
        return error != 0 ? error : read_extension(reader, size, token);
    case 0xca:
    case 0xcb:
        return read_real(reader, 4u << (mark - 0xcau), token);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        token->value = DOMUS_PICKLE_UNSIGNED;
        return read_number(reader, 1u << (mark - 0xccu), &token->is.number);
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return read_signed(reader, 1u << (mark - 0xd0u), token);
    case 0xd4: /* extensions of 1, 2, 4, 8 and 16 bytes */
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return read_extension(reader, 1u << (mark - 0xd4u), token);
    case 0xd9:
    case 0xda:
    case 0xdb:
        error = read_number(reader, 1u << (mark - 0xd9u), &size);
        return error != 0 ? error : read_body(reader, DOMUS_PICKLE_CHARS, size, token);
    case 0xdc:
    case 0xdd:
        error = read_number(reader, 2u << (mark - 0xdcu), &size);
        return error != 0 ? error : read_head(reader, DOMUS_PICKLE_ARRAY_HEAD, size, token);
    case 0xde:
    case 0xdf:
        error = read_number(reader, 2u << (mark - 0xdeu), &size);
        return error != 0 ? error : read_head(reader, DOMUS_PICKLE_MAP_HEAD, size, token);
    default:
        return domi_fault_say(&reader->fault, -EBADMSG, "the byte 0x%02x begins no value", mark);
    }
}

int domi_token_read(domus_pickle_reader *reader, domi_token *ret_token)
{
    if (reader->at == reader->end)
        return refuse_end(reader);
    unsigned char mark = *reader->at++;
    if (mark >= 0xe0) {
        ret_token->value = DOMUS_PICKLE_NEGATIVE;
        ret_token->is.number = (uint64_t)(int64_t)(int8_t)mark;
        return 0;
    }
    if (mark >= 0xc0)
        return read_marked(reader, mark, ret_token);
    if (mark >= 0xa0)
        return read_body(reader, DOMUS_PICKLE_CHARS, mark & 0x1fu, ret_token);
    if (mark >= 0x90)
        return read_head(reader, DOMUS_PICKLE_ARRAY_HEAD, mark & 0x0fu, ret_token);
    if (mark >= 0x80)
        return read_head(reader, DOMUS_PICKLE_MAP_HEAD, mark & 0x0fu, ret_token);
    ret_token->value = DOMUS_PICKLE_UNSIGNED;
    ret_token->is.number = mark;
    return 0;
}

int domi_token_refuse(domus_pickle_reader *reader, const domi_token *token, const char *wanted)
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

    return domi_fault_say(&reader->fault, -EBADMSG, "is %s, not %s", names[token->value], wanted);
}

/* The values that belong to those passed over are counted, not followed, so no depth is too deep.
 * The count is bounded, because no head announces more values than bytes are left. */
int domi_skip(domus_pickle_reader *reader)
{
    domi_token token;

    for (uint64_t left = 1; left != 0; left--) {
        int error = domi_token_next(reader, &token);
        if (error != 0)
            return error;
        if (token.value == DOMUS_PICKLE_ARRAY_HEAD)
            left += token.size;
        else if (token.value == DOMUS_PICKLE_MAP_HEAD)
            left += 2 * (uint64_t)token.size;
    }
    return 0;
}
