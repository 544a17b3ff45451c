/* config/main_options.c and tell.c: a program's own options set keys or call functions, are listed
 * by --help, and are refused with clear errors; with --tell a program prints its keys and values,
 * but starts nothing. Each program is a child process. (tests/system/command_test.c tests --tell)
 */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    uint64_t timeout_ns;
    uint32_t retries, room_count;
    bool verbose, quiet;
    char rooms[4][16];
};

static const domus_config_key keys[] = {
    {DOMUS_KEY("timeout", DURATION, struct settings, timeout_ns, 1000000, 60000000000, 5000000)},
    {DOMUS_KEY("retries", COUNT, struct settings, retries, 1, 10, 3)},
    {DOMUS_KEY_SWITCH("verbose", struct settings, verbose, false)},
    {DOMUS_KEY_SWITCH("quiet", struct settings, quiet, true)},
    {DOMUS_KEY_TEXTS("rooms", NAME, struct settings, rooms, room_count, NULL)},
    {.path = NULL},
};

static const domus_section section = {
    .name = "chat", .keys = keys, .size = sizeof(struct settings)};

static struct settings settings;
static char taken[256];

/* Append each value of an option to `taken`, in the order in which the values come. */
static int append_value_or_refuse(const char *value, void *argument, char *error, size_t error_size)
{
    size_t used = strlen(taken);

    if (value != NULL && strcmp(value, "bad") == 0) {
        snprintf(error, error_size, "expected a good word, found '%s'", value);
        return -EINVAL;
    }
    if (value != NULL && strcmp(value, "mute") == 0)
        return -EINVAL;
    snprintf(taken + used, sizeof taken - used, "%s,", value != NULL ? value : (char *)argument);
    return 0;
}

static const domus_option options[] = {
    {.name = "timeout",
     .letter = 't',
     .argument = "TIME",
     .help = "wait so long",
     .key = "chat.timeout"},
    {.name = "verbose", .letter = 'v', .help = "say more", .key = "chat.verbose"},
    {.name = "loud", .letter = 'l', .help = "say all", .key = "chat.quiet", .value = "false"},
    {.name = "threads", .argument = "COUNT", .help = "run so many", .key = "system.threads"},
    {.name = "room", .argument = "NAMES", .help = "open these", .key = "chat.rooms"},
    {.name = "note",
     .letter = 'n',
     .argument = "WORD",
     .help = "note a word",
     .take = append_value_or_refuse},
    {.name = "mark", .help = "note a mark", .take = append_value_or_refuse},
    {.name = NULL},
};

/* Print the values of the program's settings, and quit. */
static int print_settings(domus_system *system, void *argument)
{
    printf("started timeout %u retries %u verbose %d quiet %d threads %u rooms %u %s taken %s\n",
           (unsigned)(settings.timeout_ns / 1000000), settings.retries, settings.verbose,
           settings.quiet, domus_system_threads(system), settings.room_count, settings.rooms[0],
           taken);
    fflush(stdout);
    domus_main_quit(0);
    return 0;
}

static const domus_program chat = {.name = "chat",
                                   .start = print_settings,
                                   .argument = (void *)(uintptr_t) "mark",
                                   .options = options,
                                   .section = &section,
                                   .settings = &settings};

static void expect_in_stdout(const char *const *arguments, const char *wanted)
{
    domt_program own;

    ck_assert_int_eq(domt_program_run(&own, &chat, arguments), 0);
    domt_must_contain(own.out_text, wanted);
}

DOMT_TEST(options_set_keys_and_call_functions)
{
    expect_in_stdout(domt_no_arguments, "timeout 5 retries 3 verbose 0 quiet 1");
    expect_in_stdout((const char *const[]){"--timeout", "2s", "--threads=3", NULL},
                     "timeout 2000 retries 3 verbose 0 quiet 1 threads 3");
    expect_in_stdout((const char *const[]){"-vlt", "7ms", "--set", "chat.retries=9", NULL},
                     "timeout 7 retries 9 verbose 1 quiet 0");
    expect_in_stdout((const char *const[]){"--room", "hall,attic", NULL}, "rooms 2 hall");
    expect_in_stdout((const char *const[]){"-n", "one", "--mark", "--note=two", NULL},
                     "taken one,mark,two,");
}

