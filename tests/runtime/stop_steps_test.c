/* runtime/control/stop.c, one step at a time, on threads that do not exist
 * (tests/runtime/stepped.h): when a step of a stop is over, and what a thread refuses from then on.
 * If a handler holds up a stop, a second stop logs only what is new, and nothing that the handler
 * uses is freed. */
#include "house/family/life.h"
#include "runtime/control/life.h"
#include "runtime/loop/steps.h"
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"
#include "tests/runtime/stepped.h"
#include "tests/support/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_stepped world;
static const domus_behaviour idle = {.name = "idle"};
static unsigned waits;

static void iterate_all_threads(void)
{
    for (uint32_t i = 0; i < world.system->count; i++)
        domt_stepped_iterate(&world, i, false);
}

/* Check the end of the first step: each thread has begun to drain, and none of them listens any
 * more. */
static void check_step_waits_until_all_drain(bool (*is_quiet)(const domus_system *system))
{
    ck_assert(!is_quiet(world.system));
    domt_stepped_iterate(&world, 0, false);
    ck_assert(!is_quiet(world.system));
    iterate_all_threads();
    ck_assert(is_quiet(world.system));
    for (uint32_t i = 0; i < world.system->count; i++) {
        domi_counter *listening = &world.system->threads[i].io.counters.listeners_open;
        atomic_store(listening, 1); /* pretend that an accept has not completed */
        ck_assert(!is_quiet(world.system));
        atomic_store(listening, 0);
    }
    ck_assert(is_quiet(world.system));
}

/* Check that the step waits for accepted connections, and not for connections that this side has
 * made. */
static void check_step_waits_for_accepted(bool (*has_served)(const domus_system *system))
{
    domi_io *io = &world.system->threads[1].io;
    check_step_waits_until_all_drain(has_served);
    atomic_fetch_add(&io->connections, 1);
    ck_assert(!has_served(world.system));
    atomic_fetch_add(&io->outbound, 1);
    ck_assert(has_served(world.system));
}

static void check_step_of_upstream(bool (*is_quiet)(const domus_system *system))
{
    domi_io *io = &world.system->threads[1].io;

    ck_assert(!is_quiet(world.system));
    ck_assert(!io->draining_upstream);
    iterate_all_threads();
    ck_assert(io->draining_upstream);
    atomic_fetch_sub(&io->outbound, 1);
    atomic_fetch_sub(&io->connections, 1);
    ck_assert(is_quiet(world.system));
}

/* Check that the step is over when each thread has followed it, so that actors which were spawned
 * before are mounted. */
static void check_step_waits_for_every_thread(bool (*have_followed)(const domus_system *system))
{
    uint32_t orders = atomic_load(&world.system->orders);
    ck_assert(have_followed(world.system));
    atomic_store(&world.system->orders, orders + domi_orders_of_stop(1));
    ck_assert(!have_followed(world.system));
    atomic_store(&world.system->orders, orders);
}

/* Check that the step is over when no process is left that has to end by itself, or when a process
 * has come that was not told to. */
static void check_step_of_processes(bool (*has_nobody_to_tell)(const domus_system *system))
{
    domi_processes *processes = &world.system->processes;

    ck_assert(has_nobody_to_tell(world.system));
    atomic_store(&processes->count, 2);
    ck_assert(!has_nobody_to_tell(world.system));
    atomic_store(&processes->untold, 1);
    ck_assert(has_nobody_to_tell(world.system));
    atomic_store(&processes->untold, 0);
    atomic_store(&processes->count, 0);
}

static int spawn_on_thread(uint32_t thread)
{
    domi_manager *manager = &domt_stepped_thread(&world, thread)->manager;
    domus_address address;
    return domi_house_spawn_without_parent(manager, manager, &idle, NULL, &address);
}

static void check_step_of_closed_spawns(bool (*is_detached_closed)(const domus_system *system))
{
    for (uint32_t i = 0; i < world.system->count; i++) {
        ck_assert(!is_detached_closed(world.system));
        ck_assert_int_eq(spawn_on_thread(i), 0);
        domt_stepped_iterate(&world, i, false);
        ck_assert_int_eq(spawn_on_thread(i), -ESHUTDOWN);
    }
    ck_assert(is_detached_closed(world.system));
}

/* Check that the step is over when every actor has stopped. */
static void check_step_waits_for_actors(bool (*is_empty)(const domus_system *system))
{
    ck_assert(!is_empty(world.system));
    for (int i = 0; i < 100 && !is_empty(world.system); i++)
        iterate_all_threads();
    ck_assert(is_empty(world.system));
    for (uint32_t i = 0; i < world.system->count; i++) {
        domi_counter *houses = &world.system->threads[i].manager.births.houses;
        atomic_store(houses, 1); /* pretend that one actor has not ended */
        ck_assert(!is_empty(world.system));
        atomic_store(houses, 0);
    }
    ck_assert(is_empty(world.system));
}

