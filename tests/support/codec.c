/* Runs a message stage in a kit of stages (domus_stage_kit), writes the decoded messages as text,
 * and lets the allocations of the stage fail. */
#include "tests/support/codec.h"

#include "base/memory.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text ------------------------------------------------------------------------------------- */

void domt_text_append_format(domt_text *at, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    int size = vsnprintf(at->to, at->room, format, list);
    va_end(list);
    ck_assert(size >= 0 && (size_t)size < at->room);
    at->to += size;
    at->room -= (size_t)size;
}

void domt_text_append_bytes(domt_text *at, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] < ' ' || bytes[i] > '~')
            domt_text_append_format(at, "\\x%02x", (unsigned char)bytes[i]);
        else
            domt_text_append_format(at, "%c", bytes[i]);
    }
}

void domt_text_append_slice(domt_text *at, domus_slice slice)
{
    const char *data = domus_slice_data(slice);
    uint32_t sum = 0;

    for (uint32_t i = 0; i < slice.size; i++)
        sum = sum * 31 + (unsigned char)data[i];
    if (slice.size > 64)
        domt_text_append_format(at, "%u bytes, %08x", slice.size, sum);
    else
        domt_text_append_bytes(at, data, slice.size);
}

/* --- the stage in a kit ----------------------------------------------------------------------- */

void domt_codec_start(domt_codec *codec, const domus_stage *stage, const void *options)
{
    *codec = (domt_codec){.stages = {{stage, options}, {NULL, NULL}}};
    codec->pipeline.stages = codec->stages;
    ck_assert_int_eq(domus_stage_kit_new(&codec->pipeline, &codec->kit), 0);
}

void domt_codec_stop(domt_codec *codec)
{
    domus_stage_kit_free(codec->kit);
}

const char *domt_codec_take_output(domt_codec *codec)
{
    static char sent[DOMT_TEXT_ROOM];
    size_t size;
    const char *output = domus_stage_kit_output(codec->kit, &size);

    ck_assert_uint_lt(size, sizeof sent);
    memcpy(sent, output, size);
    sent[size] = '\0';
    domus_stage_kit_clear(codec->kit);
    return sent;
}

/* --- traces ----------------------------------------------------------------------------------- */

static int write_decoded_messages(const domt_codec_trace *trace, domt_codec *codec, domt_text *at)
{
    domus_stage_message message;
    int result;

    while ((result = domus_stage_kit_next(codec->kit, &message)) == 1)
        trace->print(at, &message);
    return result;
}

static void write_error_and_answer(const domt_codec_trace *trace, domt_codec *codec, domt_text *at,
                                   int error)
{
    (void)domt_codec_take_output(codec);
    domt_text_append_format(at, "%s", strerrorname_np(-error));
    bool is_reset = domus_stage_kit_fail(codec->kit, DOMUS_NO_ID, NULL, error) != 0;
    trace->print_sent(at, is_reset ? NULL : domt_codec_take_output(codec));
}

const char *domt_codec_decode_to_text(const domt_codec_trace *trace, const char *bytes, size_t size,
                                      size_t cut, size_t step)
{
    static char rooms[4][DOMT_TEXT_ROOM];
    static unsigned turn;
    char *room = rooms[turn++ % 4];
    domt_text at = {room, DOMT_TEXT_ROOM};
    domt_codec codec;
    int result = 0;

    room[0] = '\0';
    domt_codec_start(&codec, trace->stage, trace->options);
    if (trace->begin != NULL)
        trace->begin(&codec, trace->context);
    for (size_t done = 0; done < size && result == 0;) {
        size_t piece = done == 0 && cut != 0 ? cut : step != 0 ? step : size;
        if (piece > size - done)
            piece = size - done;
        ck_assert_int_eq(domus_stage_kit_feed(codec.kit, bytes + done, piece), 0);
        result = write_decoded_messages(trace, &codec, &at);
        done += piece;
    }
    if (result == 0) {
        domus_stage_kit_finish(codec.kit);
        result = write_decoded_messages(trace, &codec, &at);
    }
    if (result < 0)
        write_error_and_answer(trace, &codec, &at, result);
    domt_codec_stop(&codec);
    return room;
}

void domt_codec_check_text(const domt_codec_trace *trace, const char *bytes, size_t size,
                           const char *expected)
{
    ck_assert_str_eq(domt_codec_decode_to_text(trace, bytes, size, 0, 0), expected);
    for (size_t cut = 1; cut < size; cut++)
        ck_assert_str_eq(domt_codec_decode_to_text(trace, bytes, size, cut, 0), expected);
    ck_assert_str_eq(domt_codec_decode_to_text(trace, bytes, size, 0, 1), expected);
}

