/* A client sends publications, subscriptions and CONNECT as a NATS server reads them, and refuses
 * messages that no server could read. Headers are built and read. */
#include "tests/nats/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *encode_publication_as_text(const domus_nats_publish *publish)
{
    return domt_nats_encode_message(&domus_nats_publish_type, publish);
}

static domus_slice make_slice_of_text(const char *text)
{
    domus_slice slice;

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

DOMT_TEST(publication_is_encoded_as_line_and_payload)
{
    domus_nats_publish publish = {.used = 0};

    ck_assert_int_eq(domus_nats_set_payload(&publish, "hello", 5), 0);
    ck_assert_int_eq(domus_nats_set_subject(&publish, "a.b"), 0);
    ck_assert_str_eq(encode_publication_as_text(&publish), "PUB a.b 5\r\nhello\r\n");
    ck_assert_int_eq(domus_nats_set_reply(&publish, "r.x"), 0);
    ck_assert_str_eq(encode_publication_as_text(&publish), "PUB a.b r.x 5\r\nhello\r\n");
    ck_assert_uint_eq(publish.used, 11);
    publish.headers = make_slice_of_text("NATS/1.0\r\nA: b\r\n\r\n");
    ck_assert_str_eq(encode_publication_as_text(&publish),
                     "HPUB a.b r.x 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n");
    /* a publication sends the slice of its payload instead of the inline bytes */
    publish.payload = make_slice_of_text("longer");
    ck_assert_str_eq(encode_publication_as_text(&publish),
                     "HPUB a.b r.x 18 24\r\nNATS/1.0\r\nA: b\r\n\r\nlonger\r\n");
    domus_nats_publish_free(&publish);
    publish = (domus_nats_publish){.used = 0};
    ck_assert_int_eq(domus_nats_set_subject(&publish, "a"), 0);
    ck_assert_str_eq(encode_publication_as_text(&publish), "PUB a 0\r\n\r\n");
}

/* The subject, reply, headers and payload of a publication that fit into its inline bytes, to the
 * last one, need no other memory. */
DOMT_TEST(parts_of_publication_stay_inline_while_they_fit)
{
    char text[1100];
    domus_nats_publish publish = {.used = 0};

    memset(text, 'x', sizeof text);
    ck_assert_int_eq(domus_nats_set_subject(&publish, "abc"), 0);
    ck_assert_int_eq(domus_nats_set_payload(&publish, text, DOMUS_NATS_INLINE - 3), 0);
    ck_assert_ptr_null(publish.payload.page);
    ck_assert_uint_eq(publish.used, DOMUS_NATS_INLINE);
    ck_assert_int_eq(domus_nats_set_reply(&publish, "r"), 0);
    ck_assert_uint_eq(publish.reply.size, 1);
    ck_assert_int_eq(strncmp(encode_publication_as_text(&publish), "PUB abc r 181\r\nxxx", 18), 0);
    domus_nats_publish_free(&publish);
    publish = (domus_nats_publish){.used = 0};
    ck_assert_int_eq(domus_nats_set_payload(&publish, text, DOMUS_NATS_INLINE + 1), 0);
    ck_assert_uint_eq(publish.payload.size, DOMUS_NATS_INLINE + 1);
    text[1024] = '\0';
    ck_assert_int_eq(domus_nats_set_subject(&publish, text), 0);
    ck_assert_uint_eq(strlen(encode_publication_as_text(&publish)), 4 + 1024 + 1 + 3 + 2 + 185 + 2);
    text[1024] = 'x';
    text[1025] = '\0';
    ck_assert_int_eq(domus_nats_set_subject(&publish, text), -EINVAL);
    domus_nats_publish_free(&publish);
}

/* A publication sends all bytes of its payload, also at sizes around the one from which on payloads
 * are no longer copied. */
DOMT_TEST(payload_of_each_size_is_sent_whole)
{
    static const size_t sizes[] = {0, 1, 183, 184, 185, 511, 512, 513, 65536, 200000};
    static char bytes[200000];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 23);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int headed = 0; headed < 2; headed++) {
            domus_nats_publish publish = {.used = 0};
            char line[80];
            ck_assert_int_eq(domus_nats_set_subject(&publish, "s"), 0);
            ck_assert_int_eq(domus_nats_set_payload(&publish, bytes, sizes[i]), 0);
            if (headed == 1)
                publish.headers = make_slice_of_text("NATS/1.0\r\n\r\n");
            snprintf(line, sizeof line,
                     headed ? "HPUB s 12 %zu\r\nNATS/1.0\r\n\r\n" : "PUB s %zu\r\n",
                     sizes[i] + (headed ? 12 : 0));
            const char *sent = encode_publication_as_text(&publish);
            ck_assert_int_eq(strncmp(sent, line, strlen(line)), 0);
            ck_assert_int_eq(memcmp(sent + strlen(line), bytes, sizes[i]), 0);
            ck_assert_str_eq(sent + strlen(line) + sizes[i], "\r\n");
            domus_nats_publish_free(&publish);
        }
    }
}

