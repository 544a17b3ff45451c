/* The stage of the protocol with bodies and streams that tests/runtime/streams.h describes. */
#include "tests/runtime/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const domus_type domt_line_type = {.name = "line of a stream", .size = sizeof(domt_line)};
const domus_type domt_trailer_type = {.name = "trailer", .size = sizeof(domt_line)};

/* The state of the stage: how the incoming body is divided, and how much of it is missing. */
typedef struct stream_state {
    const domt_stream_options *options;
    /* kind of the incoming body, the letter in the request's line; 0: no body is open */
    char kind;
    uint64_t left; /* bytes that are missing of the chunk or of the body */
} stream_state;

static int open_stream_stage(domus_wire *wire, void *state_, const void *options)
{
    stream_state *state = state_;
    state->options = options;
    return 0;
}

/* Copy text to a line. Returns false if it is too long. */
static bool set_text_of_line(domt_line *line, const char *from, size_t size)
{
    if (size >= sizeof line->text)
        return false;
    memcpy(line->text, from, size);
    line->text[size] = '\0';
    return true;
}

static bool is_stage_of_client(const stream_state *state)
{
    return state->options->role == DOMUS_ROLE_CLIENT;
}

static int decode_line(domus_wire *wire, stream_state *state, const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    size_t length = end != NULL ? (size_t)(end - bytes) : size;

    if (end == NULL)
        return 0;
    domt_line *line = is_stage_of_client(state)
                          ? domus_wire_answer(wire, &domt_line_type, DOMUS_NO_ID)
                          : domus_wire_request(wire, &domt_line_type, DOMUS_NO_ID);
    if (line == NULL)
        return -ENOMEM;
    if (length == 0 || !set_text_of_line(line, bytes, length))
        return -EPROTO;
    const char *kind = line->text[0] == 'A' ? line->text + 1 : line->text;
    if (*kind == 'Z') {
        kind++;
        domus_wire_last(wire);
    }
    bool has_body =
        is_stage_of_client(state) ? bytes[length - 1] == '+' : strchr("LCXE", *kind) != NULL;
    if (has_body) {
        state->kind = is_stage_of_client(state) ? 'C' : *kind;
        state->left = *kind == 'L' ? strtoull(kind + 1, NULL, 10) : 0;
        line->body = domus_wire_body(wire);
    }
    return (int)length + 1;
}

/* Make a piece of the bytes, at most of `left` of them. If `last` is true, the body ends when these
 * are used up. */
static int make_piece_of_body(domus_wire *wire, stream_state *state, const char *bytes, size_t size,
                              bool last)
{
    size_t part = size < state->left ? size : (size_t)state->left;
    state->left -= part;
    last = last && state->left == 0;
    if (last)
        state->kind = 0;
    return domus_wire_piece(wire, bytes, part, last) ? (int)part : -ENOMEM;
}

static int decode_chunk(domus_wire *wire, stream_state *state, const char *bytes, size_t size)
{
    size_t at = 0;

    if (state->left != 0)
        return make_piece_of_body(wire, state, bytes, size, false);
    if (*bytes == 'T') {
        const char *end = memchr(bytes, '\n', size);
        if (end == NULL)
            return 0;
        domt_line *line = domus_wire_trailer(wire, &domt_trailer_type);
        if (line == NULL)
            return -ENOMEM;
        state->kind = 0;
        return set_text_of_line(line, bytes + 1, (size_t)(end - bytes) - 1) ? (int)(end - bytes) + 1
                                                                            : -EPROTO;
    }
    for (; at < size && at < 9 && bytes[at] != ':'; at++) {
        if (bytes[at] < '0' || bytes[at] > '9')
            return -EPROTO;
    }
    if (at == size || at == 9)
        return at == 9 ? -EPROTO : 0;
    state->left = strtoull(bytes, NULL, 10);
    if (state->left == 0) {
        state->kind = 0;
        return domus_wire_piece(wire, bytes, 0, true) ? (int)at + 1 : -ENOMEM;
    }
    return (int)at + 1; /* only the size of the piece is used; the next call makes the piece */
}

static int decode_by_stream_stage(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    stream_state *state = state_;

    switch (state->kind) {
    case 0:
        return decode_line(wire, state, bytes, size);
    case 'L':
        return make_piece_of_body(wire, state, bytes, size, true);
    case 'E':
        state->left = size;
        return make_piece_of_body(wire, state, bytes, size, false);
    default:
        return decode_chunk(wire, state, bytes, size);
    }
}

static int end_input_of_stream_stage(domus_wire *wire, void *state_, size_t left)
{
    stream_state *state = state_;
    if (state->kind == 'E') {
        state->kind = 0;
        return domus_wire_piece(wire, NULL, 0, true) ? 0 : -ENOMEM;
    }
    return left != 0 ? -EPIPE : 0;
}

/* word in the head of the message that is being encoded as a stream */
#define BEGUN UINT64_C(0x5eed)

static int encode_by_stream_stage(domus_wire *wire, void *state, uint64_t id,
                                  const domus_type *type, const void *payload)
{
    uint64_t *stream = domus_wire_stream(wire);
    const domus_piece *piece = payload;
    const domt_line *line = payload;

    if (type == &domus_piece_type) {
        if (stream == NULL || *stream != BEGUN)
            return -EPROTO;
        if (piece->last)
            return domus_wire_append(wire, "0:", 2);
        if (piece->bytes.size > 1 && *domus_slice_data(piece->bytes) == '?')
            return -EINVAL;
        int error = domus_wire_append_text(wire, "%u:", piece->bytes.size);
        return error != 0 ? error : domus_wire_append_slice(wire, piece->bytes);
    }
    if (type == &domt_trailer_type && stream != NULL)
        return domus_wire_append_text(wire, "T%s\n", line->text);
    if (type != &domt_line_type || (stream != NULL && *stream != 0))
        return -EOPNOTSUPP;
    if (stream != NULL)
        *stream = BEGUN;
    if (strcmp(line->text, "last") == 0)
        domus_wire_last(wire);
    return domus_wire_append_text(wire, stream != NULL ? "%s+\n" : "%s\n", line->text);
}

static int encode_failure_of_request(domus_wire *wire, void *state, uint64_t id,
                                     const domus_type *request, int error)
{
    return domus_wire_append_text(wire, "%s %s\n", request != NULL ? "error" : "wrong",
                                  strerrorname_np(-error));
}

static int tell_peer_to_send_chunks(domus_wire *wire, void *state_)
{
    const stream_state *state = state_;
    return state->kind == 'X' ? domus_wire_append(wire, "go\n", 3) : 0;
}

static int encode_cut_of_begun_stream(domus_wire *wire, void *state, uint64_t id, int error)
{
    return *domus_wire_stream(wire) == BEGUN
               ? domus_wire_append_text(wire, "!%s\n", strerrorname_np(-error))
               : -EPROTO;
}

#define STAGE(of_cut)                                                                              \
    {                                                                                              \
        .name = "stream", .state_size = sizeof(stream_state), .open = open_stream_stage,           \
        .decode = decode_by_stream_stage, .end = end_input_of_stream_stage,                        \
        .encode = encode_by_stream_stage, .fail = encode_failure_of_request, .has_bodies = true,   \
        .wanted = tell_peer_to_send_chunks, .cut = of_cut                                          \
    }
const domus_stage domt_stream_stage = STAGE(encode_cut_of_begun_stream);
const domus_stage domt_cutless_stage = STAGE(NULL);
