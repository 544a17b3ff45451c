/* The rows of the tables of keys. Each row sets a key's path, kind, field, range and default;
 * config_keys.h says who reads them. */
#include "runtime/control/config_keys.h"

#include "io/resources/networks.h"
#include "io/resources/settings.h"
#include "runtime/os/raw_files.h"

#include <assert.h>

#define US     DOMI_US
#define MS     DOMI_MS
#define SECOND DOMI_SECOND
#define HOUR   DOMI_HOUR
#define KIB    DOMI_KIB
#define MIB    DOMI_MIB
#define GIB    DOMI_GIB

static_assert(sizeof(bool) == 1 && sizeof(domus_profile_level) == 4 &&
                  sizeof(domus_log_level) == 4 && sizeof(domus_io_backend) == 4,
              "how fields are read");

static const char *const level_words[] = {"off", "counters", "histograms", "spans", NULL};
static const char *const log_words[] = {"error", "warning", "info", NULL};
static const char *const backend_words[] = {"auto", "uring", "epoll", NULL};
static const char *const version_words[] = {"1.2", "1.3", NULL};
static const char *const verify_words[] = {"required", "optional", NULL};

#define FIELD(type, member)                                                                        \
    .field = #type "." #member, .offset = (uint32_t)offsetof(type, member),                        \
    .size = (uint32_t)sizeof(((type *)NULL)->member)
#define KEY(name, sort, member, low, high, value)                                                  \
    .path = (name), .kind = DOMUS_CONFIG_##sort, FIELD(domus_config, member), .minimum = (low),    \
    .maximum = (high), .preset = (value)
#define LIVE(name, sort, member, low, high, value)                                                 \
    KEY(name, sort, member, low, high, value), .live = true
#define TEXT(name, sort, type, member, length, value)                                              \
    .path = (name), .kind = DOMUS_CONFIG_##sort, FIELD(type, member), .minimum = 1,                \
    .maximum = (length), .preset_text = (value)

#define TLS_TEXT(name, member, most)                                                               \
    .path = "tls." name, .kind = DOMUS_CONFIG_TEXT, FIELD(domus_listener_config, tls.member),      \
    .minimum = 0, .maximum = (most), .preset_text = ""

#define PROFILE_FILE(name, member)                                                                 \
    .path = "profile." name, .kind = DOMUS_CONFIG_TEXT, FIELD(domus_config, profile.member),       \
    .minimum = 0, .maximum = DOMI_OWN_FILE_PATH_MAX, .preset_text = ""

#define CLUSTER_TEXT(name, sort, member, most)                                                     \
    .path = "cluster." name, .kind = DOMUS_CONFIG_##sort, FIELD(domus_config, cluster.member),     \
    .minimum = 0, .maximum = (most), .preset_text = ""

/* rows for the settings of channels (io/resources/settings.h): one in the section `channel`, one of
 * each listener */
#define SECTION_ROW(name, sort, section_field, field, low, high, value, zero)                      \
    {KEY("channel." name, sort, section_field, low, high, value), .or_zero = (zero),               \
     .words = DOMI_CHANNEL_KEY_WORDS(sort)},
#define LIVE_SECTION_ROW(name, sort, section_field, field, low, high, value, zero)                 \
    {LIVE("channel." name, sort, section_field, low, high, value), .or_zero = (zero)},
#define LISTENER_KEY(name, sort, field, low, high, zero)                                           \
    .path = "channel." name, .kind = DOMUS_CONFIG_##sort,                                          \
    FIELD(domus_listener_config, channel.field), .minimum = (low), .maximum = (high),              \
    .or_zero = (zero), .inherits = true
#define LISTENER_ROW(name, sort, section_field, field, low, high, value, zero)                     \
    {LISTENER_KEY(name, sort, field, low, high, zero), .words = DOMI_CHANNEL_KEY_WORDS(sort)},
