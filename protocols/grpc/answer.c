/* Makes the HTTP answers that end calls of gRPC: status and text are fields (trailers) behind the
 * messages, or, if there are no messages, fields of the only head. */
#include "protocols/grpc/grpc.h"

#include "protocols/grpc/gzip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- frames ----------------------------------------------------------------------------------- */

static void put_flag_and_size_before_message(char *to, bool is_packed, uint32_t size)
{
    to[0] = (char)is_packed;
    to[1] = (char)(size >> 24);
    to[2] = (char)(size >> 16);
    to[3] = (char)(size >> 8);
    to[4] = (char)size;
}

int domus_grpc_frame(domus_slice message, domus_slice *ret_frame)
{
    domus_appender frame = {0};
    char prefix[DOMI_GRPC_PREFIX];

    if (message.size > DOMUS_SLICE_MAX - DOMI_GRPC_PREFIX)
        return -EMSGSIZE;
    put_flag_and_size_before_message(prefix, false, message.size);
    if (domus_append_room(&frame, (size_t)message.size + sizeof prefix) != NULL)
        (void)domus_append(&frame, prefix, sizeof prefix);
    (void)domus_append(&frame, domus_slice_data(message), message.size);
    return domus_append_end(&frame, ret_frame);
}

int domi_grpc_make_frame_of_message(const domi_grpc_inside *inside, domus_slice message,
                                    domus_slice *ret_frame)
{
    domus_appender frame = {0};
    char prefix[DOMI_GRPC_PREFIX] = {0};

    if (!inside->packs || message.size < inside->service->pack_least ||
        message.size > DOMUS_GRPC_PACK_MAX)
        return domus_grpc_frame(message, ret_frame);
    int error = domus_append(&frame, prefix, sizeof prefix);
    if (error == 0)
        error = domi_grpc_compress_message(message, &frame);
    /* compression does not make the message smaller, so it is sent uncompressed */
    if (error != 0) {
        domus_append_drop(&frame);
        return domus_grpc_frame(message, ret_frame);
    }
    put_flag_and_size_before_message(prefix, true, frame.size - DOMI_GRPC_PREFIX);
    error = domus_append_end(&frame, ret_frame);
    if (error == 0) /* nobody else has seen the page of the frame yet, so it may still be written */
        memcpy((char *)(uintptr_t)domus_slice_data(*ret_frame), prefix, sizeof prefix);
    return error;
}

/* --- fields ----------------------------------------------------------------------------------- */

/* Returns the size to which the text of a call's status is cut, at the end of a character of
 * UTF-8. */
static uint32_t size_of_status_text_cut_at_character(domus_slice text)
{
    const char *bytes = domus_slice_data(text);
    uint32_t size = text.size;

    if (size <= DOMUS_GRPC_TEXT_MAX)
        return size;
    size = DOMUS_GRPC_TEXT_MAX;
    while (size != 0 && ((unsigned char)bytes[size] & 0xc0) == 0x80)
        size--;
    return size;
}

/* Append the text of a call's status; '%' and bytes that a field cannot have are escaped. */
static void append_escaped_status_text(domus_appender *to, domus_slice text)
{
    static const char digits[] = "0123456789ABCDEF";
    const char *bytes = domus_slice_data(text);
    uint32_t size = size_of_status_text_cut_at_character(text);

    for (uint32_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        const char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
        bool is_plain = byte >= ' ' && byte < 0x7f && byte != '%';
        /* the value of a field has no spaces at its ends, so spaces there are escaped */
        is_plain = is_plain && (byte != ' ' || (i != 0 && i + 1 != size));
        (void)domus_append(to, is_plain ? &bytes[i] : escape, is_plain ? 1 : sizeof escape);
    }
}

/* Append the fields that end a call: its status, and the text of the status. */
static void append_status_and_text_of_call(domus_appender *to, const domus_grpc_answer *answer)
{
    char line[32];
    int size = snprintf(line, sizeof line, "grpc-status: %u\r\n", (unsigned)answer->status);

    (void)domus_append(to, line, (size_t)size);
    if (answer->text.size != 0) {
        (void)domus_append(to, "grpc-message: ", 14);
        append_escaped_status_text(to, answer->text);
        (void)domus_append(to, "\r\n", 2);
    }
    (void)domus_append(to, domus_slice_data(answer->trailers), answer->trailers.size);
}

