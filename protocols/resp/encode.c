/* Encodes replies and changes of a server, and commands of a client. */
#include "protocols/resp/number.h"
#include "protocols/resp/resp.h"

#include <errno.h>

/* bytes of a bulk string up to which it is copied; a longer one is sent from where it lies */
#define COPIED_MAX 2048u

static inline int put_bulk_string(domus_wire *wire, const char *data, uint32_t size)
{
    char *begin = domus_wire_room(wire, size + DOMI_RESP_HEAD_MAX + 2);

    if (begin == NULL)
        return -ENOMEM;
    char *end = domi_resp_put_head(begin, '$', size);
    if (size != 0)
        memcpy(end, data, size);
    end += size;
    *end++ = '\r';
    *end++ = '\n';
    domus_wire_written(wire, (size_t)(end - begin));
    return 0;
}

static int put_head_of_value(domus_wire *wire, char mark, uint64_t number)
{
    char head[DOMI_RESP_HEAD_MAX];

    return domus_wire_append(wire, head, (size_t)(domi_resp_put_head(head, mark, number) - head));
}

static int put_long_bulk_string_without_copy(domus_wire *wire, domus_slice slice)
{
    int error = put_head_of_value(wire, '$', slice.size);
    if (error == 0)
        error = domus_wire_append_slice(wire, slice);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

static int put_integer_reply(domus_wire *wire, int64_t value)
{
    char *begin = domus_wire_room(wire, DOMI_RESP_HEAD_MAX);

    if (begin == NULL)
        return -ENOMEM;
    char *end = begin;
    *end++ = ':';
    end = domi_resp_put_signed_number(end, value);
    *end++ = '\r';
    *end++ = '\n';
    domus_wire_written(wire, (size_t)(end - begin));
    return 0;
}

static inline int put_slice_as_bulk(domus_wire *wire, domus_slice slice)
{
    return slice.size <= COPIED_MAX ? put_bulk_string(wire, domus_slice_data(slice), slice.size)
                                    : put_long_bulk_string_without_copy(wire, slice);
}

/* Append a line of RESP with its mark; line ends in its text become spaces. */
static int put_line_with_mark(domus_wire *wire, char mark, const char *text, size_t size)
{
    if (size > DOMUS_WINDOW_MAX - 3)
        return -EMSGSIZE;
    char *begin = domus_wire_room(wire, size + 3);

    if (begin == NULL)
        return -ENOMEM;
    begin[0] = mark;
    for (size_t i = 0; i < size; i++)
        begin[1 + i] = text[i] == '\r' || text[i] == '\n' ? ' ' : text[i];
    begin[1 + size] = '\r';
    begin[2 + size] = '\n';
    domus_wire_written(wire, size + 3);
    return 0;
}

/* --- replies ---------------------------------------------------------------------------------- */

static int put_reply_in_resp_2(domus_wire *wire, domus_slice bytes)
{
    domus_appender to = {0};
    domus_slice made;
    int error = domi_resp_write_values_in_resp_2(bytes, &to);

    if (error != 0) {
        domus_append_drop(&to);
        return error;
    }
    error = domus_append_end(&to, &made);
    if (error != 0)
        return error;
    error = domus_wire_append_slice(wire, made);
    domus_slice_free(made);
    return error;
}

static int put_reply_in_version_of_peer(domus_wire *wire, uint8_t version,
                                        const domus_resp_reply *reply)
{
    domus_slice bytes = reply->bytes;

    if (reply->values != 1 || bytes.size == 0)
        return -EINVAL;
    if (version == 3 || reply->form == DOMUS_RESP_EXACT)
        return domus_wire_append_slice(wire, bytes);
    if (reply->form != DOMUS_RESP_PUSHED)
        return put_reply_in_resp_2(wire, bytes);
    bytes.offset++;
    bytes.size--;
    int error = domus_wire_append(wire, "*", 1);
    return error != 0 ? error : domus_wire_append_slice(wire, bytes);
}

static int set_version_and_silence_and_answer(domus_wire *wire, domi_resp_state *state, uint64_t id,
                                              const domus_resp_change *change)
{
    uint8_t version = change->version != 0 ? (uint8_t)change->version : state->version;
    uint8_t silence = change->answering == DOMUS_RESP_SILENT  ? DOMI_RESP_SILENT
                      : change->answering == DOMUS_RESP_SKIPS ? DOMI_RESP_SKIPS
                                                              : 0;
    bool is_sent = change->answering == DOMUS_RESP_ANSWERS ||
                   (change->answering == DOMUS_RESP_AS_BEFORE && id != DOMI_RESP_UNHEARD);

    if (change->version > 3 || change->version == 1)
        return -EINVAL;
    int error = is_sent ? put_reply_in_version_of_peer(wire, version, &change->reply) : 0;
    if (error != 0)
        return error;
    state->version = version;
    /* if all answers are silenced already, skipping the next one changes nothing */
    if (change->answering != DOMUS_RESP_AS_BEFORE &&
        (silence != DOMI_RESP_SKIPS || state->silence != DOMI_RESP_SILENT))
        state->silence = silence;
    if (change->peer != DOMUS_RESP_PEER_AS_BEFORE)
        domi_resp_set_limits_of_peer(state, change->peer == DOMUS_RESP_PEER_STRANGER);
    return 0;
}

int domi_resp_encode_for_client(domus_wire *wire, domi_resp_state *state, uint64_t id,
                                const domus_type *type, const void *payload)
{
    if (__builtin_expect(id == DOMI_RESP_UNHEARD, false) && type != &domus_resp_push_type &&
        type != &domus_resp_change_type)
        return 0;
    if (type == &domus_slice_type)
        return put_slice_as_bulk(wire, *(const domus_slice *)payload);
    if (type == &domus_resp_ok_type)
        return domus_wire_append(wire, "+OK\r\n", 5);
    if (type == &domus_resp_short_type) {
        const domus_resp_short *text = payload;
        return text->size <= DOMUS_RESP_SHORT_MAX ? put_bulk_string(wire, text->bytes, text->size)
                                                  : -EINVAL;
    }
    if (type == &domus_resp_integer_type)
        return put_integer_reply(wire, ((const domus_resp_integer *)payload)->value);
    if (type == &domus_resp_null_type)
        return state->version == 3 ? domus_wire_append(wire, "_\r\n", 3)
                                   : domus_wire_append(wire, "$-1\r\n", 5);
    if (type == &domus_resp_reply_type || type == &domus_resp_push_type)
        return put_reply_in_version_of_peer(wire, state->version, payload);
    if (type == &domus_resp_null_array_type)
        return state->version == 3 ? domus_wire_append(wire, "_\r\n", 3)
                                   : domus_wire_append(wire, "*-1\r\n", 5);
    if (type == &domus_resp_simple_type) {
        const char *text = ((const domus_resp_simple *)payload)->text;
        return put_line_with_mark(wire, '+', text, strlen(text));
    }
    if (type == &domus_resp_error_type) {
        const char *text = ((const domus_resp_error *)payload)->text;
        return put_line_with_mark(wire, '-', text, strnlen(text, sizeof(domus_resp_error)));
    }
    if (type == &domus_resp_change_type)
        return set_version_and_silence_and_answer(wire, state, id, payload);
    return -EOPNOTSUPP;
}

/* --- commands --------------------------------------------------------------------------------- */

int domi_resp_encode_command(domus_wire *wire, const domus_resp_command *command)
{
    if (command->count == 0)
        return -EINVAL;
    int error = put_head_of_value(wire, '*', command->count);
    for (uint32_t i = 0; i < command->count && error == 0; i++)
        error = put_slice_as_bulk(wire, domus_resp_argument(command, i));
    return error;
}

int domus_resp_command_make(const domus_resp_bytes *arguments, uint32_t count,
                            domus_resp_command *ret_command)
{
    domus_resp_command command = {.count = count, .version = 2};
    domus_appender bytes = {0};
    domus_appender table = {0};
    domus_slice slice;

    if (count == 0)
        return -EINVAL;
    bool is_small = count <= DOMUS_RESP_SPANS;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t span[2] = {bytes.size, (uint32_t)arguments[i].size};
        is_small = is_small && bytes.size <= UINT16_MAX && arguments[i].size <= UINT16_MAX;
        if (i < DOMUS_RESP_SPANS) {
            command.spans[i].offset = (uint16_t)span[0];
            command.spans[i].size = (uint16_t)span[1];
        }
        (void)domus_append(&table, span, sizeof span);
        if (arguments[i].size != 0)
            (void)domus_append(&bytes, arguments[i].data, arguments[i].size);
    }
    if (is_small)
        domus_append_drop(&table);
    int error = domus_append_end(&table, &slice);
    if (error != 0) {
        domus_append_drop(&bytes);
        return error;
    }
    command.table = slice.page;
    error = domus_append_end(&bytes, &command.bytes);
    if (error != 0) {
        domus_slice_free(slice);
        return error;
    }
    *ret_command = command;
    return 0;
}
