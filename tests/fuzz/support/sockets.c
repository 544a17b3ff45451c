/* Reads frames by the stage of WebSocket and by wslay. The two may differ in these points:
 *
 * - wslay does not know the codes 1012 to 1014, which were registered after it was written.
 * - wslay takes a close frame of one byte for one without a code; the RFC allows no such frame.
 * - wslay reads the reason of a close frame before the frame is whole, and before the code. So it
 *   reports 1007 where the stage waits, or reports 1002.
 * - wslay refuses a frame header when the header is whole, the stage as soon as a byte of it is
 *   wrong. So where the stage has refused something, wslay gets some zeros more. */
#include "tests/fuzz/support/sockets.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_DEFAULT (1u << 20)
#define PADDING         16u

static void append_bytes_to_text(domt_socket_read *read, const void *bytes, size_t size)
{
    if (read->room - read->size < size) {
        read->room = 2 * (read->size + size) + 256;
        read->text = realloc(read->text, read->room);
        DOMI_CHECK(read->text != NULL);
    }
    if (size != 0)
        memcpy(read->text + read->size, bytes, size);
    read->size += size;
}

static void append_kind_number_and_bytes(domt_socket_read *read, char kind, uint32_t number,
                                         const void *bytes, size_t size)
{
    append_bytes_to_text(read, &kind, 1);
    append_bytes_to_text(read, &number, sizeof number);
    append_bytes_to_text(read, bytes, size);
}

void domt_socket_free_reading(domt_socket_read *read)
{
    free(read->text);
    *read = (domt_socket_read){0};
}

/* --- the stage -------------------------------------------------------------------------------- */

static void read_message_of_stage(domt_socket_read *read, domus_stage_kit *kit,
                                  const domus_stage_message *message)
{
    if (message->type == &domus_websocket_message_type) {
        const domus_websocket_message *made = message->payload;
        append_kind_number_and_bytes(read, made->binary ? 'b' : 't', made->bytes.size,
                                     domus_slice_data(made->bytes), made->bytes.size);
        DOMI_CHECK(domus_stage_kit_encode(kit, DOMUS_NO_ID, message->type, made) == 0);
        domus_stage_kit_clear(kit);
    } else if (message->type == &domus_websocket_close_type) {
        const domus_websocket_close *close = message->payload;
        append_kind_number_and_bytes(read, 'c', close->code, domus_slice_data(close->reason),
                                     close->reason.size);
        read->closed = true;
        DOMI_CHECK(domus_stage_kit_is_last(kit));
    }
}

/* Returns the code of the close frame that the stage has sent, which is masked if the stage is a
 * client. */
static unsigned code_of_sent_close_frame(domus_stage_kit *kit)
{
    size_t size;
    const unsigned char *sent = (const unsigned char *)domus_stage_kit_output(kit, &size);
    bool is_masked = size == 8;

    DOMI_CHECK((size == 4 || size == 8) && sent[0] == 0x88 && (sent[1] & 0x7f) == 2);
    return is_masked ? (unsigned)((sent[6] ^ sent[2]) << 8 | (sent[7] ^ sent[3]))
                     : (unsigned)(sent[2] << 8 | sent[3]);
}

