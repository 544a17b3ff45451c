/* Byte stages with a dialogue of their own, as TLS is one: they see bytes in the order in
 * which these leave, say why they have failed, end before the connection does, and begin in
 * bounded time. */
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include "io/wire/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND DOMT_PIPE_SECOND

/* A guard lets nothing by before "hi\n". Then '#' is wrong, '~' takes long, and '.' is the end
 * of the peer. It numbers the bytes that it wraps: "1:...". Its end is "bye\n", or "why\n" if
 * it has failed. */
typedef struct guard_state {
    bool greeted;
    bool failed;
    bool ended;
    uint32_t wrapped;
} guard_state;

static int open_guard(domus_wire *wire, void *state, const void *options)
{
    domus_wire_expect_head(wire);
    return 0;
}

static int pass_guarded(domus_wire *wire, guard_state *state, const char *bytes, size_t size)
{
    size_t used = strcspn(bytes, "#.~");

    if (used > size)
        used = size;
    int error = domus_wire_pass(wire, bytes, used);
    if (error != 0 || used == size || (used != 0 && bytes[used] == '#'))
        return error != 0 ? error : (int)used; /* what a failing call passes on is not decoded */
    if (bytes[used] == '~')
        domus_wire_yield(wire);
    if (bytes[used] == '.') {
        state->ended = true;
        domus_wire_again(wire);
    }
    state->failed = bytes[used] == '#';
    return state->failed ? -EBADMSG : (int)used + 1;
}

static int decode_guarded(domus_wire *wire, void *state_, const char *bytes, size_t size)
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
    return pass_guarded(wire, state, text, size);
}

static int wrap_numbered(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    guard_state *state = state_;
    int error = domus_wire_append_text(wire, "%u:", ++state->wrapped);

    return error != 0 ? error : domus_wire_append(wire, bytes, size);
}

static int finish_guarded(domus_wire *wire, void *state_)
{
    const guard_state *state = state_;

    return domus_wire_append(wire, state->failed ? "why\n" : "bye\n", 4);
}

static const domus_stage guard_stage = {.name = "guard",
                                        .state_size = sizeof(guard_state),
                                        .open = open_guard,
                                        .decode = decode_guarded,
                                        .wrap = wrap_numbered,
                                        .finish = finish_guarded};

static const domt_pipe_options speechless = {.no_fail = true};
static const domt_pipe_options plain;
static const domus_pipeline guarded = {
    .stages = (const domus_pipeline_stage[]){
        {&guard_stage, NULL}, {&domt_pipe_stage, &plain}, {NULL, NULL}}};
static const domus_pipeline guarded_speechless = {
    .stages = (const domus_pipeline_stage[]){
        {&guard_stage, NULL}, {&domt_pipe_stage, &speechless}, {NULL, NULL}}};

static domus_testkit *kit;
static domus_peer *peer;

static domus_config config;

static void begin(const domus_pipeline *pipeline)
{
    static domus_behaviour behaviour;

    behaviour = domt_pipe_framed;
    behaviour.pipeline = pipeline;
    domt_pipes_configure(&config);
    config.channel.head_timeout_ns = 2 * SECOND;
    kit = domt_pipes_kit(&config, &behaviour, 5);
    peer = domt_pipes_peer(kit);
}

DOMT_TEST(answers_that_wait_for_their_turn_are_wrapped_when_they_leave)
{
    begin(&guarded);
    domt_pipes_send(kit, peer, "hi\nsleep 5 a\nnow 0 b\nnow 0 c\nsleep 1 d\nnone 0 e\n");
    domt_pipes_expect(kit, peer, "1:a\n2:b\n3:c\n4:d\n5:error ENOMSG\n");
    domt_pipes_send(kit, peer, "sleep 5 a\nnow 0 huge\n");
    domt_pipes_expect(kit, peer, "6:a\n");
    domt_pipes_end(kit);
}

DOMT_TEST(byte_stage_that_fails_tells_its_peer_why)
{
    static const domus_pipeline *const both[] = {&guarded, &guarded_speechless};
    static const char *const told[] = {"1:a\n2:wrong EBADMSG\nwhy\n", "1:a\nwhy\n"};

    for (int i = 0; i < 2; i++) {
        begin(both[i]);
        domt_pipes_send(kit, peer, "hi\nsleep 5 a\n#now 0 b\n");
        domt_pipes_expect(kit, peer, told[i]);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
        domt_pipes_end(kit);
    }
}

DOMT_TEST(byte_stage_ends_the_channel_before_its_peer_does)
{
    begin(&guarded);
    domt_pipes_send(kit, peer, "hi\nnow 0 a\nsleep 5 b\nnow 0 c\n.now 0 d\n");
    domt_pipes_expect(kit, peer, "1:a\n2:b\n3:c\nbye\n");
    ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    domt_pipes_end(kit);
}

DOMT_TEST(begin_of_a_byte_stage_is_bounded)
{
    for (int i = 0; i < 3; i++) {
        begin(&guarded);
        if (i > 0)
            domt_pipes_send(kit, peer, i == 1 ? "h" : "hi\n");
        ck_assert_int_eq(domus_peer_expect_nothing(peer, SECOND), 0);
        if (i == 1)
            domt_pipes_send(kit, peer, "i"); /* bytes that drip bring no time */
        if (i == 2)
            ck_assert_int_eq(domus_peer_expect_nothing(peer, 5 * SECOND), 0);
        else
            (void)domus_peer_expect_end(peer, 3 * SECOND / 2);
        ck_assert(i == 2 || domus_peer_has_end(peer) || domus_peer_error(peer) != 0);
        if (i == 2) {
            domt_pipes_send(kit, peer, "now 0 a\n");
            domt_pipes_expect(kit, peer, "1:a\n");
        }
        domt_pipes_end(kit);
    }
}

/* --- without a runtime ------------------------------------------------------------------------ */

DOMT_TEST(stage_that_has_taken_long_gets_the_caller_a_word)
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
    ck_assert_int_eq(domi_wire_open(wire), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(domi_wire_decode(wire, &next, &size), DOMI_WIRE_BUSY);
        ck_assert(wire->yields);
        ck_assert_str_eq(next, i == 0 ? "~now 0 a\n" : "now 0 a\n");
    }
    size = 3;
    ck_assert_int_eq(domi_wire_decode(wire, &next, &size), 0);
    ck_assert(!wire->yields);
    domi_wire_free(wire);
    domi_out_clear(&out, true);
    domi_out_clear(&aside, true);
}

DOMT_SUITE(60)
