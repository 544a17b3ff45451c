/* Datagrams in a running system at their limits: missing room, floods, pauses, and the ways in
 * which a channel ends. */
#include "tests/runtime/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char sent[1000], got[65536];

/* --- room ------------------------------------------------------------------------------------- */

static int write_numbered_datagrams(domus_stack *stack, void *count)
{
    domus_channel *channel = domus_channel_running(stack);

    for (uint32_t i = 0; i < *(uint32_t *)count; i++) {
        domus_buffer *buffer = domt_new_buffer(stack, sizeof i);
        memcpy(domus_buffer_data(buffer), &i, sizeof i);
        ck_assert_int_eq(domus_channel_write(stack, channel, buffer), 0);
    }
    return 0;
}

/* more datagrams than the queue of a Unix socket holds (net.unix.max_dgram_qlen) */
static uint32_t many = 1500;

/* Start the system, and open a channel that is connected to a Unix socket of the test. Returns that
 * socket. */
static int begin_channel_connected_to_peer(domus_datagram_options *options,
                                           domus_address *ret_channel)
{
    char place[64];

    (void)snprintf(place, sizeof place, "unix:@domus-peer-%d", (int)getpid());
    domt_datagrams_start_system(NULL);
    int peer = domt_open_datagram_socket(place, &options->connected);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, options, ret_channel, NULL), 0);
    return peer;
}

DOMT_TEST(connected_unix_channel_waits_for_room_and_keeps_the_order)
{
    domus_datagram_options options = {0};
    domus_address channel;

    int peer = begin_channel_connected_to_peer(&options, &channel);
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams, &many), 0);
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_uint_lt(domt_counters_of_datagrams(channel).sent, many);
    for (uint32_t i = 0; i < many; i++) {
        uint32_t number;
        ck_assert_uint_eq(domt_receive_datagram(peer, &number, sizeof number), sizeof number);
        ck_assert_uint_eq(number, i);
    }
    DOMT_WAIT_FOR(10, domt_counters_of_datagrams(channel).sent == many);
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

static _Atomic uint32_t flushed;

static int count_ended_flush(domus_stack *stack, void *self, const domus_answer *answer)
{
    ck_assert_int_eq(answer->error, 0);
    atomic_fetch_add(&flushed, 1);
    return 0;
}

static int write_numbered_datagrams_and_flush(domus_stack *stack, void *count)
{
    (void)write_numbered_datagrams(stack, count);
    return domus_channel_flush(stack, domus_channel_running(stack), count_ended_flush);
}

static char dump[4096];

DOMT_TEST(flush_waits_until_the_datagrams_have_left)
{
    domus_datagram_options options = {0};
    domus_address channel;

    int peer = begin_channel_connected_to_peer(&options, &channel);
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams_and_flush, &many),
                     DOMUS_PARKED);
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&flushed), 0);
    ck_assert_int_eq(domus_dump_actor(domt_datagram_system, channel, dump, sizeof dump), 0);
    ck_assert_msg(strstr(dump, "      bytes to leave, since ") != NULL, "%s", dump);
    for (uint32_t i = 0; i < many; i++)
        (void)domt_receive_datagram(peer, got, sizeof got);
    DOMT_WAIT_FOR(10, atomic_load(&flushed) == 1);
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(datagrams_without_room_are_thrown_away_at_the_time_out)
{
    const domus_channel_options hasty = {.send_timeout_ns = 50 * DOMT_MS};
    domus_datagram_options options = {.channel = &hasty};
    domus_address channel;

    int peer = begin_channel_connected_to_peer(&options, &channel);
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams, &many), 0);
    domus_datagram_counters counts = {0};
    DOMT_WAIT_FOR(10, (counts = domt_counters_of_datagrams(channel)).unsent != 0);
    ck_assert_uint_eq(counts.sent + counts.unsent, many);
    ck_assert_int_eq(counts.last_error, -ETIMEDOUT);
    for (uint64_t i = 0; i < counts.sent; i++)
        (void)domt_receive_datagram(peer, got, sizeof got);
    /* after the failed sends the channel can still be used */
    ck_assert_int_eq(domt_run_as_actor(channel, domt_channel_write_text, "on"), 0);
    ck_assert_uint_eq(domt_receive_datagram(peer, got, sizeof got), 2);
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(deaf_stranger_does_not_hold_up_a_unix_service)
{
    char places[3][64];
    domus_endpoint at;
    domus_address channel;

    for (int i = 0; i < 3; i++)
        (void)snprintf(places[i], sizeof places[i], "unix:@domus-dgram-%d-%d", i, (int)getpid());
    domt_datagrams_start_system(NULL);
    int deaf = domt_open_datagram_socket(places[0], NULL);
    int good = domt_open_datagram_socket(places[1], NULL);
    ck_assert_int_eq(domt_open_datagram_channel(places[2], NULL, &channel, &at), 0);
    for (uint32_t i = 0; i < 2000; i++)
        domt_send_datagram(deaf, &at, "x", 1);
    domt_send_datagram(good, &at, "good", 4);
    ck_assert_uint_eq(domt_receive_datagram(good, got, sizeof got), 4);
    domus_datagram_counters counts = domt_counters_of_datagrams(channel);
    ck_assert_uint_gt(counts.unsent, 0);
    ck_assert_uint_eq(counts.sent + counts.unsent, 2001);
    ck_assert_int_eq(counts.last_error, -EAGAIN);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).datagrams_unsent,
                      counts.unsent);
    (void)close(deaf);
    (void)close(good);
    domt_end_system(domt_datagram_system);
}

