/* Calls of gRPC of each kind, their ends and deadlines, and what is refused before there is a
 * handler. */
#include "tests/grpc/called.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Calls of gRPC of each kind, their ends, and what is refused before there is a handler. */

static domt_caller caller;

/* Check that a unary call with this text as its message ends with this status and these words.
 * Returns the call. */
static domt_call *expect_answer_to_unary_call(const char *text, const char *const *fields,
                                              int status, const char *answer)
{
    domt_frame frame = domt_called_make_frame(text, strlen(text), false);

    return domt_called_make_unary_call_and_check(&caller, "/t.T/Unary", frame.bytes, frame.size,
                                                 fields, status, answer);
}

DOMT_TEST(unary_call_ends_with_message_or_status)
{
    static const struct {
        const char *text;
        int status;
        const char *answer, *words;
    } cases[] = {
        {"hello", DOMUS_GRPC_OK, "hello", ""},
        {"", DOMUS_GRPC_OK, "", ""},
        {"fail 3 no %\xc3\xbc\x7f", DOMUS_GRPC_INVALID_ARGUMENT, NULL, "no %25%C3%BC%7F"},
        {"fail 0 ", DOMUS_GRPC_OK, "", ""},
        {"fail 17 ", DOMUS_GRPC_UNKNOWN, NULL, ""},
        {"fail -1 x", DOMUS_GRPC_UNKNOWN, NULL, "x"},
        {"none", DOMUS_GRPC_INTERNAL, NULL, ""},
    };

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const domt_call *call =
            expect_answer_to_unary_call(cases[i].text, NULL, cases[i].status, cases[i].answer);
        ck_assert_str_eq(call->text, cases[i].words);
        ck_assert_uint_eq(call->heads, cases[i].answer != NULL ? 2 : 1);
    }
    const domt_call *call = expect_answer_to_unary_call("fail 3  a ", NULL, 3, NULL);
    ck_assert_str_eq(call->text, "a%20");
    domt_called_make_unary_call_and_check(&caller, "/t.T/Wrong", "\0\0\0\0\0", 5, NULL,
                                          DOMUS_GRPC_UNIMPLEMENTED, NULL);
    domt_called_end_service(&caller);
}

DOMT_TEST(handler_errors_become_grpc_statuses)
{
    static const struct {
        int error, status;
    } rows[] = {
        {ECANCELED, 1},   {EINVAL, 3},      {EBADMSG, 3}, {EDOM, 3},          {ETIMEDOUT, 4},
        {ETIME, 4},       {ENOENT, 5},      {EEXIST, 6},  {EACCES, 7},        {EPERM, 7},
        {EMSGSIZE, 8},    {ENOBUFS, 8},     {ENOMEM, 8},  {ENOSPC, 8},        {EDQUOT, 8},
        {ERANGE, 11},     {EOPNOTSUPP, 12}, {ENOSYS, 12}, {EPROTO, 13},       {ENOMSG, 13},
        {EAGAIN, 14},     {EBUSY, 14},      {ESTALE, 14}, {EHOSTDOWN, 14},    {ENOTCONN, 14},
        {ECONNRESET, 14}, {EPIPE, 14},      {EIO, 2},     {EKEYREJECTED, 16}, {ECONNREFUSED, 14},
    };
    char text[32];

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_int_eq((int)domus_grpc_status_of(-rows[i].error), rows[i].status);
        snprintf(text, sizeof text, "error %d", rows[i].error);
        expect_answer_to_unary_call(text, NULL, rows[i].status, NULL);
    }
    ck_assert_int_eq((int)domus_grpc_status_of(0), DOMUS_GRPC_OK);
    expect_answer_to_unary_call("well", NULL, DOMUS_GRPC_OK, "well");
    domt_called_end_service(&caller);
}

