/* Decodes the framing of bodies of HTTP/1.1. The bytes around chunks are read one by one and used
 * at once, so none has to be kept; only trailers wait until they are complete. */
#include "protocols/http/body.h"
#include "protocols/http/chars.h"
#include "protocols/http/heads.h"

/* hexadecimal digits of a chunk's size, at most: such a size fits into 60 bits */
#define DIGITS_MAX 15u

/* The part of a body in chunks to which the next byte belongs. The states up to SIZE_LF belong to
 * the line of a chunk's size, which ends with the first CR in each of them: no quoted text may
 * contain CR or LF, neither plain nor escaped. So a reader that knows nothing of quotes sees the
 * same end. */
enum {
    SIZE,       /* next byte: a digit of the chunk's size, or the first byte behind the digits */
    SIZE_SPACE, /* next byte: behind a space that follows the chunk's size, so only ';' may come */
    EXTENSION,  /* next byte: the first of the name of a chunk's extension, or a space before it */
    NAME,       /* next byte: within the name of a chunk's extension */
    /* next byte: behind a space that follows an extension's name, so only '=' or ';' may come */
    NAME_SPACE,
    VALUE,    /* next byte: the first of the value of an extension, or a space before it */
    TOKEN,    /* next byte: within an extension's value without quotes */
    QUOTED,   /* next byte: within an extension's value in quotes */
    ESCAPED,  /* next byte: behind a backslash in a quoted value */
    UNQUOTED, /* next byte: behind the closing quote of a value */
    /* next byte: behind a space that follows an extension's value, so only ';' may come */
    VALUE_SPACE,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILERS,
};

static int refuse_body_with_status(domi_http_body *body, unsigned status)
{
    body->wrong = (uint16_t)status;
    return status == 400 ? -EPROTO : -EMSGSIZE;
}

/* End a part of the line of a chunk's size at `byte`: the line ends, an extension begins, or spaces
 * follow, and then the phase becomes `space`. */
static int end_part_of_chunk_size_line_at_byte(domi_http_body *body, char byte, unsigned space)
{
    if (byte == '\r')
        body->phase = SIZE_LF;
    else if (byte == ';')
        body->phase = EXTENSION;
    else if (domi_http_is_space_or_tab(byte))
        body->phase = (uint8_t)space;
    else
        return refuse_body_with_status(body, 400);
    return 0;
}

static int read_digit_of_chunk_size(domi_http_body *body, char byte)
{
    int digit = domi_http_value_of_hex_digit(byte);

    if (digit < 0)
        return body->digits != 0 ? end_part_of_chunk_size_line_at_byte(body, byte, SIZE_SPACE)
                                 : refuse_body_with_status(body, 400);
    if (body->digits == DIGITS_MAX)
        return refuse_body_with_status(body, 413);
    body->digits++;
    body->left = body->left * 16 + (uint64_t)digit;
    return 0;
}

/* Read a byte behind spaces in the line of a chunk's size: only bytes before which spaces are
 * allowed may come, and never the end of the line. */
static int read_byte_behind_spaces_of_chunk_line(domi_http_body *body, char byte)
{
    if (domi_http_is_space_or_tab(byte))
        return 0;
    if (byte == '=' && body->phase == NAME_SPACE)
        body->phase = VALUE;
    else if (byte == ';')
        body->phase = EXTENSION;
    else
        return refuse_body_with_status(body, 400);
    return 0;
}

/* Read a byte between the quotes of an extension's value. A backslash makes the next byte literal,
 * even a quote. */
static int read_byte_of_quoted_value(domi_http_body *body, char byte)
{
    if (domi_http_count_text_bytes(&byte, 1) != 1 && byte != '\t')
        return refuse_body_with_status(body, 400);
    if (body->phase == ESCAPED)
        body->phase = QUOTED;
    else if (byte == '"')
        body->phase = UNQUOTED;
    else if (byte == '\\')
        body->phase = ESCAPED;
    return 0;
}

/* Read a byte of a chunk's extensions (RFC 9112 7.1.1), with spaces where that RFC allows them. */
static int read_byte_of_chunk_extension(domi_http_body *body, char byte)
{
    bool is_token = domi_http_is_byte_of_class(byte, DOMI_HTTP_TOKEN);

    switch (body->phase) {
    case SIZE_SPACE:
    case NAME_SPACE:
    case VALUE_SPACE:
        return read_byte_behind_spaces_of_chunk_line(body, byte);
    case EXTENSION:
        if (is_token)
            body->phase = NAME;
        return is_token || domi_http_is_space_or_tab(byte) ? 0 : refuse_body_with_status(body, 400);
    case NAME:
        if (byte == '=')
            body->phase = VALUE;
        return is_token || byte == '='
                   ? 0
                   : end_part_of_chunk_size_line_at_byte(body, byte, NAME_SPACE);
    case VALUE:
        if (is_token || byte == '"')
            body->phase = is_token ? TOKEN : QUOTED;
        return is_token || byte == '"' || domi_http_is_space_or_tab(byte)
                   ? 0
                   : refuse_body_with_status(body, 400);
    case QUOTED:
    case ESCAPED:
        return read_byte_of_quoted_value(body, byte);
    default: /* the phases TOKEN and UNQUOTED: within the value of an extension, or behind it */
        return is_token && body->phase == TOKEN
                   ? 0
                   : end_part_of_chunk_size_line_at_byte(body, byte, VALUE_SPACE);
    }
}

