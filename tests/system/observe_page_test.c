/* The live page of the observation port and its stream /live. tests/system/page_browser.py uses the
 * page in headless Chromium as a person does; without Chromium that part is left out. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/observe.h"
#include "tests/system/talks.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 10000
#define TICK_MS 250

static domt_observed web;

static uint64_t monotonic_ms(void)
{
    return domt_monotonic_ns() / 1000000;
}

/* A viewer of /live, and all bytes that it has read. */
struct viewer {
    int fd;
    size_t size;
    char text[65536];
};

static struct viewer viewers[3];

static void begin_viewer_of_stream(struct viewer *viewer)
{
    viewer->fd = domt_connect_to_port(web.port.web);
    viewer->size = 0;
    domt_send_text(viewer->fd, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* Let the viewer read for so many ms. Returns false at the end of the connection. */
static bool read_bytes_of_stream(struct viewer *viewer, int wait_ms)
{
    struct pollfd waiting = {.fd = viewer->fd, .events = POLLIN};

    if (poll(&waiting, 1, wait_ms) != 1)
        return true;
    ssize_t size = recv(viewer->fd, viewer->text + viewer->size,
                        sizeof viewer->text - 1 - viewer->size, MSG_DONTWAIT);
    if (size <= 0)
        return false;
    viewer->size += (size_t)size;
    viewer->text[viewer->size] = '\0';
    return true;
}

static uint32_t count_part_in_text(const char *text, const char *part)
{
    uint32_t found = 0;

    while ((text = strstr(text, part)) != NULL) {
        found++;
        text += strlen(part);
    }
    return found;
}

/* Let the viewer read until a text has come `times` times. */
static void await_text_in_stream(struct viewer *viewer, const char *part, uint32_t times)
{
    uint64_t until_ms = monotonic_ms() + WAIT_MS;

    viewer->text[viewer->size] = '\0';
    while (count_part_in_text(viewer->text, part) < times) {
        ck_assert_msg(monotonic_ms() < until_ms, "no %u of '%s' in: %s", times, part, viewer->text);
        ck_assert_msg(read_bytes_of_stream(viewer, 100), "the stream has ended: %s", viewer->text);
    }
}

DOMT_TEST(samples_come_four_times_a_second)
{
    domt_observed_start_web(&web, (const char *const[]){"web.kv.shards=8", NULL}, NULL);
    begin_viewer_of_stream(&viewers[0]);
    await_text_in_stream(&viewers[0], "]}\n\n", 2);
    /* living actors of the behaviour `shard` of the key-value store (web.kv.shards), on both
     * threads together */
    uint32_t shards = 0;
    const char *row = strstr(viewers[0].text, "[\"shard\",\"state\",");
    ck_assert_ptr_nonnull(row);
    (void)sscanf(row, "[\"shard\",\"state\",%*u,%*u,%*u,%*u,%*u,%*u,%u,", &shards);
    ck_assert_uint_eq(shards, 8);
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "Content-Type: text/event-stream\r\n"));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "\"phases\":[\"submit\",\"sleep\","));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "\"threads\":2,"));
    ck_assert_ptr_nonnull(strstr(viewers[0].text, "{\"serial\":1,"));
    uint64_t begun_ms = monotonic_ms();
    await_text_in_stream(&viewers[0], "event: sample\n", 5);
    uint64_t took_ms = monotonic_ms() - begun_ms;
    ck_assert_uint_ge(took_ms, 4 * TICK_MS - 60);
    /* the bound is high, because the machine may be busy */
    ck_assert_uint_le(took_ms, 20 * TICK_MS);
    ck_assert_uint_eq(count_part_in_text(viewers[0].text, "event: names\n"), 1);

    /* a viewer that begins between two ticks gets the last sample in full, at once */
    begin_viewer_of_stream(&viewers[1]);
    await_text_in_stream(&viewers[1], "event: sample\n", 2);
    const char *first = strstr(viewers[1].text, "{\"serial\":");
    const char *second = strstr(first + 1, "{\"serial\":");
    ck_assert_uint_eq(strtoul(second + 10, NULL, 10), strtoul(first + 10, NULL, 10) + 1);
    /* this actor's figures do not change, so only the first sample has it */
    const char *idle = strstr(first, "[\"clock\",\"state\",");
    ck_assert(idle != NULL && idle < second && strstr(second, "[\"clock\",") == NULL);
    close(viewers[0].fd);
    close(viewers[1].fd);
    domt_observed_stop_web(&web);
}

