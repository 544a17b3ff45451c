/* The floods of memory tests (by notices, asks, foreign threads, connections and actors), and how
 * the flooded child process sees that a flood is over. */
#include "tests/runtime/flood.h"

#include <pthread.h>

#define MS         UINT64_C(1000000)
#define SINKS      2000
#define FLOODERS   8
#define PER_TURN   20000
#define FOREIGN    3
#define SOME       3000
#define ACTORS_MAX 1000000

domt_flood_report *domt_flood_shared;
domt_cgroup domt_flood_cgroup;

static domus_address sinks[SINKS];

/* Returns how many milliseconds a flood goes on after memory has become short. */
static uint32_t ms_of_flood_after_refusal(void)
{
    return getenv("DOMT_LONG") != NULL ? 20000 : DOMT_SCALE(300, 100);
}

bool domt_flood_still_lasts(void)
{
    return atomic_load_explicit(&domt_flood_shared->over, memory_order_relaxed) == 0;
}

static void add_to_count(_Atomic uint64_t *to, uint64_t count)
{
    atomic_fetch_add_explicit(to, count, memory_order_relaxed);
}

/* --- actors ----------------------------------------------------------------------------------- */

typedef struct load {
    unsigned char bytes[280];
} load;

typedef struct huge_load {
    unsigned char bytes[20000];
} huge_load;

static const domus_type load_type = {.name = "load", .size = sizeof(load)};
static const domus_type huge_type = {.name = "huge", .size = sizeof(huge_load)};
static const domus_type go_type = {.name = "go"};
static const domus_type answer_type = {.name = "answer"};

static int on_load_count_handled(domus_stack *stack, void *self, const void *payload)
{
    add_to_count(&domt_flood_shared->handled, 1);
    (void)domus_reply(stack, &answer_type, NULL); /* the reply succeeds if the message was an ask */
    return 0;
}

static int sleep_while_flood_lasts(domus_stack *stack, void *self, const domus_answer *answer)
{
    return domt_flood_still_lasts() ? domus_sleep(stack, 20 * MS, sleep_while_flood_lasts) : 0;
}

static int on_go_sleep_in_barrier(domus_stack *stack, void *self, const void *payload)
{
    int error = domus_barrier(stack);
    return error != 0 ? error : sleep_while_flood_lasts(stack, self, NULL);
}

static const domus_behaviour sink = {.name = "sink",
                                     .on =
                                         (const domus_on[]){{&load_type, on_load_count_handled, 0},
                                                            {&huge_type, on_load_count_handled, 0},
                                                            {&go_type, on_go_sleep_in_barrier, 0},
                                                            {0}}};

typedef struct flooder {
    const domus_type *type;
    uint32_t next;
    bool asks;
} flooder;

static int count_answers_of_asks(domus_stack *stack, void *self, const domus_answer *answer)
{
    for (; answer != NULL; answer = answer->next) {
        if (answer->error == 0)
            add_to_count(&domt_flood_shared->accepted, 1);
        else
            add_to_count(answer->error == -EBUSY ? &domt_flood_shared->refused
                                                 : &domt_flood_shared->failed,
                         1);
    }
    return 0;
}

static int flood_with_asks(domus_stack *stack, flooder *self)
{
    static const huge_load payload;

    for (int i = 0; i < 1000; i++) {
        int error = domus_ask_add(stack, sinks[self->next++ % SINKS], self->type, &payload, 0, 0);
        if (error != 0)
            return error;
    }
    return domus_wait_all(stack, count_answers_of_asks);
}

static int flood_with_notices(domus_stack *stack, flooder *self)
{
    static const huge_load payload;
    uint64_t accepted = 0, failed = 0;
    int error = 0;

    for (int i = 0; i < PER_TURN && error != -EBUSY; i++) {
        error = domus_notice(stack, sinks[self->next++ % SINKS], self->type, &payload);
        accepted += error == 0;
        failed += error != 0 && error != -EBUSY && error != -ENOBUFS;
    }
    add_to_count(&domt_flood_shared->accepted, accepted);
    add_to_count(&domt_flood_shared->failed, failed);
    add_to_count(&domt_flood_shared->refused, error == -EBUSY);
    return 0;
}

static int on_go_send_flood(domus_stack *stack, void *self_, const void *payload)
{
    flooder *self = self_;

    if (!domt_flood_still_lasts())
        return 0;
    int error = domus_after(stack, MS, &go_type, NULL, NULL);
    if (error != 0)
        return error;
    return self->asks ? flood_with_asks(stack, self) : flood_with_notices(stack, self);
}

static int on_mount_begin_flood(domus_stack *stack, void *self)
{
    return domus_after(stack, MS, &go_type, NULL, NULL);
}

