/* The conversation with wslay that tests/http/talk.h describes. */
#include "tests/http/talk.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#ifdef DOMT_WSLAY
#include <wslay/wslay.h>

domt_talk domt_talk_now;

size_t domt_talk_draw_number_below(size_t n)
{
    return (size_t)domi_random_below(&domt_talk_now.chance, n);
}

static void append_to_bytes_under_way(domt_way *to, const void *bytes, size_t size)
{
    if (to->room - to->size < size) {
        to->room = 2 * (to->size + size);
        to->bytes = realloc(to->bytes, to->room);
        ck_assert_ptr_nonnull(to->bytes);
    }
    if (size != 0)
        memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

/* Take up to `size` bytes that arrive at a side. They are valid until more bytes are added. */
static const uint8_t *take_bytes_under_way(domt_way *from, size_t *size)
{
    const uint8_t *bytes = from->bytes + from->at;

    if (*size > from->size - from->at)
        *size = from->size - from->at;
    from->at += *size;
    if (from->at == from->size)
        from->at = from->size = 0;
    return bytes;
}

/* Check that this received message is the next one of the row of sent messages. */
static void check_next_message(domt_row *from, char kind, const void *bytes, size_t size)
{
    ck_assert_msg(from->heard < from->count, "seed %u: a message too many",
                  (unsigned)domt_talk_now.seed);
    const domt_said *next = &from->sent[from->heard++];
    ck_assert_msg(next->kind == kind && next->size == size &&
                      (size == 0 || memcmp(next->bytes, bytes, size) == 0),
                  "seed %u: %c of %zu bytes came as %c of %zu", (unsigned)domt_talk_now.seed,
                  next->kind, next->size, kind, size);
}

static void record_received_close(domt_goodbye *at, unsigned code, const void *reason, size_t size)
{
    ck_assert(!at->heard && size <= DOMT_TALK_CONTROL_MAX);
    *at = (domt_goodbye){.heard = true, .code = code};
    if (size != 0)
        memcpy(at->reason, reason, size);
}

/* --- wslay ------------------------------------------------------------------------------------ */

static ssize_t give_bytes_to_wslay(wslay_event_context_ptr context, uint8_t *to, size_t size,
                                   int flags, void *user)
{
    size_t part = size < domt_talk_now.quota ? size : domt_talk_now.quota;
    const uint8_t *bytes = take_bytes_under_way(&domt_talk_now.to_them, &part);

    if (part == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, bytes, part);
    domt_talk_now.quota -= part;
    return (ssize_t)part;
}

static ssize_t take_bytes_of_wslay(wslay_event_context_ptr context, const uint8_t *bytes,
                                   size_t size, int flags, void *user)
{
    size_t part = size < domt_talk_now.quota ? size : domt_talk_now.quota;

    if (part == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    append_to_bytes_under_way(&domt_talk_now.to_us, bytes, part);
    domt_talk_now.quota -= part;
    return (ssize_t)part;
}

static int make_mask_for_wslay(wslay_event_context_ptr context, uint8_t *to, size_t size,
                               void *user)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)domt_talk_draw_number_below(256);
    return 0;
}

static void check_message_that_wslay_received(wslay_event_context_ptr context,
                                              const struct wslay_event_on_msg_recv_arg *arg,
                                              void *user)
{
    if (arg->opcode == WSLAY_TEXT_FRAME || arg->opcode == WSLAY_BINARY_FRAME)
        check_next_message(&domt_talk_now.from_us, arg->opcode == WSLAY_TEXT_FRAME ? 't' : 'b',
                           arg->msg, arg->msg_length);
    else if (arg->opcode == WSLAY_PONG)
        check_next_message(&domt_talk_now.pings_of_them, 'p', arg->msg, arg->msg_length);
    else if (arg->opcode == WSLAY_CONNECTION_CLOSE && arg->msg_length < 2)
        record_received_close(&domt_talk_now.at_them, DOMUS_WEBSOCKET_NO_CODE, NULL, 0);
    else if (arg->opcode == WSLAY_CONNECTION_CLOSE)
        record_received_close(&domt_talk_now.at_them, arg->status_code, arg->msg + 2,
                              arg->msg_length - 2);
}