static bool check_next_step_of_stop(domi_simulator *simulator,
                                    bool (*is_done)(const domus_system *system), uint64_t until_ns)
{
    void (*const hold[])(bool (*is_done)(const domus_system *system)) = {
        check_step_waits_for_accepted,     check_step_of_upstream,
        check_step_waits_for_every_thread, check_step_of_processes,
        check_step_of_closed_spawns,       check_step_waits_for_actors};
    if (waits < sizeof hold / sizeof hold[0])
        hold[waits](is_done);
    waits++;
    return true;
}

DOMT_TEST(each_step_of_a_stop_waits_for_all_threads)
{
    domi_simulator simulator = {.wait = check_next_step_of_stop};

    domt_stepped_init_default(&world, 3);
    for (uint32_t i = 0; i < 6; i++)
        (void)domt_spawn(world.system, i % 3, &idle, NULL);
    iterate_all_threads();
    world.system->simulator = &simulator;
    ck_assert_int_eq(domus_system_stop(world.system), 0);
    /* Seven waits: six for the steps above, and in the last one the threads leave their loops. */
    ck_assert_uint_eq(waits, 7);
    world.system->simulator = NULL;
    domt_stepped_fini(&world);
}

/* --- a crowd ---------------------------------------------------------------------------------- */

/* In a drain, a thread first collects all completions that have come, as many as it may in each
 * turn; only then are its actors told of the drain. */
DOMT_TEST(a_thread_begins_to_drain_when_it_has_collected_what_had_come)
{
    domus_config config = domt_config_of_threads(1);
    uint32_t turns = 0;

    config.io.ring_entries = 16;
    config.io.completion_entries = 512;
    domt_stepped_init(&world, &config);
    domi_thread *thread = domt_stepped_thread(&world, 0);
    for (int i = 0; i < 2; i++) {
        iterate_all_threads();
        world.rings[0].completions = 10000;
        thread->io.draining = false;
        thread->orders = 0;
        domi_system_set_stop_step(world.system, i == 0 ? DOMI_STOP_DRAIN : DOMI_STOP_ABORT);
        for (turns = 0; !thread->io.draining && turns < 100; turns++) {
            ck_assert_uint_eq(thread->orders, 0);
            ck_assert(domi_thread_has_work(thread));
            domt_stepped_iterate(&world, 0, false);
        }
        if (i == 0)
            ck_assert_uint_ge(turns, 10);
        else
            /* in the step that aborts, the time for the drain is over, so the thread begins at
             * once */
            ck_assert_uint_eq(turns, 1);
    }
    world.rings[0].completions = 0;
    domi_system_set_stop_step(world.system, DOMI_STOP_NONE);
    thread->orders = 0;
    domt_stepped_fini(&world);
}

/* --- a listener ------------------------------------------------------------------------------- */

static bool skip_wait_of_stop(domi_simulator *simulator,
                              bool (*is_done)(const domus_system *system), uint64_t until_ns)
{
    (void)is_done;
    return true;
}

/* The thread never mounts the actor that accepts, as when a handler does not return until the stop
 * is over. */
DOMT_TEST(a_listener_whose_acceptor_was_never_mounted_is_closed_and_its_backlog_counted)
{
    static const domus_behaviour server = {.name = "server", .kind = DOMUS_CHANNELS};
    domus_config config = domt_config_of_threads(1);
    domi_simulator simulator = {.wait = skip_wait_of_stop};
    char byte;

    domt_add_front_listener(&config);
    domt_stepped_init(&world, &config);
    uint16_t port = domt_serve_front_listener(world.system, &server, NULL);
    int peer = domt_connect_to_port(port);
    world.system->simulator = &simulator;
    ck_assert_int_eq(domus_system_stop(world.system), 1);
    ck_assert_int_eq(recv(peer, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_ptr_null(world.system->unmounted[0]);
    world.system->simulator = NULL;
    domt_stepped_fini(&world);
    close(peer);
}

/* --- detached actors -------------------------------------------------------------------------- */

static domus_system *system_;
static _Atomic int spawned;
static const domus_type go = {.name = "go"};

static bool is_detached_closed(void)
{
    pthread_mutex_lock(&system_->mutex);
    bool closed = system_->detached_closed;
    pthread_mutex_unlock(&system_->mutex);
    return closed;
}

/* Wait in the handler until the stop has begun, and then try to spawn. */
static int spawn_after_stop_has_begun(domus_stack *stack, void *self, const void *nothing)
{
    domus_address address;
    atomic_store(&spawned, 2);
    for (int i = 0; i < 20000 && !is_detached_closed(); i++)
        domt_pause_ns(DOMT_MS / 2);
    atomic_store(&spawned, domus_spawn(stack, &idle, NULL, &address));
    return 0;
}

static const domus_behaviour spawning = {
    .name = "spawning", .on = (const domus_on[]){{&go, spawn_after_stop_has_begun, 0}, {0}}};

DOMT_TEST(detached_actor_spawns_nobody_once_its_system_stops)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config_of_threads(1);
    domus_address actor;

    system_ = domt_start_system(&config);
    atomic_store(&spawned, 1);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &spawning, NULL, &options, &actor), 0);
    domt_send_notice(system_, actor, &go, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&spawned) == 2);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_int_eq(atomic_load(&spawned), -ESHUTDOWN);
    domt_end_system(system_);
}

