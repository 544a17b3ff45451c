/* config/tell.c: a program tells its keys and values for --tell, says whether it would start, and
 * starts nothing. tests/system/config_test.c reads the same as JSON. */
#include <domus/main.h>

#include "tests/runtime/program.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct settings {
    uint64_t timeout_ns;
    uint32_t words, workers;
    uint32_t room_count;
    char rooms[4][16];
    char password[32];
    char needed[16];
} settings;

static settings given;

static const char *const word_list[] = {"some", "\"odd\\\"", NULL};

static const domus_config_key keys[] = {
    {DOMUS_KEY("timeout", DURATION, settings, timeout_ns, 1000, UINT64_MAX - 1, 2000),
     .or_zero = true},
    {DOMUS_KEY_WORD("deep.words", settings, words, word_list, 1)},
    {DOMUS_KEY("workers", COUNT, settings, workers, 0, 9, 0), .special = "auto"},
    {DOMUS_KEY_TEXTS("rooms", NAME, settings, rooms, room_count, "lobby,garden")},
    {DOMUS_KEY_TEXT("password", TEXT, settings, password, 0, "")},
    {DOMUS_KEY_TEXT("needed", NAME, settings, needed, 1, NULL)},
    {.path = NULL},
};

static int check_section(const void *values, char *error, size_t error_size)
{
    if (((const settings *)values)->timeout_ns != 3000)
        return 0;
    snprintf(error, error_size, "three is wrong");
    return -EINVAL;
}

static const domus_section section = {
    .name = "chat", .keys = keys, .size = sizeof(settings), .check = check_section};

static int start_nothing(domus_system *system, void *unused)
{
    printf("started\n");
    return -EDOM;
}

static int reload_nothing(domus_system *system, const void *values, void *unused)
{
    return 0;
}

static const domus_program program = {
    .name = "a \"b\"", .start = start_nothing, .section = &section, .settings = &given};

/* Hold what the program says to these arguments, which stands in `out_text` and `err_text`. */
static void tell(domt_program *own, const domus_program *which, int status,
                 const char *const *arguments)
{
    ck_assert_int_eq(domt_program_run(own, which, arguments), status);
    ck_assert_ptr_null(strstr(own->out_text, "started"));
}

DOMT_TEST(keys_are_told_with_their_facts)
{
    static const char *const wanted[] = {
        "{\"tell\": \"keys\", \"program\": \"a \\\"b\\\"\", \"listeners_max\": 64, "
        "\"pools_max\": 16, \"section\": \"chat\",\n\"keys\": [\n{\"key\": \"system.threads\", "
        "\"kind\": \"count\", \"minimum\": \"1\", \"maximum\": \"1024\", \"least\": \"1\", "
        "\"most\": \"1024\", \"default\": \"auto\", \"special\": \"auto\"},\n",
        "{\"key\": \"scheduler.beltSlots\", \"kind\": \"count\", \"minimum\": \"64\", "
        "\"maximum\": \"65536\", \"least\": \"64\", \"most\": \"65536\", \"default\": \"1024\", "
        "\"zero\": true, \"power_of_two\": true",
        "{\"key\": \"cluster.password\", \"kind\": \"text\", \"minimum\": \"0\", "
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
        "\"listeners\": [\n{\"key\": \"name\", \"kind\": \"name\", \"minimum\": \"1\", "
        "\"maximum\": \"63\"}",
        "{\"key\": \"channel.sendHigh\", \"kind\": \"size\", \"minimum\": \"1\", \"maximum\": "
        "\"1073741824\", \"least\": \"1B\", \"most\": \"1GiB\", \"inherits\": true",
        "\"pools\": [\n{\"key\": \"name\"",
    };
    domt_program own;

    tell(&own, &program, 0,
         (const char *const[]){"--tell", "keys", "--config", "/nonexistent", NULL});
    ck_assert_str_eq(own.err_text, "");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        domt_has(own.out_text, wanted[i]);
    ck_assert_str_eq(own.out_text + own.out_length - 4, "}]}\n");
}

/* Each key is told once in each way in which it can be written. */
DOMT_TEST(every_key_is_told)
{
    const domus_config_key *key;
    domt_program own;
    char wanted[128];

    tell(&own, &program, 0, (const char *const[]){"--tell", "keys", NULL});
    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++) {
        snprintf(wanted, sizeof wanted, "{\"key\": \"%s\", \"kind\":", key->path);
        domt_has(own.out_text, wanted);
    }
    domt_has(own.out_text, "\"chat.deep.words\"");
}

