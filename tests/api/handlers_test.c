/* The handlers of examples/api in a test kit, with a database in memory: a first test for programs
 * that are copied from this example. Requests are written as bytes of a connection, and each row
 * says what the answer has to contain. */
#include "base/memory.h"
#include "tests/api/tracker.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <api/api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

#define DRAFT "{\"title\":\"It leaks\",\"body\":\"Run it.\",\"priority\":2}"
#define MADE                                                                                       \
    "\"title\":\"It leaks\",\"body\":\"Run it.\",\"state\":\"open\",\"priority\":2,"               \
    "\"author\":\"ada\""

/* Requests in the order in which they are sent, and texts that their answers have to contain. */
static const struct {
    const char *line;
    bool logged_in;
    const char *body;
    const char *status;
    const char *part;
} rows[] = {
    {"GET /issues", false, "", "200", "{\"items\":[],\"next\":null}"},
    {"GET /issues/1", false, "", "404", "application/problem+json"},
    {"GET /issues/0", false, "", "404", ""},
    {"GET /issues/x", false, "", "404", ""},
    {"GET /issues/99999999999999999999", false, "", "404", ""},
    {"POST /issues", false, DRAFT, "401", "application/problem+json"},
    {"POST /issues", true, DRAFT, "201", "Location: /issues/1\r\n"},
    {"GET /issues/1", false, "", "200", "{\"id\":1," MADE},
    {"POST /issues", true, "{\"title\":\"a\",\"body\":\"b\"}", "422", "priority: "},
    {"POST /issues", true, "{\"title\":\"a\",\"body\":\"b\",\"priority\":6}", "422", "1..5"},
    {"POST /issues", true, "{\"title\":", "400", ""},
    {"POST /issues", true, "", "400", ""},
    {"PATCH /issues/1", true, "{\"state\":\"closed\"}", "200", "\"state\":\"closed\""},
    {"PATCH /issues/1", true, "{\"state\":\"gone\"}", "422", "state: "},
    {"PATCH /issues/1", false, "{\"state\":\"open\"}", "401", ""},
    {"PATCH /issues/2", true, "{\"state\":\"closed\"}", "404", ""},
    {"POST /issues", true, DRAFT, "201", "{\"id\":2," MADE},
    {"GET /issues?limit=1", false, "", "200", "\"next\":2}"},
    {"GET /issues?limit=1&before=2", false, "", "200", "{\"items\":[{\"id\":1,"},
    {"GET /issues?limit=1&before=2", false, "", "200", "\"next\":null}"},
    {"GET /issues?limit=0", false, "", "422", "limit"},
    {"GET /issues?limit=101", false, "", "422", "limit"},
    {"GET /issues?before=x", false, "", "422", "before: not an integer\","},
    {"GET /issues?before=1&before=2", false, "", "422", "twice"},
    {"GET /issues?limit=1&other=%zz", false, "", "400", ""},
    {"GET /issues?other=1&limit=1", false, "", "200", "\"next\":2}"},
    {"DELETE /issues/1", true, "", "405", "Allow: "},
    {"POST /login", false, "{\"name\":\"\"}", "422", "empty"},
    {"POST /logout", true, "", "204", "Max-Age=0"},
};

static void send_requests_of_rows(uint64_t seed)
{
    domus_testkit *kit = tracker_begin_service(seed, 1000);
    domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    char cookie[256];

    tracker_log_user_in(kit, peer, "ada", cookie);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *answer = tracker_send_request_and_read(
            kit, peer, rows[i].line, rows[i].logged_in ? cookie : "", rows[i].body);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, rows[i].status, 3) == 0 &&
                          strstr(answer, rows[i].part) != NULL,
                      "row %zu, %s: %s", i, rows[i].line, answer);
    }
    tracker_end_service(kit);
}

DOMT_TEST(each_request_gets_expected_answer)
{
    for (uint64_t seed = 1; seed <= domt_tenfold_if_tests_are_long(5); seed++)
        send_requests_of_rows(seed);
}