DOMT_TEST(options_hold_over_files_and_the_later_one_counts)
{
    char file[PATH_MAX];
    domt_tree tree;

    domt_tree_make(&tree);
    domt_tree_write(&tree, "a.yaml", "chat: {timeout: 1s, retries: 7}\nsystem: {threads: 2}\n");
    snprintf(file, sizeof file, "%s/a.yaml", tree.root);
    expect_in_stdout((const char *const[]){"-t", "2s", "--config", file, NULL},
                     "timeout 2000 retries 7 verbose 0 quiet 1 threads 2");
    expect_in_stdout((const char *const[]){"-t", "2s", "--set", "chat.timeout=3s", NULL},
                     "timeout 3000");
    expect_in_stdout((const char *const[]){"--set", "chat.timeout=3s", "-t", "2s", NULL},
                     "timeout 2000");
    domt_tree_remove_copy(&tree);
}

/* Check that the program starts nothing, ends with 2, and that stderr begins with `wanted`. */
static void expect_refusal(const char *const *arguments, const char *wanted)
{
    domt_program own;

    ck_assert_int_eq(domt_program_run(&own, &chat, arguments), 2);
    ck_assert_msg(strncmp(own.err_text, wanted, strlen(wanted)) == 0, "%s", own.err_text);
    ck_assert_str_eq(own.out_text, "");
}

DOMT_TEST(all_wrong_options_are_named_and_end_with_2)
{
    static const struct {
        const char *arguments[5], *told; /* NULL is behind the last argument */
    } cases[] = {
        {{"--timeuot", "2s"}, "chat: --timeuot: unknown option\n"},
        {{"-vx"}, "chat: -x: unknown option\n"},
        {{"--verbose=1"}, "chat: --verbose=1: takes no value\n"},
        {{"--help=1"}, "chat: --help=1: takes no value\n"},
        {{"--timeout"}, "chat: --timeout: its value is missing\n"},
        {{"-v", "-t"}, "chat: -t: its value is missing\n"},
        {{"-v", "stray"}, "chat: stray: unexpected argument\n"},
        {{"-t", "5"}, "--timeout: chat.timeout: expected a duration such as 500us"},
        {{"--timeout", "2h"}, "--timeout: chat.timeout: must be 1ms..1m, is 2h\n"},
        {{"--threads", "0"}, "--threads: system.threads: expected"},
        {{"--note", "bad"}, "chat: --note: expected a good word, found 'bad'\n"},
        {{"--note", "mute"}, "chat: --note: is refused\n"},
        {{"--set", "chat.retries=11"}, "--set: chat.retries: must be 1..10, is 11\n"},
        {{"--timeout", "2h", "--set", "chat.nope=1"},
         "--timeout: chat.timeout: must be 1ms..1m, is 2h\n--set: chat.nope: unknown key"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].arguments, cases[i].told);
}

DOMT_TEST(value_that_is_too_long_is_refused)
{
    static char text[8192];

    memset(text, 'a', sizeof text - 1);
    expect_refusal((const char *const[]){"--room", text, NULL},
                   "chat: --room: the value is too long\n");
}

DOMT_TEST(help_has_options_of_library_and_program)
{
    domt_program own;

    domt_program_check_exit(&own, &chat, 0, "-v", "-h", NULL);
    ck_assert_str_eq(own.out_text,
                     "usage: chat [OPTION ...] [--config FILE] [--set KEY=VALUE ...]\n"
                     "  -t, --timeout TIME   wait so long\n"
                     "  -v, --verbose        say more\n"
                     "  -l, --loud           say all\n"
                     "      --threads COUNT  run so many\n"
                     "      --room NAMES     open these\n"
                     "  -n, --note WORD      note a word\n"
                     "      --mark           note a mark\n"
                     "  -c, --config FILE    read the configuration (YAML); without it the "
                     "defaults hold\n"
                     "  -s, --set KEY=VALUE  set one key over it, such as scheduler.ioRatio=60\n"
                     "      --tell WHAT      print keys or values as JSON, or check them, and end "
                     "(docs/config.md)\n"
                     "  -h, --help           print this\n");
    ck_assert_str_eq(own.err_text, "");
}

/* --- tables that are wrong -------------------------------------------------------------------- */

static void expect_table_refused(const domus_option *table, const char *wanted)
{
    const domus_program program = {.name = "wrong", .start = print_settings, .options = table};
    domt_program own;

    domt_program_check_exit(&own, &program, 1, "--help", NULL);
    domt_must_contain(own.err_text, wanted);
    ck_assert_str_eq(own.out_text, "");
}

static void expect_option_refused(domus_option option, const char *wanted)
{
    const domus_option table[] = {options[0], option, {.name = NULL}};

    expect_table_refused(table, wanted);
}

