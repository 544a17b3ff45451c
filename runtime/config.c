/* The keys of a configuration: one table that holds every default, every range and every path.
 *
 * The defaults of domus_config_init(), the checks and the YAML reader all go by this table, so that
 * a number stands in one place only. What two keys promise of each other stands in the second
 * table, `relations`. Nothing here is kept: any thread may call any of it. */
#include <domus/config.h>

#include "runtime/cpus.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define US     UINT64_C(1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)
#define KIB    UINT64_C(1024)
#define MIB    (1024 * KIB)
#define GIB    (1024 * MIB)

#define CPUS_TEXT_MAX     1023
#define NAME_MAX_BYTES    63
#define ADDRESS_MAX_BYTES 63  /* the longest IPv6 address and its port take 53 */
#define TEXT_SIZE         128 /* of a message, and of a value printed into one */

static_assert(sizeof(bool) == 1 && sizeof(domus_profile_level) == 4, "how fields are read");

static const char *const switch_words[] = {"false", "true", NULL};
static const char *const level_words[] = {"off", "counters", NULL};

#define FIELD(type, member)                                                                        \
    .offset = (uint32_t)offsetof(type, member), .size = (uint32_t)sizeof(((type *)NULL)->member)
#define KEY(name, sort, member, low, high, value)                                                  \
    .path = (name), .kind = DOMUS_CONFIG_##sort, FIELD(domus_config, member), .minimum = (low),    \
    .maximum = (high), .preset = (value)
#define TEXT(name, sort, type, member, length, value)                                              \
    .path = (name), .kind = DOMUS_CONFIG_##sort, FIELD(type, member), .minimum = 1,                \
    .maximum = (length), .preset_text = (value)

