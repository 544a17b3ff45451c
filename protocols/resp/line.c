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

/* Returns whether a byte ends a word outside of quotes. */
static bool is_end_of_word(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int record_word_as_argument_of_command(domi_resp_state *state, size_t offset, size_t size)
{
    if (state->have == state->options.arguments_max)
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_COUNT);
    return domi_resp_record_place_of_argument(state, (uint32_t)offset, (uint32_t)size);
}

/* Divide a line without quotes into words, which are used where they lie. */
static int divide_plain_line_into_words(domi_resp_state *state, const char *line, size_t size)
{
    for (size_t i = 0;;) {
        while (i < size && is_space(line[i]))
            i++;
        if (i == size)
            return 0;
        size_t begin = i;
        while (i < size && !is_end_of_word(line[i]))
            i++;
        int error = record_word_as_argument_of_command(state, begin, i - begin);
        if (error != 0)
            return error;
    }
}

static int value_of_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Read what stands behind a backslash in double quotes, and write the byte that it means. Returns
 * how many bytes were read. */
static size_t read_escape_behind_backslash(const char *from, size_t size, char *ret_byte)
{
    if (from[0] == 'x' && size >= 3 && value_of_hex_digit(from[1]) >= 0 &&
        value_of_hex_digit(from[2]) >= 0) {
        *ret_byte = (char)(value_of_hex_digit(from[1]) * 16 + value_of_hex_digit(from[2]));
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

/* Read from behind a quote to the next quote of the same kind, and write the bytes between them.
 * Returns how many bytes were read; 0 when there is no second quote. */
static size_t copy_text_up_to_closing_quote(const char *from, size_t size, char quote, char *to,
                                            size_t *written)
{
    for (size_t i = 0; i < size;) {
        char byte = from[i++];
        if (byte == quote)
            return i;
        if (byte == '\\' && quote == '"' && i < size)
            i += read_escape_behind_backslash(from + i, size - i, &byte);
        else if (byte == '\\' && quote == '\'' && i < size && from[i] == '\'')
            byte = from[i++];
        to[(*written)++] = byte;
    }
    return 0;
}

/* Write one word, which begins at line[*at], behind `*written` bytes. A word ends with its first
 * quoted part, which must be followed by a space or the end of the line. */
static int read_word_with_quotes(domi_resp_state *state, const char *line, size_t size, size_t *at,
                                 char *to, size_t *written)
{
    size_t i = *at;

    while (i < size && !is_end_of_word(line[i])) {
        char byte = line[i++];
        if (byte != '"' && byte != '\'') {
            to[(*written)++] = byte;
            continue;
        }
        size_t read = copy_text_up_to_closing_quote(line + i, size - i, byte, to, written);
        i += read;
        if (read == 0 || (i < size && !is_space(line[i])))
            return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_QUOTES);
        break;
    }
    *at = i;
    return 0;
}

/* Divide a line with quotes into words. The words are gathered, because their bytes may differ from
 * those of the line; they are never longer. */
static int divide_quoted_line_into_words(domi_resp_state *state, const char *line, size_t size)
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
        int error = read_word_with_quotes(state, line, size, &i, to, &written);
        if (error == 0)
            error = record_word_as_argument_of_command(state, begin, written - begin);
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
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_LINE);
    if (end == NULL) {
        /* these bytes have no line end, so they need not be searched again */
        state->at = (uint32_t)size;
        return 0;
    }
    size_t length = used - 1;
    if (length != 0 && bytes[length - 1] == '\r')
        length--;
    bool quoted = memchr(bytes, '"', length) != NULL || memchr(bytes, '\'', length) != NULL;
    int error = quoted ? divide_quoted_line_into_words(state, bytes, length)
                       : divide_plain_line_into_words(state, bytes, length);
    if (error == 0 && state->have != 0)
        error = domi_resp_make_request_of_command(wire, state, quoted ? NULL : bytes, used);
    else if (error == 0)
        /* an empty line gets no answer, so it uses up a skip of the next answer by CLIENT REPLY */
        (void)domi_resp_take_id_of_next_request(state);
    if (error != 0)
        return error;
    state->at = 0;
    return (int)used;
}
