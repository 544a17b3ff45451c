/* A chain around handlers: its parts and their order, the protocol that they see, and CORS, by
 * which browsers learn which sites may send requests to this one (Fetch standard). */
#include "tests/http/chained.h"
#include "tests/http/h2_peer.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/http_chain.h>
#include <domus/http_cors.h>
#include <domus/stage_kit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static domt_witness a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

static const domus_http_step both[] = {
    {&domt_witness_part, &a}, {&domt_witness_part, &b}, {NULL, NULL}};

/* Start a kit with the parts a and b for all requests, and c before /guarded. */
static domus_testkit *start_chain_with_parts(const domus_behaviour *behaviour, int of_a, int of_b,
                                             int of_c)
{
    a = (domt_witness){.name = 'a', .result = of_a};
    b = (domt_witness){.name = 'b', .result = of_b};
    c = (domt_witness){.name = 'c', .result = of_c};
    domt_chained_guards[0] = (domus_http_step){&domt_witness_part, &c};
    domt_chained_guards[1] = (domus_http_step){NULL, NULL};
    return domt_chained_start_kit(behaviour, both);
}

#define OK(size, text) "HTTP/1.1 200 OK\r\nContent-Length: " size "\r\n\r\n" text
#define TEXT(start_chain_with_parts, size, text)                                                   \
    "HTTP/1.1 " start_chain_with_parts "\r\nContent-Length: " size                                 \
    "\r\nContent-Type: text/plain\r\n\r\n" text
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