DOMT_TEST(wrong_table_of_options_is_refused)
{
    const domus_option good = {.name = "good", .letter = 'g', .help = "", .key = "chat.verbose"};
    domus_option option = good;

    option.name = "-bad";
    expect_option_refused(option, "wrong: option '-bad': the name is none\n");
    option.name = "set";
    expect_option_refused(option, "has its name or its letter");
    option.name = "timeout";
    expect_option_refused(option, "has its name or its letter");
    option = good;
    option.letter = 'h';
    expect_option_refused(option, "has its name or its letter");
    option.letter = 't';
    expect_option_refused(option, "has its name or its letter");
    option.letter = '-';
    expect_option_refused(option, "the letter is none");
    option = good;
    option.help = NULL;
    expect_option_refused(option, "no help");
    option = good;
    option.take = append_value_or_refuse;
    expect_option_refused(option, "either a key or a function");
    option.take = NULL;
    option.key = NULL;
    expect_option_refused(option, "either a key or a function");
}

DOMT_TEST(table_of_options_has_a_greatest_length)
{
    static domus_option table[DOMUS_OPTIONS_MAX + 2];
    static char names[DOMUS_OPTIONS_MAX + 1][8];
    const domus_program program = {.name = "long", .start = print_settings, .options = table};
    domt_program own;

    for (size_t i = 0; i < DOMUS_OPTIONS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "o%zu", i);
        table[i] = options[6];
        table[i].name = names[i];
    }
    domt_program_check_exit(&own, &program, 0, "--o31", NULL);
    table[DOMUS_OPTIONS_MAX] = options[0];
    expect_table_refused(table, "option 'timeout': there are too many options\n");
}

DOMT_TEST(section_without_settings_is_refused)
{
    const domus_program program = {.name = "wrong", .start = print_settings, .section = &section};
    domt_program own;

    domt_program_check_exit(&own, &program, 1, NULL);
    ck_assert_str_eq(own.err_text, "wrong: section 'chat': the program has no settings\n");
}

/* --- what is told ----------------------------------------------------------------------------- */

typedef struct told_settings {
    uint64_t timeout_ns;
    uint32_t words, workers, room_count;
    char rooms[4][16];
    char password[32];
    char needed[16];
} told_settings;

static told_settings given;

static const char *const word_list[] = {"some", "\"odd\\\"", NULL};

static const domus_config_key told_keys[] = {
    {DOMUS_KEY("timeout", DURATION, told_settings, timeout_ns, 1000, UINT64_MAX - 1, 2000),
     .or_zero = true},
    {DOMUS_KEY_WORD("deep.words", told_settings, words, word_list, 1)},
    {DOMUS_KEY("workers", COUNT, told_settings, workers, 0, 9, 0), .special = "auto"},
    {DOMUS_KEY_TEXTS("rooms", NAME, told_settings, rooms, room_count, "lobby,garden")},
    {DOMUS_KEY_TEXT("password", TEXT, told_settings, password, 0, "")},
    {DOMUS_KEY_TEXT("needed", NAME, told_settings, needed, 1, NULL)},
    {.path = NULL},
};

static int refuse_3_us(const void *values, char *error, size_t error_size)
{
    if (((const told_settings *)values)->timeout_ns != 3000)
        return 0;
    snprintf(error, error_size, "three is wrong");
    return -EINVAL;
}

static const domus_section told_section = {
    .name = "chat", .keys = told_keys, .size = sizeof(told_settings), .check = refuse_3_us};

static int print_and_fail_start(domus_system *system, void *unused)
{
    printf("started\n");
    return -EDOM;
}

static int accept_reload(domus_system *system, const void *values, void *unused)
{
    return 0;
}

static const domus_program program = {
    .name = "a \"b\"", .start = print_and_fail_start, .section = &told_section, .settings = &given};

/* Run the program with --tell, and check its exit status, and that it has started nothing. */
static void run_tell(domt_program *own, const domus_program *which, int status,
                     const char *const *arguments)
{
    ck_assert_int_eq(domt_program_run(own, which, arguments), status);
    ck_assert_ptr_null(strstr(own->out_text, "started"));
}

