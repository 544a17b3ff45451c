/* config/yaml.c: the reader of configurations as programs use it: files, assignments, and rules
 * between several keys. */
#include "tests/config/reading.h"
#include "tests/support/suite.h"

#include "config/passes.h"

#include <errno.h>
#include <fcntl.h>

#define SHIPPED DOMT_SOURCE_DIR "/config/domus.yaml"

DOMT_TEST(shipped_file_has_default_values)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domus_yaml_load(yaml, SHIPPED), 0);
    ck_assert_str_eq(domus_yaml_errors(yaml), "");
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);

    const domus_config *config = domus_yaml_config(yaml);
    domt_assert_config_is_default(config);
    ck_assert_uint_eq(config->listener_count, 1);
    ck_assert_str_eq(config->listeners[0].name, "echo");
    ck_assert_str_eq(config->listeners[0].address, "127.0.0.1:7000");
    ck_assert_uint_eq(config->listeners[0].backlog, domus_config_listener_key_get(2)->preset);
    domus_yaml_free(yaml);
}

static uint32_t find_path_in_tree(const struct domi_yaml_tree *tree, const char *path)
{
    char copy[128], *save = NULL;
    uint32_t number = 0;

    snprintf(copy, sizeof copy, "%s", path);
    for (char *name = strtok_r(copy, ".", &save); name != NULL; name = strtok_r(NULL, ".", &save)) {
        number = domi_yaml_tree_find_child(tree, number, name);
        ck_assert_msg(number != 0, "%s is not in config/domus.yaml", path);
    }
    return number;
}

/* Check that the line of a key in the shipped file says whether the key is live. */
static void expect_mark_of_live_key(const char *text, size_t line, const domus_config_key *key)
{
    const char *mark = key->live ? " # live\n" : " # restart\n";

    while (--line > 0)
        text = strchr(text, '\n') + 1;
    const char *end = strchr(text, '\n') + 1;
    ck_assert_msg((size_t)(end - text) > strlen(mark) &&
                      memcmp(end - strlen(mark), mark, strlen(mark)) == 0,
                  "%s: its line does not end with \"%s\"", key->path, mark);
}

/* The reader refuses a key that stands twice, so a shipped file that loads and has each key has
 * each key exactly once. */
DOMT_TEST(shipped_file_lists_every_key)
{
    static char text[65536];
    struct domi_yaml_issues issues = {0};
    struct domi_yaml_tree tree = {0};
    const domus_config_key *key;
    int file = open(SHIPPED, O_RDONLY);
    ssize_t size = read(file, text, sizeof text);

    close(file);
    ck_assert_int_gt(size, 0);
    ck_assert_int_eq(domi_yaml_read_text_into_tree(&tree, text, (size_t)size, 0, &issues), 0);
    ck_assert_int_eq(domi_yaml_join_lists_of_texts(&tree, &issues), 0);
    ck_assert_uint_eq(issues.count, 0);
    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        const struct domi_yaml_node *node = &tree.nodes[find_path_in_tree(&tree, key->path)];

        ck_assert(node->kind == DOMI_YAML_SCALAR);
        expect_mark_of_live_key(text, node->at.line, key);
    }

    uint32_t entry = tree.nodes[find_path_in_tree(&tree, "listeners")].first;
    const char *listeners = strstr(text, "\nlisteners:");
    for (size_t i = 0; (key = domus_config_listener_key_get(i)) != NULL; i++) {
        const char *within = strchr(key->path, '.');
        /* The options of a listener stand there as comments, because they have no default. */
        if (within != NULL)
            ck_assert_ptr_nonnull(strstr(listeners, within + 1));
        else
            ck_assert_uint_ne(domi_yaml_tree_find_child(&tree, entry, key->path), 0);
    }
    domi_yaml_tree_fini(&tree);
}

