/* CONFIG: the parameters of Redis that have a meaning here, and those that programs usually set.
 * Most settings are in the configuration file, and cannot be changed while the program runs;
 * maxmemory can, and so can the limits below. */
#include "desk.h"
#include "glob.h"
#include "subcommand.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 40u
#define TEXT_BYTES     24u

static char timeout_text[TEXT_BYTES], max_clients_text[TEXT_BYTES];

/* The limits that CONFIG SET changes. Their accesses are relaxed: each limit is a number by itself,
 * and orders nothing. */
static _Atomic int64_t limits[KV_LIMITS] = {
    [KV_VALUE] = INT64_MAX, [KV_HASH_ENTRIES] = 512, [KV_HASH_VALUE] = 64, [KV_LIST_SIZE] = -2,
    [KV_SET_ENTRIES] = 512, [KV_ZSET_ENTRIES] = 128, [KV_ZSET_VALUE] = 64};

int64_t kv_current_limit(enum kv_limit which)
{
    return atomic_load_explicit(&limits[which], memory_order_relaxed);
}

const char *kv_text_of_most_clients(void)
{
    return max_clients_text;
}

enum form {
    FIXED, /* a parameter that can only be set to the one value in `value` */
    COUNT,
    BYTES,
};

static const struct parameter {
    const char *name;
    const char *value; /* the only value of a parameter that is FIXED */
    enum form form;
    enum kv_limit limit;
    int64_t least, most;
} parameters[] = {
    {"appendonly", "no", FIXED, 0, 0, 0},
    {"databases", "1", FIXED, 0, 0, 0},
    {"enable-debug-command", NULL, FIXED, 0, 0, 0},
    {"hash-max-listpack-entries", NULL, COUNT, KV_HASH_ENTRIES, 0, INT64_MAX},
    {"hash-max-listpack-value", NULL, BYTES, KV_HASH_VALUE, 0, INT64_MAX},
    {"hash-max-ziplist-entries", NULL, COUNT, KV_HASH_ENTRIES, 0, INT64_MAX},
    {"hash-max-ziplist-value", NULL, BYTES, KV_HASH_VALUE, 0, INT64_MAX},
    {"list-compress-depth", NULL, COUNT, KV_LIST_DEPTH, 0, INT32_MAX},
    {"list-max-listpack-size", NULL, COUNT, KV_LIST_SIZE, INT32_MIN, INT32_MAX},
    {"list-max-ziplist-size", NULL, COUNT, KV_LIST_SIZE, INT32_MIN, INT32_MAX},
    {"maxclients", max_clients_text, FIXED, 0, 0, 0},
    {"maxmemory", NULL, BYTES, KV_MEMORY, 0, INT64_MAX},
    {"maxmemory-policy", "noeviction", FIXED, 0, 0, 0},
    {"notify-keyspace-events", "", FIXED, 0, 0, 0},
    {"proto-max-bulk-len", NULL, BYTES, KV_VALUE, 1048576, INT64_MAX},
    {"save", "", FIXED, 0, 0, 0},
    {"set-max-intset-entries", NULL, COUNT, KV_SET_ENTRIES, 0, INT64_MAX},
    {"timeout", timeout_text, FIXED, 0, 0, 0},
    {"zset-max-listpack-entries", NULL, COUNT, KV_ZSET_ENTRIES, 0, INT64_MAX},
    {"zset-max-listpack-value", NULL, BYTES, KV_ZSET_VALUE, 0, INT64_MAX},
    {"zset-max-ziplist-entries", NULL, COUNT, KV_ZSET_ENTRIES, 0, INT64_MAX},
    {"zset-max-ziplist-value", NULL, BYTES, KV_ZSET_VALUE, 0, INT64_MAX},
};

#define PARAMETERS (sizeof parameters / sizeof parameters[0])

void kv_config_set_limits_at_start(const domus_config *config)
{
    limits[KV_MEMORY] = (int64_t)kv_settings.memory_max_bytes;
    limits[KV_VALUE] = (int64_t)kv_settings.value_max_bytes;
    snprintf(timeout_text, sizeof timeout_text, "%" PRIu64,
             config->channel.idle_timeout_ns / UINT64_C(1000000000));
    snprintf(max_clients_text, sizeof max_clients_text, "%" PRIu64,
             (uint64_t)config->channel.connections_max);
}

