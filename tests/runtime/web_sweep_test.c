/* examples/web while allocations fail: for each n, the n-th allocation of a round of requests
 * fails. The next round is answered in full, and at the end nothing is left. (The round with the
 * failure can lose any bytes, because the simulated network needs memory, too.) The files and the
 * proxy have such tests of their own. */
#include "base/memory.h"
#include "tests/runtime/net_sweep.h"
#include "tests/support/suite.h"

#include "examples/web/web.h"

#include <stdio.h>
#include <string.h>

#define AT "127.0.0.1:80"

/* a few more allocations than a round makes */
#define ALLOCATIONS 250

/* The global variables that examples/web/main.c, and start.c of kv, would define. */
struct web_settings web_settings;
domus_system *web_system;
domus_address web_clock;
struct kv_settings kv_settings;
domus_address kv_shards[KV_SHARDS_MAX];
uint32_t kv_shard_count;

#define UPGRADE                                                                                    \
    "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                             \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
#define HOST "Host: localhost\r\n"

/* The requests of a round: each is sent on a connection of its own, and its answer must contain
 * `expected`. */
static const struct {
    const char *sent;
    const char *expected;
} deeds[] = {
    {"GET /json HTTP/1.1\r\n" HOST "\r\n", "\"message\":\"hello\""},
    {"PUT /kv/a HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", "HTTP/1.1 204 "},
    {"GET /kv/a HTTP/1.1\r\n" HOST "\r\n", "\r\n\r\nhello"},
    {"DELETE /kv/a HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 204 "},
    {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
     "3\r\nabc\r\n0\r\n\r\n"},
    {"GET /events HTTP/1.1\r\n" HOST "\r\n", "event: rate\n"},
    {"GET /socket?name=b HTTP/1.1\r\n" UPGRADE "\x81\x82\0\0\0\0hi", "b: hi"},
    {"GET /nothing HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404 "},
    {"GET /json HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 "},
};

#define ROUND (sizeof deeds / sizeof deeds[0])
/* size of the frame behind the handshake, which strlen() cannot tell because the frame contains
 * zeros */
#define SOCKET_BYTES 8u

static size_t size_of_first_part_of_request(size_t i)
{
    const char *end = strstr(deeds[i].sent, "\r\n\r\n");
    return end != NULL && strcmp(deeds[i].expected, "b: hi") == 0
               ? (size_t)(end + 4 - deeds[i].sent) + SOCKET_BYTES
               : strlen(deeds[i].sent);
}

static void make_kit_with_web_site(domt_sweep *sweep)
{
    domus_listener_config listener = {.name = "web", .address = AT, .backlog = 16};
    const struct kv_store empty = {.memory.bytes_max = UINT64_MAX};
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    /* set back, because the values that the seed draws are so low that answers would have to wait
     */
    config.channel.send_high_bytes = 1u << 20;
    config.channel.send_low_bytes = 1u << 19;
    domt_sweep_make_kit(sweep, &config, &listener, 1);
    web_system = domus_testkit_system(sweep->kit);
    kv_shard_count = 1;
    ck_assert_int_eq(domus_outside_spawn(web_system, &kv_shard, &empty, &kv_shards[0]), 0);
    ck_assert_int_eq(domus_outside_spawn(web_system, &web_clock_behaviour, NULL, &web_clock), 0);
    ck_assert_int_eq(web_set_up_site(), 0);
    ck_assert_int_eq(domus_serve(web_system, "web", &web_site, NULL, NULL), 0);
    DOMT_SWEEP_HOLD(sweep, domus_testkit_run(sweep->kit) == 0);
}

static bool has_peer_got_text(domus_peer *peer, const char *text)
{
    size_t size;
    const char *got = domus_peer_got(peer, &size);
    return size != 0 && memmem(got, size, text, strlen(text)) != NULL;
}

/* Send all requests of a round, one after the other, while an allocation fails. Returns how many
 * were answered. */
static uint32_t send_round_while_allocation_fails(domt_sweep *sweep, int64_t fail_after)
{
    domus_peer *peers[ROUND];
    uint32_t answered = 0;

    for (size_t i = 0; i < ROUND; i++)
        ck_assert_int_eq(domus_peer_connect(sweep->kit, AT, NULL, &peers[i]), 0);
    domi_memory_fail_allocation_after(fail_after, 0);
    for (size_t i = 0; i < ROUND; i++) {
        /* the result is ignored, because the send itself may find no memory */
        (void)domus_peer_send(peers[i], deeds[i].sent, size_of_first_part_of_request(i));
        DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 100 * DOMT_SWEEP_MS) == 0);
    }
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 3 * DOMT_SWEEP_SECOND) == 0);
    domi_memory_fail_allocation_after(-1, 0);
    for (size_t i = 0; i < ROUND; i++) {
        bool is_answered = has_peer_got_text(peers[i], deeds[i].expected);
        if (fail_after < 0 && !is_answered)
            printf("without its answer: %s\n", deeds[i].expected);
        answered += is_answered;
        domus_peer_close(peers[i]);
    }
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 3 * DOMT_SWEEP_SECOND) == 0);
    return answered;
}

DOMT_TEST(an_allocation_that_fails_costs_one_request)
{
    uint32_t harmed = 0;

    web_settings = (struct web_settings){.body_max_bytes = 1u << 20,
                                         .value_max_bytes = 1u << 20,
                                         .gathered_max_bytes = 1u << 20,
                                         .tick_ns = DOMT_SWEEP_SECOND,
                                         .events_max = 4,
                                         .gzip_streams = 2,
                                         .checks_host = true};
    rooms_settings =
        (struct rooms_settings){.slow_bytes = 65536, .room_count = 1, .rooms = {"lobby"}};
    kv_settings = (struct kv_settings){.answer_max_bytes = 1u << 28,
                                       .value_max_bytes = 1u << 28,
                                       .command_max_bytes = 1u << 30,
                                       .arguments_max = 65536,
                                       .incomplete_max_bytes = 1u << 28};
    kv_make_index_of_command_names();
    for (int64_t n = 0; n < ALLOCATIONS; n++) {
        domt_sweep sweep = {.seed = 8, .is_relayed = true};
        domi_random_init(&sweep.random, sweep.seed);
        make_kit_with_web_site(&sweep);
        bool is_harmed = send_round_while_allocation_fails(&sweep, n) != ROUND;
        harmed += is_harmed;
        /* with more allocations than ALLOCATIONS, the sweep would end too early */
        ck_assert(!is_harmed || n + 1 < ALLOCATIONS);
        DOMT_SWEEP_HOLD(&sweep, send_round_while_allocation_fails(&sweep, -1) == ROUND);
        ck_assert_msg(domt_sweep_end_and_check_seed(&sweep) == 0, "allocation %d", (int)n);
        web_free_site();
    }
    ck_assert_uint_gt(harmed, 100);
}

DOMT_SUITE(600)
