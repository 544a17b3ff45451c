/* The stage of packets that all have the same size (domus/pipeline.h). It says how many bytes it
 * needs, so it is called twice for a packet that comes byte by byte. */
#include "io/wire/packet.h"

#include <errno.h>

typedef struct fixed_state {
    const domus_fixed_options *options;
} fixed_state;

static int check_options_of_fixed_size(const void *options_)
{
    const domus_fixed_options *options = options_;

    return options == NULL || options->size == 0 || options->size > DOMUS_WINDOW_MAX ||
                   options->role > DOMUS_ROLE_PEER
               ? -EINVAL
               : 0;
}

static int open_stage_of_fixed_size(domus_wire *wire, void *state_, const void *options)
{
    fixed_state *state = state_;

    (void)wire;
    state->options = options;
    return 0;
}

static int decode_packet_of_fixed_size(domus_wire *wire, void *state_, const char *bytes,
                                       size_t size)
{
    const domus_fixed_options *options = ((fixed_state *)state_)->options;

    if (size < options->size) {
        domus_wire_need(wire, options->size);
        return 0;
    }
    int error = domi_packet_make_message(wire, options->role, bytes, options->size);
    return error != 0 ? error : (int)options->size;
}

static int encode_packet_of_fixed_size(domus_wire *wire, void *state_, uint64_t id,
                                       const domus_type *type, const void *payload)
{
    const domus_fixed_options *options = ((fixed_state *)state_)->options;
    const domus_packet *packet = payload;

    (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    if (packet->bytes.size != options->size)
        return -EINVAL;
    return domus_wire_append_slice(wire, packet->bytes);
}

const domus_stage domus_fixed_stage = {
    .name = "fixed",
    .state_size = sizeof(fixed_state),
    .check = check_options_of_fixed_size,
    .open = open_stage_of_fixed_size,
    .decode = decode_packet_of_fixed_size,
    .encode = encode_packet_of_fixed_size,
};