DOMT_TEST(status_text_is_cut_between_letters)
{
    static const struct {
        size_t size; /* how many letters of one byte the status text has */
        const char *more;
        size_t got;
    } cases[] = {{DOMUS_GRPC_TEXT_MAX, "", DOMUS_GRPC_TEXT_MAX},
                 {DOMUS_GRPC_TEXT_MAX, "b", DOMUS_GRPC_TEXT_MAX},
                 /* A letter of two bytes, which is sent escaped with six, stands behind the letters
                  * of one byte. */
                 {DOMUS_GRPC_TEXT_MAX - 2, "\xc3\xbc", DOMUS_GRPC_TEXT_MAX + 4},
                 {DOMUS_GRPC_TEXT_MAX - 1, "\xc3\xbc", DOMUS_GRPC_TEXT_MAX - 1}};
    char letters[DOMUS_GRPC_TEXT_MAX];
    char text[DOMUS_GRPC_TEXT_MAX + 20];

    memset(letters, 'a', sizeof letters);
    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "fail 2 %.*s%s", (int)cases[i].size, letters, cases[i].more);
        const domt_call *call = expect_answer_to_unary_call(text, NULL, 2, NULL);
        ck_assert_uint_eq(strlen(call->text), cases[i].got);
    }
    domt_called_end_service(&caller);
}

DOMT_TEST(metadata_size_is_limited)
{
    domt_called_start_service(&caller);
    expect_answer_to_unary_call("fields 8192", NULL, DOMUS_GRPC_OK, "");
    expect_answer_to_unary_call("fields 8193", NULL, DOMUS_GRPC_INTERNAL, NULL);
    domt_called_end_service(&caller);
}

/* Metadata that HTTP cannot send, or that the handler may not set, fails the call. The client
 * receives a status of gRPC all the same. */
DOMT_TEST(unsendable_metadata_fails_its_call)
{
    char text[32];

    domt_called_start_service(&caller);
    for (unsigned i = 0; i < DOMT_CALLED_WRONG; i++) {
        snprintf(text, sizeof text, "before %u", i);
        expect_answer_to_unary_call(text, NULL, DOMUS_GRPC_INTERNAL, NULL);
        snprintf(text, sizeof text, "behind %u", i);
        expect_answer_to_unary_call(text, NULL, DOMUS_GRPC_INTERNAL, NULL);
        snprintf(text, sizeof text, "%u", i);
        domt_frame frame = domt_called_make_frame(text, strlen(text), false);
        const domt_call *call = domt_called_make_unary_call_and_check(
            &caller, "/t.T/Begin", frame.bytes, frame.size, NULL, DOMUS_GRPC_NOT_FOUND, NULL);
        ck_assert_uint_eq(call->heads, 1);
    }
    domt_called_end_service(&caller);
}

/* A call whose status does not fit into its trailers is reset: a client must not take it for a call
 * that has succeeded. */
DOMT_TEST(call_with_too_many_trailers_is_reset)
{
    domt_called_start_service(&caller);
    expect_answer_to_unary_call("many 127", NULL, DOMUS_GRPC_OK, "");
    int32_t id = domt_called_begin_call(&caller, "/t.T/Unary", "\0\0\0\0\10many 128", 13, NULL);
    domt_called_advance_time(&caller, DOMT_CALLED_MS);
    const domt_call *call = domt_called_find_call(&caller, id);
    ck_assert(call->closed && !call->ended);
    ck_assert_uint_eq(call->code, NGHTTP2_INTERNAL_ERROR);
    expect_answer_to_unary_call("well", NULL, DOMUS_GRPC_OK, "well");
    domt_called_end_service(&caller);
}

