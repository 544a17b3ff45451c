/* PUT /config/KEY of the observation port: changes a live key of the configuration while the
 * program runs.
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

#define PATH_SIZE  256 /* bytes of the name of a key, with its zero byte */
#define VALUE_SIZE 256 /* bytes of the value of a key, with its zero byte */
#define ERROR_SIZE 512

/* Copy the value of a request as a text, without the line end that shells add. Returns false if it
 * does not fit or contains a zero byte. */
static bool copy_text_without_line_end(domus_slice slice, char *text, size_t size)
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

/* Answer a request for a change with a line: `what`, and `text` behind it. */
static int answer_with_line_of_changed_key(domus_stack *stack, uint16_t status, const char *what,
                                           const char *text)
{
    domus_http_response response = {.status = status, .media = DOMI_OBSERVE_PLAIN};
    domus_appender line = {0};

    (void)domus_append_text(&line, "%s: %s\n", what, text);
    int error = domus_append_end(&line, &response.body);
    return error != 0 ? error : domi_observe_reply_or_release_response(stack, &response);
}

void domi_observe_copy_current_config(domi_present *ret_present)
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

/* Returns the HTTP status for the errno of a change that has failed. */
static uint16_t http_status_of_errno(int result)
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

/* Returns whether the process may have enough descriptors for so many connections, if the changed
 * key is the number of connections; true for other keys. */
static bool are_descriptors_enough_for_new_value(const char *path, const char *value)
{
    struct rlimit limit;

    return strcmp(path, "channel.maxConnections") != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
           strtoull(value, NULL, 10) < limit.rlim_cur;
}

/* If the changed key is the level of the profile, and a trace has raised that level for its time,
 * store the value as the level that is set at the trace's end. Returns whether that is so. */
static bool store_level_for_trace_end(const char *path, const char *value)
{
    domus_profile_level level;

    if (!domi_observed.is_raised || strcmp(path, "profile.level") != 0)
        return false;
    for (level = DOMUS_PROFILE_OFF; level <= DOMUS_PROFILE_SPANS; level++) {
        if (strcmp(domi_observe_word_of_level(level), value) != 0)
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

    if (!domi_observe_may_request_change(request))
        return domi_observe_answer_with_line(stack, 403,
                                             "a page of another site may not change anything\n");
    if (!domus_system_config(domi_observed.observed)->observe.may_change)
        return domi_observe_answer_with_line(stack, 403,
                                             "observe.change is false: nothing is changed\n");
    if (!copy_text_without_line_end(key, path, sizeof path))
        return domi_observe_answer_with_line(stack, 404, "there is no such key\n");
    if (!copy_text_without_line_end(request->body, value, sizeof value))
        return domi_observe_answer_with_line(stack, 400, "the body has to be the value\n");
    if (!are_descriptors_enough_for_new_value(path, value))
        return answer_with_line_of_changed_key(stack, 400, path,
                                               "this process may not have so many descriptors");
    if (store_level_for_trace_end(path, value))
        return answer_with_line_of_changed_key(stack, 200, path, value);
    int result = domus_system_change_key(domi_observed.observed, path, value, error, sizeof error);
    return result < 0
               ? answer_with_line_of_changed_key(stack, http_status_of_errno(result), path, error)
               : answer_with_line_of_changed_key(stack, 200, path, value);
}
