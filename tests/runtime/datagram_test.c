/* Datagrams in a running system: sizes, senders, Unix sockets, errors, floods, and the ways in
 * which a channel ends. */
#include "tests/runtime/datagrams.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST 65507u

static char sent[LONGEST + 1], got[LONGEST + 1];

static void fill_bytes_to_send(void)
{
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 31 + 7);
}

/* --- sizes and senders ------------------------------------------------------------------------ */

DOMT_TEST(datagrams_of_each_size_are_answered)
{
    static const size_t sizes[] = {0, 1, 1472, 9000, LONGEST, 0, 3};
    static const char *const places[] = {"127.0.0.1:0", "[::1]:0"};
    domus_config config = domt_config_of_threads(2);

    config.io.buffers.size_bytes = LONGEST + 128;
    config.io.buffers.count = 64;
    domt_datagrams_start_system(&config);
    fill_bytes_to_send();
    for (int p = 0; p < 2; p++) {
        domus_address channel;
        domus_endpoint at;
        int fd = domt_open_datagram_socket(places[p], NULL);

        ck_assert_int_eq(domt_open_datagram_channel(places[p], NULL, &channel, &at), 0);
        ck_assert_uint_ne(at.port, 0);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            domt_send_datagram(fd, &at, sent, sizes[i]);
            ck_assert_uint_eq(domt_receive_datagram(fd, got, sizeof got), sizes[i]);
            ck_assert_int_eq(memcmp(got, sent, sizes[i]), 0);
        }
        domus_datagram_counters counts = domt_counters_of_datagrams(channel);
        ck_assert_uint_eq(counts.received, sizeof sizes / sizeof sizes[0]);
        ck_assert_uint_eq(counts.sent, counts.received);
        ck_assert_uint_eq(counts.too_long + counts.dropped + counts.lost + counts.unsent, 0);
        (void)close(fd);
    }
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(datagram_that_no_buffer_holds_is_dropped_and_counted)
{
    domus_address channel;
    domus_endpoint at;

    domt_datagrams_start_system(NULL); /* io.buffers.size is 4 KiB, and the datagrams are larger */
    int fd = domt_open_datagram_socket("127.0.0.1:0", NULL);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, &at), 0);
    domt_send_datagram(fd, &at, sent, 3969);
    domt_send_datagram(fd, &at, sent, 3968);
    ck_assert_uint_eq(domt_receive_datagram(fd, got, sizeof got), 3968);
    domus_datagram_counters counts = domt_counters_of_datagrams(channel);
    ck_assert_uint_eq(counts.received, 2);
    ck_assert_uint_eq(counts.too_long, 1);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).datagrams_dropped, 1);
    (void)close(fd);
    domt_end_system(domt_datagram_system);
}

static void check_address_of_named_sender(int fd, const domus_endpoint *own,
                                          const domus_endpoint *at)
{
    char text[DOMUS_ENDPOINT_TEXT_MAX];
    size_t length = domus_endpoint_text(own, text, sizeof text);

    domt_send_datagram(fd, at, "who", 3);
    ck_assert_uint_eq(domt_receive_datagram(fd, got, sizeof got), length);
    ck_assert_int_eq(memcmp(got, text, length), 0);
}

DOMT_TEST(each_datagram_tells_its_sender)
{
    static const char *const places[] = {"127.0.0.1:0", "[::1]:0"};
    domus_endpoint at;

    domt_datagrams_start_system(NULL);
    atomic_store(&domt_answers_now, DOMT_NAME);
    for (int p = 0; p < 2; p++) {
        domus_endpoint own[3];
        int fds[3];

        ck_assert_int_eq(domt_open_datagram_channel(places[p], NULL, NULL, &at), 0);
        for (int i = 0; i < 3; i++)
            fds[i] = domt_open_datagram_socket(places[p], &own[i]);
        for (int i = 0; i < 9; i++)
            check_address_of_named_sender(fds[i % 3], &own[i % 3], &at);
        for (int i = 0; i < 3; i++)
            (void)close(fds[i]);
    }
    domt_end_system(domt_datagram_system);
}

/* In a burst the channel holds more than its share of buffers, so the library copies its
 * datagrams. */
