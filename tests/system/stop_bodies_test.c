/* SIGTERM comes to the example `api` while the body of a request is under way: the service waits
 * for the rest of the body, over HTTP/1.1 and in a stream of HTTP/2, answers the request, and ends
 * with status 0. tests/http/drain_test.c checks the same in a test kit. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/h2.h"
#include "tests/system/talks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY  "{\"name\":\"ann\"}" /* body of a request to log in, which is answered with 204 */
#define FIRST 5u                   /* bytes of that body that come before the signal */

static domt_service service;
static char uploads[] = "/tmp/domus-stop-XXXXXX";

static void start_api_on_backend(const char *backend)
{
    char set[2][64];

    snprintf(set[0], sizeof set[0], "api.uploads=%s", uploads);
    snprintf(set[1], sizeof set[1], "io.backend=%s", backend);
    domt_service_start(&service,
                       (const char *const[]){DOMT_BIN_DIR "/api", "--config",
                                             DOMT_SOURCE_DIR "/examples/api/api.yaml", "--set",
                                             "listeners.api.address=127.0.0.1:0", "--set",
                                             "observe.listen=127.0.0.1:0", "--set",
                                             "api.database=sqlite::memory:", "--set",
                                             "api.pages=" DOMT_SOURCE_DIR "/examples/api/static",
                                             "--set", set[0], "--set", set[1], NULL});
}

/* Wait until the first part of the body has come to the service, and send the signal. */
static void send_signal_amid_body(void)
{
    domt_sleep_ms(100);
    domt_service_signal(&service, SIGTERM);
    domt_sleep_ms(300);
}

static void check_service_ended_well(void)
{
    ck_assert_int_eq(domt_service_wait(&service, 20000), 0);
    ck_assert_uint_eq(domt_service_profile_count(&service, "channels cut"), 0);
    ck_assert_uint_ne(domt_service_profile_count(&service, "answered in drain"), 0);
}

static void check_body_by_http_1(const char *backend)
{
    char text[4096];
    size_t size = 0;
    ssize_t part;

    start_api_on_backend(backend);
    int fd = domt_connect_to_port(service.port);
    snprintf(text, sizeof text,
             "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%.*s",
             strlen(BODY), (int)FIRST, BODY);
    domt_send_all(fd, text, strlen(text));
    send_signal_amid_body();
    domt_send_all(fd, &BODY[FIRST], strlen(BODY) - FIRST);
    while ((part = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)part;
    text[size] = '\0';
    ck_assert_int_eq(part, 0);
    ck_assert_msg(strncmp(text, "HTTP/1.1 204 ", 13) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\r\nConnection: close\r\n"));
    close(fd);
    check_service_ended_well();
}

/* Read frames until the connection ends. Returns one letter for each important frame, in order: an
 * answer, a reset, and GOAWAY without and with the last stream. */
static const char *letters_of_frames(domt_h2 *h2)
{
    static char letters[16];
    domt_h2_frame frame;
    size_t count = 0;

    while (count < sizeof letters - 1 &&
           domt_h2_read_next_frame(h2, 5000, &frame) == DOMT_H2_FRAME) {
        if (frame.type == DOMT_H2_HEADERS)
            letters[count++] = (frame.flags & DOMT_H2_END_STREAM) != 0 ? 'A' : 'a';
        else if (frame.type == DOMT_H2_RST_STREAM)
            letters[count++] = 'R';
        else if (frame.type == DOMT_H2_GOAWAY)
            letters[count++] = domt_h2_u32_of_bytes(frame.payload) == 1 ? 'G' : 'g';
    }
    letters[count] = '\0';
    return letters;
}

static void check_body_by_http_2(const char *backend)
{
    static domt_h2 h2;
    static domt_h2_bytes bytes;
    char fields[256];

    start_api_on_backend(backend);
    ck_assert(domt_h2_open_connection(&h2, service.port));
    snprintf(fields, sizeof fields,
             ":method: POST\n:scheme: http\n:path: /login\n:authority: a\n"
             "content-type: application/json\ncontent-length: %zu\n",
             strlen(BODY));
    domt_h2_add_headers_frame(&bytes, DOMT_H2_END_HEADERS, 1, fields);
    domt_h2_add_frame(&bytes, DOMT_H2_DATA, 0, 1, BODY, FIRST);
    domt_h2_send(&h2, &bytes);
    send_signal_amid_body();
    domt_h2_add_frame(&bytes, DOMT_H2_DATA, DOMT_H2_END_STREAM, 1, &BODY[FIRST],
                      strlen(BODY) - FIRST);
    domt_h2_send(&h2, &bytes);
    ck_assert_str_eq(letters_of_frames(&h2), "gAG");
    domt_h2_close_connection(&h2, false);
    check_service_ended_well();
}

DOMT_TEST(a_body_under_way_may_end)
{
    static const char *const backends[] = {"uring", "epoll"};

    ck_assert_ptr_nonnull(mkdtemp(uploads));
    for (size_t i = 0; i < 2; i++) {
        check_body_by_http_1(backends[i]);
        check_body_by_http_2(backends[i]);
    }
    ck_assert_int_eq(rmdir(uploads), 0);
}

DOMT_SUITE(120)
