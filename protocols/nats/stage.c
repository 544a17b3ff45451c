/* The stage of the NATS protocol: its table of functions, and its options. */
#include "protocols/nats/nats.h"

#include <errno.h>

#define LINE_DEFAULT    4096u
#define INFO_DEFAULT    32768u
#define HEADERS_DEFAULT 65536u

#define LINE_LEAST    64u
#define INFO_LEAST    512u
#define HEADERS_LEAST 16u
#define PAYLOAD_LEAST 1024u

static bool is_option_zero_or_within(uint32_t value, uint32_t least, uint32_t most)
{
    return value == 0 || (value >= least && value <= most);
}

static uint32_t number_or_default(uint32_t value, uint32_t preset)
{
    return value != 0 ? value : preset;
}

static int check_nats_options(const void *options_)
{
    const domus_nats_stage_options *options = options_;

    if (options == NULL)
        return 0;
    uint32_t payload_max = number_or_default(options->payload_max, DOMUS_NATS_PAYLOAD_MAX);
    bool is_right =
        is_option_zero_or_within(options->line_max, LINE_LEAST, DOMUS_WINDOW_MAX - 2) &&
        is_option_zero_or_within(options->info_max, INFO_LEAST, DOMUS_WINDOW_MAX - 2) &&
        is_option_zero_or_within(options->payload_max, PAYLOAD_LEAST, DOMUS_NATS_PAYLOAD_LIMIT) &&
        is_option_zero_or_within(options->headers_max, HEADERS_LEAST, payload_max);
    return is_right ? 0 : -EINVAL;
}

static int open_nats_stage(domus_wire *wire, void *state_, const void *options)
{
    domi_nats_state *state = state_;
    domus_nats_stage_options *limits = &state->limits;

    (void)wire;
    if (options != NULL)
        *limits = *(const domus_nats_stage_options *)options;
    limits->line_max = number_or_default(limits->line_max, LINE_DEFAULT);
    limits->info_max = number_or_default(limits->info_max, INFO_DEFAULT);
    limits->headers_max = number_or_default(limits->headers_max, HEADERS_DEFAULT);
    limits->payload_max = number_or_default(limits->payload_max, DOMUS_NATS_PAYLOAD_MAX);
    return 0;
}

static int decode_nats_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domi_nats_decode_bytes_of_server(wire, state, bytes, size);
}

static int end_nats_stage(domus_wire *wire, void *state_, size_t left)
{
    const domi_nats_state *state = state_;

    (void)wire;
    return left != 0 || state->gathering ? -EPIPE : 0;
}

static int encode_nats_message(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                               const void *payload)
{
    (void)state, (void)id;
    return domi_nats_encode_for_server(wire, type, payload);
}

/* End a connection after wrong bytes, which this stage or a stage before it has found. The server
 * gets no answer. */
static int fail_nats_stage(domus_wire *wire, void *state_, uint64_t id, const domus_type *request,
                           int error)
{
    domi_nats_state *state = state_;

    (void)wire, (void)id, (void)request;
    state->failed = error;
    return error;
}

static void close_nats_stage(domus_wire *wire, void *state_)
{
    domi_nats_state *state = state_;

    (void)wire;
    domus_append_drop(&state->bytes);
}

const domus_stage domus_nats_stage = {
    .name = "nats",
    .state_size = sizeof(domi_nats_state),
    .check = check_nats_options,
    .open = open_nats_stage,
    .decode = decode_nats_bytes,
    .end = end_nats_stage,
    .encode = encode_nats_message,
    .fail = fail_nats_stage,
    .close = close_nats_stage,
};