/* Returns the value of a parameter of CONFIG as text: a constant, or a text written to `text`. */
static const char *text_of_parameter_value(const struct parameter *parameter, char text[TEXT_BYTES])
{
    static const char *const debug_words[] = {"no", "local", "yes"};

    if (parameter->value != NULL)
        return parameter->value;
    if (parameter->form == FIXED)
        return debug_words[kv_settings.debug];
    snprintf(text, TEXT_BYTES, "%" PRIi64, kv_current_limit(parameter->limit));
    return text;
}

/* Copy a word to `text` in small letters. Returns the number of bytes; a word that is too long is
 * cut. */
static size_t copy_in_lower_case(domus_slice word, char text[NAME_MAX_BYTES])
{
    size_t size = word.size < NAME_MAX_BYTES - 1 ? word.size : NAME_MAX_BYTES - 1;

    for (size_t i = 0; i < size; i++)
        text[i] = (char)tolower((unsigned char)domus_slice_data(word)[i]);
    text[size] = '\0';
    return size;
}

static bool does_config_get_name_parameter(const domus_resp_command *command, const char *name)
{
    char pattern[NAME_MAX_BYTES];

    for (uint32_t i = 2; i < command->count; i++) {
        size_t size = copy_in_lower_case(domus_resp_argument(command, i), pattern);
        if (kv_matches_pattern(pattern, size, name, strlen(name)))
            return true;
    }
    return false;
}

static int answer_config_get(domus_stack *stack, const domus_resp_command *command)
{
    domus_resp_builder builder = {.version = command->version};
    const struct parameter *end = parameters + PARAMETERS;
    uint32_t count = 0;
    char text[TEXT_BYTES];

    for (const struct parameter *each = parameters; each != end; each++)
        count += does_config_get_name_parameter(command, each->name);
    (void)domus_resp_add_map(&builder, count);
    for (const struct parameter *each = parameters; each != end; each++) {
        if (!does_config_get_name_parameter(command, each->name))
            continue;
        const char *value = text_of_parameter_value(each, text);
        (void)domus_resp_add_bulk(&builder, each->name, strlen(each->name));
        (void)domus_resp_add_bulk(&builder, value, strlen(value));
    }
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* --- changes ---------------------------------------------------------------------------------- */

static const struct parameter *find_parameter(domus_slice word)
{
    char name[NAME_MAX_BYTES];

    (void)copy_in_lower_case(word, name);
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (strcmp(parameters[i].name, name) == 0)
            return &parameters[i];
    }
    return NULL;
}

bool kv_read_bytes_with_unit(domus_slice word, uint64_t *ret_bytes)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1024},
                 {"m", 1000000}, {"mb", 1048576}, {"g", 1000000000}, {"gb", 1073741824}};
    char text[NAME_MAX_BYTES];
    char *end;

    if (copy_in_lower_case(word, text) == 0 || !isdigit((unsigned char)text[0]))
        return false;
    *ret_bytes = strtoull(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(end, units[i].unit) != 0)
            continue;
        if (__builtin_mul_overflow(*ret_bytes, units[i].bytes, ret_bytes))
            *ret_bytes = UINT64_MAX;
        return true;
    }
    return false;
}

/* Read the new value of a parameter from an argument of CONFIG SET. Returns false, with the reason
 * in `ret_why`. */
static bool read_new_value(const struct parameter *parameter, domus_slice value, int64_t *ret_value,
                           domus_resp_error *ret_why)
{
    char text[TEXT_BYTES], number[TEXT_BYTES] = "";
    char *end = number;
    uint64_t bytes = 0;

    if (parameter->form == FIXED) {
        const char *only = text_of_parameter_value(parameter, text);
        *ret_why = domus_resp_error_text("can't set immutable config");
        return domus_slice_equals(value, only, strlen(only));
    }
    errno = 0;
    if (parameter->form == BYTES && !kv_read_bytes_with_unit(value, &bytes)) {
        *ret_why = domus_resp_error_text("argument must be a memory value");
        return false;
    }
    if (parameter->form == COUNT) {
        memcpy(number, domus_slice_data(value), value.size < TEXT_BYTES ? value.size : 0);
        *ret_value = strtoll(number, &end, 10);
        *ret_why = domus_resp_error_text("argument couldn't be parsed into an integer");
        if (end == number || *end != '\0' || isspace((unsigned char)number[0]))
            return false;
    } else {
        *ret_value = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
    }
    int64_t least = parameter->least, most = parameter->most;
    /* The limit on values cannot exceed the one of the configuration, which bounds all
     * arguments. */
    if (parameter->limit == KV_VALUE) {
        most = (int64_t)kv_settings.value_max_bytes;
        least = least < most ? least : most;
    }
    *ret_why = domus_resp_error_text(
        "argument must be between %" PRIi64 " and %" PRIi64 " inclusive", least, most);
    return errno == 0 && bytes <= INT64_MAX && *ret_value >= least && *ret_value <= most;
}

