/* Runs cases of h2spec: sends the frames of a row, and reads until an allowed outcome has come, the
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
    bool has_read; /* true: at least one frame was read */
    char tale[TALE_MAX];
} case_run;

static domt_h2_server server;

/* --- outcomes --------------------------------------------------------------------------------- */

static void append_frame_to_report_of_case(case_run *run, const char *what, uint32_t number)
{
    size_t size = strlen(run->tale);

    (void)snprintf(run->tale + size, sizeof run->tale - size, "%s%s %u", size > 0 ? ", " : "", what,
                   number);
}

static uint32_t error_code_at(const domt_h2_frame *frame, uint32_t at)
{
    return frame->size >= at + 4 ? domt_h2_u32_of_bytes(frame->payload + at) : UINT32_MAX;
}

static bool is_code_allowed(uint32_t code, uint32_t codes)
{
    return code < 32 && (codes >> code & 1u) != 0;
}

/* Returns the outcomes that a frame may be, as bits; 0: the frame says nothing about the case. */
static uint32_t outcomes_of_frame(case_run *run, const domt_h2_frame *frame,
                                  const domt_h2_outcome *wanted)
{
    bool is_ack = (frame->flags & DOMT_H2_ACK) != 0;
    bool is_last = (frame->flags & DOMT_H2_END_STREAM) != 0;

    switch (frame->type) {
    case DOMT_H2_GOAWAY:
        append_frame_to_report_of_case(run, "GOAWAY", error_code_at(frame, 4));
        return is_code_allowed(error_code_at(frame, 4), wanted->codes) ? DOMT_H2_GOES_AWAY : 0;
    case DOMT_H2_RST_STREAM:
        append_frame_to_report_of_case(run, "RST_STREAM", error_code_at(frame, 0));
        return is_code_allowed(error_code_at(frame, 0), wanted->codes) ? DOMT_H2_RESETS : 0;
    case DOMT_H2_HEADERS:
        append_frame_to_report_of_case(run, "HEADERS on", frame->stream);
        return (frame->stream == 1 ? DOMT_H2_ANSWERS : 0) | (is_last ? DOMT_H2_ENDS_STREAM : 0);
    case DOMT_H2_DATA:
        append_frame_to_report_of_case(run, "DATA", frame->size);
        return (wanted->size == 0 || frame->size == wanted->size ? DOMT_H2_SENDS : 0) |
               (is_last ? DOMT_H2_ENDS_STREAM : 0);
    case DOMT_H2_PING:
        append_frame_to_report_of_case(run, is_ack ? "PING with ACK" : "PING", frame->size);
        return is_ack && frame->size == 8 && memcmp(frame->payload, DOMT_H2_PING_OURS, 8) == 0
                   ? DOMT_H2_PONG
                   : 0;
    case DOMT_H2_SETTINGS:
        append_frame_to_report_of_case(run, is_ack ? "SETTINGS with ACK" : "SETTINGS", frame->size);
        return is_ack ? DOMT_H2_ACKNOWLEDGES : DOMT_H2_SETS;
    default:
        return 0;
    }
}

/* Returns whether a frame is wrong in any case: it answers a ping that was not sent, or has more
 * DATA than the window allows. */
static bool is_frame_always_wrong(const domt_h2_frame *frame, const domt_h2_outcome *wanted)
{
    if (frame->type == DOMT_H2_PING && (frame->flags & DOMT_H2_ACK) != 0)
        return frame->size != 8 || memcmp(frame->payload, DOMT_H2_PING_OURS, 8) != 0;
    return frame->type == DOMT_H2_DATA && wanted->size != 0 && frame->size > wanted->size;
}

