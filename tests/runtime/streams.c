/* The service with bodies and streams; tests/runtime/streams.h lists its requests. */
#include "tests/runtime/streams.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

domt_streams domt_streams_now;

#define GIVEN 1000u /* bytes of a piece that `give` writes */

typedef struct serve_frame {
    char how[16];
    uint64_t number;
    domus_body body;
    uint64_t bytes;
    uint64_t sum;
    bool ended;
    domt_line trailer; /* the trailer of the request's body; an empty text: none */
    domt_line line;
    domus_slice piece;
} serve_frame;

/* Split the line of a request. Returns true if the request has to be forwarded first. */
static bool parse_request(serve_frame *frame, const domt_line *line)
{
    char how[16] = "";
    unsigned long long number = 0;
    bool is_far = false;

    ck_assert_int_ge(sscanf(line->text, "%*s %15s %llu", how, &number), 1);
    is_far = how[0] == 'f';
    snprintf(frame->how, sizeof frame->how, "%s", is_far ? how + 1 : how);
    frame->number = number;
    frame->body = line->body;
    return is_far;
}

static bool is_request_of_mode(const serve_frame *frame, const char *how)
{
    return strcmp(frame->how, how) == 0;
}

static int reply_with_line(domus_stack *stack, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};
    snprintf(line.text, sizeof line.text, "%s", text);
    domt_streams_now.ended++;
    return domus_reply(stack, &domt_line_type, &line);
}

static int reply_with_error(domus_stack *stack, const char *what, int error)
{
    char text[64];
    domt_streams_now.error = error;
    snprintf(text, sizeof text, "%s %s", what, strerrorname_np(-error));
    return reply_with_line(stack, text);
}

/* Count a piece of the request's body, or note that the body has ended. */
static void count_piece_of_body(serve_frame *frame, const domus_answer *answer)
{
    if (answer->type == &domt_trailer_type) {
        frame->trailer = *(const domt_line *)answer->payload;
        frame->ended = true;
        return;
    }
    ck_assert_ptr_eq(answer->type, &domus_piece_type);
    const domus_piece *piece = answer->payload;
    const char *data = domus_slice_data(piece->bytes);
    ck_assert(piece->bytes.size != 0 || piece->last);
    for (uint32_t i = 0; i < piece->bytes.size; i++)
        frame->sum = frame->sum * 31 + (unsigned char)data[i];
    frame->bytes += piece->bytes.size;
    frame->ended = piece->last;
    domt_streams_now.bytes += piece->bytes.size;
    domt_streams_now.reads++;
}

static int reply_with_sum(domus_stack *stack, const serve_frame *frame)
{
    char text[64];
    snprintf(text, sizeof text, "%llu %llu%.16s", (unsigned long long)frame->bytes,
             (unsigned long long)(frame->sum % 1000000), frame->trailer.text);
    return reply_with_line(stack, text);
}

/* Make the next piece of the stream that `give` writes. */
static int make_piece_of_given(serve_frame *frame)
{
    char data[GIVEN];
    uint64_t left = frame->number - frame->bytes;
    size_t size = left < sizeof data ? (size_t)left : sizeof data;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + (frame->bytes + i) % 26);
    return domus_slice_copy(data, size, &frame->piece);
}

static const domus_type lend_type = {.name = "lend", .size = sizeof(domus_stream)};
static const domus_type unknown_type = {.name = "unknown"};

static domus_slice new_slice_of_text(const char *text)
{
    domus_slice slice;
    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

DOMUS_SEQUENCE(count, serve_frame)
{
    DOMUS_BEGIN;
    if (parse_request(frame, message))
        return domus_forward(stack, domt_streams_now.far);
    while (!frame->ended) {
        if (frame->number != 0)
            DOMUS_SLEEP(frame->number * DOMT_PIPE_MS);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return reply_with_error(stack, "read", answer->error);
        count_piece_of_body(frame, answer);
        if (is_request_of_mode(frame, "one"))
            return reply_with_line(stack, "one");
    }
    if (is_request_of_mode(frame, "over")) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        return reply_with_error(stack, "read", answer->error);
    }
    return reply_with_sum(stack, frame);
    DOMUS_END;
}

