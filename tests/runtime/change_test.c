/* runtime/control/change.c: a new configuration of a running system is followed by each thread and
 * each open connection, or nothing of it is. On real threads, a change reaches those of the loop,
 * detached ones and runners of a pool, and no message is lost or counted wrongly meanwhile. */
#include "runtime/control/config_keys.h"

#include "tests/runtime/network.h"
#include "tests/runtime/running.h"
#include "tests/support/kits.h"

#include "house/conversation/stack.h"
#include "runtime/system/system.h"

#include <domus/log.h>
#include <domus/pools.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MS     DOMT_MS
#define SECOND DOMT_NET_SECOND

static domus_testkit *kit;
static domus_system *system_;
static char error[512];

static void begin_kit_with_system(const domus_config *config)
{
    kit = domt_kit_new(config, 1);
    system_ = domus_testkit_system(kit);
}

static domus_config config_in_force(void)
{
    domus_config config;

    domus_system_config_now(system_, &config);
    return config;
}

/* Change the configuration of the system, and check that this succeeds. Returns how many keys have
 * changed. */
static int change_config_and_count_keys(const domus_config *config)
{
    int result = domus_system_change(system_, config, error, sizeof error);

    ck_assert_msg(result >= 0, "%s: %s", strerror(-result), error);
    return result;
}

/* Check that a change of the configuration is refused with the error `wanted` and with `text`, and
 * that no key changes. */
static void expect_change_refused(const domus_config *config, int wanted, const char *text)
{
    const domus_config before = config_in_force();

    ck_assert_int_eq(domus_system_check_change(system_, config, error, sizeof error), wanted);
    ck_assert_int_eq(domus_system_change(system_, config, error, sizeof error), wanted);
    ck_assert_str_eq(error, text);
    const domus_config after = config_in_force();
    ck_assert_mem_eq(&before, &after, sizeof before);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Returns another value for a key that is a number. It is near the present value, so that relations
 * between keys still hold. */
static uint64_t another_number_for_key(const domus_config_key *key, const domus_config *config)
{
    uint64_t number = domi_key_get_number(key, config);
    const uint64_t others[] = {number + 1, number - 1, key->minimum, 2 * number};
    char why[256];

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (others[i] != number && domi_key_check_number(key, others[i], why, sizeof why) == 0)
            return others[i];
    }
    ck_abort_msg("%s has one value only", key->path);
}

DOMT_TEST(each_live_key_holds_on_each_thread_after_its_next_turn)
{
    uint32_t tried = 0;

    begin_kit_with_system(NULL);
    for (size_t k = 0; k < domi_config_key_count; k++) {
        const domus_config_key *key = &domi_config_keys[k];
        domus_config config = config_in_force();
        if (!key->live)
            continue;
        uint64_t number = another_number_for_key(key, &config);
        domi_key_store_value(key, &config, number, NULL);
        ck_assert_int_eq(domus_system_check_change(system_, &config, error, sizeof error), 1);
        /* the check of a configuration must not change the system */
        ck_assert_msg(change_config_and_count_keys(&config) == 1, "%s", key->path);
        config = config_in_force();
        ck_assert_msg(domi_key_get_number(key, &config) == number, "%s", key->path);
        domt_net_check_ok(kit, domus_testkit_run(kit));
        for (uint32_t i = 0; i < system_->count; i++) {
            const domi_thread *thread = &system_->threads[i];
            ck_assert_msg(
                domi_key_get_number(key, thread->config) == number ||
                    strcmp(key->path, "scheduler.idle.spin") == 0,
                /* spinning changes nothing in a test kit, because its threads do not spin */
                "%s", key->path);
            ck_assert_ptr_eq(thread->io.config, thread->config);
        }
        ck_assert_int_eq(change_config_and_count_keys(&config),
                         0); /* a change to the same configuration changes no key */
        tried++;
    }
    ck_assert_uint_ge(tried, 60);
    const domi_manager *manager = &system_->threads[0].manager;
    ck_assert_uint_eq(manager->limits.mailbox_max, manager->taken.scheduler.mailbox_max);
    ck_assert_uint_eq(manager->mail.lane_max, manager->taken.scheduler.mailbox_max);
    ck_assert_uint_eq(manager->limits.messages_per_run_max,
                      manager->taken.scheduler.messages_per_run_max);
    ck_assert_uint_eq(manager->schedule.ready[DOMUS_STATE].normal_every,
                      manager->taken.scheduler.normal_every);
    ck_assert_uint_eq(system_->outside.limits.mailbox_max, manager->limits.mailbox_max);
    domus_testkit_free(kit);
}

