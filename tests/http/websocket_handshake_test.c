/* The handshake of WebSocket: a server answers each kind of request, and a client checks each kind
 * of answer. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/websocket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const domus_pipeline any = {0};
static const char *const protocols[] = {"chat.v2", "chat.v1", NULL};
static const char *const origins[] = {"https://a.example", "http://b.example:8080", NULL};
static const domus_websocket_service plain = {.pipeline = &any};
static const domus_websocket_service choosy = {
    .pipeline = &any, .protocols = protocols, .origins = origins};

/* --- a server --------------------------------------------------------------------------------- */

#define GET      "GET /socket HTTP/1.1\r\nHost: a\r\n"
#define UPGRADE  "Connection: Upgrade\r\nUpgrade: websocket\r\n"
#define VERSION  "Sec-WebSocket-Version: 13\r\n"
#define KEY      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ACCEPT   "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define ACCEPTED "Upgrade: websocket\r\n" ACCEPT
#define REQUIRED "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"

/* Check that a server answers a request for a WebSocket with this status and these fields. */
static void check_answer_to_handshake(const domus_websocket_service *service, const char *bytes,
                                      unsigned status, const char *fields, const char *protocol)
{
    domus_websocket_outcome outcome;
    domus_stage_message message;
    domus_http_response response;
    domt_codec http;

    domt_http_start_codec(&http, NULL);
    ck_assert_int_eq(domus_stage_kit_feed(http.kit, bytes, strlen(bytes)), 0);
    ck_assert_int_eq(domus_stage_kit_next(http.kit, &message), 1);
    ck_assert_int_eq(domus_websocket_answer(message.payload, service, &response, &outcome), 0);
    ck_assert_uint_eq(response.status, status);
    ck_assert_uint_eq(outcome.status, status);
    ck_assert_msg(domus_slice_equals(response.fields, fields, strlen(fields)), "%.*s",
                  (int)response.fields.size, domus_slice_data(response.fields));
    ck_assert_pstr_eq(outcome.protocol, protocol);
    ck_assert_int_eq(
        domus_stage_kit_encode(http.kit, message.id, &domus_http_response_type, &response), 0);
    domus_http_response_type.release(&response);
    domt_codec_stop(&http);
}

DOMT_TEST(requests_for_websockets_are_accepted)
{
    check_answer_to_handshake(&plain, GET UPGRADE VERSION KEY "\r\n", 101, ACCEPTED, NULL);
    check_answer_to_handshake(&plain, GET UPGRADE VERSION KEY "Content-Length: 0\r\n\r\n", 101,
                              ACCEPTED, NULL);
    check_answer_to_handshake(
        &plain,
        GET "Connection: keep-alive, upgrade\r\nUpgrade: h2c, WebSocket\r\n" VERSION KEY "\r\n",
        101, ACCEPTED, NULL);
    check_answer_to_handshake(&plain,
                              GET UPGRADE VERSION KEY
                              "Sec-WebSocket-Extensions: permessage-deflate\r\n"
                              "Sec-WebSocket-Protocol: chat.v1\r\nOrigin: null\r\n\r\n",
                              101, ACCEPTED, NULL);
}

