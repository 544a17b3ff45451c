/* runtime/files/send.c: in a test kit, files are sent as pieces of an answer, to the stream of
 * another actor, and as the body of a request, and the answer is cut if the file ends too early.
 * Over real sockets, a file is sent to a channel without a pipeline, in bounded memory. */
#include "tests/runtime/clients.h"
#include "tests/runtime/files.h"
#include "tests/runtime/streams.h"
#include "tests/runtime/uploads.h"
#include "tests/support/crowd.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <domus/testkit_net.h>

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND
#define PIECE  131072u

static domus_file *sent_file;
static domus_address far;
static _Atomic uint32_t ended;
static _Atomic int last_error;

/* --- a service -------------------------------------------------------------------------------- */

/* A request "Q SIZE POSITION HOW" for a part of the file. HOW says who sends it: the handler
 * (`reply`), or the actor `far`. */
typedef struct order {
    unsigned long long size, position;
    char how[16];
    domus_stream stream;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type filled_type = {.name = "filled"};

static int end_reply_after_sending(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&ended, 1);
    return answer->error != 0 ? answer->error : domus_reply_end(stack, NULL, NULL);
}

static int send_file_in_begun_reply(domus_stack *stack, void *self, const domus_answer *answer)
{
    order *own = domus_frame(stack);

    if (answer->error != 0)
        return answer->error;
    if (strcmp(own->how, "reply") == 0)
        return domus_file_reply(stack, sent_file, own->position, own->size,
                                end_reply_after_sending);
    int error = domus_reply_stream(stack, &own->stream);
    return error != 0 ? error : domus_ask(stack, far, &order_type, own, end_reply_after_sending);
}

static int reply_with_file_as_asked(domus_stack *stack, void *self, const void *payload)
{
    static const domt_line head = {.text = "file"};
    order *own = domus_frame(stack);

    if (sscanf(((const domt_line *)payload)->text, "Q %llu %llu %15s", &own->size, &own->position,
               own->how) != 3)
        return -EPROTO;
    return domus_reply_begin(stack, &domt_line_type, &head, send_file_in_begun_reply);
}

static const domus_behaviour service = {
    .name = "service",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_stream_server,
    .on_peer = (const domus_on_peer[]){
        {&domt_line_type, reply_with_file_as_asked, sizeof(order), 0, NULL}, {.type = NULL}}};

static int reply_stream_is_filled(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? answer->error : domus_reply(stack, &filled_type, NULL);
}

static int fill_stream_with_file(domus_stack *stack, void *self, const void *payload)
{
    const order *own = payload;

    return domus_file_stream(stack, sent_file, own->position, own->size, own->stream,
                             reply_stream_is_filled);
}

static const domus_behaviour filler = {
    .name = "filler", .on = (const domus_on[]){{&order_type, fill_stream_with_file, 0}, {0}}};

/* --- the file --------------------------------------------------------------------------------- */

/* Returns the text that the client must get: the head, the part of the file in chunks, and the
 * tail. */
static char *text_of_expected_answer(uint64_t position, uint64_t size, const char *tail)
{
    char *text = malloc((size_t)size + 4096);
    size_t at = 0;

    ck_assert_ptr_nonnull(text);
    at += (size_t)snprintf(text, 32, "file+\n");
    while (size != 0) {
        uint64_t part = size < PIECE ? size : PIECE;
        at += (size_t)snprintf(text + at, 32, "%llu:", (unsigned long long)part);
        for (uint64_t i = 0; i < part; i++)
            text[at++] = domt_file_byte_at(position++);
        size -= part;
    }
    memcpy(text + at, tail, strlen(tail) + 1);
    return text;
}