DOMT_TEST(key_that_counts_at_a_start_is_refused_by_name)
{
    const domus_config_key *last = NULL;
    char line[256];

    begin_kit_with_system(NULL);
    for (size_t k = 0; k < domi_config_key_count; k++) {
        const domus_config_key *key = &domi_config_keys[k];
        domus_config config = config_in_force();
        bool is_second = last != NULL && strcmp(last->path, key->path) == 0;
        last = key;
        if (key->live || is_second || domi_key_is_text(key) ||
            strncmp(key->path, "cluster", 7) == 0)
            continue;
        domi_key_store_value(key, &config,
                             key->power_of_two ? 2 * domi_key_get_number(key, &config)
                                               : another_number_for_key(key, &config),
                             NULL);
        snprintf(line, sizeof line, "these keys count at a start: %s", key->path);
        expect_change_refused(&config, -EPERM, line);
    }
    domus_config config = config_in_force();
    config.profile.crash_file = "a";
    /* because one key in the configuration is not live, no key may change */
    config.scheduler.io_ratio = 7;
    expect_change_refused(&config, -EPERM, "these keys count at a start: profile.crashFile");
    config = config_in_force();
    config.system.threads = 0;
    config.system.threads_percent = 50; /* two keys that set the same field */
    expect_change_refused(&config, -EPERM, "these keys count at a start: system.threads");
    config.names.max = config.groups.max = config.groups.members_max = config.routers.max = 9;
    config.routers.routees_max = config.grains.max = config.grains.kinds_max = 9;
    config.files.open_max = config.log.queue_max = 99;
    expect_change_refused(
        &config, -EPERM,
        "these keys count at a start: system.threads, files.openMax, groups.max, "
        "groups.membersMax, routers.max, routers.routeesMax, names.max, grains.kindsMax and 2 "
        "more");
    domus_testkit_free(kit);
}

DOMT_TEST(wrong_value_is_refused_and_a_system_that_does_not_run_has_no_change)
{
    domus_config config;
    char brief[12];

    begin_kit_with_system(NULL);
    config = config_in_force();
    config.scheduler.io_ratio = 101;
    expect_change_refused(&config, -EINVAL, "scheduler.ioRatio: must be auto or 1..100, is 101");
    config = config_in_force();
    config.channel.send_low_bytes = config.channel.send_high_bytes + 1;
    ck_assert_int_eq(domus_system_change(system_, &config, brief, sizeof brief), -EINVAL);
    ck_assert_uint_eq(strlen(brief), sizeof brief - 1);
    ck_assert_int_eq(domus_system_change(system_, &config, NULL, 0), -EINVAL);
    domus_testkit_free(kit);

    domus_config plain = domt_config_of_threads(1);
    ck_assert_int_eq(domus_system_new(&plain, error, sizeof error, &system_), 0);
    ck_assert_uint_eq(config_in_force().scheduler.idle.spin_ns, DOMUS_SPIN_AUTO);
    ck_assert_uint_ne(domus_system_config(system_)->scheduler.idle.spin_ns, DOMUS_SPIN_AUTO);
    plain.scheduler.io_ratio = 7;
    expect_change_refused(&plain, -ESHUTDOWN, "the system does not run");
    domus_system_free(system_);
}

/* --- channels --------------------------------------------------------------------------------- */

static void set_idle_timeout(uint64_t section_ns, uint64_t listener_ns)
{
    static domus_listener_config listener;
    domus_config config = config_in_force();

    listener = config.listeners[0];
    ck_assert_int_eq(domus_system_channel_options(system_, 0, &listener.channel), 0);
    listener.channel.idle_timeout_ns = listener_ns;
    config.channel.idle_timeout_ns = section_ns;
    config.listeners = &listener;
    ck_assert_int_ge(change_config_and_count_keys(&config), 1);
    domt_net_check_ok(kit, domus_testkit_run(kit));
}