DOMT_TEST(file_without_document_gives_defaults)
{
    static const char *const texts[] = {"", "\n\n", "# nothing\n", "{}", "--- {}\n...\n"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        domus_yaml *yaml = domt_make_yaml_reader();
        ck_assert_int_eq(domt_load_text_as_file(yaml, texts[i]), 0);
        domt_assert_config_is_default(domus_yaml_config(yaml));
        ck_assert_uint_eq(domus_yaml_config(yaml)->listener_count, 0);
        domus_yaml_free(yaml);
    }
}

/* An option of a listener that is left out is 0; one that is written as 0 becomes DOMUS_NONE. */
DOMT_TEST(listener_options_reach_their_fields)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_channel_options *options;

    ck_assert_int_eq(
        domt_load_text_as_file(yaml, "channel: {idleTimeout: 1s}\n"
                                     "listeners:\n"
                                     "- {name: a, address: '[::1]:1', channel: {linger: 2s}}\n"
                                     "- name: b\n"
                                     "  address: '[::1]:2'\n"
                                     "  channel:\n"
                                     "    idleTimeout: 0\n"
                                     "    sendLow: 0\n"
                                     "    sendMax: 1GiB\n"
                                     "- {name: c, address: '[::1]:3'}\n"),
        0);
    options = &domus_yaml_config(yaml)->listeners[0].channel;
    ck_assert_uint_eq(options->linger_ns, UINT64_C(2000000000));
    ck_assert_uint_eq(options->idle_timeout_ns, 0);
    options = &domus_yaml_config(yaml)->listeners[1].channel;
    ck_assert_uint_eq(options->idle_timeout_ns, DOMUS_NONE);
    ck_assert_uint_eq(options->send_low_bytes, DOMUS_NONE);
    ck_assert_uint_eq(options->send_max_bytes, UINT64_C(1) << 30);
    ck_assert_uint_eq(options->linger_ns, 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "listeners.c.channel.idleTimeout=3s"), 0);
    options = &domus_yaml_config(yaml)->listeners[2].channel;
    ck_assert_uint_eq(options->idle_timeout_ns, UINT64_C(3000000000));
    domus_yaml_free(yaml);

    domt_expect_errors_of_text(
        "listeners:\n- {name: a, address: '[::1]:1', channel: {idleTimeout: 1ns}}\n",
        "2:56: listeners[0].channel.idleTimeout: must be 0 or 10ms..8760h, is 1ns\n");
}

DOMT_TEST(values_of_keys_reach_their_fields)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_config *config;

    ck_assert_int_eq(domt_load_text_as_file(yaml,
                                            "system: {threads: 8, cpus: '0-3,8'}\n"
                                            "scheduler:\n"
                                            "  ioRatio: 60%\n"
                                            "  steal: {enabled: false}\n"
                                            "  idle: {spin: 20us}\n"
                                            "io: {buffers: {size: 8KiB}}\n"
                                            "channel: {sendMax: 4GiB}\n"
                                            "profile: {level: off}\n"
                                            "listeners:\n"
                                            "- {name: a, address: '[::1]:7000'}\n"
                                            "- {address: '127.0.0.1:0', backlog: 7, name: b}\n"),
                     0);
    config = domus_yaml_config(yaml);
    ck_assert_uint_eq(config->system.threads, 8);
    ck_assert_str_eq(config->system.cpus, "0-3,8");
    ck_assert_uint_eq(config->scheduler.io_ratio, 60);
    ck_assert(!config->scheduler.steal.enabled);
    ck_assert_uint_eq(config->scheduler.idle.spin_ns, 20000);
    ck_assert_uint_eq(config->io.buffers.size_bytes, 8192);
    ck_assert_uint_eq(config->channel.send_max_bytes, UINT64_C(4) << 30);
    ck_assert_int_eq(config->profile.level, DOMUS_PROFILE_OFF);
    ck_assert_uint_eq(config->listener_count, 2);
    ck_assert_str_eq(config->listeners[0].address, "[::1]:7000");
    ck_assert_uint_eq(config->listeners[0].backlog, 4096);
    ck_assert_str_eq(config->listeners[1].name, "b");
    ck_assert_uint_eq(config->listeners[1].backlog, 7);
    domus_yaml_free(yaml);
}