DOMT_TEST(metadata_passes_in_both_directions)
{
    static const struct {
        const char *sent, *got;
    } cases[] = {{"AAECAw==", "AAECAw"}, {"AAECAw", "AAECAw"}, {"AAEC", "AAEC"},
                 {"AAE=", "AAE"},        {"AAE", "AAE"},       {"", ""}};
    static const char *const wrong[] = {"A", "AAEC=", "AAEC====", "A-EC", "AA E", "=", "A==="};

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const fields[] = {"x-echo", "one two", "x-echo-bin", cases[i].sent, NULL};
        const domt_call *call = expect_answer_to_unary_call("echo", fields, DOMUS_GRPC_OK, "e");
        ck_assert_str_eq(call->before, "one two");
        ck_assert_str_eq(call->behind, cases[i].got);
    }
    domt_called_end_service(&caller);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        domus_slice text;
        domus_slice bytes;
        ck_assert_int_eq(domus_slice_copy(wrong[i], strlen(wrong[i]), &text), 0);
        ck_assert_int_eq(domus_grpc_binary(text, &bytes), -EINVAL);
        domus_slice_free(text);
    }
}

DOMT_TEST(binary_metadata_is_encoded_and_limited)
{
    static const char zeros[DOMUS_GRPC_METADATA_MAX + 1];
    static const struct {
        const char *name;
        size_t size;
        int error;
    } cases[] = {{"a-bin", 1, 0},         {"a-bin", 0, 0},
                 {"a", 1, -EINVAL},       {"-bin", 1, -EINVAL},
                 {"a-BIN", 1, -EINVAL},   {"a-bin", DOMUS_GRPC_METADATA_MAX, 0},
                 {"a b-bin", 1, -EINVAL}, {"a-bin", DOMUS_GRPC_METADATA_MAX + 1, -EINVAL}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domus_appender fields = {0};
        ck_assert_int_eq(domus_grpc_add_binary(&fields, cases[i].name, zeros, cases[i].size),
                         cases[i].error);
        domus_append_drop(&fields);
    }
}

DOMT_TEST(server_stream_delivers_its_messages)
{
    static const struct {
        const char *text;
        int status;
        uint32_t messages, heads;
    } cases[] = {
        {"3", DOMUS_GRPC_OK, 3, 2},         {"0", DOMUS_GRPC_OK, 0, 2},
        {"2!", DOMUS_GRPC_NOT_FOUND, 2, 2}, {"0!", DOMUS_GRPC_NOT_FOUND, 0, 2},
        {"0-", DOMUS_GRPC_OK, 0, 2},
    };

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domt_frame frame = domt_called_make_frame(cases[i].text, strlen(cases[i].text), false);
        const domt_call *call = domt_called_make_unary_call_and_check(
            &caller, "/t.T/Down", frame.bytes, frame.size, NULL, cases[i].status, NULL);
        ck_assert_uint_eq(call->size, cases[i].messages * frame.size);
        ck_assert_uint_eq(call->heads, cases[i].heads);
        for (uint32_t at = 0; at < cases[i].messages; at++)
            ck_assert_int_eq(memcmp(call->bytes + at * frame.size, frame.bytes, frame.size), 0);
    }
    domt_called_end_service(&caller);
}

DOMT_TEST(server_stream_begins_only_once)
{
    domt_called_start_service(&caller);
    const domt_call *call = domt_called_make_unary_call_and_check(
        &caller, "/t.T/Twice", "\0\0\0\0\1a", 6, NULL, DOMUS_GRPC_NOT_FOUND, NULL);
    ck_assert_uint_eq(call->heads, 2);
    domt_called_end_service(&caller);
}

/* A request of HTTP that is no call gets a status of HTTP; a call with a wrong message gets a
 * status of gRPC. */
