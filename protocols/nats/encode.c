/* Encodes the lines that a NATS client sends. A short payload is copied behind its line; a long one
 * is sent from where it lies. */
#include "protocols/nats/nats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* bytes of a payload that are copied behind the line of its publication, at most */
#define COPY_MAX   512u
#define DIGITS_MAX 20u /* digits of a number of 64 bits in a line, at most */

/* --- writing ---------------------------------------------------------------------------------- */

static char *write_bytes_to_line(char *at, const void *data, size_t size)
{
    if (size != 0)
        memcpy(at, data, size);
    return at + size;
}

static char *write_word_to_line(char *at, domi_nats_bytes word)
{
    *at++ = ' ';
    return write_bytes_to_line(at, word.data, word.size);
}

static char *write_number_to_line(char *at, uint64_t number)
{
    char digits[DIGITS_MAX];
    char *first = digits + sizeof digits;

    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    *at++ = ' ';
    return write_bytes_to_line(at, first, (size_t)(digits + sizeof digits - first));
}

static char *write_line_end(char *at)
{
    return write_bytes_to_line(at, "\r\n", 2);
}

/* --- messages --------------------------------------------------------------------------------- */

int domi_nats_check_parts_of_publish(const domus_nats_publish *publish, domi_nats_bytes reply)
{
    domi_nats_bytes headers = domi_nats_bytes_of_slice(publish->headers);

    if (!domi_nats_are_inline_parts_valid(publish) ||
        !domi_nats_is_valid_subject(domi_nats_subject_of_publish(publish)) ||
        (reply.size != 0 && !domi_nats_is_valid_subject(reply)) ||
        (headers.size != 0 && !domi_nats_is_block_of_headers(headers)))
        return -EINVAL;
    return domi_nats_size_of_publish(publish) > DOMUS_SLICE_MAX ? -EMSGSIZE : 0;
}

/* Write the line of a publication: "PUB subject [reply] size", or "HPUB subject [reply] headers
 * all", where the last words are sizes. */
static char *write_line_of_publish(char *at, const domus_nats_publish *publish,
                                   domi_nats_bytes reply)
{
    bool has_headers = publish->headers.size != 0;

    at = write_bytes_to_line(at, has_headers ? "HPUB" : "PUB", has_headers ? 4 : 3);
    at = write_word_to_line(at, domi_nats_subject_of_publish(publish));
    if (reply.size != 0)
        at = write_word_to_line(at, reply);
    if (has_headers)
        at = write_number_to_line(at, publish->headers.size);
    return write_line_end(write_number_to_line(at, domi_nats_size_of_publish(publish)));
}

/* Bytes of a publication's line beside its subject and reply: HPUB, 2 numbers with a space before
 * each, 2 line ends, 2 spaces. */
#define LINE_ROOM (4 + 2 * (DIGITS_MAX + 1) + 4 + 2)

