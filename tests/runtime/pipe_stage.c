/* The stage of the tests of pipelines, and the kit in which it runs. */
#include "tests/runtime/pipes.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The stage of the service in tests/runtime/pipes.h: each line is a message, and signs at its
 * beginning say of which kind the message is. */

static void release_packet(void *payload)
{
    domus_slice_free(((domus_packet *)payload)->bytes);
}

#define PACKET_TYPE(text)                                                                          \
    {                                                                                              \
        .name = text, .size = sizeof(domus_packet), .release = release_packet                      \
    }
static const domus_type rowless_type = PACKET_TYPE("rowless");
const domus_type domt_note_type = PACKET_TYPE("note");

static const domt_pipe_options no_options;

static int open_pipe_stage(domus_wire *wire, void *state, const void *options_)
{
    const domt_pipe_options *options = options_ != NULL ? options_ : &no_options;
    *(const domt_pipe_options **)state = options;
    return options->hello != NULL ? domus_wire_append(wire, options->hello, strlen(options->hello))
                                  : 0;
}

static int decode_line_by_pipe_stage(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    const domt_pipe_options *options = *(const domt_pipe_options **)state;
    const char *end = memchr(bytes, '\n', size);
    uint64_t id = DOMUS_NO_ID;
    const char *from = bytes;
    domus_packet *packet;

    if (end == NULL)
        return 0;
    if (options->has_ids) {
        /* strtoull() cannot be used, because the bytes have no zero byte at the end */
        for (id = 0; *from != ':'; from++)
            id = id * 10 + (uint64_t)(*from - '0');
        from++;
    }
    if (from == end)
        return 1; /* an empty line makes no message */
    const char *kind = from;
    while (*kind == '!' || *kind == '+') /* the loop stops at the end of the line at the latest */
        kind++;
    if (*from == '&' && domus_wire_append(wire, "&\n", 2) != 0)
        return -ENOMEM;
    if (*from == '%')
        packet = domus_wire_notice(wire, &domt_note_type);
    else
        packet = domus_wire_request(wire, *kind == '?' ? &rowless_type : &domus_packet_type, id);
    if (packet == NULL)
        return -ENOMEM;
    if (packet->bytes.page != NULL || packet->bytes.size != 0)
        /* the payload of a new message must be zeroed, whatever its envelope was used for before */
        abort();
    packet->bytes = domus_wire_slice(wire, from, (size_t)(end - from));
    return *from == '$' ? -EPROTO : (int)(end - bytes) + 1;
}

static int append_id_of_message(domus_wire *wire, const void *state, uint64_t id)
{
    const domt_pipe_options *options = *(const domt_pipe_options *const *)state;
    return options->has_ids && id != DOMUS_NO_ID ? domus_wire_append_text(wire, "%" PRIu64 ":", id)
                                                 : 0;
}

/* Append more bytes to the output than one buffer holds. */
static int append_huge_answer(domus_wire *wire)
{
    char bytes[1000];
    int error = 0;

    for (size_t i = 0; i < DOMT_PIPE_HUGE / sizeof bytes && error == 0; i++) {
        memset(bytes, (int)('a' + i % 26), sizeof bytes);
        error = domus_wire_append(wire, bytes, sizeof bytes);
    }
    return error;
}

static int encode_line_by_pipe_stage(domus_wire *wire, void *state, uint64_t id,
                                     const domus_type *type, const void *payload)
{
    const domus_packet *packet = payload;
    int error = append_id_of_message(wire, state, id);

    if (error != 0 || (type != &domus_packet_type && type != &domt_note_type))
        return error != 0 ? error : -EOPNOTSUPP;
    error = domus_slice_equals(packet->bytes, "huge", 4)
                ? append_huge_answer(wire)
                : domus_wire_append_slice(wire, packet->bytes);
    if (error == 0 && memchr(domus_slice_data(packet->bytes), '\n', packet->bytes.size) != NULL)
        error = -EINVAL; /* after the error the library takes the appended bytes back */
    return error != 0 ? error : domus_wire_append(wire, "\n", 1);
}