DOMT_TEST(wrong_requests_for_websockets_are_refused)
{
    static const struct {
        const char *bytes;
        unsigned status;
    } rows[] = {
        {GET "\r\n", 426},
        {GET KEY VERSION "\r\n", 426},
        {GET "Upgrade: websocket\r\n" KEY VERSION "\r\n", 426},
        {GET "Connection: upgrade\r\n" KEY VERSION "\r\n", 426},
        {GET "Connection: upgrade\r\nUpgrade: websockets\r\n" KEY VERSION "\r\n", 426},
        {GET UPGRADE KEY "\r\n", 426},
        {GET UPGRADE KEY VERSION VERSION "\r\n", 426},
        {GET UPGRADE KEY "Sec-WebSocket-Version: 8\r\n\r\n", 426},
        {GET UPGRADE KEY "Sec-WebSocket-Version: 130\r\n\r\n", 426},
        {GET UPGRADE KEY "Sec-WebSocket-Version: 13, 8\r\n\r\n", 426},
        {GET UPGRADE VERSION "\r\n", 400},
        {GET UPGRADE VERSION KEY KEY "\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key:\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQAA\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZA===\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhb!BsZSBub25jZQ==\r\n\r\n", 400},
        {GET UPGRADE VERSION "Sec-WebSocket-Key: dGhl IHNhbXBsZSBub25jZ==\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\n" UPGRADE VERSION KEY "\r\n", 400},
        {"POST / HTTP/1.1\r\nHost: a\r\n" UPGRADE VERSION KEY "\r\n", 400},
        {"HEAD / HTTP/1.1\r\nHost: a\r\n" UPGRADE VERSION KEY "\r\n", 400},
        {GET UPGRADE VERSION KEY "Content-Length: 1\r\n\r\nx", 400},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_answer_to_handshake(&plain, rows[i].bytes, rows[i].status,
                                  rows[i].status == 426 ? REQUIRED : "", NULL);
}

DOMT_TEST(protocols_and_origins_are_chosen)
{
#define OFFERED(text) GET UPGRADE VERSION KEY "Sec-WebSocket-Protocol: " text "\r\n\r\n"
#define FROM(text)    GET UPGRADE VERSION KEY "Origin: " text "\r\n\r\n"
#define CHOSEN(text)  ACCEPTED "Sec-WebSocket-Protocol: " text "\r\n"
    check_answer_to_handshake(&choosy, OFFERED("chat.v1"), 101, CHOSEN("chat.v1"), "chat.v1");
    check_answer_to_handshake(&choosy, OFFERED("chat.v1, chat.v2"), 101, CHOSEN("chat.v2"),
                              "chat.v2");
    check_answer_to_handshake(&choosy, OFFERED("x,chat.v1\r\nSec-WebSocket-Protocol: chat.v2"), 101,
                              CHOSEN("chat.v2"), "chat.v2");
    check_answer_to_handshake(&choosy, OFFERED("CHAT.V1"), 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, OFFERED("chat"), 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, OFFERED("chat.v11, chat.v"), 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, GET UPGRADE VERSION KEY "\r\n", 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, FROM("https://a.example"), 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, FROM("http://b.example:8080"), 101, ACCEPTED, NULL);
    check_answer_to_handshake(&choosy, FROM("http://b.example"), 403, "", NULL);
    check_answer_to_handshake(&choosy, FROM("https://a.example.evil"), 403, "", NULL);
    check_answer_to_handshake(&choosy, FROM("null"), 403, "", NULL);
    check_answer_to_handshake(&choosy, FROM("https://a.example\r\nOrigin: https://a.example"), 403,
                              "", NULL);
}

/* --- a client --------------------------------------------------------------------------------- */

DOMT_TEST(client_sends_the_wished_handshake_fields)
{
    static const domus_http_options options = {.role = DOMUS_ROLE_CLIENT, .host = "a"};
    const domus_websocket_wish wish = {.target = "/chat?x",
                                       .origin = "https://a.example",
                                       .protocols = protocols,
                                       .fields = domt_slice_of_text("Cookie: a=b\r\n")};
    domus_websocket_key key, other;
    domus_http_request request;
    domt_codec http;

    domt_codec_start(&http, &domus_http_stage, &options);
    ck_assert_int_eq(domus_websocket_request(&wish, &request, &key), 0);
    ck_assert_int_eq(domus_stage_kit_encode(http.kit, 0, &domus_http_request_type, &request), 0);
    const char *sent = domt_codec_take_output(&http);
    const char *nonce = strstr(sent, "\r\nSec-WebSocket-Key: ");
    ck_assert_ptr_nonnull(nonce);
    ck_assert(strncmp(sent,
                      "GET /chat?x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
                      "Upgrade: websocket\r\n",
                      strlen("GET /chat?x HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n"
                             "Upgrade: websocket\r\n")) == 0);
    ck_assert_str_eq(nonce + 21 + 24,
                     "\r\n" VERSION "Origin: https://a.example\r\n"
                     "Sec-WebSocket-Protocol: chat.v2, chat.v1\r\nCookie: a=b\r\n\r\n");
    ck_assert_uint_eq(strlen(key.accept), 28);
    domus_http_request_type.release(&request);
    ck_assert_int_eq(domus_websocket_request(&wish, &request, &other), 0);
    ck_assert_str_ne(key.accept, other.accept);
    domus_http_request_type.release(&request);
    domus_slice_free(wish.fields);
    domt_codec_stop(&http);
}

DOMT_TEST(wish_that_cannot_be_said_is_refused)
{
    static const char *const spaced[] = {"a b", NULL};
    static const char *const listed[] = {"a,b", NULL};
    static const char *const empty[] = {"", NULL};
    const domus_websocket_wish wishes[] = {{.origin = "a\r\nX: y"},
                                           {.protocols = spaced},
                                           {.protocols = listed},
                                           {.protocols = empty}};

    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        domus_websocket_key key;
        domus_http_request request;
        ck_assert_int_eq(domus_websocket_request(&wishes[i], &request, &key), -EINVAL);
    }
}