/* Give wslay the next fragment of a message; it asks for one after the other. */
static ssize_t write_next_fragment(wslay_event_context_ptr context, uint8_t *to, size_t size,
                                   const union wslay_event_msg_source *source, int *eof, void *user)
{
    const domt_said *from = source->data;
    size_t left = from->size - domt_talk_now.piece_from;
    size_t part = 1 + domt_talk_draw_number_below(
                          size < domt_talk_now.piece_max ? size : domt_talk_now.piece_max);

    part = part < left ? part : left;
    if (part != 0)
        memcpy(to, from->bytes + domt_talk_now.piece_from, part);
    domt_talk_now.piece_from += part;
    *eof = part == left;
    if (*eof)
        domt_talk_now.piece_from = 0;
    return (ssize_t)part;
}

void domt_talk_send_by_wslay(domt_said *sent, bool fragmented)
{
    uint8_t opcode = sent->kind == 't'   ? WSLAY_TEXT_FRAME
                     : sent->kind == 'b' ? WSLAY_BINARY_FRAME
                                         : WSLAY_PING;

    if (fragmented && sent->kind != 'p') {
        struct wslay_event_fragmented_msg arg = {opcode, {.data = sent}, write_next_fragment};
        ck_assert_int_eq(wslay_event_queue_fragmented_msg(domt_talk_now.theirs, &arg), 0);
    } else {
        struct wslay_event_msg arg = {opcode, sent->bytes, sent->size};
        ck_assert_int_eq(wslay_event_queue_msg(domt_talk_now.theirs, &arg), 0);
    }
}

/* --- the stage -------------------------------------------------------------------------------- */

static void move_stage_output_under_way(void)
{
    size_t size;
    const char *output = domus_stage_kit_output(domt_talk_now.ours.kit, &size);

    append_to_bytes_under_way(&domt_talk_now.to_them, output, size);
    domus_stage_kit_clear(domt_talk_now.ours.kit);
}

static void encode_by_stage(const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_stage_kit_encode(domt_talk_now.ours.kit, DOMUS_NO_ID, type, payload), 0);
    move_stage_output_under_way();
}

void domt_talk_send_by_stage(const domt_said *sent)
{
    domus_websocket_message made = {.binary = sent->kind == 'b'};

    ck_assert_int_eq(domus_slice_copy(sent->bytes, sent->size, &made.bytes), 0);
    if (sent->kind == 'p')
        encode_by_stage(&domus_websocket_ping_type, &made.bytes);
    else
        encode_by_stage(&domus_websocket_message_type, &made);
    domus_slice_free(made.bytes);
}

void domt_talk_close_by_stage(const domus_websocket_close *close)
{
    encode_by_stage(&domus_websocket_close_type, close);
}

static void check_message_that_stage_received(const domus_stage_message *heard)
{
    if (heard->type == &domus_websocket_message_type) {
        const domus_websocket_message *made = heard->payload;
        check_next_message(&domt_talk_now.from_them, made->binary ? 'b' : 't',
                           domus_slice_data(made->bytes), made->bytes.size);
    } else if (heard->type == &domus_websocket_pong_type) {
        const domus_slice *pong = heard->payload;
        check_next_message(&domt_talk_now.pings_of_us, 'p', domus_slice_data(*pong), pong->size);
    } else if (heard->type == &domus_websocket_close_type) {
        const domus_websocket_close *close = heard->payload;
        record_received_close(&domt_talk_now.at_us, close->code, domus_slice_data(close->reason),
                              close->reason.size);
        ck_assert(domus_stage_kit_is_last(domt_talk_now.ours.kit));
    }
}

int domt_talk_decode_bytes_by_stage(const void *bytes, size_t size)
{
    domus_stage_message heard;
    int result = 0;

    ck_assert_int_eq(domus_stage_kit_feed(domt_talk_now.ours.kit, bytes, size), 0);
    while (!domt_talk_now.at_us.heard &&
           (result = domus_stage_kit_next(domt_talk_now.ours.kit, &heard)) == 1)
        check_message_that_stage_received(&heard);
    if (result == 1) /* the stage has read a close, behind which no message comes */
        result = 0;
    if (result < 0)
        ck_assert_int_eq(domus_stage_kit_fail(domt_talk_now.ours.kit, DOMUS_NO_ID, NULL, result),
                         0);
    move_stage_output_under_way();
    return result;
}