/* clang-format off */
static const domus_config_key keys[] = {
    {KEY("system.threads", COUNT, system.threads, 1, 1024, 0), .special = "auto"},
    {KEY("system.threads", SHARE, system.threads_percent, 1, 100, 0), .special = "auto"},
    {TEXT("system.cpus", CPUS, domus_config, system.cpus, CPUS_TEXT_MAX, "auto")},
    {KEY("scheduler.ioRatio", PERCENT, scheduler.io_ratio, 1, 100, 50)},
    {KEY("scheduler.minBudget", DURATION, scheduler.min_budget_ns, US, SECOND, 500 * US)},
    {KEY("scheduler.minBudgetBusy", DURATION, scheduler.min_budget_busy_ns, US, SECOND, 50 * US)},
    {KEY("scheduler.maxBudget", DURATION, scheduler.max_budget_ns, US, SECOND, 10 * MS)},
    {KEY("scheduler.deadlineCheckEvery", COUNT, scheduler.deadline_check_every, 1, 65536, 16)},
    {KEY("scheduler.maxMessagesPerRun", COUNT, scheduler.messages_per_run_max, 16, 65536, 64)},
    {KEY("scheduler.channelsRunsPerTick", COUNT, scheduler.channels_runs_per_tick, 1, 1048576,
        1024)},
    {KEY("scheduler.mailboxMax", COUNT, scheduler.mailbox_max, 16, 65535, 32768)},
    {KEY("scheduler.conversationsMax", COUNT, scheduler.conversations_max, 1, 1048576, 65536)},
    {KEY("scheduler.timersMax", COUNT, scheduler.timers_max, 1, 16777216, 4194304)},
    {KEY("scheduler.steal.enabled", WORD, scheduler.steal.enabled, 0, 1, 1), .words = switch_words},
    {KEY("scheduler.steal.floor", COUNT, scheduler.steal.floor, 1, 1048576, 32)},
    {KEY("scheduler.steal.aggression", COUNT, scheduler.steal.aggression, 1, 1048576, 128)},
    {KEY("scheduler.steal.minRun", DURATION, scheduler.steal.min_run_ns, 0, SECOND, 2 * US)},
    {KEY("scheduler.idle.spin", DURATION, scheduler.idle.spin_ns, 0, SECOND,
        DOMUS_SPIN_AUTO), .special = "auto", .special_number = DOMUS_SPIN_AUTO},
    {KEY("io.ringEntries", COUNT, io.ring_entries, 16, 32768, 512), .power_of_two = true},
    {KEY("io.completionEntries", COUNT, io.completion_entries, 32, 65536, 4096),
        .power_of_two = true},
    {KEY("io.completionsPerPoll", COUNT, io.completions_per_poll, 1, 65536, 256)},
    {KEY("io.buffers.size", SIZE, io.buffers.size_bytes, 256, MIB, 4 * KIB)},
    {KEY("io.buffers.count", COUNT, io.buffers.count, 16, 32768, 1024), .power_of_two = true},
    {KEY("channel.sendHigh", SIZE, channel.send_high_bytes, 1, GIB, 256 * KIB)},
    {KEY("channel.sendLow", SIZE, channel.send_low_bytes, 0, GIB, 64 * KIB)},
    {KEY("channel.sendMax", SIZE, channel.send_max_bytes, 1, 4 * GIB, 4 * MIB)},
    {KEY("channel.idleTimeout", DURATION, channel.idle_timeout_ns, 0, 8760 * HOUR, 0)},
    {KEY("channel.sendTimeout", DURATION, channel.send_timeout_ns, 0, HOUR, 30 * SECOND)},
    {KEY("channel.linger", DURATION, channel.linger_ns, MS, HOUR, SECOND)},
    {KEY("channel.maxConnections", COUNT, channel.connections_max, 1, 1048576, 10000)},
    {KEY("shutdown.drainTimeout", DURATION, shutdown.drain_timeout_ns, 0, HOUR, 10 * SECOND)},
    {KEY("shutdown.actorTimeout", DURATION, shutdown.actor_timeout_ns, 0, HOUR, 10 * SECOND)},
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
    {KEY("stall.threshold", DURATION, stall.threshold_ns, 0, HOUR, 25 * MS)},
    {KEY("stall.signal", COUNT, stall.signal, 0, 64, 50)},
    {KEY("memory.enabled", WORD, memory.enabled, 0, 1, 1), .words = switch_words},
    {KEY("memory.limit", SIZE, memory.limit_bytes, MIB, MIB * GIB, 0), .special = "auto"},
    {KEY("memory.high", SHARE, memory.high_percent, 1, 100, 80)},
    {KEY("memory.critical", SHARE, memory.critical_percent, 1, 100, 90)},
    {KEY("memory.interval", DURATION, memory.interval_ns, MS, HOUR, 100 * MS)},
    {KEY("memory.threadMax", SIZE, memory.thread_max_bytes, MIB, MIB * GIB, 0), .special = "none"},
    {KEY("profile.level", WORD, profile.level, 0, 1, DOMUS_PROFILE_COUNTERS),
        .words = level_words},
};

static const domus_config_key listener_keys[] = {
    {TEXT("name", NAME, domus_listener_config, name, NAME_MAX_BYTES, NULL)},
    {TEXT("address", ADDRESS, domus_listener_config, address, ADDRESS_MAX_BYTES, NULL)},
    {.path = "backlog", .kind = DOMUS_CONFIG_COUNT, FIELD(domus_listener_config, backlog),
        .minimum = 1, .maximum = 65535, .preset = 4096},
};

/* `greater` is at least `lesser`, or, where strict, more. */
static const struct relation {
    const char *lesser, *greater;
    bool strict;
} relations[] = {
    {"scheduler.minBudget", "scheduler.maxBudget", false},
    {"scheduler.minBudgetBusy", "scheduler.maxBudget", false},
    {"io.ringEntries", "io.completionEntries", true},
    {"channel.sendLow", "channel.sendHigh", false},
    {"channel.sendHigh", "channel.sendMax", false},
    {"blocking.threadsMin", "blocking.threadsMax", false},
    {"memory.high", "memory.critical", false},
};
/* clang-format on */

