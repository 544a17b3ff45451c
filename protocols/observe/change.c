/* PUT /config/KEY: a key of the configuration that is live changes while the program runs.
 *
 * The value is read as in YAML, put over a copy of what holds now, and the whole is given to the
 * system, which checks it as at a start. Nothing changes unless observe.change allows it. */
#include "protocols/observe/change.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"

#include <domus/config_shown.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE  256 /* bytes of a key, its NUL included */
#define VALUE_SIZE 256 /* and of a value */
#define ERROR_SIZE 512

static const char listeners[] = "listeners.";

typedef const domus_config_key *key_table(size_t row);

static const domus_config_key *find_in(key_table *keys, const char *path)
{
    const domus_config_key *key;

    for (size_t row = 0; (key = keys(row)) != NULL; row++) {
        if (strcmp(key->path, path) == 0)
            return key;
    }
    return NULL;
}

const domus_config_key *domi_observe_find_key(const domus_config *config, const char *path,
                                              size_t *ret_listener)
{
    *ret_listener = SIZE_MAX;
    if (strncmp(path, listeners, sizeof listeners - 1) != 0)
        return find_in(domus_config_key_get, path);
    const char *name = path + sizeof listeners - 1;
    for (size_t i = 0; i < config->listener_count; i++) {
        size_t length = strlen(config->listeners[i].name);
        if (strncmp(name, config->listeners[i].name, length) != 0 || name[length] != '.')
            continue;
        *ret_listener = i;
        return find_in(domus_config_listener_key_get, name + length + 1);
    }
    return NULL;
}

/* Copy a slice as a text; a line end at its end is left out, which shells add. Returns whether it
 * fits and holds no NUL. */
static bool copy_text(domus_slice slice, char *text, size_t size)
{
    size_t length = slice.size;

    if (length >= size)
        return false;
    if (length != 0)
        memcpy(text, domus_slice_data(slice), length);
    while (length != 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    text[length] = '\0';
    return strlen(text) == length;
}

/* Answer with a line that is made here. */
static int say(domus_stack *stack, uint16_t status, const char *what, const char *text)
{
    domus_http_response response = {.status = status, .media = DOMI_OBSERVE_PLAIN};
    domus_appender line = {0};

    (void)domus_append_text(&line, "%s: %s\n", what, text);
    int error = domus_append_end(&line, &response.body);
    return error != 0 ? error : domi_observe_reply(stack, &response);
}

void domi_observe_read_present(domi_present *ret_present)
{
    domus_config *config = &ret_present->config;

    domus_system_config_now(domi_observed.observed, config);
    for (size_t i = 0; i < config->listener_count; i++) {
        ret_present->listeners[i] = config->listeners[i];
        (void)domus_system_channel_options(domi_observed.observed, i,
                                           &ret_present->listeners[i].channel);
    }
    config->listeners = ret_present->listeners;
}

/* Read the value, and let it hold. Answers the request. */
static int change(domus_stack *stack, domi_present *wanted, const domus_config_key *key,
                  size_t listener, const char *path, const char *value)
{
    void *holder = listener == SIZE_MAX ? (void *)&wanted->config : &wanted->listeners[listener];
    char error[ERROR_SIZE] = "", shown[VALUE_SIZE];
    uint64_t number;

    if (domus_config_key_read(key, value, &number, error, sizeof error) != 0 ||
        domus_config_key_put(key, holder, number, NULL, error, sizeof error) != 0)
        return say(stack, 400, path, error);
    int result = domus_system_change(domi_observed.observed, &wanted->config, error, sizeof error);
    if (result < 0)
        return say(stack, result == -EINVAL ? 400 : 503, path, error);
    domus_config_key_write(key, holder, shown, sizeof shown);
    return say(stack, 200, path, shown);
}

int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice slice)
{
    static domi_present wanted; /* the port has one thread */
    char path[PATH_SIZE], value[VALUE_SIZE];
    const domus_config_key *key = NULL;
    size_t listener = SIZE_MAX;

    if (!domi_observe_is_own_page(request))
        return domi_observe_say(stack, 403, "a page of another site may not change anything\n");
    domi_observe_read_present(&wanted);
    if (!wanted.config.observe.may_change)
        return domi_observe_say(stack, 403, "observe.change is false: nothing is changed\n");
    if (copy_text(slice, path, sizeof path))
        key = domi_observe_find_key(&wanted.config, path, &listener);
    if (key == NULL)
        return domi_observe_say(stack, 404, "there is no such key\n");
    if (!key->live)
        return say(stack, 409, path, "it counts at a start");
    if (!copy_text(request->body, value, sizeof value))
        return domi_observe_say(stack, 400, "the body has to be the value\n");
    return change(stack, &wanted, key, listener, path, value);
}
