/* Connections that the system opens while something runs short: connects without a free descriptor
 * or on a ring that fails, and connected channels of datagrams, which count against the limit of
 * connects and are drained after the channels that use them. A peer that never answers is a
 * listener on loopback with a full backlog. */
#include "runtime/outside/resolver.h"

#include "tests/runtime/network.h"
#include "tests/runtime/running.h"
#include "tests/support/deny.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/connect.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILLERS 3

/* --- peers ------------------------------------------------------------------------------------ */

static int listener;
static int fillers[FILLERS];
static domus_endpoint at; /* endpoint of the listener that the test has opened */

/* Open the listener. If `is_dark` is true, its backlog is filled, so that it answers no connect. */
static void open_listener_of_peer(bool is_dark)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, is_dark ? 0 : 64), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    at = (domus_endpoint){.family = AF_INET, .port = ntohs(address.sin_port), .size = 4};
    memcpy(at.bytes, &address.sin_addr, 4);
    for (int i = 0; i < FILLERS; i++) {
        fillers[i] = is_dark ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
        if (is_dark)
            (void)connect(fillers[i], (struct sockaddr *)&address, size);
    }
}

static void close_listener_of_peer(void)
{
    for (int i = 0; i < FILLERS; i++) {
        if (fillers[i] >= 0)
            (void)close(fillers[i]);
    }
    (void)close(listener);
}

static _Atomic bool is_held; /* true: look-ups of "held" wait */

/* Resolve "two" to the address of the listener, two times; resolve "held" to the same once
 * `is_held` is false. */
static int resolve_two_and_held(void *context, const char *name, domus_endpoint *ret_found,
                                uint32_t max)
{
    while (strcmp(name, "held") == 0 && atomic_load(&is_held))
        domt_pause_ns(DOMT_MS);
    ret_found[0] = ret_found[1] = at;
    return 2;
}

/* --- actors ----------------------------------------------------------------------------------- */

static const domus_type connect_type = {.name = "connect", .size = 64};
static const domus_type refuse_type = {.name = "refuse"};
static _Atomic int result;
static _Atomic uint32_t done, refused;

static const domus_behaviour line = {.name = "line", .kind = DOMUS_CHANNELS};

static int record_result_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&result, answer->error);
    atomic_fetch_add(&done, 1);
    return 0;
}

static int on_connect_begin_a_connect(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line};

    return domus_connect(stack, payload, &options, record_result_of_connect);
}

/* From now on let each io_uring_enter() of this thread fail with EBADR. */
static int on_refuse_let_ring_fail(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domt_deny_system_call(SYS_io_uring_enter, EBADR), 0);
    atomic_store(&refused, 1);
    return 0;
}

static const domus_on rows[] = {{&connect_type, on_connect_begin_a_connect, 0},
                                {&refuse_type, on_refuse_let_ring_fail, 0},
                                {0}};
static const domus_behaviour client = {.name = "client", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour business = {.name = "business", .on = rows};
static const domus_behaviour *const kinds[] = {&client, &business};

static domus_system *system_;

static void start_system(void)
{
    domus_config config = domt_config_of_threads(1);

    config.listener_count = 0;
    config.connect.attempt_delay_ns = 30 * DOMT_MS;
    system_ = domt_start_system(&config);
    domi_resolver_set_look_up(system_->resolver, resolve_two_and_held, NULL);
}

static void order_connect_to_host(domus_address actor, const char *host)
{
    char to[64] = "";

    (void)snprintf(to, sizeof to, "%s:%u", host, at.port);
    domt_send_notice(system_, actor, &connect_type, to);
}

static int result_of_connect_by_actor(domus_address actor, const char *host)
{
    uint32_t before = atomic_load(&done);

    order_connect_to_host(actor, host);
    DOMT_WAIT_FOR(20, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Limit the descriptors of this process to `more` besides those that are open, which have the
 * lowest numbers. Returns the limit before. */
static struct rlimit limit_descriptors_to_so_many_more(uint32_t more)
{
    struct rlimit before, now;
    int lowest = dup(listener);

    ck_assert_int_ge(lowest, 0);
    (void)close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = (rlim_t)lowest + more;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before;
}

DOMT_TEST(connect_without_descriptors_fails_and_leaves_nothing)
{
    static const char *const hosts[] = {"127.0.0.1", "two"};

    open_listener_of_peer(false);
    start_system();
    for (uint32_t i = 0; i < 4; i++) {
        domus_address actor = domt_spawn(system_, 0, kinds[i % 2], NULL);
        ck_assert_int_eq(result_of_connect_by_actor(actor, hosts[i / 2]), 0);
        uint32_t open = domt_count_directory_entries("/proc/self/fd");
        const struct rlimit before = limit_descriptors_to_so_many_more(0);
        ck_assert_int_eq(result_of_connect_by_actor(actor, hosts[i / 2]), -EMFILE);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), open);
        ck_assert_int_eq(result_of_connect_by_actor(actor, hosts[i / 2]), 0);
        ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).channels_closed == 2 * (i + 1));
    }
    domt_end_system(system_);
    close_listener_of_peer();
}

