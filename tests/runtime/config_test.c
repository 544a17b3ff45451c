/* runtime/control/config.c: the table of keys, its defaults and ranges, relations between keys, and
 * listeners. */
#include <domus/config.h>

#include "tests/support/suite.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_key_of_text(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

static void expect_result_of_check(const domus_config *config, const char *wanted)
{
    char error[256] = "";

    ck_assert_int_eq(domus_config_check(config, error, sizeof error), wanted[0] ? -EINVAL : 0);
    ck_assert_str_eq(error, wanted);
}

DOMT_TEST(defaults_are_those_of_the_header_and_valid)
{
    domus_config config;

    memset(&config, 0xa5, sizeof config);
    domus_config_init(&config);
    expect_result_of_check(&config, "");
    ck_assert_uint_eq(config.system.threads, 0);
    ck_assert_uint_eq(config.system.threads_percent, 0);
    ck_assert_str_eq(config.system.cpus, "auto");
    ck_assert_uint_eq(config.scheduler.io_ratio, 50);
    ck_assert_uint_eq(config.scheduler.min_budget_ns, 50000);
    ck_assert_uint_eq(config.scheduler.min_budget_busy_ns, 50000);
    ck_assert_uint_eq(config.scheduler.max_budget_ns, 10000000);
    ck_assert_uint_eq(config.scheduler.stage_time_ns, 5000000);
    ck_assert_uint_eq(config.scheduler.deadline_check_every, 16);
    ck_assert_uint_eq(config.scheduler.messages_per_run_max, 64);
    ck_assert_uint_eq(config.scheduler.normal_every, 4);
    ck_assert_uint_eq(config.scheduler.channels_runs_per_iteration, 1024);
    ck_assert_uint_eq(config.scheduler.mailbox_max, 32768);
    ck_assert_uint_eq(config.scheduler.conversations_max, 65536);
    ck_assert_uint_eq(config.scheduler.timers_max, 4194304);
    ck_assert(config.scheduler.steal.enabled);
    ck_assert_uint_eq(config.scheduler.steal.floor, 32);
    ck_assert_uint_eq(config.scheduler.steal.aggression, 128);
    ck_assert_uint_eq(config.scheduler.steal.patience, 32768);
    ck_assert_uint_eq(config.scheduler.idle.spin_ns, DOMUS_SPIN_AUTO);
    ck_assert_uint_eq(config.io.ring_entries, 512);
    ck_assert_uint_eq(config.io.completion_entries, 4096);
    ck_assert_uint_eq(config.io.completions_per_poll, 256);
    ck_assert_uint_eq(config.io.empty_wakeups_max, 512);
    ck_assert_int_eq(config.io.backend, DOMUS_BACKEND_AUTO);
    ck_assert_uint_eq(config.io.buffers.size_bytes, 4096);
    ck_assert_uint_eq(config.io.buffers.count, 1024);
    ck_assert_uint_eq(config.channel.send_high_bytes, 262144);
    ck_assert_uint_eq(config.channel.send_low_bytes, 65536);
    ck_assert_uint_eq(config.channel.send_max_bytes, 4194304);
    ck_assert_uint_eq(config.channel.idle_timeout_ns, UINT64_C(300000000000));
    ck_assert_uint_eq(config.channel.send_timeout_ns, UINT64_C(30000000000));
    ck_assert_uint_eq(config.channel.linger_ns, UINT64_C(1000000000));
    ck_assert_uint_eq(config.channel.connections_max, 10000);
    ck_assert_uint_eq(config.shutdown.drain_timeout_ns, UINT64_C(10000000000));
    ck_assert_uint_eq(config.connect.timeout_ns, UINT64_C(10000000000));
    ck_assert_uint_eq(config.connect.under_way_max, 1024);
    ck_assert_uint_eq(config.connect.connections_max, 10000);
    ck_assert_uint_eq(config.connect.attempt_delay_ns, UINT64_C(250000000));
    ck_assert_uint_eq(config.connect.attempts_max, 8);
    ck_assert_uint_eq(config.connect.resolve.threads_max, 4);
    ck_assert_uint_eq(config.connect.resolve.queue_max, 256);
    ck_assert_uint_eq(config.connect.resolve.cache_max, 256);
    ck_assert_uint_eq(config.connect.resolve.cache_time_ns, UINT64_C(5000000000));
    ck_assert_uint_eq(config.connection.first_byte_timeout_ns, UINT64_C(10000000000));
    ck_assert_uint_eq(config.connection.address_percent, 10);
    ck_assert_uint_eq(config.connection.loopback_percent, 100);
    ck_assert_uint_eq(config.connection.keepalive.idle_ns, UINT64_C(60000000000));
    ck_assert_uint_eq(config.connection.keepalive.interval_ns, UINT64_C(10000000000));
    ck_assert_uint_eq(config.connection.keepalive.count, 6);
    ck_assert_uint_eq(config.connection.user_timeout_ns, 0);
    ck_assert_uint_eq(config.sockets.unsent_max_bytes, 131072);
    ck_assert_uint_eq(config.sockets.send_buffer_bytes, 0);
    ck_assert_uint_eq(config.sockets.receive_buffer_bytes, 0);
    ck_assert(config.sockets.no_delay);
    ck_assert_int_eq(config.profile.level, DOMUS_PROFILE_COUNTERS);
    ck_assert(config.profile.at_exit && !config.profile.zeros);
    ck_assert_uint_eq(config.log.queue_max, 1024);
    ck_assert_uint_eq(config.log.flush_timeout_ns, UINT64_C(1000000000));
    ck_assert(!config.log.addresses);
    ck_assert_ptr_null(config.listeners);
    ck_assert_uint_eq(config.listener_count, 0);
}