DOMT_TEST(every_answer_goes_through_the_parts_of_the_chain)
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
        domus_testkit *kit = start_chain_with_parts(&domt_chained, 0, 0, 0);
        ck_assert_str_eq(domt_chained_answer_to_request(kit, rows[i].line, ""), rows[i].got);
        domt_served_end_kit(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

/* A part of a chain may answer, fail or wait: the parts behind it are entered later or not at
 * all. */
DOMT_TEST(a_part_decides_whether_the_request_goes_on)
{
    static const struct {
        int of_a, of_b, of_c;
        const char *begin; /* the first bytes of the expected answer */
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
        domus_testkit *kit =
            start_chain_with_parts(&domt_chained, rows[i].of_a, rows[i].of_b, rows[i].of_c);
        const char *got = domt_chained_answer_to_request(kit, "GET /guarded", "");
        ck_assert_msg(strncmp(got, rows[i].begin, strlen(rows[i].begin)) == 0, "%s", got);
        domt_served_end_kit(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

DOMT_TEST(a_part_that_waits_is_waited_for)
{
    /* part b waits for 5 ms before it goes on */
    domus_testkit *kit = start_chain_with_parts(&domt_chained, 0, DOMUS_PARKED, 0);
    domus_peer *peer = domt_served_connect_peer(kit);

    domt_served_send_text(peer, "GET /guarded HTTP/1.1\r\nHost: a\r\n\r\n");
    domt_served_advance_kit(kit, DOMT_SERVED_MS);
    ck_assert_str_eq(domt_witness_notes, "+a +b ");
    domt_served_expect_text(kit, peer, OK("4", "now\n"));
    domt_served_end_kit(kit);
    ck_assert_str_eq(domt_witness_notes, "+a +b +c -c200 -b200 -a200 .c200/4 .b200/4 .a200/4 ");
}

/* Parts of a chain can tell apart the answers to requests that came in one packet. */
DOMT_TEST(requests_of_one_connection_are_told_apart)
{
    domus_testkit *kit = start_chain_with_parts(&domt_chained, 0, 0, 0);
    const char *got = domt_chained_answer_to_bytes(kit, NULL,
                                                   "GET /later HTTP/1.1\r\nHost: a\r\n\r\n"
                                                   "GET /now HTTP/1.1\r\nHost: a\r\n\r\n"
                                                   "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");

    ck_assert_str_eq(got, OK("6", "later\n") OK(
                              "4", "now\n") "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    domt_served_end_kit(kit);
    ck_assert_str_eq(domt_witness_notes, "+a +b +a +b -b200 -a200 .b200/4 .a200/4 "
                                         "+a +b -b404 -a404 .b404/0 .a404/0 "
                                         "-b200 -a200 .b200/6 .a200/6 ");
}

DOMT_TEST(parts_see_the_answer_to_bytes_that_are_no_request)
{
    domus_testkit *kit = start_chain_with_parts(&domt_chained, 0, 0, 0);
    a.adds = b.fills = true;
    const char *got = domt_chained_answer_to_bytes(kit, NULL, "no request\r\n\r\n");

    ck_assert_str_eq(got, "HTTP/1.1 400 Bad Request\r\nContent-Length: 10\r\nConnection: close\r\n"
                          "Content-Type: text/plain\r\nX-a: yes\r\n\r\nmade by b\n");
    domt_served_end_kit(kit);
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
    domus_testkit *kit = start_chain_with_parts(&domt_chained, 0, 0, 0);

    a.adds = b.adds = a.fills = b.fills = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(domt_chained_answer_to_request(kit, rows[i].line, ""), rows[i].got);
    a.breaks = true;
    const char *got = domt_chained_answer_to_request(kit, "GET /now", "");
    ck_assert_msg(strncmp(got, "HTTP/1.1 500 ", 13) == 0, "%s", got);
    domt_served_end_kit(kit);
}

DOMT_TEST(handlers_that_enter_the_chain_themselves_go_through_it)
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
        domus_testkit *kit = start_chain_with_parts(&domt_chained_own, 0, rows[i].of_b, 0);
        const char *got = domt_chained_answer_to_request(kit, "GET /", "");
        ck_assert_msg(strncmp(got, rows[i].begin, strlen(rows[i].begin)) == 0, "%s", got);
        domt_served_end_kit(kit);
        ck_assert_str_eq(domt_witness_notes, rows[i].notes);
    }
}

/* An answer is never sent if its handler has not entered the chain. */
DOMT_TEST(an_answer_of_a_handler_outside_the_chain_is_not_sent)
{
    domus_testkit *kit = start_chain_with_parts(&domt_chained_around, 0, 0, 0);

    ck_assert_str_eq(domt_chained_answer_to_request(kit, "GET /", ""),
                     TEXT("500 Internal Server Error", "22", "Internal Server Error\n"));
    domt_served_end_kit(kit);
    ck_assert_str_eq(domt_witness_notes, "-b500 -a500 .b500/22 .a500/22 ");
}

static int result_of_chain_check(const domus_http_chain *chain)
{
    domus_http_options options = {.chain = chain};
    domus_pipeline_stage stages[] = {{&domus_http_stage, &options}, {NULL, NULL}};
    domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;
    int error = domus_stage_kit_new(&pipeline, &kit);

    domus_stage_kit_free(kit);
    return error;
}

/* A handler that is never called, for chains that are only checked. */
static int handler_that_is_never_called(domus_stack *stack, void *self,
                                        const domus_http_request *request,
                                        const domus_http_match *match)
{
    return 0;
}

DOMT_TEST(wrong_chains_are_refused)
{
    domus_http_step parts[DOMUS_HTTP_PARTS_MAX + 1];
    domus_http_row rows[2] = {{{1, "/", 0}, handler_that_is_never_called, NULL},
                              {{0, NULL, 0}, NULL, NULL}};
    const domus_http_step one[] = {{&domt_witness_part, &a}, {NULL, NULL}};
    const domus_http_step wrong[] = {{&domt_witness_part, NULL}, {NULL, NULL}};

    for (size_t i = 0; i < DOMUS_HTTP_PARTS_MAX; i++)
        parts[i] = one[0];
    parts[DOMUS_HTTP_PARTS_MAX] = one[1];
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){parts, rows}), 0);
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){wrong, rows}), -EINVAL);
    rows[0].parts = one; /* together with the row's part there is one part more than allowed */
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){parts, rows}), -EINVAL);
    parts[DOMUS_HTTP_PARTS_MAX - 1] = one[1];
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){parts, rows}), 0);
    rows[0].handle = NULL;
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){parts, rows}), -EINVAL);
    ck_assert_int_eq(result_of_chain_check(&(domus_http_chain){NULL, NULL}), 0);
}

static const char *const two[] = {"https://a.example", "http://b.example:8080", NULL};
static const char *const every[] = {"*", NULL};

static const domus_http_cors of_two = {.origins = two,
                                       .credentials = true,
                                       .methods = DOMUS_HTTP_ON(PUT) | DOMUS_HTTP_ON(DELETE),
                                       .headers = "Content-Type, X-A",
                                       .exposed = "ETag",
                                       .max_age_s = 600};
