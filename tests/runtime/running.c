/* The configuration, the start, the end and the profile of a real system in a test
 * (tests/runtime/running.h). */
#include "tests/runtime/running.h"

#include <dirent.h>
#include <time.h>

_Atomic uint64_t domt_mounted, domt_stopped;

int domt_count_mount(domus_stack *stack, void *self)
{
    atomic_fetch_add(&domt_mounted, 1);
    return 0;
}

void domt_count_stop(domus_stack *stack, void *self)
{
    atomic_fetch_add(&domt_stopped, 1);
}

int domt_on_read_echo(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    return domus_channel_write(stack, event->channel, event->bytes);
}

int domt_ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

int domt_ignore_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    return 0;
}

domus_config domt_config_of_threads(uint32_t threads)
{
    domus_config config;
    domus_config_init(&config);
    config.system.threads = threads;
    config.system.cpus = "none";
    /* the system has few buffers, because most of these tests have no connections */
    config.io.buffers.count = 16;
    return config;
}

domus_system *domt_start_system(const domus_config *config)
{
    domus_system *system = NULL;
    char error[256] = "";
    ck_assert_msg(domus_system_new(config, error, sizeof error, &system) == 0, "%s", error);
    ck_assert_msg(domus_system_start(system) == 0, "%s", domus_system_error(system));
    return system;
}

domus_system *domt_start_system_of_threads(uint32_t threads)
{
    const domus_config config = domt_config_of_threads(threads);

    return domt_start_system(&config);
}

void domt_end_system(domus_system *system)
{
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_eq(domt_profile_of_all_threads(system).cap_wakeups_with_work, 0);
    domus_system_free(system);
}

domus_address domt_spawn(domus_system *system, uint32_t thread, const domus_behaviour *behaviour,
                         const void *state)
{
    domus_address address = {NULL, 0};
    ck_assert_int_eq(domus_outside_spawn_on(system, thread, behaviour, state, &address), 0);
    return address;
}

domus_address domt_spawn_detached(domus_system *system, const domus_behaviour *behaviour)
{
    const domus_spawn_options options = {.detached = true};
    domus_address address = {NULL, 0};

    ck_assert_int_eq(domus_outside_spawn_with(system, behaviour, NULL, &options, &address), 0);
    return address;
}

/* --- a service -------------------------------------------------------------------------------- */

void domt_add_front_listener(domus_config *config)
{
    static const domus_listener_config front = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 256};
    config->listeners = &front;
    config->listener_count = 1;
}

uint16_t domt_serve_front_listener(domus_system *system, const domus_behaviour *behaviour,
                                   const void *state)
{
    uint16_t port = 0;
    ck_assert_int_eq(domus_serve(system, "front", behaviour, state, &port), 0);
    return port;
}

static domus_endpoint served;
static _Atomic bool is_serving;

static int on_mount_listen_at_any_port(domus_stack *stack, void *self)
{
    domus_endpoint at;
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    ck_assert_int_eq(domus_listen(stack, &at, NULL, NULL, &served), 0);
    atomic_store(&is_serving, true);
    return 0;
}

domus_endpoint domt_serve_channel_at_any_port(domus_system *system, const domus_behaviour *channel)
{
    static domus_behaviour listener;

    listener = (domus_behaviour){.name = "listener",
                                 .kind = DOMUS_CHANNELS,
                                 .on_mount = on_mount_listen_at_any_port,
                                 .channel = channel};
    atomic_store(&is_serving, false);
    (void)domt_spawn(system, 0, &listener, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&is_serving));
    return served;
}

/* --- messages and figures --------------------------------------------------------------------- */

void domt_send_notice(domus_system *system, domus_address to, const domus_type *type,
                      const void *payload)
{
    ck_assert_int_eq(domus_outside_notice(system, to, type, payload), 0);
}

domus_profile domt_profile_of_thread(const domus_system *system, uint32_t thread)
{
    domus_profile profile;
    ck_assert_int_eq(domus_system_profile(system, thread, &profile), 0);
    return profile;
}

domus_profile domt_profile_of_all_threads(const domus_system *system)
{
    domus_profile sums = {0};
    uint64_t *sum = (uint64_t *)(void *)&sums;

    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        domus_profile profile = domt_profile_of_thread(system, i);
        const uint64_t *value = (const uint64_t *)(const void *)&profile;

        for (size_t field = 0; field < sizeof profile / sizeof *value; field++)
            sum[field] += value[field];
    }
    return sums;
}

uint64_t domt_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void domt_pause_ns(uint64_t ns)
{
    struct timespec pause = {
        .tv_sec = (time_t)(ns / 1000000000u),
        .tv_nsec = (long)(ns % 1000000000u),
    };
    while (nanosleep(&pause, &pause) != 0)
        continue;
}

uint32_t domt_count_directory_entries(const char *directory)
{
    DIR *entries = opendir(directory);
    uint32_t count = 0;

    ck_assert_ptr_nonnull(entries);
    while (readdir(entries) != NULL)
        count++;
    closedir(entries);
    return count;
}
