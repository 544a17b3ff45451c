/* Reads messages of a stream, which a server sends in three forms: delivered by a consumer, with
 * the position in the subject for the acknowledgement; got directly, with the position in headers;
 * and got through the API, as base64 in JSON. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <string.h>

/* tokens of an acknowledgement's subject, "$JS ACK stream consumer deliveries sequence sequence
 * time pending" */
#define PLACE_TOKENS 9u
/* tokens of an acknowledgement's subject with domain and account behind ACK, at least */
#define PLACE_LONG 11u
#define TOKENS_MAX 16u

/* Split a subject into its tokens. Returns how many there are; 0 if there are more than
 * TOKENS_MAX. */
static uint32_t split_subject_into_tokens(domus_slice subject, domus_slice tokens[TOKENS_MAX])
{
    const char *data = domus_slice_data(subject);
    uint32_t count = 0;
    uint32_t begin = 0;

    for (uint32_t i = 0; i <= subject.size; i++) {
        if (i < subject.size && data[i] != '.')
            continue;
        if (count == TOKENS_MAX)
            return 0;
        tokens[count] = subject;
        tokens[count].offset += begin;
        tokens[count++].size = i - begin;
        begin = i + 1;
    }
    return count;
}

int domi_js_read_place_in_ack_subject(domus_slice subject, domi_js_place *ret_place)
{
    domus_slice tokens[TOKENS_MAX];
    uint32_t count = split_subject_into_tokens(subject, tokens);
    uint64_t numbers[5];

    if (count != PLACE_TOKENS && count < PLACE_LONG)
        return -EPROTO;
    if (!domus_slice_equals(tokens[0], "$JS", 3) || !domus_slice_equals(tokens[1], "ACK", 3))
        return -EPROTO;
    const domus_slice *at = tokens + (count == PLACE_TOKENS ? 4 : 6);
    for (uint32_t i = 0; i < 5; i++) {
        if (domi_js_read_number(domus_slice_data(at[i]), at[i].size, &numbers[i]) != 0)
            return -EPROTO;
    }
    *ret_place = (domi_js_place){.deliveries = numbers[0],
                                 .sequence = numbers[1],
                                 .consumer_sequence = numbers[2],
                                 .stored_ns = numbers[3],
                                 .pending = numbers[4]};
    return 0;
}

bool domi_js_is_delivery_of_consumer(const domus_nats_message *message)
{
    domi_js_place place;

    return message->status == 0 ||
           domi_js_read_place_in_ack_subject(domus_nats_reply_to(message), &place) == 0;
}

/* Returns the offset of a part of a message, such as the payload, from the beginning of the
 * message's bytes. */
static uint32_t offset_of_part_in_message(domus_slice bytes, domus_slice part)
{
    return part.offset - bytes.offset;
}

/* Set offset and size of the headers and payload of a stream's message, as they lie in the NATS
 * message. */
static void set_headers_and_payload(const domus_nats_message *message,
                                    domus_nats_stream_message *ret_message)
{
    domus_slice headers = domus_nats_headers(message);
    domus_slice payload = domus_nats_payload(message);

    ret_message->bytes = message->bytes;
    ret_message->headers_at = offset_of_part_in_message(message->bytes, headers);
    ret_message->headers_size = headers.size;
    ret_message->payload_at = offset_of_part_in_message(message->bytes, payload);
    ret_message->payload_size = payload.size;
}

int domi_js_read_delivered_message(const domus_nats_message *message,
                                   domus_nats_stream_message *ret_message)
{
    domi_js_place place;
    int error = domi_js_read_place_in_ack_subject(domus_nats_reply_to(message), &place);

    if (error != 0 || place.sequence == 0)
        return -EPROTO;
    *ret_message = (domus_nats_stream_message){.sequence = place.sequence,
                                               .stored_ns = place.stored_ns,
                                               .deliveries = place.deliveries,
                                               .pending = place.pending,
                                               .subject_size = message->subject_size,
                                               .ack_at = message->reply_at,
                                               .ack_size = message->reply_size};
    set_headers_and_payload(message, ret_message);
    return 0;
}

int domi_js_ask_for_message(domus_stack *stack, const domi_js *js, uint64_t sequence,
                            const char *subject, domus_resumed *then)
{
    domus_slice body = {NULL, 0, 0};
    int error = 0;

    if (js->is_direct && sequence == 0)
        return domi_js_ask_server(stack, js->client, body, then, "$JS.API.DIRECT.GET.%s.%s",
                                  js->stream, subject);
    if (sequence > INT64_MAX)
        return -EINVAL;
    if (sequence != 0)
        error = domi_js_write_json_object(&body, "{s:I}", "seq", (json_int_t)sequence);
    else
        error = domi_js_write_json_object(&body, "{s:s}", "last_by_subj", subject);
    if (error != 0)
        return error;
    const char *verb = js->is_direct ? "DIRECT.GET" : "STREAM.MSG.GET";
    return domi_js_ask_server(stack, js->client, body, then, "$JS.API.%s.%s", verb, js->stream);
}

/* Find the last header with this name. The server's headers stand behind those of the publisher,
 * who may have used the same name. */
