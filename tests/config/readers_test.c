/* Every key has a reader: a field of the configuration that no code but the configuration's own
 * looks at is a promise that nobody keeps.
 *
 * The sources are searched as text, without comments and white space, for each field as C names it
 * ("steal.floor" for scheduler.steal.floor: the last two names, as they are always written). */
#include <domus/config.h>

#include "tests/support/suite.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SOURCE_BYTES_MAX (4 * 1024 * 1024)

struct field {
    size_t offset;
    const char *name;
};

#define FIELD(group, member)                                                                       \
    {                                                                                              \
        offsetof(domus_config, group.member), #group "." #member                                   \
    }

static const struct field fields[] = {
    FIELD(system, threads),
    FIELD(system, threads_percent),
    FIELD(system, cpus),
    FIELD(scheduler, io_ratio),
    FIELD(scheduler, min_budget_ns),
    FIELD(scheduler, min_budget_busy_ns),
    FIELD(scheduler, max_budget_ns),
    FIELD(scheduler, wait_max_ns),
    FIELD(scheduler, stage_time_ns),
    FIELD(scheduler, deadline_check_every),
    FIELD(scheduler, messages_per_run_max),
    FIELD(scheduler, normal_every),
    FIELD(scheduler, channels_runs_per_iteration),
    FIELD(scheduler, mailbox_max),
    FIELD(scheduler, belt_slots),
    FIELD(scheduler, conversations_max),
    FIELD(scheduler, timers_max),
    FIELD(scheduler.steal, enabled),
    FIELD(scheduler.steal, floor),
    FIELD(scheduler.steal, aggression),
    FIELD(scheduler.steal, min_run_ns),
    FIELD(scheduler.steal, patience),
    FIELD(scheduler.idle, spin_ns),
    FIELD(scheduler.idle, stand_in_ns),
    FIELD(scheduler.idle, doze_ns),
    FIELD(io, ring_entries),
    FIELD(io, completion_entries),
    FIELD(io, completions_per_poll),
    FIELD(io, empty_wakeups_max),
    FIELD(io.buffers, size_bytes),
    FIELD(io.buffers, count),
    FIELD(channel, send_high_bytes),
    FIELD(channel, send_low_bytes),
    FIELD(channel, send_max_bytes),
    FIELD(channel, idle_timeout_ns),
    FIELD(channel, send_timeout_ns),
    FIELD(channel, linger_ns),
    FIELD(channel, half_close_kept_ns),
    FIELD(pace, age_max_ns),
    FIELD(pace, age_jitter_percent),
    FIELD(pace, rate_min_bytes),
    FIELD(pace, rate_grace_ns),
    FIELD(files, open_max),
    FIELD(files, list_max),
    FIELD(files, read_max_bytes),
    FIELD(files, kept_max_bytes),
    FIELD(files, kept_time_ns),
    FIELD(channel, connections_max),
    FIELD(channel, requests_max),
    FIELD(channel, inflight_max),
    FIELD(channel, ask_queue_max),
    FIELD(channel, answer_timeout_ns),
    FIELD(channel, body_timeout_ns),
    FIELD(channel, head_timeout_ns),
    FIELD(channel, body_rate_bytes),
    FIELD(channel, skip_max_bytes),
    FIELD(shutdown, drain_timeout_ns),
    FIELD(shutdown, actor_timeout_ns),
    FIELD(shutdown, cut_status),
    FIELD(groups, max),
    FIELD(groups, members_max),
    FIELD(routers, max),
    FIELD(routers, routees_max),
    FIELD(profile, level),
    FIELD(profile, at_exit),
    FIELD(profile, zeros),
    FIELD(profile, records),
    FIELD(profile, crash_file),
    FIELD(profile, stall_file),
    FIELD(io, backend),
    FIELD(blocking, threads_min),
    FIELD(blocking, threads_max),
    FIELD(blocking, queue_max),
    FIELD(blocking, idle_expiry_ns),
    FIELD(detached, threads_max),
    FIELD(names, max),
    FIELD(grains, kinds_max),
    FIELD(grains, max),
    FIELD(observe, listen),
    FIELD(observe, is_public),
    FIELD(observe, may_change),
    FIELD(observe, viewers_max),
    FIELD(cluster, name),
    FIELD(cluster, node),
    FIELD(cluster, servers),
    FIELD(cluster, heartbeat_ns),
    FIELD(cluster, down_after_ns),
    FIELD(cluster, lease_ns),
    FIELD(cluster, queued_max_bytes),
    FIELD(cluster, message_max_bytes),
    FIELD(cluster, replicas),
    FIELD(cluster, asks_max),
    FIELD(cluster, addresses_max),
    FIELD(cluster, user),
    FIELD(cluster, password),
    FIELD(cluster, password_file),
    FIELD(cluster, token),
    FIELD(cluster, token_file),
    FIELD(cluster, nkey_seed_file),
    FIELD(cluster, jwt_file),
    FIELD(cluster, tls.enabled),
    FIELD(cluster, tls.ca_file),
    FIELD(cluster, tls.cert_file),
    FIELD(cluster, tls.key_file),
    FIELD(cluster, tls.server_name),
    FIELD(cluster, tls.min_version),
    FIELD(cluster, tls.ciphers),
    FIELD(cluster, tls.cipher_suites),
    FIELD(stall, threshold_ns),
    FIELD(stall, signal),
    FIELD(memory, enabled),
    FIELD(memory, limit_bytes),
    FIELD(memory, high_percent),
    FIELD(memory, critical_percent),
    FIELD(memory, interval_ns),
    FIELD(memory, thread_max_bytes),
    FIELD(connect, timeout_ns),
    FIELD(connect, under_way_max),
    FIELD(connect, connections_max),
    FIELD(connect, attempt_delay_ns),
    FIELD(connect, attempts_max),
    FIELD(connect, resolve.threads_max),
    FIELD(connect, resolve.queue_max),
    FIELD(connect, resolve.cache_max),
    FIELD(connect, resolve.cache_time_ns),
    FIELD(connection, first_byte_timeout_ns),
    FIELD(connection, address_percent),
    FIELD(connection, loopback_percent),
    FIELD(connection.keepalive, idle_ns),
    FIELD(connection.keepalive, interval_ns),
    FIELD(connection.keepalive, count),
    FIELD(connection, user_timeout_ns),
    FIELD(sockets, unsent_max_bytes),
    FIELD(sockets, send_buffer_bytes),
    FIELD(sockets, receive_buffer_bytes),
    FIELD(sockets, no_delay),
    FIELD(log, queue_max),
    FIELD(log, flush_timeout_ns),
    FIELD(log, addresses),
    FIELD(log, level),
    FIELD(memory, queued_percent),
    FIELD(memory, reset_after_ns),
};

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static char sources[SOURCE_BYTES_MAX];
static size_t sources_size;