static const domus_behaviour flooder_behaviour = {
    .name = "flooder",
    .state_size = sizeof(flooder),
    .on = (const domus_on[]){{&go_type, on_go_send_flood, 0}, {0}},
    .on_mount = on_mount_begin_flood};

/* --- the child -------------------------------------------------------------------------------- */

void domt_flood_exit_unless(bool is_so, int status)
{
    if (!is_so)
        _exit(status);
}

/* Start the system that will be flooded. One of `sleepers` sinks handles nothing while the flood
 * lasts. */
static domus_system *start_flooded_system(uint32_t sleepers)
{
    domus_config config;
    domus_listener_config listener = {.name = "flood", .address = "127.0.0.1:0", .backlog = 4096};
    domus_system *system;
    char error[256];

    domus_config_init(&config);
    config.system.threads = 2;
    config.system.cpus = "none";
    config.memory.limit_bytes = DOMT_SANITIZED ? DOMT_FLOOD_LIMIT : 0;
    config.listeners = &listener;
    config.listener_count = 1;
    domt_flood_exit_unless(domus_system_new(&config, error, sizeof error, &system) == 0, 10);
    domt_flood_exit_unless(domus_system_start(system) == 0, 11);
    for (uint32_t i = 0; i < SINKS; i++) {
        domt_flood_exit_unless(domus_outside_spawn(system, &sink, NULL, &sinks[i]) == 0, 12);
        if (i % sleepers == 0)
            domt_flood_exit_unless(domus_outside_notice(system, sinks[i], &go_type, NULL) == 0, 13);
    }
    return system;
}

static domus_profile profile_of_flood(const domus_system *system)
{
    domus_profile sum, profile;

    domus_system_profile(system, 0, &sum);
    domus_system_profile(system, 1, &profile);
    sum.trimmed_bytes += profile.trimmed_bytes;
    sum.pressed += profile.pressed;
    sum.accepted += profile.accepted;
    sum.channels_closed += profile.channels_closed;
    domus_outside_profile(system, &profile);
    sum.trimmed_bytes += profile.trimmed_bytes;
    return sum;
}

/* Returns whether the flood is over: all its connections are closed, all its messages are handled,
 * and at most `most` bytes are in use. */
static bool is_flood_over(const domus_system *system, uint64_t most)
{
    domus_memory memory;
    domus_profile profile = profile_of_flood(system);

    domus_system_memory(system, &memory);
    if (profile.channels_closed != atomic_load(&domt_flood_shared->clients) ||
        atomic_load(&domt_flood_shared->handled) != atomic_load(&domt_flood_shared->accepted))
        return false;
    return DOMT_SANITIZED || (memory.level == DOMUS_MEMORY_NORMAL &&
                              domt_cgroup_used_bytes(&domt_flood_cgroup) < most);
}

/* Let the flood go on until memory has reached `level` and some time has passed, and then end
 * it. */
static void wait_for_memory_level(const domus_system *system, domus_memory_level level)
{
    domus_memory memory;
    uint64_t until_ns = domt_monotonic_ns() + 60000 * MS;

    do {
        domt_sleep_ms(1);
        domus_system_memory(system, &memory);
        domt_flood_exit_unless(domt_monotonic_ns() < until_ns, 18);
    } while (level == DOMUS_MEMORY_HIGH ? memory.highs == 0 : memory.criticals == 0);
    domt_sleep_ms(ms_of_flood_after_refusal());
    domus_system_memory(system, &domt_flood_shared->most);
    atomic_store(&domt_flood_shared->over, 1);
}

/* After a flood, wait until all messages are handled and the memory is given back. Then record the
 * figures, and stop the system. */
static void end_flood_with_limit(domus_system *system, uint64_t most)
{
    uint64_t until_ns = domt_monotonic_ns() + DOMT_SCALE(30000, 100000) * MS;
    while (!is_flood_over(system, most) && domt_monotonic_ns() < until_ns)
        domt_sleep_ms(5);
    domus_system_memory(system, &domt_flood_shared->after);
    domt_flood_shared->used_after = domt_cgroup_used_bytes(&domt_flood_cgroup);
    domus_profile profile = profile_of_flood(system);
    domt_flood_shared->trimmed_bytes = profile.trimmed_bytes;
    domt_flood_shared->pressed = profile.pressed;
    domt_flood_shared->stopped = domus_system_stop(system);
    domus_system_free(system);
    domt_flood_shared->done = true;
}

static void end_flood(domus_system *system)
{
    end_flood_with_limit(system, DOMT_FLOOD_BACK);
}

static void flood_from_actors(const domus_type *type, bool asks)
{
    domus_system *system = start_flooded_system(2);

    for (uint32_t i = 0; i < FLOODERS; i++) {
        flooder state = {.type = type, .next = i * (SINKS / FLOODERS), .asks = asks};
        domus_address address;
        domt_flood_exit_unless(
            domus_outside_spawn(system, &flooder_behaviour, &state, &address) == 0, 14);
    }
    wait_for_memory_level(system, DOMUS_MEMORY_CRITICAL);
    end_flood(system);
}

