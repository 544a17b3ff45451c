/* runtime/testkit/: the test kit as its users see it: steps, time, traces, seeds and the stop.
 * (testkit_probe_test.c tests probes.) */
#include "base/memory.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/testkit.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS       UINT64_C(1000000)
#define SECOND   (1000 * MS)
#define HOUR     (3600 * SECOND)
#define START_NS DOMUS_TESTKIT_START_NS

static const domus_type go_type = {.name = "go", .size = sizeof(domus_address)};
static const domus_type read_type = {.name = "read"};
static const domus_type write_type = {.name = "write", .size = sizeof(uint32_t)};
static const domus_type value_type = {.name = "value", .size = sizeof(uint32_t)};
static const domus_type tick_type = {.name = "tick"};

static domus_address spawn_actor_on_thread(domus_testkit *kit, uint32_t thread,
                                           const domus_behaviour *behaviour)
{
    domus_address address;
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), thread, behaviour, NULL, &address), 0);
    return address;
}

static void send_notice_into_kit(domus_testkit *kit, domus_address to, const domus_type *type,
                                 const void *payload)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), to, type, payload), 0);
}

static int count_up_state(domus_stack *stack, void *self)
{
    (*(uint32_t *)self)++;
    return 0;
}

/* --- a race: two clients that read, add one and write ----------------------------------------- */

static uint32_t stored; /* value that the store has when the race is over */

static int reply_value_of_store(domus_stack *stack, void *self, const void *nothing)
{
    return domus_reply(stack, &value_type, self);
}

static int write_value_of_store(domus_stack *stack, void *self, const void *value)
{
    stored = *(uint32_t *)self = *(const uint32_t *)value;
    return 0;
}

static const domus_behaviour store = {
    .name = "store",
    .state_size = sizeof(uint32_t),
    .on = (const domus_on[]){
        {&read_type, reply_value_of_store, 0}, {&write_type, write_value_of_store, 0}, {0}}};

struct client {
    domus_address store;
};

static int write_value_plus_one(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct client *client = self;
    if (answer->error != 0)
        return answer->error;
    uint32_t more = *(const uint32_t *)answer->payload + 1;
    return domus_notice(stack, client->store, &write_type, &more);
}

static int begin_to_read_and_write(domus_stack *stack, void *self, const void *where)
{
    struct client *client = self;
    memcpy(&client->store, where, sizeof client->store);
    return domus_ask(stack, client->store, &read_type, NULL, write_value_plus_one);
}

static const domus_behaviour client = {
    .name = "client",
    .state_size = sizeof(struct client),
    .on = (const domus_on[]){{&go_type, begin_to_read_and_write, 0}, {0}}};

/* Run a race of two actors in a kit. Returns 0 if no update was lost. `context`, if it is not NULL,
 * gets a copy of the trace, which the caller frees. */
static int run_race_of_two_actors(uint64_t seed, void *context)
{
    domus_testkit *kit = domt_kit_new(NULL, seed);
    domus_address where = spawn_actor_on_thread(kit, 0, &store);
    domus_address one = spawn_actor_on_thread(kit, 1, &client);
    domus_address two = spawn_actor_on_thread(kit, 2, &client);

    stored = 0;
    send_notice_into_kit(kit, one, &go_type, &where);
    send_notice_into_kit(kit, two, &go_type, &where);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    if (context != NULL)
        *(char **)context = strdup(domus_testkit_trace(kit));
    domus_testkit_free(kit);
    return stored == 2 ? 0 : -EDOM;
}

DOMT_TEST(same_seed_gives_same_trace_of_kit)
{
    char *first, *again;

    (void)run_race_of_two_actors(7, &first);
    /* another kit beside it, so that the memory of the next run has other addresses */
    domus_testkit *beside = domt_kit_new(NULL, 7);
    (void)spawn_actor_on_thread(beside, 0, &store);
    ck_assert_int_eq(domus_testkit_run(beside), 0);
    (void)run_race_of_two_actors(7, &again);
    ck_assert_str_eq(first, again);
    ck_assert_ptr_nonnull(strstr(first, "thread 0 state of store#"));
    ck_assert_ptr_nonnull(strstr(first, ": runs 1, asks "));
    ck_assert_ptr_null(strstr(first, "0x"));
    free(first);
    free(again);
    domus_testkit_free(beside);
}

