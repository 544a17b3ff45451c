/* Reads and writes the JSON of JetStream's API, by the library jansson.
 *
 * Jansson takes dozens of bytes for each value, however short its text is, and recurses for each
 * nesting. So the number of values and nestings is bounded before a text is parsed. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 16u

/* Returns the offset behind the quote that ends the JSON string at `at`; `size` if there is no such
 * quote. */
static size_t find_string_end(const char *text, size_t size, size_t at)
{
    for (at++; at < size && text[at] != '"'; at++) {
        if (text[at] == '\\')
            at++;
    }
    return at < size ? at + 1 : size;
}

/* Returns whether a JSON text has not too many values and nestings. A value begins the text, or
 * follows one of the four characters "[", "{", "," and ":". */
static bool is_json_within_limits(const char *text, size_t size)
{
    uint32_t values = 1;
    uint32_t depth = 0;

    for (size_t at = 0; at < size;) {
        char c = text[at];
        if (c == '"') {
            at = find_string_end(text, size, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth != 0)
            depth--;
        if (c == '{' || c == '[' || c == ':' || c == ',')
            values++;
        if (values > DOMUS_NATS_ANSWER_VALUES || depth > NESTING_MAX)
            return false;
    }
    return true;
}

int domi_js_parse_json_object(const char *text, size_t size, size_t size_max, json_t **ret_json)
{
    json_error_t error;

    if (size > size_max || !is_json_within_limits(text, size))
        return -EPROTO;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EPROTO;
    if (!json_is_object(json)) {
        json_decref(json);
        return -EPROTO;
    }
    *ret_json = json;
    return 0;
}

/* Returns the negative errno for the error that an answer of the API contains; 0 if it contains
 * none. */
static int errno_of_error_in_api_answer(const json_t *json)
{
    const json_t *error = json_object_get(json, "error");
    uint64_t number = 0;
    uint64_t status = 0;

    if (error == NULL || json_is_null(error))
        return 0;
    if (!json_is_object(error) || domi_js_get_number(error, "err_code", &number) != 0 ||
        domi_js_get_number(error, "code", &status) != 0)
        return -EPROTO;
    return domi_js_errno_of_api_error(number, status);
}

int domi_js_read_api_answer(const domus_answer *answer, size_t size_max, json_t **ret_json)
{
    json_t *json = NULL;

    if (answer->error != 0)
        return answer->error;
    if (answer->type != &domus_nats_message_type)
        return -EPROTO;
    const domus_nats_message *message = answer->payload;
    if (message->status != 0)
        return domi_js_errno_of_api_error(0, message->status);
    domus_slice payload = domus_nats_payload(message);
    int error = domi_js_parse_json_object(domus_slice_data(payload), payload.size, size_max, &json);
    if (error != 0)
        return error;
    error = errno_of_error_in_api_answer(json);
    if (error != 0) {
        json_decref(json);
        return error;
    }
    *ret_json = json;
    return 0;
}

const json_t *domi_js_get_object(const json_t *json, const char *name)
{
    const json_t *member = json_object_get(json, name);

    return json_is_object(member) ? member : NULL;
}

int domi_js_get_number(const json_t *json, const char *name, uint64_t *ret_number)
{
    const json_t *member = json_object_get(json, name);

    if (member != NULL && !json_is_integer(member))
        return -EPROTO;
    /* json_integer_value() returns 0 if `member` is NULL */
    json_int_t number = json_integer_value(member);
    *ret_number = number > 0 ? (uint64_t)number : 0;
    return 0;
}

int domi_js_get_flag(const json_t *json, const char *name, bool *ret_flag)
{
    const json_t *member = json_object_get(json, name);

    if (member != NULL && !json_is_boolean(member))
        return -EPROTO;
    *ret_flag = json_is_true(member);
    return 0;
}

int domi_js_get_text(const json_t *json, const char *name, const char **ret_text, size_t *ret_size)
{
    const json_t *member = json_object_get(json, name);

    if (member != NULL && !json_is_string(member))
        return -EPROTO;
    *ret_text = member != NULL ? json_string_value(member) : "";
    *ret_size = json_string_length(member); /* json_string_length() returns 0 if `member` is NULL */
    return 0;
}

int domi_js_write_json_object(domus_slice *ret_text, const char *format, ...)
{
    json_error_t why;
    va_list arguments;

    va_start(arguments, format);
    json_t *json = json_vpack_ex(&why, 0, format, arguments);
    va_end(arguments);
    if (json == NULL)
        return json_error_code(&why) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return -ENOMEM;
    int error = domus_slice_copy(text, strlen(text), ret_text);
    free(text);
    return error;
}
