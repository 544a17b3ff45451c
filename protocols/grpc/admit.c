/* Looks at an HTTP request before it becomes a call of gRPC: whether it is gRPC, for which method,
 * how its messages are compressed, and how much time it has. */
#include "protocols/grpc/grpc.h"

#include <domus/channel.h>
#include <domus/inner.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DIGITS_MAX 8u

/* --- fields ----------------------------------------------------------------------------------- */

static bool is_slice_equal_to_text(domus_slice slice, const char *text)
{
    return domus_slice_equals(slice, text, strlen(text));
}

/* Returns whether the request's content type is "application/grpc", alone or with a format or
 * parameters behind it. */
static bool is_content_type_of_grpc(const domus_http_request *request)
{
    static const char media[] = "application/grpc";
    const size_t size = sizeof media - 1;
    domus_slice type;

    if (!domus_http_field(request->fields, "content-type", &type) || type.size < size ||
        memcmp(domus_slice_data(type), media, size) != 0)
        return false;
    char behind = type.size > size ? domus_slice_data(type)[size] : ';';
    return behind == '+' || behind == ';' || behind == ' ';
}

/* Returns whether a list of encodings, the value of a field, has gzip. */
static bool is_gzip_in_list_of_encodings(domus_slice list)
{
    const char *bytes = domus_slice_data(list);

    for (size_t at = 0; at < list.size;) {
        const char *comma = memchr(bytes + at, ',', list.size - at);
        size_t end = comma != NULL ? (size_t)(comma - bytes) : list.size;
        size_t next = end + 1;
        while (at < end && bytes[at] == ' ')
            at++;
        while (end > at && bytes[end - 1] == ' ')
            end--;
        if (end - at == 4 && memcmp(bytes + at, "gzip", 4) == 0)
            return true;
        at = next;
    }
    return false;
}

/* Read the field "grpc-timeout": digits and a unit. Returns 0, with 0 ns if there is no such field;
 * -EINVAL. */
static int read_field_grpc_timeout(domus_slice fields, uint64_t *ret_ns)
{
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {{'H', UINT64_C(3600000000000)},
                 {'M', UINT64_C(60000000000)},
                 {'S', 1000000000},
                 {'m', 1000000},
                 {'u', 1000},
                 {'n', 1}};
    domus_slice value;
    uint64_t number = 0;

    *ret_ns = 0;
    if (!domus_http_field(fields, "grpc-timeout", &value))
        return 0;
    if (value.size < 2 || value.size > TIMEOUT_DIGITS_MAX + 1)
        return -EINVAL;
    const char *bytes = domus_slice_data(value);
    for (uint32_t i = 0; i + 1 < value.size; i++) {
        if (bytes[i] < '0' || bytes[i] > '9')
            return -EINVAL;
        number = number * 10 + (uint64_t)(bytes[i] - '0');
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].unit == bytes[value.size - 1]) {
            bool is_endless = number > UINT64_MAX / 2 / units[i].ns;
            *ret_ns = is_endless ? UINT64_MAX / 2 : number * units[i].ns;
            /* a time of 0 ns becomes 1 ns, because a due time of 0 means that the call has no
             * bound */
            *ret_ns += *ret_ns == 0;
            return 0;
        }
    }
    return -EINVAL;
}

/* --- requests --------------------------------------------------------------------------------- */

static const domus_grpc_method *find_method_by_path(const domus_grpc_service *service,
                                                    domus_slice path)
{
    for (const domus_grpc_method *method = service->methods; method->path != NULL; method++) {
        if (is_slice_equal_to_text(path, method->path))
            return method;
    }
    return NULL;
}