DOMT_TEST(defaults_bound_time_of_heads_and_rate_of_bodies)
{
    domus_config config;
    domus_config_init(&config);
    ck_assert_uint_eq(config.channel.head_timeout_ns, 10000000000);
    ck_assert_uint_eq(config.channel.body_rate_bytes, 100);
}

/* Keys whose fields are followed by padding bytes, up to the alignment of the next field. */
static const char *const padded[] = {"scheduler.ioRatio",
                                     "scheduler.timersMax",
                                     "scheduler.steal.enabled",
                                     "scheduler.steal.aggression",
                                     "scheduler.steal.patience",
                                     "io.buffers.count",
                                     "channel.maxConnections",
                                     "shutdown.cutStatus",
                                     "profile.zeros",
                                     "log.addresses",
                                     "observe.public",
                                     NULL};

static bool is_known_padding_of_config(size_t start, size_t end)
{
    const domus_config_key *key;
    const char *const *path;

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++)
        for (path = padded; key->offset + key->size == start && *path != NULL; path++)
            if (strcmp(*path, key->path) == 0)
                return end == (start + 7) / 8 * 8 || end == (start + 3) / 4 * 4;
    return false;
}

/* Each byte of domus_config belongs to a key or is padding, so this test finds a field that no row
 * of the table of keys describes. */
DOMT_TEST(every_field_of_the_config_has_a_row_of_keys)
{
    unsigned char covered[sizeof(domus_config)] = {0};
    const domus_config_key *key;

    /* the last padding ends where the list of listeners begins */
    covered[offsetof(domus_config, listeners)] = 1;
    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        ck_assert_uint_le((size_t)key->offset + key->size, sizeof covered);
        ck_assert(key->size == 1 || key->size == 4 || key->size == 8);
        ck_assert(is_key_of_text(key) || key->size == 8 || key->maximum >> (8 * key->size) == 0);
        for (size_t byte = 0; byte < key->size; byte++)
            ck_assert_uint_eq(covered[key->offset + byte]++, 0);
    }

    for (size_t byte = 0, end; byte < offsetof(domus_config, listeners); byte = end) {
        for (end = byte + 1; covered[byte] == 0 && covered[end] == 0;)
            end++;
        ck_assert_msg(covered[byte] != 0 || is_known_padding_of_config(byte, end),
                      "byte %zu has no row", byte);
    }
}

/* Both ends of a key's range are accepted, and values beyond them are refused, by the functions for
 * numbers and fields and by the check of a configuration alike. */
DOMT_TEST(range_of_every_key_holds_at_both_ends)
{
    const domus_config_key *key;
    char error[256];

    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        domus_config config, before;
        domus_config_init(&config);
        before = config;
        if (is_key_of_text(key))
            continue;
        ck_assert_int_eq(domus_config_key_put(key, &config, key->maximum + 1, NULL, error, 256),
                         -EINVAL);
        if (key->minimum > 1)
            ck_assert_int_eq(domus_config_key_put(key, &config, key->minimum - 1, NULL, error, 256),
                             -EINVAL);
        if (key->minimum > 0 && key->special == NULL && !key->or_zero)
            ck_assert_int_eq(domus_config_key_put(key, &config, 0, NULL, error, 256), -EINVAL);
        if (key->special == NULL || key->special_number != UINT64_MAX)
            ck_assert_int_eq(domus_config_key_put(key, &config, UINT64_MAX, NULL, error, 256),
                             -EINVAL);
        ck_assert_mem_eq(&config, &before, sizeof config);
        ck_assert_int_eq(domus_config_key_put(key, &config, key->minimum, NULL, error, 256), 0);
        ck_assert_int_eq(domus_config_key_put(key, &config, key->maximum, NULL, error, 256), 0);
        if (key->or_zero)
            ck_assert_int_eq(domus_config_key_put(key, &config, 0, NULL, error, 256), 0);
        ck_assert_int_eq(domus_config_key_put(key, &config, key->preset, NULL, error, 256), 0);
        ck_assert_mem_eq(&config, &before, sizeof config);
    }
}

