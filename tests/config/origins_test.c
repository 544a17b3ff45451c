/* config/origins.c: each key of a configuration is shown with its value and the place where the
 * value was written, and no secret is shown. */
#include "config/origins.h"
#include "config/reader.h"
#include "tests/config/reading.h"

#include <domus/hooks.h>

struct settings {
    uint64_t timeout_ns;
    uint32_t room_count;
    bool loud;
    char upstream[64], key[16], admin_password[16], rooms[4][32], tokens[2][8];
    uint32_t token_count;
};

static const domus_config_key keys[] = {
    {DOMUS_KEY("timeout", DURATION, struct settings, timeout_ns, 1000000, 60000000000, 1500000)},
    {DOMUS_KEY_SWITCH("loud", struct settings, loud, false)},
    {DOMUS_KEY_TEXT("upstream", TEXT, struct settings, upstream, 0, "")},
    {DOMUS_KEY_TEXT("key", TEXT, struct settings, key, 0, ""), .secret = true},
    {DOMUS_KEY_TEXT("admin.Password", TEXT, struct settings, admin_password, 0, "")},
    {DOMUS_KEY_TEXTS("rooms", NAME, struct settings, rooms, room_count, "lobby,garden")},
    {DOMUS_KEY_TEXTS("tokens", NAME, struct settings, tokens, token_count, NULL)},
    {.path = NULL},
};
static const domus_section section = {
    .name = "chat", .keys = keys, .size = sizeof(struct settings)};

static domus_yaml *make_reader_with_section(void)
{
    domus_yaml *yaml = NULL;
    char error[256] = "";

    ck_assert_msg(domus_yaml_new_with(&section, error, sizeof error, &yaml) == 0, "%s", error);
    return yaml;
}

/* --- what is shown ---------------------------------------------------------------------------- */

static char shown[1 << 16];

static void record_shown_line(void *count, const domus_config_shown *one)
{
    size_t used = strlen(shown);

    ++*(size_t *)count;
    snprintf(shown + used, sizeof shown - used, "%s=%s @ %s\n", one->key, one->value, one->origin);
}

static size_t show_keys_of_reader(const domus_yaml *yaml)
{
    size_t count = 0;

    shown[0] = '\0';
    domus_yaml_show(yaml, record_shown_line, &count);
    return count;
}

static void expect_line_is_shown(const char *line)
{
    ck_assert_msg(strstr(shown, line) != NULL, "no '%s' in:\n%s", line, shown);
}

/* Load a text as a configuration file, and write the file's name to `name`. */
static void load_text_as_file(domus_yaml *yaml, const char *text, char name[32])
{
    ck_assert_msg(domt_load_bytes_as_file(yaml, text, strlen(text), name) == 0, "%s",
                  domus_yaml_errors(yaml));
}

static const char file[] = "scheduler:\n"
                           /* The value is the default, but as the file has it, its place in the
                            * file is shown. */
                           "  ioRatio: 50\n"
                           "  minBudget: 1500us\n"
                           "system: {threads: 50%}\n"
                           "listeners:\n"
                           "  - {name: a, address: '127.0.0.1:0'}\n"
                           "  - name: b\n"
                           "    address: 127.0.0.1:0\n"
                           "    backlog: 4096\n"
                           "    channel: {idleTimeout: 3s}\n"
                           "    tls: {certFile: c.pem, keyFile: k.pem}\n"
                           "pools:\n"
                           "  - name: work\n"
                           "    runners: 2\n"
                           "chat:\n"
                           "  key: abc\n"
                           "  admin: {Password: abc}\n"
                           "  rooms: [x]\n"
                           "  tokens: [abc, d]\n"
                           "cluster: {servers: [a, b], password: abc, token: abc,\n"
                           "  tokenFile: t, tls: {keyFile: abc}}\n";