static void begin_kit_that_listens(void)
{
    domus_config config;

    domus_config_init(&config);
    kit = domt_kit_new_listening(&config, "named", "127.0.0.1:1", 3);
    system_ = domus_testkit_system(kit);
}

static domus_peer *connect_and_check_echo(const char *to)
{
    domus_peer *peer = domt_kit_connect_peer(kit, to);

    domt_kit_peer_send(peer, "x");
    domt_kit_peer_expect(kit, peer, "x");
    return peer;
}

static int listen_at_port_2(domus_stack *stack, void *self)
{
    domus_endpoint at;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:2", &at), 0);
    return domus_listen(stack, &at, &(domus_listen_options){.name = "own"}, NULL, NULL);
}

/* Check which of two connections are closed after 2 s of silence: that of the configured listener
 * (`named`), and that of an actor's listener (`own`). */
static void check_closed_peers(domus_peer *named, domus_peer *own, bool named_ends, bool own_ends)
{
    domt_net_check_ok(kit, domus_testkit_advance(kit, 2 * SECOND));
    ck_assert_int_eq(domus_peer_has_end(named), named_ends);
    ck_assert_int_eq(domus_peer_has_end(own), own_ends);
}

DOMT_TEST(open_connections_take_new_time_outs)
{
    static const domus_behaviour served = {
        .name = "served", .kind = DOMUS_CHANNELS, .on_read = {domt_on_read_echo, 0}};
    static const domus_behaviour listening = {.name = "listening",
                                              .kind = DOMUS_CHANNELS,
                                              .on_mount = listen_at_port_2,
                                              .on_read = {domt_on_read_echo, 0}};
    domus_channel_options none;

    begin_kit_that_listens();
    ck_assert_int_eq(domus_serve(system_, "named", &served, NULL, NULL), 0);
    (void)domt_spawn(system_, 1, &listening, NULL);
    domt_net_check_ok(kit, domus_testkit_run(kit));
    domus_peer *named = connect_and_check_echo("127.0.0.1:1"),
               *own = connect_and_check_echo("127.0.0.1:2");
    check_closed_peers(named, own, false, false);
    /* the listener has a limit of its own now, which its connection has already exceeded */
    set_idle_timeout(600 * SECOND, SECOND);
    ck_assert(domus_peer_has_end(named));
    check_closed_peers(named, own, true, false);
    named = connect_and_check_echo("127.0.0.1:1");
    set_idle_timeout(600 * SECOND, 500 * SECOND); /* the listener's idle time becomes long again */
    check_closed_peers(named, own, false, false);
    /* the listener has no limit of its own any more, so it follows that of the section `channel` */
    set_idle_timeout(SECOND, 0);
    /* the listener of an actor keeps the limit that it had when it began */
    check_closed_peers(named, own, true, false);
    ck_assert_int_eq(domus_system_channel_options(system_, 1, &none), -ENOENT);
    domus_testkit_free(kit);
}

DOMT_TEST(listener_with_other_fixed_keys_is_refused)
{
    domus_listener_config listener[2];

    begin_kit_that_listens();
    domus_config config = config_in_force();
    listener[0] = listener[1] = config.listeners[0];
    config.listeners = listener;
    listener[0].backlog++;
    listener[0].address = "127.0.0.1:3";
    expect_change_refused(
        &config, -EPERM,
        "these keys count at a start: listeners.named.address, listeners.named.backlog");
    listener[0] = listener[1];
    listener[1].name = "other";
    config.listener_count = 2;
    expect_change_refused(&config, -EPERM, "these keys count at a start: listeners");
    config.listener_count = 1;
    listener[0].name = "other";
    expect_change_refused(&config, -EPERM, "these keys count at a start: listeners");
    const domus_pool_config pool = {.name = "work"};
    config = config_in_force();
    config.pools = &pool;
    config.pool_count = 1;
    expect_change_refused(&config, -EPERM, "these keys count at a start: pools");
    domus_testkit_free(kit);
}