#define KEY_COUNT          (sizeof keys / sizeof keys[0])
#define LISTENER_KEY_COUNT (sizeof listener_keys / sizeof listener_keys[0])
#define RELATION_COUNT     (sizeof relations / sizeof relations[0])

static bool is_text(const domus_config_key *key)
{
    return key->kind >= DOMUS_CONFIG_CPUS;
}

static uint64_t number_of(const domus_config_key *key, const void *holder)
{
    const unsigned char *field = (const unsigned char *)holder + key->offset;
    uint64_t wide;
    uint32_t narrow;

    switch (key->size) {
    case 1:
        return *field;
    case 4:
        memcpy(&narrow, field, sizeof narrow);
        return narrow;
    default:
        memcpy(&wide, field, sizeof wide);
        return wide;
    }
}

static const char *text_of(const domus_config_key *key, const void *holder)
{
    const char *text;

    memcpy(&text, (const unsigned char *)holder + key->offset, sizeof text);
    return text;
}

static void store(const domus_config_key *key, void *holder, uint64_t number, const char *text)
{
    unsigned char *field = (unsigned char *)holder + key->offset;
    uint32_t narrow = (uint32_t)number;

    if (is_text(key))
        memcpy(field, &text, sizeof text);
    else if (key->size == 1)
        *field = (unsigned char)number;
    else if (key->size == 4)
        memcpy(field, &narrow, sizeof narrow);
    else
        memcpy(field, &number, sizeof number);
}

/* `number` in the largest unit that it is a whole count of. */
static void print_in_units(uint64_t number, const uint64_t *units, const char *const *names,
                           char *text)
{
    size_t unit = 0;

    while (units[unit + 1] != 0 && number != 0 && number % units[unit + 1] == 0)
        unit++;
    snprintf(text, TEXT_SIZE, "%" PRIu64 "%s", number / units[unit], names[unit]);
}

static void print_number(const domus_config_key *key, uint64_t number, char *text)
{
    static const uint64_t times[] = {1, US, MS, SECOND, 60 * SECOND, HOUR, 0};
    static const char *const time_names[] = {"ns", "us", "ms", "s", "m", "h"};
    static const uint64_t sizes[] = {1, KIB, MIB, GIB, 0};
    static const char *const size_names[] = {"B", "KiB", "MiB", "GiB"};

    if (key->kind == DOMUS_CONFIG_DURATION && number != 0)
        print_in_units(number, times, time_names, text);
    else if (key->kind == DOMUS_CONFIG_SIZE && number != 0)
        print_in_units(number, sizes, size_names, text);
    else if (key->kind == DOMUS_CONFIG_SHARE)
        snprintf(text, TEXT_SIZE, "%" PRIu64 "%%", number);
    else if (key->kind == DOMUS_CONFIG_WORD && number <= key->maximum)
        snprintf(text, TEXT_SIZE, "%s", key->words[number]);
    else
        snprintf(text, TEXT_SIZE, "%" PRIu64, number);
}

static int check_number(const domus_config_key *key, uint64_t number, char *error, size_t size)
{
    char low[TEXT_SIZE], high[TEXT_SIZE], found[TEXT_SIZE];

    if (key->special != NULL && number == key->special_number)
        return 0;
    print_number(key, number, found);
    if (number < key->minimum || number > key->maximum) {
        print_number(key, key->minimum, low);
        print_number(key, key->maximum, high);
        snprintf(error, size, "must be %s%s%s..%s, is %s", key->special != NULL ? key->special : "",
                 key->special != NULL ? " or " : "", low, high, found);
        return -EINVAL;
    }
    if (key->power_of_two && (number & (number - 1)) != 0) {
        snprintf(error, size, "must be a power of two, is %s", found);
        return -EINVAL;
    }
    return 0;
}

static bool cpus_are_valid(const char *text)
{
    uint16_t cpus[DOMI_CPUS_MAX];

    return strcmp(text, "auto") == 0 || strcmp(text, "none") == 0 ||
           domi_cpus_parse(text, cpus, DOMI_CPUS_MAX) > 0;
}

