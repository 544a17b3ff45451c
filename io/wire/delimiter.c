/* The stage of packets that end with a certain byte (domus/pipeline.h). It remembers how far it has
 * searched for the end, so that a packet that comes byte by byte is searched once. */
#include "io/wire/packet.h"

#include <errno.h>
#include <string.h>

#define SIZE_DEFAULT 8192u
#define SIZE_MOST    (DOMUS_WINDOW_MAX - 1)

typedef struct delimiter_state {
    const domus_delimiter_options *options;
    uint32_t size_max;
    uint32_t looked; /* number of bytes of the packet that were searched, and hold no end */
} delimiter_state;

static int check_options_of_delimiter(const void *options_)
{
    const domus_delimiter_options *options = options_;

    return options == NULL || options->size_max > SIZE_MOST || options->role > DOMUS_ROLE_PEER
               ? -EINVAL
               : 0;
}

static int open_stage_of_delimiter(domus_wire *wire, void *state_, const void *options)
{
    delimiter_state *state = state_;

    (void)wire;
    state->options = options;
    state->size_max = state->options->size_max != 0 ? state->options->size_max : SIZE_DEFAULT;
    return 0;
}

static int decode_packet_to_delimiter(domus_wire *wire, void *state_, const char *bytes,
                                      size_t size)
{
    delimiter_state *state = state_;
    const char *end =
        memchr(bytes + state->looked, state->options->delimiter, size - state->looked);
    size_t length = end != NULL ? (size_t)(end - bytes) : size;

    if (length > state->size_max)
        return -EMSGSIZE;
    if (end == NULL) {
        state->looked = (uint32_t)size;
        return 0;
    }
    state->looked = 0;
    int error = domi_packet_make_message(wire, state->options->role, bytes, length);
    return error != 0 ? error : (int)length + 1;
}

static int encode_packet_and_delimiter(domus_wire *wire, void *state_, uint64_t id,
                                       const domus_type *type, const void *payload)
{
    const delimiter_state *state = state_;
    const domus_packet *packet = payload;

    (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    if (memchr(domus_slice_data(packet->bytes), state->options->delimiter, packet->bytes.size) !=
        NULL)
        return -EINVAL;
    int error = domus_wire_append_slice(wire, packet->bytes);
    return error != 0 ? error : domus_wire_append(wire, &state->options->delimiter, 1);
}

const domus_stage domus_delimiter_stage = {
    .name = "delimiter",
    .state_size = sizeof(delimiter_state),
    .check = check_options_of_delimiter,
    .open = open_stage_of_delimiter,
    .decode = decode_packet_to_delimiter,
    .encode = encode_packet_and_delimiter,
};