DOMT_TEST(each_value_shows_its_line_in_the_file)
{
    static const char *const lines[] = {
        "scheduler.ioRatio=50 @ %s:2\n",
        "scheduler.minBudget=1500us @ %s:3\n",
        "system.threads=50%% @ %s:4\n",
        "system.cpus=auto @ default\n",
        "io.buffers.size=4KiB @ default\n",
        "scheduler.idle.spin=auto @ default\n",
        "listeners.a.name=a @ %s:6\n",
        "listeners.a.address=127.0.0.1:0 @ %s:6\n",
        "listeners.a.backlog=4096 @ default\n",
        "listeners.b.backlog=4096 @ %s:9\n",
        "listeners.b.channel.idleTimeout=3s @ %s:10\n",
        "listeners.b.tls.certFile=c.pem @ %s:11\n",
        "listeners.b.tls.keyFile=*** @ %s:11\n",
        "listeners.b.tls.minVersion=1.2 @ default\n",
        "pools.work.name=work @ %s:13\n",
        "pools.work.runners=2 @ %s:14\n",
        "pools.work.policy=deques @ default\n",
        "chat.timeout=1500us @ default\n",
        "chat.loud=false @ default\n",
        "chat.upstream= @ default\n",
        "chat.key=*** @ %s:16\n",
        "chat.admin.Password=*** @ %s:17\n",
        "chat.rooms=x @ %s:18\n",
        "chat.tokens=*** @ %s:19\n",
        "cluster.servers=a,b @ %s:20\n",
        "cluster.password=*** @ %s:20\n",
        "cluster.token=*** @ %s:20\n",
        "cluster.tokenFile=t @ %s:21\n",
        "cluster.tls.keyFile=*** @ %s:21\n",
        "cluster.lease=auto @ default\n",
        "cluster.user= @ default\n",
    };
    domus_yaml *yaml = make_reader_with_section();
    char name[32], line[128];

    size_t before = show_keys_of_reader(yaml);
    expect_line_is_shown("system.threads=auto @ default\n");
    expect_line_is_shown("chat.rooms=lobby,garden @ default\n");
    expect_line_is_shown("chat.key= @ default\n");
    load_text_as_file(yaml, file, name);
    ck_assert_uint_gt(show_keys_of_reader(yaml), before);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(line, sizeof line, lines[i], name);
        expect_line_is_shown(line);
    }
    /* A listener without options of its own has those of `channel`, so none of them is shown for
     * it. */
    ck_assert_ptr_null(strstr(shown, "listeners.a.channel"));
    ck_assert_ptr_null(strstr(shown, "abc"));
    domus_yaml_free(yaml);
}

DOMT_TEST(later_sources_replace_origins_of_earlier_ones)
{
    domus_yaml *yaml = make_reader_with_section();
    char name[32], second[32], line[128];

    load_text_as_file(yaml, file, name);
    load_text_as_file(
        yaml,
        "scheduler: {minBudget: 1ms}\nlisteners: [{name: a, address: '127.0.0.1:1'},\n"
        "  {name: c, address: '127.0.0.1:2'}]\n",
        second);
    ck_assert_int_eq(domus_yaml_set(yaml, "listeners.a.backlog=7"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "pools.work.runners=auto"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "chat.loud=true"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "system.threads=3"), 0);
    ck_assert_int_eq(domi_yaml_set_value_from_source(yaml, "--rooms", "chat.rooms=p,q"), 0);
    /* this assignment is refused, and changes no origin */
    ck_assert_int_ne(domus_yaml_set(yaml, "io.backend=none"), 0);
    (void)show_keys_of_reader(yaml);
    snprintf(line, sizeof line, "scheduler.minBudget=1ms @ %s:1\n", second);
    expect_line_is_shown(line);
    snprintf(line, sizeof line, "listeners.a.address=127.0.0.1:1 @ %s:2\n", second);
    expect_line_is_shown(line);
    expect_line_is_shown("listeners.a.backlog=7 @ --set\n");
    /* The backlog of listener b, which had this index in the first file, must not show here. */
    expect_line_is_shown("listeners.c.backlog=4096 @ default\n");
    expect_line_is_shown("pools.work.runners=auto @ --set\n");
    expect_line_is_shown("chat.loud=true @ --set\n");
    expect_line_is_shown("system.threads=3 @ --set\n");
    expect_line_is_shown("chat.rooms=p,q @ --rooms\n");
    expect_line_is_shown("io.backend=auto @ default\n");
    ck_assert_ptr_null(strstr(shown, "listeners.b"));
    domus_yaml_free(yaml);
}