DOMT_TEST(tell_keys_prints_facts_of_each_key)
{
    static const char *const wanted[] = {
        "{\"tell\": \"keys\", \"program\": \"a \\\"b\\\"\", \"listeners_max\": 64, "
        "\"pools_max\": 16, \"section\": \"chat\",\n\"keys\": [\n{\"key\": \"system.threads\", "
        "\"field\": \"domus_config.system.threads\", \"kind\": \"count\", \"minimum\": \"1\", "
        "\"maximum\": \"1024\", \"least\": \"1\", "
        "\"most\": \"1024\", \"default\": \"auto\", \"special\": \"auto\"},\n",
        "{\"key\": \"scheduler.beltSlots\", \"field\": \"domus_config.scheduler.belt_slots\", "
        "\"kind\": \"count\", \"minimum\": \"64\", "
        "\"maximum\": \"65536\", \"least\": \"64\", \"most\": \"65536\", \"default\": \"1024\", "
        "\"zero\": true, \"power_of_two\": true",
        "{\"key\": \"cluster.password\", \"field\": \"domus_config.cluster.password\", \"kind\": "
        "\"text\", \"minimum\": \"0\", "
        "\"maximum\": \"255\", \"default\": \"\", \"secret\": true}",
        "{\"key\": \"chat.timeout\", \"kind\": \"duration\", \"minimum\": \"1000\", \"maximum\": "
        "\"18446744073709551614\", \"least\": \"1us\", \"most\": \"18446744073709551614ns\", "
        "\"default\": \"2us\", \"zero\": true}",
        "{\"key\": \"chat.deep.words\", \"kind\": \"word\", \"minimum\": \"0\", \"maximum\": "
        "\"1\", \"least\": \"some\", \"most\": \"\\\"odd\\\\\\\\\\\"\", \"default\": "
        "\"\\\"odd\\\\\\\\\\\"\", \"words\": [\"some\", \"\\\"odd\\\\\\\\\\\"\"], \"zero\": true}",
        "{\"key\": \"chat.workers\", \"kind\": \"count\", \"minimum\": \"1\", \"maximum\": \"9\", "
        "\"least\": \"1\", \"most\": \"9\", \"default\": \"auto\", \"special\": \"auto\"}",
        "{\"key\": \"chat.rooms\", \"kind\": \"name\", \"minimum\": \"1\", \"maximum\": \"15\", "
        "\"default\": \"lobby,garden\", \"list_max\": 4}",
        "{\"key\": \"chat.needed\", \"kind\": \"name\", \"minimum\": \"1\", \"maximum\": \"15\"}",
        "\"listeners\": [\n{\"key\": \"name\", \"field\": \"domus_listener_config.name\", "
        "\"kind\": \"name\", \"minimum\": \"1\", "
        "\"maximum\": \"63\"}",
        "{\"key\": \"channel.sendHigh\", \"field\": "
        "\"domus_listener_config.channel.send_high_bytes\", \"kind\": \"size\", \"minimum\": "
        "\"1\", \"maximum\": "
        "\"1073741824\", \"least\": \"1B\", \"most\": \"1GiB\", \"inherits\": true",
        "\"pools\": [\n{\"key\": \"name\"",
    };
    domt_program own;

    run_tell(&own, &program, 0,
             (const char *const[]){"--tell", "keys", "--config", "/nonexistent", NULL});
    ck_assert_str_eq(own.err_text, "");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        domt_must_contain(own.out_text, wanted[i]);
    ck_assert_str_eq(own.out_text + own.out_length - 4, "}]}\n");
}

/* Each key of the configuration is printed once, in each form in which a value can be written. */
DOMT_TEST(tell_keys_prints_every_key)
{
    const domus_config_key *key;
    domt_program own;
    char wanted[256];

    run_tell(&own, &program, 0, (const char *const[]){"--tell", "keys", NULL});
    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++) {
        snprintf(wanted, sizeof wanted, "{\"key\": \"%s\", \"field\": \"%s\", \"kind\":", key->path,
                 key->field);
        domt_must_contain(own.out_text, wanted);
    }
    domt_must_contain(own.out_text, "\"chat.deep.words\"");
}

/* The keys of the program's section count as live if the program has a function for reloads. */
DOMT_TEST(section_of_a_program_that_reloads_is_live)
{
    domus_program reloading = program;
    domt_program own;

    reloading.reload = accept_reload;
    run_tell(&own, &reloading, 0, (const char *const[]){"--tell", "keys", NULL});
    domt_must_contain(own.out_text,
                      "\"default\": \"lobby,garden\", \"list_max\": 4, \"live\": true}");
    domt_must_contain(own.out_text, "{\"key\": \"scheduler.normalEvery\", \"field\": "
                                    "\"domus_config.scheduler.normal_every\", \"kind\": \"count\", "
                                    "\"minimum\": \"2\", \"maximum\": \"65536\", \"least\": \"2\", "
                                    "\"most\": \"65536\", \"default\": \"4\", \"live\": true}");
    run_tell(&own, &program, 0, (const char *const[]){"--tell", "keys", NULL});
    domt_must_contain(own.out_text, "\"default\": \"lobby,garden\", \"list_max\": 4}");
}

