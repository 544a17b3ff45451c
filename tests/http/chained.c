/* The service of tests/http/chained.h, whose requests go through a chain. */
#include "tests/http/chained.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/await.h>
#include <domus/http_problem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

domus_http_step domt_chained_parts[4];
domus_http_step domt_chained_guards[4];
char domt_witness_notes[1024];

/* --- the witness, a part that records its calls ---------------------------------------------- */

#define WORD UINT64_C(0x1234)

static void record_call_of_witness(const char *format, char name, unsigned status, uint64_t sent)
{
    size_t size = strlen(domt_witness_notes);

    (void)snprintf(domt_witness_notes + size, sizeof domt_witness_notes - size, format, name,
                   status, (unsigned long long)sent);
}

static int go_on_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_http_go_on(stack, self);
}

static int witness_enter(domus_stack *stack, domus_http_exchange *exchange,
                         domus_http_request *request, const void *options)
{
    const domt_witness *witness = options;

    ck_assert(exchange->has_entered && *exchange->word == 0);
    ck_assert_ptr_eq(domus_http_exchange_of(stack, request), exchange);
    *exchange->word = WORD;
    record_call_of_witness("+%c ", witness->name, 0, 0);
    if (witness->result == DOMUS_PARKED)
        return domus_sleep(stack, 5 * DOMT_SERVED_MS, go_on_after_sleep);
    if (witness->result == DOMUS_HTTP_ANSWERED)
        return domus_http_answer(stack, 403, NULL, "text/plain", "no\n");
    return witness->result;
}

static void witness_leave(domus_http_exchange *exchange, domus_http_leaving *leaving,
                          const void *options)
{
    const domt_witness *witness = options;
    char name[4] = {'X', '-', witness->name, '\0'};
    char text[32];

    ck_assert_uint_eq(*exchange->word, exchange->has_entered ? WORD : 0);
    record_call_of_witness("-%c%u ", witness->name, leaving->status, 0);
    if (witness->adds)
        (void)domus_http_add(leaving->added, name, "yes");
    if (witness->breaks && leaving->error == 0)
        (void)domus_http_add(leaving->added, "Connection", "close");
    if (!witness->fills || !leaving->wants_body || leaving->body.size != 0)
        return;
    (void)snprintf(text, sizeof text, "made by %c\n", witness->name);
    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &leaving->body), 0);
}

static void witness_end(domus_http_exchange *exchange, const void *options)
{
    ck_assert_uint_eq(*exchange->word, exchange->has_entered ? WORD : 0);
    record_call_of_witness(exchange->is_cut ? ".%c%u/%llu! " : ".%c%u/%llu ",
                           ((const domt_witness *)options)->name, exchange->status, exchange->sent);
}

static int witness_check(const void *options)
{
    return options != NULL ? 0 : -EINVAL;
}

const domus_http_part domt_witness_part = {.name = "witness",
                                           .check = witness_check,
                                           .enter = witness_enter,
                                           .leave = witness_leave,
                                           .end = witness_end};

/* --- handlers of the rows -------------------------------------------------------------------- */

static int reply_text(domus_stack *stack, const char *text)
{
    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){200, NULL, text});
}

static int reply_bytes(domus_stack *stack, const void *bytes, size_t size)
{
    domus_http_response response = {.status = 200};
    int error = domus_slice_copy(bytes, size, &response.body);

    return error != 0 ? error : domus_reply(stack, &domus_http_response_type, &response);
}

static int answer_now(domus_stack *stack, void *self, const domus_http_request *request,
                      const domus_http_match *match)
{
    return reply_text(stack, "now\n");
}

DOMUS_SEQUENCE(later, uint64_t)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(10 * DOMT_SERVED_MS);
    return answer->error != 0 ? answer->error : reply_text(stack, "later\n");
    DOMUS_END;
}

static int answer_later(domus_stack *stack, void *self, const domus_http_request *request,
                        const domus_http_match *match)
{
    return domi_later_begin(stack, self, request);
}

DOMUS_SEQUENCE(pieces, bool)
{
    static const domus_http_response head = {.status = 200};
    domus_slice piece;

    DOMUS_BEGIN;
    *frame = domus_slice_equals(domus_http_path(message), "/cut", 4);
    DOMUS_AWAIT(domus_reply_begin(stack, &domus_http_response_type, &head, then));
    if (answer->error != 0 || domus_slice_copy("abc", 3, &piece) != 0)
        return answer->error;
    DOMUS_AWAIT(domus_reply_write(stack, piece, then));
    if (answer->error != 0 || *frame)
        return *frame ? -EIO : answer->error;
    if (domus_slice_copy("def", 3, &piece) != 0)
        return -ENOMEM;
    DOMUS_AWAIT(domus_reply_write(stack, piece, then));
    return domus_reply_end(stack, NULL, NULL);
    DOMUS_END;
}

