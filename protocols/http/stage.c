/* The HTTP stage of a channel: its table of functions, and its options. */
#include "protocols/http/http.h"

#include "protocols/http/chain.h"
#include "protocols/http/coding.h"
#include "protocols/http/heads.h"
#include "protocols/http/write.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define TARGET_MOST  60000u
#define HEAD_LEAST   64u
#define HEAD_MOST    61440u
#define FIELDS_MOST  65535u
#define BODY_DEFAULT (UINT64_C(1) << 20)

#define CONTINUE_LEAST UINT64_C(1000000)
#define CONTINUE_MOST  UINT64_C(60000000000)

/* The state of the stage is part of the memory of an idle connection, which is 2 KiB at most
 * (docs/performance.md). */
static_assert(sizeof(domi_http_state) <= 384, "the memory of an idle connection");

static bool are_gzip_options_valid(const domus_http_gzip *gzip)
{
    return gzip == NULL ||
           (gzip->streams_max <= DOMI_HTTP_STREAMS_MOST &&
            gzip->whole_max <= DOMI_HTTP_WHOLE_MOST && gzip->level <= DOMI_HTTP_LEVEL_MOST);
}

static bool is_valid_time_in_options(uint64_t ns)
{
    return ns == 0 || (ns >= CONTINUE_LEAST && ns <= CONTINUE_MOST);
}

static int check_options_of_http(const void *options_)
{
    const domus_http_options *options = options_;

    if (options == NULL)
        return 0;
    if (options->role > DOMUS_ROLE_CLIENT || options->target_max > TARGET_MOST ||
        options->head_max > HEAD_MOST || (options->head_max != 0 && options->head_max < HEAD_LEAST))
        return -EINVAL;
    if (options->fields_max > FIELDS_MOST || options->whole_max > DOMUS_SLICE_MAX ||
        options->trailer_max > HEAD_MOST || options->trailer_max == 1)
        return -EINVAL;
    if (options->host != NULL && !domi_http_is_valid_host(options->host, strlen(options->host)))
        return -EINVAL;
    if (options->unzip && (options->streams || options->role != DOMUS_ROLE_CLIENT))
        return -EINVAL;
    if (!are_gzip_options_valid(options->gzip) ||
        !is_valid_time_in_options(options->continue_timeout_ns))
        return -EINVAL;
    if (!options->streams && options->body_max > DOMUS_SLICE_MAX)
        return -EINVAL;
    if (options->chain == NULL)
        return 0;
    return options->role == DOMUS_ROLE_SERVER ? domi_http_check_chain(options->chain) : -EINVAL;
}

/* Returns the limit that the options give, or the default `otherwise` if they give 0. */
static uint32_t limit_of_head_or_default(uint32_t given, uint32_t otherwise)
{
    return given != 0 ? given : otherwise;
}

static int open_http_stage(domus_wire *wire, void *state_, const void *options)
{
    domi_http_state *state = state_;
    domus_http_options *own = &state->options;

    (void)wire;
    if (options != NULL)
        *own = *(const domus_http_options *)options;
    own->target_max = limit_of_head_or_default(own->target_max, 8192);
    own->head_max = limit_of_head_or_default(own->head_max, 32768);
    own->fields_max = limit_of_head_or_default(own->fields_max, 100);
    own->extension_max = limit_of_head_or_default(own->extension_max, 4096);
    own->trailer_max = limit_of_head_or_default(own->trailer_max, 8192);
    if (own->body_max == 0)
        own->body_max = BODY_DEFAULT;
    state->head.kind = domi_http_is_server(state) ? DOMI_HTTP_REQUEST : DOMI_HTTP_RESPONSE;
    return domi_http_is_server(state) ? 0 : domi_http_allocate_marks_of_requests(state);
}

static int decode_http_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domi_http_decode_bytes(wire, state, bytes, size);
}

static int decode_end_of_http_bytes(domus_wire *wire, void *state, size_t left)
{
    return domi_http_decode_end_of_bytes(wire, state, left);
}

static int encode_http_message(domus_wire *wire, void *state_, uint64_t id, const domus_type *type,
                               const void *payload)
{
    domi_http_state *state = state_;

    return domi_http_is_server(state)
               ? domi_http_encode_answer_of_server(wire, state, id, type, payload)
               : domi_http_encode_ask_of_client(wire, state, id, type, payload);
}

static int answer_failed_http_request(domus_wire *wire, void *state, uint64_t id,
                                      const domus_type *request, int error)
{
    return domi_http_answer_failed_request(wire, state, id, request, error);
}

static void free_state_of_http_stage(domus_wire *wire, void *state_)
{
    domi_http_state *state = state_;

    domi_http_exchanges_free(state->chained, domus_wire_now_ns(wire));
    domi_http_free_gathered_message(state);
    domus_slice_free(state->waiting);
    domi_http_deflaters_give_all_back(&state->deflaters);
    domi_http_free_marks_of_requests(state);
}

static int send_100_continue_when_body_is_wanted(domus_wire *wire, void *state_)
{
    domi_http_state *state = state_;

    return state->waits_for_100 ? domi_http_send_100_continue(wire, state) : 0;
}

/* Handle an answer whose rest cannot be sent. An answer to HEAD has no body that could be cut off.
 * Any other answer is cut off by a reset of the connection, which the peer sees. */
static int end_exchange_of_cut_answer(domus_wire *wire, void *state_, uint64_t id, int error)
{
    domi_http_state *state = state_;
    bool is_head = (id & DOMI_HTTP_ID_HEAD) != 0 && domi_http_is_server(state);
    uint64_t *stream = domus_wire_stream(wire);

    if (stream != NULL)
        domi_http_give_back_deflater_of_stream(stream);
    if (state->chained != NULL)
        domi_http_end_exchange_of_request(state->chained, id, domus_wire_now_ns(wire), !is_head);
    bool is_refused = stream != NULL && *stream == DOMI_HTTP_STREAM_TUNNEL &&
                      state->tunnel == DOMI_HTTP_NO_TUNNEL;
    if (state->wait == DOMI_HTTP_UNWANTED || is_refused)
        return 0; /* no byte of the body has left, and none will follow */
    return is_head ? domi_http_count_answer_and_send_owed_100(wire, state, id) : error;
}

/* Send the body of a request, because the server has not sent 100 Continue in time; it may not know
 * that status. */
static int send_waiting_body_at_timer(domus_wire *wire, void *state, bool owed)
{
    (void)owed;
    return domi_http_send_waiting_body(wire, state);
}

const domus_stage domus_http_stage = {
    .name = "http",
    .state_size = sizeof(domi_http_state),
    .check = check_options_of_http,
    .open = open_http_stage,
    .decode = decode_http_bytes,
    .end = decode_end_of_http_bytes,
    .encode = encode_http_message,
    .fail = answer_failed_http_request,
    .close = free_state_of_http_stage,
    .has_bodies = true,
    .wanted = send_100_continue_when_body_is_wanted,
    .cut = end_exchange_of_cut_answer,
    .wake = send_waiting_body_at_timer,
};