/* A time-out of one nanosecond is refused as a mistake, and so is a signal that domus cannot use. 0
 * is accepted for both, because it has a meaning of its own. */
DOMT_TEST(time_outs_have_a_least_value_beside_0)
{
    static const char *const paths[] = {
        "channel.idleTimeout",   "channel.sendTimeout",   "channel.linger",
        "shutdown.drainTimeout", "shutdown.actorTimeout", "stall.threshold",
        "log.flushTimeout",      "blocking.idleExpiry",   "memory.interval",
    };
    char error[256];

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const domus_config_key *key = domus_config_key_get(0);
        domus_config config;

        for (size_t row = 1; strcmp(key->path, paths[i]) != 0; row++)
            key = domus_config_key_get(row);
        domus_config_init(&config);
        ck_assert_int_eq(domus_config_key_put(key, &config, 1, NULL, error, 256), -EINVAL);
        ck_assert_int_eq(domus_config_key_put(key, &config, 999999, NULL, error, 256), -EINVAL);
    }
}

DOMT_TEST(stall_signal_must_be_a_real_time_signal_or_none)
{
    static const uint32_t wrong[] = {1, 9, 11, 32, 33, 65};
    domus_config config;
    char line[128];

    domus_config_init(&config);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        config.stall.signal = wrong[i];
        snprintf(line, sizeof line, "stall.signal: must be 0 or 34..64, is %u", wrong[i]);
        expect_result_of_check(&config, line);
    }
    config.stall.signal = 0;
    expect_result_of_check(&config, "");
    config.stall.signal = 34;
    expect_result_of_check(&config, "");
}

DOMT_TEST(wrong_value_is_named_with_its_range)
{
    domus_config config;

    domus_config_init(&config);
    config.scheduler.io_ratio = 0;
    expect_result_of_check(&config, "scheduler.ioRatio: must be auto or 1..100, is 0");
    config.scheduler.io_ratio = 101;
    expect_result_of_check(&config, "scheduler.ioRatio: must be auto or 1..100, is 101");
    domus_config_init(&config);
    config.system.threads = 1025;
    expect_result_of_check(&config, "system.threads: must be auto or 1..1024, is 1025");
    domus_config_init(&config);
    config.system.threads_percent = 101;
    expect_result_of_check(&config, "system.threads: must be auto or 1%..100%, is 101%");
    domus_config_init(&config);
    config.scheduler.idle.spin_ns = UINT64_C(1500000000);
    expect_result_of_check(&config, "scheduler.idle.spin: must be auto or 0..1s, is 1500ms");
    domus_config_init(&config);
    config.channel.linger_ns = UINT64_C(7200000000000);
    expect_result_of_check(&config, "channel.linger: must be 1ms..1h, is 2h");
    domus_config_init(&config);
    config.channel.idle_timeout_ns = 1;
    expect_result_of_check(&config, "channel.idleTimeout: must be 0 or 10ms..8760h, is 1ns");
    domus_config_init(&config);
    config.io.buffers.size_bytes = 100;
    expect_result_of_check(&config, "io.buffers.size: must be 256B..1MiB, is 100B");
    domus_config_init(&config);
    config.profile.level = (domus_profile_level)7;
    expect_result_of_check(&config, "profile.level: must be off..spans, is 7");
}

DOMT_TEST(keys_of_powers_of_two_refuse_others)
{
    domus_config config;

    domus_config_init(&config);
    config.io.ring_entries = 500;
    expect_result_of_check(&config, "io.ringEntries: must be a power of two, is 500");
    domus_config_init(&config);
    config.io.completion_entries = 4097;
    expect_result_of_check(&config, "io.completionEntries: must be a power of two, is 4097");
    domus_config_init(&config);
    config.io.buffers.count = 1000;
    expect_result_of_check(&config, "io.buffers.count: must be a power of two, is 1000");
}