DOMT_TEST(tell_prints_values_with_their_origins)
{
    char path[PATH_MAX], wanted[PATH_MAX + 128];
    domt_program own;
    domt_tree tree;

    domt_tree_make(&tree);
    domt_tree_write(
        &tree, "a.yaml",
        "scheduler:\n  ioRatio: 60\nchat:\n  needed: \"x\"\n  password: \"so secret\"\n");
    snprintf(path, sizeof path, "%s/a.yaml", tree.root);
    run_tell(&own, &program, 0,
             (const char *const[]){"--config", path, "--set", "chat.timeout=5us", "--tell",
                                   "values", NULL});
    ck_assert_str_eq(own.err_text, "");
    domt_must_contain(own.out_text,
                      "{\"tell\": \"values\", \"program\": \"a \\\"b\\\"\", \"right\": true, "
                      "\"keys\": [\n{\"key\": \"system.threads\", \"value\": \"auto\", "
                      "\"origin\": \"default\"},\n");
    snprintf(wanted, sizeof wanted,
             "{\"key\": \"scheduler.ioRatio\", \"value\": \"60\", \"origin\": \"%s:2\"}", path);
    domt_must_contain(own.out_text, wanted);
    domt_must_contain(own.out_text,
                      "{\"key\": \"chat.timeout\", \"value\": \"5us\", \"origin\": \"--set\"}");
    domt_must_contain(own.out_text, "{\"key\": \"chat.password\", \"value\": \"***\"");
    ck_assert_ptr_null(strstr(own.out_text, "so secret"));
    domt_tree_remove_copy(&tree);
}

/* Refuse every configuration of a cluster; the check of a joiner. */
static int refuse_cluster_setup(const domus_cluster_setup *setup, char *error, size_t error_size)
{
    snprintf(error, error_size, "cluster.name: it is refused");
    return -EINVAL;
}

DOMT_TEST(check_tells_faults_of_configuration)
{
    static const domus_joiner joiner = {.check = refuse_cluster_setup};
    static const domus_cluster_member member = {.joiner = &joiner};
    static const struct wrong {
        const char *set;
        const char *error;
    } each[] = {{"scheduler.ioRatio=0", "--set: scheduler.ioRatio: must be auto or 1..100, is 0\n"},
                {"chat.timeout=3us", "chat: three is wrong\n"},
                {"channel.sendLow=1GiB", "channel.sendHigh: must be at least channel.sendLow"}};
    domus_program clustered = program;
    domt_program own;

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        for (int check = 0; check < 2; check++) {
            run_tell(&own, &program, 2,
                     (const char *const[]){"--set", "chat.needed=x", "--set", each[i].set, "--tell",
                                           check ? "check" : "values", NULL});
            domt_must_contain(own.err_text, each[i].error);
            ck_assert_str_eq(own.out_text,
                             check ? "{\"tell\": \"check\", \"program\": \"a \\\"b\\\"\", "
                                     "\"right\": false}\n"
                                   : "{\"tell\": \"values\", \"program\": \"a \\\"b\\\"\", "
                                     "\"right\": false}\n");
        }
    }
    /* `--tell check` checks all that a start checks before it begins, so also the cluster. */
    clustered.cluster = &member;
    const char *const check[] = {"--set", "chat.needed=x", "--tell", "check", NULL};
    const char *const values[] = {"--set", "chat.needed=x", "--tell", "values", NULL};
    run_tell(&own, &clustered, 2, check);
    domt_must_contain(own.err_text, "cluster.name: it is refused");
    domt_must_contain(own.out_text, "\"right\": false");
    run_tell(&own, &clustered, 0, values);
    run_tell(&own, &program, 0, check);
    ck_assert_str_eq(own.out_text,
                     "{\"tell\": \"check\", \"program\": \"a \\\"b\\\"\", \"right\": true}\n");
    ck_assert_str_eq(own.err_text, "");
}

DOMT_TEST(tell_refuses_unknown_words)
{
    static const char *const wrong[] = {"nonsense", "", "key", "keys\x1b"};
    domt_program own;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        run_tell(&own, &program, 2, (const char *const[]){"--tell", wrong[i], NULL});
        domt_must_contain(own.err_text, "--tell takes keys, values or check");
        ck_assert_ptr_null(strchr(own.err_text, '\x1b'));
    }
    run_tell(&own, &program, 2, (const char *const[]){"--tell", NULL});
    domt_must_contain(own.err_text, "its value is missing");
    run_tell(&own, &program, 2, (const char *const[]){"--tell", "keys", "stray", NULL});
}

DOMT_SUITE(60)