DOMT_TEST(threads_key_accepts_auto_count_or_share)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_config *config;

    ck_assert_int_eq(domt_load_text_as_file(yaml, "system: {threads: 50%}"), 0);
    config = domus_yaml_config(yaml);
    ck_assert_uint_eq(config->system.threads, 0);
    ck_assert_uint_eq(config->system.threads_percent, 50);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "system: {threads: 3}"), 0);
    ck_assert_uint_eq(config->system.threads, 3);
    ck_assert_uint_eq(config->system.threads_percent, 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "system.threads=25%"), 0);
    ck_assert_uint_eq(config->system.threads, 0);
    ck_assert_uint_eq(config->system.threads_percent, 25);
    ck_assert_int_eq(domus_yaml_set(yaml, "system.threads=auto"), 0);
    ck_assert_uint_eq(config->system.threads_percent, 0);
    domus_yaml_free(yaml);
}

DOMT_TEST(later_file_overrides_earlier_file)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_config *config = domus_yaml_config(yaml);

    ck_assert_int_eq(domt_load_text_as_file(yaml, "scheduler: {ioRatio: 10, mailboxMax: 77}\n"
                                                  "listeners: [{name: a, address: '127.0.0.1:1'},"
                                                  " {name: b, address: '127.0.0.1:2'}]"),
                     0);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "scheduler: {ioRatio: 20}"), 0);
    ck_assert_uint_eq(config->scheduler.io_ratio, 20);
    ck_assert_uint_eq(config->scheduler.mailbox_max, 77);
    ck_assert_uint_eq(config->listener_count, 2);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "listeners: [{name: c, address: '127.0.0.1:3'}]"),
                     0);
    ck_assert_uint_eq(config->listener_count, 1);
    ck_assert_str_eq(config->listeners[0].name, "c");
    ck_assert_int_eq(domt_load_text_as_file(yaml, "listeners: []"), 0);
    ck_assert_uint_eq(config->listener_count, 0);
    domus_yaml_free(yaml);
}

DOMT_TEST(failed_load_changes_nothing)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_config *config = domus_yaml_config(yaml);

    ck_assert_int_eq(domt_load_text_as_file(yaml, "system: {cpus: '1'}\nscheduler: {ioRatio: 10}\n"
                                                  "listeners: [{name: a, address: '127.0.0.1:1'}]"),
                     0);
    ck_assert_int_eq(
        domt_load_text_as_file(yaml, "system: {cpus: '2'}\nscheduler: {ioRatio: 20}\n"
                                     "listeners: [{name: z, address: '127.0.0.1:9'}]\nio: 5\n"),
        -EINVAL);
    ck_assert_ptr_eq(domus_yaml_config(yaml), config);
    ck_assert_str_eq(config->system.cpus, "1");
    ck_assert_uint_eq(config->scheduler.io_ratio, 10);
    ck_assert_uint_eq(config->listener_count, 1);
    ck_assert_str_eq(config->listeners[0].name, "a");
    ck_assert_str_eq(config->listeners[0].address, "127.0.0.1:1");
    domus_yaml_free(yaml);
}

DOMT_TEST(unreadable_file_is_reported_with_reason)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domus_yaml_load(yaml, "/nonexistent.yaml"), -ENOENT);
    ck_assert_int_eq(domus_yaml_load(yaml, "/tmp"), -EISDIR);
    ck_assert_str_eq(domus_yaml_errors(yaml),
                     "/nonexistent.yaml: cannot be read: No such file or directory\n"
                     "/tmp: cannot be read: Is a directory\n");
    domus_yaml_free(yaml);
}

