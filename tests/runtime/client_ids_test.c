/* Asks to the address of a channel whose protocol gives each ask an id. The peer of the channel is
 * a script of the test, which answers in any order, and each answer reaches exactly its own ask. */
#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND DOMT_NET_SECOND

/* --- the protocol: "ID:TEXT\n" each way; the answer "ID!\n" is an error ----------------------- */

static int decode_line_with_id(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    const char *at = bytes;
    uint64_t id = 0;

    if (end == NULL)
        return 0;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        id = id * 10 + (uint64_t)(*at - '0');
    if (*at == '!')
        return domus_wire_answer_error(wire, id, -EREMOTEIO) ? (int)(end - bytes) + 1 : -ENOMEM;
    domus_packet *packet = domus_wire_answer(wire, &domus_packet_type, id);
    if (packet == NULL)
        return -ENOMEM;
    packet->bytes = domus_wire_slice(wire, at + 1, (size_t)(end - at) - 1);
    return (int)(end - bytes) + 1;
}

static int encode_line_with_id(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                               const void *payload)
{
    const domus_packet *packet = payload;

    if (domus_slice_equals(packet->bytes, "bad", 3))
        return -EINVAL;
    int error = domus_wire_append_text(wire, "%" PRIu64 ":", id);
    if (error == 0)
        error = domus_wire_append_slice(wire, packet->bytes);
    return error != 0 ? error : domus_wire_append(wire, "\n", 1);
}

static const domus_stage stage = {
    .name = "numbered", .decode = decode_line_with_id, .encode = encode_line_with_id};
static const domus_pipeline_stage stages[] = {{&stage, NULL}, {NULL, NULL}};
static const domus_pipeline numbered = {.stages = stages,
                                        .encodes = domt_packets,
                                        .by_id = true,
                                        .inflight_max = 8192,
                                        .answer_timeout_ns = 10 * SECOND};

static domt_line_client client;

/* Send an ask by a new probe, so that the probe can only get the answer to this ask. */
static domus_probe *ask_by_new_probe(const char *text)
{
    domus_probe *probe = domt_new_probe(client.kit);

    domt_ask_line(probe, client.channel, text);
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    return probe;
}

static void answer_by_peer(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
    domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
}

static void expect_peer_received(const char *text)
{
    domt_net_check_ok(client.kit, domus_peer_expect(client.peer, text, strlen(text), SECOND));
}

static void expect_no_answer_for_probe(domus_probe *probe)
{
    domt_net_check_ok(client.kit, domus_probe_expect_nothing(probe, SECOND / 100));
}

DOMT_TEST(an_answer_goes_to_the_ask_with_its_id)
{
    domus_probe *probes[3];

    domt_line_client_begin(&client, &numbered, NULL);
    for (int i = 0; i < 3; i++)
        probes[i] = ask_by_new_probe((char[]){(char)('a' + i), '\0'});
    expect_peer_received("0:a\n1:b\n2:c\n");
    answer_by_peer("1:two\n");
    domt_expect_line(client.kit, probes[1], "two");
    expect_no_answer_for_probe(probes[0]);
    answer_by_peer("2!\n0:one\n");
    domt_expect_line(client.kit, probes[0], "one");
    domt_net_check_ok(client.kit, domus_probe_expect_error(probes[2], -EREMOTEIO, SECOND));
    domt_line_client_end(&client);
}

DOMT_TEST(answers_with_unknown_ids_are_dropped)
{
    domt_line_client_begin(&client, &numbered, NULL);
    domus_probe *probe = ask_by_new_probe("a");
    domus_probe *failed =
        /* this ask has got an id, but its line could not be encoded, so it was not sent to the peer
         */
        ask_by_new_probe("bad");
    expect_peer_received("0:a\n");
    domt_net_check_ok(client.kit, domus_probe_expect_error(failed, -EINVAL, SECOND));
    answer_by_peer("7:x\n1:x\n16:x\n4294967296:x\n4294967295:x\n");
    expect_no_answer_for_probe(probe);
    answer_by_peer("0:first\n0:second\n");
    domt_expect_line(client.kit, probe, "first");
    ck_assert_uint_eq(domt_profile_of_kit(client.kit).late_replies, 6);
    domus_probe *other = ask_by_new_probe("b");
    expect_peer_received("2:b\n");
    answer_by_peer("2:still\n");
    domt_expect_line(client.kit, other, "still");
    domt_line_client_end(&client);
}