void domt_socket_read_by_stage(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size, size_t step)
{
    const domus_pipeline_stage stages[] = {{&domus_websocket_stage, options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    domus_stage_message message;
    domus_stage_kit *kit;
    int result = 0;

    DOMI_CHECK(domus_stage_kit_new(&pipeline, &kit) == 0);
    for (size_t at = 0; at < size && result == 0 && !read->closed; at += step) {
        DOMI_CHECK(domus_stage_kit_feed(kit, bytes + at, size - at < step ? size - at : step) == 0);
        while (!read->closed && (result = domus_stage_kit_next(kit, &message)) == 1)
            read_message_of_stage(read, kit, &message);
    }
    if (result < 0) {
        domus_stage_kit_clear(kit);
        DOMI_CHECK(domus_stage_kit_fail(kit, DOMUS_NO_ID, NULL, result) == 0);
        read->refused = code_of_sent_close_frame(kit);
    }
    domus_stage_kit_free(kit);
}

/* --- wslay ------------------------------------------------------------------------------------ */

#ifdef DOMT_WSLAY
#include <wslay/wslay.h>

typedef struct feed {
    domt_socket_read *read;
    const uint8_t *bytes;
    size_t size;
} feed;

static ssize_t give_bytes_to_wslay(wslay_event_context_ptr context, uint8_t *to, size_t size,
                                   int flags, void *user)
{
    feed *from = user;
    size_t part = size < from->size ? size : from->size;

    if (part == 0) {
        wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
        return -1;
    }
    memcpy(to, from->bytes, part);
    from->bytes += part;
    from->size -= part;
    return (ssize_t)part;
}

static ssize_t discard_output_of_wslay(wslay_event_context_ptr context, const uint8_t *bytes,
                                       size_t size, int flags, void *user)
{
    return (ssize_t)size;
}

static int make_constant_mask(wslay_event_context_ptr context, uint8_t *to, size_t size, void *user)
{
    memset(to, 7, size);
    return 0;
}

static void record_message_of_wslay(wslay_event_context_ptr context,
                                    const struct wslay_event_on_msg_recv_arg *message, void *user)
{
    domt_socket_read *read = ((feed *)user)->read;

    if (message->opcode == WSLAY_TEXT_FRAME || message->opcode == WSLAY_BINARY_FRAME)
        append_kind_number_and_bytes(read, message->opcode == WSLAY_TEXT_FRAME ? 't' : 'b',
                                     (uint32_t)message->msg_length, message->msg,
                                     message->msg_length);
    if (message->opcode == WSLAY_CONNECTION_CLOSE && message->msg_length == 1) {
        read->refused = DOMUS_WEBSOCKET_PROTOCOL_ERROR;
    } else if (message->opcode == WSLAY_CONNECTION_CLOSE) {
        size_t code = message->msg_length >= 2 ? 2 : 0;
        const uint8_t *reason = code != 0 ? message->msg + code : NULL;
        append_kind_number_and_bytes(read, 'c',
                                     code != 0 ? message->status_code : DOMUS_WEBSOCKET_NO_CODE,
                                     reason, message->msg_length - code);
        read->closed = true;
    }
}

bool domt_socket_read_by_wslay(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size)
{
    static const struct wslay_event_callbacks calls = {.recv_callback = give_bytes_to_wslay,
                                                       .send_callback = discard_output_of_wslay,
                                                       .genmask_callback = make_constant_mask,
                                                       .on_msg_recv_callback =
                                                           record_message_of_wslay};
    feed from = {read, bytes, size};
    wslay_event_context_ptr context;
    int result = options->role == DOMUS_ROLE_SERVER
                     ? wslay_event_context_server_init(&context, &calls, &from)
                     : wslay_event_context_client_init(&context, &calls, &from);

    DOMI_CHECK(result == 0);
    wslay_event_config_set_max_recv_msg_length(
        context, options->message_max != 0 ? options->message_max : MESSAGE_DEFAULT);
    result = wslay_event_recv(context);
    DOMI_CHECK(wslay_event_send(context) == 0);
    if (result != 0) /* wslay reports a wrong header, and leaves it to its user to close */
        read->refused = DOMUS_WEBSOCKET_PROTOCOL_ERROR;
    else if (!read->closed && read->refused == 0 && wslay_event_get_close_sent(context))
        read->refused = wslay_event_get_status_code_sent(context);
    wslay_event_context_free(context);
    return true;
}
#else
bool domt_socket_read_by_wslay(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size)
{
    return false;
}
#endif

/* --- the comparison --------------------------------------------------------------------------- */

static bool are_readings_same(const domt_socket_read *one, const domt_socket_read *other)
{
    return one->size == other->size && one->refused == other->refused &&
           one->closed == other->closed &&
           (one->size == 0 || memcmp(one->text, other->text, one->size) == 0);
}

/* Returns whether the last message is a close frame with a code that wslay does not know, so that
 * the two may differ. */
static bool is_close_code_unknown_to_wslay(const domt_socket_read *read)
{
    for (size_t at = 0; read->closed && at + 5 <= read->size;) {
        uint32_t number;
        memcpy(&number, read->text + at + 1, sizeof number);
        if (read->text[at] == 'c')
            return number >= 1012 && number <= 1014;
        at += 5 + number;
    }
    return false;
}

static void check_wslay_reads_same(const domt_socket_read *read,
                                   const domus_websocket_options *options, const uint8_t *bytes,
                                   size_t size)
{
    size_t padding = read->refused != 0 ? PADDING : 0;
    uint8_t *padded = calloc(1, size + PADDING);
    domt_socket_read judge = {0};
    bool judged;

    DOMI_CHECK(padded != NULL);
    memcpy(padded, bytes, size);
    judged = domt_socket_read_by_wslay(&judge, options, padded, size + padding);
    if (judge.refused == DOMUS_WEBSOCKET_INVALID_DATA &&
        (read->refused == 0 || read->refused == DOMUS_WEBSOCKET_PROTOCOL_ERROR) && !read->closed)
        judge.refused = read->refused;
    if (judged && !is_close_code_unknown_to_wslay(read))
        DOMI_CHECK(are_readings_same(read, &judge));
    domt_socket_free_reading(&judge);
    free(padded);
}

void domt_socket_check_all_readings(const domus_websocket_options *options, const uint8_t *bytes,
                                    size_t size, size_t step)
{
    domt_socket_read whole = {0}, pieces = {0};

    domt_socket_read_by_stage(&whole, options, bytes, size, size != 0 ? size : 1);
    domt_socket_read_by_stage(&pieces, options, bytes, size, step);
    DOMI_CHECK(are_readings_same(&whole, &pieces));
    check_wslay_reads_same(&whole, options, bytes, size);
    domt_socket_free_reading(&whole);
    domt_socket_free_reading(&pieces);
}
