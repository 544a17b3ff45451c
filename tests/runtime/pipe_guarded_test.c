/* Byte stages, and how many bytes they handle at a time. A byte stage with a dialogue of its own,
 * as TLS has, sees bytes in the order in which they leave, says why it has failed, ends its output
 * before the connection ends, and begins in bounded time. Bytes that make no message are handled in
 * bounded parts, by calls and by pieces, so that they do not keep the thread busy. */
#include "io/wire/wire.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- byte stages with a dialogue -------------------------------------------------------------- */

#define SECOND DOMT_PIPE_SECOND

/* A byte stage that waits for "hi\n" before it passes bytes on. Then a '#' is an error, a '~' takes
 * long, and a '.' is the end of the peer. The stage numbers the bytes that it wraps, as "1:...",
 * and its own last bytes are "bye\n", or "why\n" after an error. */
typedef struct guard_state {
    bool greeted;
    bool failed;
    bool ended;
    uint32_t wrapped;
} guard_state;

static int open_guard_stage(domus_wire *wire, void *state, const void *options)
{
    domus_wire_expect_head(wire);
    return 0;
}

static int pass_bytes_up_to_mark(domus_wire *wire, guard_state *state, const char *bytes,
                                 size_t size)
{
    size_t used = strcspn(bytes, "#.~");

    if (used > size)
        used = size;
    int error = domus_wire_pass(wire, bytes, used);
    if (error != 0 || used == size || (used != 0 && bytes[used] == '#'))
        /* bytes that the stage passes on in a call that fails are not decoded */
        return error != 0 ? error : (int)used;
    if (bytes[used] == '~')
        domus_wire_yield(wire);
    if (bytes[used] == '.') {
        state->ended = true;
        domus_wire_again(wire);
    }
    state->failed = bytes[used] == '#';
    return state->failed ? -EBADMSG : (int)used + 1;
}

static int decode_by_guard(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    guard_state *state = state_;
    char text[4096] = "";

    if (state->ended) {
        domus_wire_last(wire);
        return (int)size;
    }
    if (!state->greeted && size < 3) {
        domus_wire_expect_head(wire);
        return 0;
    }
    if (!state->greeted) {
        state->greeted = true;
        return memcmp(bytes, "hi\n", 3) == 0 ? 3 : -EPROTO;
    }
    if (size >= sizeof text)
        size = sizeof text - 1;
    memcpy(text, bytes, size);
    return pass_bytes_up_to_mark(wire, state, text, size);
}

static int encode_with_number(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    guard_state *state = state_;
    int error = domus_wire_append_text(wire, "%u:", ++state->wrapped);
    return error != 0 ? error : domus_wire_append(wire, bytes, size);
}

static int finish_with_last_words(domus_wire *wire, void *state_)
{
    const guard_state *state = state_;
    return domus_wire_append(wire, state->failed ? "why\n" : "bye\n", 4);
}

static const domus_stage guard_stage = {.name = "guard",
                                        .state_size = sizeof(guard_state),
                                        .open = open_guard_stage,
                                        .decode = decode_by_guard,
                                        .wrap = encode_with_number,
                                        .finish = finish_with_last_words};

static const domt_pipe_options speechless = {.no_fail = true};
static const domt_pipe_options plain;
static const domus_pipeline guarded = {
    .stages = (const domus_pipeline_stage[]){
        {&guard_stage, NULL}, {&domt_pipe_stage, &plain}, {NULL, NULL}}};
static const domus_pipeline guarded_speechless = {
    .stages = (const domus_pipeline_stage[]){
        {&guard_stage, NULL}, {&domt_pipe_stage, &speechless}, {NULL, NULL}}};

static domus_peer *peer;

static domus_config config;

static void begin_with_pipeline(const domus_pipeline *pipeline)
{
    static domus_behaviour behaviour;
    behaviour = domt_pipe_framed;
    behaviour.pipeline = pipeline;
    domt_pipes_make_config(&config);
    config.channel.head_timeout_ns = 2 * SECOND;
    peer = domt_pipe_begin_kit(&config, &behaviour, 5);
}

DOMT_TEST(answers_that_wait_for_their_turn_are_wrapped_when_they_leave)
{
    begin_with_pipeline(&guarded);
    domt_pipe_peer_send_and_expect(peer, "hi\nsleep 5 a\nnow 0 b\nnow 0 c\nsleep 1 d\nnone 0 e\n",
                                   "1:a\n2:b\n3:c\n4:d\n5:error ENOMSG\n");
    domt_pipe_peer_send_and_expect(peer, "sleep 5 a\nnow 0 huge\n", "6:a\n");
    domt_pipe_end_kit();
}

DOMT_TEST(byte_stage_that_fails_tells_its_peer_why)
{
    static const domus_pipeline *const both[] = {&guarded, &guarded_speechless};
    static const char *const told[] = {"1:a\n2:wrong EBADMSG\nwhy\n", "1:a\nwhy\n"};

    for (int i = 0; i < 2; i++) {
        begin_with_pipeline(both[i]);
        domt_pipe_peer_send_and_expect(peer, "hi\nsleep 5 a\n#now 0 b\n", told[i]);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
        domt_pipe_end_kit();
    }
}

