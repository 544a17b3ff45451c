/* Attacks on a server of HTTP/2, each of which made servers fail in the past: the server ends the
 * connection or limits what it stores for it, and a good client beside it is answered.
 *
 * The printed table has the good client's latencies alone and beside the attack, which are
 * meaningful only on an idle machine; in the long form (DOMT_LONG) they are medians of five rounds,
 * and a p99 of more than 1.5 times is reported as missed. DOMT_ROW=N runs one row. */
#include "tests/support/process.h"
#include "tests/support/sanitizer.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/h2_attack.h"
#include "tests/system/h2_server.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB          (UINT64_C(1) << 20)
#define MOST_MIB     24 /* MiB by which the server's memory may grow in an attack */
#define ROUNDS_MAX   9u
#define END_MS       4000u /* ms within which the server has to end an attacker's connection */
#define WHOLE        (DOMT_H2_END_STREAM | DOMT_H2_END_HEADERS)
#define LARGEST      0x7fffffffu
#define FRAMES       100u /* usual number of frames in a round of an attack */
#define STREAMS_MAX  100u /* largest number of open streams at a time that a test uses */
#define HEAD_CLAIMED 2000u

static domt_h2_server server;

/* Returns the number of the attacker's next stream. */
static uint32_t take_next_stream(domt_h2_attacker *attacker)
{
    attacker->stream += 2;
    return attacker->stream - 2;
}

static void add_request(domt_h2_attacker *attacker, uint8_t flags, const char *fields)
{
    domt_h2_add_headers_frame(&attacker->out, flags, take_next_stream(attacker), fields);
}

/* --- floods ----------------------------------------------------------------------------------- */

static void send_requests_and_resets(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t stream = take_next_stream(attacker);
        domt_h2_add_headers_frame(&attacker->out, WHOLE, stream, DOMT_H2_GET);
        domt_h2_add_number_frame(&attacker->out, DOMT_H2_RST_STREAM, stream, DOMT_H2_CANCEL);
    }
}

/* Make the server send resets: a window that is too large ends each request. */
static void overflow_window_of_each_stream(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t stream = take_next_stream(attacker);
        domt_h2_add_headers_frame(&attacker->out, WHOLE, stream, DOMT_H2_GET);
        domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, stream, LARGEST);
    }
}

/* Make the server send resets by malformed requests, each of which is an error of its stream. */
static void send_malformed_requests(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        add_request(attacker, WHOLE, DOMT_H2_GET "connection: close\n");
}

/* Send a block of fields that never ends, in CONTINUATION frames. */
static void send_endless_continuations(domt_h2_attacker *attacker)
{
    static domt_h2_bytes block;

    block.size = 0;
    domt_h2_add_field_block(&block, "x-more: %1000\n");
    if (attacker->round == 0)
        add_request(attacker, DOMT_H2_END_STREAM, DOMT_H2_GET);
    for (uint32_t i = 0; i < 50; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_CONTINUATION, 0, 1, block.data, block.size);
}

static void send_empty_continuations(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        add_request(attacker, DOMT_H2_END_STREAM, DOMT_H2_GET);
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_CONTINUATION, 0, 1, NULL, 0);
}

static void send_many_settings(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_settings_frame(&attacker->out, DOMT_H2_MAX_STREAMS, i);
}

static void send_many_pings(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_PING, 0, 0, "a ping..", 8);
}

static void send_empty_data(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        add_request(attacker, DOMT_H2_END_HEADERS, DOMT_H2_POST);
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_DATA, 0, 1, NULL, 0);
}

/* Send DATA frames that are only padding: they use the window, and contain nothing. */
static void send_padding(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        add_request(attacker, DOMT_H2_END_HEADERS, DOMT_H2_POST);
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_DATA, DOMT_H2_PADDED, 1, "\1\0", 2);
}

static void send_empty_heads(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        add_request(attacker, WHOLE, "");
}

static void open_window_by_single_bytes(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, 0, 1);
}

static void send_many_priorities(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_PRIORITY, 0, take_next_stream(attacker),
                          "\0\0\0\0\xff", 5);
}

static void send_many_priority_updates(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        domt_h2_add_frame_head(&attacker->out, DOMT_H2_PRIORITY_UPDATE, 0, 0, 7);
        domt_h2_add_u32(&attacker->out, take_next_stream(attacker));
        domt_h2_add_bytes(&attacker->out, "u=1", 3);
    }
}

