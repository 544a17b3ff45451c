/* Decodes commands that are arrays of bulk strings. A command that lies whole in the window is one
 * slice of it, and its arguments are offsets into this slice. */
#include "protocols/resp/number.h"
#include "protocols/resp/resp.h"

#include <errno.h>

/* --- the common command ----------------------------------------------------------------------- */

/* bytes of the shortest argument, which has one byte; so many bytes can be read without a check */
#define QUICK_LEAST 7

/* Read the head of an argument of at most 9999 bytes at `at`, behind which there are at least
 * QUICK_LEAST bytes. Returns where the argument's bytes begin; NULL when there is no such head. */
static inline const char *read_head_of_short_argument(const char *at, uint32_t *ret_length)
{
    uint32_t length = (unsigned char)at[1] - (uint32_t)'0';
    const char *end = at + 2;

    if (at[0] != '$' || length > 9)
        return NULL;
    for (int i = 0; i < 3 && *end != '\r'; i++) {
        uint32_t digit = (unsigned char)*end++ - (uint32_t)'0';
        if (digit > 9 || length == 0)
            return NULL;
        length = length * 10 + digit;
    }
    *ret_length = length;
    return end[0] == '\r' && end[1] == '\n' ? end + 2 : NULL;
}

/* Decode a command that is whole, with few and short arguments. Returns the bytes used; 0 for any
 * other command, of which nothing is noted then; -ENOMEM. */
static int decode_whole_command_of_few_arguments(domus_wire *wire, domi_resp_state *state,
                                                 const char *bytes, size_t size)
{
    const char *at = bytes + 4;
    const char *last = bytes + size;
    uint32_t count = (unsigned char)bytes[1] - (uint32_t)'0';
    uint32_t length = 0;

    if (count - 1 >= DOMUS_RESP_SPANS || count > state->arguments_max ||
        memcmp(bytes + 2, "\r\n", 2) != 0)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (last - at < QUICK_LEAST)
            return 0;
        const char *argument = read_head_of_short_argument(at, &length);
        if (argument == NULL || length > state->quick_max)
            return 0;
        if (length + 2 > (size_t)(last - argument))
            return 0;
        at = argument + length + 2;
        if (memcmp(at - 2, "\r\n", 2) != 0)
            return 0;
        state->in.spans[i][0] = (uint16_t)(argument - bytes);
        state->in.spans[i][1] = (uint16_t)length;
    }
    domus_resp_command *command = domus_wire_request(wire, &domus_resp_command_type, DOMUS_NO_ID);
    if (command == NULL)
        return -ENOMEM;
    command->bytes = domus_wire_slice(wire, bytes, (size_t)(at - bytes));
    memcpy(command->spans, state->in.spans, sizeof command->spans);
    command->count = count;
    command->version = state->version;
    return (int)(at - bytes);
}

/* --- heads ------------------------------------------------------------------------------------ */

/* Read the number of a command's arguments. Returns the bytes used; 0 if more bytes are needed; or
 * an error. */
static int read_number_of_arguments(domi_resp_state *state, const char *bytes, size_t size)
{
    int64_t count;
    int used = domi_resp_read_head(bytes, size, &count);

    if (used < 0 || (used > 0 && count > state->options.arguments_max))
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_COUNT);
    if (used > 0 && count > state->arguments_max)
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_STRANGERS_COUNT);
    if (used > 0)
        state->count = count > 0 ? (uint32_t)count : 0;
    if (used > 0 && state->count == 0)
        /* a command without words gets no answer, so it uses up a skip of the next answer by
         * CLIENT REPLY */
        (void)domi_resp_take_id_of_next_request(state);
    return used;
}

/* Read the length of an argument, which is `before` bytes behind the start of the command. */
static int read_length_of_argument(domi_resp_state *state, const char *bytes, size_t size,
                                   uint32_t before, uint32_t *ret_length)
{
    int64_t length;

    if (size == 0)
        return 0;
    if (bytes[0] != '$') {
        state->got = bytes[0];
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_MARK);
    }
    int used = domi_resp_read_head(bytes, size, &length);
    if (used < 0 || (used > 0 && (length < 0 || length > state->options.bulk_max)))
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_LENGTH);
    if (used > 0 && length > state->bulk_max)
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_STRANGERS_LENGTH);
    if (used == 0)
        return 0;
    if ((uint64_t)before + (uint64_t)length > state->options.message_max)
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_SIZE);
    *ret_length = (uint32_t)length;
    return used;
}

/* --- gathered commands ------------------------------------------------------------------------ */

static int gather_bytes_of_argument(domi_resp_state *state, const char *bytes, size_t size)
{
    uint32_t piece = state->left < size ? state->left : (uint32_t)size;
    int error = piece != 0 ? domus_append(&state->bytes, bytes, piece) : 0;

    if (error != 0)
        return error;
    state->left -= piece;
    if (state->left == 0)
        state->phase = DOMI_RESP_TAIL;
    return (int)piece;
}