DOMT_TEST(another_seed_gives_another_interleaving)
{
    char *traces[20];
    int different = 0;

    for (uint64_t seed = 0; seed < 20; seed++)
        (void)run_race_of_two_actors(seed, &traces[seed]);
    for (int i = 1; i < 20; i++)
        different += strcmp(traces[0], traces[i]) != 0;
    for (int i = 0; i < 20; i++)
        free(traces[i]);
    ck_assert_int_ge(different, 15);
}

DOMT_TEST(a_race_of_some_seeds_is_found_and_replayed)
{
    uint64_t guilty = 0;
    uint64_t seed = 0;
    uint32_t found = 0;
    char text[DOMUS_TESTKIT_TEXT_MAX];
    char expected[64];

    ck_assert_int_eq(domus_testkit_sweep(1, 1000, run_race_of_two_actors, NULL, &guilty), -EDOM);
    for (uint64_t i = 1; i <= 100; i++)
        found += run_race_of_two_actors(i, NULL) != 0;
    ck_assert_uint_gt(found, 10); /* the race is lost in some seeds, but not in all */
    ck_assert_uint_lt(found, 95);

    snprintf(expected, sizeof expected, "DOMUS_SEED=%u ", (unsigned)guilty);
    ck_assert_int_eq(
        strncmp(domus_testkit_replay(guilty, text, sizeof text), expected, strlen(expected)), 0);
    *strchr(text, ' ') = '\0';
    ck_assert_int_eq(setenv("DOMUS_SEED", text + strlen("DOMUS_SEED="), 1), 0);
    ck_assert_int_eq(domus_testkit_sweep(5000, 1000, run_race_of_two_actors, NULL, &seed), -EDOM);
    ck_assert_uint_eq(seed, guilty);
}

DOMT_TEST(the_seed_comes_from_the_environment)
{
    ck_assert_int_eq(unsetenv("DOMUS_SEED"), 0);
    ck_assert_uint_eq(domus_testkit_seed(5), 5);
    ck_assert_int_eq(setenv("DOMUS_SEED", "18446744073709551615", 1), 0);
    ck_assert_uint_eq(domus_testkit_seed(5), UINT64_MAX);
    ck_assert_int_eq(setenv("DOMUS_SEED", "0x10", 1), 0);
    ck_assert_uint_eq(domus_testkit_seed(5), 16);
    ck_assert_int_eq(setenv("DOMUS_SEED", "many", 1), 0);
    ck_assert_uint_eq(domus_testkit_seed(5), 5);
    ck_assert_int_eq(setenv("DOMUS_SEED", "12x", 1), 0);
    ck_assert_uint_eq(domus_testkit_seed(5), 5);
}

/* --- time ------------------------------------------------------------------------------------- */

static struct {
    uint32_t ticks;
    uint64_t last_ns;
    uint32_t early; /* number of ticks that did not come exactly 1 s after the tick before */
} clocked;

static int check_and_count_tick(domus_stack *stack, void *self, const void *nothing)
{
    clocked.early += domus_now_ns(stack) != clocked.last_ns + SECOND;
    clocked.last_ns = domus_now_ns(stack);
    clocked.ticks++;
    return 0;
}

static int arm_clock_in_mount(domus_stack *stack, void *self)
{
    clocked.last_ns = domus_now_ns(stack);
    return domus_every(stack, SECOND, &tick_type, NULL, NULL);
}

static const domus_behaviour ticking = {
    .name = "ticking",
    .on = (const domus_on[]){{&tick_type, check_and_count_tick, 0}, {0}},
    .on_mount = arm_clock_in_mount};

DOMT_TEST(an_hour_passes_in_no_time)
{
    domus_testkit *kit = domt_kit_new(NULL, 1);

    (void)spawn_actor_on_thread(kit, 1, &ticking);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), START_NS);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    /* the clock has not moved, because steps take no time */
    ck_assert_uint_eq(domus_testkit_now_ns(kit), START_NS);
    ck_assert(!domus_testkit_step(kit));
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND - 1), 0);
    ck_assert_uint_eq(clocked.ticks, 0);
    ck_assert_int_eq(domus_testkit_advance(kit, 1), 0);
    ck_assert_uint_eq(clocked.ticks, 1);
    ck_assert_int_eq(domus_testkit_advance(kit, HOUR), 0);
    ck_assert_uint_eq(clocked.ticks, 3601);
    ck_assert_uint_eq(clocked.early, 0);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), START_NS + HOUR + SECOND);
    ck_assert_int_eq(domus_testkit_advance(kit, UINT64_MAX - HOUR), -ERANGE);
    domus_testkit_free(kit);
}

