/* Reads lines of the doctor's advice, such as "scheduler: {steal: {floor: 2}, ioRatio: 50}", and
 * checks them. */
#include "tests/observe/advice.h"
#include "tests/support/suite.h"

#include <domus/config.h>

#include <stdio.h>
#include <string.h>

#define PATH_SIZE 128
/* key whose value a look has as `delays`; the key's default is true */
#define NO_DELAY "channel.socket.noDelay"

/* The keys that a rule of the doctor advises to lower; all other keys are raised. "" means any
 * rule. */
static const struct {
    const char *rule, *key;
} lowered[] = {
    {"io-starves-state", "scheduler.ioRatio"},
    {"", "scheduler.minBudget"},
    {"", "scheduler.minBudgetBusy"},
    {"", "channel.firstByteTimeout"},
    {"", "scheduler.maxBudget"},
    {"", "scheduler.waitMax"},
    {"", "scheduler.maxMessagesPerRun"},
    {"", "scheduler.steal.floor"},
    {"", "scheduler.steal.aggression"},
    {"", "scheduler.idle.standIn"},
    {"", "channel.sendHigh"},
    {"", "channel.sendTimeout"},
    {"memory-critical", "scheduler.mailboxMax"},
    {"memory-high", "scheduler.mailboxMax"},
    {"files-full", "channel.maxConnections"},
    {"", "log.level"},
};

static bool should_key_be_lowered(const char *rule, const char *key)
{
    for (size_t i = 0; i < sizeof lowered / sizeof lowered[0]; i++) {
        if ((lowered[i].rule[0] == '\0' || strcmp(lowered[i].rule, rule) == 0) &&
            strcmp(lowered[i].key, key) == 0)
            return true;
    }
    return false;
}

/* Read the value of a key as the key's row in the configuration reads it. */
static uint64_t read_value_of_key(const char *path, const char *value)
{
    static domus_config config;
    const domus_config_key *key;
    uint64_t number;
    char error[256] = "no such key";

    domus_config_init(&config);
    for (size_t i = 0; (key = domus_config_key_get(i)) != NULL; i++) {
        if (strcmp(key->path, path) == 0 &&
            domus_config_key_read(key, value, &number, error, sizeof error) == 0 &&
            domus_config_key_put(key, &config, number, value, error, sizeof error) == 0)
            return number;
    }
    ck_abort_msg("%s: %s: %s", path, value, error);
}

/* Returns a number by which values of a key can be compared: an ioRatio of 100 gives state
 * actors no deadline and counts as 0, and a sendTimeout of 0 never ends and counts as the
 * largest number. */
static uint64_t make_value_comparable(const char *path, uint64_t number)
{
    if (strcmp(path, "scheduler.ioRatio") == 0 && number == 100)
        return 0;
    return strcmp(path, "channel.sendTimeout") == 0 && number == 0 ? UINT64_MAX : number;
}

static void check_advised_value_of_key(const char *rule, const char *path, const char *value,
                                       const domi_look_settings *now)
{
    uint64_t wanted = make_value_comparable(path, read_value_of_key(path, value));
    domi_look_settings settings = *now;
    bool is_known = strcmp(path, "system.threads") == 0 || strcmp(path, NO_DELAY) == 0;

    for (size_t i = 0; domi_look_setting_names[i] != NULL; i++) {
        if (strcmp(domi_look_setting_names[i], path) != 0 || strcmp(path, "io.backend") == 0 ||
            strcmp(path, "memory.limit") == 0)
            continue;
        is_known = true;
        uint64_t present =
            make_value_comparable(path, *domi_look_figure_at_place_of_group(&settings, i));
        ck_assert_msg(should_key_be_lowered(rule, path) ? wanted < present : wanted > present,
                      "%s: %s: %s, which is no help", rule, path, value);
    }
    ck_assert_msg(is_known || strcmp(path, "io.backend") == 0 || strcmp(path, "memory.limit") == 0,
                  "%s: %s is no setting of a look", rule, path);
}

/* Check the keys of a map of YAML against their present values. Returns the place behind the end of
 * the map. */
static const char *check_keys_of_yaml_map(const char *rule, const char *section, const char *at,
                                          const domi_look_settings *now)
{
    while (*at != '\0' && *at != '}') {
        char path[PATH_SIZE], value[64];
        size_t name = strcspn(at, ":");
        ck_assert_msg(at[name] == ':' && at[name + 1] == ' ', "%s: %s", rule, at);
        snprintf(path, sizeof path, "%s%s%.*s", section, section[0] != '\0' ? "." : "", (int)name,
                 at);
        at += name + 2;
        if (*at == '{') {
            at = check_keys_of_yaml_map(rule, path, at + 1, now);
        } else {
            size_t size = strcspn(at, ",}");
            snprintf(value, sizeof value, "%.*s", (int)size, at);
            check_advised_value_of_key(rule, path, value, now);
            at += size;
        }
        at += strspn(at, ", ");
    }
    return *at == '}' ? at + 1 : at;
}

void domt_advice_check_keys(const domi_finding *finding, const domi_look_settings *now)
{
    char lines[DOMI_FINDING_TEXT];
    char *rest = NULL;

    snprintf(lines, sizeof lines, "%s", finding->change);
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] != '#')
            ck_assert_msg(*check_keys_of_yaml_map(finding->rule->name, "", line, now) == '\0', "%s",
                          line);
    }
}