static const domus_http_cors of_every = {.origins = every};

#define PREFLIGHT "Access-Control-Request-Method: PUT\r\n"
#define OF_A                                                                                       \
    "Vary: Origin\r\nAccess-Control-Allow-Origin: https://a.example\r\n"                           \
    "Access-Control-Allow-Credentials: true\r\nAccess-Control-Expose-Headers: ETag\r\n"

DOMT_TEST(answers_tell_origins_what_cors_allows)
{
    static const struct {
        const domus_http_cors *cors;
        const char *line;
        const char *fields;
        const char *got;
    } rows[] = {
        {&of_two, "GET /now", "",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n" OF_A "\r\nnow\n"},
        {&of_two, "GET /fail", "Origin: https://a.example\r\n",
         "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\nContent-Type: text/plain\r\n" OF_A
         "\r\nNot Found\n"},
        {&of_two, "GET /now", "Origin: https://A.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example.evil\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: null\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "GET /now", "Origin: https://a.example\r\nOrigin: https://a.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVary: Origin\r\n\r\nnow\n"},
        {&of_two, "OPTIONS /none", "Origin: https://a.example\r\n" PREFLIGHT,
         "HTTP/1.1 204 No Content\r\n" OF_A "Access-Control-Allow-Methods: PUT, DELETE\r\n"
         "Access-Control-Allow-Headers: Content-Type, X-A\r\nAccess-Control-Max-Age: 600\r\n\r\n"},
        {&of_two, "OPTIONS /now", "Origin: https://c.example\r\n" PREFLIGHT,
         "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nVary: Origin\r\n\r\n"},
        {&of_two, "OPTIONS /now", PREFLIGHT,
         "HTTP/1.1 204 No Content\r\nVary: Origin\r\nAllow: GET, HEAD, POST, OPTIONS\r\n\r\n"},
        {&of_every, "GET /now", "Origin: https://c.example\r\n",
         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nAccess-Control-Allow-Origin: *\r\n\r\nnow\n"},
        {&of_every, "GET /now", "", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnow\n"},
        {&of_every, "OPTIONS /now", "Origin: null\r\n" PREFLIGHT,
         "HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: *\r\n"
         "Access-Control-Allow-Methods: GET, HEAD, POST\r\n\r\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const domus_http_step parts[] = {{&domus_http_cross_origin, rows[i].cors}, {NULL, NULL}};
        domus_testkit *kit = domt_chained_start_kit(&domt_chained, parts);
        ck_assert_str_eq(domt_chained_answer_to_request(kit, rows[i].line, rows[i].fields),
                         rows[i].got);
        domt_served_end_kit(kit);
    }
}

static int result_of_origin_check(const char *origin)
{
    const char *const origins[] = {origin, NULL};
    const domus_http_cors cors = {.origins = origins};

    return domus_http_cross_origin.check(&cors);
}

DOMT_TEST(origins_of_cors_are_checked)
{
    static const char *const wrong[] = {"",
                                        "null",
                                        "a.example",
                                        "https://",
                                        "https://a/",
                                        "://a",
                                        "https://A",
                                        "https://a b",
                                        "https://*.example",
                                        "https://a,https://b",
                                        "HTTP://",
                                        "https://a\r\nb",
                                        "https://a.example?"};
    char text[DOMUS_HTTP_ORIGIN_MAX + 2] = "https://";

    ck_assert_int_eq(result_of_origin_check("https://a.example:8443"), 0);
    ck_assert_int_eq(result_of_origin_check("*"), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(result_of_origin_check(wrong[i]) == -EINVAL, "%s", wrong[i]);
    memset(text + 8, 'a', DOMUS_HTTP_ORIGIN_MAX - 8);
    ck_assert_int_eq(result_of_origin_check(text), 0);
    text[DOMUS_HTTP_ORIGIN_MAX] = 'a';
    ck_assert_int_eq(result_of_origin_check(text), -EINVAL);
}

DOMT_TEST(wrong_options_of_cors_and_origins_are_refused)
{
    static const char *const none[] = {NULL};
    static const char *const more[] = {"*", "https://a", NULL};
    const domus_http_cors rows[] = {
        {.origins = NULL},
        {.origins = none},
        {.origins = more},
        {.origins = every, .credentials = true},
        {.origins = two, .credentials = true, .headers = "*"},
        {.origins = two, .credentials = true, .exposed = "*"},
        {.origins = two, .headers = "a b"},
        {.origins = two, .exposed = "a,,b"},
        {.origins = two, .exposed = "a\r\nb: c"},
        {.origins = two, .methods = 1u << DOMUS_HTTP_METHODS},
        {.origins = two, .max_age_s = DOMUS_HTTP_CORS_AGE_MAX + 1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_int_eq(domus_http_cross_origin.check(&rows[i]), -EINVAL);
    ck_assert_int_eq(domus_http_cross_origin.check(NULL), -EINVAL);
    ck_assert_int_eq(domus_http_cross_origin.check(&of_two), 0);
    ck_assert_int_eq(
        domus_http_cross_origin.check(&(domus_http_cors){.origins = every,
                                                         .headers = "*",
                                                         .exposed = "*",
                                                         .max_age_s = DOMUS_HTTP_CORS_AGE_MAX}),
        0);
}

static char seen_via[16];
static char seen_carrier[16];
static unsigned seen_ended;

static int answer_and_note_carrier(domus_stack *stack, void *self,
                                   const domus_http_request *request, const domus_http_match *match)
{
    const char *name = domus_channel_carrier(domus_channel_running(stack));

    snprintf(seen_carrier, sizeof seen_carrier, "%s", name != NULL ? name : "-");
    int result = domus_http_answer(stack, 200, NULL, "text/plain", "now\n");
    return result == DOMUS_HTTP_ANSWERED ? 0 : result;
}

static void note_via_of_ended_exchange(domus_http_exchange *exchange, const void *options)
{
    snprintf(seen_via, sizeof seen_via, "%s", exchange->via);
    seen_ended++;
}

static const domus_http_part seen_part = {.name = "notes", .end = note_via_of_ended_exchange};
static const domus_http_chain seen_chain = {
    .parts = (const domus_http_step[]){{&seen_part, NULL}, {NULL, NULL}},
    .rows = (const domus_http_row[]){
        {{DOMUS_HTTP_ON(GET), "/now", 1}, answer_and_note_carrier, NULL}, {.handle = NULL}}};
static const domus_http_options seen_http = {.chain = &seen_chain};
static const domus_pipeline seen_pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_http2_stage, NULL}, {&domus_http_stage, &seen_http}, {NULL, NULL}}};
static const domus_behaviour seen_behaviour = {
    .name = "chain",
    .kind = DOMUS_CHANNELS,
    .pipeline = &seen_pipeline,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_http_request_type, .handle = domus_http_dispatch}, {.type = NULL}}};

static void expect_version_carrier_and_count(const char *version, const char *by, unsigned count)
{
    ck_assert_uint_eq(seen_ended, count);
    ck_assert_str_eq(seen_via, version);
    ck_assert_str_eq(seen_carrier, by);
}

DOMT_TEST(parts_are_told_the_http_version)
{
    static const char *const versions[] = {"HTTP/1.0", "HTTP/1.1"};
    domus_testkit *kit = domt_served_start_kit(NULL, &seen_behaviour, 1);
    char text[64];
    domt_h2 h2;

    for (unsigned i = 0; i < 2; i++) {
        domus_peer *peer = domt_served_connect_peer(kit);
        snprintf(text, sizeof text, "GET /now %s\r\nHost: a\r\n\r\n", versions[i]);
        domt_served_send_text(peer, text);
        ck_assert_int_eq(domus_testkit_advance(kit, 10 * DOMT_SERVED_MS), 0);
        expect_version_carrier_and_count(versions[i], "-", 1 + i);
        domus_peer_close(peer);
    }
    domt_h2_begin_nghttp2_client(&h2, kit);
    domt_h2_expect_connection_works(&h2);
    expect_version_carrier_and_count("HTTP/2.0", "http2", 3);
    /* a request that the stage refuses does not enter the chain */
    int32_t wrong = domt_h2_begin_request(&h2, "GET", "/a\xff", 0, NULL);
    domt_h2_send_output_and_advance(&h2, 0);
    domt_h2_expect_answer(&h2, wrong, 400, NULL);
    ck_assert_uint_eq(seen_ended, 4);
    domt_h2_end_client_and_kit(&h2);
}

DOMT_SUITE(20)