DOMT_TEST(relations_between_config_keys_are_checked)
{
    domus_config config;

    domus_config_init(&config);
    config.io.ring_entries = 4096;
    expect_result_of_check(
        &config, "io.completionEntries: must be more than io.ringEntries (4096), is 4096");
    config.io.completion_entries = 8192;
    expect_result_of_check(&config, "");
    config.channel.send_low_bytes = config.channel.send_high_bytes;
    expect_result_of_check(&config, "");
    config.channel.send_low_bytes++;
    expect_result_of_check(
        &config, "channel.sendHigh: must be at least channel.sendLow (262145B), is 256KiB");
    domus_config_init(&config);
    config.channel.send_max_bytes = config.channel.send_high_bytes;
    expect_result_of_check(&config, "");
    config.channel.send_max_bytes--;
    expect_result_of_check(
        &config, "channel.sendMax: must be at least channel.sendHigh (256KiB), is 262143B");
}

DOMT_TEST(cpus_are_words_or_a_list)
{
    static const char *const right[] = {"auto", "none", "0", "0-3,8", "3,1,2"};
    static const char *const wrong[] = {"all", "Auto", "0-", "-1", "1,,2", "3-1", "0 1", "a", ","};
    domus_config config;
    char line[256];

    domus_config_init(&config);
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        config.system.cpus = right[i];
        expect_result_of_check(&config, "");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        config.system.cpus = wrong[i];
        snprintf(line, sizeof line,
                 "system.cpus: must be auto, none or a list such as 0-3,8, is '%s'", wrong[i]);
        expect_result_of_check(&config, line);
    }
    config.system.cpus = "\xc2\x9b\n";
    expect_result_of_check(&config, "system.cpus: must be auto, none or a list such as 0-3,8, is "
                                    "'\\xc2\\x9b\\n'");
    config.system.cpus = "";
    expect_result_of_check(&config, "system.cpus: is missing or empty");
    config.system.cpus = NULL;
    expect_result_of_check(&config, "system.cpus: is missing or empty");
}

static void expect_result_of_listener_check(const char *name, const char *address, uint32_t backlog,
                                            const char *wanted)
{
    domus_listener_config listener = {.name = name, .address = address, .backlog = backlog};
    domus_config config;

    domus_config_init(&config);
    config.listeners = &listener;
    config.listener_count = 1;
    expect_result_of_check(&config, wanted);
}

DOMT_TEST(addresses_are_numbers_only)
{
    static const char *const right[] = {"127.0.0.1:7000",
                                        "0.0.0.0:0",
                                        "[::1]:7000",
                                        "[::]:65535",
                                        "[2001:db8::1]:1",
                                        "[::ffff:127.0.0.1]:80",
                                        "[1111:2222:3333:4444:5555:6666:255.255.255.255]:65535"};
    static const char *const wrong[] = {"127.0.0.1",
                                        "127.0.0.1:",
                                        ":7000",
                                        "localhost:7000",
                                        "127.1:7000",
                                        "127.0.0.1:07",
                                        "127.0.0.1:-1",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:0x10",
                                        "127.0.0.1:1a",
                                        "::1:7000",
                                        "[::1]",
                                        "[::1]7000",
                                        "[::1:7000",
                                        "[127.0.0.1]:1",
                                        " 127.0.0.1:1",
                                        "127.0.0.1:1 ",
                                        "[fe80::1%lo]:1",
                                        "256.0.0.1:1",
                                        "[]:1",
                                        "127.0.0.1:+1",
                                        "127.0.0.1:00",
                                        "[::1]]:1",
                                        "127.0.0.01:1",
                                        "[:1",
                                        "127.0.0.1:99999999999999999999999"};
    char line[256];

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        expect_result_of_listener_check("a", right[i], 1, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(line, sizeof line,
                 "listeners[0].address: must be such as 127.0.0.1:7000 or [::1]:7000 (numbers "
                 "only), or unix:PATH, is '%s'",
                 wrong[i]);
        expect_result_of_listener_check("a", wrong[i], 1, line);
    }
    expect_result_of_listener_check("a", NULL, 1, "listeners[0].address: is missing or empty");
    expect_result_of_listener_check(
        "a", "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd]:65535", 1,
        "listeners[0].address: must be such as 127.0.0.1:7000 or [::1]:7000 (numbers "
        "only), or unix:PATH, is "
        "'[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:ddd'");
}