DOMUS_SEQUENCE(echo, serve_frame)
{
    DOMUS_BEGIN;
    if (parse_request(frame, message))
        return domus_forward(stack, domt_streams_now.far);
    snprintf(frame->line.text, sizeof frame->line.text, "%s", frame->how);
    DOMUS_AWAIT(domus_reply_begin(stack, &domt_line_type, &frame->line, then));
    while (answer->error == 0 && !frame->ended) {
        if (is_request_of_mode(frame, "echo")) {
            DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
            if (answer->error != 0)
                break;
            count_piece_of_body(frame, answer);
            if (answer->type != &domus_piece_type)
                break;
            ck_assert_int_eq(domus_take(stack), 0);
            frame->piece = ((const domus_piece *)answer->payload)->bytes;
        } else {
            frame->ended = frame->number - frame->bytes <= GIVEN;
            ck_assert_int_eq(make_piece_of_given(frame), 0);
            frame->bytes += frame->piece.size;
        }
        DOMUS_AWAIT(domus_reply_write(stack, frame->piece, then));
        domt_streams_now.given += frame->piece.size;
    }
    domt_streams_now.ended++;
    if (answer->error != 0)
        domt_streams_now.error = answer->error;
    if (answer->error != 0 || is_request_of_mode(frame, "part"))
        return answer->error != 0 ? answer->error : -EBADMSG;
    if (frame->trailer.text[0] != '\0')
        return domus_reply_end(stack, &domt_trailer_type, &frame->trailer);
    return domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

DOMUS_SEQUENCE(twice, serve_frame)
{
    DOMUS_BEGIN;
    (void)parse_request(frame, message);
    ck_assert_int_eq(domus_body_read(stack, (domus_body){frame->body.channel, 0}, then), -EINVAL);
    ck_assert_int_eq(domus_body_read_add(stack, frame->body, 1), 0);
    ck_assert_int_eq(domus_body_read_add(stack, frame->body, 2), 0);
    /* wait for the first read, which gets the piece, and for the second one, which fails */
    while (domus_pending(stack) != 0) {
        DOMUS_WAIT_FIRST();
        ck_assert_int_eq(answer->error, answer->tag == 1 ? 0 : -EBUSY);
        if (answer->tag == 1)
            count_piece_of_body(frame, answer);
    }
    return reply_with_sum(stack, frame);
    DOMUS_END;
}

#define EXPECT(expected) ck_assert_int_eq(answer->error, expected)

DOMUS_SEQUENCE(wrong, serve_frame)
{
    DOMUS_BEGIN;
    (void)parse_request(frame, message);
    DOMUS_AWAIT(domus_reply_write(stack, new_slice_of_text("early"), then));
    EXPECT(-EINVAL);
    DOMUS_AWAIT(domus_reply_begin(stack, &unknown_type, NULL, then));
    EXPECT(-EOPNOTSUPP);
    snprintf(frame->line.text, sizeof frame->line.text, "head");
    DOMUS_AWAIT(domus_reply_begin(stack, &domt_line_type, &frame->line, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_reply_begin(stack, &domt_line_type, &frame->line, then));
    EXPECT(-EALREADY);
    DOMUS_AWAIT(domus_reply_write(stack, new_slice_of_text("?bad"), then));
    EXPECT(-EINVAL);
    DOMUS_AWAIT(domus_reply_write(stack, (domus_slice){NULL, 0, 0}, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_reply_write(stack, new_slice_of_text("ok"), then));
    EXPECT(0);
    ck_assert_int_eq(domus_reply_end(stack, NULL, NULL), 0);
    ck_assert_int_eq(domus_reply_end(stack, NULL, NULL), -EALREADY);
    ck_assert_int_eq(domus_reply_write(stack, new_slice_of_text("late"), then), -EALREADY);
    domt_streams_now.ended++;
    return 0;
    DOMUS_END;
}

/* Write into a stream that was lent to this actor, and check that it cannot be lent on. */
DOMUS_SEQUENCE(borrow, domus_stream)
{
    static const domt_line head = {.text = "lent"};

    DOMUS_BEGIN;
    *frame = *(const domus_stream *)message;
    DOMUS_AWAIT(domus_stream_begin(stack, *frame, &domt_line_type, &head, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_stream_write(stack, *frame, new_slice_of_text("hello"), then));
    EXPECT(0);
    /* -EINVAL, because the ask that is answered here came from an actor, and not from a peer */
    ck_assert_int_eq(domus_reply_stream(stack, frame), -EINVAL);
    return domus_reply(stack, &unknown_type, NULL);
    DOMUS_END;
}

DOMUS_SEQUENCE(lend, domus_stream)
{
    DOMUS_BEGIN;
    ck_assert_int_eq(domus_reply_stream(stack, frame), 0);
    DOMUS_ASK(domt_streams_now.far, &lend_type, frame);
    EXPECT(0);
    domt_streams_now.ended++;
    return domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

DOMUS_SEQUENCE(hang, serve_frame)
{
    DOMUS_BEGIN;
    if (parse_request(frame, message))
        return domus_forward(stack, domt_streams_now.far);
    if (is_request_of_mode(frame, "drop") || is_request_of_mode(frame, "last"))
        return reply_with_line(stack, is_request_of_mode(frame, "drop") ? "dropped" : "last");
    DOMUS_SLEEP(is_request_of_mode(frame, "wait") ? frame->number * DOMT_PIPE_MS
                                                  : 3600 * DOMT_PIPE_SECOND);
    if (answer->error == 0)
        return reply_with_line(stack, "waited");
    domt_streams_now.ended++;
    return answer->error;
    DOMUS_END;
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Handle a request: the row of requests stands for all sequences, so this handler begins the
 * sequence that the line names. */
static int on_request_begin_sequence(domus_stack *stack, void *self, const void *payload)
{
    serve_frame words;

    (void)parse_request(&words, payload);
    if (is_request_of_mode(&words, "count") || is_request_of_mode(&words, "one") ||
        is_request_of_mode(&words, "over"))
        return domi_count_begin(stack, self, payload);
    if (is_request_of_mode(&words, "echo") || is_request_of_mode(&words, "give") ||
        is_request_of_mode(&words, "part"))
        return domi_echo_begin(stack, self, payload);
    if (is_request_of_mode(&words, "twice"))
        return domi_twice_begin(stack, self, payload);
    if (is_request_of_mode(&words, "wrong"))
        return domi_wrong_begin(stack, self, payload);
    if (is_request_of_mode(&words, "lend"))
        return domi_lend_begin(stack, self, payload);
    return domi_hang_begin(stack, self, payload);
}

/* Handle a request that was forwarded to this actor, without the "f" in its line. */
static int on_forwarded_request_serve(domus_stack *stack, void *self, const void *payload)
{
    domt_line line = *(const domt_line *)payload;
    char *how = strchr(line.text, ' ');
    ck_assert_ptr_nonnull(how);
    ck_assert_int_eq(how[1], 'f');
    memmove(how + 1, how + 2, strlen(how + 1));
    return on_request_begin_sequence(stack, self, &line);
}

static uint32_t alone_mark_of_line_that_begins_with_A(const void *payload)
{
    return ((const domt_line *)payload)->text[0] == 'A' ? DOMUS_ALONE : 0;
}

static const domt_stream_options as_server = {.role = DOMUS_ROLE_SERVER, .cuts = true};
static const domus_pipeline_stage server_stages[] = {{&domt_stream_stage, &as_server},
                                                     {NULL, NULL}};
const domus_pipeline domt_stream_server = {.stages = server_stages};
static const domus_pipeline hasty = {.stages = server_stages,
                                     .request_timeout_ns = DOMT_STREAM_HASTE_MS * DOMT_PIPE_MS};

static int on_open_count(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    domt_pipes_now.channel = domus_self(stack);
    return 0;
}

static int on_close_count(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    return 0;
}

#define SERVICE(pipe)                                                                              \
    {                                                                                              \
        .name = "streams", .kind = DOMUS_CHANNELS, .pipeline = pipe,                               \
        .on_peer = (const domus_on_peer[]){{&domt_line_type, on_request_begin_sequence,            \
                                            sizeof(struct domi_count_frame), 0,                    \
                                            alone_mark_of_line_that_begins_with_A},                \
                                           {.type = NULL}},                                        \
        .on_open = {on_open_count, 0}, .on_close = {on_close_count, 0},                            \
    }

const domus_behaviour domt_stream_service = SERVICE(&domt_stream_server);
const domus_behaviour domt_stream_hasty = SERVICE(&hasty);

static const domus_behaviour far_actor = {
    .name = "far",
    .on = (const domus_on[]){
        {&domt_line_type, on_forwarded_request_serve, sizeof(struct domi_count_frame)},
        DOMUS_ON(&lend_type, borrow),
        {0}}};

domus_testkit *domt_streams_new_kit(const domus_config *config, const domus_behaviour *behaviour)
{
    domus_testkit *kit = domt_pipes_new_kit(config, behaviour, 1);

    memset(&domt_streams_now, 0, sizeof domt_streams_now);
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 2, &far_actor, NULL,
                                            &domt_streams_now.far),
                     0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

/* --- holding what is answered ----------------------------------------------------------------- */

void domt_streams_send_pieces(domus_testkit *kit, domus_peer *peer, const char *text, size_t size)
{
    size_t left = strlen(text);

    for (size_t part; left != 0; text += part, left -= part) {
        part = size == 0 || size > left ? left : size;
        ck_assert_int_eq(domus_peer_send(peer, text, part), 0);
        if (size != 0)
            ck_assert_int_eq(domus_testkit_advance(kit, DOMT_PIPE_MS), 0);
    }
}

void domt_streams_check_answers(const char *sent, bool finish, const char *answered)
{
    static const size_t sizes[] = {0, 1, 7};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        domus_testkit *kit = domt_streams_new_kit(NULL, &domt_stream_service);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domt_streams_send_pieces(kit, peer, sent, sizes[i]);
        if (finish)
            domus_peer_finish(peer);
        domt_pipes_peer_expect(kit, peer, answered);
        if (!finish)
            ck_assert_int_eq(domus_peer_expect_nothing(peer, DOMT_PIPE_SECOND), 0);
        domus_peer_finish(peer);
        ck_assert_int_eq(domus_peer_expect_end(peer, DOMT_PIPE_SECOND), 0);
        domt_pipes_end_kit(kit);
    }
}
