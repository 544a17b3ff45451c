/* CONFIG: the parameters of Redis that mean something here. All but maxmemory stand in the file of
 * the configuration, and cannot be changed while the program runs. */
#include "desk.h"
#include "glob.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 40u

static char timeout_text[24], max_clients_text[24];

/* A parameter: its only value, or one that is written when it is asked for. */
static const struct parameter {
    const char *name;
    const char *value; /* NULL: that of maxmemory */
} parameters[] = {
    {"appendonly", "no"},
    {"databases", "1"},
    {"maxclients", max_clients_text},
    {"maxmemory", NULL},
    {"maxmemory-policy", "noeviction"},
    {"notify-keyspace-events", ""},
    {"proto-max-bulk-len", "536870912"},
    {"save", ""},
    {"timeout", timeout_text},
};

void kv_config_begin(const domus_config *config)
{
    snprintf(timeout_text, sizeof timeout_text, "%" PRIu64,
             config->channel.idle_timeout_ns / UINT64_C(1000000000));
    snprintf(max_clients_text, sizeof max_clients_text, "%" PRIu64,
             (uint64_t)config->channel.connections_max);
}

static const char *value_of(const struct parameter *parameter, char text[24])
{
    if (parameter->value != NULL)
        return parameter->value;
    snprintf(text, 24, "%" PRIu64, kv_memory_max());
    return text;
}

/* Write a word in small letters. Returns its bytes; one that is too long is cut. */
static size_t lower(domus_slice word, char text[NAME_MAX_BYTES])
{
    size_t size = word.size < NAME_MAX_BYTES - 1 ? word.size : NAME_MAX_BYTES - 1;

    for (size_t i = 0; i < size; i++)
        text[i] = (char)tolower((unsigned char)domus_slice_data(word)[i]);
    text[size] = '\0';
    return size;
}

static bool is_asked_for(const domus_resp_command *command, const char *name)
{
    char pattern[NAME_MAX_BYTES];

    for (uint32_t i = 2; i < command->count; i++) {
        size_t size = lower(domus_resp_argument(command, i), pattern);
        if (kv_glob(pattern, size, name, strlen(name)))
            return true;
    }
    return false;
}

static int get(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    const struct parameter *end = parameters + sizeof parameters / sizeof parameters[0];
    uint32_t count = 0;
    char text[24];

    for (const struct parameter *each = parameters; each != end; each++)
        count += is_asked_for(command, each->name);
    (void)domus_resp_add_map(&builder, count);
    for (const struct parameter *each = parameters; each != end; each++) {
        if (!is_asked_for(command, each->name))
            continue;
        const char *value = value_of(each, text);
        (void)domus_resp_add_bulk(&builder, each->name, strlen(each->name));
        (void)domus_resp_add_bulk(&builder, value, strlen(value));
    }
    return kv_reply(stack, &builder);
}

/* --- changes ---------------------------------------------------------------------------------- */

static const struct parameter *find(domus_slice word)
{
    char name[NAME_MAX_BYTES];

    (void)lower(word, name);
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        if (strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    }
    return NULL;
}

/* Read bytes with a unit: 100, 100k, 100mb; kb, mb and gb are powers of 1024, k, m and g of 1000.
 */
static bool read_bytes(domus_slice word, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1024},
                 {"m", 1000000}, {"mb", 1048576}, {"g", 1000000000}, {"gb", 1073741824}};
    char text[NAME_MAX_BYTES];
    char *end;

    if (lower(word, text) == 0 || !isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *ret_bytes = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) == 0)
            return errno == 0 && !__builtin_mul_overflow(*ret_bytes, units[i].bytes, ret_bytes);
    }
    return false;
}

static int refuse(domus_stack *stack, const char *name, const char *why)
{
    domus_resp_error error = domus_resp_error_text(
        "ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why);

    return kv_error(stack, error.text);
}

static int answer_changed(domus_stack *stack, void *self, const domus_answer *answers)
{
    struct kv_figures sum;
    int error = kv_figures_sum(answers, &sum);

    (void)self;
    return error != 0 ? error : kv_ok(stack);
}

/* Take all pairs, or none of them. */
static int set(domus_stack *stack, const domus_resp_command *command)
{
    uint64_t memory_max = kv_memory_max();
    bool changes = false;

    for (uint32_t i = 2; i + 1 < command->count; i += 2) {
        domus_slice word = domus_resp_argument(command, i);
        domus_slice value = domus_resp_argument(command, i + 1);
        const struct parameter *parameter = find(word);
        if (parameter == NULL) {
            domus_resp_error error = domus_resp_error_text(
                "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                (int)(word.size < 40 ? word.size : 40), domus_slice_data(word));
            return kv_error(stack, error.text);
        }
        if (parameter->value == NULL && !read_bytes(value, &memory_max))
            return refuse(stack, parameter->name, "argument must be a memory value");
        if (parameter->value != NULL &&
            !domus_slice_equals(value, parameter->value, strlen(parameter->value)))
            return refuse(stack, parameter->name, "can't set immutable config");
        changes = changes || parameter->value == NULL;
    }
    if (!changes)
        return kv_ok(stack);
    kv_set_memory_max(memory_max);
    struct kv_question question = {KV_LIMIT_MEMORY, kv_memory_max_of_shard()};
    return kv_ask_all(stack, &question, answer_changed);
}

int kv_serve_config(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    domus_slice word = domus_resp_argument(command, 1);
    struct kv_question reset = {.kind = KV_RESET_FIGURES};
    static const char *const known[] = {"GET", "SET", "RESETSTAT", "REWRITE", NULL};

    (void)self;
    if (domus_resp_is(word, "GET") && command->count > 2)
        return get(stack, command);
    if (domus_resp_is(word, "SET") && command->count > 3 && command->count % 2 == 0)
        return set(stack, command);
    if (domus_resp_is(word, "RESETSTAT") && command->count == 2)
        return kv_ask_all(stack, &reset, answer_changed);
    if (domus_resp_is(word, "REWRITE") && command->count == 2)
        return kv_error(stack, "ERR The server is running without a config file");
    return kv_refuse_word(stack, "CONFIG", word, known);
}
