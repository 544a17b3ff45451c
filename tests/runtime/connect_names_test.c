/* Connects to names: the look-up, which the test does itself, the attempts at several addresses,
 * and all that can end a connect before it is established. A peer that never answers is a listener
 * on loopback with a full backlog, for which the kernel drops requests. */
#include "runtime/outside/resolver.h"
#include "tests/runtime/running.h"

#include <domus/connect.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- peers ------------------------------------------------------------------------------------ */

#define FILLERS 3

typedef struct peer {
    int listener;
    int fillers[FILLERS]; /* sockets that fill the listener's backlog; -1: none */
    domus_endpoint at;
} peer;

static void open_listening_peer(peer *of, bool answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    of->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(of->listener, 0);
    ck_assert_int_eq(bind(of->listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(of->listener, answers ? 64 : 0), 0);
    ck_assert_int_eq(getsockname(of->listener, (struct sockaddr *)&address, &size), 0);
    of->at = (domus_endpoint){.family = AF_INET, .port = ntohs(address.sin_port), .size = 4};
    memcpy(of->at.bytes, &address.sin_addr, 4);
    for (int i = 0; i < FILLERS; i++) {
        of->fillers[i] = -1;
        if (answers)
            continue;
        of->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(of->fillers[i], (struct sockaddr *)&address, size);
    }
}

static void close_listening_peer(peer *of)
{
    for (int i = 0; i < FILLERS; i++) {
        if (of->fillers[i] >= 0)
            (void)close(of->fillers[i]);
    }
    (void)close(of->listener);
}

/* --- names ------------------------------------------------------------------------------------ */

/* The endpoints that a look-up finds: for "hangs" when `released` is set, for "fails" if `failure`
 * is 0, and for names that begin with "two". The look-up sets their ports to 0. */
static domus_endpoint first, second;
static _Atomic uint32_t look_ups;
static _Atomic uint32_t hanging;
static _Atomic bool released;
static _Atomic int failure; /* error with which the look-up of "fails" ends; 0: the name is found */

static int resolve_names_of_this_test(void *context, const char *name, domus_endpoint *ret_found,
                                      uint32_t max)
{
    ck_assert_ptr_eq(context, &look_ups);
    ck_assert_uint_eq(max, 16);
    atomic_fetch_add(&look_ups, 1);
    if (strcmp(name, "hangs") == 0) {
        atomic_fetch_add(&hanging, 1);
        while (!atomic_load(&released))
            domt_pause_ns(DOMT_MS);
        atomic_fetch_sub(&hanging, 1);
    } else if (strcmp(name, "fails") == 0) {
        if (atomic_load(&failure) != 0)
            return atomic_load(&failure);
    } else if (strncmp(name, "two", 3) != 0) {
        return -ENODATA;
    }
    ret_found[0] = first;
    ret_found[1] = second;
    ret_found[0].port = ret_found[1].port = 0;
    return 2;
}

/* --- the actor -------------------------------------------------------------------------------- */

typedef struct order {
    char to[64];
    uint64_t timeout_ns;
    uint32_t times; /* number of connects that the order begins at the same time */
} order;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type cancel_type = {.name = "cancel"};
static _Atomic int result;
static _Atomic uint32_t done, opened, closed_;
static domus_conversation conversation;

static int on_line_open_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&opened, 1);
    return 0;
}

static int on_line_close_count(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&closed_, 1);
    return 0;
}

static const domus_behaviour line = {.name = "line",
                                     .kind = DOMUS_CHANNELS,
                                     .on_open = {on_line_open_count, 0},
                                     .on_close = {on_line_close_count, 0}};

static int record_results_of_connects(domus_stack *stack, void *self, const domus_answer *answers)
{
    for (const domus_answer *answer = answers; answer != NULL; answer = answer->next) {
        atomic_store(&result, answer->error);
        atomic_fetch_add(&done, 1);
    }
    return 0;
}

static int connect_as_ordered(domus_stack *stack, void *self, const void *payload)
{
    order now;

    memcpy(&now, payload, sizeof now);
    const domus_connect_options options = {.behaviour = &line, .timeout_ns = now.timeout_ns};
    if (now.times == 8) /* orders with eight connects go to one actor at a time only */
        ck_assert_int_eq(domus_conversation_of(stack, &conversation), 0);
    if (now.times == 1) {
        int parked = domus_connect(stack, now.to, &options, record_results_of_connects);
        if (parked == DOMUS_PARKED)
            return parked;
        atomic_store(&result, parked);
        atomic_fetch_add(&done, 1);
        return 0;
    }
    for (uint32_t i = 0; i < now.times; i++)
        ck_assert_int_eq(domus_connect_add(stack, now.to, &options, i), 0);
    return domus_wait_all(stack, record_results_of_connects);
}