static bool find_last_header(const domus_nats_message *message, const char *name,
                             domus_slice *ret_value)
{
    uint32_t from = 0;
    bool is_found = false;

    while (domus_nats_header(message, name, &from, ret_value) == 0)
        is_found = true;
    return is_found;
}

/* Read a stream's message that was got directly from a server, with its position in headers. */
static int read_stream_message_of_direct_get(const domus_nats_message *message,
                                             domus_nats_stream_message *ret_message)
{
    domus_slice subject, sequence, time;
    domus_nats_stream_message read = {0};

    if (!find_last_header(message, "Nats-Subject", &subject) ||
        subject.size > DOMUS_NATS_SUBJECT_MAX ||
        !find_last_header(message, "Nats-Sequence", &sequence) ||
        domi_js_read_number(domus_slice_data(sequence), sequence.size, &read.sequence) != 0 ||
        read.sequence == 0)
        return -EPROTO;
    if (find_last_header(message, "Nats-Time-Stamp", &time))
        read.stored_ns = domi_js_read_time(domus_slice_data(time), time.size);
    set_headers_and_payload(message, &read);
    read.subject_at = offset_of_part_in_message(read.bytes, subject);
    read.subject_size = (uint16_t)subject.size;
    int error = domus_slice_keep(message->bytes, &read.bytes);
    if (error == 0)
        *ret_message = read;
    return error;
}

/* Append the bytes to which a base64 text decodes. Returns 0; -EPROTO; or as domus_append(). */
static int append_decoded_base64(domus_appender *bytes, const char *text, size_t size)
{
    if (size == 0)
        return 0;
    char *room = domus_append_room(bytes, DOMI_JS_BASE64_MAX(size));
    if (room == NULL)
        return -ENOMEM;
    int64_t written = domi_js_read_base64(text, size, room);
    if (written < 0)
        return (int)written;
    domus_append_written(bytes, (size_t)written);
    return 0;
}

/* Join the subject, headers and payload of a message, which JSON has as three texts, to the bytes
 * of one message. */
static int join_parts_of_json_message(const json_t *json, domus_appender *bytes,
                                      domus_nats_stream_message *message)
{
    const char *subject, *headers, *payload;
    size_t subject_size, headers_size, payload_size;

    if (domi_js_get_text(json, "subject", &subject, &subject_size) != 0 ||
        domi_js_get_text(json, "hdrs", &headers, &headers_size) != 0 ||
        domi_js_get_text(json, "data", &payload, &payload_size) != 0 ||
        subject_size > DOMUS_NATS_SUBJECT_MAX)
        return -EPROTO;
    int error = domus_append(bytes, subject, subject_size);
    message->subject_size = (uint16_t)subject_size;
    message->headers_at = bytes->size;
    if (error == 0)
        error = append_decoded_base64(bytes, headers, headers_size);
    message->payload_at = bytes->size;
    if (error == 0)
        error = append_decoded_base64(bytes, payload, payload_size);
    message->headers_size = message->payload_at - message->headers_at;
    message->payload_size = bytes->size - message->payload_at;
    return error;
}

/* Read a stream's message that was got through the API as JSON. */
static int read_message_got_as_json(const json_t *json, domus_nats_stream_message *ret_message)
{
    domus_nats_stream_message read = {0};
    domus_appender bytes = {0};
    const char *time = NULL;
    size_t time_size = 0;
    const json_t *message = domi_js_get_object(json, "message");

    if (message == NULL || domi_js_get_number(message, "seq", &read.sequence) != 0 ||
        read.sequence == 0 || domi_js_get_text(message, "time", &time, &time_size) != 0)
        return -EPROTO;
    read.stored_ns = domi_js_read_time(time, time_size);
    int error = join_parts_of_json_message(message, &bytes, &read);
    if (error != 0) {
        domus_append_drop(&bytes);
        return error;
    }
    error = domus_append_end(&bytes, &read.bytes);
    if (error == 0)
        *ret_message = read;
    return error;
}

/* Returns whether an answer to a direct get is a stored message, which a header with its number
 * tells. A status in the headers does not tell that, because a publisher may have set one. */
static bool is_stored_message(const domus_nats_message *message)
{
    domus_slice sequence;

    return message->headers_size != 0 &&
           (message->status == 0 || find_last_header(message, "Nats-Sequence", &sequence));
}

int domi_js_read_message_of_answer(const domus_answer *answer,
                                   domus_nats_stream_message *ret_message)
{
    json_t *json = NULL;

    if (answer->error == 0 && answer->type == &domus_nats_message_type &&
        is_stored_message(answer->payload))
        return read_stream_message_of_direct_get(answer->payload, ret_message);
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_PAYLOAD_LIMIT, &json);
    if (error != 0)
        return error;
    error = read_message_got_as_json(json, ret_message);
    json_decref(json);
    return error;
}

int domus_nats_stream_header(const domus_nats_stream_message *message, const char *name,
                             uint32_t *from, domus_slice *ret_value)
{
    /* In the bytes of a stream's message, headers and payload come last, as in every message of
     * NATS. */
    const domus_nats_message view = {.bytes = message->bytes,
                                     .payload_size = message->payload_size,
                                     .headers_size = message->headers_size};

    return message->headers_size != 0 ? domus_nats_header(&view, name, from, ret_value) : -ENOENT;
}