DOMT_TEST(malformed_publication_is_refused)
{
    static const char *const subjects[] = {"",   " ",  "a b",  "a\t",  "a\r\nPING", ".",
                                           ".a", "a.", "a..b", "\x7f", "\x01"};
    static const char *const blocks[] = {"x", "NATS/1.0\r\n\r", "NATS/1.0\r\nA: b\r\n",
                                         "NATS/1.0x\r\n\r\n", "MATS/1.0\r\n\r\n"};
    domus_nats_publish publish = {.used = 0};

    ck_assert_str_eq(encode_publication_as_text(&publish),
                     "EINVAL"); /* this publication is refused, because it has no subject */
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        ck_assert_int_eq(domus_nats_set_subject(&publish, subjects[i]), -EINVAL);
        ck_assert_int_eq(domus_nats_set_reply(&publish, subjects[i]), -EINVAL);
        if (subjects[i][0] == '\0')
            continue;
        domus_nats_publish bare = {.subject = make_slice_of_text(subjects[i])};
        ck_assert_str_eq(encode_publication_as_text(&bare), "EINVAL");
        bare.reply = bare.subject;
        bare.subject = make_slice_of_text("a");
        ck_assert_str_eq(encode_publication_as_text(&bare), "EINVAL");
        domus_nats_publish_free(&bare);
    }
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        domus_nats_publish bare = {.subject = make_slice_of_text("a"),
                                   .headers = make_slice_of_text(blocks[i])};
        ck_assert_str_eq(encode_publication_as_text(&bare), "EINVAL");
        domus_nats_publish_free(&bare);
    }
    publish.subject_size = 1;
    publish.subject_at = DOMUS_NATS_INLINE;
    ck_assert_str_eq(encode_publication_as_text(&publish), "EINVAL");
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_message_type, &publish), "EOPNOTSUPP");
}

DOMT_TEST(subscription_is_encoded_as_line)
{
    domus_nats_sub sub = {.number = 17, .subject = "a.*.>"};
    domus_nats_unsub unsub = {.number = UINT64_MAX};

    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_sub_type, &sub), "SUB a.*.> 17\r\n");
    sub.queue = "q";
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_sub_type, &sub), "SUB a.*.> q 17\r\n");
    sub.queue = "q r";
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_sub_type, &sub), "EINVAL");
    sub.queue = NULL;
    sub.subject = "a b";
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_sub_type, &sub), "EINVAL");
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_unsub_type, &unsub),
                     "UNSUB 18446744073709551615\r\n");
    unsub.messages_max = 5;
    unsub.number = 0;
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_unsub_type, &unsub), "UNSUB 0 5\r\n");
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_ping_type, NULL), "PING\r\n");
}

DOMT_TEST(connect_is_encoded_as_json)
{
    domus_nats_connect connect = {.headers = true};

    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_connect_type, &connect),
                     "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,"
                     "\"echo\":true,\"headers\":true,\"no_responders\":true,\"lang\":\"c\","
                     "\"version\":\"domus\",\"protocol\":1}\r\n");
    connect =
        (domus_nats_connect){.name = "a\"\r\nb", .user = "u", .password = "p", .no_echo = true};
    ck_assert_str_eq(
        domt_nats_encode_message(&domus_nats_connect_type, &connect),
        "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,"
        "\"echo\":false,\"headers\":false,\"no_responders\":false,\"lang\":\"c\","
        "\"version\":\"domus\",\"protocol\":1,\"name\":\"a\\\"\\r\\nb\",\"user\":\"u\","
        "\"pass\":\"p\"}\r\n");
    connect =
        (domus_nats_connect){.token = "t", .jwt = "j", .nkey = "n", .signature = "s", .tls = true};
    const char *sent = domt_nats_encode_message(&domus_nats_connect_type, &connect);
    ck_assert_ptr_nonnull(strstr(sent, "\"tls_required\":true"));
    ck_assert_ptr_nonnull(
        strstr(sent, "\"auth_token\":\"t\",\"jwt\":\"j\",\"nkey\":\"n\",\"sig\":\"s\"}"));
    connect = (domus_nats_connect){.name = "\xff"};
    ck_assert_str_eq(domt_nats_encode_message(&domus_nats_connect_type, &connect), "EINVAL");
}

/* --- headers ---------------------------------------------------------------------------------- */

/* Make a message as it is received from a server, with this text as its block of headers. */
static domus_nats_message make_message_with_headers(const char *headers)
{
    return (domus_nats_message){.bytes = make_slice_of_text(headers),
                                .headers_size = (uint32_t)strlen(headers)};
}

