/* Pipelines on real sockets and threads, with both backends. A service is asked in each way and
 * answers in order while peers come and go, and a stop finds requests under way. Actors on all
 * threads ask a service through pools. Bodies of 16 MiB (1 GiB with DOMT_LONG, an eighth with a
 * sanitizer) of a request, of an answer, or of both at once pass between three threads and through
 * a pool, in memory that does not grow with the body. */
#include "tests/runtime/askers.h"
#include "tests/runtime/pipes.h"
#include "tests/runtime/running.h"
#include "tests/runtime/streams.h"
#include "tests/support/crowd.h"

#include <domus/await.h>
#include <domus/pool.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- a service -------------------------------------------------------------------------------- */

#define ROUNDS DOMT_SCALE(200, 30)

static const char asked[] = "now 0 a\nnear 1 b\nfar 1 c\nfnear 0 d\nffar 1 e\nkeep 1 f\nkfwd 0 g\n"
                            "kffar 1 h\nsleep 1 i\n!ffar 0 j\ntake 0 k\nerr 0 l\nslice 0 m\n";
static const char expected[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nerror EBADMSG\nm\n";

static void send_all_bytes(int fd, const char *text, size_t size)
{
    while (size != 0) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        ck_assert_int_gt(sent, 0);
        text += sent;
        size -= (size_t)sent;
    }
}

static void expect_text_from_socket(int fd, const char *text)
{
    size_t size = strlen(text);
    char got[1024];

    for (size_t at = 0; at < size;) {
        ssize_t part = recv(fd, got + at, size - at, 0);
        /* on EINTR receive again, because the kernel is tearing down a ring that this thread has
         * made */
        if (part < 0 && errno == EINTR)
            continue;
        ck_assert_msg(part > 0, "%s after %zu bytes", part == 0 ? "end" : strerror(errno), at);
        at += (size_t)part;
    }
    ck_assert_msg(memcmp(got, text, size) == 0, "%.*s", (int)size, got);
}

static domus_system *start_service_with_pipeline(uint16_t *ret_port)
{
    static const domus_listener_config listener = {
        .name = "pipe", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config_of_threads(2);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    domt_pipes_spawn_helpers(system, 0, 1);
    ck_assert_int_eq(domus_serve(system, "pipe", &domt_pipe_framed, NULL, ret_port), 0);
    return system;
}

DOMT_TEST(answers_come_in_order_over_real_sockets)
{
    uint16_t port;
    domus_system *system = start_service_with_pipeline(&port);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        int fd = domt_connect_to_port(port);
        size_t split = round % (sizeof asked - 1);
        send_all_bytes(fd, asked, split);
        if (round % 4 == 0)
            domt_pause_ns(100000);
        send_all_bytes(fd, asked + split, sizeof asked - 1 - split);
        if (round % 3 == 0)
            ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        if (round % 5 != 4)
            expect_text_from_socket(fd, expected);
        /* in some rounds requests are under way, and in some the answers were not read */
        close(fd);
    }
    domt_end_system(system);
}

DOMT_TEST(a_stop_answers_what_was_read)
{
    for (uint32_t round = 0; round < 5; round++) {
        uint16_t port;
        domus_system *system = start_service_with_pipeline(&port);
        int fd = domt_connect_to_port(port);

        send_all_bytes(fd, asked, sizeof asked - 1);
        send_all_bytes(fd, "ffar 20 x\n!ffar 20 y\nnow 0 z\n", 30);
        expect_text_from_socket(fd, "a\n");
        domt_end_system(system);
        expect_text_from_socket(fd, expected + 2);
        expect_text_from_socket(fd, "x\ny\nz\n");
        close(fd);
    }
}

/* --- pools ------------------------------------------------------------------------------------ */

#define ASKERS    6u
#define AT_A_TIME 8u
#define EACH      DOMT_SCALE(200, 20)

static domus_endpoint served;

static void spawn_all_askers(domus_system *system, domus_address to, uint64_t timeout_ns)
{
    for (uint32_t id = 0; id < ASKERS; id++) {
        const domt_asking asking = {
            .to = to, .id = id, .at_a_time = AT_A_TIME, .each = EACH, .timeout_ns = timeout_ns};
        domus_address asker = domt_spawn(system, id % 3, &domt_asker, NULL);
        domt_send_notice(system, asker, &domt_asking_type, &asking);
    }
}