/* Read frames until one is an outcome of the case. Returns whether that outcome is allowed. */
static bool read_until_outcome(case_run *run, const domt_h2_outcome *wanted)
{
    uint64_t until_ns = domt_monotonic_ns() + WAIT_MS * UINT64_C(1000000);
    domt_h2_frame frame;

    domt_h2_send(&run->h2, &run->out);
    for (;;) {
        uint64_t now_ns = domt_monotonic_ns();
        uint32_t left_ms = now_ns < until_ns ? (uint32_t)((until_ns - now_ns) / 1000000u) : 0;
        switch (domt_h2_read_next_frame(&run->h2, left_ms, &frame)) {
        case DOMT_H2_END:
            append_frame_to_report_of_case(run, run->h2.is_nonsense ? "text, closed" : "closed", 0);
            return (wanted->kinds & DOMT_H2_CLOSED) != 0;
        case DOMT_H2_LATE:
            append_frame_to_report_of_case(run, "nothing for ms:", WAIT_MS);
            return false;
        default:
            break;
        }
        bool is_first = !run->has_read;
        run->has_read = true;
        uint32_t kind = outcomes_of_frame(run, &frame, wanted);
        if ((kind & wanted->kinds) != 0)
            return (wanted->kinds & DOMT_H2_FIRST_FRAME) == 0 || is_first;
        if (is_frame_always_wrong(&frame, wanted))
            return false;
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static void collect_frame_of_step(case_run *run, const domt_h2_step *step)
{
    domt_h2_bytes *block = &run->block;

    block->size = 0;
    if (step->fields != NULL)
        domt_h2_add_field_block(block, step->fields);
    size_t to = step->to != 0 ? step->to : block->size;
    ck_assert(step->from <= to && to <= block->size);
    size_t size = step->front.size + to - step->from + step->back.size;
    domt_h2_add_frame_head(&run->out, step->type, step->flags, step->stream, size);
    domt_h2_add_bytes(&run->out, step->front.at, step->front.size);
    domt_h2_add_bytes(&run->out, block->data + step->from, to - step->from);
    domt_h2_add_bytes(&run->out, step->back.at, step->back.size);
}

/* Do one step of the case. Returns false if the case has failed, or cannot be tried. */
static bool do_step_of_case(case_run *run, const domt_h2_step *step)
{
    switch (step->kind) {
    case DOMT_H2_SAY:
        collect_frame_of_step(run, step);
        return true;
    case DOMT_H2_RAW:
        domt_h2_add_bytes(&run->out, step->front.at, step->front.size);
        return true;
    case DOMT_H2_HEAR:
        return read_until_outcome(run, &step->outcome);
    case DOMT_H2_CALL:
        run->is_skipped = !step->call(&run->h2, &run->out);
        return !run->is_skipped;
    default:
        return false;
    }
}

static bool run_case_of_list(const domt_h2_case *of, case_run *run)
{
    bool is_good = true;

    memset(run, 0, sizeof *run);
    if (of->is_bare) {
        domt_h2_connect(&run->h2, server.port);
    } else if (!domt_h2_open_connection(&run->h2, server.port)) {
        append_frame_to_report_of_case(run, "no settings", 0);
        is_good = false;
    }
    for (const domt_h2_step *step = of->steps; is_good && step->kind != DOMT_H2_DONE; step++)
        is_good = do_step_of_case(run, step);
    is_good = (is_good && read_until_outcome(run, &of->outcome)) || run->is_skipped;
    domt_h2_close_connection(&run->h2, false);
    return is_good;
}

void domt_h2spec_run_cases(const domt_h2_case *cases, size_t count, const char *const settings[])
{
    static const char *const nothing[] = {NULL};
    static case_run run;
    bool says_all = getenv("DOMT_H2_SAY") != NULL;
    uint32_t failed = 0;

    if (settings != NULL && !domt_h2_is_example_web_tested()) {
        puts("only the example web is judged by this");
        return;
    }
    if (!domt_h2_server_begin(&server, settings != NULL ? settings : nothing))
        return;
    for (size_t i = 0; i < count; i++) {
        bool is_good = run_case_of_list(&cases[i], &run);
        failed += !is_good;
        if (says_all || !is_good)
            printf("%s %s: %s: %s\n", is_good ? "ok" : "FAILED", cases[i].place, cases[i].name,
                   run.is_skipped ? "skipped" : run.tale);
    }
    fflush(stdout);
    domt_h2_server_end(&server);
    ck_assert_msg(failed == 0, "%u of %zu cases failed", failed, count);
}