DOMT_TEST(listeners_are_named_unique_and_few)
{
    static domus_listener_config many[65];
    domus_listener_config three[] = {
        {.name = "a", .address = "127.0.0.1:1", .backlog = 1},
        {.name = "b", .address = "127.0.0.1:2", .backlog = 65535},
        {.name = "a", .address = "127.0.0.1:3", .backlog = 1},
    };
    domus_config config;

    expect_result_of_listener_check("Echo-1_b", "[::]:0", 4096, "");
    expect_result_of_listener_check("", "[::]:0", 1, "listeners[0].name: is missing or empty");
    expect_result_of_listener_check(
        "a.b", "[::]:0", 1, "listeners[0].name: must be letters, digits, '-' and '_', is 'a.b'");
    expect_result_of_listener_check("a", "[::]:0", 0,
                                    "listeners[0].backlog: must be 1..65535, is 0");
    domus_config_init(&config);
    config.listeners = three;
    config.listener_count = 2;
    expect_result_of_check(&config, "");
    config.listener_count = 3;
    expect_result_of_check(&config,
                           "listeners[2].name: must be unique, 'a' is taken by listeners[0]");
    config.listeners = many;
    config.listener_count = 65;
    expect_result_of_check(&config, "listeners: must be 0..64, are 65");
    config.listeners = NULL;
    config.listener_count = 2;
    expect_result_of_check(&config, "listeners: must be 0..64, and not NULL, are 2");
}

static void append_fault_to_text(const domus_config_fault *fault, void *context)
{
    char *text = context;

    ck_assert(fault->key == NULL || fault->listener != SIZE_MAX ||
              strcmp(fault->key->path, fault->path) == 0);
    snprintf(text + strlen(text), 1024 - strlen(text), "%s: %s%s%s\n", fault->path, fault->message,
             fault->other != NULL ? " / " : "", fault->other != NULL ? fault->other->path : "");
}

DOMT_TEST(options_of_a_listener_are_checked_and_named)
{
    domus_listener_config listener = {.name = "a", .address = "127.0.0.1:1", .backlog = 1};
    domus_config config;

    domus_config_init(&config);
    config.listeners = &listener;
    config.listener_count = 1;
    listener.channel = (domus_channel_options){.idle_timeout_ns = DOMUS_NONE,
                                               .send_low_bytes = DOMUS_NONE,
                                               .linger_ns = UINT64_C(1000000)};
    expect_result_of_check(&config, "");
    listener.channel = (domus_channel_options){.idle_timeout_ns = 1};
    expect_result_of_check(&config,
                           "listeners[0].channel.idleTimeout: must be 0 or 10ms..8760h, is 1ns");
    listener.channel = (domus_channel_options){.linger_ns = DOMUS_NONE};
    expect_result_of_check(&config, "listeners[0].channel.linger: must be 1ms..1h, is 0");
    listener.channel = (domus_channel_options){.send_high_bytes = 1000};
    expect_result_of_check(
        &config, "listeners[0].channel.sendHigh: must be at least channel.sendLow (64KiB), "
                 "is 1000B");
    listener.channel.send_low_bytes = 1000;
    expect_result_of_check(&config, "");
    listener.channel = (domus_channel_options){.send_max_bytes = 1024};
    expect_result_of_check(
        &config, "listeners[0].channel.sendMax: must be at least channel.sendHigh (256KiB), "
                 "is 1KiB");
}

DOMT_TEST(all_config_faults_are_reported_and_first_is_the_error)
{
    domus_listener_config listener = {.address = "x"};
    domus_config config;
    char text[1024] = "", cut[12];

    domus_config_init(&config);
    config.scheduler.io_ratio = 0;
    config.io.completion_entries = 100;
    config.channel.send_max_bytes = 1024;
    config.listeners = &listener;
    config.listener_count = 1;
    ck_assert_uint_eq(domus_config_check_all(&config, append_fault_to_text, text), 7);
    ck_assert_str_eq(text,
                     "scheduler.ioRatio: must be auto or 1..100, is 0\n"
                     "io.completionEntries: must be a power of two, is 100\n"
                     "io.completionEntries: must be more than io.ringEntries (512), is 100 / "
                     "io.ringEntries\n"
                     "channel.sendMax: must be at least channel.sendHigh (256KiB), is 1KiB / "
                     "channel.sendHigh\n"
                     "listeners[0].name: is missing or empty\n"
                     "listeners[0].address: must be such as 127.0.0.1:7000 or [::1]:7000 (numbers "
                     "only), or unix:PATH, is 'x'\n"
                     "listeners[0].backlog: must be 1..65535, is 0\n");
    expect_result_of_check(&config, "scheduler.ioRatio: must be auto or 1..100, is 0");
    ck_assert_int_eq(domus_config_check(&config, cut, sizeof cut), -EINVAL);
    ck_assert_str_eq(cut, "scheduler.i");
    ck_assert_int_eq(domus_config_check(&config, NULL, 0), -EINVAL);
}

DOMT_SUITE(10)