DOMT_TEST(assignment_overrides_one_key)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    const domus_config *config = domus_yaml_config(yaml);

    ck_assert_int_eq(domt_load_text_as_file(yaml,
                                            "listeners: [{name: a, address: '127.0.0.1:1'},"
                                            " {name: echo, address: '127.0.0.1:2', backlog: 9}]"),
                     0);
    ck_assert_int_eq(domus_yaml_set(yaml, "scheduler.ioRatio=60"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "scheduler.steal.floor=5"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "system.cpus=0-1"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "listeners.echo.address=127.0.0.1:0"), 0);
    ck_assert_uint_eq(config->scheduler.io_ratio, 60);
    ck_assert_uint_eq(config->scheduler.steal.floor, 5);
    ck_assert_str_eq(config->system.cpus, "0-1");
    ck_assert_str_eq(config->listeners[1].address, "127.0.0.1:0");
    ck_assert_uint_eq(config->listeners[1].backlog, 9);
    ck_assert_str_eq(config->listeners[0].address, "127.0.0.1:1");
    ck_assert_int_eq(domus_yaml_set(yaml, "listeners.echo.name=new"), 0);
    ck_assert_str_eq(config->listeners[1].name, "new");
    ck_assert_str_eq(domus_yaml_errors(yaml), "");
    domus_yaml_free(yaml);
}

/* No path, key or value in an error can control the terminal or add lines of its own to the
 * output. */
DOMT_TEST(unprintable_bytes_in_errors_are_escaped)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_lt(domus_yaml_load(yaml, "/nonexistent/a\nb: c\xe2\x80\xae\x1b[2J.yaml"), 0);
    ck_assert_str_eq(domus_yaml_errors(yaml),
                     "/nonexistent/a\\nb: c\\xe2\\x80\\xae\\x1b[2J.yaml: cannot be read: No such "
                     "file or directory\n");
    domus_yaml_free(yaml);

    yaml = domt_make_yaml_reader();
    ck_assert_int_eq(domus_yaml_set(yaml, "system.cpus=\xc2\x9b"
                                          "31m"),
                     -EINVAL);
    ck_assert_int_eq(domus_yaml_set(yaml, "\xe2\x80\xae=1"), -EINVAL);
    ck_assert_str_eq(domus_yaml_errors(yaml),
                     "--set: system.cpus: must be auto, none or a list such as 0-3,8, is "
                     "'\\xc2\\x9b31m'\n"
                     "--set: \\xe2\\x80\\xae: unknown key\n");
    domus_yaml_free(yaml);
}

