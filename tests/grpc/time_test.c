/* The deadlines of calls: for their handlers, for messages that come late, and for answers that
 * begin at the deadline. */
#include "tests/grpc/called.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static domt_caller caller;

/* number of time-outs that are tried, from 2.8 ms to 3.1 ms */
#define STEPS (unsigned)DOMT_SCALE(60, 12)

DOMT_TEST(calls_have_their_time)
{
    static const struct {
        const char *timeout; /* value of "grpc-timeout"; NULL: none */
        const char *text;
        uint64_t pass_ms;
        int status;
        uint64_t deadline_ms;
    } cases[] = {
        {"100m", "sleep 50", 60, 0, 100},
        {"100m", "sleep 500", 90, -1, 100},
        {"100m", "sleep 500", 110, DOMUS_GRPC_DEADLINE_EXCEEDED, 100},
        {"100000u", "sleep 500", 110, DOMUS_GRPC_DEADLINE_EXCEEDED, 100},
        {"2S", "sleep 50", 60, 0, 2000},
        {"1M", "a", 1, 0, 10000}, /* the service's bound of 10 s is shorter */
        {NULL, "a", 1, 0, 10000},
        {NULL, "sleep 20000", 10010, DOMUS_GRPC_DEADLINE_EXCEEDED, 10000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const fields[] = {"grpc-timeout", cases[i].timeout, NULL};
        domt_frame frame = domt_called_frame(cases[i].text, strlen(cases[i].text), false);
        domt_called_start(&caller);
        int32_t id = domt_called_ask(&caller, "/t.T/Unary", frame.bytes, frame.size,
                                     cases[i].timeout != NULL ? fields : NULL);
        domt_called_advance(&caller, 0);
        uint64_t begun_ns = domus_testkit_now_ns(caller.kit);
        domt_called_advance(&caller, (cases[i].pass_ms - 1) * DOMT_CALLED_MS);
        ck_assert_int_eq(domt_called_find(&caller, id)->status, cases[i].status);
        uint64_t left_ns = domt_called_now.deadline_ns - begun_ns;
        ck_assert_uint_le(left_ns, cases[i].deadline_ms * DOMT_CALLED_MS);
        ck_assert_uint_gt(left_ns, (cases[i].deadline_ms - 5) * DOMT_CALLED_MS);
        domt_called_end(&caller);
    }
}

DOMT_TEST(a_call_without_any_time_is_over_at_once)
{
    static const char *const fields[] = {"grpc-timeout", "0n", NULL};

    domt_called_start(&caller);
    domt_called_expect(&caller, "/t.T/Up", "", 0, fields, DOMUS_GRPC_DEADLINE_EXCEEDED, NULL);
    domt_called_end(&caller);
}

/* The handler of a method that takes one message begins when the message has come. The message may
 * come late, in part, byte by byte, or without the end of the stream. */
DOMT_TEST(messages_that_come_late_have_the_time_of_their_call)
{
    static const char *const paths[] = {"/t.T/Unary", "/t.T/Down", "/t.T/Up"};
    static const struct {
        const char *timeout; /* value of "grpc-timeout"; NULL: the service's own, 10 s */
        uint64_t ms;
        size_t first; /* bytes sent at once; later one byte is sent every 500 ms */
    } cases[] = {{"100m", 100, 0},  {"100m", 100, 3},  {"100m", 100, 10},
                 {"100m", 100, 25}, {"3S", 3000, 0},   {"3S", 3000, 24},
                 {NULL, 10000, 0},  {NULL, 10000, 25}, {NULL, 10000, 5}};
    domt_frame frame = domt_called_frame("3aaaaaaaaaaaaaaaaaaa", 20, false);

    for (size_t i = 0; i < sizeof cases / sizeof *cases * 3; i++) {
        const char *const fields[] = {"grpc-timeout", cases[i / 3].timeout, NULL};
        domt_called_start(&caller);
        int32_t id = domt_called_ask(&caller, paths[i % 3], frame.bytes, cases[i / 3].first,
                                     cases[i / 3].timeout != NULL ? fields : NULL);
        domt_call *call = domt_called_find(&caller, id);
        call->holds_end = true;
        for (uint64_t ms = 0; ms + 500 < cases[i / 3].ms; ms += 500) {
            /* domt_called_advance() takes somewhat longer */
            domt_called_advance(&caller, 495 * DOMT_CALLED_MS);
            ck_assert_int_eq(call->http, 0);
            call->body_size += call->body != frame.bytes + frame.size;
            (void)nghttp2_session_resume_data(caller.session, id);
        }
        domt_called_advance(&caller, 600 * DOMT_CALLED_MS);
        ck_assert_msg(call->status == DOMUS_GRPC_DEADLINE_EXCEEDED, "%s, case %zu", paths[i % 3],
                      i / 3);
        domt_called_end(&caller);
    }
}

/* A handler, perhaps on another thread, begins its answer in the millisecond of the deadline. The
 * answer may come before the channel ends the call, after that, or between the two steps in which
 * the channel ends it. */
DOMT_TEST(an_answer_that_begins_at_the_deadline_has_a_status)
{
    static const char *const threads[] = {"0", "1", "2", "h"};
    unsigned ended[DOMUS_GRPC_UNAUTHENTICATED + 1] = {0};

    for (unsigned i = 0; i < 4 * STEPS; i++) {
        char timeout[16];
        const char *const fields[] = {"grpc-timeout", timeout, NULL};
        domt_frame frame = domt_called_frame(threads[i % 4], 1, false);
        domt_called_start_from(&caller, &domt_called_behaviour, 1 + i);
        snprintf(timeout, sizeof timeout, "%uu", 2800 + i / 4 * 300 / STEPS);
        for (unsigned n = 0; n < 20; n++)
            (void)domt_called_ask(&caller, "/t.T/Late", frame.bytes, frame.size, fields);
        domt_called_advance(&caller, 20 * DOMT_CALLED_MS);
        for (int32_t id = 1; id < 40; id += 2) {
            const domt_call *call = domt_called_find(&caller, id);
            ck_assert_int_eq(call->http, 200);
            ck_assert(call->ended && call->status >= 0);
            ended[call->status]++;
        }
        domt_called_end(&caller);
    }
    ck_assert_uint_ne(ended[DOMUS_GRPC_OK], 0);
    ck_assert_uint_ne(ended[DOMUS_GRPC_DEADLINE_EXCEEDED], 0);
    ck_assert_uint_eq(ended[DOMUS_GRPC_OK] + ended[DOMUS_GRPC_DEADLINE_EXCEEDED], 4 * STEPS * 20);
}

DOMT_SUITE(60)