DOMT_TEST(change_of_one_key_leaves_all_others)
{
    begin_kit_that_listens();
    ck_assert_int_eq(domus_system_change_key(system_, "listeners.named.channel.linger", "3s", error,
                                             sizeof error),
                     1);
    ck_assert_int_eq(
        domus_system_change_key(system_, "scheduler.ioRatio", "7", error, sizeof error), 1);
    domus_config config = config_in_force();
    ck_assert_uint_eq(config.scheduler.io_ratio, 7);
    /* a change of another key leaves the listeners in the configuration as they are */
    config.scheduler.io_ratio = 8;
    ck_assert_int_eq(change_config_and_count_keys(&config), 1);
    domus_channel_options options;
    ck_assert_int_eq(domus_system_channel_options(system_, 0, &options), 0);
    ck_assert_uint_eq(options.linger_ns, 3 * SECOND);
    static const struct {
        const char *path, *value, *error;
        int result;
    } wrong[] = {
        {"scheduler.none", "1", "there is no such key", -ENOENT},
        {"listeners.none.channel.linger", "1s", "there is no such key", -ENOENT},
        {"listeners.name.channel.linger", "1s", "there is no such key", -ENOENT},
        {"names.max", "1", "it counts at a start", -EPERM},
        {"listeners.named.address", "a", "it counts at a start", -EPERM},
        {"scheduler.normalEvery", "1", "must be 2..65536, is 1", -EINVAL},
        {"scheduler.minBudget", "1s",
         "scheduler.maxBudget: must be at least scheduler.minBudget "
         "(1s), is 10ms",
         -EINVAL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(
            domus_system_change_key(system_, wrong[i].path, wrong[i].value, error, sizeof error),
            wrong[i].result);
        ck_assert_str_eq(error, wrong[i].error);
    }
    domus_testkit_free(kit);
}

/* A thread that begins has followed change number 0, so no later change may get the number 0. */
DOMT_TEST(number_of_changes_wraps_and_leaves_the_stop_step)
{
    uint32_t orders = domi_orders_of_stop(DOMI_STOP_DRAIN) | DOMI_ORDERS_CHANGES;
    uint32_t next = domi_orders_with_one_more_change(orders);

    ck_assert_uint_eq(next, domi_orders_of_stop(DOMI_STOP_DRAIN) | 1);
    ck_assert_int_eq(domi_orders_get_stop_step(next), DOMI_STOP_DRAIN);
    ck_assert(domi_orders_differ_in_config_change(orders, next));
    next = domi_orders_with_stop_step(next, DOMI_STOP_END);
    ck_assert_int_eq(domi_orders_get_stop_step(next), DOMI_STOP_END);
    ck_assert_uint_eq(next & DOMI_ORDERS_CHANGES, 1);
    ck_assert(next >= domi_orders_of_stop(DOMI_STOP_END));
}

/* --- real threads ----------------------------------------------------------------------------- */

static const domus_type look_type = {.name = "look", .size = sizeof(uint64_t)};

/* Answer with the values of some keys that the actor's thread follows. */
static int reply_limits_of_thread(domus_stack *stack, void *self, const void *payload)
{
    uint64_t sum = (uint64_t)stack->manager->config->scheduler.timers_max << 32 |
                   stack->manager->limits.messages_per_run_max;

    return domus_reply(stack, &look_type, &sum);
}

static const domus_behaviour looker = {
    .name = "looker", .on = (const domus_on[]){{&look_type, reply_limits_of_thread, 0}, {0}}};

static uint64_t ask_actor_for_its_limits(domus_address actor)
{
    uint64_t none = 0, answer;
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    ck_assert_int_eq(domus_outside_ask(system_, actor, &look_type, &none, 20 * SECOND, &reply), 0);
    return answer;
}

/* The actors are on a thread of the loop, on a thread of their own, and in a pool of runners; one
 * more actor spins. */
DOMT_TEST(config_change_reaches_each_kind_of_thread)
{
    static const domus_pool_config pool = {.name = "work", .runners = 2, .throughput = 5};
    domus_config config = domt_config_of_threads(2);
    domus_address actors[3];

    config.pools = &pool;
    config.pool_count = 1;
    system_ = domt_start_system(&config);
    actors[0] = domt_spawn(system_, 1, &looker, NULL);
    const domus_spawn_options detached = {.detached = true};
    ck_assert_int_eq(domus_outside_spawn_with(system_, &looker, NULL, &detached, &actors[1]), 0);
    const domus_spawn_options pooled = {.pool = domus_outside_pool_find(system_, "work")};
    ck_assert_int_eq(domus_outside_spawn_with(system_, &looker, NULL, &pooled, &actors[2]), 0);
    for (uint32_t turn = 0; turn < 50; turn++) {
        config = config_in_force();
        config.scheduler.timers_max = 1000 + turn;
        config.scheduler.messages_per_run_max = 100 + turn;
        ck_assert_int_eq(change_config_and_count_keys(&config), 2);
        for (uint32_t i = 0; i < 3; i++)
            DOMT_WAIT_FOR(10, ask_actor_for_its_limits(actors[i]) ==
                                  ((1000ull + turn) << 32 | (i == 2 ? 5 : 100 + turn)));
    }
    domt_end_system(system_);
}

static void *change_config_often(void *number_)
{
    uint32_t number = *(uint32_t *)number_;

    for (uint32_t i = 0; i < 500; i++) {
        domus_config config = config_in_force();
        config.scheduler.io_ratio = 1 + (i + number) % 100;
        config.memory.interval_ns = (1 + i % 90) * MS;
        config.stall.threshold_ns = (10 + i % 10) * SECOND;
        config.scheduler.idle.spin_ns = i % 2 == 0 ? DOMUS_SPIN_AUTO : 5000;
        config.channel.idle_timeout_ns = (1 + i % 9) * 100 * SECOND;
        config.profile.level = (domus_profile_level)(i % 3);
        (void)change_config_and_count_keys(&config);
        if (i % 8 == 0)
            domt_pause_ns(MS);
    }
    return NULL;
}

/* Two threads change the configuration at the same time, while actors send messages. */
DOMT_TEST(thousand_config_changes_lose_no_message)
{
    uint32_t numbers[2] = {0, 50};
    pthread_t threads[2];
    uint64_t asked = 0;

    system_ = domt_start_system_of_threads(2);
    domus_address actors[2] = {domt_spawn(system_, 0, &looker, NULL),
                               domt_spawn(system_, 1, &looker, NULL)};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, change_config_often, &numbers[i]), 0);
    for (; asked < 2000; asked++)
        (void)ask_actor_for_its_limits(actors[asked % 2]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    (void)ask_actor_for_its_limits(actors[0]);
    domt_end_system(system_);
}