static domus_testkit *begin_kit_with_file(const domus_config *config, uint64_t size)
{
    domus_testkit *kit = domt_pipes_new_kit(config, &service, 1);
    domus_system *system = domus_testkit_system(kit);

    sent_file = domt_file_handle_of_descriptor(system, domt_file_make_unnamed(size));
    atomic_store(&ended, 0), atomic_store(&last_error, 1);
    ck_assert_int_eq(domus_outside_spawn_on(system, 2, &filler, NULL, &far), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

static void end_kit_with_file(domus_testkit *kit)
{
    domus_file_close(sent_file);
    domt_pipes_end_kit(kit);
}

static void check_file_answer_in_both_ways(domus_testkit *kit, uint64_t size, uint64_t position,
                                           uint64_t comes, const char *tail)
{
    static const char *const ways[] = {"reply", "far"};

    for (int way = 0; way < 2; way++) {
        char text[64];
        domus_peer *peer = domt_pipes_connect_peer(kit);
        char *answer = text_of_expected_answer(position, comes, tail);
        snprintf(text, sizeof text, "Q %llu %llu %s\n", (unsigned long long)size,
                 (unsigned long long)position, ways[way]);
        domt_pipes_peer_send(kit, peer, text);
        domt_pipes_peer_expect(kit, peer, answer);
        free(answer);
        domus_peer_finish(peer);
        ck_assert_int_eq(domus_peer_expect_end(peer, SECOND), 0);
    }
}

DOMT_TEST(files_are_sent_in_pieces)
{
    domus_testkit *kit = begin_kit_with_file(NULL, 400000);

    check_file_answer_in_both_ways(kit, 400000, 0, 400000, "0:");
    check_file_answer_in_both_ways(kit, PIECE, 0, PIECE, "0:");
    check_file_answer_in_both_ways(kit, 2 * PIECE, 1, 2 * PIECE, "0:");
    check_file_answer_in_both_ways(kit, 1, 399999, 1, "0:");
    check_file_answer_in_both_ways(kit, 100, 777, 100, "0:");
    check_file_answer_in_both_ways(kit, 0, 0, 0, "0:");
    check_file_answer_in_both_ways(kit, 0, 900000, 0, "0:");
    ck_assert_uint_eq(atomic_load(&ended), 14);
    end_kit_with_file(kit);
}

DOMT_TEST(a_file_that_ends_too_early_cuts_the_stream)
{
    domus_testkit *kit = begin_kit_with_file(NULL, 200000);

    check_file_answer_in_both_ways(kit, 200001, 0, 200000, "!ENODATA\n");
    check_file_answer_in_both_ways(kit, 2000000, 0, 200000, "!ENODATA\n");
    check_file_answer_in_both_ways(kit, 1, 200000, 0, "!ENODATA\n");
    check_file_answer_in_both_ways(kit, 1, 400000, 0, "!ENODATA\n");
    check_file_answer_in_both_ways(kit, INT64_MAX, 0, 200000, "!ENODATA\n");
    check_file_answer_in_both_ways(kit, INT64_MAX, 1, 0, "!EINVAL\n");
    end_kit_with_file(kit);
}

DOMT_TEST(pieces_of_a_sent_file_are_bounded_by_read_max)
{
    domus_config config;

    domt_pipes_make_config(&config);
    config.files.read_max_bytes = 4096;
    domus_testkit *kit = begin_kit_with_file(&config, 10000);
    domus_peer *peer = domt_pipes_connect_peer(kit);
    domt_pipes_peer_send(kit, peer, "Q 10000 0 reply\n");
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
    size_t size;
    const char *got = domus_peer_got(peer, &size);
    ck_assert_uint_eq(size, 6 + 3 * 5 + 10000 + 2);
    ck_assert_int_eq(memcmp(got, "file+\n4096:a", 12), 0);
    domus_peer_reset(peer);
    end_kit_with_file(kit);
}

/* The file is read only when the peer reads, so it can shrink meanwhile. */
DOMT_TEST(a_file_that_shrinks_is_never_filled_up)
{
    domus_config config;
    size_t size;

    domt_pipes_make_config(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int way = 0; way < 2; way++) {
        domus_testkit *kit = begin_kit_with_file(&config, 10000000);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domus_peer_pause(peer);
        domt_pipes_peer_send(kit, peer, way == 0 ? "Q 10000000 0 reply\n" : "Q 10000000 0 far\n");
        ck_assert_int_eq(domus_testkit_advance(kit, SECOND / 10), 0);
        ck_assert_uint_eq(atomic_load(&ended), 0);
        ck_assert_int_eq(ftruncate(sent_file->fd, 1000000), 0);
        domus_peer_resume(peer);
        ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
        ck_assert_uint_eq(atomic_load(&ended), 1);
        ck_assert_int_eq(atomic_load(&last_error), -ENODATA);
        const char *got = domus_peer_got(peer, &size);
        ck_assert_int_eq(memcmp(got + size - 9, "!ENODATA\n", 9), 0);
        ck_assert_uint_eq(size, 6 + 7 * 7 + 6 + 1000000 + 9);
        domus_peer_reset(peer);
        end_kit_with_file(kit);
    }
}

DOMT_TEST(sending_ends_with_its_connection_and_its_system)
{
    uint32_t before = domt_count_directory_entries("/proc/self/fd");
    domus_config config;

    domt_pipes_make_config(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int way = 0; way < 4; way++) {
        domus_testkit *kit = begin_kit_with_file(&config, 10000000);
        domus_peer *peer = domt_pipes_connect_peer(kit);
        domus_peer_pause(peer);
        domt_pipes_peer_send(kit, peer,
                             way % 2 == 0 ? "Q 10000000 0 reply\n" : "Q 10000000 0 far\n");
        ck_assert_int_eq(domus_testkit_advance(kit, SECOND / 10), 0);
        ck_assert_uint_eq(atomic_load(&ended), 0);
        ck_assert_uint_ge(atomic_load(&sent_file->users), 2);
        if (way < 2) {
            domus_peer_reset(peer);
            ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
            ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
            end_kit_with_file(kit);
        } else {
            domus_file_close(sent_file);
            /* the result is 1, because one connection was cut */
            ck_assert_int_eq(domus_testkit_stop(kit), 1);
            domus_testkit_free(kit);
        }
    }
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
}

/* --- a request of this side ------------------------------------------------------------------- */

static const domus_pipeline client_pipeline = {.stages = domt_upload_stages,
                                               .encodes = domt_upload_encodes};

typedef struct upload {
    domus_request request;
} upload;

static const domus_type upload_type = {.name = "upload", .size = sizeof(domus_address)};

static int record_answer_of_upload(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&ended, 1);
    return 0;
}

static int end_request_after_body(domus_stack *stack, void *self, const domus_answer *answer)
{
    const upload *own = domus_frame(stack);

    return answer->error != 0
               ? answer->error
               : domus_request_end(stack, own->request, NULL, NULL, record_answer_of_upload);
}

static int stream_file_to_request(domus_stack *stack, void *self, const domus_answer *answer)
{
    upload *own = domus_frame(stack);

    if (answer->error != 0)
        return answer->error;
    own->request = *(const domus_request *)answer->payload;
    return domus_file_stream(stack, sent_file, 0, 100000, own->request.stream,
                             end_request_after_body);
}

static int begin_upload_of_file(domus_stack *stack, void *self, const void *payload)
{
    static const domt_line head = {.text = "file"};

    return domus_request_begin(stack, *(const domus_address *)payload, &domt_line_type, &head, 0,
                               stream_file_to_request);
}

static const domus_behaviour uploader = {
    .name = "uploader",
    .on = (const domus_on[]){{&upload_type, begin_upload_of_file, sizeof(upload)}, {0}}};

DOMT_TEST(a_file_is_the_body_of_a_request)
{
    domt_line_client client;
    domus_address actor;

    domt_line_client_begin(&client, &client_pipeline, NULL);
    domus_system *system = domus_testkit_system(client.kit);
    sent_file = domt_file_handle_of_descriptor(system, domt_file_make_unnamed(100000));
    atomic_store(&ended, 0), atomic_store(&last_error, 1);
    ck_assert_int_eq(domus_outside_spawn_on(system, 1, &uploader, NULL, &actor), 0);
    domt_send_notice(system, actor, &upload_type, &client.channel);
    char *text = text_of_expected_answer(0, 100000, "0:");
    ck_assert_int_eq(domus_peer_expect(client.peer, text, strlen(text), SECOND), 0);
    free(text);
    ck_assert_int_eq(domus_peer_send(client.peer, "ok\n", 3), 0);
    ck_assert_int_eq(domus_testkit_run(client.kit), 0);
    ck_assert_uint_eq(atomic_load(&ended), 1);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
    domus_file_close(sent_file);
    ck_assert_int_eq(domus_testkit_stop(client.kit), 0);
    domus_testkit_free(client.kit);
}

/* --- to a channel, over real sockets ---------------------------------------------------------- */

static _Atomic uint64_t raw_size;

static int close_raw_channel_after_sending(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&ended, 1);
    domus_channel *channel = domus_channel_running(stack);
    return channel != NULL ? domus_channel_close(stack, channel) : 0;
}

