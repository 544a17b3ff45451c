/* A server of HTTP/2 that does anything at any moment, between single steps of the client's thread.
 * Then it is well: it resets each stream that is open. So each request has one outcome soon, though
 * some have no deadline and some are none; one that was forgotten while a connection is well would
 * have none. The number that is printed when it fails is that of the schedule. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <domus/pool.h>

#include <errno.h>
#include <string.h>

#define MS DOMT_SERVED_MS

#define SCHEDULES 300u
#define DEEDS     25u
#define ROUNDS    200u /* of 20 ms, in which all requests have their outcomes */

static domt_h2c h2c;
static domt_h2s script;
static domus_address pool;
static unsigned asked, seed;

static unsigned draw(unsigned below)
{
    seed = seed * 1103515245u + 12345;
    return (seed >> 16) % below;
}

static void ask(void)
{
    const char *fields = draw(5) == 0 ? "Host: a\r\nx y: z\r\n" : "Host: a\r\n";
    uint64_t within_ns = draw(3) * 30 * MS;
    const domus_http_request like = {.method = draw(2) ? DOMUS_HTTP_POST : DOMUS_HTTP_GET};
    size_t body = like.method == DOMUS_HTTP_POST && draw(3) == 0 ? 100000 : 0;

    domt_h2c_ask_of(&h2c, pool, &like, "/a", fields, body, within_ns);
    asked++;
}

/* Take the outcomes that are there. */
static void take_outcomes(void)
{
    for (int outcome = 1; asked != 0 && outcome != 0; asked -= outcome != 0) {
        outcome = domt_h2c_take(&h2c, 0);
        ck_assert_int_ne(outcome, -ENOMEM);
    }
}

static void send_settings(unsigned most)
{
    const uint8_t entry[] = {0, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0, 0, 0, (uint8_t)most};

    domt_h2s_send(&script, NGHTTP2_SETTINGS, 0, 0, entry, sizeof entry);
}

static void do_something(void)
{
    static const uint32_t codes[] = {NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR,
                                     NGHTTP2_REFUSED_STREAM, NGHTTP2_CANCEL,
                                     NGHTTP2_ENHANCE_YOUR_CALM};
    int32_t id = 1 + 2 * (int32_t)draw(6);
    uint32_t code = codes[draw(sizeof codes / sizeof *codes)];

    switch (draw(12)) {
    case 0:
        domt_h2s_send(&script, HEADERS, WHOLE, id, BYTES(S200));
        break;
    case 1:
        domt_h2s_send(&script, HEADERS, WHOLE, id, BYTES(S200 LENGTH_2));
        break;
    case 2:
        domt_h2s_send(&script, HEADERS, WHOLE | LAST, id, BYTES(S200));
        break;
    case 3:
        domt_h2s_send(&script, DATA, 0, id, "ab", 2);
        break;
    case 4:
        domt_h2s_send(&script, DATA, LAST, id, NULL, 0);
        break;
    case 5:
        domt_h2s_answer(&script, id, "ab");
        break;
    case 6:
        domt_h2s_reset(&script, id, code);
        break;
    case 7:
        send_settings(draw(4));
        break;
    case 8:
        domt_h2s_send(&script, NGHTTP2_WINDOW_UPDATE, 0, draw(2) ? id : 0, "\0\1\0\0", 4);
        break;
    case 9:
        if (draw(4) == 0)
            domt_h2s_go_away(&script, id, code);
        break;
    case 10:
        ask();
        break;
    default:
        domt_h2s_pass(&script, draw(20) * MS);
    }
    for (unsigned i = draw(3) == 0 ? draw(8) : 0; i != 0; i--)
        (void)domus_testkit_step(h2c.kit);
}

/* Accept what comes, and reset each stream once. */
static void be_well(void)
{
    int32_t reset = -1;

    send_settings(100);
    for (unsigned round = 0; round < ROUNDS && asked != 0; round++) {
        domus_peer *next;
        if (domus_peer_accept(script.listener, 0, &next) == 0) {
            script = (domt_h2s){.kit = script.kit, .listener = script.listener, .peer = next};
            domt_h2s_send(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
            reset = -1;
        }
        domt_h2s_pass(&script, 20 * MS);
        while (reset < script.last)
            domt_h2s_reset(&script, reset += 2, NGHTTP2_INTERNAL_ERROR);
        take_outcomes();
    }
}

DOMT_TEST(each_request_has_an_outcome)
{
    for (unsigned n = 0; n < SCHEDULES; n++) {
        const domus_pool_options options = {.behaviour =
                                                n % 2 == 0 ? &domt_h2c_two : &domt_h2c_whole,
                                            .on_demand = n % 3 != 0,
                                            .connections_max = 1 + n % 2,
                                            .backoff_min_ns = MS,
                                            .backoff_max_ns = 2 * MS};
        asked = 0;
        seed = n * 2654435761u;
        domt_h2s_begin(&script, &h2c, NULL);
        ck_assert_int_eq(domus_outside_pool_open(domus_testkit_system(h2c.kit), DOMT_H2C_SCRIPT,
                                                 &options, &pool),
                         0);
        for (unsigned i = 0; i < 5; i++)
            ask();
        ck_assert_int_eq(domus_peer_accept(script.listener, 1000 * MS, &script.peer), 0);
        if (draw(2))
            send_settings(draw(4));
        else
            domt_h2s_send(&script, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        for (unsigned i = 0; i < DEEDS; i++)
            do_something();
        be_well();
        ck_assert_msg(asked == 0, "schedule %u: %u requests have no outcome: %s", n, asked,
                      domus_testkit_error(h2c.kit));
        domt_h2c_end(&h2c);
    }
}

DOMT_SUITE(120)