/* Append `text` without comments and white space. */
static void add_code(const char *text)
{
    while (*text != '\0' && sources_size + 1 < sizeof sources) {
        const char *end = NULL;

        if (strncmp(text, "/*", 2) == 0)
            end = strstr(text, "*/");
        if (end != NULL)
            text = end + 2;
        else if (isspace((unsigned char)*text))
            text++;
        else
            sources[sources_size++] = *text++;
    }
    sources[sources_size] = '\0';
}

static void add_file(const char *path)
{
    static char text[SOURCE_BYTES_MAX];
    FILE *file = fopen(path, "r");

    ck_assert_msg(file != NULL, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    add_code(text);
}

static void add_folder(const char *folder)
{
    char path[1024];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/%s", DOMT_SOURCE_DIR, folder);
    DIR *directory = opendir(path);
    ck_assert_msg(directory != NULL, "%s", path);
    while ((entry = readdir(directory)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        bool own =
            strcmp(folder, "runtime/control") == 0 && strncmp(entry->d_name, "config", 6) == 0;

        if (entry->d_type == DT_DIR && dot == NULL) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            add_folder(path);
        }
        if (dot == NULL || (strcmp(dot, ".c") != 0 && strcmp(dot, ".h") != 0) || own)
            continue;
        snprintf(path, sizeof path, "%s/%s/%s", DOMT_SOURCE_DIR, folder, entry->d_name);
        add_file(path);
    }
    closedir(directory);
}

static void add_sources(void)
{
    static const char *const folders[] = {"base", "house", "io", "runtime", "config", "protocols"};

    sources_size = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        add_folder(folders[i]);
}

static bool goes_on(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_';
}

/* Whether `name` stands in the code as a member: behind '.' or '->', or as the field that
 * DOMI_LIVE() reads, and not as part of a word. */
static bool is_read(const char *name)
{
    const char *at = sources;

    for (; (at = strstr(at, name)) != NULL; at++)
        if (at > sources && !goes_on(at[strlen(name)]) &&
            (at[-1] == '.' || at[-1] == '>' || (at[-1] == ',' && at[strlen(name)] == ')')))
            return true;
    return false;
}

DOMT_TEST(every_key_is_in_the_list)
{
    const domus_config_key *key;
    size_t rows = 0;

    for (; (key = domus_config_key_get(rows)) != NULL; rows++) {
        size_t i = 0;
        while (i < FIELD_COUNT && fields[i].offset != key->offset)
            i++;
        ck_assert_msg(i < FIELD_COUNT, "%s: add its field to this test", key->path);
    }
    ck_assert_uint_eq(rows, FIELD_COUNT);
}

/* Whether options can change the field: then it is copied into settings, which are read. */
static bool is_option(const struct field *field)
{
    const domus_config_key *key = domus_config_key_get(0), *option;

    for (size_t row = 1; key->offset != field->offset; row++)
        key = domus_config_key_get(row);
    for (size_t row = 0; (option = domus_config_listener_key_get(row)) != NULL; row++)
        if (option->inherits && strcmp(option->path, key->path) == 0)
            return true;
    return false;
}

/* Whether code reads the field in settings of a channel. */
static bool is_read_in_settings(const char *name)
{
    const char *last = strrchr(name, '.') + 1;
    const char *at = sources;

    for (; (at = strstr(at, "settings->")) != NULL; at++) { /* its name may begin with more words */
        const char *word = at + strlen("settings->");
        size_t size = 0;
        while (goes_on(word[size]))
            size++;
        if (size >= strlen(last) && strncmp(word + size - strlen(last), last, strlen(last)) == 0)
            return true;
    }
    return false;
}

DOMT_TEST(every_key_has_a_reader)
{
    char missing[2048] = "";

    add_sources();
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *name = fields[i].name;
        /* TLS of servers is read by its front, to which it is given as a whole */
        const bool is_given = strncmp(name, "cluster.tls.", 12) == 0;
        if (strncmp(name, "scheduler.steal", 15) == 0 || strncmp(name, "scheduler.idle", 14) == 0)
            name += strlen("scheduler.");
        if (is_option(&fields[i]) || is_given ? !is_read_in_settings(name) : !is_read(name))
            snprintf(missing + strlen(missing), sizeof missing - strlen(missing), " %s",
                     fields[i].name);
    }
    ck_assert_msg(missing[0] == '\0', "nobody reads%s", missing);
}

/* As `listeners` is an array, its elements go by any name: only the words can be looked for. */
DOMT_TEST(every_key_of_a_listener_has_a_reader)
{
    add_sources();
    ck_assert(is_read("listeners"));
    ck_assert(is_read("listener_count"));
    ck_assert(is_read("name"));
    ck_assert(is_read("address"));
    ck_assert(is_read("backlog"));
    ck_assert(is_read("proxy_from"));
    ck_assert(is_read("tls.cert_files"));
    ck_assert(is_read("tls.key_files"));
    ck_assert(is_read("tls.alpn"));
    ck_assert(is_read("tls.client_ca_file"));
    ck_assert(is_read("tls.ciphers"));
    ck_assert(is_read("tls.cipher_suites"));
    ck_assert(is_read("tls.min_version"));
    ck_assert(is_read("tls.clients_may_omit"));
}

DOMT_SUITE(120)