DOMT_TEST(copied_datagrams_of_a_burst_tell_their_sender)
{
    char text[DOMUS_ENDPOINT_TEXT_MAX];
    domus_endpoint at, own;

    domt_datagrams_start_system(NULL);
    atomic_store(&domt_answers_now, DOMT_NAME);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, &at), 0);
    int fd = domt_open_datagram_socket("127.0.0.1:0", &own);
    size_t length = domus_endpoint_text(&own, text, sizeof text);
    for (int i = 0; i < 200; i++)
        domt_send_datagram(fd, &at, "who", 3);
    for (int i = 0; i < 200; i++) {
        ck_assert_uint_eq(domt_receive_datagram(fd, got, sizeof got), length);
        ck_assert_int_eq(memcmp(got, text, length), 0);
    }
    (void)close(fd);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(unix_datagrams_come_by_path_name_and_from_the_unnamed)
{
    char places[3][64];
    domus_endpoint at, own;

    (void)snprintf(places[0], sizeof places[0], "unix:/tmp/domus-dgram-%d", (int)getpid());
    (void)snprintf(places[1], sizeof places[1], "unix:@domus-dgram-%d", (int)getpid());
    (void)snprintf(places[2], sizeof places[2], "unix:@domus-peer-%d", (int)getpid());
    domt_datagrams_start_system(NULL);
    int fd = domt_open_datagram_socket(places[2], &own);
    int unnamed = domt_open_datagram_socket(NULL, NULL);
    for (int p = 0; p < 2; p++) {
        uint32_t before = atomic_load(&domt_datagrams_read);

        atomic_store(&domt_answers_now, DOMT_NAME);
        ck_assert_int_eq(domt_open_datagram_channel(places[p], NULL, NULL, &at), 0);
        ck_assert_int_eq(domt_open_datagram_channel(places[p], NULL, NULL, NULL), -EADDRINUSE);
        check_address_of_named_sender(fd, &own, &at);
        ck_assert_int_eq(atomic_load(&domt_last_name), 0);
        atomic_store(&domt_answers_now, DOMT_ECHO);
        domt_send_datagram(unnamed, &at, "", 0);
        DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_read) == before + 2);
        ck_assert_int_eq(atomic_load(&domt_last_name), -ENOENT);
        ck_assert_int_eq(atomic_load(&domt_last_answer), -EDESTADDRREQ);
    }
    (void)close(unnamed);
    (void)close(fd);
    domt_end_system(domt_datagram_system);
    ck_assert_int_eq(unlink(places[0] + strlen("unix:")), 0);
}

static int open_nameless_unix_socket(domus_stack *stack, void *ret_at)
{
    const domus_endpoint nameless = {.family = AF_UNIX};

    return domus_datagram_open(stack, &nameless, NULL, NULL, ret_at);
}

DOMT_TEST(kernel_chooses_the_name_of_a_unix_channel)
{
    char place[64];
    domus_endpoint at, own;

    (void)snprintf(place, sizeof place, "unix:@domus-peer-%d", (int)getpid());
    domt_datagrams_start_system(NULL);
    atomic_store(&domt_answers_now, DOMT_NAME);
    ck_assert_int_eq(domt_run_as_actor(domt_opener, open_nameless_unix_socket, &at), 0);
    ck_assert_uint_ge(at.size, 2);
    ck_assert_uint_eq(at.bytes[0], 0);
    int fd = domt_open_datagram_socket(place, &own);
    check_address_of_named_sender(fd, &own, &at);
    (void)close(fd);
    domt_end_system(domt_datagram_system);
}

static int record_opened_count_and_reset(domus_stack *stack, void *ret_opened)
{
    atomic_store((_Atomic uint32_t *)ret_opened, atomic_load(&domt_datagrams_opened));
    return domus_channel_reset(stack, domus_channel_running(stack), -EPROTO);
}

static int open_channel_and_tell_its_address(domus_stack *stack, void *ret_opened)
{
    domus_endpoint at;
    domus_address channel;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    int error = domus_datagram_open(stack, &at, NULL, &channel, NULL);
    return error != 0 ? error
                      : domt_send_function_to_run(stack, channel, record_opened_count_and_reset,
                                                  ret_opened);
}

DOMT_TEST(channel_opens_before_its_first_message)
{
    _Atomic uint32_t opened = 0;

    domt_datagrams_start_system(NULL);
    ck_assert_int_eq(domt_run_as_actor(domt_opener, open_channel_and_tell_its_address, &opened), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), -EPROTO);
    ck_assert_uint_eq(opened, 1);
    domt_end_system(domt_datagram_system);
}

/* --- connected -------------------------------------------------------------------------------- */