static int cancel_conversation_with_connect(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_cancel(stack, conversation), 0);
    return 0;
}

static const domus_on rows[] = {
    {&order_type, connect_as_ordered, 0}, {&cancel_type, cancel_conversation_with_connect, 0}, {0}};
static const domus_behaviour client = {.name = "client", .kind = DOMUS_CHANNELS, .on = rows};
static const domus_behaviour business = {.name = "business", .on = rows};
static const domus_behaviour *const kinds[] = {&client, &business};

/* --- what each test does ---------------------------------------------------------------------- */

static domus_config config;
static domus_system *system_;
static uint32_t descriptors, running;

static void prepare_config_for_connects(void)
{
    descriptors = domt_count_directory_entries("/proc/self/fd");
    config = domt_config_of_threads(2);
    config.listener_count = 0;
    config.connect.attempt_delay_ns = 30 * DOMT_MS;
}

static void start_system(void)
{
    system_ = domt_start_system(&config);
    domi_resolver_set_look_up(system_->resolver, resolve_names_of_this_test, &look_ups);
    running = domt_count_directory_entries("/proc/self/fd");
}

static void end_system(void)
{
    domt_end_system(system_);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), descriptors);
}

static void order_connects_to(domus_address actor, const char *name, uint16_t port,
                              uint64_t timeout_ms, uint32_t times)
{
    order what = {.timeout_ns = timeout_ms * DOMT_MS, .times = times};

    (void)snprintf(what.to, sizeof what.to, "%s:%u", name, port);
    domt_send_notice(system_, actor, &order_type, &what);
}

/* Let an actor connect to a name. Returns the error of the connect, or 0. */
static int result_of_connect_by_actor(domus_address actor, const char *name, uint16_t port,
                                      uint64_t timeout_ms)
{
    uint32_t before = atomic_load(&done);

    order_connects_to(actor, name, port, timeout_ms, 1);
    DOMT_WAIT_FOR(20, atomic_load(&done) == before + 1);
    return atomic_load(&result);
}

/* Returns an endpoint on loopback where nobody listens. */
static domus_endpoint unused_endpoint(void)
{
    return (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 99}};
}

DOMT_TEST(names_are_looked_up_once_for_a_while)
{
    peer at;

    prepare_config_for_connects();
    config.connect.resolve.cache_time_ns = 1000 * DOMT_MS;
    start_system();
    open_listening_peer(&at, true);
    first = unused_endpoint(); /* the first address refuses, so the second one is tried at once */
    second = at.at;
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "two", at.at.port, 0), 0);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "TWO", at.at.port, 0), 0);
    ck_assert_uint_eq(atomic_load(&look_ups), 1);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "unknown", 1, 0), -ENODATA);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "unknown", 1, 0), -ENODATA);
    ck_assert_uint_eq(atomic_load(&look_ups), 2);
    domt_pause_ns(1020 * DOMT_MS);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "two", at.at.port, 0), 0);
    ck_assert_uint_eq(atomic_load(&look_ups), 3);
    static const char *const wrong[] = {"",      ".",        "a..b", "-a", "a-",
                                        "127.1", "0x7f.0x1", "a b",  "a/b"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(result_of_connect_by_actor(actor, wrong[i], 1, 0) == -EINVAL, "%s", wrong[i]);
    ck_assert_uint_eq(atomic_load(&look_ups), 3);
    close_listening_peer(&at);
    end_system();
}

DOMT_TEST(names_of_loopback_are_not_looked_up)
{
    static const char *const own[] = {"localhost", "LocalHost.", "a.localhost", "a.b.LOCALHOST."};
    static const char *const others[] = {"notlocalhost", "localhost.example", "localhosts",
                                         "local"};
    peer at;

    prepare_config_for_connects();
    start_system();
    open_listening_peer(&at, true); /* the peer listens on 127.0.0.1 only, so [::1] refuses */
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        ck_assert_msg(result_of_connect_by_actor(actor, own[i], at.at.port, 0) == 0, "%s", own[i]);
    ck_assert_uint_eq(atomic_load(&look_ups), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_msg(result_of_connect_by_actor(actor, others[i], at.at.port, 0) == -ENODATA, "%s",
                      others[i]);
    ck_assert_uint_eq(atomic_load(&look_ups), 4);
    close_listening_peer(&at);
    end_system();
}

/* Errors such as name servers that do not answer, or too few descriptors, say nothing about the
 * name itself. */
DOMT_TEST(failure_of_a_look_up_is_not_remembered)
{
    static const int failures[] = {-EAGAIN, -EMFILE, -ENOMEM, -EIO};
    peer at;

    prepare_config_for_connects();
    config.connect.resolve.cache_time_ns = 3600 * 1000 * DOMT_MS;
    start_system();
    open_listening_peer(&at, true);
    first = second = at.at;
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        atomic_store(&failure, failures[i]);
        ck_assert_int_eq(result_of_connect_by_actor(actor, "fails", at.at.port, 0), failures[i]);
    }
    atomic_store(&failure, 0);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "fails", at.at.port, 0), 0);
    ck_assert_uint_eq(atomic_load(&look_ups), 5);
    close_listening_peer(&at);
    end_system();
}