static int refuse_value_of_parameter(domus_stack *stack, const char *name, const char *why)
{
    domus_resp_builder builder = {.version = 2};

    (void)domus_resp_add_error(
        &builder, "ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why);
    return kv_answer_what_builder_has_made(stack, &builder);
}

static int refuse_unknown_parameter(domus_stack *stack, domus_slice word)
{
    domus_resp_error error =
        domus_resp_error_text("ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                              (int)(word.size < 40 ? word.size : 40), domus_slice_data(word));

    return kv_answer_error(stack, error.text);
}

static int answer_ok_if_all_shards_answered(domus_stack *stack, void *self,
                                            const domus_answer *answers)
{
    struct kv_figures sum;
    int error = kv_add_up_answered_figures(answers, &sum);

    (void)self;
    if (error == 0 && sum.silent != 0)
        error = -EHOSTDOWN;
    return error != 0 ? error : kv_answer_ok(stack);
}

/* Send a question about memory to all shards. A transaction does not wait for their answers:
 * commands that it sends to them later come behind. */
static int ask_all_shards_about_memory(domus_stack *stack, const struct kv_question *question)
{
    if (!kv_are_answers_gathered())
        return kv_ask_shards_and_clerks_and_wait(stack, question, answer_ok_if_all_shards_answered);
    int error = kv_ask_shards_and_clerks_only(stack, question);
    return error != 0 ? error : kv_answer_ok(stack);
}

/* Set all parameters that a CONFIG SET names, or none of them. */
static int set_all_parameters_or_none(domus_stack *stack, const domus_resp_command *command)
{
    int64_t values[PARAMETERS];
    bool is_set[PARAMETERS] = {false};
    domus_resp_error why;

    if (command->count % 2 != 0)
        return kv_answer_error(stack, KV_SYNTAX);
    for (uint32_t i = 2; i < command->count; i += 2) {
        const struct parameter *parameter = find_parameter(domus_resp_argument(command, i));
        if (parameter == NULL)
            return refuse_unknown_parameter(stack, domus_resp_argument(command, i));
        size_t at = (size_t)(parameter - parameters);
        if (is_set[at])
            return refuse_value_of_parameter(stack, parameter->name, "duplicate parameter");
        is_set[at] = true;
        if (!read_new_value(parameter, domus_resp_argument(command, i + 1), &values[at], &why))
            return refuse_value_of_parameter(stack, parameter->name, why.text);
    }
    bool is_memory = false;
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (!is_set[i] || parameters[i].form == FIXED)
            continue;
        atomic_store_explicit(&limits[parameters[i].limit], values[i], memory_order_relaxed);
        is_memory = is_memory || parameters[i].limit == KV_MEMORY;
    }
    if (!is_memory)
        return kv_answer_ok(stack);
    struct kv_question question = {KV_LIMIT_MEMORY, kv_memory_max_of_shard()};
    return ask_all_shards_about_memory(stack, &question);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct kv_subcommand subcommands[] = {
    {"get", 3, KV_ANY_NUMBER, "GET <pattern>",
     "    Return parameters matching the glob-like <pattern> and their values."},
    {"set", 4, KV_ANY_NUMBER, "SET <directive> <value>",
     "    Set the configuration <directive> to <value>."},
    {"resetstat", 2, 2, "RESETSTAT", "    Reset statistics reported by the INFO command."},
    {"rewrite", 2, 2, "REWRITE", "    There is no file to rewrite, and so an error."},
    {NULL, 0, 0, NULL, NULL}};

int kv_serve_config(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    struct kv_question reset = {.kind = KV_RESET_FIGURES};
    int result;
    const struct kv_subcommand *row =
        kv_find_subcommand_or_answer_error(stack, command, subcommands, &result);

    if (row == NULL)
        return result;
    session->seat.word = row->name;
    if (strcmp(row->name, "get") == 0)
        return answer_config_get(stack, command);
    if (strcmp(row->name, "set") == 0)
        return set_all_parameters_or_none(stack, command);
    if (strcmp(row->name, "resetstat") == 0)
        return ask_all_shards_about_memory(stack, &reset);
    return kv_answer_error(stack, "ERR The server is running without a config file");
}