static void has_message_header_value(const domus_nats_message *message, const char *name,
                                     uint32_t *from, const char *expected)
{
    domus_slice value;
    int error = domus_nats_header(message, name, from, &value);

    if (expected == NULL) {
        ck_assert_int_eq(error, -ENOENT);
        return;
    }
    ck_assert_int_eq(error, 0);
    ck_assert_msg(domus_slice_equals(value, expected, strlen(expected)), "%.*s", (int)value.size,
                  domus_slice_data(value));
}

DOMT_TEST(header_is_found_by_name)
{
    domus_nats_message message =
        make_message_with_headers("NATS/1.0 408  Request Timeout \r\nA: b\r\nno colon\r\n"
                                  "Long-Name:\tvalue : more \r\nA:c\r\nE:\r\n\r\n");
    uint32_t from = 0, count = 0;
    domus_slice name, value;

    has_message_header_value(&message, "A", NULL, "b");
    has_message_header_value(&message, "A", NULL, "b");
    has_message_header_value(&message, "A", &from, "b");
    has_message_header_value(&message, "A", &from, "c");
    has_message_header_value(&message, "A", &from, NULL);
    has_message_header_value(&message, "Long-Name", NULL, "value : more");
    has_message_header_value(&message, "long-name", NULL, NULL);
    has_message_header_value(&message, "Long", NULL, NULL);
    has_message_header_value(&message, "E", NULL, "");
    has_message_header_value(&message, "NATS/1.0 408  Request Timeout ", NULL, NULL);
    for (from = 0; domus_nats_header_next(&message, &from, &name, &value) == 0;)
        count++;
    ck_assert_uint_eq(count, 4);
    message.status = 408;
    value = domus_nats_description(&message);
    ck_assert(domus_slice_equals(value, "Request Timeout", 15));
    domus_nats_message_type.release(&message);
}

/* A block of headers without its end, or of another form, which no stage accepts, is not read
 * beyond its last byte. */
DOMT_TEST(reading_unended_headers_stops_at_last_byte)
{
    static const char *const blocks[] = {"",     "N",       "NATS/1.0", "NATS/1.0\r\nA: b",
                                         "\r\n", "A: b\r\n"};
    uint32_t from;

    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        domus_nats_message message = make_message_with_headers(blocks[i]);
        has_message_header_value(&message, "A", NULL, NULL);
        from = 1000000;
        has_message_header_value(&message, "A", &from, NULL);
        message.status = 503;
        ck_assert_uint_eq(domus_nats_description(&message).size, 0);
        domus_nats_message_type.release(&message);
    }
}

DOMT_TEST(headers_builder_makes_a_block)
{
    domus_appender headers = {0};
    domus_slice block;

    ck_assert_int_eq(domus_nats_headers_add(&headers, "Nats-Msg-Id", "1"), 0);
    ck_assert_int_eq(domus_nats_headers_add_bytes(&headers, "B", "a\0b", 3), 0);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "C", ""), 0);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "", "x"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "a b", "x"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "a:", "x"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "\x7f", "x"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "a", "x\ry"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_add(&headers, "a", "x\ny"), -EINVAL);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &block), 0);
    ck_assert(
        domus_slice_equals(block, "NATS/1.0\r\nNats-Msg-Id: 1\r\nB: a\0b\r\nC: \r\n\r\n", 41));
    domus_slice_free(block);
    ck_assert_int_eq(domus_nats_headers_end(&headers, &block), 0);
    ck_assert(domus_slice_equals(block, "NATS/1.0\r\n\r\n", 12));
    domus_slice_free(block);
}

DOMT_TEST(subscribe_ask_is_made_from_texts)
{
    domus_nats_subscribe made;

    ck_assert_int_eq(domus_nats_subscribe_make("a.>", NULL, &made), 0);
    ck_assert(domus_slice_equals(made.subject, "a.>", 3) && made.queue.size == 0);
    domus_nats_subscribe_type.release(&made);
    ck_assert_int_eq(domus_nats_subscribe_make("a.>", "q", &made), 0);
    ck_assert(domus_slice_equals(made.queue, "q", 1));
    domus_nats_subscribe_type.release(&made);
    ck_assert_int_eq(domus_nats_subscribe_make("a b", NULL, &made), -EINVAL);
    ck_assert_int_eq(domus_nats_subscribe_make("a", "q q", &made), -EINVAL);
    ck_assert_int_eq(domus_nats_subscribe_make("a", "", &made), -EINVAL);
}

DOMT_TEST(answer_is_published_to_reply_subject)
{
    domus_nats_message message = make_message_with_headers("subject reply");
    domus_nats_publish publish = {.used = 0};

    ck_assert_int_eq(domus_nats_set_reply_of(&publish, &message), -EINVAL);
    message.reply_at = 8;
    message.reply_size = 5;
    ck_assert_int_eq(domus_nats_set_reply_of(&publish, &message), 0);
    ck_assert_str_eq(encode_publication_as_text(&publish), "PUB reply 0\r\n\r\n");
    domus_nats_message_type.release(&message);
}

DOMT_SUITE(30)
