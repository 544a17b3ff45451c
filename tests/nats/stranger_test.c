/* Other clients of the same servers: a server forwards their messages unchecked, so no content of
 * such a message may end the connection of a subscriber. */
#include "tests/nats/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static domus_peer *peer;
static uint64_t number; /* number of the subscription */

static void set_up(const domus_nats_options *options)
{
    peer = domt_nats_begin_logged_in(options, NULL);
    number = domt_nats_subscribe("s.>", NULL, 0, 0);
    (void)domt_nats_read_line(peer);
}

/* Let the server deliver a message with these headers and this payload. */
static void deliver_message(const char *headers, size_t size, const char *payload)
{
    char line[100];

    snprintf(line, sizeof line, "HMSG s.x %llu %zu %zu\r\n", (unsigned long long)number, size,
             size + strlen(payload));
    domt_nats_send_to_client(peer, line);
    domt_expect_success(domus_peer_send(peer, headers, size));
    domt_nats_send_to_client(peer, payload);
    domt_nats_send_to_client(peer, "\r\n");
}

DOMT_TEST(headers_that_are_none_are_passed_on)
{
    static const char *const blocks[] = {"abcd", "\r\n\r\n", "NATS/1.0 503\r\n", "NATS/9.0\r\n\r\n",
                                         "NATS/1.0x503\r\n\r\n"};

    set_up(NULL);
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        domus_nats_message message;
        domus_slice name, value;
        uint32_t from = 0;

        deliver_message(blocks[i], strlen(blocks[i]), "hi");
        domt_expect_success(
            domus_probe_expect(domt_probe, &domus_nats_message_type, SECOND, &message));
        ck_assert(domus_slice_equals(domus_nats_headers(&message), blocks[i], strlen(blocks[i])));
        ck_assert(domus_slice_equals(domus_nats_payload(&message), "hi", 2));
        ck_assert_uint_eq(message.status, 0);
        ck_assert_uint_eq(domus_nats_description(&message).size, 0);
        ck_assert_int_eq(domus_nats_header_next(&message, &from, &name, &value), -ENOENT);
        domus_nats_message_type.release(&message);
    }
    ck_assert(domt_nats_read_status().connected);
    domt_nats_end();
}

/* A server limits headers only by the size of the whole message. */
DOMT_TEST(headers_may_fill_a_message)
{
    static char headers[200000];

    memset(headers, 'x', sizeof headers);
    memcpy(headers, "NATS/1.0\r\nA: ", 13);
    memcpy(headers + sizeof headers - 4, "\r\n\r\n", 4);
    set_up(NULL);
    deliver_message(headers, sizeof headers, "hi");
    domt_nats_expect_message(domt_probe, "s.x", "hi", 0);
    ck_assert(domt_nats_read_status().connected);
    domt_nats_end();
}

/* A line of 4096 bytes, which a server accepts from a publisher, becomes longer when the server
 * adds a number. */
DOMT_TEST(line_may_be_longer_than_that_of_the_publisher)
{
    static char subject[5000], line[6000];

    memset(subject, 'y', 4085);
    memcpy(subject, "s.", 2);
    set_up(NULL);
    snprintf(line, sizeof line, "MSG %s %llu 2\r\nhi\r\n", subject, (unsigned long long)number);
    domt_nats_send_to_client(peer, line);
    domt_nats_expect_message(domt_probe, subject, "hi", 0);
    domt_nats_end();
}

/* The server repeats the subject in its error, and any client may choose a subject. */
DOMT_TEST(subject_in_an_error_is_no_reason)
{
    set_up(NULL);
    domt_nats_send_to_client(
        peer, "-ERR 'Permissions Violation for Publish to \"authentication.x\"'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, 0);
    domt_nats_send_to_client(
        peer, "-ERR 'Permissions Violation for Subscription to \"authorization\" using "
              "queue \"authentication\"'\r\n");
    domt_nats_expect_event(DOMUS_NATS_ERROR, 0);
    ck_assert(domt_nats_read_status().connected);
    domt_nats_end();
}

DOMT_SUITE(60)