static const domus_type note_type = {.name = "note"};
static _Atomic uint64_t waited;

/* Stay in a run while the limit of messages per run changes. */
static int receive_while_limits_change(domus_stack *stack, void *self, const void *payload)
{
    static const domus_type *const types[] = {&look_type, NULL};
    const domus_pattern pattern = {.types = types};
    domus_received got;

    atomic_fetch_add(&waited, 1);
    int result = domus_receive_now(stack, &pattern, 20 * SECOND, &got);
    return result == 0 ? domus_reply(stack, &look_type, got.payload) : result;
}

static const domus_behaviour waiting = {
    .name = "waiting", .on = (const domus_on[]){{&note_type, receive_while_limits_change, 0}, {0}}};

/* Returns how many messages were handled by the detached actors whose behaviour has this name. */
static uint64_t messages_of_detached_behaviour(const char *name)
{
    domus_behaviour_profile profiles[64];
    uint32_t count = 0;

    ck_assert_int_ge(domus_outside_behaviours(system_, profiles, 64, &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(profiles[i].name, name) == 0)
            return profiles[i].messages;
    }
    return 0;
}

/* The messages of a run are counted against the limit that held when the run began. */
DOMT_TEST(message_limit_may_change_within_a_run)
{
    const domus_spawn_options detached = {.detached = true};
    domus_address actor;

    system_ = domt_start_system_of_threads(1);
    ck_assert_int_eq(domus_outside_spawn_with(system_, &waiting, NULL, &detached, &actor), 0);
    domt_send_notice(system_, actor, &note_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&waited) == 1);
    ck_assert_int_eq(
        domus_system_change_key(system_, "scheduler.maxMessagesPerRun", "8", error, sizeof error),
        1);
    (void)ask_actor_for_its_limits(actor);
    DOMT_WAIT_FOR(10, messages_of_detached_behaviour("waiting") >= 1);
    ck_assert_uint_le(messages_of_detached_behaviour("waiting"), 2);
    domt_end_system(system_);
}

DOMT_SUITE(60)
