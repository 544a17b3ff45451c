/* Runs cases: sends the frames of a row, and reads until an allowed outcome has come, the
 * connection is closed, or nothing more comes. */
#include "tests/system/h2spec.h"

#include "tests/support/sanitizer.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/h2_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS  DOMT_SCALE(2000u, 10000u)
#define TALE_MAX 256u

/* A case that runs: its connection, and a text with the frames that came. */
typedef struct case_run {
    domt_h2 h2;
    domt_h2_bytes out, block;
    bool is_skipped;
    bool has_read; /* a frame was read */
    char tale[TALE_MAX];
} case_run;

static domt_h2_server server;

/* --- outcomes --------------------------------------------------------------------------------- */

static void append_to_tale(case_run *run, const char *what, uint32_t number)
{
    size_t size = strlen(run->tale);

    (void)snprintf(run->tale + size, sizeof run->tale - size, "%s%s %u", size > 0 ? ", " : "", what,
                   number);
}

static uint32_t read_code(const domt_h2_frame *frame, uint32_t at)
{
    return frame->size >= at + 4 ? domt_h2_u32(frame->payload + at) : UINT32_MAX;
}

static bool is_among(uint32_t code, uint32_t codes)
{
    return code < 32 && (codes >> code & 1u) != 0;
}

/* Returns the outcomes that a frame can be, as bits; 0: the frame says nothing about the case. */
static uint32_t find_outcomes(case_run *run, const domt_h2_frame *frame,
                              const domt_h2_outcome *wanted)
{
    bool is_ack = (frame->flags & DOMT_H2_ACK) != 0;
    bool is_last = (frame->flags & DOMT_H2_END_STREAM) != 0;

    switch (frame->type) {
    case DOMT_H2_GOAWAY:
        append_to_tale(run, "GOAWAY", read_code(frame, 4));
        return is_among(read_code(frame, 4), wanted->codes) ? DOMT_H2_GOES_AWAY : 0;
    case DOMT_H2_RST_STREAM:
        append_to_tale(run, "RST_STREAM", read_code(frame, 0));
        return is_among(read_code(frame, 0), wanted->codes) ? DOMT_H2_RESETS : 0;
    case DOMT_H2_HEADERS:
        append_to_tale(run, "HEADERS on", frame->stream);
        return (frame->stream == 1 ? DOMT_H2_ANSWERS : 0) | (is_last ? DOMT_H2_ENDS_STREAM : 0);
    case DOMT_H2_DATA:
        append_to_tale(run, "DATA", frame->size);
        return (wanted->size == 0 || frame->size == wanted->size ? DOMT_H2_SENDS : 0) |
               (is_last ? DOMT_H2_ENDS_STREAM : 0);
    case DOMT_H2_PING:
        append_to_tale(run, is_ack ? "PING with ACK" : "PING", frame->size);
        return is_ack && frame->size == 8 && memcmp(frame->payload, DOMT_H2_PING_OURS, 8) == 0
                   ? DOMT_H2_PONG
                   : 0;
    case DOMT_H2_SETTINGS:
        append_to_tale(run, is_ack ? "SETTINGS with ACK" : "SETTINGS", frame->size);
        return is_ack ? DOMT_H2_ACKNOWLEDGES : DOMT_H2_SETS;
    default:
        return 0;
    }
}

/* Returns whether a frame is wrong in any case: it answers a ping that asked for no answer, or has
 * more DATA than the window allows. */
static bool is_wrong(const domt_h2_frame *frame, const domt_h2_outcome *wanted)
{
    if (frame->type == DOMT_H2_PING && (frame->flags & DOMT_H2_ACK) != 0)
        return frame->size != 8 || memcmp(frame->payload, DOMT_H2_PING_OURS, 8) != 0;
    return frame->type == DOMT_H2_DATA && wanted->size != 0 && frame->size > wanted->size;
}