static bool name_is_valid(const char *text)
{
    return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] ==
           '\0';
}

/* A port: decimal, without signs and needless zeros. */
static bool port_is_valid(const char *text)
{
    unsigned port = 0;

    if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        port = port * 10 + (unsigned)(*text - '0');
        if (port > 65535)
            return false;
    }
    return true;
}

/* Numbers only: a name would have to be looked up, and that blocks. */
static bool address_is_valid(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char host[ADDRESS_MAX_BYTES + 1];
    const char *colon = strrchr(text, ':');
    int family = AF_INET;

    if (colon == NULL || !port_is_valid(colon + 1))
        return false;
    size_t length = (size_t)(colon - text);
    if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
        family = AF_INET6;
        text++;
        length -= 2;
    }
    memcpy(host, text, length); /* fits: the caller has held the length against the maximum */
    host[length] = '\0';
    return inet_pton(family, host, bytes) == 1;
}

static int check_text(const domus_config_key *key, const char *text, char *error, size_t size)
{
    size_t length = text == NULL ? 0 : strlen(text);
    const char *wanted;
    bool valid;

    if (text == NULL || length < key->minimum) {
        snprintf(error, size, "is missing or empty");
        return -EINVAL;
    }
    if (length > key->maximum) {
        snprintf(error, size, "must be at most %" PRIu64 " bytes long, is %zu", key->maximum,
                 length);
        return -EINVAL;
    }
    if (key->kind == DOMUS_CONFIG_CPUS) {
        valid = cpus_are_valid(text);
        wanted = "auto, none or a list such as 0-3,8";
    } else if (key->kind == DOMUS_CONFIG_NAME) {
        valid = name_is_valid(text);
        wanted = "letters, digits, '-' and '_'";
    } else {
        valid = address_is_valid(text);
        wanted = "such as 127.0.0.1:7000 or [::1]:7000 (numbers only)";
    }
    if (valid)
        return 0;
    snprintf(error, size, "must be %s, is '%.64s'", wanted, text);
    return -EINVAL;
}

static int check_value(const domus_config_key *key, uint64_t number, const char *text, char *error,
                       size_t size)
{
    return is_text(key) ? check_text(key, text, error, size)
                        : check_number(key, number, error, size);
}

static int check_field(const domus_config_key *key, const void *holder, char *error, size_t size)
{
    return is_text(key) ? check_text(key, text_of(key, holder), error, size)
                        : check_number(key, number_of(key, holder), error, size);
}

/* A walk over all checks: where its findings go. */
struct review {
    void (*report)(const domus_config_fault *fault, void *context);
    void *context;
    size_t count;
};

static void report(struct review *review, const domus_config_fault *fault)
{
    review->count++;
    review->report(fault, review->context);
}

static void report_listener(struct review *review, size_t index, const domus_config_key *key,
                            const char *message)
{
    char path[TEXT_SIZE];

    snprintf(path, sizeof path, "listeners[%zu].%s", index, key->path);
    report(review,
           &(domus_config_fault){.key = key, .listener = index, .path = path, .message = message});
}

static void review_keys(struct review *review, const domus_config *config)
{
    char message[2 * TEXT_SIZE];

    for (size_t i = 0; i < KEY_COUNT; i++)
        if (check_field(&keys[i], config, message, sizeof message) < 0)
            report(review, &(domus_config_fault){.key = &keys[i],
                                                 .listener = SIZE_MAX,
                                                 .path = keys[i].path,
                                                 .message = message});
}

static const domus_config_key *key_named(const char *path)
{
    size_t i = 0;

    while (strcmp(keys[i].path, path) != 0)
        i++; /* ends: the paths in `relations` are in `keys` */
    return &keys[i];
}