DOMT_TEST(whoever_comes_first_again_begins_the_ticks_again)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=1", NULL}, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        begin_viewer_of_stream(&viewers[0]);
        await_text_in_stream(&viewers[0], "event: sample\n", 2);
        ck_assert_uint_eq(count_part_in_text(viewers[0].text, "event: names\n"), 1);
        ck_assert_ptr_nonnull(strstr(viewers[0].text, ",\"counters\":[[0,"));
        close(viewers[0].fd);
        usleep(3 * TICK_MS * 1000);
    }
    domt_observed_stop_web(&web);
}

DOMT_TEST(streams_leave_half_of_the_places_to_others)
{
    domt_observed_start_web(&web, (const char *const[]){"observe.viewersMax=4", NULL}, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        begin_viewer_of_stream(&viewers[i]);
        await_text_in_stream(&viewers[i], "event: sample\n", 1);
    }
    begin_viewer_of_stream(&viewers[2]);
    await_text_in_stream(&viewers[2], "HTTP/1.1 503 ", 1);
    close(viewers[2].fd);
    domt_site_expect_answer(&web.port, "GET /health", NULL, 200, NULL);
    close(viewers[0].fd); /* the service notices at the next tick that the viewer has left */
    usleep(3 * TICK_MS * 1000);
    begin_viewer_of_stream(&viewers[2]);
    await_text_in_stream(&viewers[2], "event: sample\n", 1);
    close(viewers[1].fd);
    close(viewers[2].fd);
    domt_observed_stop_web(&web);
}

DOMT_TEST(streams_end_when_the_program_begins_to_stop)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    begin_viewer_of_stream(&viewers[0]);
    await_text_in_stream(&viewers[0], "event: sample\n", 2);
    uint64_t begun_ms = monotonic_ms();
    ck_assert_int_eq(kill(web.site.service.pid, SIGTERM), 0);
    await_text_in_stream(&viewers[0], "\r\n0\r\n\r\n", 1); /* the last chunk of the stream's body */
    ck_assert_uint_lt(monotonic_ms() - begun_ms, 1000);
    close(viewers[0].fd);
    ck_assert_int_eq(domt_service_wait(&web.site.service, WAIT_MS), 0);
}

/* The page needs no other files, and its content security policy names the hashes of its script and
 * its style. */
DOMT_TEST(browsers_get_the_page_and_others_a_list)
{
    static const struct {
        const char *fields, *part;
    } rows[] = {
        {"", "/live     counters"},
        {"Accept: */*\r\n", "/live     counters"},
        {"Accept: text/html;q=0\r\n", "/live     counters"},
        {"Accept: text/html, */*;q=0.8\r\n", "<!doctype html>"},
        {"Accept: text/html\r\nAccept-Encoding: gzip;q=0, br\r\n", "<!doctype html>"},
        {"Accept: text/html\r\nAccept-Encoding: br, gzip;q=0.5\r\n", "Content-Encoding: gzip\r\n"},
        {"Accept: text/html\r\n", "default-src 'none'; connect-src 'self'; img-src data:; "
                                  "script-src 'sha256-"}};

    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(domt_site_ask(&web.port, "GET /", rows[i].fields, NULL), 200);
        ck_assert_msg(strstr(web.port.answer, rows[i].part) != NULL, "%s", rows[i].fields);
    }
    ck_assert_ptr_null(strstr(web.port.answer, "'unsafe-"));
    domt_observed_stop_web(&web);
}

DOMT_TEST(each_part_of_the_page_works_in_a_browser)
{
    char command[512];

    if (system("command -v chromium >/dev/null && command -v python3 >/dev/null") != 0) {
        printf("chromium or python3 is not installed, so the page is not tried\n");
        return;
    }
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    snprintf(command, sizeof command,
             "timeout -k 5 120 python3 -B " DOMT_SOURCE_DIR
             "/tests/system/page_browser.py %u %u " DOMT_BIN_DIR "/../axe",
             web.port.web, web.site.web);
    ck_assert_int_eq(system(command), 0);
    domt_observed_stop_web(&web);
}

DOMT_SUITE(150)
