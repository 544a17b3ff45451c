/* Writes the configuration of a stream as JSON, and reads the status of a stream from the server's
 * JSON. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
/* the smallest max_age of a stream that a server accepts, in ns */
#define AGE_LEAST_NS (SECOND_NS / 10)
/* the server's default of a stream's duplicate_window in ns */
#define WINDOW_NS     (120 * SECOND_NS)
#define REPLICAS_MOST 5u /* the largest number of a stream's replicas that a server accepts */

/* Add the subjects of a text, which has "," between them, to a JSON array. Returns 0; -EINVAL;
 * -ENOMEM. */
static int add_subjects_to_array(const char *text, json_t *array)
{
    for (;;) {
        text += strspn(text, " ");
        size_t size = strcspn(text, " ,");
        if (!domi_js_is_valid_subject(text, size, true))
            return -EINVAL;
        json_t *subject = json_stringn(text, size);
        if (subject == NULL)
            return -EINVAL;
        if (json_array_append_new(array, subject) != 0)
            return -ENOMEM;
        text += size;
        text += strspn(text, " ");
        if (*text == '\0')
            return 0;
        if (*text++ != ',')
            return -EINVAL;
    }
}

static bool is_stream_config_within_limits(const domus_nats_stream_config *config)
{
    const uint64_t numbers[] = {config->messages_max, config->messages_per_subject,
                                config->bytes_max, config->age_max_ns, config->duplicate_window_ns};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i] > INT64_MAX)
            return false;
    }
    return config->replicas <= REPLICAS_MOST && config->message_max <= INT32_MAX &&
           (config->age_max_ns == 0 || config->age_max_ns >= AGE_LEAST_NS) &&
           config->storage <= DOMUS_NATS_MEMORY && config->retention <= DOMUS_NATS_WORKQUEUE;
}

/* Returns a bound of a stream as the server writes it: 0 becomes -1, which means "no bound". */
static json_int_t bound_as_server_writes_it(uint64_t number)
{
    return number != 0 ? (json_int_t)number : -1;
}

static uint64_t choose_duplicate_window(const domus_nats_stream_config *config)
{
    if (config->duplicate_window_ns != 0)
        return config->duplicate_window_ns;
    return config->age_max_ns != 0 && config->age_max_ns < WINDOW_NS ? config->age_max_ns
                                                                     : WINDOW_NS;
}

static int write_stream_config(const char *name, const domus_nats_stream_config *config,
                               json_t *subjects, domus_slice *ret_json)
{
    static const char *const retentions[] = {"limits", "interest", "workqueue"};

    return domi_js_write_json_object(
        ret_json,
        "{s:s, s:s*, s:O, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:b, "
        "s:b}",
        "name", name, "description", config->description, "subjects", subjects, "storage",
        config->storage == DOMUS_NATS_FILE ? "file" : "memory", "retention",
        retentions[config->retention], "discard", config->refuses_new ? "new" : "old",
        "num_replicas", (json_int_t)(config->replicas != 0 ? config->replicas : 1), "max_consumers",
        (json_int_t)-1, "max_msgs", bound_as_server_writes_it(config->messages_max),
        "max_msgs_per_subject", bound_as_server_writes_it(config->messages_per_subject),
        "max_bytes", bound_as_server_writes_it(config->bytes_max), "max_msg_size",
        bound_as_server_writes_it(config->message_max), "max_age", (json_int_t)config->age_max_ns,
        "duplicate_window", (json_int_t)choose_duplicate_window(config), "allow_direct",
        config->allow_direct, "allow_rollup_hdrs", config->allow_rollup, "deny_delete",
        config->deny_delete, "deny_purge", config->deny_purge);
}

int domi_js_write_stream_config(const char *name, const domus_nats_stream_config *config,
                                domus_slice *ret_json)
{
    if (config->subjects == NULL || !is_stream_config_within_limits(config))
        return -EINVAL;
    if (strlen(config->subjects) >= DOMUS_NATS_SUBJECTS_SIZE ||
        (config->description != NULL && strlen(config->description) >= DOMUS_NATS_SUBJECTS_SIZE))
        return -E2BIG;
    json_t *subjects = json_array();
    if (subjects == NULL)
        return -ENOMEM;
    int error = add_subjects_to_array(config->subjects, subjects);
    if (error == 0)
        error = write_stream_config(name, config, subjects, ret_json);
    json_decref(subjects);
    return error;
}

/* Read numbers of the server's JSON into the fields of a stream's status, by a table. */
static int read_numbers_of_stream(const json_t *state, const json_t *config,
                                  domus_nats_stream_status *status)
{
    uint64_t message_max = 0;
    uint64_t replicas = 0;
    const struct {
        const json_t *from;
        const char *name;
        uint64_t *to;
    } rows[] = {
        {state, "messages", &status->messages},
        {state, "bytes", &status->bytes},
        {state, "first_seq", &status->first_sequence},
        {state, "last_seq", &status->last_sequence},
        {state, "consumer_count", &status->consumers},
        {config, "max_msgs", &status->messages_max},
        {config, "max_msgs_per_subject", &status->messages_per_subject},
        {config, "max_bytes", &status->bytes_max},
        {config, "max_age", &status->age_max_ns},
        {config, "max_msg_size", &message_max},
        {config, "num_replicas", &replicas},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int error = domi_js_get_number(rows[i].from, rows[i].name, rows[i].to);
        if (error != 0)
            return error;
    }
    if (message_max > UINT32_MAX || replicas > UINT32_MAX)
        return -EPROTO;
    status->message_max = (uint32_t)message_max;
    status->replicas = (uint32_t)replicas;
    return 0;
}

/* Read a text member of a stream's configuration as its index in a list of words; an unknown word
 * counts as the first. */
static int read_word_of_config(const json_t *config, const char *name, const char *const *words,
                               unsigned *ret_index)
{
    const char *text = NULL;
    size_t size = 0;
    int error = domi_js_get_text(config, name, &text, &size);

    *ret_index = 0;
    for (unsigned i = 0; error == 0 && words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0)
            *ret_index = i;
    }
    return error;
}

static int read_stream_status_from_json(const json_t *json, domus_nats_stream_status *status)
{
    static const char *const storages[] = {"file", "memory", NULL};
    static const char *const retentions[] = {"limits", "interest", "workqueue", NULL};
    const json_t *state = domi_js_get_object(json, "state");
    const json_t *config = domi_js_get_object(json, "config");
    unsigned storage = 0;
    unsigned retention = 0;

    if (state == NULL || config == NULL)
        return -EPROTO;
    int error = read_numbers_of_stream(state, config, status);
    if (error == 0)
        error = read_word_of_config(config, "storage", storages, &storage);
    if (error == 0)
        error = read_word_of_config(config, "retention", retentions, &retention);
    if (error == 0)
        error = domi_js_get_flag(config, "allow_direct", &status->allow_direct);
    status->storage = (domus_nats_storage)storage;
    status->retention = (domus_nats_retention)retention;
    return error;
}

int domi_js_read_stream_status(const domus_answer *answer, domus_nats_stream_status *ret_status)
{
    domus_nats_stream_status status = {0};
    json_t *json = NULL;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    error = read_stream_status_from_json(json, &status);
    json_decref(json);
    if (error == 0)
        *ret_status = status;
    return error;
}