static void review_relations(struct review *review, const domus_config *config)
{
    char message[4 * TEXT_SIZE], low[TEXT_SIZE], high[TEXT_SIZE];

    for (size_t i = 0; i < RELATION_COUNT; i++) {
        const domus_config_key *lesser = key_named(relations[i].lesser);
        const domus_config_key *greater = key_named(relations[i].greater);
        uint64_t least = number_of(lesser, config), most = number_of(greater, config);

        if (most > least || (most == least && !relations[i].strict))
            continue;
        print_number(lesser, least, low);
        print_number(greater, most, high);
        snprintf(message, sizeof message, "must be %s %s (%s), is %s",
                 relations[i].strict ? "more than" : "at least", lesser->path, low, high);
        report(review, &(domus_config_fault){.key = greater,
                                             .other = lesser,
                                             .listener = SIZE_MAX,
                                             .path = greater->path,
                                             .message = message});
    }
}

/* The first listener of the same name stands; every later one is at fault. */
static void review_name(struct review *review, const domus_config *config, size_t index)
{
    const domus_listener_config *listeners = config->listeners;
    char message[TEXT_SIZE];

    if (listeners[index].name == NULL || listeners[index].name[0] == '\0')
        return; /* reported as missing */
    for (size_t i = 0; i < index; i++) {
        if (listeners[i].name == NULL || strcmp(listeners[i].name, listeners[index].name) != 0)
            continue;
        snprintf(message, sizeof message, "must be unique, '%.63s' is taken by listeners[%zu]",
                 listeners[index].name, i);
        report_listener(review, index, &listener_keys[0], message);
        return;
    }
}

static void review_listeners(struct review *review, const domus_config *config)
{
    char message[2 * TEXT_SIZE];
    bool missing = config->listener_count > 0 && config->listeners == NULL;

    if (missing || config->listener_count > DOMUS_LISTENERS_MAX) {
        snprintf(message, sizeof message, "must be 0..%d, %s %zu", DOMUS_LISTENERS_MAX,
                 missing ? "and not NULL, are" : "are", config->listener_count);
        report(review, &(domus_config_fault){
                           .listener = SIZE_MAX, .path = "listeners", .message = message});
        return;
    }
    for (size_t i = 0; i < config->listener_count; i++) {
        for (size_t k = 0; k < LISTENER_KEY_COUNT; k++)
            if (check_field(&listener_keys[k], &config->listeners[i], message, sizeof message) < 0)
                report_listener(review, i, &listener_keys[k], message);
        review_name(review, config, i);
    }
}

void domus_config_init(domus_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < KEY_COUNT; i++)
        store(&keys[i], config, keys[i].preset, keys[i].preset_text);
}

/* Where domus_config_check() keeps the first fault. */
struct first {
    char *error;
    size_t size;
    bool kept;
};

static void keep_first(const domus_config_fault *fault, void *context)
{
    struct first *first = context;

    if (!first->kept && first->size > 0)
        snprintf(first->error, first->size, "%s: %s", fault->path, fault->message);
    first->kept = true;
}

int domus_config_check(const domus_config *config, char *error, size_t error_size)
{
    struct first first = {.error = error, .size = error_size};

    return domus_config_check_all(config, keep_first, &first) == 0 ? 0 : -EINVAL;
}

const domus_config_key *domus_config_key_get(size_t index)
{
    return index < KEY_COUNT ? &keys[index] : NULL;
}

const domus_config_key *domus_config_listener_key_get(size_t index)
{
    return index < LISTENER_KEY_COUNT ? &listener_keys[index] : NULL;
}

int domus_config_key_put(const domus_config_key *key, void *holder, uint64_t number,
                         const char *text, char *error, size_t error_size)
{
    int result = check_value(key, number, text, error, error_size);

    if (result == 0)
        store(key, holder, number, text);
    return result;
}

size_t domus_config_check_all(const domus_config *config,
                              void (*report_fault)(const domus_config_fault *fault, void *context),
                              void *context)
{
    struct review review = {.report = report_fault, .context = context};

    review_keys(&review, config);
    review_relations(&review, config);
    review_listeners(&review, config);
    return review.count;
}
