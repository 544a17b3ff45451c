/* Fuzzes the answers of JetStream's API. The first byte of an input chooses the reader: answers in
 * JSON, messages as JetStream stores them and as a consumer delivers them, and keys. The parts that
 * a reader returns lie within the received bytes, and a key of any bytes is the same after encoding
 * and decoding. */
#include "protocols/nats/kv.h"
#include "tests/fuzz/support/fuzz.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Read each byte of a slice, so that a sanitizer finds a byte that lies outside of its memory. */
static unsigned read_each_byte(domus_slice slice)
{
    const char *bytes = domus_slice_data(slice);
    unsigned sum = 0;

    for (uint32_t i = 0; i < slice.size; i++)
        sum += (unsigned char)bytes[i];
    return sum;
}

/* Make a received message from a copy of the bytes: a subject, headers up to the empty line, and
 * the payload. */
static domus_nats_message make_received_message(const char *subject, const uint8_t *data,
                                                size_t size)
{
    domus_nats_message message = {.subject_size = (uint16_t)strlen(subject)};
    domus_appender bytes = {0};
    const char *text = (const char *)data;
    const char *end =
        size >= 12 && memcmp(text, "NATS/1.0", 8) == 0 ? memmem(text, size, "\r\n\r\n", 4) : NULL;

    message.headers_size = end != NULL ? (uint32_t)(end - text) + 4 : 0;
    message.payload_size = (uint32_t)size - message.headers_size;
    (void)domus_append(&bytes, subject, message.subject_size);
    (void)domus_append(&bytes, data, size);
    domt_fuzz_abort_unless(domus_append_end(&bytes, &message.bytes) == 0);
    return message;
}

static void check_stored_message(const domus_nats_stream_message *message)
{
    domus_nats_kv_entry entry;
    domus_slice value;
    uint32_t from = 0;

    domt_fuzz_abort_unless(message->sequence != 0);
    domt_fuzz_abort_unless((uint64_t)message->subject_at + message->subject_size <=
                           message->bytes.size);
    domt_fuzz_abort_unless((uint64_t)message->headers_at + message->headers_size <=
                           message->bytes.size);
    domt_fuzz_abort_unless((uint64_t)message->payload_at + message->payload_size <=
                           message->bytes.size);
    domt_fuzz_abort_unless((uint64_t)message->ack_at + message->ack_size <= message->bytes.size);
    (void)read_each_byte(domus_nats_stream_subject(message));
    (void)read_each_byte(domus_nats_stream_payload(message));
    while (domus_nats_stream_header(message, "A", &from, &value) == 0)
        (void)read_each_byte(value);
    if (domi_kv_read_entry_of_message("b", message, &entry) != 0)
        return;
    domus_slice key = domus_nats_kv_key(&entry);
    domt_fuzz_abort_unless(key.size != 0 && key.size <= DOMUS_NATS_KV_KEY_MAX);
    domt_fuzz_abort_unless(key.offset >= 6);
    /* The 6 bytes before the key in its page are the prefix "$KV.b." of the subject. */
    key.offset -= 6;
    domt_fuzz_abort_unless(memcmp(domus_slice_data(key), "$KV.b.", 6) == 0);
    domt_fuzz_abort_unless(entry.revision == message->sequence &&
                           entry.operation <= DOMUS_NATS_KV_PURGE);
    domt_fuzz_abort_unless(entry.operation == DOMUS_NATS_KV_PUT || entry.value_size == 0);
    (void)read_each_byte(domus_nats_kv_value(&entry));
}