#define LIVE_LISTENER_ROW(name, sort, section_field, field, low, high, value, zero)                \
    {LISTENER_KEY(name, sort, field, low, high, zero), .live = true},

/* clang-format off */
const domus_config_key domi_config_keys[] = {
    {KEY("system.threads", COUNT, system.threads, 1, 1024, 0), .special = "auto"},
    {KEY("system.threads", SHARE, system.threads_percent, 1, 100, 0), .special = "auto"},
    {TEXT("system.cpus", CPUS, domus_config, system.cpus, DOMI_CPUS_TEXT_MAX, "auto")},
    {LIVE("scheduler.ioRatio", PERCENT, scheduler.io_ratio, 1, 100, 50), .special = "auto",
        .special_number = DOMUS_IO_RATIO_AUTO},
    {LIVE("scheduler.minBudget", DURATION, scheduler.min_budget_ns, US, SECOND, 50 * US)},
    {LIVE("scheduler.minBudgetBusy", DURATION, scheduler.min_budget_busy_ns, US, SECOND, 50 * US)},
    {LIVE("scheduler.maxBudget", DURATION, scheduler.max_budget_ns, US, SECOND, 10 * MS)},
    {LIVE("scheduler.waitMax", DURATION, scheduler.wait_max_ns, 100 * US, 10 * SECOND, 4 * MS)},
    {LIVE("scheduler.stageTime", DURATION, scheduler.stage_time_ns, US, SECOND, 5 * MS)},
    {LIVE("scheduler.deadlineCheckEvery", COUNT, scheduler.deadline_check_every, 1, 65536, 16)},
    {LIVE("scheduler.maxMessagesPerRun", COUNT, scheduler.messages_per_run_max, 1, 65536, 64)},
    {LIVE("scheduler.normalEvery", COUNT, scheduler.normal_every, 2, 65536, 4)},
    {LIVE("scheduler.channelsRunsPerIteration",
     COUNT, scheduler.channels_runs_per_iteration, 1, 1048576,
        1024)},
    {LIVE("scheduler.mailboxMax", COUNT, scheduler.mailbox_max, 1, 65535, 32768)},
    {KEY("scheduler.beltSlots", COUNT, scheduler.belt_slots, 64, 65536, 1024),
        .power_of_two = true, .or_zero = true},
    {KEY("scheduler.conversationsMax", COUNT, scheduler.conversations_max, 1, 1048576, 65536)},
    {LIVE("scheduler.timersMax", COUNT, scheduler.timers_max, 1, 16777216, 4194304)},
    {LIVE("scheduler.steal.enabled", WORD, scheduler.steal.enabled, 0, 1, 1),
        .words = domi_key_switch},
    {LIVE("scheduler.steal.floor", COUNT, scheduler.steal.floor, 1, 1048576, 32)},
    {LIVE("scheduler.steal.aggression", COUNT, scheduler.steal.aggression, 1, 1048576, 128)},
    {LIVE("scheduler.steal.minRun", DURATION, scheduler.steal.min_run_ns, 0, SECOND, 2 * US)},
    {LIVE("scheduler.steal.patience", COUNT, scheduler.steal.patience, 1, 16777216, 32768)},
    {LIVE("scheduler.idle.spin", DURATION, scheduler.idle.spin_ns, 0, SECOND,
        DOMUS_SPIN_AUTO), .special = "auto", .special_number = DOMUS_SPIN_AUTO},
    {LIVE("scheduler.idle.standIn", DURATION, scheduler.idle.stand_in_ns, 0, SECOND, 100 * US)},
    {LIVE("scheduler.idle.doze", DURATION, scheduler.idle.doze_ns, 10 * US, SECOND, 2 * MS)},
    {KEY("io.ringEntries", COUNT, io.ring_entries, 16, 32768, 512), .power_of_two = true},
    {KEY("io.completionEntries", COUNT, io.completion_entries, 32, 65536, 4096),
        .power_of_two = true},
    {LIVE("io.completionsPerPoll", COUNT, io.completions_per_poll, 1, 65536, 256)},
    {LIVE("io.emptyWakeupsMax", COUNT, io.empty_wakeups_max, 1, 1048576, 512)},
    {KEY("io.backend", WORD, io.backend, 0, 2, DOMUS_BACKEND_AUTO), .words = backend_words},
    {KEY("io.buffers.size", SIZE, io.buffers.size_bytes, 256, MIB, 4 * KIB)},
    {KEY("io.buffers.count", COUNT, io.buffers.count, 16, 32768, 1024), .power_of_two = true},
    DOMI_CHANNEL_LIVE_KEYS(LIVE_SECTION_ROW)
    DOMI_CHANNEL_SOCKET_KEYS(SECTION_ROW)
    {LIVE("channel.maxConnections", COUNT, channel.connections_max, 1, 1048576, 10000)},
    {KEY("channel.maxPerAddress", SHARE, connection.address_percent, 1, 100, 10)},
    {KEY("channel.maxPerLoopback", SHARE, connection.loopback_percent, 1, 100, 100)},
    {LIVE("connect.timeout", DURATION, connect.timeout_ns, MS, HOUR, 10 * SECOND)},
    {LIVE("connect.underWayMax", COUNT, connect.under_way_max, 1, 65536, 1024)},
    {LIVE("connect.maxConnections", COUNT, connect.connections_max, 1, 1048576, 10000)},
    {LIVE("connect.attemptDelay", DURATION, connect.attempt_delay_ns, 10 * MS, HOUR, 250 * MS)},
    {LIVE("connect.attemptsMax", COUNT, connect.attempts_max, 1, 16, 8)},
    {LIVE("connect.resolve.threadsMax", COUNT, connect.resolve.threads_max, 1, 64, 4)},
    {LIVE("connect.resolve.queueMax", COUNT, connect.resolve.queue_max, 1, 65536, 256)},
    {LIVE("connect.resolve.cacheMax", COUNT, connect.resolve.cache_max, 1, 65536, 256)},
    {LIVE("connect.resolve.cacheTime", DURATION, connect.resolve.cache_time_ns, 10 * MS, HOUR,
        5 * SECOND), .or_zero = true},
    {KEY("files.openMax", COUNT, files.open_max, 1, 1048576, 1024)},
    {LIVE("files.listMax", COUNT, files.list_max, 1, 4096, 256)},
    {LIVE("files.readMax", SIZE, files.read_max_bytes, 4 * KIB, GIB, MIB)},
    {KEY("files.keptMax", SIZE, files.kept_max_bytes, 64 * KIB, GIB, 8 * MIB), .or_zero = true},
    {LIVE("files.keptTime", DURATION, files.kept_time_ns, MS, HOUR, 0), .or_zero = true},
    {LIVE("shutdown.drainTimeout", DURATION, shutdown.drain_timeout_ns, MS, HOUR, 10 * SECOND),
        .or_zero = true},
    {LIVE("shutdown.actorTimeout", DURATION, shutdown.actor_timeout_ns, MS, HOUR, 10 * SECOND),
        .or_zero = true},
    {LIVE("shutdown.cutStatus", COUNT, shutdown.cut_status, 0, 255, 0)},
    {KEY("blocking.threadsMin", COUNT, blocking.threads_min, 0, 1024, 0)},
    {KEY("blocking.threadsMax", COUNT, blocking.threads_max, 1, 1024, 64)},
    {KEY("blocking.queueMax", COUNT, blocking.queue_max, 1, 1048576, 4096)},
    {KEY("blocking.idleExpiry", DURATION, blocking.idle_expiry_ns, MS, HOUR, 10 * SECOND)},
    {KEY("detached.threadsMax", COUNT, detached.threads_max, 0, 512, 64)},
    {KEY("groups.max", COUNT, groups.max, 1, 1048576, 65536)},
    {KEY("groups.membersMax", COUNT, groups.members_max, 1, 16777216, 1048576)},
    {KEY("routers.max", COUNT, routers.max, 1, 1048576, 65536)},
    {KEY("routers.routeesMax", COUNT, routers.routees_max, 1, 65536, 1024)},
    {KEY("names.max", COUNT, names.max, 1, 16777216, 65536)},
    {KEY("grains.kindsMax", COUNT, grains.kinds_max, 1, 4096, 64)},
    {KEY("grains.max", COUNT, grains.max, 1, 16777216, 65536)},
    {.path = "observe.listen", .kind = DOMUS_CONFIG_TEXT, FIELD(domus_config, observe.listen),
        .minimum = 0, .maximum = DOMI_LISTEN_TEXT_MAX, .preset_text = ""},
    {KEY("observe.public", WORD, observe.is_public, 0, 1, 0), .words = domi_key_switch},
    {KEY("observe.change", WORD, observe.may_change, 0, 1, 0), .words = domi_key_switch},
    {KEY("observe.viewersMax", COUNT, observe.viewers_max, 1, 65536, 64)},
    {CLUSTER_TEXT("name", NAME, name, DOMI_NAME_BYTES_MAX)},
    {TEXT("cluster.node", TEXT, domus_config, cluster.node, DOMI_NAME_BYTES_MAX, "auto")},
    {CLUSTER_TEXT("servers", TEXTS, servers, DOMI_SERVERS_TEXT_BYTES)},
    {KEY("cluster.heartbeat", DURATION, cluster.heartbeat_ns, 10 * MS, 10 * SECOND, 500 * MS)},
    {KEY("cluster.downAfter", DURATION, cluster.down_after_ns, 20 * MS, 60 * SECOND, 2 * SECOND)},
    {KEY("cluster.lease", DURATION, cluster.lease_ns, 500 * MS, 60 * SECOND, 0),
        .special = "auto"},
    {KEY("cluster.queuedMax", SIZE, cluster.queued_max_bytes, 64 * KIB, GIB, 8 * MIB)},
    {KEY("cluster.messageMax", SIZE, cluster.message_max_bytes, KIB, 512 * KIB, 512 * KIB)},
    {KEY("cluster.replicas", COUNT, cluster.replicas, 1, 5, 1)},
    {KEY("cluster.asksMax", COUNT, cluster.asks_max, 1, 1048576, 65536)},
    {KEY("cluster.addressesMax", COUNT, cluster.addresses_max, 256, 16777216, 262144)},
    {CLUSTER_TEXT("user", TEXT, user, DOMI_SECRET_BYTES_MAX)},
    {CLUSTER_TEXT("password", TEXT, password, DOMI_SECRET_BYTES_MAX), .secret = true},
    {CLUSTER_TEXT("passwordFile", TEXT, password_file, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("token", TEXT, token, DOMI_SECRET_BYTES_MAX), .secret = true},
    {CLUSTER_TEXT("tokenFile", TEXT, token_file, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("nkeySeedFile", TEXT, nkey_seed_file, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("jwtFile", TEXT, jwt_file, DOMI_FILES_TEXT_BYTES)},
    {KEY("cluster.tls.enabled", WORD, cluster.tls.enabled, 0, 1, 0), .words = domi_key_switch},
    {CLUSTER_TEXT("tls.caFile", TEXT, tls.ca_file, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("tls.certFile", TEXT, tls.cert_file, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("tls.keyFile", TEXT, tls.key_file, DOMI_FILES_TEXT_BYTES), .secret = true},
    {CLUSTER_TEXT("tls.serverName", TEXT, tls.server_name, DOMI_HOST_BYTES_MAX)},
    {KEY("cluster.tls.minVersion", WORD, cluster.tls.min_version, 0, 1, 0),
        .words = version_words},
    {CLUSTER_TEXT("tls.ciphers", TEXT, tls.ciphers, DOMI_FILES_TEXT_BYTES)},
    {CLUSTER_TEXT("tls.cipherSuites", TEXT, tls.cipher_suites, DOMI_FILES_TEXT_BYTES)},
    {LIVE("stall.threshold", DURATION, stall.threshold_ns, MS, HOUR, 25 * MS), .or_zero = true},
    {KEY("stall.signal", COUNT, stall.signal, 34, 64, 50), .or_zero = true},
    {KEY("memory.enabled", WORD, memory.enabled, 0, 1, 1), .words = domi_key_switch},
    {KEY("memory.limit", SIZE, memory.limit_bytes, MIB, MIB * GIB, 0), .special = "auto"},
    {LIVE("memory.high", SHARE, memory.high_percent, 1, 100, 80)},
    {LIVE("memory.critical", SHARE, memory.critical_percent, 1, 100, 90)},
    {LIVE("memory.interval", DURATION, memory.interval_ns, MS, HOUR, 100 * MS)},
    {LIVE("memory.threadMax", SIZE, memory.thread_max_bytes, MIB, MIB * GIB, 0), .special = "none"},
    {KEY("log.queueMax", COUNT, log.queue_max, 16, 65536, 1024)},
    {LIVE("log.flushTimeout", DURATION, log.flush_timeout_ns, MS, HOUR, SECOND), .or_zero = true},
    {LIVE("log.addresses", WORD, log.addresses, 0, 1, 0), .words = domi_key_switch},
    {LIVE("log.level", WORD, log.level, 0, 2, DOMUS_LOG_INFO), .words = log_words},
    {LIVE("memory.queued", SHARE, memory.queued_percent, 1, 100, 50)},
    {LIVE("memory.resetAfter", DURATION, memory.reset_after_ns, 100 * MS, HOUR, 5 * SECOND)},
    {LIVE("profile.level", WORD, profile.level, 0, 3, DOMUS_PROFILE_COUNTERS),
        .words = level_words},
    {LIVE("profile.atExit", WORD, profile.at_exit, 0, 1, 1), .words = domi_key_switch},
    {LIVE("profile.zeros", WORD, profile.zeros, 0, 1, 0), .words = domi_key_switch},
    {KEY("profile.records", COUNT, profile.records, 64, 4194304, 65536), .power_of_two = true},
    {PROFILE_FILE("crashFile", crash_file)},
    {PROFILE_FILE("stallFile", stall_file)},
};

const domus_config_key domi_config_listener_keys[] = {
    {TEXT("name", NAME, domus_listener_config, name, DOMI_NAME_BYTES_MAX, NULL)},
    {TEXT("address", ADDRESS, domus_listener_config, address, DOMI_ADDRESS_BYTES_MAX, NULL)},
    {.path = "backlog", .kind = DOMUS_CONFIG_COUNT, FIELD(domus_listener_config, backlog),
        .minimum = 1, .maximum = 65535, .preset = 4096},
    {.path = "proxyProtocol.from", .kind = DOMUS_CONFIG_NETWORKS,
        FIELD(domus_listener_config, proxy_from), .minimum = 0,
        .maximum = DOMI_NETWORKS_TEXT_BYTES, .preset_text = ""},
    {TLS_TEXT("certFile", cert_files, DOMI_FILES_TEXT_BYTES)},
    {TLS_TEXT("keyFile", key_files, DOMI_FILES_TEXT_BYTES), .secret = true},
    {TLS_TEXT("alpn", alpn, DOMI_FILES_TEXT_BYTES)},
    {TLS_TEXT("clientCaFile", client_ca_file, DOMI_FILES_TEXT_BYTES)},
    {TLS_TEXT("ciphers", ciphers, DOMI_FILES_TEXT_BYTES)},
    {TLS_TEXT("cipherSuites", cipher_suites, DOMI_FILES_TEXT_BYTES)},
    {.path = "tls.minVersion", .kind = DOMUS_CONFIG_WORD,
        FIELD(domus_listener_config, tls.min_version), .maximum = 1, .words = version_words},
    {.path = "tls.clients", .kind = DOMUS_CONFIG_WORD,
        FIELD(domus_listener_config, tls.clients_may_omit), .maximum = 1, .words = verify_words},
    {.path = "sharesPort", .kind = DOMUS_CONFIG_WORD, FIELD(domus_listener_config, shares_port),
        .maximum = 1, .words = domi_key_switch},
    DOMI_CHANNEL_LIVE_KEYS(LIVE_LISTENER_ROW)
    DOMI_CHANNEL_SOCKET_KEYS(LISTENER_ROW)
};

#define STEALING_COUNT(name, field, number)                                                        \
    .path = "stealing." name, .kind = DOMUS_CONFIG_COUNT,                                          \
    FIELD(domus_pool_config, stealing.field), .minimum = 1, .maximum = 65535,                      \
    .preset = (number), .or_zero = true
#define STEALING_SLEEP(name, field, number)                                                        \
    .path = "stealing." name, .kind = DOMUS_CONFIG_DURATION,                                       \
    FIELD(domus_pool_config, stealing.field), .minimum = US, .maximum = SECOND,                    \
    .preset = (number), .or_zero = true

const domus_config_key domi_config_pool_keys[] = {
    {TEXT("name", NAME, domus_pool_config, name, 63, NULL)},
    {.path = "policy", .kind = DOMUS_CONFIG_TEXT, FIELD(domus_pool_config, policy),
        .maximum = 63, .preset_text = "deques"},
    {.path = "runners", .kind = DOMUS_CONFIG_COUNT, FIELD(domus_pool_config, runners),
        .minimum = 1, .maximum = 64, .special = "auto"},
    {.path = "throughput", .kind = DOMUS_CONFIG_COUNT, FIELD(domus_pool_config, throughput),
        .minimum = 1, .maximum = 65535, .preset = 64, .or_zero = true},
    {.path = "spares", .kind = DOMUS_CONFIG_COUNT, FIELD(domus_pool_config, spares),
        .maximum = 64, .preset = 8},
    {.path = "lifeBeat", .kind = DOMUS_CONFIG_DURATION, FIELD(domus_pool_config, life_beat_ns),
        .minimum = MS, .maximum = HOUR, .preset = 5 * MS, .or_zero = true},
    {STEALING_COUNT("aggressiveAttempts", aggressive_attempts, 100)},
    {STEALING_COUNT("aggressiveStealEvery", aggressive_steal_every, 10)},
    {STEALING_COUNT("moderateAttempts", moderate_attempts, 500)},
    {STEALING_COUNT("moderateStealEvery", moderate_steal_every, 5)},
    {STEALING_SLEEP("moderateSleep", moderate_sleep_ns, 50 * US)},
    {STEALING_COUNT("relaxedStealEvery", relaxed_steal_every, 1)},
    {STEALING_SLEEP("relaxedSleep", relaxed_sleep_ns, 10 * MS)},
};

const domi_config_relation domi_config_relations[] = {
    {"scheduler.minBudget", "scheduler.maxBudget", false, 1},
    {"scheduler.minBudgetBusy", "scheduler.maxBudget", false, 1},
    {"io.ringEntries", "io.completionEntries", true, 1},
    {"channel.sendLow", "channel.sendHigh", false, 1},
    {"channel.sendHigh", "channel.sendMax", false, 1},
    {"blocking.threadsMin", "blocking.threadsMax", false, 1},
    {"memory.high", "memory.critical", false, 1},
    {"cluster.heartbeat", "cluster.downAfter", false, 2},
};
/* clang-format on */

#define LENGTH(table) (sizeof(table) / sizeof(table)[0])

const size_t domi_config_key_count = LENGTH(domi_config_keys);
const size_t domi_config_listener_key_count = LENGTH(domi_config_listener_keys);
const size_t domi_config_pool_key_count = LENGTH(domi_config_pool_keys);
const size_t domi_config_relation_count = LENGTH(domi_config_relations);
