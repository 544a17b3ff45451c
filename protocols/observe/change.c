/* PUT /config/KEY: changes a live key of the configuration while the program runs.
 *
 * The system parses the value as in YAML and checks it as at a start. Nothing can be changed unless
 * observe.change allows it. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"

#include <domus/config_shown.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PATH_SIZE  256 /* bytes of a key, with its zero */
#define VALUE_SIZE 256 /* bytes of a value, with its zero */
#define ERROR_SIZE 512

/* Copy a slice as a text, without a line end at its end, which shells add. Returns false if it does
 * not fit or contains a zero. */
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

/* Answer with a line that is formatted here. */
static int answer_with_line(domus_stack *stack, uint16_t status, const char *what, const char *text)
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

/* Returns the HTTP status for a change that has failed. */
static uint16_t status_of(int result)
{
    switch (result) {
    case -EINVAL:
        return 400;
    case -ENOENT:
        return 404;
    case -EPERM:
        return 409;
    default:
        return 503;
    }
}

/* Returns whether there are enough descriptors for so many connections, if the key is their
 * number. */
static bool has_room(const char *path, const char *value)
{
    struct rlimit limit;

    return strcmp(path, "channel.maxConnections") != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
           strtoull(value, NULL, 10) < limit.rlim_cur;
}

/* If a trace has raised the level, store the level that is set at its end instead. Returns whether
 * the key was this one. */
static bool store_level_for_trace_end(const char *path, const char *value)
{
    domus_profile_level level;

    if (!domi_observed.is_raised || strcmp(path, "profile.level") != 0)
        return false;
    for (level = DOMUS_PROFILE_OFF; level <= DOMUS_PROFILE_SPANS; level++) {
        if (strcmp(domi_observe_level_name(level), value) != 0)
            continue;
        domi_observed.level_before = level;
        return true;
    }
    return false;
}

int domi_observe_serve_change(domus_stack *stack, const domus_http_request *request,
                              domus_slice key)
{
    char path[PATH_SIZE], value[VALUE_SIZE], error[ERROR_SIZE] = "";

    if (!domi_observe_is_own_page(request))
        return domi_observe_say(stack, 403, "a page of another site may not change anything\n");
    if (!domus_system_config(domi_observed.observed)->observe.may_change)
        return domi_observe_say(stack, 403, "observe.change is false: nothing is changed\n");
    if (!copy_text(key, path, sizeof path))
        return domi_observe_say(stack, 404, "there is no such key\n");
    if (!copy_text(request->body, value, sizeof value))
        return domi_observe_say(stack, 400, "the body has to be the value\n");
    if (!has_room(path, value))
        return answer_with_line(stack, 400, path, "this process may not have so many descriptors");
    if (store_level_for_trace_end(path, value))
        return answer_with_line(stack, 200, path, value);
    int result = domus_system_change_key(domi_observed.observed, path, value, error, sizeof error);
    return result < 0 ? answer_with_line(stack, status_of(result), path, error)
                      : answer_with_line(stack, 200, path, value);
}