/* Run every reader of JetStream's answers on one answer. */
static void run_all_readers_on_answer(const uint8_t *data, size_t size)
{
    domus_nats_message message = make_received_message("_INBOX.x", data, size);
    const domus_answer answer = {.type = &domus_nats_message_type, .payload = &message};
    domus_nats_stream_message stored;
    domus_nats_stream_status status;
    domus_nats_stream_ack ack;

    if (domi_js_read_message_of_answer(&answer, &stored) == 0) {
        check_stored_message(&stored);
        domt_fuzz_abort_unless(stored.ack_size == 0);
        domus_slice_free(stored.bytes);
    }
    if (domi_js_read_publish_ack(&answer, &ack) == 0)
        domt_fuzz_abort_unless(ack.sequence != 0);
    (void)domi_js_read_stream_status(&answer, &status);
    domus_slice_free(message.bytes);
}

/* Read a message that a consumer delivers. The input is a line with the subject for its
 * acknowledgement, and then the message. */
static void read_delivered_message(const uint8_t *data, size_t size)
{
    const uint8_t *end = size != 0 ? memchr(data, '\n', size) : NULL;
    size_t line = end != NULL ? (size_t)(end - data) : 0;
    size_t head = end != NULL ? line + 1 : 0;
    domus_nats_message message = make_received_message("$KV.b.key", data + head, size - head);
    domus_nats_stream_message pushed;
    domus_appender bytes = {0};

    /* The message is made again, with the subject for the acknowledgement as its reply subject. */
    domus_slice_free(message.bytes);
    (void)domus_append(&bytes, "$KV.b.key", 9);
    (void)domus_append(&bytes, data, size);
    domt_fuzz_abort_unless(domus_append_end(&bytes, &message.bytes) == 0);
    message.reply_at = 9;
    message.reply_size = line <= 1024 ? (uint16_t)line : 0;
    if (domi_js_read_delivered_message(&message, &pushed) == 0) {
        check_stored_message(&pushed);
        domt_fuzz_abort_unless(pushed.ack_size == message.reply_size);
    }
    domus_slice_free(message.bytes);
}

static void read_texts_of_api(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    char *bytes = malloc(DOMI_JS_BASE64_MAX(size) + 1);
    uint64_t number;
    int64_t decoded = domi_js_read_base64(text, size, bytes);

    domt_fuzz_abort_unless(decoded <= (int64_t)DOMI_JS_BASE64_MAX(size) &&
                           (decoded >= 0 || decoded == -EPROTO));
    (void)domi_js_read_time(text, size);
    if (domi_js_read_number(text, size, &number) == 0)
        domt_fuzz_abort_unless(size != 0);
    if (domi_js_is_valid_subject(text, size, false))
        domt_fuzz_abort_unless(domi_js_is_valid_subject(text, size, true) &&
                               memchr(text, ' ', size) == NULL);
    free(bytes);
}

static void check_encoding_of_keys(const uint8_t *data, size_t size)
{
    char key[DOMUS_NATS_KV_KEY_MAX + 1], again[DOMUS_NATS_KV_KEY_MAX + 1];
    unsigned char bytes[DOMUS_NATS_KV_KEY_MAX + 1];
    size_t count = 0;

    if (domus_nats_kv_make_key(data, size, key, sizeof key) == 0) {
        domt_fuzz_abort_unless(domus_nats_kv_check_key(key) == 0);
        domt_fuzz_abort_unless(
            domus_nats_kv_read_key(key, strlen(key), bytes, sizeof bytes, &count) == 0);
        domt_fuzz_abort_unless(count == size && memcmp(bytes, data, size) == 0);
    }
    if (domus_nats_kv_read_key((const char *)data, size, bytes, sizeof bytes, &count) == 0) {
        if (domus_nats_kv_make_key(bytes, count, again, sizeof again) == 0)
            domt_fuzz_abort_unless(strlen(again) == size && memcmp(again, data, size) == 0);
        else
            domt_fuzz_abort_unless(size >= sizeof again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(const uint8_t *,
                                   size_t) = {run_all_readers_on_answer, read_delivered_message,
                                              read_texts_of_api, check_encoding_of_keys};

    if (size != 0)
        readers[data[0] % 4](data + 1, size - 1);
    return 0;
}
