/* Bodies of 16 MiB (1 GiB with DOMT_LONG; an eighth with a sanitizer) over real sockets: of a
 * request, of an answer, and of both at a time, between three threads and through a pool, in memory
 * that does not grow with them. */
#include "tests/runtime/running.h"
#include "tests/runtime/streams.h"

#include <domus/await.h>
#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE  50000u
#define GROWTH (UINT64_C(24) << 20) /* bytes that the process may grow by */

static domus_address pool, writer;
static _Atomic uint64_t done;
static _Atomic int outcome;
static uint64_t body_bytes;

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*s %llu", &pages), 1);
    (void)fclose(file);
    return pages * 4096;
}

/* --- the two sides ---------------------------------------------------------------------------- */

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT, .cuts = true};
static const domus_type *const encodes[] = {&domt_line_type, NULL};
static const domus_pipeline_stage stages[] = {{&domt_stream_stage, &as_client}, {NULL, NULL}};
static const domus_pipeline pipeline = {.stages = stages, .encodes = encodes};
static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS, .pipeline = &pipeline};

/* The byte at a place of a body. */
static char byte_at(uint64_t place)
{
    return (char)('a' + place % 26);
}

typedef struct write_frame {
    domus_request request;
    uint64_t bytes; /* that were written, or read */
    uint64_t sum;
    bool writes; /* the other actor still writes */
    bool ended;
    domus_body body;
} write_frame;

/* Make the next piece, and count it. */
static domus_slice next_piece(write_frame *frame)
{
    static _Thread_local char data[PIECE];
    uint64_t left = body_bytes - frame->bytes;
    uint32_t size = left < PIECE ? (uint32_t)left : PIECE;
    domus_slice slice;

    for (uint32_t i = 0; i < size; i++) {
        data[i] = byte_at(frame->bytes + i);
        frame->sum = frame->sum * 31 + (unsigned char)data[i];
    }
    frame->bytes += size;
    ck_assert_int_eq(domus_slice_copy(data, size, &slice), 0);
    return slice;
}

/* Look at some bytes of a piece that has come. */
static void take_piece(write_frame *frame, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;
    const char *data = domus_slice_data(piece->bytes);

    ck_assert_ptr_eq(answer->type, &domus_piece_type);
    for (uint32_t i = 0; i < piece->bytes.size; i += 97)
        ck_assert_int_eq(data[i], byte_at(frame->bytes + i));
    frame->bytes += piece->bytes.size;
    frame->ended = piece->last;
}

static const domus_type up_type = {.name = "up"}, down_type = {.name = "down"};
static const domus_type both_type = {.name = "both"};
static const domus_type write_type = {.name = "write", .size = sizeof(domus_request)};

static int note_done(int error)
{
    atomic_store(&outcome, error);
    atomic_fetch_add(&done, 1);
    return 0;
}

DOMUS_SEQUENCE(up, write_frame)
{
    static const domt_line head = {.text = "C count 0 "};
    char text[64];

    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_request_begin(stack, pool, &domt_line_type, &head, 0, then));
    if (answer->error != 0)
        return note_done(answer->error);
    frame->request = *(const domus_request *)answer->payload;
    while (answer->error == 0 && frame->bytes != body_bytes)
        DOMUS_AWAIT(domus_request_write(stack, frame->request, next_piece(frame), then));
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    if (answer->error != 0)
        return note_done(answer->error);
    snprintf(text, sizeof text, "%llu %llu", (unsigned long long)body_bytes,
             (unsigned long long)(frame->sum % 1000000));
    return note_done(strcmp(((const domt_line *)answer->payload)->text, text) == 0 ? 0 : -EBADMSG);
    DOMUS_END;
}