/* --- buffers and copies ----------------------------------------------------------------------- */

/* Returns the value of an option of the system's socket that is bound to this port. */
static int socket_option_at_port(uint16_t port, int name)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in address = {0};
        socklen_t size = sizeof address, value_size = sizeof(int);
        int value;

        if (getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
            address.sin_family == AF_INET && ntohs(address.sin_port) == port) {
            ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, name, &value, &value_size), 0);
            return value;
        }
    }
    ck_abort_msg("no socket has port %u", port);
}

/* The kernel doubles the size of a socket's buffer when it is set. */
DOMT_TEST(sizes_of_buffers_are_those_of_the_options)
{
    const domus_channel_options own = {.send_buffer_bytes = 20000, .receive_buffer_bytes = 30000};
    const domus_datagram_options options = {.channel = &own};
    const domus_channel_options wrong = {.send_buffer_bytes = 1};
    const domus_datagram_options refused = {.channel = &wrong};
    domus_config config = domt_config_of_threads(2);
    domus_endpoint at;

    config.sockets.send_buffer_bytes = 10000;
    config.sockets.receive_buffer_bytes = 15000;
    domt_datagrams_start_system(&config);
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd");
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", &refused, NULL, NULL), -EINVAL);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), open_before);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, &at), 0);
    ck_assert_int_eq(socket_option_at_port(at.port, SO_SNDBUF), 20000);
    ck_assert_int_eq(socket_option_at_port(at.port, SO_RCVBUF), 30000);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", &options, NULL, &at), 0);
    ck_assert_int_eq(socket_option_at_port(at.port, SO_SNDBUF), 40000);
    ck_assert_int_eq(socket_option_at_port(at.port, SO_RCVBUF), 60000);
    domt_end_system(domt_datagram_system);
}

static int append_too_long_and_short_datagrams(domus_stack *stack, void *unused)
{
    static const char most[1 << 20];
    domus_channel *channel = domus_channel_running(stack);

    ck_assert_int_eq(domus_channel_append(stack, channel, most, 65508), -EMSGSIZE);
    ck_assert_int_eq(domus_channel_append(stack, channel, most, sizeof most), -EMSGSIZE);
    ck_assert_int_eq(domus_channel_append(stack, channel, "ab", 2), 0);
    ck_assert_int_eq(domus_channel_append(stack, channel, "", 0), 0);
    return domus_channel_append(stack, channel, "cde", 3);
}

static int append_two_bytes_to_datagram(domus_stack *stack, void *unused)
{
    return domus_channel_append(stack, domus_channel_running(stack), "ab", 2);
}

DOMT_TEST(each_append_is_one_datagram_if_connected)
{
    static const size_t sizes[] = {2, 0, 3};
    domus_datagram_options options = {0};
    domus_address channel;

    domt_datagrams_start_system(NULL);
    int peer = domt_open_datagram_socket("127.0.0.1:0", &options.connected);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, append_too_long_and_short_datagrams, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(domt_receive_datagram(peer, got, sizeof got), sizes[i]);
    ck_assert_int_eq(memcmp(got, "cde", 3), 0);
    DOMT_WAIT_FOR(10, domt_counters_of_datagrams(channel).sent == 3);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, append_two_bytes_to_datagram, NULL), -EDESTADDRREQ);
    (void)close(peer);
    domt_end_system(domt_datagram_system);
}