DOMT_TEST(late_answer_to_an_expired_ask_is_dropped_by_its_id)
{
    domt_line_client_begin(&client, &numbered, NULL);
    domt_ask_line_within(client.probe, client.channel, "a", SECOND / 10);
    domus_probe *other = ask_by_new_probe("b");
    expect_peer_received("0:a\n1:b\n");
    domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -ETIMEDOUT, SECOND));
    answer_by_peer("0:late\n1:two\n");
    domt_expect_line(client.kit, other, "two");
    ck_assert_uint_eq(domt_profile_of_kit(client.kit).late_replies, 1);
    domt_line_client_end(&client);
}

/* The connection is reset when its oldest open ask is 10 s old, in whatever order the others were
 * answered. */
DOMT_TEST(answer_time_out_is_that_of_the_oldest_ask)
{
    for (int first = 0; first < 2; first++) {
        domt_line_client_begin(&client, &numbered, NULL);
        domus_probe *probes[2];
        probes[0] = ask_by_new_probe("a");
        domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, 4 * SECOND));
        probes[1] = ask_by_new_probe("b");
        answer_by_peer(first == 0 ? "0:x\n" : "1:x\n");
        domt_expect_line(client.kit, probes[first], "x");
        uint64_t left = first == 0 ? 10 : 6;
        domt_net_check_ok(
            client.kit, domus_probe_expect_nothing(probes[1 - first], left * SECOND - SECOND / 10));
        domt_net_check_ok(client.kit,
                          domus_probe_expect_error(probes[1 - first], -EPIPE, SECOND / 5));
        domt_net_check_ok(client.kit, domus_peer_expect_reset(client.peer, SECOND));
        domt_line_client_end(&client);
    }
}

/* --- many ------------------------------------------------------------------------------------- */

#define MANY 5000u

static void send_many_asks(domus_probe *probe)
{
    for (uint32_t i = 0; i < MANY; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i);
        domt_ask_line(probe, client.channel, text);
        if (i % 100 == 99)
            domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
    }
}

/* Shuffle the numbers of the asks, so that they are answered in a random order. */
static void shuffle_order_of_answers(uint32_t *numbers, uint64_t seed)
{
    for (uint32_t i = 0; i < MANY; i++)
        numbers[i] = i;
    for (uint32_t i = MANY - 1; i > 0; i--) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint32_t other = (uint32_t)((seed >> 33) % (i + 1));
        uint32_t number = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = number;
    }
}

static void answer_ask_of_number(uint32_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%u:%u\n", number, number);
    domt_net_check_ok(client.kit, domus_peer_send(client.peer, text, strlen(text)));
}

DOMT_TEST(many_asks_are_answered_in_an_order_of_chance)
{
    static uint32_t numbers[MANY];
    char text[16];

    for (uint32_t round = 0; round < 3; round++) {
        domt_line_client_begin(&client, &numbered, NULL);
        send_many_asks(client.probe);
        shuffle_order_of_answers(numbers, round);
        for (uint32_t i = 0; i < MANY; i++) {
            answer_ask_of_number(round == 1 ? MANY - 1 - i : numbers[i]);
            if (i % 100 == 99)
                domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
        }
        for (uint32_t i = 0; i < MANY; i++) {
            snprintf(text, sizeof text, "%u", round == 1 ? MANY - 1 - i : numbers[i]);
            domt_expect_line(client.kit, client.probe, text);
        }
        domt_line_client_end(&client);
    }
}

/* The oldest asks stay unanswered while thousands of younger ones are answered; then their time-out
 * ends the connection. */