/* Read until an outcome has come. Returns whether it is an allowed one. */
static bool read_outcome(case_run *run, const domt_h2_outcome *wanted)
{
    uint64_t until_ns = domt_monotonic_ns() + WAIT_MS * UINT64_C(1000000);
    domt_h2_frame frame;

    domt_h2_send(&run->h2, &run->out);
    for (;;) {
        uint64_t now_ns = domt_monotonic_ns();
        uint32_t left_ms = now_ns < until_ns ? (uint32_t)((until_ns - now_ns) / 1000000u) : 0;
        switch (domt_h2_next(&run->h2, left_ms, &frame)) {
        case DOMT_H2_END:
            append_to_tale(run, run->h2.is_nonsense ? "text, closed" : "closed", 0);
            return (wanted->kinds & DOMT_H2_CLOSED) != 0;
        case DOMT_H2_LATE:
            append_to_tale(run, "nothing for ms:", WAIT_MS);
            return false;
        default:
            break;
        }
        bool is_first = !run->has_read;
        run->has_read = true;
        uint32_t kind = find_outcomes(run, &frame, wanted);
        if ((kind & wanted->kinds) != 0)
            return (wanted->kinds & DOMT_H2_FIRST_FRAME) == 0 || is_first;
        if (is_wrong(&frame, wanted))
            return false;
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static void send_step(case_run *run, const domt_h2_step *step)
{
    domt_h2_bytes *block = &run->block;

    block->size = 0;
    if (step->fields != NULL)
        domt_h2_add_fields(block, step->fields);
    size_t to = step->to != 0 ? step->to : block->size;
    ck_assert(step->from <= to && to <= block->size);
    size_t size = step->front.size + to - step->from + step->back.size;
    domt_h2_add_frame_head(&run->out, step->type, step->flags, step->stream, size);
    domt_h2_add(&run->out, step->front.at, step->front.size);
    domt_h2_add(&run->out, block->data + step->from, to - step->from);
    domt_h2_add(&run->out, step->back.at, step->back.size);
}

/* Do a step of the case. Returns false if the case has failed, or cannot be tried. */
static bool do_step(case_run *run, const domt_h2_step *step)
{
    switch (step->kind) {
    case DOMT_H2_SAY:
        send_step(run, step);
        return true;
    case DOMT_H2_RAW:
        domt_h2_add(&run->out, step->front.at, step->front.size);
        return true;
    case DOMT_H2_HEAR:
        return read_outcome(run, &step->outcome);
    case DOMT_H2_CALL:
        run->is_skipped = !step->call(&run->h2, &run->out);
        return !run->is_skipped;
    default:
        return false;
    }
}

static bool run_case(const domt_h2_case *of, case_run *run)
{
    bool is_good = true;

    memset(run, 0, sizeof *run);
    if (of->is_bare) {
        domt_h2_connect(&run->h2, server.port);
    } else if (!domt_h2_open(&run->h2, server.port)) {
        append_to_tale(run, "no settings", 0);
        is_good = false;
    }
    for (const domt_h2_step *step = of->steps; is_good && step->kind != DOMT_H2_DONE; step++)
        is_good = do_step(run, step);
    is_good = (is_good && read_outcome(run, &of->outcome)) || run->is_skipped;
    domt_h2_close(&run->h2, false);
    return is_good;
}

void domt_h2spec_run(const domt_h2_case *cases, size_t count, const char *const settings[])
{
    static const char *const nothing[] = {NULL};
    static case_run run;
    bool says_all = getenv("DOMT_H2_SAY") != NULL;
    uint32_t failed = 0;

    if (settings != NULL && !domt_h2_web_is_judged()) {
        puts("only the example web is judged by this");
        return;
    }
    if (!domt_h2_server_begin(&server, settings != NULL ? settings : nothing))
        return;
    for (size_t i = 0; i < count; i++) {
        bool is_good = run_case(&cases[i], &run);
        failed += !is_good;
        if (says_all || !is_good)
            printf("%s %s: %s: %s\n", is_good ? "ok" : "FAILED", cases[i].place, cases[i].name,
                   run.is_skipped ? "skipped" : run.tale);
    }
    fflush(stdout);
    domt_h2_server_end(&server);
    ck_assert_msg(failed == 0, "%u of %zu cases failed", failed, count);
}