/* --- floods ----------------------------------------------------------------------------------- */

static int pause_own_channel(domus_stack *stack, void *unused)
{
    return domus_channel_pause(stack, domus_channel_running(stack));
}

static int resume_own_channel(domus_stack *stack, void *unused)
{
    return domus_channel_resume(stack, domus_channel_running(stack));
}

DOMT_TEST(paused_channel_lets_the_kernel_drop_and_counts_it)
{
    domus_address channel;
    domus_endpoint at;

    domt_datagrams_start_system(NULL);
    atomic_store(&domt_answers_now, DOMT_SILENT);
    int fd = domt_open_datagram_socket("127.0.0.1:0", NULL);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, &at), 0);
    domt_send_datagram(fd, &at, "x", 1);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_read) == 1);
    ck_assert_int_eq(domt_run_as_actor(channel, pause_own_channel, NULL), 0);
    domt_pause_ns(20 * DOMT_MS);
    for (int i = 0; i < 5000; i++)
        domt_send_datagram(fd, &at, sent, 1000);
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&domt_datagrams_read), 1);
    /* a channel asks the kernel once a second how many datagrams were lost */
    domt_pause_ns(1000 * DOMT_MS);
    ck_assert_int_eq(domt_run_as_actor(channel, resume_own_channel, NULL), 0);
    DOMT_WAIT_FOR(10, domt_counters_of_datagrams(channel).lost != 0);
    domus_datagram_counters counts = {0};
    DOMT_WAIT_FOR(
        10, (counts = domt_counters_of_datagrams(channel), counts.received + counts.lost == 5001));
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_read) == counts.received - counts.dropped);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).datagrams_lost, counts.lost);
    (void)close(fd);
    domt_end_system(domt_datagram_system);
}

DOMT_TEST(flood_at_one_channel_leaves_room_for_another)
{
    domus_endpoint flooded, other;

    domt_datagrams_start_system(NULL);
    int fds[2] = {domt_open_datagram_socket("127.0.0.1:0", NULL),
                  domt_open_datagram_socket("127.0.0.1:0", NULL)};
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, &flooded), 0);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, &other), 0);
    uint64_t worst_ns = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 1000; i++)
            domt_send_datagram(fds[0], &flooded, sent, 100);
        uint64_t begun_ns = domt_now_ns();
        domt_send_datagram(fds[1], &other, "good", 4);
        ck_assert_uint_eq(domt_receive_datagram(fds[1], got, sizeof got), 4);
        uint64_t took_ns = domt_now_ns() - begun_ns;
        worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
    }
    ck_assert_uint_lt(worst_ns, 2000 * DOMT_MS);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).channels_closed, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
    domt_end_system(domt_datagram_system);
}

/* --- ends ------------------------------------------------------------------------------------- */

static int send_200_datagrams_and_close(domus_stack *stack, void *to)
{
    domus_channel *channel = domus_channel_running(stack);

    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(domus_channel_send_to(stack, channel, to, domt_new_buffer(stack, 9)), 0);
    ck_assert_int_eq(domus_channel_close(stack, channel), 0);
    ck_assert_int_eq(domus_channel_send_to(stack, channel, to, domt_new_buffer(stack, 9)), -EPIPE);
    return 0;
}

DOMT_TEST(close_sends_first_what_is_queued)
{
    domus_config config = domt_config_of_threads(2);
    domus_address channel;
    domus_endpoint own;

    /* a stop of the actor must not wait for the linger time */
    config.channel.linger_ns = 3600000 * DOMT_MS;
    domt_datagrams_start_system(&config);
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd");
    int fd = domt_open_datagram_socket("127.0.0.1:0", &own);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, send_200_datagrams_and_close, &own), 0);
    for (int i = 0; i < 200; i++)
        ck_assert_uint_eq(domt_receive_datagram(fd, got, sizeof got), 9);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), 0);
    (void)close(fd);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open_before);
    domt_end_system(domt_datagram_system);
}

static int send_200_datagrams_and_reset(domus_stack *stack, void *to)
{
    domus_channel *channel = domus_channel_running(stack);

    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(domus_channel_send_to(stack, channel, to, domt_new_buffer(stack, 9)), 0);
    return domus_channel_reset(stack, channel, -EPROTO);
}