static int answer_pieces(domus_stack *stack, void *self, const domus_http_request *request,
                         const domus_http_match *match)
{
    return domi_pieces_begin(stack, self, request);
}

static int return_error_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int answer_never(domus_stack *stack, void *self, const domus_http_request *request,
                        const domus_http_match *match)
{
    return domus_sleep(stack, 3600 * DOMT_SERVED_S, return_error_of_sleep);
}

static int answer_with_enoent(domus_stack *stack, void *self, const domus_http_request *request,
                              const domus_http_match *match)
{
    return -ENOENT;
}

/* Answer a request by domus_http_go_on(), which fails: no part waits, so nothing can go on. */
static int answer_by_failing_go_on(domus_stack *stack, void *self,
                                   const domus_http_request *request, const domus_http_match *match)
{
    return domus_http_go_on(stack, self);
}

static int answer_with_forbidden_field(domus_stack *stack, void *self,
                                       const domus_http_request *request,
                                       const domus_http_match *match)
{
    domus_http_response response = {.status = 200};

    ck_assert_int_eq(domus_slice_copy("a: b\r\n\r\n", 8, &response.fields), 0);
    return domus_reply(stack, &domus_http_response_type, &response);
}

static int answer_418_without_body(domus_stack *stack, void *self,
                                   const domus_http_request *request, const domus_http_match *match)
{
    return domus_reply(stack, &domus_http_text_type, &(domus_http_text){.status = 418});
}

static int answer_problem(domus_stack *stack, void *self, const domus_http_request *request,
                          const domus_http_match *match)
{
    static const domus_http_problem problem = {
        .status = 403, .detail = "no", .members = "\"of\":1"};

    return domus_http_reply_problem(stack, &problem, NULL);
}

static int answer_with_ids_of_request(domus_stack *stack, const domus_http_request *request)
{
    char text[256];
    char parent[DOMUS_HTTP_TRACEPARENT_SIZE + 1];
    domus_http_trace trace;
    domus_slice state;
    bool has_state = domus_http_field(request->fields, "tracestate", &state);

    ck_assert_int_eq(domus_http_trace_of(request->fields, &trace), 0);
    domus_http_traceparent_write(&trace, parent);
    (void)snprintf(text, sizeof text, "%s %s%s\n", trace.id, parent, has_state ? " state" : "");
    return reply_bytes(stack, text, strlen(text));
}

static int answer_with_ids_by_own_handler(domus_stack *stack, void *self,
                                          const domus_http_request *request,
                                          const domus_http_match *match)
{
    const domus_http_exchange *exchange = domus_http_exchange_of(stack, request);
    domus_http_trace trace;

    ck_assert_int_eq(domus_http_trace_of(request->fields, &trace), 0);
    ck_assert_mem_eq(exchange->trace.span, trace.span, sizeof trace.span);
    return answer_with_ids_of_request(stack, request);
}

static int answer_with_ids_in_other_actor(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_ptr_null(domus_http_exchange_of(stack, payload));
    return answer_with_ids_of_request(stack, payload);
}

static const domus_behaviour namer = {
    .name = "namer",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){{&domus_http_request_type, answer_with_ids_in_other_actor, 0},
                             {NULL, NULL, 0}},
};

static int forward_to_other_actor(domus_stack *stack, void *self, const domus_http_request *request,
                                  const domus_http_match *match)
{
    domus_address other;
    int error = domus_spawn(stack, &namer, NULL, &other);

    return error != 0 ? error : domus_forward(stack, other);
}

static int answer_with_user(domus_stack *stack, void *self, const domus_http_request *request,
                            const domus_http_match *match)
{
    const domus_http_exchange *exchange = domus_http_exchange_of(stack, request);

    return reply_bytes(stack, exchange->user, strlen(exchange->user));
}

