/* Decodes commands that are lines, as a person types them: words between spaces, which may be
 * quoted as in C, "a \"b\" \x00", or in single quotes. The words are those that redis-server
 * makes of a line, except that it takes a byte 0 for the end of the bytes, and here it is a
 * byte of a word. */
#include "protocols/resp/resp.h"

#include <errno.h>

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes that end a word outside of quotes. */
static bool ends_word(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int add_word(domi_resp_state *state, size_t offset, size_t size)
{
    if (state->have == state->options.arguments_max)
        return domi_resp_refuse(state, DOMI_RESP_COUNT);
    return domi_resp_add_span(state, (uint32_t)offset, (uint32_t)size);
}

/* Divide a line without quotes where it lies. */
static int divide_plain_line(domi_resp_state *state, const char *line, size_t size)
{
    for (size_t i = 0;;) {
        while (i < size && is_space(line[i]))
            i++;
        if (i == size)
            return 0;
        size_t begin = i;
        while (i < size && !ends_word(line[i]))
            i++;
        int error = add_word(state, begin, i - begin);
        if (error != 0)
            return error;
    }
}

static int hex_value_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Read what stands behind a backslash in double quotes, and write the byte that it means. Returns
 * the bytes that were read. */
static size_t unescape_byte(const char *from, size_t size, char *ret_byte)
{
    if (from[0] == 'x' && size >= 3 && hex_value_of(from[1]) >= 0 && hex_value_of(from[2]) >= 0) {
        *ret_byte = (char)(hex_value_of(from[1]) * 16 + hex_value_of(from[2]));
        return 3;
    }
    switch (from[0]) {
    case 'n':
        *ret_byte = '\n';
        break;
    case 'r':
        *ret_byte = '\r';
        break;
    case 't':
        *ret_byte = '\t';
        break;
    case 'b':
        *ret_byte = '\b';
        break;
    case 'a':
        *ret_byte = '\a';
        break;
    default:
        *ret_byte = from[0];
    }
    return 1;
}

/* Read from behind a quote to the same quote, and write the bytes between. Returns the bytes that
 * were read; 0 when there is no second quote. */
static size_t unquote_text(const char *from, size_t size, char quote, char *to, size_t *written)
{
    for (size_t i = 0; i < size;) {
        char byte = from[i++];
        if (byte == quote)
            return i;
        if (byte == '\\' && quote == '"' && i < size)
            i += unescape_byte(from + i, size - i, &byte);
        else if (byte == '\\' && quote == '\'' && i < size && from[i] == '\'')
            byte = from[i++];
        to[(*written)++] = byte;
    }
    return 0;
}

/* Write one word, which begins at line[*at], behind `*written` bytes. A word ends with its first
 * quoted part, behind which there is a space or the end. */
static int read_word(domi_resp_state *state, const char *line, size_t size, size_t *at, char *to,
                     size_t *written)
{
    size_t i = *at;

    while (i < size && !ends_word(line[i])) {
        char byte = line[i++];
        if (byte != '"' && byte != '\'') {
            to[(*written)++] = byte;
            continue;
        }
        size_t read = unquote_text(line + i, size - i, byte, to, written);
        i += read;
        if (read == 0 || (i < size && !is_space(line[i])))
            return domi_resp_refuse(state, DOMI_RESP_QUOTES);
        break;
    }
    *at = i;
    return 0;
}

/* Divide a line with quotes: its words are gathered, because they may be other bytes than those of
 * the line. They are never longer. */
static int divide_quoted(domi_resp_state *state, const char *line, size_t size)
{
    size_t written = 0;

    state->bytes.size_max = (uint32_t)size;
    char *to = domus_append_room(&state->bytes, size);
    if (to == NULL)
        return -ENOMEM;
    for (size_t i = 0;;) {
        while (i < size && is_space(line[i]))
            i++;
        if (i == size)
            break;
        size_t begin = written;
        int error = read_word(state, line, size, &i, to, &written);
        if (error == 0)
            error = add_word(state, begin, written - begin);
        if (error != 0)
            return error;
    }
    domus_append_written(&state->bytes, written);
    return 0;
}

int domi_resp_decode_line(domus_wire *wire, domi_resp_state *state, const char *bytes, size_t size)
{
    const char *end = memchr(bytes + state->at, '\n', size - state->at);
    size_t used = end != NULL ? (size_t)(end - bytes) + 1 : size;

    if (used > state->options.inline_max + 1u || (end == NULL && size == DOMUS_WINDOW_MAX))
        return domi_resp_refuse(state, DOMI_RESP_LINE);
    if (end == NULL) {
        state->at = (uint32_t)size; /* no end in these */
        return 0;
    }
    size_t length = used - 1;
    if (length != 0 && bytes[length - 1] == '\r')
        length--;
    bool quoted = memchr(bytes, '"', length) != NULL || memchr(bytes, '\'', length) != NULL;
    int error =
        quoted ? divide_quoted(state, bytes, length) : divide_plain_line(state, bytes, length);
    if (error == 0 && state->have != 0)
        error = domi_resp_make_command(wire, state, quoted ? NULL : bytes, used);
    else if (error == 0)
        (void)domi_resp_next_id(state); /* an empty line has no answer to be skipped */
    if (error != 0)
        return error;
    state->at = 0;
    return (int)used;
}