static int count_threads_of_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count;
}

DOMT_TEST(a_kit_makes_no_thread)
{
    int before = count_threads_of_process();
    domus_testkit *kit = domt_kit_new(NULL, 1);
    ck_assert_int_eq(count_threads_of_process(), before);
    ck_assert_uint_eq(domus_system_threads(domus_testkit_system(kit)), DOMUS_TESTKIT_THREADS);
    domus_testkit_free(kit);
}

/* --- limits ----------------------------------------------------------------------------------- */

static int notify_own_actor(domus_stack *stack, void *self, const void *nothing)
{
    return domus_notice(stack, domus_self(stack), &tick_type, NULL);
}

static const domus_behaviour restless = {
    .name = "restless", .on = (const domus_on[]){{&tick_type, notify_own_actor, 0}, {0}}};

DOMT_TEST(actor_that_never_rests_is_named)
{
    domus_config config;

    domus_config_init(&config);
    config.scheduler.messages_per_run_max = 16;
    domus_testkit *kit = domt_kit_new(&config, 1);
    send_notice_into_kit(kit, spawn_actor_on_thread(kit, 2, &restless), &tick_type, NULL);
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), -ETIMEDOUT);
    ck_assert_str_eq(domus_testkit_error(kit),
                     "1000000 steps and no end; thread 2 runs: restless;");
    ck_assert_uint_eq(domus_testkit_now_ns(kit), START_NS);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(a_trace_keeps_the_newest_lines)
{
    domus_testkit *kit = domt_kit_new(NULL, 1);
    uint32_t lines = 0;

    send_notice_into_kit(kit, spawn_actor_on_thread(kit, 2, &restless), &tick_type, NULL);
    for (int i = 0; i < 20000; i++)
        ck_assert(domus_testkit_step(kit));
    const char *trace = domus_testkit_trace(kit);
    ck_assert_ptr_nonnull(strstr(trace, " lines before are gone\n"));
    ck_assert_ptr_null(strstr(trace, "spawns 1"));
    for (const char *p = trace; (p = strchr(p, '\n')) != NULL; p++)
        lines++;
    ck_assert_uint_eq(lines, DOMUS_TESTKIT_TRACE_MAX + 1);
    const char *last = trace + strlen(trace) - 2;
    while (last[-1] != '\n')
        last--;
    ck_assert_uint_ge(strtoul(last, NULL, 10), 20000 - 8);
    domus_testkit_free(kit);
}

DOMT_TEST(a_kit_takes_what_counts_of_a_configuration)
{
    domus_listener_config listener = {.name = "web", .address = "127.0.0.1:0", .backlog = 1};
    domus_config config;
    domus_testkit *kit = NULL;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = 5;
    config.system.cpus = "1000"; /* CPUs that this machine does not have */
    config.scheduler.idle.spin_ns = MS;
    config.scheduler.mailbox_max = 16;
    config.listeners = &listener;
    config.listener_count = 1;
    kit = domt_kit_new(&config, 1);
    domus_system *system = domus_testkit_system(kit);
    ck_assert_uint_eq(domus_system_threads(system), 5);
    ck_assert_uint_eq(domus_system_config(system)->scheduler.mailbox_max, 16);
    /* fails, because only a channels actor can serve a listener */
    ck_assert_int_eq(domus_serve(system, "web", &store, NULL, NULL), -EINVAL);
    ck_assert_int_eq(domus_serve(system, "wide", &store, NULL, NULL), -ENOENT);
    ck_assert_int_eq(domus_system_start(system), -EALREADY);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_testkit_free(kit);

    config.scheduler.mailbox_max = 0;
    ck_assert_int_eq(domus_testkit_new(&config, 1, error, sizeof error, &kit), -EINVAL);
    ck_assert_ptr_nonnull(strstr(error, "scheduler.mailboxMax"));
    domus_testkit_free(NULL);
}

/* --- stop ------------------------------------------------------------------------------------- */

static domus_testkit *current;
/* number of actors that were mounted, and number of those that were stopped */
static uint32_t lives[2];
static int refusals[4];

static int misuse_kit_in_handler(domus_stack *stack, void *self, const void *nothing)
{
    refusals[0] = domus_testkit_run(current);
    refusals[1] = domus_testkit_stop(current);
    refusals[2] = domus_system_stop(domus_testkit_system(current));
    refusals[3] = domus_testkit_step(current);
    return 0;
}

static int count_mount(domus_stack *stack, void *self)
{
    return count_up_state(stack, &lives[0]);
}