DOMT_TEST(wrong_assignment_is_reported_with_reason)
{
    static const char *const wrong[][2] = {
        {"scheduler.ioRatio=0", "scheduler.ioRatio: must be auto or 1..100, is 0"},
        {"scheduler.ioRato=5", "scheduler.ioRato: unknown key (did you mean 'ioRatio'?)"},
        {"shedule.ioRatio=5", "shedule.ioRatio: unknown key (did you mean 'scheduler'?)"},
        {"scheduler=5", "scheduler: expected a mapping, found a single value"},
        {"scheduler.ioRatio.x=5", "scheduler.ioRatio.x: expected a single value, found a mapping"},
        {"scheduler.minBudget=", "scheduler.minBudget: expected a duration such as 500us"
                                 " (ns, us, ms, s, m, h), found nothing"},
        {"scheduler.ioRatio",
         "expected key=value, such as scheduler.ioRatio=60, found 'scheduler.ioRatio'"},
        {"=5", "expected key=value, such as scheduler.ioRatio=60, found '=5'"},
        {"a\n.b=5", "a\\n.b: unknown key"},
        {"...=5", "...: unknown key"},
        {"listeners=5", "listeners: expected a list, found a single value"},
        {"listeners.echo=5", "listeners.echo: expected listeners.NAME.KEY"},
        {"listeners.ech.backlog=5", "listeners.ech.backlog: there is no listener of that name"},
        {"listeners.echo.backlock=5",
         "listeners.echo.backlock: unknown key (did you mean 'backlog'?)"},
        {"listeners.echo.backlog=0", "listeners.echo.backlog: must be 1..65535, is 0"},
        {"listeners.echo.backlog.x=0",
         "listeners.echo.backlog.x: expected a single value, found a mapping"},
        {"cluster.servers.x=5", "cluster.servers.x: expected a single value, found a mapping"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t=5",
         "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t: unknown key"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_yaml *yaml = domt_make_yaml_reader();
        char line[256];
        ck_assert_int_eq(
            domt_load_text_as_file(yaml, "listeners: [{name: echo, address: '[::]:0'}]"), 0);
        ck_assert_int_eq(domus_yaml_set(yaml, wrong[i][0]), -EINVAL);
        snprintf(line, sizeof line, "--set: %s\n", wrong[i][1]);
        ck_assert_str_eq(domus_yaml_errors(yaml), line);
        domt_assert_config_is_default(domus_yaml_config(yaml));
        ck_assert_uint_eq(domus_yaml_config(yaml)->listeners[0].backlog, 4096);
        domus_yaml_free(yaml);
    }
}

DOMT_TEST(conflicts_of_keys_are_reported_with_lines)
{
    domus_yaml *yaml = domt_make_yaml_reader();
    char name[32];
    const char *text = "io:\n"
                       "  ringEntries: 4096\n"
                       "channel:\n"
                       "  sendHigh: 32KiB\n"
                       "listeners:\n"
                       "- {name: a, address: '127.0.0.1:1'}\n"
                       "- {name: a, address: '127.0.0.1:2'}\n"
                       "- {name: b, address: '127.0.0.1:3', channel: {sendHigh: 1KiB}}\n";

    ck_assert_int_eq(domt_load_bytes_as_file(yaml, text, strlen(text), name), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "channel.sendMax=1KiB"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), -EINVAL);

    char *errors = domt_copy_errors_of_reader(yaml, name);
    ck_assert_str_eq(
        errors, "--set: channel.sendMax: must be at least channel.sendHigh (32KiB), is 1KiB\n"
                "2:16: io.completionEntries: must be more than io.ringEntries (4096), is 4096\n"
                "4:13: channel.sendHigh: must be at least channel.sendLow (64KiB), is 32KiB\n"
                "7:10: listeners[1].name: must be unique, 'a' is taken by listeners[0]\n"
                "8:57: listeners[2].channel.sendHigh: must be at least channel.sendLow (64KiB), is "
                "1KiB\n");
    free(errors);
    domus_yaml_free(yaml);
}

DOMT_TEST(list_of_texts_accepts_list_or_one_text)
{
    static const char *const right[][2] = {
        {"cluster: {servers: [a:1, 'b:2', \"[::1]:3\"]}", "a:1,b:2,[::1]:3"},
        {"cluster:\n  servers:\n  - a\n", "a"},
        {"cluster: {servers: 'a:1, b:2'}", "a:1, b:2"},
        {"cluster: {servers: a}", "a"},
        {"cluster: {servers: []}", ""},
        {"cluster: {servers: ''}", ""},
    };
    domus_yaml *yaml = domt_make_yaml_reader();

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        ck_assert_int_eq(domt_load_text_as_file(yaml, "cluster: {servers: [before]}"), 0);
        ck_assert_int_eq(domt_load_text_as_file(yaml, right[i][0]), 0);
        ck_assert_str_eq(domus_yaml_config(yaml)->cluster.servers, right[i][1]);
    }
    ck_assert_int_eq(domus_yaml_set(yaml, "cluster.servers=c:1,d:2"), 0);
    ck_assert_str_eq(domus_yaml_config(yaml)->cluster.servers, "c:1,d:2");
    ck_assert_int_eq(domt_load_text_as_file(yaml, "cluster: {name: x}"), 0);
    ck_assert_str_eq(domus_yaml_config(yaml)->cluster.servers, "c:1,d:2");
    ck_assert_int_eq(domus_yaml_set(yaml, "cluster.servers="), 0);
    ck_assert_str_eq(domus_yaml_config(yaml)->cluster.servers, "");
    domus_yaml_free(yaml);
}