/* --- memory ----------------------------------------------------------------------------------- */

int domt_codec_decode_as_work_says(void *context)
{
    const domt_codec_work *work = context;
    domus_pipeline_stage stages[2] = {work->stage, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_message message;
    domus_stage_kit *kit;
    int result = domus_stage_kit_new(&pipeline, &kit);

    if (result != 0)
        return result;
    for (size_t done = 0; done < work->size && result == 0; done += work->step) {
        size_t piece = work->size - done < work->step ? work->size - done : work->step;
        result = domus_stage_kit_feed(kit, work->bytes + done, piece);
        while (result == 0 && (result = domus_stage_kit_next(kit, &message)) == 1)
            result = work->answer != NULL ? work->answer(kit, &message) : 0;
    }
    domus_stage_kit_free(kit);
    return result;
}

void domt_fail_each_allocation(int (*work)(void *context), void *context)
{
    int result = -ENOMEM;

    for (int64_t n = 0; result != 0; n++) {
        domi_memory_fail_allocation_after(n, 1);
        result = work(context);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert_msg(result == 0 || result == -ENOMEM, "%d after %lld", result, (long long)n);
        ck_assert_int_lt(n, 10000);
    }
}

static size_t greatest;

static void *allocate_and_record_largest(void *context, size_t bytes)
{
    if (bytes > greatest)
        greatest = bytes;
    return calloc(1, bytes);
}

static void release_measured(void *context, void *memory, size_t bytes)
{
    free(memory);
}

size_t domt_largest_allocated_block(int (*work)(void *context), void *context)
{
    static domus_allocator allocator;

    allocator.allocate = allocate_and_record_largest;
    allocator.free = release_measured;
    greatest = 0;
    const domus_allocator *before = domi_memory_set_allocator(&allocator);
    ck_assert_int_eq(work(context), 0);
    domi_memory_set_allocator(before);
    ck_assert_uint_gt(greatest, 0);
    return greatest;
}

/* --- budgets ---------------------------------------------------------------------------------- */

/* Start a stage, feed it the head of a message, and then `size` bytes of the body. Returns as
 * domus_stage_kit_next() does: 1 if the message is whole, 0 if bytes are missing, or an error. */
static int feed_head_and_body(const domt_gathered *gathered, domt_codec *codec, size_t size)
{
    domus_stage_message message;

    domt_codec_start(codec, gathered->stage.stage, gathered->stage.options);
    ck_assert_int_eq(domus_stage_kit_feed(codec->kit, gathered->head, strlen(gathered->head)), 0);
    ck_assert_int_eq(domus_stage_kit_next(codec->kit, &message), 0);
    ck_assert_int_eq(domus_stage_kit_feed(codec->kit, gathered->body, size), 0);
    return domus_stage_kit_next(codec->kit, &message);
}

void domt_check_gathered_share_budget(const domt_gathered *gathered)
{
    domus_budget *budget = gathered->budget;
    domt_codec codecs[3];

    budget->bytes_max = 300000;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(feed_head_and_body(gathered, &codecs[i], 100000), 0);
        ck_assert_uint_ge(budget->used_bytes, (i + 1) * 100000);
        ck_assert_uint_le(budget->used_bytes, budget->bytes_max);
    }
    uint64_t before = budget->used_bytes;
    ck_assert_int_eq(feed_head_and_body(gathered, &codecs[2], 100000), -ENOMEM);
    /* when the third channel was refused, it gave its bytes back to the budget */
    ck_assert_uint_eq(budget->used_bytes, before);
    ck_assert_int_eq(domus_stage_kit_fail(codecs[2].kit, DOMUS_NO_ID, NULL, -ENOMEM), 0);
    ck_assert_int_eq(
        strncmp(domt_codec_take_output(&codecs[2]), gathered->refused, strlen(gathered->refused)),
        0);
    domt_codec_stop(&codecs[2]);
    domt_codec_stop(&codecs[0]);
    ck_assert_uint_lt(budget->used_bytes, before);
    domt_codec_stop(&codecs[1]);
    ck_assert_uint_eq(budget->used_bytes, 0);
    budget->bytes_max = 1000000;
    ck_assert_int_eq(feed_head_and_body(gathered, &codecs[0], gathered->size), 1);
    ck_assert_uint_ge(budget->used_bytes, gathered->whole_least);
    if (gathered->whole_least == 0)
        ck_assert_uint_eq(budget->used_bytes, 0);
    domt_codec_stop(&codecs[0]);
    ck_assert_uint_eq(budget->used_bytes, 0);
}