static int answer_with_key_of_path(domus_stack *stack, void *self,
                                   const domus_http_request *request, const domus_http_match *match)
{
    domus_slice key = domus_http_route_value(match, "key");

    return reply_bytes(stack, domus_slice_data(key), key.size);
}

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(POST), "/now", 0}, answer_now, NULL},
    {{DOMUS_HTTP_ON(GET), "/later", 0}, answer_later, NULL},
    {{DOMUS_HTTP_ON(GET), "/pieces", 0}, answer_pieces, NULL},
    {{DOMUS_HTTP_ON(GET), "/cut", 0}, answer_pieces, NULL},
    {{DOMUS_HTTP_ON(GET), "/hang", 0}, answer_never, NULL},
    {{DOMUS_HTTP_ON(GET), "/fail", 0}, answer_with_enoent, NULL},
    {{DOMUS_HTTP_ON(GET), "/again", 0}, answer_by_failing_go_on, NULL},
    {{DOMUS_HTTP_ON(GET), "/wrong", 0}, answer_with_forbidden_field, NULL},
    {{DOMUS_HTTP_ON(GET), "/bare", 0}, answer_418_without_body, NULL},
    {{DOMUS_HTTP_ON(GET), "/problem", 0}, answer_problem, NULL},
    {{DOMUS_HTTP_ON(GET), "/ask", 0}, forward_to_other_actor, NULL},
    {{DOMUS_HTTP_ON(GET), "/names", 0}, answer_with_ids_by_own_handler, NULL},
    {{DOMUS_HTTP_ON(GET), "/user", 0}, answer_with_user, NULL},
    {{DOMUS_HTTP_ON(GET), "/kv/{key}", 0}, answer_with_key_of_path, NULL},
    {{DOMUS_HTTP_ON(GET), "/guarded", 0}, answer_now, domt_chained_guards},
    {{0, NULL, 0}, NULL, NULL},
};

/* --- the service ------------------------------------------------------------------------------ */

static const domus_http_chain chain = {.parts = domt_chained_parts, .rows = rows};
static const domus_http_options options = {.no_date = true, .streams = true, .chain = &chain};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &options}, {NULL, NULL}}};

static int enter_chain_and_answer(domus_stack *stack, void *self, const void *payload)
{
    int result;

    if (!domus_http_enter(stack, payload, &result))
        return result;
    /* a second enter of the same request does nothing */
    ck_assert(domus_http_enter(stack, payload, &result));
    return reply_text(stack, "own\n");
}

static int answer_without_chain(domus_stack *stack, void *self, const void *payload)
{
    return reply_text(stack, "secret\n");
}

#define CHAINED(handler)                                                                           \
    {                                                                                              \
        .name = "chained", .kind = DOMUS_CHANNELS, .pipeline = &pipeline,                          \
        .on_peer = (const domus_on_peer[])                                                         \
        {                                                                                          \
            {.type = &domus_http_request_type, .handle = (handler), .peer_frame_size = 64},        \
                {.type = NULL},                                                                    \
        }                                                                                          \
    }

const domus_behaviour domt_chained = CHAINED(domus_http_dispatch);
const domus_behaviour domt_chained_own = CHAINED(enter_chain_and_answer);
const domus_behaviour domt_chained_around = CHAINED(answer_without_chain);

/* --- the kit ---------------------------------------------------------------------------------- */

domus_testkit *domt_chained_start_kit(const domus_behaviour *behaviour,
                                      const domus_http_step *parts)
{
    uint32_t count = 0;

    for (; parts != NULL && parts[count].part != NULL; count++)
        domt_chained_parts[count] = parts[count];
    domt_chained_parts[count] = (domus_http_step){NULL, NULL};
    domt_witness_notes[0] = '\0';
    return domt_served_start_kit(NULL, behaviour, 1);
}

const char *domt_chained_answer_to_bytes(domus_testkit *kit, const char *from, const char *bytes)
{
    static char got[8192];
    domus_peer *peer;
    size_t size;

    ck_assert_int_eq(domus_peer_connect(kit, DOMT_SERVED_AT, from, &peer), 0);
    domt_kit_peer_send(peer, bytes);
    domt_served_advance_kit(kit, 100 * DOMT_SERVED_MS);
    const char *data = domus_peer_got(peer, &size);
    ck_assert_uint_lt(size, sizeof got);
    memcpy(got, data, size);
    got[size] = '\0';
    /* after a close instead of a reset, a handler would go on, though nobody receives its answer */
    domus_peer_reset(peer);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return got;
}

const char *domt_chained_answer_to_request(domus_testkit *kit, const char *line, const char *fields)
{
    char request[4096];

    ck_assert_int_lt(
        snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: a\r\n%s\r\n", line, fields),
        (int)sizeof request);
    return domt_chained_answer_to_bytes(kit, NULL, request);
}