static domus_system *start_system_with_line_server(void)
{
    domus_config config = domt_config_of_threads(3);
    domt_asked = domt_answered = domt_failed = domt_wrong = 0;
    domus_system *system = domt_start_system(&config);
    served = domt_serve_channel_at_any_port(system, &domt_line_server);
    return system;
}

static domus_address open_pool_of_lines(domus_system *system, bool per_thread)
{
    const domus_pool_options options = {.behaviour = &domt_line_channel,
                                        .connections_min = 2,
                                        .connections_max = 4,
                                        .queue_max = 1000,
                                        .wait_ns = 10 * DOMT_MS * 1000,
                                        .per_thread = per_thread};
    domus_address pool;
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    (void)domus_endpoint_text(&served, text, sizeof text);
    ck_assert_int_eq(domus_outside_pool_open(system, text, &options, &pool), 0);
    return pool;
}

static void check_asks_through_pool(bool per_thread)
{
    domus_system *system = start_system_with_line_server();

    spawn_all_askers(system, open_pool_of_lines(system, per_thread), 0);
    DOMT_WAIT_FOR(60, atomic_load(&domt_answered) + atomic_load(&domt_failed) +
                              atomic_load(&domt_wrong) ==
                          ASKERS * AT_A_TIME * EACH);
    ck_assert_uint_eq(domt_failed, 0);
    ck_assert_uint_eq(domt_wrong, 0);
    domt_end_system(system);
}

DOMT_TEST(askers_of_all_threads_get_their_answers_from_one_pool)
{
    check_asks_through_pool(false);
}

DOMT_TEST(askers_of_all_threads_get_their_answers_from_pools_of_their_own)
{
    check_asks_through_pool(true);
}

/* --- large bodies ----------------------------------------------------------------------------- */

#define PIECE 50000u
/* most bytes by which the process may grow while a body passes */
#define GROWTH (UINT64_C(24) << 20)

static domus_address pool, writer;
static _Atomic uint64_t done;
static _Atomic int outcome;
static uint64_t body_bytes;

static uint64_t resident_bytes_of_process(void)
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

/* Returns the byte at this place of each body. */
static char byte_of_body_at(uint64_t place)
{
    return (char)('a' + place % 26);
}

typedef struct write_frame {
    domus_request request;
    uint64_t bytes; /* bytes of the body that this conversation has written or read */
    uint64_t sum;
    bool writes; /* the actor that writes the request's body has not finished */
    bool ended;
    domus_body body;
} write_frame;

/* Make the next piece of a body that is written, and count its bytes. */
static domus_slice make_next_piece_of_body(write_frame *frame)
{
    static _Thread_local char data[PIECE];
    uint64_t left = body_bytes - frame->bytes;
    uint32_t size = left < PIECE ? (uint32_t)left : PIECE;
    domus_slice slice;

    for (uint32_t i = 0; i < size; i++) {
        data[i] = byte_of_body_at(frame->bytes + i);
        frame->sum = frame->sum * 31 + (unsigned char)data[i];
    }
    frame->bytes += size;
    ck_assert_int_eq(domus_slice_copy(data, size, &slice), 0);
    return slice;
}

/* Check some bytes of a piece of a body that was read. */
static void check_piece_of_body(write_frame *frame, const domus_answer *answer)
{
    const domus_piece *piece = answer->payload;
    const char *data = domus_slice_data(piece->bytes);

    ck_assert_ptr_eq(answer->type, &domus_piece_type);
    for (uint32_t i = 0; i < piece->bytes.size; i += 97)
        ck_assert_int_eq(data[i], byte_of_body_at(frame->bytes + i));
    frame->bytes += piece->bytes.size;
    frame->ended = piece->last;
}

static const domus_type up_type = {.name = "up"}, down_type = {.name = "down"};
static const domus_type both_type = {.name = "both"};
static const domus_type write_type = {.name = "write", .size = sizeof(domus_request)};

static int record_outcome_of_sequence(int error)
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
        return record_outcome_of_sequence(answer->error);
    frame->request = *(const domus_request *)answer->payload;
    while (answer->error == 0 && frame->bytes != body_bytes)
        DOMUS_AWAIT(
            domus_request_write(stack, frame->request, make_next_piece_of_body(frame), then));
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    if (answer->error != 0)
        return record_outcome_of_sequence(answer->error);
    snprintf(text, sizeof text, "%llu %llu", (unsigned long long)body_bytes,
             (unsigned long long)(frame->sum % 1000000));
    return record_outcome_of_sequence(
        strcmp(((const domt_line *)answer->payload)->text, text) == 0 ? 0 : -EBADMSG);
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
        return record_outcome_of_sequence(answer->error);
    frame->body = ((const domt_line *)answer->payload)->body;
    while (!frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return record_outcome_of_sequence(answer->error);
        check_piece_of_body(frame, answer);
    }
    return record_outcome_of_sequence(frame->bytes == body_bytes ? 0 : -EBADMSG);
    DOMUS_END;
}