DOMUS_SEQUENCE(down, write_frame)
{
    domt_line ask = {.text = ""};

    DOMUS_BEGIN;
    (void)message;
    snprintf(ask.text, sizeof ask.text, "Q give %llu", (unsigned long long)body_bytes);
    DOMUS_ASK(pool, &domt_line_type, &ask);
    if (answer->error != 0)
        return note_done(answer->error);
    frame->body = ((const domt_line *)answer->payload)->body;
    while (!frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return note_done(answer->error);
        take_piece(frame, answer);
    }
    return note_done(frame->bytes == body_bytes ? 0 : -EBADMSG);
    DOMUS_END;
}

/* Another actor writes, and ends the body, while this one reads what comes back. */
DOMUS_SEQUENCE(both, write_frame)
{
    static const domt_line head = {.text = "C echo 0 "};

    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_request_begin(stack, pool, &domt_line_type, &head, 0, then));
    if (answer->error != 0)
        return note_done(answer->error);
    frame->request = *(const domus_request *)answer->payload;
    ck_assert_int_eq(domus_ask_add(stack, writer, &write_type, &frame->request, 0, 1), 0);
    DOMUS_WAIT_FIRST(); /* the answer comes before its body, and that ends behind the request's */
    ck_assert_uint_eq(answer->tag, 0);
    if (answer->error != 0)
        return note_done(answer->error);
    frame->body = ((const domt_line *)answer->payload)->body;
    while (!frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return note_done(answer->error);
        take_piece(frame, answer);
    }
    DOMUS_WAIT_FIRST();
    ck_assert_uint_eq(answer->tag, 1);
    if (answer->error != 0)
        return note_done(answer->error);
    return note_done(frame->bytes == body_bytes ? 0 : -EBADMSG);
    DOMUS_END;
}

DOMUS_SEQUENCE(write, write_frame)
{
    DOMUS_BEGIN;
    frame->request = *(const domus_request *)message;
    while (frame->bytes != body_bytes) {
        DOMUS_AWAIT(domus_stream_write(stack, frame->request.stream, next_piece(frame), then));
        if (answer->error != 0 && answer->error != -EALREADY)
            return answer->error;
    }
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    return answer->error != 0 ? answer->error : domus_reply(stack, &up_type, NULL);
    DOMUS_END;
}

static const domus_behaviour asker = {
    .name = "asker",
    .on = (const domus_on[]){DOMUS_ON(&up_type, up),
                             DOMUS_ON(&down_type, down),
                             DOMUS_ON(&both_type, both),
                             DOMUS_ON(&write_type, write),
                             {NULL, NULL, 0}},
};

/* --- the tests -------------------------------------------------------------------------------- */

static void hold(const domus_type *type)
{
    domus_config config = domt_config(3);
    const domus_pool_options options = {.behaviour = &line};
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    body_bytes = (uint64_t)(domt_is_long() ? DOMT_SCALE(1024, 128) : DOMT_SCALE(16, 2)) << 20;
    atomic_store(&done, 0);
    domus_system *system = domt_start(&config);
    domus_endpoint served = domt_serve(system, &domt_stream_service);
    (void)domus_endpoint_text(&served, text, sizeof text);
    ck_assert_int_eq(domus_outside_pool_open(system, text, &options, &pool), 0);
    writer = domt_spawn(system, 1, &asker, NULL);
    domus_address address = domt_spawn(system, 2, &asker, NULL);
    uint64_t before = resident_bytes(), most = 0;
    domt_notice(system, address, type, NULL);
    DOMT_WAIT_FOR(
        550, (most = resident_bytes() > most ? resident_bytes() : most, atomic_load(&done) == 1));
    ck_assert_int_eq(atomic_load(&outcome), 0);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(most, before + GROWTH);
    domt_end(system);
}

DOMT_TEST(a_large_body_of_a_request_takes_bounded_memory)
{
    hold(&up_type);
}

DOMT_TEST(a_large_body_of_an_answer_takes_bounded_memory)
{
    hold(&down_type);
}

DOMT_TEST(two_large_bodies_at_a_time_take_bounded_memory)
{
    hold(&both_type);
}

DOMT_SUITE(600)
