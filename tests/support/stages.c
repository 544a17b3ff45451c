/* Byte stages for tests, which change sizes and hold a state, and runs of pipelines over bytes that
 * come in pieces. */
#include "tests/support/stages.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- stuffing --------------------------------------------------------------------------------- */

typedef struct stuff_state {
    bool escaped;
} stuff_state;

static int decode_stuffed_bytes(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    stuff_state *state = state_;
    char out[64];
    size_t used = 0;
    size_t made = 0;

    for (; used < size && made < sizeof out && bytes[used] != '~'; used++) {
        if (bytes[used] == '}' && !state->escaped) {
            state->escaped = true;
            continue;
        }
        out[made++] = state->escaped ? (char)(bytes[used] ^ 0x20) : bytes[used];
        state->escaped = false;
    }
    if (used ==
        0) /* the wrong byte is the first one: the bytes before it were used by earlier calls */
        return -EBADMSG;
    int error = domus_wire_pass(wire, out, made);
    return error != 0 ? error : (int)used;
}

static int check_stuffed_bytes_are_whole_at_end(domus_wire *wire, void *state_, size_t left)
{
    const stuff_state *state = state_;

    return state->escaped || left != 0 ? -EPIPE : 0;
}

static int wrap_with_byte_stuffing(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const char escaped[2] = {'}', (char)(bytes[i] ^ 0x20)};
        int error = bytes[i] == '}' || bytes[i] == '~' ? domus_wire_append(wire, escaped, 2)
                                                       : domus_wire_append(wire, &bytes[i], 1);
        if (error != 0)
            return error;
    }
    return 0;
}

const domus_stage domt_stuff_stage = {
    .name = "stuff",
    .state_size = sizeof(stuff_state),
    .decode = decode_stuffed_bytes,
    .end = check_stuffed_bytes_are_whole_at_end,
    .wrap = wrap_with_byte_stuffing,
};

/* --- xor -------------------------------------------------------------------------------------- */

typedef struct xor_state {
    uint32_t in;
    uint32_t out;
} xor_state;

static char xor_byte(uint32_t *key, char byte)
{
    *key = *key * 1664525u + 1013904223u;
    return (char)(byte ^ (char)(*key >> 24));
}

static int decode_bytes_by_xor(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    xor_state *state = state_;

    for (size_t i = 0; i < size; i++) {
        char byte = xor_byte(&state->in, bytes[i]);
        int error = domus_wire_pass(wire, &byte, 1);
        if (error != 0)
            return error;
    }
    return (int)size;
}

static int encode_bytes_by_xor(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    xor_state *state = state_;
    char *room = domus_wire_room(wire, size);

    if (room == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < size; i++)
        room[i] = xor_byte(&state->out, bytes[i]);
    domus_wire_written(wire, size);
    return 0;
}

const domus_stage domt_xor_stage = {.name = "xor",
                                    .state_size = sizeof(xor_state),
                                    .decode = decode_bytes_by_xor,
                                    .wrap = encode_bytes_by_xor};

/* --- sips ------------------------------------------------------------------------------------- */

static int decode_few_bytes_per_call(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    uint32_t *state = state_;
    size_t most = (*state)++ % 3 + 1;
    size_t used = size < most ? size : most;
    int error = domus_wire_pass(wire, bytes, used);

    return error != 0 ? error : (int)used;
}

static int wrap_unchanged(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, bytes, size);
}

const domus_stage domt_sip_stage = {.name = "sip",
                                    .state_size = sizeof(uint32_t),
                                    .decode = decode_few_bytes_per_call,
                                    .wrap = wrap_unchanged};

/* --- swelling --------------------------------------------------------------------------------- */

typedef struct swell_state {
    domt_swell_options options;
    uint32_t left; /* copies of `byte` that the stage has still to pass on */
    char byte;
} swell_state;

static int open_swell_stage(domus_wire *wire, void *state_, const void *options)
{
    swell_state *state = state_;

    if (options != NULL)
        state->options = *(const domt_swell_options *)options;
    if (state->options.per_call == 0)
        state->options.per_call = 48;
    return 0;
}

static uint32_t copies_of_count(const swell_state *state, char count)
{
    uint32_t n = (unsigned char)count;

    return state->options.factor != 0 ? n * state->options.factor + 1 : n % 16 + 1;
}

static int decode_pairs_to_many_copies(domus_wire *wire, void *state_, const char *bytes,
                                       size_t size)
{
    swell_state *state = state_;
    size_t room = state->options.per_call;
    size_t used = 0;
    char out[512];

    while (room != 0) {
        if (state->left == 0 && size - used < 2)
            break;
        if (state->left == 0) {
            state->left = copies_of_count(state, bytes[used]);
            state->byte = bytes[used + 1];
            used += 2;
        }
        size_t part = state->left < room ? state->left : room;
        if (part > sizeof out)
            part = sizeof out;
        memset(out, state->byte, part);
        int error = domus_wire_pass(wire, out, part);
        if (error != 0)
            return error;
        state->left -= (uint32_t)part;
        room -= part;
    }
    if (state->left != 0)
        domus_wire_again(wire);
    return (int)used;
}

