/* Makes messages that a client sends, and blocks of headers. Short parts of a message are copied
 * into the message itself, long parts into pages. */
#include "protocols/nats/nats.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(DOMUS_NATS_INLINE <= UINT8_MAX, "places in a message are bytes");

bool domi_nats_is_valid_queue_group(domi_nats_bytes word)
{
    for (uint32_t i = 0; i < word.size; i++) {
        unsigned char c = (unsigned char)word.data[i];
        if (c <= ' ' || c == 0x7f)
            return false;
    }
    return word.size != 0 && word.size <= DOMUS_NATS_SUBJECT_MAX;
}

bool domi_nats_is_valid_subject(domi_nats_bytes subject)
{
    bool is_dot = true;

    if (subject.size > DOMUS_NATS_SUBJECT_MAX)
        return false;
    for (uint32_t i = 0; i < subject.size; i++) {
        unsigned char c = (unsigned char)subject.data[i];
        if (c <= ' ' || c == 0x7f || (is_dot && c == '.'))
            return false;
        is_dot = c == '.';
    }
    return !is_dot;
}

bool domi_nats_are_inline_parts_valid(const domus_nats_publish *publish)
{
    return publish->subject_at + publish->subject_size <= DOMUS_NATS_INLINE &&
           publish->reply_at + publish->reply_size <= DOMUS_NATS_INLINE &&
           publish->payload_at + publish->payload_size <= DOMUS_NATS_INLINE;
}

/* Copy bytes into the message itself if there is room, otherwise into a new slice. */
static int copy_bytes_inline_or_to_slice(domus_nats_publish *publish, const void *data, size_t size,
                                         domus_slice *slice, uint8_t *at, uint8_t *inline_size)
{
    if (publish->used <= DOMUS_NATS_INLINE && size <= DOMUS_NATS_INLINE - publish->used) {
        if (size != 0)
            memcpy(publish->bytes + publish->used, data, size);
        *at = publish->used;
        *inline_size = (uint8_t)size;
        publish->used = (uint8_t)(publish->used + size);
        return 0;
    }
    return domus_slice_copy(data, size, slice);
}

static int check_and_set_subject_of_publish(domus_nats_publish *publish, domi_nats_bytes subject)
{
    if (!domi_nats_is_valid_subject(subject))
        return -EINVAL;
    return copy_bytes_inline_or_to_slice(publish, subject.data, subject.size, &publish->subject,
                                         &publish->subject_at, &publish->subject_size);
}

static domi_nats_bytes bytes_of_text(const char *text)
{
    size_t size = strnlen(text, DOMUS_NATS_SUBJECT_MAX + 1);

    return (domi_nats_bytes){text, (uint32_t)size};
}

int domus_nats_set_subject(domus_nats_publish *publish, const char *subject)
{
    return check_and_set_subject_of_publish(publish, bytes_of_text(subject));
}

int domus_nats_set_reply(domus_nats_publish *publish, const char *reply)
{
    domi_nats_bytes bytes = bytes_of_text(reply);

    if (!domi_nats_is_valid_subject(bytes))
        return -EINVAL;
    return copy_bytes_inline_or_to_slice(publish, bytes.data, bytes.size, &publish->reply,
                                         &publish->reply_at, &publish->reply_size);
}

int domus_nats_set_payload(domus_nats_publish *publish, const void *data, size_t size)
{
    return copy_bytes_inline_or_to_slice(publish, data, size, &publish->payload,
                                         &publish->payload_at, &publish->payload_size);
}

int domus_nats_set_reply_of(domus_nats_publish *publish, const domus_nats_message *message)
{
    return check_and_set_subject_of_publish(publish,
                                            domi_nats_bytes_of_slice(domus_nats_reply_to(message)));
}

void domus_nats_publish_free(domus_nats_publish *publish)
{
    domus_slice_free(publish->subject);
    domus_slice_free(publish->reply);
    domus_slice_free(publish->headers);
    domus_slice_free(publish->payload);
}

int domus_nats_subscribe_make(const char *subject, const char *queue,
                              domus_nats_subscribe *ret_subscribe)
{
    domus_nats_subscribe made = {.messages_max = 0};
    domi_nats_bytes name = bytes_of_text(subject);
    domi_nats_bytes group = bytes_of_text(queue != NULL ? queue : "");

    if (!domi_nats_is_valid_subject(name) ||
        (queue != NULL && !domi_nats_is_valid_queue_group(group)))
        return -EINVAL;
    int error = domus_slice_copy(name.data, name.size, &made.subject);
    if (error != 0)
        return error;
    error = domus_slice_copy(group.data, group.size, &made.queue);
    if (error != 0) {
        domus_slice_free(made.subject);
        return error;
    }
    *ret_subscribe = made;
    return 0;
}

/* --- headers ---------------------------------------------------------------------------------- */

static bool is_header_name(const char *name)
{
    size_t i = 0;

    for (; name[i] != '\0'; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == ':')
            return false;
    }
    return i != 0;
}

int domus_nats_headers_add_bytes(domus_appender *headers, const char *name, const void *value,
                                 size_t size)
{
    if (!is_header_name(name) ||
        (size != 0 && (memchr(value, '\r', size) != NULL || memchr(value, '\n', size) != NULL)))
        return -EINVAL;
    if (headers->size == 0)
        (void)domus_append(headers, "NATS/1.0\r\n", 10);
    (void)domus_append(headers, name, strlen(name));
    (void)domus_append(headers, ": ", 2);
    if (size != 0)
        (void)domus_append(headers, value, size);
    return domus_append(headers, "\r\n", 2);
}

int domus_nats_headers_add(domus_appender *headers, const char *name, const char *value)
{
    return domus_nats_headers_add_bytes(headers, name, value, strlen(value));
}

int domus_nats_headers_end(domus_appender *headers, domus_slice *ret_headers)
{
    if (headers->size == 0)
        (void)domus_append(headers, "NATS/1.0\r\n", 10);
    (void)domus_append(headers, "\r\n", 2);
    return domus_append_end(headers, ret_headers);
}
