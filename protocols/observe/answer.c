/* Answers of the observation port. The fields of an answer that shows data of the program forbid
 * browsers to guess another media type, and to store the answer. */
#include "protocols/observe/answer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

int domi_observe_answer_with_line(domus_stack *stack, uint16_t status, const char *line)
{
    return domus_reply(stack, &domus_http_text_type,
                       &(domus_http_text){status, DOMI_OBSERVE_PLAIN, line});
}

int domi_observe_reply_or_release_response(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

/* Add the header fields that all answers of the port with data of the program have. */
static void add_nosniff_and_no_store_fields(domus_appender *fields)
{
    (void)domus_http_add(fields, "X-Content-Type-Options", "nosniff");
    (void)domus_http_add(fields, "Cache-Control", "no-store");
}

int domi_observe_begin_body_in_pieces(domus_stack *stack, const char *media, const char *encoding,
                                      domus_resumed *then)
{
    domus_http_response head = {.status = 200, .media = media};
    domus_appender fields = {0};

    add_nosniff_and_no_store_fields(&fields);
    if (encoding != NULL)
        (void)domus_http_add(&fields, "Content-Encoding", encoding);
    int result = domus_append_end(&fields, &head.fields);
    if (result != 0)
        return result;
    result = domus_reply_begin(stack, &domus_http_response_type, &head, then);
    if (result < 0)
        domus_http_response_type.release(&head);
    return result;
}

/* Answer a request with bytes; `disposition` is the value of Content-Disposition, or NULL. */
static int answer_with_bytes(domus_stack *stack, const char *media, const char *disposition,
                             domus_slice body)
{
    domus_http_response response = {.status = 200, .media = media, .body = body};
    domus_appender fields = {0};

    add_nosniff_and_no_store_fields(&fields);
    if (disposition != NULL)
        (void)domus_http_add(&fields, "Content-Disposition", disposition);
    int error = domus_append_end(&fields, &response.fields);
    if (error != 0) {
        domus_slice_free(body);
        return error;
    }
    return domi_observe_reply_or_release_response(stack, &response);
}

int domi_observe_answer_with_bytes(domus_stack *stack, const char *media, domus_slice body)
{
    return answer_with_bytes(stack, media, NULL, body);
}

/* Returns whether a character may be in a file name on any system: a letter, a digit, or one of a
 * few others. */
static bool is_plain_file_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

int domi_observe_answer_with_file(domus_stack *stack, const char *media, const char *suffix,
                                  domus_slice body)
{
    char name[64], disposition[160];

    snprintf(name, sizeof name, "%s", program_invocation_short_name);
    for (char *at = name; *at != '\0'; at++)
        *at = is_plain_file_name_character(*at) ? *at : '_';
    snprintf(disposition, sizeof disposition, "attachment; filename=\"%s-%ld.%s\"", name,
             (long)getpid(), suffix);
    return answer_with_bytes(stack, media, disposition, body);
}

/* --- requests of the port's own pages --------------------------------------------------------- */

static bool is_field_name(domus_slice name, const char *wanted)
{
    return name.size == strlen(wanted) &&
           strncasecmp(domus_slice_data(name), wanted, name.size) == 0;
}

/* Returns whether the origin of a page is the host that the request names. The origin may be https,
 * because a proxy in front of the port may end TLS. "null", the origin of pages that have none, is
 * refused. */
static bool is_origin_of_page_on_own_host(domus_slice origin, domus_slice host)
{
    static const char *const schemes[] = {"http://", "https://"};
    const char *text = domus_slice_data(origin);

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t size = strlen(schemes[i]);
        if (host.size > 0 && origin.size == size + host.size &&
            strncasecmp(text, schemes[i], size) == 0 &&
            strncasecmp(text + size, domus_slice_data(host), host.size) == 0)
            return true;
    }
    return false;
}

bool domi_observe_may_request_change(const domus_http_request *request)
{
    domus_slice host = domus_http_host(request);
    domus_http_line line;
    uint32_t at = 0;

    /* All header fields are checked, so that a second field of the same name cannot hide behind the
     * first. */
    while (domus_http_next(request->fields, &at, &line)) {
        if (is_field_name(line.name, "origin") && !is_origin_of_page_on_own_host(line.value, host))
            return false;
        /* "none" means that the user has typed the address. "same-site" is refused, because a page
         * of the same site may have another port number, and belong to another program. */
        if (is_field_name(line.name, "sec-fetch-site") &&
            !domus_slice_equals(line.value, "same-origin", strlen("same-origin")) &&
            !domus_slice_equals(line.value, "none", strlen("none")))
            return false;
    }
    return true;
}
