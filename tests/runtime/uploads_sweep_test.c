/* Requests in pieces through a pool, over many seeds of a network that fails at any byte: each has
 * one outcome, an answer tells of its whole body, and nothing is left. DOMUS_SEED=n runs seed n
 * alone; DOMT_LONG runs 50 times as many. */
#include "tests/runtime/net_sweep.h"
#include "tests/runtime/uploads.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/pool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS  DOMT_SCALE(150, 20)
#define ASKERS 4u

static const domus_pipeline pipeline = {
    .stages = domt_upload_stages, .encodes = domt_upload_encodes, .inflight_max = 2};
static const domus_pipeline without_cut = {
    .stages = domt_upload_cutless, .encodes = domt_upload_encodes, .inflight_max = 2};
static domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS};

/* --- askers ----------------------------------------------------------------------------------- */

static _Atomic uint32_t answered, failed, wrong;
static domus_address uploader;

typedef struct order {
    char how[8];
    uint32_t bytes;
    uint32_t wait_ms;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};

DOMUS_SEQUENCE(ask, order)
{
    domt_line question = {.text = ""};

    DOMUS_BEGIN;
    *frame = *(const order *)message;
    snprintf(question.text, sizeof question.text, "%s %u %u", frame->how, frame->bytes,
             frame->wait_ms);
    DOMUS_ASK_WITHIN(uploader, &domt_line_type, &question, 20 * DOMT_SWEEP_SECOND);
    if (answer->error != 0) {
        failed++;
        return 0;
    }
    const char *text = ((const domt_line *)answer->payload)->text;
    /* A relay may end the way to the service alone: then the service says that it could not read
     * (seed 6786). */
    bool is_whole = strtoul(text, NULL, 10) == frame->bytes || strcmp(frame->how, "put") != 0 ||
                    strcmp(text, "read EPIPE") == 0;
    answered++;
    if (!is_whole)
        wrong++;
    return 0;
    DOMUS_END;
}

static const domus_behaviour asker = {
    .name = "asker", .on = (const domus_on[]){DOMUS_ON(&order_type, ask), {NULL, NULL, 0}}};

/* --- a seed ----------------------------------------------------------------------------------- */

static void begin_asking(domt_sweep *sweep)
{
    static const char *const ways[] = {"put", "put", "put", "leave", "stop", "within"};
    domus_system *system = domus_testkit_system(sweep->kit);
    domus_address address;

    DOMT_SWEEP_HOLD(sweep, domus_outside_spawn(system, &domt_uploader, NULL, &uploader) == 0);
    for (uint32_t i = 0; i < ASKERS; i++) {
        order what = {.bytes = (uint32_t)domt_sweep_below(sweep, 30000),
                      .wait_ms = (uint32_t)domt_sweep_below(sweep, 3)};
        snprintf(what.how, sizeof what.how, "%s", ways[domt_sweep_below(sweep, 6)]);
        DOMT_SWEEP_HOLD(sweep, domus_outside_spawn(system, &asker, NULL, &address) == 0);
        DOMT_SWEEP_HOLD(sweep, domus_outside_notice(system, address, &order_type, &what) == 0);
    }
}

static int run_seed(uint64_t seed, void *context)
{
    const domus_channel_options channel = {.answer_timeout_ns = DOMT_SWEEP_SECOND};
    domt_sweep sweep = {.seed = seed, .is_relayed = true};

    domi_random_init(&sweep.random, seed);
    answered = failed = wrong = 0;
    domt_uploads_now.head = "C count 0 ";
    domt_sweep_listen(&sweep, "one", "127.0.0.1:1");
    ck_assert_int_eq(
        domus_serve(domus_testkit_system(sweep.kit), "one", &domt_stream_service, NULL, NULL), 0);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    line.pipeline = domt_sweep_below(&sweep, 2) == 0 ? &pipeline : &without_cut;
    const domus_pool_options options = {
        .behaviour = &line,
        .connections_min = 1 + (uint32_t)domt_sweep_below(&sweep, 3),
        .backoff_min_ns = 10 * DOMT_SWEEP_MS,
        .backoff_max_ns = 100 * DOMT_SWEEP_MS,
        .channel = &channel,
    };
    DOMT_SWEEP_HOLD(&sweep, domus_outside_pool_open(domus_testkit_system(sweep.kit), "127.0.0.1:1",
                                                    &options, &domt_uploads_now.to) == 0);
    begin_asking(&sweep);
    DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, 30 * DOMT_SWEEP_SECOND) == 0);
    DOMT_SWEEP_HOLD(&sweep, answered + failed == ASKERS);
    DOMT_SWEEP_HOLD(&sweep, wrong == 0);
    if (domt_sweep_below(&sweep, 2) == 0)
        DOMT_SWEEP_HOLD(
            &sweep, domus_outside_stop(domus_testkit_system(sweep.kit), domt_uploads_now.to) == 0);
    return domt_sweep_end(&sweep);
}

DOMT_TEST(each_request_in_pieces_has_one_outcome)
{
    domt_sweep_seeds(SEEDS, run_seed);
}

DOMT_SUITE(3000)