/* Returns the result of a client that has sent the key of the RFC's example and reads this
 * answer. */
static int result_of_checked_answer(unsigned status, const char *fields, const char **ret_protocol)
{
    static const domus_websocket_wish wish = {.protocols = protocols};
    static const domus_websocket_key key = {"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="};
    const domus_http_response response = {.status = (uint16_t)status,
                                          .fields = domt_slice_of_text(fields)};
    int result = domus_websocket_check(&wish, &key, &response, ret_protocol);

    domus_slice_free(response.fields);
    return result;
}

DOMT_TEST(client_checks_the_servers_handshake_answer)
{
    const char *protocol = "?";

    ck_assert_int_eq(result_of_checked_answer(101, UPGRADE ACCEPT, &protocol), 0);
    ck_assert_ptr_null(protocol);
    ck_assert_int_eq(result_of_checked_answer(
                         101, UPGRADE ACCEPT "Sec-WebSocket-Protocol: chat.v1\r\n", &protocol),
                     0);
    ck_assert_str_eq(protocol, "chat.v1");
    ck_assert_int_eq(result_of_checked_answer(
                         101, "connection: a, UPGRADE\r\nupgrade: WebSocket\r\n" ACCEPT, NULL),
                     0);
    static const char *const wrong[] = {
        "",
        UPGRADE,
        ACCEPT,
        "Connection: Upgrade\r\n" ACCEPT,
        "Upgrade: websocket\r\n" ACCEPT,
        "Connection: Upgrade\r\nUpgrade: h2c\r\n" ACCEPT,
        UPGRADE ACCEPT ACCEPT,
        UPGRADE "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        UPGRADE "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo\r\n",
        UPGRADE ACCEPT "Sec-WebSocket-Protocol: chat.v3\r\n",
        UPGRADE ACCEPT "Sec-WebSocket-Protocol: chat.v1, chat.v2\r\n",
        UPGRADE ACCEPT "Sec-WebSocket-Protocol: chat.v1\r\nSec-WebSocket-Protocol: chat.v2\r\n",
        UPGRADE ACCEPT "Sec-WebSocket-Extensions: permessage-deflate\r\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(result_of_checked_answer(101, wrong[i], &protocol), -EPROTO);
    ck_assert_int_eq(result_of_checked_answer(200, UPGRADE ACCEPT, &protocol), -ECONNREFUSED);
    ck_assert_int_eq(result_of_checked_answer(426, "", &protocol), -ECONNREFUSED);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int do_whole_handshake(void *context)
{
    static const domus_websocket_wish wish = {.protocols = protocols};
    domus_websocket_key key;
    domus_http_request request;
    domus_http_response response;
    int error = domus_websocket_request(&wish, &request, &key);

    if (error != 0)
        return error;
    error = domus_websocket_answer(&request, &choosy, &response, NULL);
    domus_http_request_type.release(&request);
    if (error == 0)
        domus_http_response_type.release(&response);
    return error;
}

DOMT_TEST(each_memory_failure_of_a_handshake_is_returned)
{
    domt_fail_each_allocation(do_whole_handshake, NULL);
}

DOMT_SUITE(60)