/* --- what is in use --------------------------------------------------------------------------- */

/* The values in use after a reload that was accepted in part, in a program that has also changed
 * values itself. */
DOMT_TEST(value_in_use_shows_origin_of_its_reader)
{
    domus_yaml *first = make_reader_with_section(), *newest = make_reader_with_section();
    char name[32], line[128];
    size_t count = 0;

    load_text_as_file(first, file, name);
    ck_assert_int_eq(domus_yaml_set(newest, "log.level=error"), 0);
    /* The running system does not accept this change of a key, so the first value stays in use. */
    ck_assert_int_eq(domus_yaml_set(newest, "scheduler.minBudget=2ms"), 0);
    ck_assert_int_eq(domus_yaml_set(newest, "chat.timeout=2s"), 0);
    domus_config used = *domus_yaml_config(first);
    used.log.level = DOMUS_LOG_ERROR;
    used.channel.connections_max = 77;
    used.scheduler.idle.spin_ns = 0; /* the library has chosen this value in place of "auto" */
    const domi_origins start = domi_yaml_get_origins(first), last = domi_yaml_get_origins(newest);
    const domi_effective effective = {.config = &used, .newest = &last, .first = &start};
    shown[0] = '\0';
    domi_origins_show_configuration(&effective, record_shown_line, &count);
    expect_line_is_shown("log.level=error @ --set\n");
    expect_line_is_shown("channel.maxConnections=77 @ program\n");
    expect_line_is_shown("scheduler.idle.spin=0 @ default\n");
    snprintf(line, sizeof line, "scheduler.minBudget=1500us @ %s:3\n", name);
    expect_line_is_shown(line);
    snprintf(line, sizeof line, "listeners.b.backlog=4096 @ %s:9\n", name);
    expect_line_is_shown(line);
    expect_line_is_shown(
        "chat.timeout=2s @ --set\n"); /* The program has accepted the new values of its section. */
    expect_line_is_shown("chat.key= @ default\n");
    domus_yaml_free(first);
    domus_yaml_free(newest);
}

/* A program that fills its configuration without YAML has values whose places are not known. */
DOMT_TEST(configuration_without_yaml_is_shown)
{
    const domus_listener_config listeners[] = {{.name = "a", .address = "127.0.0.1:0"},
                                               {.address = NULL}};
    const domus_pool_config pools[] = {{.name = "p", .runners = 3}};
    domus_config config;
    size_t count = 0;

    domus_config_init(&config);
    config.scheduler.io_ratio = 60;
    config.listeners = listeners;
    config.listener_count = 2;
    config.pools = pools;
    config.pool_count = 1;
    shown[0] = '\0';
    domus_config_show(&config, NULL, record_shown_line, &count);
    expect_line_is_shown("scheduler.ioRatio=60 @ program\n");
    expect_line_is_shown("scheduler.maxBudget=10ms @ default\n");
    expect_line_is_shown("system.threads=auto @ default\n");
    expect_line_is_shown("log.level=info @ default\n");
    expect_line_is_shown("listeners.a.address=127.0.0.1:0 @ program\n");
    expect_line_is_shown("listeners..address= @ program\n");
    expect_line_is_shown("listeners.a.tls.keyFile= @ default\n");
    expect_line_is_shown("pools.p.runners=3 @ program\n");
    ck_assert_uint_gt(count, 100);
}

DOMT_TEST(shown_values_are_cut_at_size_of_text)
{
    domus_config config;
    char text[4];

    domus_config_init(&config);
    config.scheduler.min_budget_ns = 500000;
    domus_config_key_write(domus_config_key_get(4), &config, text, sizeof text);
    ck_assert_str_eq(text, "500");
}

DOMT_SUITE(60)
