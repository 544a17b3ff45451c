/* Connections that actors open: to listeners of the same system over TCP and Unix sockets, from
 * channels actors and from state actors, to addresses without a listener, and to peers that never
 * answer. */
#include "tests/runtime/running.h"

#include <domus/connect.h>
#include <domus/listen.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- the server: an echo ---------------------------------------------------------------------- */

static domus_endpoint served;
static _Atomic uint32_t listening;
static _Atomic uint32_t server_opened, server_closed;

static const domus_type listen_type = {.name = "listen", .size = sizeof(domus_endpoint)};

static int listen_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    domus_endpoint at;

    memcpy(&at, payload, sizeof at);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, NULL, &served), 0);
    atomic_fetch_add(&listening, 1);
    return 0;
}

static int on_server_open_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&server_opened, 1);
    return 0;
}

static int on_server_close_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&server_closed, 1);
    return 0;
}

static const domus_on server_rows[] = {{&listen_type, listen_as_ordered, 0}, {0}};
static const domus_behaviour server = {.name = "server",
                                       .kind = DOMUS_CHANNELS,
                                       .on = server_rows,
                                       .on_open = {on_server_open_count, 0},
                                       .on_read = {domt_on_read_echo, 0},
                                       .on_close = {on_server_close_count, 0}};

/* --- the client: its channel sends one byte, and closes when it is back ----------------------- */

static _Atomic uint32_t mounted, opened, echoed, closed_;
static _Atomic int open_result, mount_result;

typedef struct line {
    uint32_t marker;
} line;

static int on_line_mount_set_state(domus_stack *stack, void *self)
{
    line *of = self;

    ck_assert_uint_eq(of->marker, 0);
    of->marker = 7;
    atomic_fetch_add(&mounted, 1);
    return atomic_load(&mount_result);
}

static int on_line_open_send_a_byte(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;
    line *of = self;

    ck_assert_uint_eq(of->marker, 7);
    atomic_fetch_add(&opened, 1);
    if (atomic_load(&open_result) != 0)
        return atomic_load(&open_result);
    ck_assert_int_eq(domus_buffer_new(stack, 1, &bytes), 0);
    memcpy(domus_buffer_data(bytes), "x", 1);
    return domus_channel_write(stack, event->channel, bytes);
}

static int on_line_read_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ck_assert_uint_eq(domus_buffer_size(event->bytes), 1);
    domus_buffer_free(event->bytes);
    atomic_fetch_add(&echoed, 1);
    return domus_channel_close(stack, event->channel);
}

static int on_line_close_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed_, 1);
    return 0;
}

static const domus_behaviour line_behaviour = {.name = "line",
                                               .kind = DOMUS_CHANNELS,
                                               .state_size = sizeof(line),
                                               .on_mount = on_line_mount_set_state,
                                               .on_open = {on_line_open_send_a_byte, 0},
                                               .on_read = {on_line_read_close, 0},
                                               .on_close = {on_line_close_count, 0}};

/* The order by which a test lets an actor connect; `result` gets the outcome of the connect. */
typedef struct order {
    char to[120];
    uint64_t timeout_ns;
    domus_endpoint local;
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static _Atomic int result;
static _Atomic uint32_t done;
/* what the last connect has found; the test reads it once `done` is set */
static domus_connected found;

static int record_result_of_connect(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&result, answer->error);
    if (answer->error == 0) {
        ck_assert_ptr_eq(answer->type, &domus_connected_type);
        memcpy(&found, answer->payload, sizeof found);
    }
    atomic_fetch_add(&done, 1);
    return 0;
}

static int connect_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    order now;

    memcpy(&now, payload, sizeof now);
    const domus_connect_options options = {
        .behaviour = &line_behaviour, .timeout_ns = now.timeout_ns, .local = now.local};
    int parked = domus_connect(stack, now.to, &options, record_result_of_connect);
    if (parked != DOMUS_PARKED) {
        atomic_store(&result, parked);
        atomic_fetch_add(&done, 1);
        return 0;
    }
    return parked;
}

static const domus_on client_rows[] = {{&order_type, connect_as_ordered, 0}, {0}};
static const domus_behaviour client = {.name = "client", .kind = DOMUS_CHANNELS, .on = client_rows};
static const domus_behaviour business = {.name = "business", .on = client_rows};

/* --- what each test does ---------------------------------------------------------------------- */

static domus_system *system_;
static uint32_t descriptors;