DOMT_TEST(connects_to_one_name_share_a_look_up)
{
    peer at;

    prepare_config_for_connects();
    start_system();
    open_listening_peer(&at, true);
    first = second = at.at;
    for (uint32_t i = 0; i < 2; i++)
        order_connects_to(domt_spawn(system_, i, kinds[i], NULL), "hangs", at.at.port, 0, 4);
    DOMT_WAIT_FOR(10,
                  domt_profile_of_all_threads(system_).connects == 8 && atomic_load(&hanging) == 1);
    atomic_store(&released, true);
    DOMT_WAIT_FOR(10, atomic_load(&done) == 8);
    ck_assert_int_eq(atomic_load(&result), 0);
    ck_assert_uint_eq(atomic_load(&opened), 8);
    ck_assert_uint_eq(atomic_load(&look_ups), 1);
    close_listening_peer(&at);
    end_system();
}

DOMT_TEST(next_address_is_tried_beside_one_that_does_not_answer)
{
    peer dark, at;

    prepare_config_for_connects();
    start_system();
    open_listening_peer(&dark, false);
    open_listening_peer(&at, true);
    first = dark.at;
    second = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 2}};
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    /* The address 127.0.0.2 refuses at the port of the peer that does not answer, so only the
     * attempt at the first address goes on. */
    uint64_t begun_ns = domt_now_ns();
    ck_assert_int_eq(result_of_connect_by_actor(actor, "two", dark.at.port, 150), -ETIMEDOUT);
    ck_assert_uint_ge(domt_now_ns() - begun_ns, 150 * DOMT_MS);
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(dark.at.port)};
    address.sin_addr.s_addr = htonl(0x7f000002);
    ck_assert_int_eq(bind(other, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(other, 8), 0);
    uint64_t took_ns = UINT64_MAX;
    for (int tries = 0; tries < 5 && took_ns > 900 * DOMT_MS; tries++) {
        begun_ns = domt_now_ns();
        ck_assert_int_eq(result_of_connect_by_actor(actor, "two", dark.at.port, 0), 0);
        took_ns = domt_now_ns() - begun_ns;
        ck_assert_uint_ge(took_ns, 29 * DOMT_MS);
    }
    /* within 900 ms the kernel cannot have sent a second SYN, which it sends after 1 s */
    ck_assert_uint_lt(took_ns, 900 * DOMT_MS);
    (void)close(other);
    close_listening_peer(&dark);
    close_listening_peer(&at);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") <= running);
    end_system();
}

DOMT_TEST(connect_ends_with_its_time_its_conversation_and_its_actor)
{
    peer dark;

    prepare_config_for_connects();
    start_system();
    open_listening_peer(&dark, false);
    uint32_t before = domt_count_directory_entries("/proc/self/fd");
    for (uint32_t i = 0; i < 2; i++) {
        domus_address actor = domt_spawn(system_, 0, kinds[i], NULL);
        uint64_t failed = domt_profile_of_all_threads(system_).connects_failed;
        uint32_t told = atomic_load(&done);
        ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1", dark.at.port, 50),
                         -ETIMEDOUT);
        order_connects_to(actor, "127.0.0.1", dark.at.port, 0, 8);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before + 8);
        domt_send_notice(system_, actor, &cancel_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&done) == told + 9);
        ck_assert_int_eq(atomic_load(&result), -ECANCELED);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before);
        order_connects_to(actor, "127.0.0.1", dark.at.port, 0, 8);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before + 8);
        ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
        DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before);
        DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).connects_failed == failed + 9);
    }
    ck_assert_uint_eq(atomic_load(&opened), 0);
    order_connects_to(domt_spawn(system_, 0, &client, NULL), "127.0.0.1", dark.at.port, 0, 8);
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/fd") == before + 8);
    domt_end_system(system_); /* the stop of the system ends the connects that are under way */
    close_listening_peer(&dark);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), descriptors);
}

