/* A stop that a handler holds up tells only what is new, and frees nothing that the
 * handler uses. */
#include "tests/runtime/stalls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FACTS 64

static const domus_type word_type = {.name = "word"};

static atomic_bool may_go;
static atomic_bool is_in;
static atomic_int went_well;

/* Use the actor's memory, its stack, its system and its thread's pools, after the stop
 * has given up. */
static void stay(domus_stack *stack, void *self)
{
    const uint64_t *facts = self;
    bool well = true;

    atomic_store(&is_in, true);
    while (!atomic_load(&may_go)) {
        domus_address nobody = {NULL, 0};
        for (uint64_t i = 0; i < FACTS; i++)
            well = well && facts[i] == i;
        well = well && domus_self(stack).house != NULL;
        well = well && domus_notice(stack, nobody, &word_type, NULL) == -ESTALE;
        domt_pause_ns(DOMT_MS);
    }
    atomic_store(&went_well, well);
}

static int wake_up(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int sleep_long(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 60000 * DOMT_MS, wake_up);
}

static const domus_behaviour held = {
    .name = "held",
    .kind = DOMUS_CHANNELS,
    .state_size = FACTS * sizeof(uint64_t),
    .on_read = {sleep_long, 0},
    .on_stop = stay,
};

/* Starts a system whose only thread is held up by its stop, with a connection that it has cut. */
static domus_system *begin(int *ret_peer)
{
    const domus_listener_config listener = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 16};
    domus_config config = domt_config(1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t facts[FACTS];
    uint16_t port = 0;

    for (uint64_t i = 0; i < FACTS; i++)
        facts[i] = i;
    config.listeners = &listener;
    config.listener_count = 1;
    config.shutdown.drain_timeout_ns = 20 * DOMT_MS;
    config.shutdown.actor_timeout_ns = 10 * DOMT_MS;
    domus_system *system = domt_start_logging(&config);
    ck_assert_int_eq(domus_serve(system, "front", &held, facts, &port), 0);
    address.sin_port = htons(port);
    *ret_peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(*ret_peer, (struct sockaddr *)(void *)&address, sizeof address), 0);
    ck_assert_int_eq(send(*ret_peer, "x", 1, MSG_NOSIGNAL), 1);
    DOMT_WAIT_FOR(10, domt_profile(system, 0).reads == 1);
    return system;
}

/* ThreadSanitizer starts a thread of its own with the program's first one, and keeps it. */
#define OWN_THREADS (DOMT_TSAN ? 1u : 0u)

DOMT_TEST(a_stop_that_is_asked_for_again_tells_only_what_is_new)
{
    int peer;
    domus_system *system = begin(&peer);

    ck_assert_int_eq(domus_system_stop(system), -ETIMEDOUT);
    ck_assert(atomic_load(&is_in));
    ck_assert_uint_eq(domt_lines("1 channels had not drained", NULL), 1);
    ck_assert_uint_eq(domt_lines("a handler of held has not returned", NULL), 1);
    atomic_store(&may_go, true);
    ck_assert_int_eq(domus_system_stop(system), 1); /* the sum, as it promises */
    ck_assert_uint_eq(domt_lines("had not drained", NULL), 1);
    ck_assert_uint_eq(domt_lines("has not returned", NULL), 1);
    ck_assert_int_eq(atomic_load(&went_well), 1);
    domus_system_free(system);
    close(peer);
}

DOMT_TEST(what_a_held_handler_uses_stays_until_a_free_after_its_return)
{
    uint32_t open_before = domt_entries("/proc/self/fd");
    uint32_t threads_before = domt_entries("/proc/self/task") + OWN_THREADS;
    int peer;
    domus_system *system = begin(&peer);

    ck_assert_int_eq(domus_system_stop(system), -ETIMEDOUT);
    domus_system_free(system); /* frees nothing: the handler goes on with all that it has */
    ck_assert_int_eq(domus_outside_spawn(system, &held, NULL, &(domus_address){NULL, 0}),
                     -ESHUTDOWN);
    ck_assert_uint_gt(domt_entries("/proc/self/task"), threads_before);
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(10, atomic_load(&went_well) == 1);
    domus_system_free(system);
    close(peer);
    ck_assert_uint_eq(domt_entries("/proc/self/fd"), open_before);
    /* A thread that was joined stays in this list until the kernel has taken it out. */
    DOMT_WAIT_FOR(10, domt_entries("/proc/self/task") == threads_before);
}

DOMT_SUITE(60)