DOMT_TEST(connected_channel_talks_to_its_peer_alone)
{
    domus_datagram_options options = {0};
    domus_address channel;
    domus_endpoint at;

    domt_datagrams_start_system(NULL);
    atomic_store(&domt_answers_now, DOMT_SILENT);
    int peer = domt_open_datagram_socket("127.0.0.1:0", &options.connected);
    int stranger = domt_open_datagram_socket("127.0.0.1:0", NULL);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, &at), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, domt_channel_write_text, "hello"), 0);
    ck_assert_uint_eq(domt_receive_datagram(peer, got, sizeof got), 5);
    domt_send_datagram(stranger, &at, "xx", 2);
    domt_send_datagram(peer, &at, "y", 1);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_read) == 1);
    ck_assert_uint_eq(atomic_load(&domt_bytes_read), 1);
    ck_assert_uint_eq(domt_counters_of_datagrams(channel).received, 1);
    (void)close(stranger);
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(refusal_is_counted_or_ends_a_connected_channel)
{
    domus_datagram_options options = {0};
    domus_address channel;

    domt_datagrams_start_system(NULL);
    (void)close(domt_open_datagram_socket("127.0.0.1:0", &options.connected));
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        domus_datagram_counters counts = {0};
        ck_assert_int_eq(domt_run_as_actor(channel, domt_channel_write_text, "hello"), 0);
        DOMT_WAIT_FOR(
            10, (counts = domt_counters_of_datagrams(channel), counts.errors + counts.unsent == i));
        ck_assert_int_eq(counts.last_error, -ECONNREFUSED);
    }
    ck_assert_uint_eq(atomic_load(&domt_datagrams_closed), 0);
    options.ends_on_error = true;
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, domt_channel_write_text, "hello"), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), -ECONNREFUSED);
    domt_end_system(domt_datagram_system);
}

/* --- what is refused -------------------------------------------------------------------------- */

static int check_refused_calls_unconnected(domus_stack *stack, void *to)
{
    domus_channel *channel = domus_channel_running(stack);
    const domus_endpoint nowhere = {0};
    domus_endpoint other;

    ck_assert_int_eq(domus_endpoint_parse("[::1]:9", &other), 0);
    ck_assert_int_eq(domus_channel_finish(stack, channel), -EOPNOTSUPP);
    ck_assert_int_eq(domus_channel_peer(channel, &other), -ENOTCONN);
    ck_assert_int_eq(domus_endpoint_parse("[::1]:9", &other), 0);
    ck_assert_int_eq(domus_channel_write(stack, channel, domt_new_buffer(stack, 1)), -EDESTADDRREQ);
    ck_assert_int_eq(domus_channel_send_to(stack, channel, NULL, domt_new_buffer(stack, 1)),
                     -EDESTADDRREQ);
    ck_assert_int_eq(domus_channel_send_to(stack, channel, &nowhere, domt_new_buffer(stack, 1)),
                     -EAFNOSUPPORT);
    ck_assert_int_eq(domus_channel_send_to(stack, channel, &other, domt_new_buffer(stack, 1)),
                     -EAFNOSUPPORT);
    ck_assert_int_eq(domus_channel_send_to(stack, channel, to, domt_new_buffer(stack, LONGEST + 1)),
                     -EMSGSIZE);
    return 0;
}

static int try_send_to_on_connected_channel(domus_stack *stack, void *to)
{
    return domus_channel_send_to(stack, domus_channel_running(stack), to,
                                 domt_new_buffer(stack, 1));
}

static int queue_empty_datagrams_until_full(domus_stack *stack, void *to)
{
    uint32_t taken = 0;

    for (int error = 0; error == 0; taken++) {
        domus_buffer *buffer = domt_new_buffer(stack, 1);
        ck_assert_int_eq(domus_buffer_trim(buffer, 0), 0);
        error = domus_channel_send_to(stack, domus_channel_running(stack), to, buffer);
        ck_assert(error == 0 || error == -ENOBUFS);
    }
    return (int)taken - 1;
}