static int send_file_to_raw_channel(domus_stack *stack, void *self, const void *payload)
{
    domus_buffer_free(((const domus_channel_event *)payload)->bytes);
    return domus_file_send(stack, sent_file, 0, atomic_load(&raw_size),
                           close_raw_channel_after_sending);
}

static const domus_behaviour raw_service = {
    .name = "raw", .kind = DOMUS_CHANNELS, .on_read = {send_file_to_raw_channel, 0}};

static domus_system *start_raw_listener(uint64_t size, uint16_t *ret_port)
{
    const domus_listener_config listener = {.name = "raw", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config_of_threads(2);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_system(&config);
    ck_assert_int_eq(domus_serve(system, "raw", &raw_service, NULL, ret_port), 0);
    sent_file = domt_file_handle_of_descriptor(system, domt_file_make_unnamed(size));
    atomic_store(&ended, 0), atomic_store(&last_error, 1);
    atomic_store(&raw_size, size);
    return system;
}

/* Read until the end of the connection, and compare every 1009th byte of each piece with the file.
 * Returns the number of bytes. */
static uint64_t read_and_check_until_end(int fd)
{
    static char bytes[1 << 18];
    uint64_t total = 0;

    for (ssize_t size; (size = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        for (ssize_t i = 0; i < size; i += 1009)
            ck_assert_int_eq(bytes[i], domt_file_byte_at(total + (uint64_t)i));
        total += (uint64_t)size;
    }
    return total;
}

DOMT_TEST(a_large_file_goes_to_a_slow_reader_in_bounded_memory)
{
    const uint64_t size = DOMT_SCALE(64u, 16u) << 20;
    uint16_t port;
    domus_system *system = start_raw_listener(size, &port);
    int64_t before = atomic_load(&system->pressure.meter.held);
    int64_t most = 0;
    int fd = domt_connect_to_port(port);

    ck_assert_int_eq(send(fd, "x", 1, 0), 1);
    for (int i = 0; i < 200; i++) { /* look at memory for 200 ms, in which the peer reads nothing */
        domt_pause_ns(DOMT_MS);
        int64_t held = atomic_load(&system->pressure.meter.held) - before;
        most = held > most ? held : most;
    }
    ck_assert_uint_eq(atomic_load(&ended), 0);
    /* the memory is that of a few pieces, and of pages that the thread keeps */
    ck_assert_int_lt(most, 3 << 19);
    ck_assert_uint_eq(read_and_check_until_end(fd), size);
    DOMT_WAIT_FOR(20, atomic_load(&ended) == 1);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close(fd);

    /* In each round the peer goes away while the file is being sent. */
    for (int i = 0; i < 20; i++) {
        fd = domt_connect_to_port(port);
        ck_assert_int_eq(send(fd, "x", 1, 0), 1);
        domt_pause_ns((uint64_t)i * 200000);
        close(fd);
    }
    DOMT_WAIT_FOR(20, domt_profile_of_all_threads(system).channels_closed == 21);
    ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
    domus_file_close(sent_file);
    domt_end_system(system);
}

DOMT_TEST(raw_channel_gets_file_up_to_its_end)
{
    uint16_t port;
    domus_system *system = start_raw_listener(300000, &port);

    atomic_store(&raw_size, 300001);
    int fd = domt_connect_to_port(port);
    ck_assert_int_eq(send(fd, "x", 1, 0), 1);
    ck_assert_uint_eq(read_and_check_until_end(fd), 300000);
    DOMT_WAIT_FOR(20, atomic_load(&ended) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -ENODATA);
    close(fd);
    domus_file_close(sent_file);
    domt_end_system(system);
}

/* --- misuse ----------------------------------------------------------------------------------- */

static const domus_type misuse_type = {.name = "misuse"};
static _Atomic uint32_t wrong;

static int call_file_send_where_refused(domus_stack *stack, void *self, const void *payload)
{
    const domus_stream none = {.number = 0};

    if (domus_file_send(stack, sent_file, 0, 1, close_raw_channel_after_sending) != -EPERM ||
        domus_file_reply(stack, sent_file, 0, 1, close_raw_channel_after_sending) != -EINVAL ||
        domus_file_stream(stack, sent_file, 0, 1, none, close_raw_channel_after_sending) != -EINVAL)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&ended, 1);
    return 0;
}

static const domus_behaviour misuser = {
    .name = "misuser",
    .on = (const domus_on[]){{&misuse_type, call_file_send_where_refused, 0}, {0}}};

DOMT_TEST(send_without_channel_or_request_is_refused)
{
    uint16_t port;
    domus_system *system = start_raw_listener(10, &port);

    domt_send_notice(system, domt_spawn(system, 0, &misuser, NULL), &misuse_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&ended) == 1);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
    domus_file_close(sent_file);
    domt_end_system(system);
}

DOMT_SUITE(60)