DOMT_TEST(byte_stage_may_end_the_channel_before_the_peer_does)
{
    begin_with_pipeline(&guarded);
    domt_pipe_peer_send_and_expect(peer, "hi\nnow 0 a\nsleep 5 b\nnow 0 c\n.now 0 d\n",
                                   "1:a\n2:b\n3:c\nbye\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipe_end_kit();
}

DOMT_TEST(time_for_the_begin_of_a_byte_stage_is_bounded)
{
    for (int i = 0; i < 3; i++) {
        begin_with_pipeline(&guarded);
        if (i > 0)
            domt_pipe_peer_send_text(peer, i == 1 ? "h" : "hi\n");
        ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
        if (i == 1)
            /* a peer that sends single bytes does not get more time for the begin */
            domt_pipe_peer_send_text(peer, "i");
        if (i == 2)
            ck_assert_int_eq(domus_peer_expect_nothing(peer, 5 * SECOND), 0);
        else
            (void)domus_peer_expect_end(peer, 3 * SECOND / 2);
        ck_assert(i == 2 || domus_peer_has_end(peer) || domus_peer_error(peer) != 0);
        if (i == 2) {
            domt_pipe_peer_send_and_expect(peer, "now 0 a\n", "1:a\n");
        }
        domt_pipe_end_kit();
    }
}

/* --- without a runtime ------------------------------------------------------------------------ */

DOMT_TEST(decoding_yields_after_a_stage_that_has_taken_long)
{
    static const char bytes[] = "hi\n~~now 0 a\n";
    const char *next = bytes;
    size_t size = sizeof bytes - 1;
    domi_out out = {0};
    domi_out aside = {0};
    bool last = false;
    domus_wire *wire = domi_wire_new(&guarded, NULL, 0);

    wire->out = &out;
    wire->aside = &aside;
    wire->last = &last;
    ck_assert_int_eq(domi_wire_open_stages(wire), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domi_wire_decode_next_message(wire, &next, &size), DOMI_WIRE_BUSY);
        ck_assert(wire->yields);
        ck_assert_str_eq(next, i == 0 ? "~now 0 a\n" : "now 0 a\n");
    }
    size = 3;
    ck_assert_int_eq(domi_wire_decode_next_message(wire, &next, &size), 0);
    ck_assert(!wire->yields);
    domi_wire_free(wire);
    domi_out_remove_all(&out, true);
    domi_out_remove_all(&aside, true);
}

/* --- bytes of which no message is made -------------------------------------------------------- */

static uint32_t calls;
static uint64_t used_bytes;

/* A decode that uses as many bytes in each call as its options say; 0: all. */
static int decode_as_many_as_options_say(domus_wire *wire, void *state, const char *bytes,
                                         size_t size)
{
    const uint32_t *most = *(const uint32_t *const *)state;
    calls++;
    size_t used = *most != 0 && *most < size ? *most : size;
    used_bytes += used;
    return bytes[used - 1] == '.' ? domus_wire_append(wire, "done", 4) != 0 ? -ENOMEM : (int)used
                                  : (int)used;
}

static int keep_options_as_state(domus_wire *wire, void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static int encode_no_bytes(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                           const void *payload)
{
    return 0;
}

static const domus_stage user_stage = {.name = "user",
                                       .state_size = sizeof(void *),
                                       .open = keep_options_as_state,
                                       .decode = decode_as_many_as_options_say,
                                       .encode = encode_no_bytes};

static const uint32_t one = 1, all = 0;

#define CHANNEL(options)                                                                           \
    {                                                                                              \
        .name = "user", .kind = DOMUS_CHANNELS, .pipeline = &(const domus_pipeline)                \
        {                                                                                          \
            .stages = (const domus_pipeline_stage[])                                               \
            {                                                                                      \
                {&user_stage, options}, {NULL, NULL},                                              \
            }                                                                                      \
        }                                                                                          \
    }
static const domus_behaviour byte_by_byte = CHANNEL(&one);
static const domus_behaviour piece_by_piece = CHANNEL(&all);

#define SENT 100000u

/* Send many bytes, and check that no step of the kit makes more than `calls_max` calls of the
 * stage. */
static void check_stage_calls_of_each_step(const domus_behaviour *behaviour, uint32_t calls_max)
{
    static char bytes[SENT];

    domt_pipes_make_config(&config);
    config.system.threads = 3;
    config.scheduler.messages_per_run_max = 1;
    config.scheduler.channels_runs_per_iteration = 1;
    config.io.buffers.size_bytes = 1024;
    config.io.buffers.count = 1024;
    memset(bytes, ',', sizeof bytes);
    bytes[SENT - 1] = '.';
    calls = 0;
    used_bytes = 0;
    peer = domt_pipe_begin_kit(&config, behaviour, 1);
    ck_assert_int_eq(domus_peer_send(peer, bytes, sizeof bytes), 0);
    uint32_t before, most = 0;
    do {
        before = calls;
        if (!domus_testkit_step(domt_pipe_kit) &&
            domus_testkit_advance(domt_pipe_kit, DOMT_PIPE_MS) != 0)
            ck_abort_msg("the kit has failed");
        if (calls - before > most)
            most = calls - before;
    } while (used_bytes != SENT);
    ck_assert_uint_le(most, calls_max);
    ck_assert_uint_ge(most, calls_max / 4);
    domt_pipe_peer_expect_text(peer, "done");
    domus_peer_close(peer);
    domt_pipe_free_kit();
}

DOMT_TEST(calls_of_a_stage_in_one_turn_are_bounded)
{
    check_stage_calls_of_each_step(&byte_by_byte, 2 * 64);
}

DOMT_TEST(pieces_decoded_in_one_turn_are_bounded)
{
    check_stage_calls_of_each_step(&piece_by_piece, 2 * 8);
}

DOMT_SUITE(60)