static void send_frames_of_unknown_type(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_UNKNOWN_TYPE, 0, 0, "unknown", 7);
}

static void send_streams_that_depend_on_themselves(domt_h2_attacker *attacker)
{
    for (uint32_t i = 0; i < FRAMES; i++) {
        uint32_t stream = take_next_stream(attacker);
        domt_h2_add_frame_head(&attacker->out, DOMT_H2_PRIORITY, 0, stream, 5);
        domt_h2_add_u32(&attacker->out, stream);
        domt_h2_add_bytes(&attacker->out, "", 1);
    }
}

static void overflow_window_of_connection(domt_h2_attacker *attacker)
{
    domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, 0, LARGEST);
    domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, 0, LARGEST);
}

static void send_goaway_and_requests(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        domt_h2_add_frame(&attacker->out, DOMT_H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    for (uint32_t i = 0; i < FRAMES; i++)
        add_request(attacker, WHOLE, DOMT_H2_GET);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Put a field of 4,000 bytes into the server's table once, and refer to it 4,000 times in each
 * request. */
static void refer_to_large_field(domt_h2_attacker *attacker)
{
    static domt_h2_bytes block, field;
    /* a field that refers to the newest entry of the table */
    static const uint8_t again = 0x80 | 62;

    block.size = field.size = 0;
    domt_h2_add_field_block(&block, DOMT_H2_GET);
    domt_h2_add_field_block(&field, "x-large: %4000\n");
    if (attacker->round == 0) {
        field.data[0] = 0x40; /* makes the field a literal with indexing */
        domt_h2_add_bytes(&block, field.data, field.size);
    }
    for (uint32_t i = 0; i < 4000; i++)
        domt_h2_add_bytes(&block, &again, 1);
    domt_h2_add_frame(&attacker->out, DOMT_H2_HEADERS, WHOLE, take_next_stream(attacker),
                      block.data, block.size);
}

/* Send a head of 200 KB that has an end. */
static void send_large_head(domt_h2_attacker *attacker)
{
    static domt_h2_bytes block;
    uint32_t stream = attacker->stream;

    block.size = 0;
    domt_h2_add_field_block(&block, "x-large: %4000\n");
    if (attacker->round % 5 == 0)
        add_request(attacker, DOMT_H2_END_STREAM, DOMT_H2_GET);
    else
        stream -= 2;
    for (uint32_t i = 0; i < 10; i++)
        domt_h2_add_frame(&attacker->out, DOMT_H2_CONTINUATION,
                          attacker->round % 5 == 4 && i == 9 ? DOMT_H2_END_HEADERS : 0, stream,
                          block.data, block.size);
}

static void request_answers_and_read_nothing(domt_h2_attacker *attacker)
{
    if (attacker->round == 0) {
        domt_h2_add_settings_frame(&attacker->out, DOMT_H2_INITIAL_WINDOW, LARGEST);
        domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, 0, LARGEST - 65535);
    }
    for (uint32_t i = 0; i < FRAMES; i++)
        add_request(attacker, WHOLE, DOMT_H2_GET);
}

/* --- waits ------------------------------------------------------------------------------------ */

/* Request many answers, and never open the connection's window for them. */
static void request_answers_without_window(domt_h2_attacker *attacker)
{
    if (attacker->round != 0)
        return;
    domt_h2_add_settings_frame(&attacker->out, DOMT_H2_INITIAL_WINDOW, 0);
    for (uint32_t i = 0; i < STREAMS_MAX; i++)
        add_request(attacker, WHOLE, DOMT_H2_GET);
}

/* Begin many requests with bodies, and never go on. */
static void begin_bodies_and_never_go_on(domt_h2_attacker *attacker)
{
    if (attacker->round != 0)
        return;
    for (uint32_t i = 0; i < STREAMS_MAX; i++) {
        add_request(attacker, DOMT_H2_END_HEADERS, DOMT_H2_POST "content-length: 1000000\n");
        domt_h2_add_frame(&attacker->out, DOMT_H2_DATA, 0, attacker->stream - 2, "a part", 6);
    }
}

/* Open the window byte by byte, so that the server's answers leave in single bytes. */
static void open_window_byte_by_byte(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        domt_h2_add_settings_frame(&attacker->out, DOMT_H2_INITIAL_WINDOW, 0);
    add_request(attacker, WHOLE, DOMT_H2_GET);
    for (uint32_t i = 0; i < 50; i++)
        domt_h2_add_number_frame(&attacker->out, DOMT_H2_WINDOW_UPDATE, attacker->stream - 2, 1);
}

/* Send the head of a request byte by byte. */
static void send_slow_head(domt_h2_attacker *attacker)
{
    if (attacker->round == 0)
        domt_h2_add_frame_head(&attacker->out, DOMT_H2_HEADERS, WHOLE, 1, HEAD_CLAIMED);
    else if (attacker->round < HEAD_CLAIMED)
        domt_h2_add_bytes(&attacker->out, "", 1);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* The server has to end what no real client does: 10,000 resets, pings or similar frames in a
 * second, which cost the server work and the client almost nothing. It need not end what it limits
 * otherwise, such as waiting streams, or ignores; and a fast download opens windows as often. */
static const domt_h2_attack rows[] = {
    {"rapid reset", send_requests_and_resets, 2, 100, false, true},
    {"resets by the server", overflow_window_of_each_stream, 2, 100, false, true},
    {"malformed requests", send_malformed_requests, 2, 100, false, true},
    {"CONTINUATION", send_endless_continuations, 2, 100, false, true},
    {"CONTINUATION, empty", send_empty_continuations, 2, 100, false, true},
    {"SETTINGS", send_many_settings, 2, 100, false, true},
    {"SETTINGS, deaf", send_many_settings, 2, 1000, true, true},
    {"PING", send_many_pings, 2, 100, false, true},
    {"PING, deaf", send_many_pings, 2, 1000, true, true},
    {"DATA, empty", send_empty_data, 2, 100, false, true},
    {"DATA, padding alone", send_padding, 2, 100, false, true},
    {"HEADERS, empty", send_empty_heads, 2, 100, false, true},
    {"WINDOW_UPDATE", open_window_by_single_bytes, 2, 100, false, false},
    {"PRIORITY", send_many_priorities, 2, 100, false, true},
    {"PRIORITY_UPDATE", send_many_priority_updates, 2, 100, false, true},
    {"unknown frames", send_frames_of_unknown_type, 2, 100, false, false},
    {"a stream on itself", send_streams_that_depend_on_themselves, 2, 100, false, false},
    {"window overflow", overflow_window_of_connection, 2, 100, false, true},
    {"GOAWAY, then more", send_goaway_and_requests, 2, 20, false, false},
    {"HPACK bomb", refer_to_large_field, 2, 20, false, false},
    {"heads too large", send_large_head, 2, 20, false, false},
    {"answers unread", request_answers_and_read_nothing, 2, 20, true, false},
    {"answers stalled", request_answers_without_window, 10, 10, false, false},
    {"bodies stalled", begin_bodies_and_never_go_on, 10, 10, false, false},
    {"answers byte by byte", open_window_byte_by_byte, 2, 100, false, false},
    {"slow heads", send_slow_head, 50, 20, false, false},
};

static uint32_t trips = 100;
static uint32_t rounds = 1;
static uint32_t least_ms = 300; /* ms for which an attack goes on if the server need not end it */

/* The figures of one row in all its rounds. */
typedef struct figures {
    double alone_p50[ROUNDS_MAX], alone_p99[ROUNDS_MAX];
    double p50[ROUNDS_MAX], p99[ROUNDS_MAX];
    double worst_ms, kib, mib, end_ms;
    uint32_t ends, resets, code, failed;
    bool is_ended;
} figures;

static double mib_that_server_has_grown(uint64_t before)
{
    uint64_t now = domt_h2_server_rss_bytes(&server);

    return now > before ? (double)(now - before) / (double)MIB : 0;
}

static void raise_maximum_to_value(double *most, double value)
{
    *most = value > *most ? value : *most;
}

/* Let an attack go on for a while, or, if the server has to end connections, until it has ended
 * one. */
static bool wait_for_end_of_attack(domt_h2_fight *fight, uint64_t begin_ns)
{
    bool has_to = fight->attack->is_ended;

    for (;;) {
        uint64_t past_ms = (domt_monotonic_ns() - begin_ns) / 1000000u;
        bool is_ended = atomic_load(&fight->ends) != 0;
        if ((is_ended && has_to) || past_ms > (has_to ? END_MS : least_ms))
            return is_ended || !has_to;
        domt_sleep_ms(2);
    }
}

static void measure_attack(const domt_h2_attack *of, uint32_t round, figures *into)
{
    static domt_h2 good;
    domt_h2_fight fight = {.attack = of, .port = server.port};
    uint32_t stream = 1;

    ck_assert(domt_h2_open_connection(&good, server.port));
    domt_h2_good alone = domt_h2_measure_good_client(&good, &stream, trips);
    uint64_t before = domt_h2_server_rss_bytes(&server);
    uint64_t begin_ns = domt_monotonic_ns();
    domt_h2_begin_attack(&fight);
    domt_h2_good beside = domt_h2_measure_good_client(&good, &stream, trips);
    into->is_ended = wait_for_end_of_attack(&fight, begin_ns) && into->is_ended;
    raise_maximum_to_value(&into->mib, mib_that_server_has_grown(before));
    domt_h2_end_attack(&fight);
    domt_h2_close_connection(&good, false);
    into->alone_p50[round] = alone.p50_ms;
    into->alone_p99[round] = alone.p99_ms;
    into->p50[round] = beside.p50_ms;
    into->p99[round] = beside.p99_ms;
    raise_maximum_to_value(&into->worst_ms, beside.worst_ms);
    raise_maximum_to_value(&into->kib, (double)fight.bytes / 1024);
    raise_maximum_to_value(&into->end_ms, (double)fight.first_end_ns / 1e6);
    into->ends += fight.ends;
    into->resets += fight.resets;
    into->code = fight.code;
    into->failed += alone.failed + beside.failed;
}

static double sort_and_return_median(double *values)
{
    qsort(values, rounds, sizeof *values, domt_compare_double);
    return values[rounds / 2];
}

/* Run the attack of a row. Returns whether the server has withstood it. */
static bool run_attack_and_judge_server(const domt_h2_attack *of)
{
    figures seen = {.is_ended = true};

    for (uint32_t round = 0; round < rounds; round++)
        measure_attack(of, round, &seen);
    bool is_bounded = DOMT_SANITIZED || seen.mib < MOST_MIB;
    double ratio = sort_and_return_median(seen.p99) / sort_and_return_median(seen.alone_p99);
    printf("%-21s %7.3f %7.3f  %7.3f %7.3f %7.1f %6.2f  %8.0f %4u %6u %4d %6.0f %6.1f%s%s%s%s\n",
           of->name, sort_and_return_median(seen.alone_p50), sort_and_return_median(seen.alone_p99),
           sort_and_return_median(seen.p50), sort_and_return_median(seen.p99), seen.worst_ms, ratio,
           seen.kib, seen.ends, seen.resets, (int)seen.code, seen.end_ms, seen.mib,
           is_bounded ? "" : " GROWN", seen.is_ended ? "" : " NOT ENDED",
           seen.failed == 0 ? "" : " UNANSWERED", rounds > 1 && ratio > 1.5 ? " missed" : "");
    fflush(stdout);
    return is_bounded && seen.is_ended && seen.failed == 0;
}

DOMT_TEST(attacks_are_bounded_and_a_good_client_is_answered)
{
    const char *is_long = getenv("DOMT_LONG");
    const char *only = getenv("DOMT_ROW");
    uint32_t failed = 0;

    if (is_long != NULL && is_long[0] != '\0') {
        trips = 1000;
        rounds = 5;
        least_ms = 2000;
    }
    if (!domt_h2_server_begin(&server, (const char *const[]){"channel.headTimeout=1s", NULL}))
        return;
    printf("%-21s %15s  %31s  %36s\n%-21s %7s %7s  %7s %7s %7s %6s  %8s %4s %6s %4s %6s %6s\n", "",
           "alone, ms", "beside the attack, ms", "", "attack", "p50", "p99", "p50", "p99", "worst",
           "ratio", "KiB sent", "ends", "resets", "code", "ms", "MiB");
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (only == NULL || strtoul(only, NULL, 10) == i)
            failed += !run_attack_and_judge_server(&rows[i]);
    }
    domt_h2_server_end(&server);
    ck_assert_msg(failed == 0, "%u attacks were not withstood", failed);
}

DOMT_SUITE(1800)