int domi_grpc_make_head_of_stream(const domi_grpc_inside *inside, domus_slice metadata,
                                  domus_http_response *ret_response)
{
    static const char encoding[] = "grpc-encoding: gzip\r\n";
    domus_http_response head = {.status = 200, .media = DOMI_GRPC_MEDIA, .fields = metadata};
    int error = domi_grpc_check_metadata(metadata);

    if (error == 0 && inside->packs) {
        domus_appender fields = {0};
        (void)domus_append(&fields, encoding, sizeof encoding - 1);
        (void)domus_append(&fields, domus_slice_data(metadata), metadata.size);
        error = domus_append_end(&fields, &head.fields);
        if (error == 0)
            domus_slice_free(metadata);
    }
    if (error != 0) {
        domus_slice_free(metadata);
        return error;
    }
    *ret_response = head;
    return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

static int reply_with_http_response(domus_stack *stack, domus_http_response *response)
{
    int error = domus_reply(stack, &domus_http_response_type, response);

    if (error != 0)
        domus_http_response_type.release(response);
    return error;
}

/* End a call of which no message was sent, by an answer that is only a head with `fields`, which
 * this function consumes. */
static int end_call_by_head_alone(domus_stack *stack, domus_slice fields)
{
    domus_http_response response = {.status = 200, .media = DOMI_GRPC_MEDIA, .fields = fields};

    return reply_with_http_response(stack, &response);
}

int domi_grpc_end_call_with_fields(domus_stack *stack, domus_slice fields, bool has_begun)
{
    const domus_http_trailers trailers = {.fields = fields};

    if (!has_begun)
        return end_call_by_head_alone(stack, fields);
    int error = domus_reply_end(stack, &domus_http_trailers_type, &trailers);
    if (error != 0)
        domus_slice_free(fields);
    return error;
}

/* End a successful call whose whole answer, with its one message, leaves at once. */
static int end_call_with_single_message(domus_stack *stack, const domi_grpc_inside *inside,
                                        const domus_grpc_answer *answer)
{
    domus_http_response response;
    domus_appender fields = {0};
    domus_slice metadata;
    int error = domus_slice_keep(answer->metadata, &metadata);

    if (error == 0)
        error = domi_grpc_make_head_of_stream(inside, metadata, &response);
    if (error != 0)
        return error;
    append_status_and_text_of_call(&fields, answer);
    error = domus_append_end(&fields, &response.trailers);
    if (error == 0 && !domi_grpc_is_answer_a_stream(inside))
        error = domi_grpc_make_frame_of_message(inside, answer->message, &response.body);
    if (error != 0) {
        domus_http_response_type.release(&response);
        return error;
    }
    return reply_with_http_response(stack, &response);
}

/* Returns the end of a call as it can be sent: `answer`, with UNKNOWN in place of a status that
 * does not exist; or INTERNAL alone if the metadata or trailers of the answer cannot be sent. */
static domus_grpc_answer copy_answer_with_valid_status(const domus_grpc_answer *answer)
{
    domus_grpc_answer end = *answer;

    if ((unsigned)end.status > DOMUS_GRPC_UNAUTHENTICATED)
        end.status = DOMUS_GRPC_UNKNOWN;
    if (domi_grpc_check_metadata(end.trailers) != 0 || domi_grpc_check_metadata(end.metadata) != 0)
        end = (domus_grpc_answer){.status = DOMUS_GRPC_INTERNAL};
    return end;
}

int domi_grpc_make_trailers_of_ended_call(const domus_grpc_answer *answer, domus_slice *ret_fields)
{
    const domus_grpc_answer end = copy_answer_with_valid_status(answer);
    domus_appender fields = {0};

    append_status_and_text_of_call(&fields, &end);
    return domus_append_end(&fields, ret_fields);
}

int domi_grpc_end_unanswered_call(domus_stack *stack, const domi_grpc_inside *inside,
                                  const domus_grpc_answer *answer)
{
    domus_grpc_answer end = copy_answer_with_valid_status(answer);
    domus_slice fields;
    int error =
        end.status == DOMUS_GRPC_OK ? end_call_with_single_message(stack, inside, &end) : -EPROTO;

    if (error == 0)
        return 0;
    /* the message or the metadata of the answer cannot be sent, so the call ends with an error */
    if (end.status == DOMUS_GRPC_OK)
        end = (domus_grpc_answer){.status = domus_grpc_status_of(error)};
    error = domi_grpc_make_trailers_of_ended_call(&end, &fields);
    return error != 0 ? error : end_call_by_head_alone(stack, fields);
}

int domi_grpc_refuse_request(domus_stack *stack, const domi_grpc_refusal *refusal)
{
    bool is_unknown = refusal->status == DOMUS_GRPC_UNIMPLEMENTED;
    domus_grpc_answer answer = {.status = refusal->status};
    domus_appender text = {0};
    domus_appender fields = {0};
    domus_slice made;

    if (refusal->http != 0)
        return domus_reply(stack, &domus_http_text_type,
                           &(domus_http_text){refusal->http, "text/plain", refusal->text});
    (void)domus_append(&text, refusal->text, strlen(refusal->text));
    (void)domus_append(&text, domus_slice_data(refusal->path), refusal->path.size);
    int error = domus_append_end(&text, &answer.text);
    if (error != 0)
        return error;
    if (is_unknown)
        (void)domus_http_add(&fields, "grpc-accept-encoding", "identity, gzip");
    append_status_and_text_of_call(&fields, &answer);
    domus_slice_free(answer.text);
    error = domus_append_end(&fields, &made);
    return error != 0 ? error : end_call_by_head_alone(stack, made);
}