static int read_head_of_gathered_argument(domi_resp_state *state, const char *bytes, size_t size)
{
    uint32_t length = 0;
    int used = read_length_of_argument(state, bytes, size, state->bytes.size, &length);

    if (used <= 0)
        return used;
    int error = domi_resp_record_place_of_argument(state, state->bytes.size, length);
    if (error != 0)
        return error;
    domi_resp_set_bound_of_gathered_bytes(state, length);
    state->left = length;
    state->phase = DOMI_RESP_BODY;
    return used;
}

/* Check the line end behind an argument's bytes. Returns 2; 0 if more bytes are needed; or an
 * error. */
static int check_line_end_of_argument(domi_resp_state *state, const char *bytes, size_t size)
{
    if ((size > 0 && bytes[0] != '\r') || (size > 1 && bytes[1] != '\n'))
        return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_LENGTH);
    if (size < 2)
        return 0;
    state->phase = DOMI_RESP_HEAD;
    return 2;
}

/* Use the bytes that have come of a command whose bytes are being gathered. */
static int gather_bytes_of_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                                   size_t size)
{
    size_t used = 0;

    while (state->phase != DOMI_RESP_HEAD || state->have < state->count) {
        const char *from = bytes + used;
        size_t there = size - used;
        uint8_t phase = state->phase;
        int step = phase == DOMI_RESP_HEAD   ? read_head_of_gathered_argument(state, from, there)
                   : phase == DOMI_RESP_BODY ? gather_bytes_of_argument(state, from, there)
                                             : check_line_end_of_argument(state, from, there);
        if (step < 0)
            return step;
        used += (size_t)step;
        if (phase == state->phase) {
            int error = domi_resp_charge_gathered_bytes(state);
            return error != 0 ? error : (int)used;
        }
    }
    int error = domi_resp_make_request_of_command(wire, state, NULL, 0);
    return error != 0 ? error : (int)used;
}

/* Begin to gather the command. Its bytes in the window that are parsed come first, so that the
 * offsets of the arguments in them stay right. */
static int begin_to_gather_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                                   size_t size)
{
    uint32_t at = state->at;
    int error = state->tabled ? 0 : domi_resp_move_arguments_to_table(state);

    state->bytes.size_max = state->options.message_max;
    if (error == 0)
        error = domus_append(&state->bytes, bytes, at);
    if (error != 0)
        return error;
    state->gathering = true;
    state->phase = DOMI_RESP_HEAD;
    int used = gather_bytes_of_command(wire, state, bytes + at, size - at);
    return used < 0 ? used : (int)at + used;
}

/* --- commands in the window ------------------------------------------------------------------- */

/* Wait for an argument that has not come as a whole, or begin to gather the command. The argument
 * ends `whole` bytes behind the start of the command; 0: its end is not known. */
static int wait_for_argument_or_begin_to_gather(domus_wire *wire, domi_resp_state *state,
                                                const char *bytes, size_t size, uint64_t whole)
{
    if (whole > DOMI_RESP_GATHER_LEAST || size == DOMUS_WINDOW_MAX)
        return begin_to_gather_command(wire, state, bytes, size);
    if (whole > size)
        domus_wire_need(wire, (size_t)whole);
    return 0;
}

static int decode_command(domus_wire *wire, domi_resp_state *state, const char *bytes, size_t size)
{
    uint32_t length = 0;

    if (state->gathering)
        return gather_bytes_of_command(wire, state, bytes, size);
    if (state->count == 0) {
        if (bytes[0] != '*')
            return domi_resp_decode_line(wire, state, bytes, size);
        int used = read_number_of_arguments(state, bytes, size);
        if (used <= 0 || state->count == 0)
            return used;
        state->at = (uint32_t)used;
    }
    while (state->have < state->count) {
        const char *from = bytes + state->at;
        size_t there = size - state->at;
        int head = read_length_of_argument(state, from, there, state->at, &length);
        if (head < 0)
            return head;
        if (head == 0)
            return wait_for_argument_or_begin_to_gather(wire, state, bytes, size, 0);
        uint64_t whole = (uint64_t)(uint32_t)head + length + 2;
        if (whole > there)
            return wait_for_argument_or_begin_to_gather(wire, state, bytes, size,
                                                        state->at + whole);
        if (from[whole - 2] != '\r' || from[whole - 1] != '\n')
            return domi_resp_record_why_bytes_are_wrong(state, DOMI_RESP_LENGTH);
        int error = domi_resp_record_place_of_argument(state, state->at + (uint32_t)head, length);
        if (error != 0)
            return error;
        state->at += (uint32_t)whole;
    }
    uint32_t used = state->at;
    int error = domi_resp_make_request_of_command(wire, state, bytes, used);
    return error != 0 ? error : (int)used;
}

int domi_resp_decode_command(domus_wire *wire, domi_resp_state *state, const char *bytes,
                             size_t size)
{
    int used = 0;

    if ((state->count | state->silence) == 0 && bytes[0] == '*' && size > 4)
        used = decode_whole_command_of_few_arguments(wire, state, bytes, size);
    return used != 0 ? used : decode_command(wire, state, bytes, size);
}