DOMT_TEST(oldest_unanswered_ask_times_out_behind_thousands)
{
    for (int round = 0; round < 2; round++) {
        domt_line_client_begin(&client, &numbered, NULL);
        domus_probe *hung = ask_by_new_probe("hung");
        domus_probe *next = ask_by_new_probe("next");
        for (uint32_t i = 2; i < 2000; i++) {
            domt_ask_line(client.probe, client.channel, "x");
            domt_net_check_ok(client.kit, domus_testkit_run(client.kit));
            if (i == 2)
                continue; /* this ask stays unanswered, too */
            char text[32];
            snprintf(text, sizeof text, "%u:y\n", i);
            answer_by_peer(text);
            domt_expect_line(client.kit, client.probe, "y");
        }
        if (round == 0) {
            answer_by_peer("0:z\n");
            domt_expect_line(client.kit, hung, "z");
        }
        domus_probe *last = ask_by_new_probe("last");
        domus_peer_reset(client.peer);
        if (round != 0)
            domt_net_check_ok(client.kit, domus_probe_expect_error(hung, -EPIPE, SECOND));
        domt_net_check_ok(client.kit, domus_probe_expect_error(next, -EPIPE, SECOND));
        domt_net_check_ok(client.kit, domus_probe_expect_error(last, -EPIPE, SECOND));
        domt_net_check_ok(client.kit, domus_probe_expect_error(client.probe, -EPIPE, SECOND));
        domt_line_client_end(&client);
    }
}

/* Asks 0 and 16 stay unanswered while younger asks are answered and the number of lists of asks
 * grows (asked.h). Each other ask gets its own answer. */
DOMT_TEST(unanswered_asks_are_kept_when_the_lists_of_asks_grow)
{
    domus_probe *probes[64] = {NULL};
    char text[32];

    domt_line_client_begin(&client, &numbered, NULL);
    for (uint32_t i = 0; i < 64; i++) {
        snprintf(text, sizeof text, "%u", i);
        probes[i] = ask_by_new_probe(text);
        if (i % 16 != 0 && i < 32) {
            snprintf(text, sizeof text, "%u:y\n", i);
            answer_by_peer(text);
            domt_expect_line(client.kit, probes[i], "y");
        }
    }
    for (uint32_t i = 0; i < 64; i++) {
        if (i % 16 != 0 && i < 32)
            continue;
        snprintf(text, sizeof text, "%u:z%u\n", i, i);
        answer_by_peer(text);
        snprintf(text, sizeof text, "z%u", i);
        domt_expect_line(client.kit, probes[i], text);
    }
    domt_line_client_end(&client);
}

/* The next time-out is that of the oldest open ask. It is ask 32, far behind the first unanswered
 * one, and not ask 48 of the same list. */
DOMT_TEST(time_out_is_of_oldest_open_ask_behind_answered_ones)
{
    domus_probe *hung[3] = {NULL};
    char text[32];

    domt_line_client_begin(&client, &numbered, NULL);
    for (uint32_t i = 0; i <= 48; i++) {
        if (i == 48)
            domt_net_check_ok(client.kit, domus_testkit_advance(client.kit, 4 * SECOND));
        domus_probe *probe = ask_by_new_probe("x");
        if (i == 0 || i == 32 || i == 48) {
            hung[i == 0 ? 0 : i / 16 - 1] = probe;
            continue;
        }
        snprintf(text, sizeof text, "%u:y\n", i);
        answer_by_peer(text);
        domt_expect_line(client.kit, probe, "y");
    }
    answer_by_peer("0:z\n");
    domt_expect_line(client.kit, hung[0], "z");
    domt_net_check_ok(client.kit, domus_probe_expect_nothing(hung[1], 5 * SECOND));
    domt_net_check_ok(client.kit, domus_probe_expect_error(hung[1], -EPIPE, 2 * SECOND));
    domt_net_check_ok(client.kit, domus_probe_expect_error(hung[2], -EPIPE, SECOND));
    domt_line_client_end(&client);
}

DOMT_SUITE(120)
