/* The stage of lines (domus/pipeline.h). It remembers how far it has searched for the end, so that
 * a line that comes byte by byte is searched once. */
#include "io/wire/packet.h"

#include <errno.h>
#include <string.h>

#define SIZE_DEFAULT 8192u
#define SIZE_MOST    (DOMUS_WINDOW_MAX - 2)

typedef struct line_state {
    const domus_line_options *options;
    uint32_t size_max;
    uint32_t looked; /* number of bytes of the line that were searched, and hold no end */
} line_state;

static const domus_line_options defaults = {.role = DOMUS_ROLE_SERVER};

static int check_options_of_line(const void *options_)
{
    const domus_line_options *options = options_;

    return options != NULL && (options->size_max > SIZE_MOST || options->role > DOMUS_ROLE_PEER)
               ? -EINVAL
               : 0;
}

static int open_stage_of_line(domus_wire *wire, void *state_, const void *options)
{
    line_state *state = state_;

    (void)wire;
    state->options = options != NULL ? options : &defaults;
    state->size_max = state->options->size_max != 0 ? state->options->size_max : SIZE_DEFAULT;
    return 0;
}

static int decode_packet_to_end_of_line(domus_wire *wire, void *state_, const char *bytes,
                                        size_t size)
{
    line_state *state = state_;
    const char *end = memchr(bytes + state->looked, '\n', size - state->looked);

    if (end == NULL) {
        state->looked = (uint32_t)size;
        /* the byte beyond the bound may be the "\r" of the line's end */
        return size > state->size_max + 1 ? -EMSGSIZE : 0;
    }
    size_t length = (size_t)(end - bytes);
    state->looked = 0;
    if (length != 0 && end[-1] == '\r')
        length--;
    if (length > state->size_max)
        return -EMSGSIZE;
    int error = domi_packet_make_message(wire, state->options->role, bytes, length);
    return error != 0 ? error : (int)(end - bytes) + 1;
}

static bool ends_with_carriage_return(domus_slice line)
{
    return line.size != 0 && domus_slice_data(line)[line.size - 1] == '\r';
}

static int encode_packet_as_line(domus_wire *wire, void *state_, uint64_t id,
                                 const domus_type *type, const void *payload)
{
    const line_state *state = state_;
    const domus_packet *packet = payload;

    (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    if (memchr(domus_slice_data(packet->bytes), '\n', packet->bytes.size) != NULL)
        return -EINVAL;
    int error = domus_wire_append_slice(wire, packet->bytes);
    if (error != 0)
        return error;
    /* a line whose own last byte is "\r" gets the end "\r\n": with "\n" alone, its "\r" would be
     * read as a part of the end */
    return state->options->crlf || ends_with_carriage_return(packet->bytes)
               ? domus_wire_append(wire, "\r\n", 2)
               : domus_wire_append(wire, "\n", 1);
}

static int encode_error_as_line(domus_wire *wire, void *state_, uint64_t id,
                                const domus_type *request, int error)
{
    const line_state *state = state_;
    const char *end = state->options->crlf ? "\r\n" : "\n";

    (void)id;
    (void)request;
    if (state->options->role != DOMUS_ROLE_SERVER)
        return error;
    if (state->options->failed != NULL)
        return domus_wire_append_text(wire, "%s%s", state->options->failed, end);
    const char *name = strerrorname_np(-error);
    return domus_wire_append_text(wire, "error: %s%s", name != NULL ? name : "unknown", end);
}

const domus_stage domus_line_stage = {
    .name = "line",
    .state_size = sizeof(line_state),
    .check = check_options_of_line,
    .open = open_stage_of_line,
    .decode = decode_packet_to_end_of_line,
    .encode = encode_packet_as_line,
    .fail = encode_error_as_line,
};