static int encode_publish(domus_wire *wire, const domus_nats_publish *publish,
                          domi_nats_bytes reply)
{
    int error = domi_nats_check_parts_of_publish(publish, reply);

    if (error != 0)
        return error;
    domi_nats_bytes headers = domi_nats_bytes_of_slice(publish->headers);
    domi_nats_bytes payload = domi_nats_payload_of_publish(publish);
    bool is_short = headers.size <= COPY_MAX && payload.size <= COPY_MAX;
    size_t room = LINE_ROOM + domi_nats_subject_of_publish(publish).size + reply.size +
                  (is_short ? headers.size + payload.size : 0);
    char *begin = domus_wire_room(wire, room);
    if (begin == NULL)
        return -ENOMEM;
    char *at = write_line_of_publish(begin, publish, reply);
    if (is_short) {
        at = write_bytes_to_line(at, headers.data, headers.size);
        at = write_line_end(write_bytes_to_line(at, payload.data, payload.size));
    }
    domus_wire_written(wire, (size_t)(at - begin));
    if (is_short)
        return 0;
    if (headers.size != 0)
        error = domus_wire_append_slice(wire, publish->headers);
    if (error == 0 && publish->payload.size != 0)
        error = domus_wire_append_slice(wire, publish->payload);
    else if (error == 0 && payload.size != 0)
        error = domus_wire_append(wire, payload.data, payload.size);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

/* --- subscriptions ---------------------------------------------------------------------------- */

static domi_nats_bytes bytes_of_text_with_zero(const char *text)
{
    return (domi_nats_bytes){text, (uint32_t)strnlen(text, DOMUS_NATS_SUBJECT_MAX + 1)};
}

static int encode_sub(domus_wire *wire, const domus_nats_sub *sub)
{
    domi_nats_bytes subject = bytes_of_text_with_zero(sub->subject);
    domi_nats_bytes queue = bytes_of_text_with_zero(sub->queue != NULL ? sub->queue : "");

    if (!domi_nats_is_valid_subject(subject) ||
        (sub->queue != NULL && !domi_nats_is_valid_queue_group(queue)))
        return -EINVAL;
    char *begin = domus_wire_room(wire, 3 + 1 + subject.size + 1 + queue.size + 1 + DIGITS_MAX + 2);
    if (begin == NULL)
        return -ENOMEM;
    char *at = write_word_to_line(write_bytes_to_line(begin, "SUB", 3), subject);
    if (queue.size != 0)
        at = write_word_to_line(at, queue);
    at = write_line_end(write_number_to_line(at, sub->number));
    domus_wire_written(wire, (size_t)(at - begin));
    return 0;
}

static int encode_unsub(domus_wire *wire, const domus_nats_unsub *unsub)
{
    char *begin = domus_wire_room(wire, 5 + 2 * (DIGITS_MAX + 1) + 2);

    if (begin == NULL)
        return -ENOMEM;
    char *at = write_number_to_line(write_bytes_to_line(begin, "UNSUB", 5), unsub->number);
    if (unsub->messages_max != 0)
        at = write_number_to_line(at, unsub->messages_max);
    at = write_line_end(at);
    domus_wire_written(wire, (size_t)(at - begin));
    return 0;
}

/* --- CONNECT ---------------------------------------------------------------------------------- */

bool domi_nats_is_utf8(const char *text)
{
    json_t *string = json_string(text);
    bool is_right = string != NULL;

    json_decref(string);
    return is_right;
}

/* Set a member of the JSON object of CONNECT to a text, unless the text is NULL. Returns false if
 * the text is no UTF-8, or if there is no memory. */
static bool set_text_member(json_t *object, const char *key, const char *text)
{
    return text == NULL || json_object_set_new(object, key, json_string(text)) == 0;
}

static bool set_flag_member(json_t *object, const char *key, bool value)
{
    return json_object_set_new(object, key, json_boolean(value)) == 0;
}

static bool fill_members_of_connect(json_t *object, const domus_nats_connect *connect)
{
    return set_flag_member(object, "verbose", false) &&
           set_flag_member(object, "pedantic", false) &&
           set_flag_member(object, "tls_required", connect->tls) &&
           set_flag_member(object, "echo", !connect->no_echo) &&
           set_flag_member(object, "headers", connect->headers) &&
           set_flag_member(object, "no_responders", connect->headers) &&
           set_text_member(object, "lang", "c") && set_text_member(object, "version", "domus") &&
           json_object_set_new(object, "protocol", json_integer(1)) == 0 &&
           set_text_member(object, "name", connect->name) &&
           set_text_member(object, "user", connect->user) &&
           set_text_member(object, "pass", connect->password) &&
           set_text_member(object, "auth_token", connect->token) &&
           set_text_member(object, "jwt", connect->jwt) &&
           set_text_member(object, "nkey", connect->nkey) &&
           set_text_member(object, "sig", connect->signature);
}

static int encode_connect(domus_wire *wire, const domus_nats_connect *connect)
{
    json_t *object = json_object();
    char *text = NULL;
    int error = -ENOMEM;

    if (object == NULL)
        return -ENOMEM;
    if (fill_members_of_connect(object, connect))
        text = json_dumps(object, JSON_COMPACT);
    else
        error = -EINVAL;
    json_decref(object);
    if (text == NULL)
        return error;
    error = domus_wire_append(wire, "CONNECT ", 8);
    if (error == 0)
        error = domus_wire_append(wire, text, strlen(text));
    explicit_bzero(text, strlen(text));
    free(text);
    return error != 0 ? error : domus_wire_append(wire, "\r\n", 2);
}

int domi_nats_encode_for_server(domus_wire *wire, const domus_type *type, const void *payload)
{
    if (type == &domus_nats_publish_type)
        return encode_publish(wire, payload, domi_nats_reply_of_publish(payload));
    if (type == &domi_nats_inboxed_type) {
        const domi_nats_inboxed *request = payload;
        return encode_publish(wire, request->publish,
                              (domi_nats_bytes){request->reply, request->reply_size});
    }
    if (type == &domus_nats_sub_type)
        return encode_sub(wire, payload);
    if (type == &domus_nats_unsub_type)
        return encode_unsub(wire, payload);
    if (type == &domus_nats_ping_type)
        return domus_wire_append(wire, "PING\r\n", 6);
    if (type == &domus_nats_connect_type)
        return encode_connect(wire, payload);
    return -EOPNOTSUPP;
}