DOMT_TEST(each_misuse_of_datagrams_has_its_error)
{
    const domus_channel_options small = {
        .send_low_bytes = 1, .send_high_bytes = 1, .send_max_bytes = 1280};
    const domus_datagram_options limited = {.channel = &small};
    domus_datagram_options options = {0};
    domus_endpoint at;
    domus_address channel;

    domt_datagrams_start_system(NULL);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, NULL, NULL, NULL), -EINVAL);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, &at), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, check_refused_calls_unconnected, &at), 0);
    options.connected = at;
    ck_assert_int_eq(domt_open_datagram_channel("unix:@x", &options, NULL, NULL), -EAFNOSUPPORT);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, try_send_to_on_connected_channel, &at), -EISCONN);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", &limited, &channel, NULL), 0);
    int peer = domt_open_datagram_socket("127.0.0.1:0", &at);
    /* each empty datagram counts as 128 bytes, and when all are sent no byte is counted */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(domt_run_as_actor(channel, queue_empty_datagrams_until_full, &at), 10);
        for (int k = 0; k < 10; k++)
            ck_assert_uint_eq(domt_receive_datagram(peer, got, sizeof got), 0);
        DOMT_WAIT_FOR(10, domt_counters_of_datagrams(channel).sent == (uint64_t)(i + 1) * 10);
    }
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(idle_channel_stays_unless_the_options_say_otherwise)
{
    const domus_channel_options hasty = {.idle_timeout_ns = 30 * DOMT_MS};
    const domus_datagram_options options = {.channel = &hasty};
    domus_config config = domt_config_of_threads(2);

    config.channel.idle_timeout_ns = 30 * DOMT_MS;
    config.connection.first_byte_timeout_ns = 30 * DOMT_MS;
    domt_datagrams_start_system(&config);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, NULL), 0);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", &options, NULL, NULL), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), -ETIMEDOUT);
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&domt_datagrams_closed), 1);
    domt_end_system(domt_datagram_system);
}

static int set_options_of_own_channel(domus_stack *stack, void *argument)
{
    return domus_channel_set_options(stack, domus_channel_running(stack), argument);
}

/* A change of a channel's settings that sets no time-outs does not give it the time-outs of the
 * configuration. */
DOMT_TEST(idle_channel_stays_when_its_settings_change)
{
    domus_channel_options more = {.send_max_bytes = 1 << 20},
                          hasty = {.idle_timeout_ns = 30 * DOMT_MS};
    domus_config config = domt_config_of_threads(2);
    domus_address channel;

    config.channel.idle_timeout_ns = 30 * DOMT_MS;
    config.connection.first_byte_timeout_ns = 30 * DOMT_MS;
    domt_datagrams_start_system(&config);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, set_options_of_own_channel, &more), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, set_options_of_own_channel, NULL), 0);
    domt_pause_ns(100 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&domt_datagrams_closed), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, set_options_of_own_channel, &hasty), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    domt_end_system(domt_datagram_system);
}

static _Atomic int last_open = 1;
static char path[64];

static void open_channel_in_stop_of_actor(domus_stack *stack, void *self)
{
    char text[80];
    domus_endpoint at;

    (void)snprintf(text, sizeof text, "unix:%s", path);
    ck_assert_int_eq(domus_endpoint_parse(text, &at), 0);
    atomic_store(&last_open, domus_datagram_open(stack, &at, NULL, NULL, NULL));
}

/* An actor that is being stopped cannot bind a Unix socket, because the socket's path would stay in
 * the file system. */
DOMT_TEST(actor_that_stops_opens_nothing_and_leaves_no_path)
{
    static const domus_behaviour late = {.name = "late",
                                         .kind = DOMUS_CHANNELS,
                                         .on_mount = domt_count_mount,
                                         .on_stop = open_channel_in_stop_of_actor};

    (void)snprintf(path, sizeof path, "/tmp/domus-late-%d", (int)getpid());
    (void)unlink(path);
    domt_datagrams_start_system(NULL);
    domus_address actor = domt_spawn(domt_datagram_system, 0, &late, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_mounted) == 1);
    ck_assert_int_eq(domus_outside_stop(domt_datagram_system, actor), 0);
    DOMT_WAIT_FOR(10, atomic_load(&last_open) != 1);
    ck_assert_int_eq(atomic_load(&last_open), -ESHUTDOWN);
    ck_assert_int_ne(access(path, F_OK), 0);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(datagram_port_is_shared_only_if_both_channels_want)
{
    const domus_datagram_options shared = {.shares_port = true};
    domus_endpoint at;
    char text[DOMUS_ENDPOINT_TEXT_MAX];

    domt_datagrams_start_system(NULL);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", &shared, NULL, &at), 0);
    (void)domus_endpoint_text(&at, text, sizeof text);
    ck_assert_int_eq(domt_open_datagram_channel(text, NULL, NULL, NULL), -EADDRINUSE);
    ck_assert_int_eq(domt_open_datagram_channel(text, &shared, NULL, NULL), 0);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(open_without_descriptors_fails_and_leaves_nothing)
{
    struct rlimit before;

    domt_datagrams_start_system(NULL);
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {0, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int result = domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, NULL);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(result, -EMFILE);
    ck_assert_int_eq(domt_open_datagram_channel("192.0.2.1:1", NULL, NULL, NULL), -EADDRNOTAVAIL);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), open_before);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, NULL), 0);
    domt_end_system(domt_datagram_system);
}

DOMT_SUITE(30)
