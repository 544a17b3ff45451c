/* Each allocation fails in turn: the stage returns -ENOMEM, loses no memory, and goes on well when
 * there is memory again. And memory is taken for bytes that have come only. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD   "PUT /abc HTTP/1.1\r\nHost: a\r\n"
#define CHUNKS HEAD "Transfer-Encoding: chunked\r\n\r\n"

/* Decode and answer everything with a new stage. Returns 0, or -ENOMEM. */
static int serve(const domus_http_options *options, const char *bytes, size_t size, size_t step)
{
    domus_pipeline_stage stages[2] = {{&domus_http_stage, options}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_message message;
    domus_stage_kit *kit;
    int result = domus_stage_kit_new(&pipeline, &kit);

    if (result != 0)
        return result;
    for (size_t done = 0; done < size && result == 0; done += step) {
        size_t piece = size - done < step ? size - done : step;
        result = domus_stage_kit_feed(kit, bytes + done, piece);
        while (result == 0 && (result = domus_stage_kit_next(kit, &message)) == 1) {
            const domus_http_text text = {200, "text/plain", "hello"};
            result = message.kind == DOMUS_STAGE_REQUEST
                         ? domus_stage_kit_encode(kit, message.id, &domus_http_text_type, &text)
                         : 0;
        }
    }
    domus_stage_kit_free(kit);
    return result;
}

/* Raise the number of allocations that succeed until all do. */
static void sweep(const domus_http_options *options, const char *bytes, size_t size, size_t step)
{
    int result = -ENOMEM;

    for (int64_t n = 0; result != 0; n++) {
        domi_memory_fail_after(n, 1);
        result = serve(options, bytes, size, step);
        domi_memory_fail_after(-1, 0);
        ck_assert_msg(result == 0 || result == -ENOMEM, "%d after %lld", result, (long long)n);
        ck_assert_int_lt(n, 10000);
    }
}

START_TEST(each_failure_while_decoding_is_returned)
{
    static const domus_http_options streams = {.streams = true};
    static const char chunks[] = CHUNKS "5\r\nhello\r\n0\r\nA: b\r\n\r\n";
    static const char small[] = HEAD "Content-Length: 5\r\n\r\nhello";
    static char large[60000] = HEAD "Expect: 100-continue\r\nContent-Length: 50000\r\n\r\n";

    sweep(NULL, chunks, sizeof chunks - 1, 1000);
    sweep(NULL, chunks, sizeof chunks - 1, 3);
    sweep(&streams, chunks, sizeof chunks - 1, 7);
    sweep(NULL, small, sizeof small - 1, 7);
    sweep(NULL, large, strlen(large) + 50000, 1000);
    sweep(&streams, large, strlen(large) + 50000, 10000);
}
END_TEST

static int build(void)
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

START_TEST(each_failure_while_building_is_returned)
{
    int result = -ENOMEM;

    for (int64_t n = 0; result != 0; n++) {
        domi_memory_fail_after(n, 1);
        result = build();
        domi_memory_fail_after(-1, 0);
        ck_assert(result == 0 || result == -ENOMEM);
        ck_assert_int_lt(n, 1000);
    }
}
END_TEST

/* --- the greatest block ----------------------------------------------------------------------- */

static size_t greatest;

static void *allocate(void *context, size_t bytes)
{
    (void)context;
    if (bytes > greatest)
        greatest = bytes;
    return calloc(1, bytes);
}

static void release(void *context, void *memory, size_t bytes)
{
    (void)context;
    (void)bytes;
    free(memory);
}

/* Feed bytes, and return the greatest block that was taken meanwhile. */
static size_t takes(const domus_http_options *options, const char *bytes)
{
    const domus_allocator *before;
    static domus_allocator allocator;

    allocator.allocate = allocate;
    allocator.free = release;
    greatest = 0;
    before = domi_memory_set_allocator(&allocator);
    ck_assert_int_eq(serve(options, bytes, strlen(bytes), 1000), 0);
    domi_memory_set_allocator(before);
    ck_assert_uint_gt(greatest, 0);
    return greatest;
}

START_TEST(nothing_is_taken_for_what_is_announced)
{
    static const domus_http_options large = {.body_max = 1u << 30};

    ck_assert_uint_lt(takes(&large, HEAD "Content-Length: 1000000000\r\n\r\nabc"), 4096);
    ck_assert_uint_lt(takes(&large, CHUNKS "30000000\r\nabc"), 4096);
}
END_TEST

static domus_stage_kit *gather(const domus_pipeline *pipeline, size_t size, int *ret_result)
{
    static const char head[] = HEAD "Content-Length: 400000\r\n\r\n";
    static char body[400000];
    domus_stage_message message;
    domus_stage_kit *kit;

    ck_assert_int_eq(domus_stage_kit_new(pipeline, &kit), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, head, sizeof head - 1), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, body, size), 0);
    *ret_result = domus_stage_kit_next(kit, &message);
    return kit;
}

START_TEST(bodies_in_part_share_a_bound)
{
    domus_http_budget budget = {.bytes_max = 300000};
    const domus_http_options options = {.role = DOMUS_ROLE_SERVER, .budget = &budget};
    const domus_pipeline_stage stages[2] = {{&domus_http_stage, &options}, {NULL, NULL}};
    const domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kits[3];
    int result;

    for (int i = 0; i < 2; i++) {
        kits[i] = gather(&pipeline, 100000, &result);
        ck_assert_int_eq(result, 0);
        ck_assert_uint_ge(budget.used_bytes, (uint64_t)(i + 1) * 100000);
        ck_assert_uint_le(budget.used_bytes, budget.bytes_max);
    }
    uint64_t before = budget.used_bytes;
    kits[2] = gather(&pipeline, 100000, &result);
    ck_assert_int_eq(result, -ENOMEM);
    ck_assert_uint_eq(budget.used_bytes, before); /* it gives back what it had at once */
    ck_assert_int_eq(domus_stage_kit_fail(kits[2], DOMUS_NO_ID, NULL, result), 0);
    size_t size;
    const char *said = domus_stage_kit_output(kits[2], &size);
    ck_assert_int_eq(strncmp(said, "HTTP/1.1 503 ", 13), 0);
    domus_stage_kit_free(kits[2]);
    domus_stage_kit_free(kits[0]);
    ck_assert_uint_lt(budget.used_bytes, before);
    domus_stage_kit_free(kits[1]);
    ck_assert_uint_eq(budget.used_bytes, 0);
    budget.bytes_max = 1000000;
    kits[0] = gather(&pipeline, 400000, &result);
    ck_assert_int_eq(result, 1); /* whole, so it does not count */
    ck_assert_uint_eq(budget.used_bytes, 0);
    domus_stage_kit_free(kits[0]);
}
END_TEST

DOMT_MAIN("memory", 60, each_failure_while_decoding_is_returned,
          each_failure_while_building_is_returned, nothing_is_taken_for_what_is_announced,
          bodies_in_part_share_a_bound)