/* Returns whether the request is a call of gRPC at all; if not, fills in the refusal. */
static bool is_request_a_grpc_call_or_refused(domus_stack *stack, const domus_http_request *request,
                                              domi_grpc_refusal *refusal)
{
    const domus_channel *channel = domus_channel_running(stack);

    *refusal = (domi_grpc_refusal){.http = 0};
    if (channel == NULL || !domus_channel_is_inner(channel))
        *refusal = (domi_grpc_refusal){.http = 505, .text = "gRPC is spoken over HTTP/2 alone.\n"};
    else if (request->method != DOMUS_HTTP_POST)
        *refusal = (domi_grpc_refusal){.http = 405, .text = "Calls of gRPC are POST requests.\n"};
    else if (!is_content_type_of_grpc(request))
        *refusal = (domi_grpc_refusal){.http = 415,
                                       .text = "The Content-Type of gRPC is application/grpc.\n"};
    return refusal->http == 0;
}

/* Read from the request's fields how the client's messages are compressed, and whether it accepts
 * gzip. Returns false for a compression that the service does not support. */
static bool read_encodings_of_messages(domus_slice fields, domi_grpc_inside *inside)
{
    domus_slice value;

    if (domus_http_field(fields, "grpc-encoding", &value)) {
        inside->reader.unpacks = is_slice_equal_to_text(value, "gzip");
        if (!inside->reader.unpacks && !is_slice_equal_to_text(value, "identity"))
            return false;
    }
    inside->packs = inside->service->pack_least != 0 &&
                    domus_http_field(fields, "grpc-accept-encoding", &value) &&
                    is_gzip_in_list_of_encodings(value);
    return true;
}

/* Fill in the call from the request's fields. Returns 0; 1 if the request is refused; a negative
 * errno. */
static int fill_call_from_request(domus_stack *stack, const domus_http_request *request,
                                  domi_grpc_inside *inside, domi_grpc_refusal *refusal)
{
    uint64_t most = inside->service->timeout_ns;
    uint64_t timeout;

    inside->method = find_method_by_path(inside->service, domus_http_path(request));
    if (inside->method == NULL) {
        *refusal = (domi_grpc_refusal){.status = DOMUS_GRPC_UNIMPLEMENTED,
                                       .text = "There is no method ",
                                       .path = domus_http_path(request)};
        return 1;
    }
    if (read_field_grpc_timeout(request->fields, &timeout) != 0) {
        *refusal = (domi_grpc_refusal){.status = DOMUS_GRPC_INTERNAL,
                                       .text = "The field grpc-timeout is wrong."};
        return 1;
    }
    if (!read_encodings_of_messages(request->fields, inside)) {
        *refusal = (domi_grpc_refusal){.status = DOMUS_GRPC_UNIMPLEMENTED,
                                       .text = "The encoding of messages is not known."};
        return 1;
    }
    if (most != 0 && (timeout == 0 || timeout > most))
        timeout = most;
    inside->due_ns = timeout != 0 ? domus_now_ns(stack) + timeout : 0;
    inside->body = request->stream;
    int error = domus_slice_keep(request->body, &inside->reader.piece);
    return error != 0 ? error : domus_reply_stream(stack, &inside->stream);
}

int domi_grpc_make_call_of_request(domus_stack *stack, const domus_http_request *request,
                                   const domus_grpc_service *service, domi_grpc_inside **ret_inside,
                                   domi_grpc_refusal *ret_refusal)
{
    const uint32_t most = DOMUS_SLICE_MAX - DOMI_GRPC_PREFIX;

    if (service->methods == NULL || service->message_max > most)
        return -EINVAL;
    if (!is_request_a_grpc_call_or_refused(stack, request, ret_refusal))
        return 1;
    domi_grpc_inside *inside = calloc(1, sizeof *inside);
    if (inside == NULL)
        return -ENOMEM;
    inside->owners = 1;
    inside->service = service;
    inside->reader.max = service->message_max != 0 ? service->message_max : DOMI_GRPC_MESSAGE_MAX;
    int result = fill_call_from_request(stack, request, inside, ret_refusal);
    if (result != 0) {
        domi_grpc_free_call_if_last_owner(inside);
        return result;
    }
    *ret_inside = inside;
    return 0;
}