DOMT_TEST(stop_does_not_wait_for_a_look_up)
{
    prepare_config_for_connects();
    start_system();
    first = second = unused_endpoint();
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    /* a time-out ends a connect although its look-up has not ended */
    ck_assert_int_eq(result_of_connect_by_actor(actor, "hangs", 1, 20), -ETIMEDOUT);
    order_connects_to(actor, "hangs", 1, 0, 2);
    order_connects_to(domt_spawn(system_, 1, &business, NULL), "hangs", 1, 0, 1);
    DOMT_WAIT_FOR(10,
                  domt_profile_of_all_threads(system_).connects == 4 && atomic_load(&hanging) == 1);
    uint64_t begun_ns = domt_now_ns();
    end_system();
    ck_assert_uint_lt(domt_now_ns() - begun_ns, 5000 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&hanging), 1);
    ck_assert_uint_eq(atomic_load(&look_ups), 1);
    atomic_store(&released, true); /* the look-up ends only long after the system was freed */
    DOMT_WAIT_FOR(10, atomic_load(&hanging) == 0);
}

/* The memory of remembered names is not own memory of the system, so forgetting them must not be
 * counted. Threads report their memory in steps of 64 KiB. */
DOMT_TEST(forgetting_looked_up_names_changes_no_own_memory)
{
    char name[16];

    prepare_config_for_connects();
    config.connect.resolve.cache_time_ns = 50 * DOMT_MS;
    config.connect.resolve.cache_max = 1000;
    start_system();
    domus_address actor = domt_spawn(system_, 0, &client, NULL);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "none", 1, 0), -ENODATA);
    int64_t before = atomic_load(&system_->pressure.meter.held);
    for (uint32_t i = 0; i < 500; i++) {
        (void)snprintf(name, sizeof name, "none-%u", i);
        ck_assert_int_eq(result_of_connect_by_actor(actor, name, 1, 0), -ENODATA);
    }
    domt_pause_ns(20 * DOMT_MS);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "none", 1, 0), -ENODATA);
    ck_assert_int_gt(atomic_load(&system_->pressure.meter.held), before - 300000);
    end_system();
}

DOMT_TEST(connects_and_connections_have_limits)
{
    peer dark, at;

    prepare_config_for_connects();
    config.connect.under_way_max = 4;
    config.connect.connections_max = 6;
    config.connect.resolve.threads_max = 1;
    config.connect.resolve.queue_max = 1;
    start_system();
    open_listening_peer(&dark, false);
    open_listening_peer(&at, true);
    domus_address slow = domt_spawn(system_, 0, &client, NULL);
    domus_address actor = domt_spawn(system_, 0, &business, NULL);
    order_connects_to(slow, "127.0.0.1", dark.at.port, 0, 4);
    DOMT_WAIT_FOR(10, domt_profile_of_all_threads(system_).connects == 4);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1", at.at.port, 0), -ENOBUFS);
    /* each thread counts the limit for its own connects only */
    domus_address far = domt_spawn(system_, 1, &client, NULL);
    ck_assert_int_eq(result_of_connect_by_actor(far, "127.0.0.1", at.at.port, 0), 0);
    ck_assert_int_eq(domus_outside_stop(system_, slow), 0);
    /* the four connects that were under way have ended with an error, so the limit allows new
     * ones */
    DOMT_WAIT_FOR(10, atomic_load(&done) == 6);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1", at.at.port, 0), 0);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "127.0.0.1", at.at.port, 0), -ENOBUFS);
    ck_assert_int_eq(domus_outside_stop(system_, actor), 0);
    first = second = at.at;
    /* the thread of this actor has room for more connections */
    actor = domt_spawn(system_, 1, &business, NULL);
    order_connects_to(far, "hangs", at.at.port, 0, 1);
    DOMT_WAIT_FOR(10, atomic_load(&hanging) == 1);
    order_connects_to(far, "two", at.at.port, 0, 1);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system_, 1).connects == 3);
    ck_assert_int_eq(result_of_connect_by_actor(actor, "two-more", at.at.port, 0), -ENOBUFS);
    atomic_store(&released, true);
    DOMT_WAIT_FOR(10, atomic_load(&done) == 16);
    ck_assert_int_eq(atomic_load(&result), 0);
    close_listening_peer(&dark);
    close_listening_peer(&at);
    end_system();
}

DOMT_SUITE(60)
