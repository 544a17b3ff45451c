/* The stage of packets that begin with their length (domus/pipeline.h). It says how many bytes it
 * needs, so it is called twice for a packet that comes byte by byte: for its length, and for the
 * whole packet. */
#include "io/wire/packet.h"

#include <errno.h>

#define WIDTH_MOST   8u
#define SIZE_DEFAULT (DOMUS_WINDOW_MAX - WIDTH_MOST)

typedef struct length_state {
    const domus_length_options *options;
    uint32_t size_max;
} length_state;

static int check_options_of_length(const void *options_)
{
    const domus_length_options *options = options_;

    if (options == NULL || options->size_max > SIZE_DEFAULT || options->role > DOMUS_ROLE_PEER)
        return -EINVAL;
    switch (options->width) {
    case 1:
    case 2:
    case 4:
    case 8:
        return 0;
    default:
        return -EINVAL;
    }
}

static int open_stage_of_length(domus_wire *wire, void *state_, const void *options)
{
    length_state *state = state_;

    (void)wire;
    state->options = options;
    state->size_max = state->options->size_max != 0 ? state->options->size_max : SIZE_DEFAULT;
    return 0;
}

static uint64_t read_length_of_packet(const domus_length_options *options, const char *bytes)
{
    uint64_t number = 0;

    for (uint32_t i = 0; i < options->width; i++) {
        uint32_t at = options->little_endian ? options->width - 1u - i : i;
        number = number << 8 | (unsigned char)bytes[at];
    }
    return number;
}

static void write_length_of_packet(const domus_length_options *options, uint64_t number,
                                   char *bytes)
{
    for (uint32_t i = 0; i < options->width; i++) {
        uint32_t at = options->little_endian ? i : options->width - 1u - i;
        bytes[at] = (char)(number & 0xff);
        number >>= 8;
    }
}

static int decode_packet_with_length(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    const length_state *state = state_;
    uint32_t width = state->options->width;

    if (size < width) {
        domus_wire_need(wire, width);
        return 0;
    }
    uint64_t length = read_length_of_packet(state->options, bytes);
    if (state->options->counts_itself) {
        if (length < width)
            return -EBADMSG;
        length -= width;
    }
    if (length > state->size_max)
        return -EMSGSIZE;
    if (size < width + length) {
        domus_wire_need(wire, (size_t)(width + length));
        return 0;
    }
    int error = domi_packet_make_message(wire, state->options->role, bytes + width, (size_t)length);
    return error != 0 ? error : (int)(width + length);
}

static int encode_packet_with_length(domus_wire *wire, void *state_, uint64_t id,
                                     const domus_type *type, const void *payload)
{
    const length_state *state = state_;
    const domus_packet *packet = payload;
    uint32_t width = state->options->width;
    uint64_t most = UINT64_MAX >> (64 - 8 * width);
    char bytes[WIDTH_MOST];

    (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    uint64_t length = (uint64_t)packet->bytes.size + (state->options->counts_itself ? width : 0u);
    if (length > most)
        return -EMSGSIZE;
    write_length_of_packet(state->options, length, bytes);
    int error = domus_wire_append(wire, bytes, width);
    return error != 0 ? error : domus_wire_append_slice(wire, packet->bytes);
}

const domus_stage domus_length_stage = {
    .name = "length",
    .state_size = sizeof(length_state),
    .check = check_options_of_length,
    .open = open_stage_of_length,
    .decode = decode_packet_with_length,
    .encode = encode_packet_with_length,
};
