/* A server of HTTP/2 that finishes behind its answers: they are read to their ends, however slowly,
 * and requests that it has not answered fail. */
#include "tests/http/h2_script.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/pool.h>

#include <errno.h>
#include <string.h>

#define MS     DOMT_SERVED_MS
#define SECOND DOMT_SERVED_S

typedef struct outcome {
    int error;
    uint32_t bytes;
} outcome;

static const domus_type slowly_type = {.name = "slowly"};
static const domus_type outcome_type = {.name = "outcome", .size = sizeof(outcome)};
static domus_address to;

typedef struct slow_frame {
    domus_http_request request;
    domus_body body;
    outcome made;
    bool ended;
} slow_frame;

/* Get an answer, and read it in many pieces. */
DOMUS_SEQUENCE(read_slowly, slow_frame)
{
    DOMUS_BEGIN;
    frame->request.method = DOMUS_HTTP_POST;
    ck_assert_int_eq(domus_slice_copy("/a", 2, &frame->request.target), 0);
    ck_assert_int_eq(domus_slice_copy("Host: a\r\n", 9, &frame->request.fields), 0);
    DOMUS_AWAIT(domus_ask(stack, to, &domus_http_request_type, &frame->request, then));
    frame->made.error = answer->error;
    if (answer->error == 0)
        frame->body = ((const domus_http_response *)answer->payload)->stream;
    while (frame->body.number != 0 && !frame->ended) {
        DOMUS_SLEEP(20 * MS);
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        const domus_piece *piece = answer->payload;
        frame->made.error = answer->error;
        frame->ended = answer->error != 0 || piece->last;
        frame->made.bytes += answer->error == 0 ? piece->bytes.size : 0;
    }
    return domus_reply(stack, &outcome_type, &frame->made);
    DOMUS_END;
}

static const domus_behaviour reader = {
    .name = "reader",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){DOMUS_ON(&slowly_type, read_slowly), {NULL, NULL, 0}}};

static domt_h2c h2c;
static domt_h2s script;

DOMT_TEST(an_answer_is_read_behind_the_end_of_its_server)
{
    const domus_pool_options options = {
        .behaviour = &domt_h2c_streams, .on_demand = true, .connections_max = 2};
    static char bytes[5001];
    domus_address asker;
    outcome made;

    for (unsigned says = 0; says < 2; says++) {
        domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
        domt_h2s_listen(&script, &h2c);
        domus_system *system = domus_testkit_system(h2c.kit);
        ck_assert_int_eq(domus_outside_pool_open(system, DOMT_H2C_SCRIPT, &options, &to), 0);
        ck_assert_int_eq(domus_outside_spawn(system, &reader, NULL, &asker), 0);
        for (unsigned i = 0; i < 2; i++)
            ck_assert_int_eq(domus_probe_ask(h2c.probe, asker, &slowly_type, NULL), 0);
        domt_h2s_accept(&script);
        domt_h2s_pass(&script, 0);
        memset(bytes, 'x', sizeof bytes - 1);
        domt_h2s_answer(&script, 1, bytes);
        if (says != 0)
            domt_h2s_go_away(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        if (says != 0) { /* it was not looked at, so it is asked again */
            domt_h2s_accept(&script);
            domt_h2s_pass(&script, 0);
            domt_h2s_answer(&script, 1, "ab");
            ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, SECOND, &made), 0);
            ck_assert_int_eq(made.error, 0);
            ck_assert_uint_eq(made.bytes, 2);
        } else {
            ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, SECOND, &made), 0);
            ck_assert_int_eq(made.error, -EPIPE);
        }
        ck_assert_int_eq(domus_probe_expect(h2c.probe, &outcome_type, 5 * SECOND, &made), 0);
        ck_assert_int_eq(made.error, 0);
        ck_assert_uint_eq(made.bytes, 5000);
        domt_h2c_end(&h2c);
    }
}

/* A server that refuses an upload answers before it has come, and ends. */
DOMT_TEST(an_early_answer_is_kept_behind_the_end)
{
    for (unsigned says = 0; says < 2; says++) {
        domt_h2c_begin(&h2c, &domt_h2_by_whole, NULL);
        domt_h2s_listen(&script, &h2c);
        domt_h2c_ask(&h2c, DOMUS_HTTP_POST, DOMT_H2S_URL("/a"), "", 200000);
        domt_h2s_accept(&script);
        domt_h2s_pass(&script, 100 * MS);
        ck_assert_uint_eq(script.asked, 1);
        ck_assert_uint_eq(script.ended, 0);
        domt_h2s_answer(&script, 1, "ab");
        if (says != 0)
            domt_h2s_go_away(&script, 1, NGHTTP2_NO_ERROR);
        domus_peer_finish(script.peer);
        domt_h2c_expect(&h2c, 200, "ab");
        domt_h2s_pass(&script, 10 * MS);
        ck_assert(domus_peer_has_end(script.peer));
        domt_h2c_end(&h2c);
    }
}

DOMT_SUITE(120)
