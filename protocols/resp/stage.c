/* The stage of the RESP protocol: its table of functions, and its options. */
#include "protocols/resp/resp.h"

#include <errno.h>

#define BULK_DEFAULT      (UINT32_C(512) * 1024 * 1024)
#define ARGUMENTS_DEFAULT (UINT32_C(1024) * 1024)
#define INLINE_DEFAULT    (DOMUS_WINDOW_MAX - 1)

static int check_resp_options(const void *options_)
{
    const domus_resp_options *options = options_;

    if (options == NULL)
        return 0;
    if (options->role > DOMUS_ROLE_PEER || options->bulk_max > DOMUS_SLICE_MAX ||
        options->message_max > DOMUS_SLICE_MAX || options->arguments_max > INT32_MAX ||
        options->inline_max > INLINE_DEFAULT || options->nesting_max > DOMUS_RESP_NESTING_MAX)
        return -EINVAL;
    if ((options->stranger_arguments_max == 0) != (options->stranger_bulk_max == 0) ||
        options->stranger_arguments_max > INT32_MAX || options->stranger_bulk_max > DOMUS_SLICE_MAX)
        return -EINVAL;
    return options->message_max != 0 && options->message_max < DOMUS_WINDOW_MAX ? -EINVAL : 0;
}

static int open_resp_stage(domus_wire *wire, void *state_, const void *options)
{
    domi_resp_state *state = state_;
    domus_resp_options *limits = &state->options;

    (void)wire;
    if (options != NULL)
        *limits = *(const domus_resp_options *)options;
    if (limits->bulk_max == 0)
        limits->bulk_max = BULK_DEFAULT;
    if (limits->message_max == 0)
        limits->message_max = DOMUS_SLICE_MAX;
    if (limits->arguments_max == 0)
        limits->arguments_max = ARGUMENTS_DEFAULT;
    if (limits->inline_max == 0)
        limits->inline_max = INLINE_DEFAULT;
    if (limits->nesting_max == 0)
        limits->nesting_max = DOMUS_RESP_NESTING_MAX;
    state->version = 2;
    domi_resp_set_limits_of_peer(state, true);
    return 0;
}

static int decode_resp_bytes(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    domi_resp_state *state = state_;

    return state->options.role == DOMUS_ROLE_SERVER
               ? domi_resp_decode_command(wire, state, bytes, size)
               : domi_resp_decode_reply(wire, state, bytes, size);
}

static int fail_if_resp_message_is_incomplete(domus_wire *wire, void *state_, size_t left)
{
    const domi_resp_state *state = state_;

    (void)wire;
    return left != 0 || state->gathering ? -EPIPE : 0;
}

static int encode_resp_message(domus_wire *wire, void *state_, uint64_t id, const domus_type *type,
                               const void *payload)
{
    domi_resp_state *state = state_;

    if (state->options.role == DOMUS_ROLE_SERVER)
        return domi_resp_encode_for_client(wire, state, id, type, payload);
    return type == &domus_resp_command_type ? domi_resp_encode_command(wire, payload) : -EOPNOTSUPP;
}

static int answer_failed_resp_request(domus_wire *wire, void *state_, uint64_t id,
                                      const domus_type *request, int error)
{
    return domi_resp_answer_failure(wire, state_, id, request, error);
}

static void free_message_of_closed_resp_stage(domus_wire *wire, void *state)
{
    (void)wire;
    domi_resp_reset_half_received_message(state);
}

const domus_stage domus_resp_stage = {
    .name = "resp",
    .state_size = sizeof(domi_resp_state),
    .check = check_resp_options,
    .open = open_resp_stage,
    .decode = decode_resp_bytes,
    .end = fail_if_resp_message_is_incomplete,
    .encode = encode_resp_message,
    .fail = answer_failed_resp_request,
    .close = free_message_of_closed_resp_stage,
};
