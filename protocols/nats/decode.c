/* Decodes the protocol of a server: lines, and messages, which are a line and as many bytes as the
 * line tells. A message that lies whole in the window becomes one slice of it, from the subject to
 * the end of the payload; its parts are offsets into that slice. */
#include "protocols/nats/nats.h"

#include <errno.h>
#include <string.h>

#define WORDS_MAX 5u /* words behind HMSG in a line, at most */
/* digits of a number in a line, at most: any number with so many fits into 64 bits */
#define DIGITS_MAX 19u

/* --- lines ------------------------------------------------------------------------------------ */

/* Returns whether the first word of a line is `word`, in upper or lower case. */
static bool line_begins_with_word(const char *bytes, size_t size, const char *word)
{
    size_t length = strlen(word);

    if (size < length)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((bytes[i] | 0x20) != word[i])
            return false;
    }
    return size == length || bytes[length] == ' ' || bytes[length] == '\t';
}

/* Find the end of the first line. Returns the bytes of the line with its end; 0 if the end has not
 * come; or a negative errno. */
static int find_end_of_first_line(domi_nats_state *state, const char *bytes, size_t size)
{
    bool is_info = (bytes[0] | 0x20) == 'i';
    size_t most = (is_info ? state->limits.info_max : state->limits.line_max) + 2;
    size_t there = size < most ? size : most;
    const char *end = memchr(bytes + state->looked, '\n', there - state->looked);

    if (end == NULL) {
        state->looked = (uint32_t)there;
        return there == most ? -EMSGSIZE : 0;
    }
    state->looked = 0;
    return end != bytes && end[-1] == '\r' ? (int)(end - bytes) + 1 : -EPROTO;
}

/* Read a number from a word of a line. Returns false if the word has anything but digits, or too
 * many digits. */
