/* Bytes of which stages make no message are looked at in bounded parts, so that they do not hold
 * the thread: many calls of a stage, and many received pieces. */
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static uint32_t calls;
static uint64_t used_bytes;

/* The options are the bytes that it uses in a call; 0: all. */
static int use_bytes(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    const uint32_t *most = *(const uint32_t *const *)state;

    calls++;
    size_t used = *most != 0 && *most < size ? *most : size;
    used_bytes += used;
    return bytes[used - 1] == '.' ? domus_wire_append(wire, "done", 4) != 0 ? -ENOMEM : (int)used
                                  : (int)used;
}

static int open_user(domus_wire *wire, void *state, const void *options)
{
    *(const void **)state = options;
    return 0;
}

static int encode_nothing(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                          const void *payload)
{
    return 0;
}

static const domus_stage user_stage = {.name = "user",
                                       .state_size = sizeof(void *),
                                       .open = open_user,
                                       .decode = use_bytes,
                                       .encode = encode_nothing};

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

/* Send many bytes, and check that no step makes more than `calls_max` calls. */
static void hold_calls_of_a_step(const domus_behaviour *behaviour, uint32_t calls_max)
{
    static char bytes[SENT];
    domus_config config;

    domt_pipes_configure(&config);
    config.system.threads = 3;
    config.scheduler.messages_per_run_max = 1;
    config.scheduler.channels_runs_per_iteration = 1;
    config.io.buffers.size_bytes = 1024;
    config.io.buffers.count = 1024;
    memset(bytes, ',', sizeof bytes);
    bytes[SENT - 1] = '.';
    calls = 0;
    used_bytes = 0;
    domus_testkit *kit = domt_pipes_kit(&config, behaviour, 1);
    domus_peer *peer = domt_pipes_peer(kit);
    ck_assert_int_eq(domus_peer_send(peer, bytes, sizeof bytes), 0);
    uint32_t before, most = 0;
    do {
        before = calls;
        if (!domus_testkit_step(kit) && domus_testkit_advance(kit, DOMT_PIPE_MS) != 0)
            ck_abort_msg("the kit has failed");
        if (calls - before > most)
            most = calls - before;
    } while (used_bytes != SENT);
    ck_assert_uint_le(most, calls_max);
    ck_assert_uint_ge(most, calls_max / 4);
    domt_pipes_expect(kit, peer, "done");
    domus_peer_close(peer);
    (void)domus_testkit_stop(kit);
    domus_testkit_free(kit);
}

DOMT_TEST(calls_of_a_stage_in_one_turn_are_bounded)
{
    hold_calls_of_a_step(&byte_by_byte, 2 * 64);
}

DOMT_TEST(pieces_of_one_turn_are_bounded)
{
    hold_calls_of_a_step(&piece_by_piece, 2 * 8);
}

DOMT_SUITE(60)
