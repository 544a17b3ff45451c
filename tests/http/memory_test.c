/* Each allocation of the stage fails in turn: the stage returns -ENOMEM, leaks no memory, and goes
 * on when there is memory again. And memory is only allocated for bytes that have come. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <string.h>

#define HEAD   "PUT /abc HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS HEAD "Transfer-Encoding: chunked\r\n\r\n"

static int answer_with_hello(domus_stage_kit *kit, const domus_stage_message *message)
{
    const domus_http_text text = {200, "text/plain", "hello"};

    return message->kind == DOMUS_STAGE_REQUEST
               ? domus_stage_kit_encode(kit, message->id, &domus_http_text_type, &text)
               : 0;
}

static domt_codec_work make_work_of_stage(const domus_http_options *options, const char *bytes,
                                          size_t size, size_t step)
{
    return (domt_codec_work){{&domus_http_stage, options}, answer_with_hello, bytes, size, step};
}

static void fail_each_allocation_of_stage(const domus_http_options *options, const char *bytes,
                                          size_t size, size_t step)
{
    domt_codec_work work = make_work_of_stage(options, bytes, size, step);

    domt_fail_each_allocation(domt_codec_decode_as_work_says, &work);
}

DOMT_TEST(each_memory_failure_while_decoding_is_returned)
{
    static const domus_http_options streams = {.streams = true};
    static const char chunks[] = CHUNKS "5\r\nhello\r\n0\r\nA: b\r\n\r\n";
    static const char small[] = HEAD "Content-Length: 5\r\n\r\nhello";
    static char large[60000] = HEAD "Expect: 100-continue\r\nContent-Length: 50000\r\n\r\n";

    fail_each_allocation_of_stage(NULL, chunks, sizeof chunks - 1, 1000);
    fail_each_allocation_of_stage(NULL, chunks, sizeof chunks - 1, 3);
    fail_each_allocation_of_stage(&streams, chunks, sizeof chunks - 1, 7);
    fail_each_allocation_of_stage(NULL, small, sizeof small - 1, 7);
    fail_each_allocation_of_stage(NULL, large, strlen(large) + 50000, 1000);
    fail_each_allocation_of_stage(&streams, large, strlen(large) + 50000, 10000);
}

static int append_20_fields(void *context)
{
    domus_appender fields = {0};
    domus_slice made;

    for (int i = 0; i < 20; i++)
        (void)domus_http_add(&fields, "Name", "a value of some length that fills the page");
    int result = domus_append_end(&fields, &made);
    if (result == 0)
        domus_slice_free(made);
    return result;
}

DOMT_TEST(each_memory_failure_while_building_is_returned)
{
    domt_fail_each_allocation(append_20_fields, NULL);
}

static size_t size_of_greatest_block(const domus_http_options *options, const char *bytes)
{
    domt_codec_work work = make_work_of_stage(options, bytes, strlen(bytes), 1000);

    return domt_largest_allocated_block(domt_codec_decode_as_work_says, &work);
}

DOMT_TEST(announced_length_takes_no_memory)
{
    static const domus_http_options large = {.body_max = 1u << 30};

    ck_assert_uint_lt(size_of_greatest_block(&large, HEAD "Content-Length: 1000000000\r\n\r\nabc"),
                      4096);
    ck_assert_uint_lt(size_of_greatest_block(&large, CHUNKS "30000000\r\nabc"), 4096);
}

DOMT_TEST(unfinished_bodies_share_a_memory_bound)
{
    static char body[400000];
    domus_budget budget = {0};
    const domus_http_options options = {.role = DOMUS_ROLE_SERVER, .budget = &budget};

    domt_check_gathered_share_budget(&(domt_gathered){.stage = {&domus_http_stage, &options},
                                                      .budget = &budget,
                                                      .head = HEAD "Content-Length: 400000\r\n\r\n",
                                                      .body = body,
                                                      .size = sizeof body,
                                                      .refused = "HTTP/1.1 503 "});
}

static domus_budget narrow = {.bytes_max = 120000};

/* Collect a body with a budget that has room for one copy of the body and its head, but not for two
 * copies of the body. */
static int gather_body_in_narrow_budget(void *context)
{
    const domus_http_options options = {.role = DOMUS_ROLE_SERVER, .budget = &narrow};
    static const char begin[] = CHUNKS "186a0\r\n";
    static const char end[] = "\r\n0\r\n\r\n";
    static const char body[100000];
    domt_codec http;
    domus_stage_message message;

    domt_http_start_codec(&http, &options);
    ck_assert_int_eq(domus_stage_kit_feed(http.kit, begin, sizeof begin - 1), 0);
    for (size_t at = 0; at < sizeof body; at += 1000) {
        ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 0);
        ck_assert_uint_le(narrow.used_bytes, narrow.bytes_max);
        ck_assert_int_eq(domus_stage_kit_feed(http.kit, body + at, 1000), 0);
    }
    ck_assert_int_eq(domus_stage_kit_feed(http.kit, end, sizeof end - 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
    ck_assert_uint_eq(narrow.used_bytes, 0);
    domt_codec_stop(&http);
    return 0;
}

DOMT_TEST(memory_bound_of_bodies_is_usable_to_its_last_byte)
{
    size_t greatest = domt_largest_allocated_block(gather_body_in_narrow_budget, NULL);

    ck_assert_uint_ge(greatest, 100000);
    ck_assert_uint_le(greatest, narrow.bytes_max);
}

DOMT_SUITE(60)