/* Send a request whose body another actor writes, and read the body of the answer at the same
 * time. */
DOMUS_SEQUENCE(both, write_frame)
{
    static const domt_line head = {.text = "C echo 0 "};

    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_request_begin(stack, pool, &domt_line_type, &head, 0, then));
    if (answer->error != 0)
        return record_outcome_of_sequence(answer->error);
    frame->request = *(const domus_request *)answer->payload;
    ck_assert_int_eq(domus_ask_add(stack, writer, &write_type, &frame->request, 0, 1), 0);
    /* the answer itself comes first, because the body of the answer ends only behind the body of
     * the request */
    DOMUS_WAIT_FIRST();
    ck_assert_uint_eq(answer->tag, 0);
    if (answer->error != 0)
        return record_outcome_of_sequence(answer->error);
    frame->body = ((const domt_line *)answer->payload)->body;
    while (!frame->ended) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return record_outcome_of_sequence(answer->error);
        check_piece_of_body(frame, answer);
    }
    DOMUS_WAIT_FIRST();
    ck_assert_uint_eq(answer->tag, 1);
    if (answer->error != 0)
        return record_outcome_of_sequence(answer->error);
    return record_outcome_of_sequence(frame->bytes == body_bytes ? 0 : -EBADMSG);
    DOMUS_END;
}

DOMUS_SEQUENCE(write_body, write_frame)
{
    DOMUS_BEGIN;
    frame->request = *(const domus_request *)message;
    while (frame->bytes != body_bytes) {
        DOMUS_AWAIT(
            domus_stream_write(stack, frame->request.stream, make_next_piece_of_body(frame), then));
        if (answer->error != 0 && answer->error != -EALREADY)
            return answer->error;
    }
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    return answer->error != 0 ? answer->error : domus_reply(stack, &up_type, NULL);
    DOMUS_END;
}

static const domus_behaviour asker = {.name = "asker",
                                      .on = (const domus_on[]){DOMUS_ON(&up_type, up),
                                                               DOMUS_ON(&down_type, down),
                                                               DOMUS_ON(&both_type, both),
                                                               DOMUS_ON(&write_type, write_body),
                                                               {0}}};

/* --- the tests -------------------------------------------------------------------------------- */

static void check_long_body_in_pieces(const domus_type *type)
{
    domus_config config = domt_config_of_threads(3);
    const domus_pool_options options = {.behaviour = &line};
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    body_bytes = (uint64_t)(domt_tests_are_long() ? DOMT_SCALE(1024, 128) : DOMT_SCALE(16, 2))
                 << 20;
    atomic_store(&done, 0);
    domus_system *system = domt_start_system(&config);
    served = domt_serve_channel_at_any_port(system, &domt_stream_service);
    (void)domus_endpoint_text(&served, text, sizeof text);
    ck_assert_int_eq(domus_outside_pool_open(system, text, &options, &pool), 0);
    writer = domt_spawn(system, 1, &asker, NULL);
    domus_address address = domt_spawn(system, 2, &asker, NULL);
    uint64_t before = resident_bytes_of_process(), most = 0;
    domt_send_notice(system, address, type, NULL);
    DOMT_WAIT_FOR(550,
                  (most = resident_bytes_of_process() > most ? resident_bytes_of_process() : most,
                   atomic_load(&done) == 1));
    ck_assert_int_eq(atomic_load(&outcome), 0);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(most, before + GROWTH);
    domt_end_system(system);
}

DOMT_TEST(a_large_body_of_a_request_takes_bounded_memory)
{
    check_long_body_in_pieces(&up_type);
}

DOMT_TEST(a_large_body_of_an_answer_takes_bounded_memory)
{
    check_long_body_in_pieces(&down_type);
}

DOMT_TEST(two_large_bodies_at_a_time_take_bounded_memory)
{
    check_long_body_in_pieces(&both_type);
}

DOMT_SUITE(600)