/* --- a talk ----------------------------------------------------------------------------------- */

void domt_talk_begin_with_wslay(uint64_t seed, const domus_websocket_options *options,
                                bool wslay_serves)
{
    static const struct wslay_event_callbacks calls = {.recv_callback = give_bytes_to_wslay,
                                                       .send_callback = take_bytes_of_wslay,
                                                       .genmask_callback = make_mask_for_wslay,
                                                       .on_msg_recv_callback =
                                                           check_message_that_wslay_received};

    domt_talk_now = (domt_talk){.seed = seed, .options = *options, .piece_max = SIZE_MAX};
    domi_random_init(&domt_talk_now.chance, seed);
    domt_codec_start(&domt_talk_now.ours, &domus_websocket_stage, &domt_talk_now.options);
    ck_assert_int_eq(wslay_serves
                         ? wslay_event_context_server_init(&domt_talk_now.theirs, &calls, NULL)
                         : wslay_event_context_client_init(&domt_talk_now.theirs, &calls, NULL),
                     0);
}

static void free_messages_of_row(domt_row *of)
{
    for (unsigned i = 0; i < of->count; i++)
        free(of->sent[i].bytes);
}

void domt_talk_free_all(void)
{
    wslay_event_context_free(domt_talk_now.theirs);
    domt_codec_stop(&domt_talk_now.ours);
    free_messages_of_row(&domt_talk_now.from_us);
    free_messages_of_row(&domt_talk_now.from_them);
    free_messages_of_row(&domt_talk_now.pings_of_us);
    free_messages_of_row(&domt_talk_now.pings_of_them);
    free(domt_talk_now.to_us.bytes);
    free(domt_talk_now.to_them.bytes);
}

int domt_talk_deliver_some_bytes(void)
{
    size_t size = 1 + domt_talk_draw_number_below((size_t)1 << domt_talk_draw_number_below(18));

    domt_talk_now.quota = size;
    switch (domt_talk_draw_number_below(3)) {
    case 0:
        ck_assert_int_eq(wslay_event_send(domt_talk_now.theirs), 0);
        return 0;
    case 1:
        ck_assert_int_eq(wslay_event_recv(domt_talk_now.theirs), 0);
        return 0;
    default:
        break;
    }
    const uint8_t *bytes = take_bytes_under_way(&domt_talk_now.to_us, &size);
    if (size == 0 || domt_talk_now.at_us.heard)
        return 0;
    return domt_talk_decode_bytes_by_stage(bytes, size);
}

/* --- messages --------------------------------------------------------------------------------- */

/* Write some random bytes, up to `room` of them. Returns how many. */
static size_t write_random_bytes(uint8_t *to, size_t room)
{
    uint64_t bytes = domi_random_next_bits(&domt_talk_now.chance);
    size_t size = room < sizeof bytes ? room : sizeof bytes;

    memcpy(to, &bytes, size);
    return size;
}

/* Write a random character of 1 to 4 bytes that fits into `room`. Returns its size. */
static size_t write_random_character(uint8_t *to, size_t room)
{
    static const uint32_t first[] = {0, 0x80, 0x800, 0x10000},
                          behind[] = {0x80, 0x800, 0xd800, 0x110000};
    size_t size = 1 + domt_talk_draw_number_below(room < 4 ? room : 4);
    uint32_t code =
        first[size - 1] + (uint32_t)domt_talk_draw_number_below(behind[size - 1] - first[size - 1]);

    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    to[0] = (uint8_t)(size == 1 ? code : (0xf00u >> size & 0xf0) | code);
    return size;
}

domt_said *domt_talk_add_message(domt_row *to, char kind, size_t size)
{
    ck_assert_uint_lt(to->count, DOMT_TALK_EACH);
    domt_said *made = &to->sent[to->count++];
    *made = (domt_said){kind, malloc(size + 1), size};

    ck_assert_ptr_nonnull(made->bytes);
    for (size_t at = 0; at < size;)
        at += kind == 't' ? write_random_character(made->bytes + at, size - at)
                          : write_random_bytes(made->bytes + at, size - at);
    return made;
}

#endif