/* A section counts as live if the program takes it in a reload. */
DOMT_TEST(section_of_a_program_that_reloads_is_live)
{
    domus_program reloading = program;
    domt_program own;

    reloading.reload = reload_nothing;
    tell(&own, &reloading, 0, (const char *const[]){"--tell", "keys", NULL});
    domt_has(own.out_text, "\"default\": \"lobby,garden\", \"list_max\": 4, \"live\": true}");
    domt_has(own.out_text, "{\"key\": \"scheduler.normalEvery\", \"kind\": \"count\", "
                           "\"minimum\": \"2\", \"maximum\": \"65536\", \"least\": \"2\", "
                           "\"most\": \"65536\", \"default\": \"4\", \"live\": true}");
    tell(&own, &program, 0, (const char *const[]){"--tell", "keys", NULL});
    domt_has(own.out_text, "\"default\": \"lobby,garden\", \"list_max\": 4}");
}

DOMT_TEST(values_are_told_with_their_origins)
{
    char path[PATH_MAX], wanted[PATH_MAX + 128];
    domt_program own;
    domt_tree tree;

    domt_tree_make(&tree);
    domt_tree_write(
        &tree, "a.yaml",
        "scheduler:\n  ioRatio: 60\nchat:\n  needed: \"x\"\n  password: \"so secret\"\n");
    snprintf(path, sizeof path, "%s/a.yaml", tree.root);
    tell(&own, &program, 0,
         (const char *const[]){"--config", path, "--set", "chat.timeout=5us", "--tell", "values",
                               NULL});
    ck_assert_str_eq(own.err_text, "");
    domt_has(own.out_text, "{\"tell\": \"values\", \"program\": \"a \\\"b\\\"\", \"right\": true, "
                           "\"keys\": [\n{\"key\": \"system.threads\", \"value\": \"auto\", "
                           "\"origin\": \"default\"},\n");
    snprintf(wanted, sizeof wanted,
             "{\"key\": \"scheduler.ioRatio\", \"value\": \"60\", \"origin\": \"%s:2\"}", path);
    domt_has(own.out_text, wanted);
    domt_has(own.out_text,
             "{\"key\": \"chat.timeout\", \"value\": \"5us\", \"origin\": \"--set\"}");
    domt_has(own.out_text, "{\"key\": \"chat.password\", \"value\": \"***\"");
    ck_assert_ptr_null(strstr(own.out_text, "so secret"));
    domt_tree_remove(&tree);
}

/* A cluster that refuses each configuration. */
static int refuse_cluster(const domus_cluster_setup *setup, char *error, size_t error_size)
{
    snprintf(error, error_size, "cluster.name: it is refused");
    return -EINVAL;
}

DOMT_TEST(wrong_configurations_are_told)
{
    static const domus_joiner joiner = {.check = refuse_cluster};
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
            tell(&own, &program, 2,
                 (const char *const[]){"--set", "chat.needed=x", "--set", each[i].set, "--tell",
                                       check ? "check" : "values", NULL});
            domt_has(own.err_text, each[i].error);
            ck_assert_str_eq(own.out_text,
                             check ? "{\"tell\": \"check\", \"program\": \"a \\\"b\\\"\", "
                                     "\"right\": false}\n"
                                   : "{\"tell\": \"values\", \"program\": \"a \\\"b\\\"\", "
                                     "\"right\": false}\n");
        }
    }
    /* check looks at all that a start looks at before it begins */
    clustered.cluster = &member;
    const char *const check[] = {"--set", "chat.needed=x", "--tell", "check", NULL};
    const char *const values[] = {"--set", "chat.needed=x", "--tell", "values", NULL};
    tell(&own, &clustered, 2, check);
    domt_has(own.err_text, "cluster.name: it is refused");
    domt_has(own.out_text, "\"right\": false");
    tell(&own, &clustered, 0, values);
    tell(&own, &program, 0, check);
    ck_assert_str_eq(own.out_text,
                     "{\"tell\": \"check\", \"program\": \"a \\\"b\\\"\", \"right\": true}\n");
    ck_assert_str_eq(own.err_text, "");
}

DOMT_TEST(only_some_words_can_be_told)
{
    static const char *const wrong[] = {"nonsense", "", "key", "keys\x1b"};
    domt_program own;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tell(&own, &program, 2, (const char *const[]){"--tell", wrong[i], NULL});
        domt_has(own.err_text, "--tell takes keys, values or check");
        ck_assert_ptr_null(strchr(own.err_text, '\x1b'));
    }
    tell(&own, &program, 2, (const char *const[]){"--tell", NULL});
    domt_has(own.err_text, "its value is missing");
    tell(&own, &program, 2, (const char *const[]){"--tell", "keys", "stray", NULL});
}

DOMT_SUITE(60)
