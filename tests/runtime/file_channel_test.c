/* runtime/files/send.c: a file goes to a channel without a pipeline, over real sockets, in
 * bounded memory. */
#include "tests/runtime/files.h"
#include "tests/support/crowd.h"

#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static domus_file *sent_file;
static _Atomic uint32_t ended;
static _Atomic int last_error;

static _Atomic uint64_t raw_size;

static int raw_was_sent(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&last_error, answer->error);
    atomic_fetch_add(&ended, 1);
    domus_channel *channel = domus_channel_running(stack);
    return channel != NULL ? domus_channel_close(stack, channel) : 0;
}

static int raw_read(domus_stack *stack, void *self, const void *payload)
{
    domus_buffer_free(((const domus_channel_event *)payload)->bytes);
    return domus_file_send(stack, sent_file, 0, atomic_load(&raw_size), raw_was_sent);
}

static const domus_behaviour raw_service = {
    .name = "raw", .kind = DOMUS_CHANNELS, .on_read = {raw_read, 0}};

static domus_system *begin_raw(uint64_t size, uint16_t *ret_port)
{
    const domus_listener_config listener = {.name = "raw", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config(2);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start(&config);
    ck_assert_int_eq(domus_serve(system, "raw", &raw_service, NULL, ret_port), 0);
    sent_file = domt_file_handle(system, domt_file_make(size));
    atomic_store(&ended, 0), atomic_store(&last_error, 1);
    atomic_store(&raw_size, size);
    return system;
}

/* Read to the end; hold that the bytes are those of the file. Returns how many. */
static uint64_t read_all(int fd)
{
    static char bytes[1 << 18];
    uint64_t total = 0;

    for (ssize_t size; (size = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
        for (ssize_t i = 0; i < size; i += 1009)
            ck_assert_int_eq(bytes[i], domt_file_byte(total + (uint64_t)i));
        total += (uint64_t)size;
    }
    return total;
}

DOMT_TEST(a_large_file_goes_to_a_slow_reader_in_bounded_memory)
{
    const uint64_t size = DOMT_SCALE(64u, 16u) << 20;
    uint16_t port;
    domus_system *system = begin_raw(size, &port);
    int64_t before = atomic_load(&system->pressure.meter.held);
    int64_t most = 0;
    int fd = domt_connect(port);

    ck_assert_int_eq(send(fd, "x", 1, 0), 1);
    for (int i = 0; i < 200; i++) { /* nobody reads */
        domt_pause_ns(DOMT_MS);
        int64_t held = atomic_load(&system->pressure.meter.held) - before;
        most = held > most ? held : most;
    }
    ck_assert_uint_eq(atomic_load(&ended), 0);
    ck_assert_int_lt(most, 3 << 19); /* a few pieces, and pages that the thread keeps */
    ck_assert_uint_eq(read_all(fd), size);
    DOMT_WAIT_FOR(20, atomic_load(&ended) == 1);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    close(fd);

    /* a peer that goes in the midst */
    for (int i = 0; i < 20; i++) {
        fd = domt_connect(port);
        ck_assert_int_eq(send(fd, "x", 1, 0), 1);
        domt_pause_ns((uint64_t)i * 200000);
        close(fd);
    }
    DOMT_WAIT_FOR(20, domt_profile_all(system).channels_closed == 21);
    ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
    domus_file_close(sent_file);
    domt_end(system);
}

DOMT_TEST(a_channel_gets_what_there_is_of_a_file)
{
    uint16_t port;
    domus_system *system = begin_raw(300000, &port);

    atomic_store(&raw_size, 300001);
    int fd = domt_connect(port);
    ck_assert_int_eq(send(fd, "x", 1, 0), 1);
    ck_assert_uint_eq(read_all(fd), 300000);
    DOMT_WAIT_FOR(20, atomic_load(&ended) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -ENODATA);
    close(fd);
    domus_file_close(sent_file);
    domt_end(system);
}

/* --- misuse ----------------------------------------------------------------------------------- */

static const domus_type misuse_type = {.name = "misuse"};
static _Atomic uint32_t wrong;

static int misuse(domus_stack *stack, void *self, const void *payload)
{
    const domus_stream none = {.number = 0};

    if (domus_file_send(stack, sent_file, 0, 1, raw_was_sent) != -EPERM ||
        domus_file_reply(stack, sent_file, 0, 1, raw_was_sent) != -EINVAL ||
        domus_file_stream(stack, sent_file, 0, 1, none, raw_was_sent) != -EINVAL)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&ended, 1);
    return 0;
}

static const domus_behaviour misuser = {
    .name = "misuser", .on = (const domus_on[]){{&misuse_type, misuse, 0}, {NULL, NULL, 0}}};

DOMT_TEST(only_channels_and_requests_have_somewhere_to_send_to)
{
    uint16_t port;
    domus_system *system = begin_raw(10, &port);

    domt_notice(system, domt_spawn(system, 0, &misuser, NULL), &misuse_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&ended) == 1);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_uint_eq(atomic_load(&sent_file->users), 1);
    domus_file_close(sent_file);
    domt_end(system);
}

DOMT_SUITE(60)