DOMT_TEST(thread_of_a_detached_actor_that_could_not_be_made_is_free_again)
{
    const domus_spawn_options named = {.name = "taken"};
    const domus_spawn_options detached_named = {.name = "taken", .detached = true};
    const domus_spawn_options detached = {.detached = true};
    domus_config config = domt_config_of_threads(1);
    domus_address address;

    config.detached.threads_max = 1;
    system_ = domt_start_system(&config);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &idle, NULL, &named, &address), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_outside_spawn_with(system_, &idle, NULL, &detached_named, &address),
                         -EEXIST);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &idle, NULL, &detached, &address), 0);
    domt_end_system(system_);
}

/* --- a stop that is held up ------------------------------------------------------------------- */

#define FACTS 64

static const domus_type word_type = {.name = "word"};

static atomic_bool may_go;
static atomic_bool is_in;
static atomic_int went_well;

/* An on_stop that uses the actor's memory, its stack, its system and its thread's pools after the
 * stop has given up waiting for it. */
static void stay_in_stop_of_actor(domus_stack *stack, void *self)
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

static int ignore_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

static int sleep_for_a_minute(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 60000 * DOMT_MS, ignore_end_of_sleep);
}

static const domus_behaviour held = {.name = "held",
                                     .kind = DOMUS_CHANNELS,
                                     .state_size = FACTS * sizeof(uint64_t),
                                     .on_read = {sleep_for_a_minute, 0},
                                     .on_stop = stay_in_stop_of_actor};

/* Start a system with an actor whose handler holds up the stop of its only thread, and with a
 * connection that the stop cuts. */
static domus_system *start_system_with_held_up_stop(int *ret_peer)
{
    domus_config config = domt_config_of_threads(1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t facts[FACTS];

    for (uint64_t i = 0; i < FACTS; i++)
        facts[i] = i;
    domt_add_front_listener(&config);
    config.shutdown.drain_timeout_ns = 20 * DOMT_MS;
    config.shutdown.actor_timeout_ns = 10 * DOMT_MS;
    domus_system *system = domt_start_logging_system(&config);
    uint16_t port = domt_serve_front_listener(system, &held, facts);
    address.sin_port = htons(port);
    *ret_peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(*ret_peer, (struct sockaddr *)(void *)&address, sizeof address), 0);
    ck_assert_int_eq(send(*ret_peer, "x", 1, MSG_NOSIGNAL), 1);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).reads == 1);
    return system;
}

/* Number of threads that ThreadSanitizer starts with the first thread of the program, and keeps. */
#define OWN_THREADS (DOMT_TSAN ? 1u : 0u)

DOMT_TEST(stop_that_is_called_again_logs_only_what_is_new)
{
    int peer;
    domus_system *system = start_system_with_held_up_stop(&peer);

    ck_assert_int_eq(domus_system_stop(system), -ETIMEDOUT);
    ck_assert(atomic_load(&is_in));
    ck_assert_uint_eq(domt_count_log_lines("1 channels had not drained", NULL), 1);
    ck_assert_uint_eq(domt_count_log_lines("a handler of held has not returned", NULL), 1);
    atomic_store(&may_go, true);
    /* the result is the number of channels that were cut */
    ck_assert_int_eq(domus_system_stop(system), 1);
    ck_assert_uint_eq(domt_count_log_lines("had not drained", NULL), 1);
    ck_assert_uint_eq(domt_count_log_lines("has not returned", NULL), 1);
    ck_assert_int_eq(atomic_load(&went_well), 1);
    domus_system_free(system);
    close(peer);
}

DOMT_TEST(memory_of_a_held_handler_stays_until_a_free_after_its_return)
{
    uint32_t open_before = domt_count_directory_entries("/proc/self/fd");
    uint32_t threads_before = domt_count_directory_entries("/proc/self/task") + OWN_THREADS;
    int peer;
    domus_system *system = start_system_with_held_up_stop(&peer);

    ck_assert_int_eq(domus_system_stop(system), -ETIMEDOUT);
    /* this call frees nothing, because the handler still uses the system */
    domus_system_free(system);
    ck_assert_int_eq(domus_outside_spawn(system, &held, NULL, &(domus_address){NULL, 0}),
                     -ESHUTDOWN);
    ck_assert_uint_gt(domt_count_directory_entries("/proc/self/task"), threads_before);
    atomic_store(&may_go, true);
    DOMT_WAIT_FOR(10, atomic_load(&went_well) == 1);
    domus_system_free(system);
    close(peer);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), open_before);
    /* wait, because a joined thread is in this list until the kernel has removed it */
    DOMT_WAIT_FOR(10, domt_count_directory_entries("/proc/self/task") == threads_before);
}

DOMT_SUITE(60)