DOMT_TEST(refused_requests_never_reach_a_handler)
{
    static const struct {
        const char *path, *fields[4];
        int http, status;
    } cases[] = {
        {"/t.T/Unary", {"content-type", "application/json", NULL}, 415, -1},
        {"/t.T/Unary", {"content-type", "application/grpcx", NULL}, 415, -1},
        {"/t.T/Unary", {"content-type", "application/grp", NULL}, 415, -1},
        {"/t.T/Unary", {":method", "PUT", NULL}, 405, -1},
        {"/t.T/None", {NULL}, 200, DOMUS_GRPC_UNIMPLEMENTED},
        {"/", {NULL}, 200, DOMUS_GRPC_UNIMPLEMENTED},
        {"/t.T/Unary/", {NULL}, 200, DOMUS_GRPC_UNIMPLEMENTED},
        {"/t.T/Unary", {"grpc-encoding", "deflate", NULL}, 200, DOMUS_GRPC_UNIMPLEMENTED},
        {"/t.T/Unary", {"grpc-timeout", "1", NULL}, 200, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", {"grpc-timeout", "S", NULL}, 200, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", {"grpc-timeout", "1s", NULL}, 200, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", {"grpc-timeout", "-1S", NULL}, 200, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", {"grpc-timeout", "123456789S", NULL}, 200, DOMUS_GRPC_INTERNAL},
        {"/t.T/Unary", {"content-type", "application/grpc+proto", NULL}, 200, 0},
        {"/t.T/Unary", {"content-type", "application/grpc;a=b", NULL}, 200, 0},
        {"/t.T/Unary", {"grpc-timeout", "12345678H", NULL}, 200, 0},
        {"/t.T/Unary", {"grpc-encoding", "identity", NULL}, 200, 0},
    };

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t begun = domt_called_now.begun;
        int32_t id =
            domt_called_begin_call(&caller, cases[i].path, "\0\0\0\0\1a", 6, cases[i].fields);
        domt_called_advance_time(&caller, DOMT_CALLED_MS);
        const domt_call *call = domt_called_find_call(&caller, id);
        ck_assert_int_eq(call->http, cases[i].http);
        ck_assert_int_eq(call->status, cases[i].status);
        ck_assert_uint_eq(domt_called_now.begun - begun, cases[i].status == 0);
        ck_assert(call->ended);
        if (cases[i].status == DOMUS_GRPC_UNIMPLEMENTED)
            ck_assert_str_eq(call->accepts, "identity, gzip");
    }
    domt_called_end_service(&caller);
}

DOMT_TEST(calls_over_http_1_are_refused_with_text)
{
    static const char request[] = "POST /t.T/Unary HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n"
                                  "Content-Type: application/grpc\r\nContent-Length: 5\r\n\r\n"
                                  "\0\0\0\0";
    size_t size;

    domt_called_start_service(&caller);
    (void)domus_peer_send(caller.peer, request, sizeof request);
    ck_assert_int_eq(domus_testkit_run(caller.kit), 0);
    ck_assert_int_eq(domus_testkit_advance(caller.kit, DOMT_CALLED_MS), 0);
    const char *got = domus_peer_got(caller.peer, &size);
    ck_assert(size > 12 && memcmp(got, "HTTP/1.1 505", 12) == 0);
    ck_assert_ptr_nonnull(memmem(got, size, "HTTP/2", 6));
    domt_called_end_service(&caller);
}

DOMT_TEST(calls_pass_a_chain_of_http)
{
    domt_called_start_service_with(&caller, &domt_called_chained_behaviour, 1);
    expect_answer_to_unary_call("hello", NULL, DOMUS_GRPC_OK, "hello");
    expect_answer_to_unary_call("error 2", NULL, DOMUS_GRPC_NOT_FOUND, NULL);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Down",
                                          "\0\0\0\0\2"
                                          "2!",
                                          7, NULL, DOMUS_GRPC_NOT_FOUND, NULL);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Up", "\0\0\0\0\1a", 6, NULL, DOMUS_GRPC_OK,
                                          "1 1");
    domt_called_make_unary_call_and_check(&caller, "/t.T/None", "\0\0\0\0\1a", 6, NULL,
                                          DOMUS_GRPC_UNIMPLEMENTED, NULL);
    domt_called_end_service(&caller);
}