static bool read_number_of_word(domi_nats_bytes word, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (word.size == 0 || word.size > DIGITS_MAX)
        return false;
    for (uint32_t i = 0; i < word.size; i++) {
        uint32_t digit = (unsigned char)word.data[i] - (uint32_t)'0';
        if (digit > 9)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return true;
}

/* Split `size` bytes of a line into words. Returns how many words there are, or WORDS_MAX + 1 if
 * there are more than WORDS_MAX. */
static uint32_t split_line_into_words(const char *bytes, size_t size,
                                      domi_nats_bytes words[WORDS_MAX])
{
    const char *end = bytes + size;
    uint32_t count = 0;

    for (;;) {
        while (bytes != end && (*bytes == ' ' || *bytes == '\t'))
            bytes++;
        if (bytes == end)
            return count;
        const char *begin = bytes;
        while (bytes != end && *bytes != ' ' && *bytes != '\t')
            bytes++;
        if (count == WORDS_MAX)
            return WORDS_MAX + 1;
        words[count++] = (domi_nats_bytes){begin, (uint32_t)(bytes - begin)};
    }
}

/* --- messages --------------------------------------------------------------------------------- */

/* Read the line before a message, which begins with MSG or HMSG: a word of `name` bytes. The
 * line has `size` bytes with its end. Returns where the subject begins in the line, or a
 * negative errno. */
static int read_line_of_message(const domi_nats_state *state, const char *bytes, size_t size,
                                uint32_t name, domus_nats_message *ret_message)
{
    domi_nats_bytes words[WORDS_MAX];
    bool has_headers = name == 4;
    uint32_t count = split_line_into_words(bytes + name, size - name - 2, words);
    uint32_t least = has_headers ? 4 : 3;
    uint64_t whole, headers = 0;

    if (count < least || count > least + 1)
        return -EPROTO;
    const domi_nats_bytes *reply = count > least ? &words[2] : NULL;
    if (!read_number_of_word(words[1], &ret_message->subscription) ||
        !read_number_of_word(words[count - 1], &whole) ||
        (has_headers && !read_number_of_word(words[count - 2], &headers)) || headers > whole)
        return -EPROTO;
    if (whole > state->limits.payload_max || headers > state->limits.headers_max)
        return -EMSGSIZE;
    ret_message->headers_size = (uint32_t)headers;
    ret_message->payload_size = (uint32_t)(whole - headers);
    ret_message->subject_size = (uint16_t)words[0].size;
    if (reply != NULL) {
        ret_message->reply_at = (uint16_t)(reply->data - words[0].data);
        ret_message->reply_size = (uint16_t)reply->size;
    }
    return (int)(words[0].data - bytes);
}

/* Read the status from the headers of a message that has come. A server forwards a publisher's
 * headers unchecked, so invalid headers are no error of the server: they have no status. */
static void read_status_of_headers(domus_nats_message *message, const char *headers)
{
    domi_nats_bytes block = {headers, message->headers_size};

    if (message->headers_size != 0 && domi_nats_is_block_of_headers(block))
        message->status = domi_nats_status_of_headers(block);
}

/* Pass on the message whose last bytes were gathered. Returns 0, or a negative errno. */
static int make_notice_of_gathered_message(domus_wire *wire, domi_nats_state *state)
{
    domus_nats_message message = state->message;
    domus_nats_message *made = domus_wire_notice(wire, &domus_nats_message_type);

    state->gathering = false;
    if (made == NULL)
        return -ENOMEM;
    int error = domus_append_end(&state->bytes, &message.bytes);
    if (error != 0)
        return error;
    read_status_of_headers(&message, domus_slice_data(domus_nats_headers(&message)));
    *made = message;
    return 0;
}

/* Append bytes that have come to the message that is being gathered. */
static int gather_bytes_of_message(domus_wire *wire, domi_nats_state *state, const char *bytes,
                                   size_t size)
{
    uint32_t used = 0;

    if (state->left > 2) {
        used = state->left - 2 < size ? state->left - 2 : (uint32_t)size;
        int error = domus_append(&state->bytes, bytes, used);
        if (error != 0)
            return error;
        state->left -= used;
    }
    for (; state->left <= 2 && state->left != 0 && used < size; used++, state->left--) {
        if (bytes[used] != (state->left == 2 ? '\r' : '\n'))
            return -EPROTO;
    }
    if (state->left != 0)
        return (int)used;
    int error = make_notice_of_gathered_message(wire, state);
    return error != 0 ? error : (int)used;
}

/* Begin to gather a message that has not come as a whole. Its bytes are kept from its subject on,
 * which is `at` bytes behind the start of its line. */
static int begin_to_gather(domus_wire *wire, domi_nats_state *state, const char *bytes, size_t size,
                           uint32_t at, uint32_t line)
{
    uint32_t body = state->message.headers_size + state->message.payload_size;

    state->bytes.size_max = line - at + body;
    state->left = body + 2;
    state->gathering = true;
    int error = domus_append(&state->bytes, bytes + at, line - at);
    if (error != 0)
        return error;
    if (size == line)
        return (int)line;
    int used = gather_bytes_of_message(wire, state, bytes + line, size - line);
    return used < 0 ? used : (int)line + used;
}

/* Decode a message whose line, of `line` bytes, has come as a whole. */
static int decode_message(domus_wire *wire, domi_nats_state *state, const char *bytes, size_t size,
                          uint32_t line, uint32_t name)
{
    domus_nats_message message = {.status = 0};
    int at = read_line_of_message(state, bytes, line, name, &message);

    if (at < 0)
        return at;
    size_t body = (size_t)message.headers_size + message.payload_size;
    size_t whole = line + body + 2;
    if (whole > size && whole > DOMI_NATS_GATHER_LEAST) {
        state->message = message;
        return begin_to_gather(wire, state, bytes, size, (uint32_t)at, line);
    }
    if (whole > size) {
        domus_wire_need(wire, whole);
        return 0;
    }
    if (bytes[whole - 2] != '\r' || bytes[whole - 1] != '\n')
        return -EPROTO;
    read_status_of_headers(&message, bytes + line);
    domus_nats_message *made = domus_wire_notice(wire, &domus_nats_message_type);
    if (made == NULL)
        return -ENOMEM;
    message.bytes = domus_wire_slice(wire, bytes + at, line - (uint32_t)at + body);
    *made = message;
    return (int)whole;
}

/* --- other lines ------------------------------------------------------------------------------ */

/* Returns the part of a line behind its first word, without spaces around it. */
static domi_nats_bytes rest_of_line_behind_word(const char *bytes, size_t size, size_t word)
{
    const char *end = bytes + size - 2;

    bytes += word;
    while (bytes != end && (*bytes == ' ' || *bytes == '\t'))
        bytes++;
    while (end != bytes && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (domi_nats_bytes){bytes, (uint32_t)(end - bytes)};
}

static int make_notice_of_server_info(domus_wire *wire, domi_nats_bytes json)
{
    if (json.size == 0)
        return -EPROTO;
    domus_nats_info *info = domus_wire_notice(wire, &domus_nats_info_type);
    if (info == NULL)
        return -ENOMEM;
    info->json = domus_wire_slice(wire, json.data, json.size);
    return 0;
}

static int make_notice_of_server_error(domus_wire *wire, domi_nats_bytes text)
{
    domus_nats_error *error = domus_wire_notice(wire, &domus_nats_error_type);

    if (error == NULL)
        return -ENOMEM;
    if (text.size >= 2 && text.data[0] == '\'' && text.data[text.size - 1] == '\'')
        text = (domi_nats_bytes){text.data + 1, text.size - 2};
    domi_nats_copy_printable(error->text, sizeof error->text, text);
    return 0;
}

/* Decode a line that belongs to no message, as PING, INFO or -ERR. Returns 0, or a negative
 * errno. */
static int decode_line_without_message(domus_wire *wire, const char *bytes, size_t size)
{
    size_t bare = size - 2;

    if (line_begins_with_word(bytes, bare, "ping"))
        return domus_wire_append(wire, "PONG\r\n", 6);
    if (line_begins_with_word(bytes, bare, "pong"))
        return domus_wire_notice(wire, &domus_nats_pong_type) != NULL ? 0 : -ENOMEM;
    if (line_begins_with_word(bytes, bare, "+ok"))
        return 0;
    if (line_begins_with_word(bytes, bare, "-err"))
        return make_notice_of_server_error(wire, rest_of_line_behind_word(bytes, size, 4));
    if (line_begins_with_word(bytes, bare, "info"))
        return make_notice_of_server_info(wire, rest_of_line_behind_word(bytes, size, 4));
    return -EPROTO;
}

int domi_nats_decode_bytes_of_server(domus_wire *wire, domi_nats_state *state, const char *bytes,
                                     size_t size)
{
    if (state->gathering)
        return gather_bytes_of_message(wire, state, bytes, size);
    int line = find_end_of_first_line(state, bytes, size);
    if (line <= 0)
        return line;
    size_t bare = (size_t)line - 2;
    if (line_begins_with_word(bytes, bare, "msg"))
        return decode_message(wire, state, bytes, size, (uint32_t)line, 3);
    if (line_begins_with_word(bytes, bare, "hmsg"))
        return decode_message(wire, state, bytes, size, (uint32_t)line, 4);
    int error = decode_line_without_message(wire, bytes, (size_t)line);
    return error != 0 ? error : line;
}