/* The attempt at the first address gets no answer, and for the second address there is no
 * descriptor. When the first attempt is given up, the connect ends with a time-out. */
DOMT_TEST(attempt_without_a_descriptor_does_not_end_the_first_one)
{
    open_listener_of_peer(true);
    start_system();
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    uint32_t open = domt_count_directory_entries("/proc/self/fd");
    const struct rlimit before = limit_descriptors_to_so_many_more(1);
    order_connect_to_host(actor, "two");
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).connects == 1);
    domt_pause_ns(100 * DOMT_MS); /* the attempt at the second address has failed by then */
    ck_assert_uint_eq(atomic_load(&done), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), open + 1);
    ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open);
    domt_end_system(system_);
    close_listener_of_peer();
}

/* --- the ring --------------------------------------------------------------------------------- */

/* One connect is under way, one waits for the look-up of its name, and one begins later: all three
 * end with the error of the ring, and no descriptor is left. */
static void check_connects_when_ring_fails(const domus_behaviour *behaviour)
{
    uint32_t before = domt_count_directory_entries("/proc/self/fd");

    atomic_store(&done, 0);
    atomic_store(&is_held, true);
    start_system();
    open_listener_of_peer(true);
    domus_address actor = domt_spawn(system_, 0, behaviour, NULL);
    uint32_t open = domt_count_directory_entries("/proc/self/fd");
    order_connect_to_host(actor, "127.0.0.1");
    order_connect_to_host(actor, "two");
    order_connect_to_host(actor, "held");
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open + 3);
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).connects == 3);
    domt_send_notice(system_, actor, &refuse_type, NULL);
    domus_system_wait(system_);
    DOMT_WAIT_FOR(10, atomic_load(&done) == 3);
    ck_assert_int_eq(atomic_load(&result), -EBADR);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == open);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1"), -EBADR);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "two"), -EBADR);
    atomic_store(&is_held, false); /* the look-up ends after all connects have failed */
    ck_assert_int_eq(domus_system_stop(system_), -EBADR);
    domus_system_free(system_);
    close_listener_of_peer();
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
}

DOMT_TEST(connects_end_with_the_error_of_the_ring)
{
    check_connects_when_ring_fails(&client);
    check_connects_when_ring_fails(&business);
}

/* --- datagrams -------------------------------------------------------------------------------- */

#define MS UINT64_C(1000000)

typedef struct service {
    const char *at; /* local endpoint of the channel; NULL: none */
    const char *to; /* remote endpoint of the channel; NULL: it is not connected */
    const domus_behaviour *behaviour;
} service;

static domus_testkit *kit;
static int open_result, close_error;
static uint32_t closed;
static domus_address upstream; /* the channel that was connected last */

static const domus_type write_type = {.name = "write"};

static int append_late_text_to_channel(domus_stack *stack, void *self, const void *nothing)
{
    return domus_channel_append(stack, domus_channel_running(stack), "late", 4);
}

static int record_error_of_close(domus_stack *stack, void *self, const void *payload)
{
    close_error = ((const domus_channel_event *)payload)->error;
    closed++;
    return 0;
}

static const domus_behaviour connected = {
    .name = "connected",
    .kind = DOMUS_CHANNELS,
    .on = (const domus_on[]){{&write_type, append_late_text_to_channel, 0}, {0}},
    .on_close = {record_error_of_close, 0}};

static int notify_upstream_to_write(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domus_notice(stack, upstream, &write_type, NULL);
}

static int serve_datagram_after_sleep(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 20 * MS, notify_upstream_to_write);
}