static int stop_actor_at_address(domus_stack *stack, void *address)
{
    return domus_stop(stack, *(domus_address *)address);
}

DOMT_TEST(stop_and_reset_end_a_channel)
{
    domus_address channel;
    domus_endpoint own;

    domt_datagrams_start_system(NULL);
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd");
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, &own), 0);
    ck_assert_int_eq(domt_run_as_actor(domt_opener, stop_actor_at_address, &channel), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), 0);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, &channel, &own), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, send_200_datagrams_and_reset, &own), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 2);
    ck_assert_int_eq(atomic_load(&domt_last_close), -EPROTO);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open_before);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).queued_bytes, 0);
    domt_end_system(domt_datagram_system);
}

static int write_numbered_datagrams_and_reset(domus_stack *stack, void *count)
{
    (void)write_numbered_datagrams(stack, count);
    return domus_channel_reset(stack, domus_channel_running(stack), -EPROTO);
}

DOMT_TEST(reset_ends_a_channel_that_waits_for_room)
{
    uint32_t more = 1;
    domus_datagram_options options = {0};
    domus_address channel;

    int peer = begin_channel_connected_to_peer(&options, &channel);
    /* the number of descriptors before the two sockets of this test were opened */
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd") - 2;
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams, &many), 0);
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams_and_reset, &more), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_closed) == 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), -EPROTO);
    ck_assert_uint_gt(domt_profile_of_thread(domt_datagram_system, 0).datagrams_unsent, 1);
    ck_assert_uint_eq(domt_profile_of_thread(domt_datagram_system, 0).queued_bytes, 0);
    (void)close(peer);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open_before);
    domt_end_system(domt_datagram_system);
}

/* A drain answers the datagrams that were read, and closes the channel although its peers go on
 * sending. */
DOMT_TEST(drain_ends_a_channel_that_is_being_talked_to)
{
    domus_endpoint at;

    domt_datagrams_start_system(NULL);
    int fd = domt_open_datagram_socket("127.0.0.1:0", NULL);
    ck_assert_int_eq(domt_open_datagram_channel("127.0.0.1:0", NULL, NULL, &at), 0);
    for (int i = 0; i < 500; i++)
        domt_send_datagram(fd, &at, sent, 100);
    DOMT_WAIT_FOR(10, atomic_load(&domt_datagrams_read) != 0);
    domt_end_system(domt_datagram_system); /* domt_end_system() checks that no channel was cut */
    ck_assert_uint_eq(atomic_load(&domt_datagrams_closed), 1);
    ck_assert_int_eq(atomic_load(&domt_last_close), 0);
    uint32_t answers = 0;
    while (recv(fd, got, sizeof got, MSG_DONTWAIT) == 100)
        answers++;
    ck_assert_uint_eq(answers, atomic_load(&domt_datagrams_read));
    (void)close(fd);
}

/* Read numbers from a socket, after a pause in which the channel has to queue them. */
static void *read_numbers_after_pause(void *fd)
{
    domt_pause_ns(100 * DOMT_MS);
    for (uint32_t i = 0; i < 1500; i++) {
        uint32_t number;
        ck_assert_uint_eq(domt_receive_datagram(*(int *)fd, &number, sizeof number), sizeof number);
        ck_assert_uint_eq(number, i);
    }
    return NULL;
}

/* A drain waits until the peer of a connected channel has taken all queued datagrams. */
DOMT_TEST(drain_sends_what_a_connected_channel_has_queued)
{
    domus_datagram_options options = {0};
    domus_address channel;
    pthread_t reader;

    /* one more channel, which is idle */
    int peer = begin_channel_connected_to_peer(&options, NULL);
    ck_assert_int_eq(domt_open_datagram_channel(NULL, &options, &channel, NULL), 0);
    ck_assert_int_eq(domt_run_as_actor(channel, write_numbered_datagrams, &many), 0);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_numbers_after_pause, &peer), 0);
    domt_end_system(domt_datagram_system); /* domt_end_system() checks that no channel was cut */
    ck_assert_int_eq(pthread_join(reader, NULL), 0);
    ck_assert_uint_eq(atomic_load(&domt_datagrams_closed), 2);
    ck_assert_int_eq(atomic_load(&domt_last_close), 0);
    (void)close(peer);
}

DOMT_SUITE(30)