static int encode_failure_by_pipe_stage(domus_wire *wire, void *state, uint64_t id,
                                        const domus_type *request, int error)
{
    int result = append_id_of_message(wire, state, id);

    if ((*(const domt_pipe_options **)state)->no_fail)
        return error;
    if (result != 0)
        return result;
    return domus_wire_append_text(wire, "%s %s\n", request != NULL ? "error" : "wrong",
                                  strerrorname_np(-error));
}

const domus_stage domt_pipe_stage = {.name = "pipe",
                                     .state_size = sizeof(const domt_pipe_options *),
                                     .open = open_pipe_stage,
                                     .decode = decode_line_by_pipe_stage,
                                     .encode = encode_line_by_pipe_stage,
                                     .fail = encode_failure_by_pipe_stage};

static const domt_pipe_options with_ids = {.has_ids = true};
const domus_pipeline domt_pipe_by_id = {
    .stages = (const domus_pipeline_stage[]){{&domt_pipe_stage, &with_ids}, {NULL, NULL}},
    .by_id = true};

/* --- pipe kit --------------------------------------------------------------------------------- */

/* Functions that use the service of tests/runtime/pipes.h in the kit that was made last. */

domus_system *domt_pipe_system_of_kit(void)
{
    return domus_testkit_system(domt_pipe_kit);
}

domus_peer *domt_pipe_begin_kit(const domus_config *config, const domus_behaviour *behaviour,
                                uint64_t seed)
{
    return domt_pipes_connect_peer(domt_pipes_new_kit(config, behaviour, seed));
}

domus_peer *domt_pipe_begin_kit_with_pipeline(const domus_pipeline *pipeline)
{
    /* static, because the kit uses the behaviour until it is freed */
    static domus_behaviour behaviour;
    behaviour = domt_pipe_framed;
    behaviour.pipeline = pipeline;
    return domt_pipe_begin_kit(NULL, &behaviour, 1);
}

domus_config domt_pipe_default_config(void)
{
    domus_config config;
    domt_pipes_make_config(&config);
    return config;
}

domus_peer *domt_pipe_connect_peer(void)
{
    return domt_pipes_connect_peer(domt_pipe_kit);
}

void domt_pipe_peer_send_text(domus_peer *peer, const char *text)
{
    domt_kit_peer_send(peer, text);
}

void domt_pipe_peer_expect_text(domus_peer *peer, const char *text)
{
    domt_kit_peer_expect(domt_pipe_kit, peer, text);
}

void domt_pipe_peer_send_and_expect(domus_peer *peer, const char *said, const char *heard)
{
    domt_pipe_peer_send_text(peer, said);
    domt_pipe_peer_expect_text(peer, heard);
}

void domt_pipe_run_kit(void)
{
    ck_assert_int_eq(domus_testkit_run(domt_pipe_kit), 0);
}

void domt_pipe_pass_time(uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(domt_pipe_kit, ns), 0);
}

void domt_pipe_stop_channel(void)
{
    ck_assert_int_eq(domus_outside_stop(domt_pipe_system_of_kit(), domt_pipes_now.channel), 0);
}

void domt_pipe_end_kit(void)
{
    domt_pipes_end_kit(domt_pipe_kit);
}

void domt_pipe_close_peer_and_end_kit(domus_peer *peer)
{
    domus_peer_close(peer);
    domt_pipe_end_kit();
}

void domt_pipe_finish_peer_and_end_kit(domus_peer *peer)
{
    domus_peer_finish(peer);
    ck_assert_int_eq(domus_peer_expect_end(peer, DOMT_PIPE_SECOND), 0);
    domt_pipe_end_kit();
}

void domt_pipe_expect_end_and_end_kit(domus_peer *peer)
{
    ck_assert_int_eq(domus_peer_expect_end(peer, DOMT_PIPE_SECOND), 0);
    domt_pipe_close_peer_and_end_kit(peer);
}

void domt_pipe_free_kit(void)
{
    (void)domus_testkit_stop(domt_pipe_kit);
    domus_testkit_free(domt_pipe_kit);
}