DOMT_TEST(health_service_answers)
{
    static const struct {
        const char *text;
        size_t size;
        int status;
        const char *answer;
    } cases[] = {
        {"", 0, DOMUS_GRPC_OK, "\x08\x01"},
        {"\x0a\x03t.I", 5, DOMUS_GRPC_OK, "\x08\x01"},
        {"\x0a\x03t.T", 5, DOMUS_GRPC_OK, "\x08\x02"},
        {"\x0a\x83\x00t.I", 6, DOMUS_GRPC_OK, "\x08\x01"},
        {"\x0a\x02t.", 4, DOMUS_GRPC_NOT_FOUND, NULL},
        {"\x0a\x04t.T/", 6, DOMUS_GRPC_NOT_FOUND, NULL},
        {"\x0a\x04t.T", 5, DOMUS_GRPC_INVALID_ARGUMENT, NULL},
        {"\x0a\x83", 2, DOMUS_GRPC_INVALID_ARGUMENT, NULL},
        {"\x0a", 1, DOMUS_GRPC_INVALID_ARGUMENT, NULL},
        {"\x12\x03t.T", 5, DOMUS_GRPC_INVALID_ARGUMENT, NULL},
    };

    domt_called_start_service(&caller);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        domt_frame frame = domt_called_make_frame(cases[i].text, cases[i].size, false);
        domt_called_make_unary_call_and_check(&caller, "/grpc.health.v1.Health/Check", frame.bytes,
                                              frame.size, NULL, cases[i].status, cases[i].answer);
    }
    domt_called_end_service(&caller);
}

/* --- time ------------------------------------------------------------------------------------- */

/* The deadlines of calls: for their handlers, for messages that come late, and for answers that
 * begin at the deadline. */

/* Number of time-outs that are tried, from 2.8 ms to 3.1 ms. */
#define STEPS (unsigned)DOMT_SCALE(60, 12)