/* Behaviour of a service that needs the connected channel 20 ms after each datagram. */
static const domus_behaviour late = {
    .name = "late", .kind = DOMUS_CHANNELS, .on_read = {serve_datagram_after_sleep, 0}};

static int open_datagram_channel_in_mount(domus_stack *stack, void *self)
{
    const service *is = self;
    domus_datagram_options options = {.behaviour = is->behaviour, .ends_on_error = true};
    domus_endpoint bound;

    if (is->at != NULL)
        ck_assert_int_eq(domus_endpoint_parse(is->at, &bound), 0);
    if (is->to != NULL)
        ck_assert_int_eq(domus_endpoint_parse(is->to, &options.connected), 0);
    open_result = domus_datagram_open(stack, is->at != NULL ? &bound : NULL, &options,
                                      is->to != NULL ? &upstream : NULL, NULL);
    return 0;
}

static const domus_behaviour opener = {.name = "opener",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(service),
                                       .on_mount = open_datagram_channel_in_mount};

static void begin_kit_with_limit(uint32_t connections_max)
{
    domus_config config;

    domus_config_init(&config);
    config.connect.connections_max = connections_max;
    closed = 0;
    kit = domt_kit_new(&config, 7);
}

/* Let an actor open a channel of datagrams, bound to `bound` and connected to `to` (NULL: neither).
 * Returns the result of the open. */
static int open_channel_of_datagrams(const char *bound, const char *to)
{
    const service is = {bound, to, to != NULL ? &connected : &late};
    domus_address address;

    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(kit), 1, &opener, &is, &address),
                     0);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    return open_result;
}

static void end_kit(void)
{
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_uint_eq(domus_testkit_net_totals(kit).descriptors,
                      domus_system_threads(domus_testkit_system(kit)));
}

/* A drain begins while a service works on a datagram for which it still needs the connected
 * channel. */
DOMT_TEST(connected_channel_drains_behind_channels_that_use_it)
{
    domus_datagram_peer *server, *asker;
    domus_endpoint to;
    size_t size;

    begin_kit_with_limit(10);
    ck_assert_int_eq(open_channel_of_datagrams(NULL, "10.0.0.1:53"), 0);
    ck_assert_int_eq(open_channel_of_datagrams("127.0.0.1:54", NULL), 0);
    domt_net_check_ok(kit, domus_datagram_peer_open(kit, "10.0.0.1:53", NULL, &server));
    domt_net_check_ok(kit, domus_datagram_peer_open(kit, "10.0.0.2:0", NULL, &asker));
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:54", &to), 0);
    domt_net_check_ok(kit, domus_datagram_peer_send(asker, &to, "begin", 5));
    domt_net_check_ok(kit, domus_datagram_peer_expect_nothing(server, MS));
    end_kit();
    ck_assert_ptr_nonnull(domus_datagram_peer_got(server, &size, NULL));
    ck_assert_uint_eq(size, 4);
    ck_assert_uint_eq(closed, 1);
    ck_assert_int_eq(close_error, 0);
    domus_testkit_free(kit);
}

DOMT_TEST(connected_datagram_channels_count_in_connect_limit)
{
    begin_kit_with_limit(2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(open_channel_of_datagrams(NULL, "10.0.0.1:53"), i < 2 ? 0 : -ENOBUFS);
    /* a channel of datagrams without a remote endpoint does not count as a connection of this
     * side */
    ck_assert_int_eq(open_channel_of_datagrams("127.0.0.1:53", NULL), 0);
    end_kit();
    domus_testkit_free(kit);
}

/* A channel of datagrams that has ended, and one that could not be made, give back their places in
 * the limit of connects. */
DOMT_TEST(ended_datagram_channels_free_places_of_connect_limit)
{
    begin_kit_with_limit(1);
    ck_assert_int_eq(open_channel_of_datagrams("unix:@a", "unix:@nobody"), -ECONNREFUSED);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(open_channel_of_datagrams(NULL, "10.0.0.1:53"), 0);
        ck_assert_int_eq(
            domus_outside_notice(domus_testkit_system(kit), upstream, &write_type, NULL), 0);
        /* the kernel refuses a datagram, which ends the channel */
        domt_net_check_ok(kit, domus_testkit_run(kit));
        ck_assert_uint_eq(closed, i + 1);
    }
    end_kit();
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