void domt_flood_with_notices(void)
{
    flood_from_actors(&load_type, false);
}

void domt_flood_with_large_notices(void)
{
    flood_from_actors(&huge_type, false);
}

void domt_flood_with_asks(void)
{
    flood_from_actors(&load_type, true);
}

static void *send_notices_from_outside(void *system)
{
    static const load payload;
    uint64_t accepted = 0, refused = 0, failed = 0;

    for (uint32_t i = 0; domt_flood_still_lasts(); i++) {
        int error = domus_outside_notice(system, sinks[i % SINKS], &load_type, &payload);
        accepted += error == 0;
        refused += error == -EBUSY;
        failed += error != 0 && error != -EBUSY && error != -ENOBUFS;
    }
    add_to_count(&domt_flood_shared->accepted, accepted);
    add_to_count(&domt_flood_shared->refused, refused);
    add_to_count(&domt_flood_shared->failed, failed);
    return NULL;
}

void domt_flood_with_foreign_notices(void)
{
    domus_system *system = start_flooded_system(2);
    pthread_t threads[FOREIGN];

    for (int i = 0; i < FOREIGN; i++)
        domt_flood_exit_unless(
            pthread_create(&threads[i], NULL, send_notices_from_outside, system) == 0, 15);
    wait_for_memory_level(system, DOMUS_MEMORY_HIGH);
    for (int i = 0; i < FOREIGN; i++)
        pthread_join(threads[i], NULL);
    end_flood(system);
}

/* Send a notice for each 128 bytes that a connection has read, so messages take four times as much
 * memory as the bytes. */
static int on_read_send_notices(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    static const load blank;
    uint32_t *next = self;
    uint64_t accepted = 0;

    for (size_t i = 0; i < domus_buffer_size(event->bytes); i += 128)
        accepted += domus_notice(stack, sinks[(*next)++ % SINKS], &load_type, &blank) == 0;
    add_to_count(&domt_flood_shared->accepted, accepted);
    domus_buffer_free(event->bytes);
    return 0;
}

static const domus_behaviour reader = {.name = "reader",
                                       .kind = DOMUS_CHANNELS,
                                       .state_size = sizeof(uint32_t),
                                       .on_read = {on_read_send_notices, 0}};

void domt_flood_with_connections(void)
{
    domus_system *system = start_flooded_system(1);
    uint32_t next = 0;
    uint16_t port = 0;

    domt_flood_exit_unless(domus_serve(system, "flood", &reader, &next, &port) == 0, 16);
    atomic_store(&domt_flood_shared->port, port);
    wait_for_memory_level(system, DOMUS_MEMORY_HIGH);
    end_flood(system);
}

static void wait_until_normal(const domus_system *system)
{
    uint64_t until_ns = domt_monotonic_ns() + 30000 * MS;
    domus_memory memory;

    do {
        domt_sleep_ms(5);
        domus_system_memory(system, &memory);
        domt_flood_exit_unless(domt_monotonic_ns() < until_ns, 18);
    } while (memory.level != DOMUS_MEMORY_NORMAL);
}

/* Check that the system handles notices as before the flood, as many as fit into the memory that
 * was left. */
static void check_notices_are_handled(domus_system *system)
{
    static const load payload;

    for (uint32_t i = 0; i < SOME; i++)
        domt_flood_exit_unless(
            domus_outside_notice(system, sinks[i % SINKS], &load_type, &payload) == 0, 19);
    add_to_count(&domt_flood_shared->accepted, SOME);
}

/* A flood of actors, which -EBUSY does not refuse, ends too. The slots of the ended actors stay
 * mapped, but do no harm afterwards. */
void domt_flood_with_actors(void)
{
    static const domus_behaviour idle = {.name = "idle", .state_size = 1000};
    static domus_address actors[ACTORS_MAX];
    domus_system *system = start_flooded_system(2);
    uint32_t count = 0;
    int error = 0;

    while (count < ACTORS_MAX && error == 0)
        error = domus_outside_spawn(system, &idle, NULL, &actors[count++]);
    domt_flood_exit_unless(error == -ENOMEM, 17);
    domus_system_memory(system, &domt_flood_shared->most);
    atomic_store(&domt_flood_shared->over, 1);
    for (uint32_t i = 0; i + 1 < count; i++)
        domt_flood_exit_unless(domus_outside_stop(system, actors[i]) == 0, 17);
    if (!DOMT_SANITIZED) { /* the sanitizer keeps the shadow of memory that the flood has touched */
        wait_until_normal(system);
        check_notices_are_handled(system);
    }
    end_flood_with_limit(system, DOMT_FLOOD_LIMIT);
}
