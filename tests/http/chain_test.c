/* Requests go through the chain of their connection, and answers back, in the order of the
 * table, however they are answered. */
#include "tests/http/chained.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/stage_kit.h>

#include <errno.h>
#include <string.h>

static domt_witness a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

static const domus_http_step both[] = {
    {&domt_witness_part, &a}, {&domt_witness_part, &b}, {NULL, NULL}};

/* Start anew, with the parts a and b, and c before /guarded. */
static domus_testkit *start(const domus_behaviour *behaviour, int of_a, int of_b, int of_c)
{
    a = (domt_witness){.name = 'a', .result = of_a};
    b = (domt_witness){.name = 'b', .result = of_b};
    c = (domt_witness){.name = 'c', .result = of_c};
    domt_chained_guards[0] = (domus_http_step){&domt_witness_part, &c};
    domt_chained_guards[1] = (domus_http_step){NULL, NULL};
    return domt_chained_start(behaviour, both);
}

#define OK(size, text) "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\n\r\n" text
#define TEXT(start, size, text)                                                                    \
    "HTTP/1.1 " start "\r\nContent-Length: " size "\r\nContent-Type: text/plain\r\n\r\n" text
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

DOMT_TEST(every_answer_goes_through_the_chain)
{
    static const struct {
        const char *line;
        const char *got;
        const char *notes;
    } rows[] = {
        {"GET /now", OK("4", "now\n"), "+a +b -b200 -a200 .b200/4 .a200/4 "},
        {"HEAD /now", OK("4", ""), "+a +b -b200 -a200 .b200/0 .a200/0 "},
        {"GET /later", OK("6", "later\n"), "+a +b -b200 -a200 .b200/6 .a200/6 "},
        {"GET /pieces", CHUNKED "3\r\ndef\r\n0\r\n\r\n", "+a +b -b200 -a200 .b200/6 .a200/6 "},
        {"GET /cut", CHUNKED, "+a +b -b200 -a200 .b200/3! .a200/3! "},
        {"GET /hang", "", "+a +b .b0/0! .a0/0! "},
        {"GET /fail", TEXT("404 Not Found", "10", "Not Found\n"),
         "+a +b -b404 -a404 .b404/10 .a404/10 "},
        {"HEAD /fail", TEXT("404 Not Found", "10", ""), "+a +b -b404 -a404 .b404/0 .a404/0 "},
        {"GET /again", TEXT("500 Internal Server Error", "22", "Internal Server Error\n"),
         "+a +b -b500 -a500 .b500/22 .a500/22 "},
        {"GET /wrong", TEXT("500 Internal Server Error", "22", "Internal Server Error\n"),
         "+a +b -b200 -a200 -b500 -a500 .b500/22 .a500/22 "},
        {"GET /kv/it", OK("2", "it"), "+a +b -b200 -a200 .b200/2 .a200/2 "},
        {"GET /none", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
         "+a +b -b404 -a404 .b404/0 .a404/0 "},
        {"PUT /now",
         "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n"
         "Allow: GET, HEAD, POST, OPTIONS\r\n\r\n",
         "+a +b -b405 -a405 .b405/0 .a405/0 "},
        {"GET /guarded", OK("4", "now\n"), "+a +b +c -c200 -b200 -a200 .c200/4 .b200/4 .a200/4 "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_testkit *kit = start(&domt_chained, 0, 0, 0);
        ck_assert_str_eq(domt_chained_ask(kit, rows[i].line, ""), rows[i].got);
        domt_served_end(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

/* A part that answers, fails or waits: those behind it are not entered, or later. */
DOMT_TEST(a_part_decides_whether_it_goes_on)
{
    static const struct {
        int of_a, of_b, of_c;
        const char *begin; /* of the answer */
        const char *notes;
    } rows[] = {
        {DOMUS_HTTP_ANSWERED, 0, 0, "HTTP/1.1 403 ", "+a -a403 .a403/3 "},
        {0, DOMUS_HTTP_ANSWERED, 0, "HTTP/1.1 403 ", "+a +b -b403 -a403 .b403/3 .a403/3 "},
        {0, -EACCES, 0, "HTTP/1.1 403 ", "+a +b -b403 -a403 .b403/10 .a403/10 "},
        {0, DOMUS_PARKED, 0, "HTTP/1.1 200 ",
         "+a +b +c -c200 -b200 -a200 .c200/4 .b200/4 .a200/4 "},
        {0, 0, DOMUS_HTTP_ANSWERED, "HTTP/1.1 403 ",
         "+a +b +c -c403 -b403 -a403 .c403/3 .b403/3 .a403/3 "},
        {DOMUS_PARKED, DOMUS_PARKED, DOMUS_PARKED, "HTTP/1.1 200 ",
         "+a +b +c -c200 -b200 -a200 .c200/4 .b200/4 .a200/4 "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_testkit *kit = start(&domt_chained, rows[i].of_a, rows[i].of_b, rows[i].of_c);
        const char *got = domt_chained_ask(kit, "GET /guarded", "");
        ck_assert_msg(strncmp(got, rows[i].begin, strlen(rows[i].begin)) == 0, "%s", got);
        domt_served_end(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

DOMT_TEST(a_part_that_waits_is_waited_for)
{
    domus_testkit *kit = start(&domt_chained, 0, DOMUS_PARKED, 0); /* b waits for 5 ms */
    domus_peer *peer = domt_served_peer(kit);

    domt_served_send(peer, "GET /guarded HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_served_pass(kit, DOMT_SERVED_MS);
    ck_assert_str_eq(domt_witness_notes, "+a +b ");
    domt_served_expect(kit, peer, OK("4", "now\n"));
    domt_served_end(kit);
    ck_assert_str_eq(domt_witness_notes, "+a +b +c -c200 -b200 -a200 .c200/4 .b200/4 .a200/4 ");
}

/* Answers of requests that were sent together are told apart. */
DOMT_TEST(requests_of_one_connection_are_told_apart)
{
    domus_testkit *kit = start(&domt_chained, 0, 0, 0);
    const char *got = domt_chained_send(kit, NULL,
                                        "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
                                        "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
                                        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");

    ck_assert_str_eq(got, OK("6", "later\n") OK(
                              "4", "now\n") "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    domt_served_end(kit);
    ck_assert_str_eq(domt_witness_notes, "+a +b +a +b -b200 -a200 .b200/4 .a200/4 "
                                         "+a +b -b404 -a404 .b404/0 .a404/0 "
                                         "-b200 -a200 .b200/6 .a200/6 ");
}

DOMT_TEST(bytes_that_are_no_request_are_seen)
{
    domus_testkit *kit = start(&domt_chained, 0, 0, 0);
    a.adds = b.fills = true;
    const char *got = domt_chained_send(kit, NULL, "no request\r\n\r\n");

    ck_assert_str_eq(got, "HTTP/1.1 400 Bad Request\r\nContent-Length: 10\r\nConnection: close\r\n"
                          "Content-Type: text/plain\r\nX-a: yes\r\n\r\nmade by b\n");
    domt_served_end(kit);
    ck_assert_str_eq(domt_witness_notes, "-b400 -a400 .b400/10 .a400/10 ");
}

DOMT_TEST(parts_add_fields_and_bodies_of_errors)
{
    static const struct {
        const char *line;
        const char *got;
    } rows[] = {
        {"GET /now", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-b: yes\r\nX-a: yes\r\n\r\nnow\n"},
        {"GET /bare", "HTTP/1.1 418 \r\nContent-Length: 10\r\nContent-Type: text/plain\r\n"
                      "X-b: yes\r\nX-a: yes\r\n\r\nmade by b\n"},
        {"GET /fail", "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n"
                      "X-b: yes\r\nX-a: yes\r\n\r\nmade by b\n"},
        {"HEAD /fail", "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n"
                       "Content-Type: text/plain\r\nX-b: yes\r\nX-a: yes\r\n\r\n"},
        {"PUT /now", "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 10\r\n"
                     "Content-Type: text/plain\r\nX-b: yes\r\nX-a: yes\r\n"
                     "Allow: GET, HEAD, POST, OPTIONS\r\n\r\nmade by b\n"},
    };
    domus_testkit *kit = start(&domt_chained, 0, 0, 0);

    a.adds = b.adds = a.fills = b.fills = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(domt_chained_ask(kit, rows[i].line, ""), rows[i].got);
    a.breaks = true;
    const char *got = domt_chained_ask(kit, "GET /now", "");
    ck_assert_msg(strncmp(got, "HTTP/1.1 500 ", 13) == 0, "%s", got);
    domt_served_end(kit);
}

DOMT_TEST(own_handlers_enter_the_chain)
{
    static const struct {
        int of_b;
        const char *begin;
        const char *notes;
    } rows[] = {
        {0, "HTTP/1.1 200 ", "+a +b -b200 -a200 .b200/4 .a200/4 "},
        {DOMUS_HTTP_ANSWERED, "HTTP/1.1 403 ", "+a +b -b403 -a403 .b403/3 .a403/3 "},
        {-EBUSY, "HTTP/1.1 503 ", "+a +b -b503 -a503 .b503/20 .a503/20 "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_testkit *kit = start(&domt_chained_own, 0, rows[i].of_b, 0);
        const char *got = domt_chained_ask(kit, "GET /", "");
        ck_assert_msg(strncmp(got, rows[i].begin, strlen(rows[i].begin)) == 0, "%s", got);
        domt_served_end(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

/* The answer of a handler that has not entered never leaves. */
DOMT_TEST(nobody_goes_around_the_chain)
{
    domus_testkit *kit = start(&domt_chained_around, 0, 0, 0);

    ck_assert_str_eq(domt_chained_ask(kit, "GET /", ""),
                     TEXT("500 Internal Server Error", "22", "Internal Server Error\n"));
    domt_served_end(kit);
    ck_assert_str_eq(domt_witness_notes, "-b500 -a500 .b500/22 .a500/22 ");
}

static int check(const domus_http_chain *chain)
{
    domus_http_options options = {.chain = chain};
    domus_pipeline_stage stages[] = {{&domus_http_stage, &options}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;
    int error = domus_stage_kit_new(&pipeline, &kit);

    domus_stage_kit_free(kit);
    return error;
}

/* A handler that is never called. */
static int handle(domus_stack *stack, void *self, const domus_http_request *request,
                  const domus_http_match *match)
{
    return 0;
}

DOMT_TEST(wrong_chains_are_refused)
{
    domus_http_step parts[DOMUS_HTTP_PARTS_MAX + 1];
    domus_http_row rows[2] = {{{1, "/", 0}, handle, NULL}, {{0, NULL, 0}, NULL, NULL}};
    const domus_http_step one[] = {{&domt_witness_part, &a}, {NULL, NULL}};
    const domus_http_step wrong[] = {{&domt_witness_part, NULL}, {NULL, NULL}};

    for (size_t i = 0; i < DOMUS_HTTP_PARTS_MAX; i++)
        parts[i] = one[0];
    parts[DOMUS_HTTP_PARTS_MAX] = one[1];
    ck_assert_int_eq(check(&(domus_http_chain){parts, rows}), 0);
    ck_assert_int_eq(check(&(domus_http_chain){wrong, rows}), -EINVAL);
    rows[0].parts = one; /* one more than there may be */
    ck_assert_int_eq(check(&(domus_http_chain){parts, rows}), -EINVAL);
    parts[DOMUS_HTTP_PARTS_MAX - 1] = one[1];
    ck_assert_int_eq(check(&(domus_http_chain){parts, rows}), 0);
    rows[0].handle = NULL;
    ck_assert_int_eq(check(&(domus_http_chain){parts, rows}), -EINVAL);
    ck_assert_int_eq(check(&(domus_http_chain){NULL, NULL}), 0);
}

DOMT_SUITE(20)