/* A browser may send some types of bodies to another site without asking that site; the service
 * takes none of these types as JSON. A body without a length is collected before it is judged. */
DOMT_TEST(body_without_json_type_is_refused)
{
    static const struct {
        const char *fields;
        const char *status;
    } bodies[] = {
        {"Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}", "204"},
        {"Content-Type: application/a+json;v=1\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}",
         "204"},
        {"Content-Type: text/plain\r\nContent-Length: 14\r\n\r\n{\"name\":\"ada\"}", "415"},
        {"Content-Length: 14\r\n\r\n{\"name\":\"ada\"}", "415"},
        {"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
         "e\r\n{\"name\":\"ada\"}\r\n0\r\n\r\n",
         "204"},
        {"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\n{\"n\r\n0\r\n\r\n",
         "400"},
        {"Content-Type: application/json\r\nContent-Length: 65537\r\n\r\n", "413"},
        {"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n", "415"},
    };
    domus_testkit *kit = tracker_begin_service(1, 1000);

    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
        char text[512];
        snprintf(text, sizeof text, "POST /login HTTP/1.1\r\nHost: a\r\n%s", bodies[i].fields);
        const char *answer = tracker_send_bytes_and_read(kit, peer, text);
        ck_assert_msg(strncmp(answer, "HTTP/1.1 ", 9) == 0 &&
                          strncmp(answer + 9, bodies[i].status, 3) == 0,
                      "%s: %s", bodies[i].fields, answer);
    }
    tracker_end_service(kit);
}

DOMT_TEST(cookie_with_changed_signature_is_refused)
{
    domus_testkit *kit = tracker_begin_service(1, 1000);
    domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    char cookie[256];

    tracker_log_user_in(kit, peer, "ada", cookie);
    char *value = strrchr(cookie, '.') + 1;
    *value = *value == 'A' ? 'B' : 'A';
    const char *answer = tracker_send_request_and_read(kit, peer, "POST /issues", cookie, DRAFT);
    ck_assert_msg(strncmp(answer, "HTTP/1.1 401 ", 13) == 0, "%s", answer);
    tracker_end_service(kit);
}

DOMT_TEST(each_page_gets_event_of_new_issue)
{
    domus_testkit *kit = tracker_begin_service(1, 1000);
    domus_peer *page = domt_kit_connect_peer(kit, "127.0.0.1:80");
    domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    char cookie[256];

    tracker_log_user_in(kit, peer, "ada", cookie);
    const char *head = tracker_send_request_and_read(kit, page, "GET /events", "", "");
    ck_assert_ptr_nonnull(strstr(head, "text/event-stream"));
    (void)tracker_send_request_and_read(kit, peer, "POST /issues", cookie, DRAFT);
    /* a HEAD request publishes no event to the page */
    (void)tracker_send_request_and_read(kit, peer, "HEAD /issues/1", "", "");
    domt_kit_peer_expect(kit, page, "16\r\nevent: issue\ndata: 1\n\n\r\n");
    /* An empty comment keeps the stream of events alive, 15 s later. */
    domt_kit_peer_expect(kit, page, "3\r\n:\n\n\r\n");
    tracker_end_service(kit);
}

/* Ask for the stream of events from a peer with this address, and return whether the stream stays
 * open. */
static bool does_event_stream_stay_open(domus_testkit *kit, const char *from)
{
    domus_peer *page;

    ck_assert_int_eq(domus_peer_connect(kit, "127.0.0.1:80", from, &page), 0);
    const char *head = tracker_send_request_and_read(kit, page, "GET /events", "", "");
    ck_assert_ptr_nonnull(strstr(head, "text/event-stream"));
    return strstr(head, "\r\n0\r\n\r\n") == NULL;
}

/* One client may have 100 of the 1,000 places for streams of events, and a place is free again when
 * its page has disconnected. */