/* Begin a chunk of a body, whose size was read. */
static int begin_chunk_of_body(domi_http_body *body, const domi_http_body_limits *limits)
{
    if (body->left > limits->body_max - body->taken)
        return refuse_body_with_status(body, 413);
    body->phase = body->left != 0 ? DATA : TRAILERS;
    body->digits = 0;
    body->trailers = (domi_http_head){.kind = DOMI_HTTP_TRAILERS};
    return 0;
}

/* Read a byte around the chunks of a body, which is not a byte of the body itself. */
static int read_framing_byte_around_chunks(domi_http_body *body,
                                           const domi_http_body_limits *limits, char byte)
{
    bool is_extension = body->phase == SIZE ? byte == ';' || domi_http_is_space_or_tab(byte)
                                            : body->phase < SIZE_LF && byte != '\r';

    if (is_extension && body->extensions++ == limits->extension_max)
        return refuse_body_with_status(body, 413);
    switch (body->phase) {
    case SIZE:
        return read_digit_of_chunk_size(body, byte);
    case SIZE_LF:
        return byte == '\n' ? begin_chunk_of_body(body, limits)
                            : refuse_body_with_status(body, 400);
    case DATA_CR:
        body->phase = DATA_LF;
        return byte == '\r' ? 0 : refuse_body_with_status(body, 400);
    case DATA_LF:
        body->phase = SIZE;
        return byte == '\n' ? 0 : refuse_body_with_status(body, 400);
    default:
        return read_byte_of_chunk_extension(body, byte);
    }
}

/* Take bytes of a body, which begin at `at`. Returns how many bytes up to their end were used. */
static int take_available_bytes_of_body(domi_http_body *body, size_t at, size_t size,
                                        domi_http_part *ret_part)
{
    size_t part = size - at < body->left ? size - at : (size_t)body->left;

    body->left -= part;
    body->taken += part;
    *ret_part = (domi_http_part){at, part, false};
    return (int)(at + part);
}

static int read_trailers_of_body(domi_http_body *body, const domi_http_body_limits *limits,
                                 const char *bytes, size_t size, domi_http_part *ret_part)
{
    domi_http_limits of_head = {
        .target_max = 1, .head_max = limits->trailer_max, .fields_max = limits->fields_max};
    int used = domi_http_read_head(&body->trailers, &of_head, bytes, size);

    if (used < 0)
        body->wrong = body->trailers.wrong;
    if (used > 0)
        *ret_part = (domi_http_part){0, (size_t)used - 2, true};
    return used;
}

static int decode_part_of_chunked_body(domi_http_body *body, const domi_http_body_limits *limits,
                                       const char *bytes, size_t size, domi_http_part *ret_part)
{
    size_t at = 0;

    while (at < size) {
        if (body->phase == DATA) {
            int used = take_available_bytes_of_body(body, at, size, ret_part);
            if (body->left == 0)
                body->phase = DATA_CR;
            return used;
        }
        if (body->phase == TRAILERS)
            return at != 0 ? (int)at : read_trailers_of_body(body, limits, bytes, size, ret_part);
        int error = read_framing_byte_around_chunks(body, limits, bytes[at]);
        if (error != 0)
            return error;
        at++;
    }
    return (int)at;
}

int domi_http_decode_part_of_body(domi_http_body *body, const domi_http_body_limits *limits,
                                  const char *bytes, size_t size, domi_http_part *ret_part)
{
    *ret_part = (domi_http_part){0, 0, false};
    if (body->framing == DOMI_HTTP_IN_CHUNKS)
        return decode_part_of_chunked_body(body, limits, bytes, size, ret_part);
    if (body->framing == DOMI_HTTP_UNTIL_CLOSE) {
        body->left = limits->body_max - body->taken;
        if (body->left == 0)
            return refuse_body_with_status(body, 413);
    }
    if (body->framing == DOMI_HTTP_TUNNEL)
        body->left = size;
    int used = take_available_bytes_of_body(body, 0, size, ret_part);
    ret_part->done = body->left == 0 && body->framing == DOMI_HTTP_COUNTED;
    return used;
}