static int wrap_as_pairs(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        const char pair[2] = {0, bytes[i]};
        int error = domus_wire_append(wire, pair, 2);
        if (error != 0)
            return error;
    }
    return 0;
}

const domus_stage domt_swell_stage = {.name = "swell",
                                      .state_size = sizeof(swell_state),
                                      .open = open_swell_stage,
                                      .decode = decode_pairs_to_many_copies,
                                      .wrap = wrap_as_pairs};

/* --- runs ------------------------------------------------------------------------------------- */

static void append_text(domt_decoded *decoded, const void *bytes, size_t size)
{
    if (decoded->room - decoded->size < size) {
        decoded->room = 2 * (decoded->size + size) + 256;
        decoded->text = realloc(decoded->text, decoded->room);
        DOMI_CHECK(decoded->text != NULL);
    }
    if (size != 0)
        memcpy(decoded->text + decoded->size, bytes, size);
    decoded->size += size;
}

/* Append the kind and size of a decoded message, as printf(3) does with "%d %u:". It is written by
 * hand, because printf(3) took a fifth of the time of the fuzz targets. */
static void append_message_head(domt_decoded *decoded, domus_stage_kind kind, uint32_t size)
{
    char head[16];
    char *begin = head + sizeof head;

    *--begin = ':';
    do
        *--begin = (char)('0' + size % 10);
    while ((size /= 10) != 0);
    *--begin = ' ';
    *--begin = (char)('0' + (int)kind);
    append_text(decoded, begin, (size_t)(head + sizeof head - begin));
}

/* Read all packets that the kit has decoded, append them as text to `decoded`, and encode each
 * again if `encodes` is true. Returns 0, or an error. */
static int read_decoded_packets(domus_stage_kit *kit, domt_decoded *decoded, bool encodes)
{
    domus_stage_message message;
    int result = domus_stage_kit_next(kit, &message);

    for (; result == 1; result = domus_stage_kit_next(kit, &message)) {
        const domus_packet *packet = message.payload;
        DOMI_CHECK(message.type == &domus_packet_type);
        append_message_head(decoded, message.kind, packet->bytes.size);
        append_text(decoded, domus_slice_data(packet->bytes), packet->bytes.size);
        decoded->count++;
        if (encodes)
            DOMI_CHECK(domus_stage_kit_encode(kit, message.id, message.type, packet) == 0);
    }
    return result;
}

void domt_decode_in_pieces(const domus_pipeline *pipeline, const void *bytes, size_t size,
                           domt_cut *cut, void *context, domt_decoded *ret_decoded,
                           domt_decoded *encoded)
{
    domus_stage_kit *kit = NULL;
    const char *from = bytes;

    *ret_decoded = (domt_decoded){.error = domus_stage_kit_new(pipeline, &kit)};
    while (size != 0 && ret_decoded->error == 0) {
        size_t piece = cut != NULL ? cut(context, size) : size;
        ret_decoded->error = domus_stage_kit_feed(kit, from, piece);
        from += piece;
        size -= piece;
        if (ret_decoded->error == 0)
            ret_decoded->error = read_decoded_packets(kit, ret_decoded, encoded != NULL);
    }
    if (ret_decoded->error == 0) {
        domus_stage_kit_finish(kit);
        ret_decoded->error = read_decoded_packets(kit, ret_decoded, encoded != NULL);
    }
    if (encoded != NULL && kit != NULL) {
        size_t sent;
        const char *output = domus_stage_kit_output(kit, &sent);
        *encoded = (domt_decoded){0};
        append_text(encoded, output, sent);
    }
    domus_stage_kit_free(kit);
}

bool domt_decoded_equals(const domt_decoded *a, const domt_decoded *b)
{
    return a->count == b->count && a->error == b->error && a->size == b->size &&
           (a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
}

void domt_decoded_clear(domt_decoded *decoded)
{
    free(decoded->text);
    *decoded = (domt_decoded){0};
}

size_t domt_size_of_next_equal_piece(void *context, size_t left)
{
    const size_t *size = context;

    return left < *size ? left : *size;
}

/* The random pieces are mostly small, and now and then large. */
size_t domt_size_of_next_random_piece(void *context, size_t left)
{
    uint64_t *seed = context;

    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    size_t most = (size_t)1 << (*seed >> 8) % 16;
    size_t size = (size_t)(*seed >> 32) % most + 1;
    return left < size ? left : size;
}