DOMT_TEST(calls_end_at_their_deadline)
{
    static const struct {
        const char *timeout; /* value of the field "grpc-timeout" of the call; NULL: none */
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
        {"1M", "a", 1, 0, 10000}, /* the service's own limit of 10 s is shorter than the minute */
        {NULL, "a", 1, 0, 10000},
        {NULL, "sleep 20000", 10010, DOMUS_GRPC_DEADLINE_EXCEEDED, 10000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const fields[] = {"grpc-timeout", cases[i].timeout, NULL};
        domt_frame frame = domt_called_make_frame(cases[i].text, strlen(cases[i].text), false);
        domt_called_start_service(&caller);
        int32_t id = domt_called_begin_call(&caller, "/t.T/Unary", frame.bytes, frame.size,
                                            cases[i].timeout != NULL ? fields : NULL);
        domt_called_advance_time(&caller, 0);
        uint64_t begun_ns = domus_testkit_now_ns(caller.kit);
        domt_called_advance_time(&caller, (cases[i].pass_ms - 1) * DOMT_CALLED_MS);
        ck_assert_int_eq(domt_called_find_call(&caller, id)->status, cases[i].status);
        uint64_t left_ns = domt_called_now.deadline_ns - begun_ns;
        ck_assert_uint_le(left_ns, cases[i].deadline_ms * DOMT_CALLED_MS);
        ck_assert_uint_gt(left_ns, (cases[i].deadline_ms - 5) * DOMT_CALLED_MS);
        domt_called_end_service(&caller);
    }
}

DOMT_TEST(call_with_zero_timeout_ends_at_once)
{
    static const char *const fields[] = {"grpc-timeout", "0n", NULL};

    domt_called_start_service(&caller);
    domt_called_make_unary_call_and_check(&caller, "/t.T/Up", "", 0, fields,
                                          DOMUS_GRPC_DEADLINE_EXCEEDED, NULL);
    domt_called_end_service(&caller);
}

/* The handler of a method that takes one message begins when that has come. The message may come
 * late, in part, byte by byte, or without the end of the stream. */
DOMT_TEST(late_messages_count_against_deadline)
{
    static const char *const paths[] = {"/t.T/Unary", "/t.T/Down", "/t.T/Up"};
    static const struct {
        /* value of the field "grpc-timeout"; NULL: the service's own time-out, 10 s */
        const char *timeout;
        uint64_t ms;
        size_t first; /* how many bytes are sent at once; later one byte is sent every 500 ms */
    } cases[] = {{"100m", 100, 0},  {"100m", 100, 3},  {"100m", 100, 10},
                 {"100m", 100, 25}, {"3S", 3000, 0},   {"3S", 3000, 24},
                 {NULL, 10000, 0},  {NULL, 10000, 25}, {NULL, 10000, 5}};
    domt_frame frame = domt_called_make_frame("3aaaaaaaaaaaaaaaaaaa", 20, false);

    for (size_t i = 0; i < sizeof cases / sizeof *cases * 3; i++) {
        const char *const fields[] = {"grpc-timeout", cases[i / 3].timeout, NULL};
        domt_called_start_service(&caller);
        int32_t id = domt_called_begin_call(&caller, paths[i % 3], frame.bytes, cases[i / 3].first,
                                            cases[i / 3].timeout != NULL ? fields : NULL);
        domt_call *call = domt_called_find_call(&caller, id);
        call->holds_end = true;
        for (uint64_t ms = 0; ms + 500 < cases[i / 3].ms; ms += 500) {
            /* The step is less than 500 ms, because domt_called_advance_time() takes somewhat
             * longer. */
            domt_called_advance_time(&caller, 495 * DOMT_CALLED_MS);
            ck_assert_int_eq(call->http, 0);
            call->body_size += call->body != frame.bytes + frame.size;
            (void)nghttp2_session_resume_data(caller.session, id);
        }
        domt_called_advance_time(&caller, 600 * DOMT_CALLED_MS);
        ck_assert_msg(call->status == DOMUS_GRPC_DEADLINE_EXCEEDED, "%s, case %zu", paths[i % 3],
                      i / 3);
        domt_called_end_service(&caller);
    }
}

/* A handler, perhaps on another thread, begins its answer in the millisecond of the deadline. The
 * answer may come before the channel ends the call, after that, or between the two steps in which
 * the channel ends it. */
DOMT_TEST(answer_begun_at_deadline_has_a_status)
{
    static const char *const threads[] = {"0", "1", "2", "h"};
    unsigned ended[DOMUS_GRPC_UNAUTHENTICATED + 1] = {0};

    for (unsigned i = 0; i < 4 * STEPS; i++) {
        char timeout[16];
        const char *const fields[] = {"grpc-timeout", timeout, NULL};
        domt_frame frame = domt_called_make_frame(threads[i % 4], 1, false);
        domt_called_start_service_with(&caller, &domt_called_behaviour, 1 + i);
        snprintf(timeout, sizeof timeout, "%uu", 2800 + i / 4 * 300 / STEPS);
        for (unsigned n = 0; n < 20; n++)
            (void)domt_called_begin_call(&caller, "/t.T/Late", frame.bytes, frame.size, fields);
        domt_called_advance_time(&caller, 20 * DOMT_CALLED_MS);
        for (int32_t id = 1; id < 40; id += 2) {
            const domt_call *call = domt_called_find_call(&caller, id);
            ck_assert_int_eq(call->http, 200);
            ck_assert(call->ended && call->status >= 0);
            ended[call->status]++;
        }
        domt_called_end_service(&caller);
    }
    ck_assert_uint_ne(ended[DOMUS_GRPC_OK], 0);
    ck_assert_uint_ne(ended[DOMUS_GRPC_DEADLINE_EXCEEDED], 0);
    ck_assert_uint_eq(ended[DOMUS_GRPC_OK] + ended[DOMUS_GRPC_DEADLINE_EXCEEDED], 4 * STEPS * 20);
}

DOMT_SUITE(60)