static void count_stop(domus_stack *stack, void *self)
{
    (void)count_up_state(stack, &lives[1]);
}

static const domus_behaviour mortal = {
    .name = "mortal",
    .on = (const domus_on[]){{&tick_type, misuse_kit_in_handler, 0}, {0}},
    .on_mount = count_mount,
    .on_stop = count_stop};

DOMT_TEST(stop_ends_all_actors_and_counts_dead_letters)
{
    domus_testkit *kit = domt_kit_new(NULL, 3);
    domus_system *system = domus_testkit_system(kit);
    domus_address address[6];
    domus_profile profile;

    for (uint32_t i = 0; i < 6; i++)
        address[i] = spawn_actor_on_thread(kit, i % 3, &mortal);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_outside_stop(system, address[0]), 0);
    /* no actor has a row for this type, so the message is a dead letter */
    send_notice_into_kit(kit, address[3], &go_type, &address[0]);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    ck_assert_uint_eq(lives[0], 6);
    ck_assert_uint_eq(lives[1], 6);
    ck_assert_str_eq(domus_system_left(system), "");
    ck_assert(!domus_testkit_step(kit));
    ck_assert_int_eq(domus_outside_spawn(system, &mortal, NULL, &address[0]), -ESHUTDOWN);
    ck_assert_int_eq(domus_system_profile(system, 0, &profile), 0);
    ck_assert_uint_eq(profile.dead_letters, 1);
    ck_assert_uint_eq(profile.stops, 2);
    ck_assert_uint_eq(profile.cap_wakeups_with_work, 0);
    ck_assert_ptr_nonnull(strstr(domus_testkit_trace(kit), ", stops 2"));
    domus_testkit_free(kit);
}

DOMT_TEST(freeing_a_kit_stops_it)
{
    current = domt_kit_new(NULL, 3);
    (void)spawn_actor_on_thread(current, 1, &mortal);
    ck_assert_int_eq(domus_testkit_run(current), 0);
    domus_testkit_free(current);
    ck_assert_uint_eq(lives[1], 1);
}

DOMT_TEST(a_handler_cannot_take_steps)
{
    current = domt_kit_new(NULL, 1);
    send_notice_into_kit(current, spawn_actor_on_thread(current, 0, &mortal), &tick_type, NULL);
    ck_assert_int_eq(domus_testkit_run(current), 0);
    ck_assert_int_eq(refusals[0], -EBUSY);
    ck_assert_int_eq(refusals[1], -EBUSY);
    ck_assert_int_eq(refusals[2], -EDEADLK);
    ck_assert_int_eq(refusals[3], false);
    domus_testkit_free(current);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Run a kit, a race, and a conversation with a probe. Returns 0 if nothing has failed, else the
 * first error. */
static int run_scenario_of_kit(void)
{
    domus_testkit *kit = NULL;
    domus_address address;
    domus_probe *probe;
    uint32_t value = 7;
    char error[256];
    int result = domus_testkit_new(NULL, 1, error, sizeof error, &kit);

    if (result != 0)
        return result;
    result = domus_outside_spawn_on(domus_testkit_system(kit), 1, &store, NULL, &address);
    if (result == 0)
        result = domus_probe_new(kit, &probe);
    if (result == 0)
        result = domus_probe_send(probe, address, &write_type, &value);
    if (result == 0)
        result = domus_probe_ask(probe, address, &read_type, NULL);
    if (result == 0)
        result = domus_probe_expect(probe, &value_type, SECOND, &value);
    (void)domus_testkit_trace(kit);
    (void)domus_testkit_stop(kit);
    domus_testkit_free(kit);
    return result;
}

DOMT_TEST(kits_survive_failed_allocations)
{
    for (int stay = 0; stay < 2; stay++) {
        int failures = 0;
        /* number of rounds without a failure that followed each other; a trace without numbers is
         * no failure */
        int clean = 0;

        for (int count = 0; clean < 10; count++) {
            domi_memory_fail_allocation_after(count, stay);
            int result = run_scenario_of_kit();
            domi_memory_fail_allocation_after(-1, 0);
            clean = result == 0 ? clean + 1 : 0;
            failures += result != 0;
            ck_assert_int_lt(count, 1000);
            /* -EBADMSG stands for an ask of the probe that has failed with -ENOMEM. */
            ck_assert_msg(result == 0 || result == -ENOMEM || result == -EBADMSG, "%d", result);
        }
        ck_assert_int_gt(failures, 20);
    }
}

DOMT_SUITE(60)