DOMT_TEST(one_client_cannot_take_all_event_streams)
{
    domus_testkit *kit = tracker_begin_service(1, 1000);
    domus_peer *pages[100];

    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(domus_peer_connect(kit, "127.0.0.1:80", "10.0.0.1:0", &pages[i]), 0);
        (void)tracker_send_request_and_read(kit, pages[i], "GET /events", "", "");
    }
    ck_assert(!does_event_stream_stay_open(kit, "10.0.0.1:0"));
    ck_assert(does_event_stream_stay_open(kit, "10.0.0.2:0"));
    domus_peer_close(pages[7]);
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
    ck_assert(does_event_stream_stay_open(kit, "10.0.0.1:0"));
    ck_assert(!does_event_stream_stay_open(kit, "10.0.0.1:0"));
    domus_peer_reset(pages[8]);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert(does_event_stream_stay_open(kit, "10.0.0.1:0"));
    tracker_end_service(kit);
}

/* Send a query for which `count` allocations succeed and the next one fails. Returns the status,
 * or 0 if no answer came: the network of the kit allocates from the same memory and may have
 * failed. */
static int send_query_with_failing_memory(int64_t count)
{
    domus_testkit *kit = tracker_begin_service(1, 1000);
    domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    int status = 0;
    size_t size;

    domt_kit_peer_send(peer, "GET /issues?limit=1 HTTP/1.1\r\nHost: a\r\n\r\n");
    domi_memory_fail_allocation_after(count, 0);
    (void)domus_testkit_run(kit);
    domi_memory_fail_allocation_after(-1, 0);
    (void)domus_testkit_run(kit);
    const char *answer = domus_peer_got(peer, &size);
    if (size > 12)
        status = (int)strtol(answer + 9, NULL, 10);
    tracker_end_service(kit);
    return status;
}

/* A query that finds no memory is answered with a status of 500 or more, because the client has
 * made no mistake. */
DOMT_TEST(query_without_memory_is_a_server_error)
{
    unsigned refused = 0;
    int status;

    for (int64_t count = 0; (status = send_query_with_failing_memory(count)) != 200; count++) {
        ck_assert_msg(status == 0 || status >= 500, "%d behind %d", status, (int)count);
        refused += status == 503;
    }
    ck_assert_uint_gt(refused, 0);
}

/* "If-None-Match: *" matches any answer, so it gets the same status 304 as the right tag. */
DOMT_TEST(unchanged_answer_is_not_sent_again)
{
    static const char *const lines[] = {"GET /issues", "GET /issues/1"};
    domus_testkit *kit = tracker_begin_service(1, 1000);
    domus_peer *peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    char cookie[256];

    tracker_log_user_in(kit, peer, "ada", cookie);
    (void)tracker_send_request_and_read(kit, peer, "POST /issues", cookie, DRAFT);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *answer =
            tracker_send_request_and_read(kit, peer, lines[i], "a=b\r\nIf-None-Match: *", "");
        ck_assert_msg(strncmp(answer, "HTTP/1.1 304 ", 13) == 0 &&
                          strstr(answer, "ETag: \"") != NULL,
                      "%s", answer);
    }
    tracker_end_service(kit);
}

DOMT_TEST(requests_of_an_address_are_rate_limited)
{
    domus_testkit *kit;
    domus_peer *peer;
    int refused = 0;

    kit = tracker_begin_service(1, 10);
    peer = domt_kit_connect_peer(kit, "127.0.0.1:80");
    for (int i = 0; i < 12; i++) {
        const char *answer = tracker_send_request_and_read(kit, peer, "GET /issues", "", "");
        refused += strncmp(answer, "HTTP/1.1 429 ", 13) == 0 && strstr(answer, "Retry-After: 1");
    }
    ck_assert_int_eq(refused, 2);
    ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
    ck_assert_int_eq(strncmp(tracker_send_request_and_read(kit, peer, "GET /issues", "", ""),
                             "HTTP/1.1 200 ", 13),
                     0);
    tracker_end_service(kit);
}

DOMT_SUITE(60)