static void start_system_for_connects(void)
{
    domus_config config = domt_config_of_threads(2);

    descriptors = domt_count_directory_entries("/proc/self/fd");
    config.listener_count = 0;
    system_ = domt_start_system(&config);
}

static void end_system_of_connects(void)
{
    domt_end_system(system_);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), descriptors);
}

static domus_address let_server_actor_listen(const char *at)
{
    domus_address address = domt_spawn(system_, 1, &server, NULL);
    domus_endpoint endpoint;
    uint32_t before = atomic_load(&listening);

    ck_assert_int_eq(domus_endpoint_parse(at, &endpoint), 0);
    domt_send_notice(system_, address, &listen_type, &endpoint);
    DOMT_WAIT_FOR(10, atomic_load(&listening) == before + 1);
    return address;
}

static int let_actor_connect_and_wait_for_result(domus_address actor, const order *what)
{
    uint32_t before = atomic_load(&done);

    domt_send_notice(system_, actor, &order_type, what);
    DOMT_WAIT_FOR(20, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

static int result_of_connect_by_actor(domus_address actor, const char *to)
{
    order what = {.timeout_ns = 0};

    ck_assert_uint_lt(strlen(to), sizeof what.to);
    memcpy(what.to, to, strlen(to) + 1);
    return let_actor_connect_and_wait_for_result(actor, &what);
}

/* Let an actor connect to the server, and check that a byte goes there and comes back. */
static void check_byte_comes_back_from_server(domus_address actor)
{
    uint32_t before = atomic_load(&echoed);
    char to[DOMUS_ENDPOINT_TEXT_MAX];

    (void)domus_endpoint_text(&served, to, sizeof to);
    ck_assert_int_eq(result_of_connect_by_actor(actor, to), 0);
    ck_assert_ptr_nonnull(found.channel.house);
    ck_assert(domus_endpoint_is_same(&found.peer, &served));
    ck_assert_uint_ne(found.local.family, 0);
    DOMT_WAIT_FOR(10, atomic_load(&echoed) == before + 1);
    DOMT_WAIT_FOR(10, atomic_load(&closed_) == before + 1);
    DOMT_WAIT_FOR(10, atomic_load(&server_closed) == before + 1);
}

DOMT_TEST(connects_are_channels_of_channels_actors_and_of_state_actors)
{
    char name[64];

    (void)snprintf(name, sizeof name, "unix:@domus-connect-%d", (int)getpid());
    const char *const at[] = {"127.0.0.1:0", "[::1]:0", name};

    start_system_for_connects();
    for (uint32_t i = 0; i < 3; i++) {
        (void)let_server_actor_listen(at[i]);
        for (uint32_t thread = 0; thread < 2; thread++) {
            check_byte_comes_back_from_server(domt_spawn(system_, thread, &client, NULL));
            check_byte_comes_back_from_server(domt_spawn(system_, thread, &business, NULL));
        }
    }
    ck_assert_uint_eq(atomic_load(&mounted), 12);
    ck_assert_uint_eq(atomic_load(&opened), 12);
    domus_profile profile = domt_profile_of_all_threads(system_);
    ck_assert_uint_eq(profile.connects, 12);
    ck_assert_uint_eq(profile.connects_failed, 0);
    end_system_of_connects();
}

DOMT_TEST(failed_connect_tells_its_reason)
{
    start_system_for_connects();
    domus_address listener = let_server_actor_listen("127.0.0.1:0");
    char to[DOMUS_ENDPOINT_TEXT_MAX];
    (void)domus_endpoint_text(&served, to, sizeof to);
    ck_assert_int_eq(domus_outside_stop(system_, listener), 0);
    const domus_behaviour *const who[] = {&client, &business};
    domus_address first = domt_spawn(system_, 0, &client, NULL);
    DOMT_WAIT_FOR(10, result_of_connect_by_actor(first, to) == -ECONNREFUSED);
    /* wait for the end of the listener, which may come a little later */
    uint32_t before = atomic_load(&mounted);
    for (uint32_t i = 0; i < 2; i++) {
        domus_address actor = domt_spawn(system_, 0, who[i], NULL);
        ck_assert_int_eq(result_of_connect_by_actor(actor, to), -ECONNREFUSED);
        ck_assert_int_eq(result_of_connect_by_actor(actor, "unix:/nowhere/at/all"), -ENOENT);
        ck_assert_int_eq(result_of_connect_by_actor(actor, "unix:@nobody-listens-here"),
                         -ECONNREFUSED);
        ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1"), -EINVAL);
        ck_assert_int_eq(result_of_connect_by_actor(actor, ""), -EINVAL);
        order other = {.to = "127.0.0.1:1"};
        ck_assert_int_eq(domus_endpoint_parse("[::1]:0", &other.local), 0);
        ck_assert_int_eq(let_actor_connect_and_wait_for_result(actor, &other), -EAFNOSUPPORT);
        ck_assert_int_eq(domus_endpoint_parse("192.0.2.1:0", &other.local), 0);
        ck_assert_int_eq(let_actor_connect_and_wait_for_result(actor, &other), -EADDRNOTAVAIL);
    }
    ck_assert_uint_eq(atomic_load(&mounted), before);
    end_system_of_connects();
}

DOMT_TEST(channel_may_refuse_its_connection)
{
    start_system_for_connects();
    (void)let_server_actor_listen("127.0.0.1:0");
    char to[DOMUS_ENDPOINT_TEXT_MAX];
    (void)domus_endpoint_text(&served, to, sizeof to);
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    atomic_store(&open_result, -EPROTO);
    ck_assert_int_eq(result_of_connect_by_actor(actor, to), -EPROTO);
    DOMT_WAIT_FOR(10, atomic_load(&server_closed) == 1);
    DOMT_WAIT_FOR(10, atomic_load(&closed_) == 1);
    atomic_store(&mount_result, -ENOTUNIQ);
    ck_assert_int_eq(result_of_connect_by_actor(actor, to), -ENOTUNIQ);
    DOMT_WAIT_FOR(10, atomic_load(&server_closed) == 2);
    /* on_open was not called for the second connection, which its channel refused */
    ck_assert_uint_eq(atomic_load(&opened), 1);
    ck_assert_uint_eq(atomic_load(&closed_), 1);
    end_system_of_connects();
}

/* State actors on one busy thread are lent to the other thread, and connect while they are run
 * there. */
static _Atomic uint32_t rounds_done;
static _Atomic uint32_t errors;
static const domus_type round_type = {.name = "round", .size = sizeof(uint32_t)};

static int end_round_of_connects(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint32_t *left = self;

    if (answer->error != 0)
        atomic_fetch_add(&errors, 1);
    if (--*left != 0)
        return domus_notice(stack, domus_self(stack), &round_type, left);
    atomic_fetch_add(&rounds_done, 1);
    return 0;
}

static int begin_round_of_connects(domus_stack *stack, void *self, const void *payload)
{
    const domus_connect_options options = {.behaviour = &line_behaviour};
    uint64_t until_ns = domt_now_ns() + 20000;
    char to[DOMUS_ENDPOINT_TEXT_MAX];

    memcpy(self, payload, sizeof(uint32_t));
    /* keep the thread busy for so long that other threads steal the houses */
    while (domt_now_ns() < until_ns)
        continue;
    (void)domus_endpoint_text(&served, to, sizeof to);
    return domus_connect(stack, to, &options, end_round_of_connects);
}

static const domus_on busy_rows[] = {{&round_type, begin_round_of_connects, 0}, {0}};
static const domus_behaviour busy = {
    .name = "busy", .state_size = sizeof(uint32_t), .on = busy_rows};

DOMT_TEST(lent_actors_connect_on_their_home)
{
    domus_config config = domt_config_of_threads(2);
    const uint32_t actors = 64;
    uint32_t rounds = 20;

    config.scheduler.steal.floor = 1;
    config.scheduler.steal.aggression = 1;
    config.scheduler.steal.min_run_ns = 0;
    config.io.buffers.count = 1024;
    system_ = domt_start_system(&config);
    (void)let_server_actor_listen("127.0.0.1:0");
    for (uint32_t i = 0; i < actors; i++)
        domt_send_notice(system_, domt_spawn(system_, 0, &busy, NULL), &round_type, &rounds);
    DOMT_WAIT_FOR(50, atomic_load(&rounds_done) == actors);
    ck_assert_uint_eq(atomic_load(&errors), 0);
    ck_assert_uint_eq(domt_profile_of_thread(system_, 0).connects, actors * rounds);
    ck_assert_uint_ne(domt_profile_of_thread(system_, 1).steals, 0);
    DOMT_WAIT_FOR(20, atomic_load(&echoed) == actors * rounds);
    domt_end_system(system_);
}

DOMT_SUITE(60)