DOMT_TEST(wrong_element_of_text_list_is_reported)
{
    char text[4200] = "cluster: {servers: [";

    domt_expect_errors_of_text("cluster:\n  servers:\n  - a\n  - {b: c}\n",
                               "4:5: cluster.servers[1]: expected a single value\n");
    domt_expect_errors_of_text("cluster: {servers: [a, '', b]}",
                               "1:24: cluster.servers[1]: expected a text, found nothing\n");
    domt_expect_errors_of_text("cluster: {servers: ['a,b']}",
                               "1:21: cluster.servers[0]: a text of a list may not have a comma\n");
    domt_expect_errors_of_text("cluster: {servers: {a: b}}",
                               "1:20: cluster.servers: expected a single value, found a mapping\n");
    const size_t begin = strlen(text);
    memset(text + begin, 'x', 4096);
    text[begin + 2048] = ',';
    snprintf(text + begin + 4096, sizeof text - begin - 4096, "]}");
    domt_expect_errors_of_text(text,
                               "1:20: cluster.servers: must be at most 4095 bytes long, is 4096\n");
    snprintf(text + begin + 4096, sizeof text - begin - 4096, "x]}");
    domt_expect_errors_of_text(text, "1:20: cluster.servers: the list is longer than 4096 bytes\n");
}

DOMT_TEST(errors_never_show_a_secret)
{
    static char long_one[5000] = "cluster.password=geheim";
    domus_yaml *yaml = domt_make_yaml_reader();

    memset(long_one + strlen(long_one), 'm', 4500);
    ck_assert_int_eq(domus_yaml_set(yaml, long_one), -EINVAL);
    long_one[1000] = '\0';
    ck_assert_int_eq(domus_yaml_set(yaml, long_one), -EINVAL);
    ck_assert_int_eq(domt_load_text_as_file(yaml, "cluster: {password: [geheim]}"), -EINVAL);
    ck_assert_str_ne(domus_yaml_errors(yaml), "");
    ck_assert_msg(strstr(domus_yaml_errors(yaml), "geheim") == NULL, "%s", domus_yaml_errors(yaml));
    ck_assert_ptr_nonnull(strstr(domus_yaml_errors(yaml),
                                 "--set: cluster.password: a value is longer than 4096 bytes\n"));
    domus_yaml_free(yaml);
}

DOMT_TEST(node_silence_must_exceed_two_heartbeats)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domus_yaml_set(yaml, "cluster.heartbeat=1000000001ns"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), -EINVAL);
    ck_assert_str_eq(domus_yaml_errors(yaml), "--set: cluster.downAfter: must be at least 2 times "
                                              "cluster.heartbeat (1000000001ns), is 2s\n");
    ck_assert_int_eq(domus_yaml_set(yaml, "cluster.heartbeat=1s"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    domus_yaml_free(yaml);
}

DOMT_TEST(assignment_may_mend_conflicts_of_a_file)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    ck_assert_int_eq(domt_load_text_as_file(yaml, "channel: {sendHigh: 32KiB}"), 0);
    ck_assert_int_eq(domus_yaml_set(yaml, "channel.sendLow=0"), 0);
    ck_assert_int_eq(domus_yaml_finish(yaml), 0);
    ck_assert_str_eq(domus_yaml_errors(yaml), "");
    domus_yaml_free(yaml);
}

DOMT_TEST(errors_of_a_reader_accumulate_up_to_limit)
{
    domus_yaml *yaml = domt_make_yaml_reader();

    domus_yaml_set(yaml, "x=1");
    domus_yaml_set(yaml, "y=1");
    ck_assert_str_eq(domus_yaml_errors(yaml), "--set: x: unknown key\n--set: y: unknown key\n");
    char text[203] = "";
    memset(text, 'x', 200);
    memcpy(text + 200, "=1", 3);
    /* each wrong assignment adds an error of more than 200 bytes */
    for (size_t i = 0; i < 6000; i++)
        domus_yaml_set(yaml, text);
    ck_assert_uint_le(strlen(domus_yaml_errors(yaml)), 1 << 20);
    ck_assert_uint_ge(strlen(domus_yaml_errors(yaml)), (1 << 20) - 1000);
    domus_yaml_free(yaml);
    domus_yaml_free(NULL);
}

DOMT_SUITE(30)
