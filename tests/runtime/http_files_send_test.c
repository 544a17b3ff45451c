/* domus/http_files.h in a channel: files that are large, that change while they are sent, or that
 * the kernel does not have in memory; bounds of open files; and allocations that fail. */
#include "tests/runtime/sites.h"
#include "tests/support/suite.h"

#include "base/memory.h"
#include "runtime/files/handle.h"
#include "runtime/system/system.h"

#include <stdlib.h>
#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND

/* --- large files, and files that change ------------------------------------------------------- */

static void check_large_file_is_served(const char *fields, unsigned status, uint32_t first,
                                       uint32_t size)
{
    ck_assert_uint_eq(domt_site_get("/large.bin", fields), status);
    const char *bytes = domt_site_body_of_answer();
    ck_assert_uint_eq(domt_site.answer_size - (size_t)(bytes - domt_site.answer), size);
    for (uint32_t i = 0; i < size; i++)
        ck_assert_int_eq(bytes[i], domt_file_byte_at(first + i));
}

DOMT_TEST(large_file_is_sent_in_pieces)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    check_large_file_is_served("Range: bytes=70000-279999\r\n", 206, 70000, 210000);
    domt_site.files.whole_max = DOMT_SITE_LARGE;
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    check_large_file_is_served("Range: bytes=-70000\r\n", 206, DOMT_SITE_LARGE - 70000, 70000);
    ck_assert_uint_eq(domt_site_ask("HEAD", "/large.bin", ""), 200);
    ck_assert(domt_site_answer_has_line("Content-Length: 300000"));
    domt_site_close_and_remove();
}

DOMT_TEST(file_that_shrinks_or_grows_is_never_sent_wrong)
{
    domus_config config;
    static char text[100000];

    domt_pipes_make_config(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int way = 0; way < 2; way++) {
        domt_site_make_and_open(&config, &domt_site_service);
        domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
        domus_peer_pause(peer);
        domt_pipes_peer_send(domt_site.kit, peer, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
        ck_assert_int_eq(truncate(domt_site_whole_path("large.bin"),
                                  way == 0 ? DOMT_SITE_LARGE - 1 : DOMT_SITE_LARGE + 1),
                         0);
        domus_peer_resume(peer);
        if (way == 0) {
            ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
        } else {
            size_t size = 0;
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
            (void)domus_peer_got(peer, &size);
            ck_assert_uint_lt(size, DOMT_SITE_LARGE + 500);
            domus_peer_take(peer, size);
            domt_pipes_peer_send(domt_site.kit, peer, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
            const char *got = domus_peer_got(peer, &size);
            ck_assert_uint_lt(size, sizeof text);
            ck_assert_int_eq(memcmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
            domus_peer_take(peer, size);
        }
        domus_peer_close(peer);
        domt_site_close_and_remove();
    }
}

DOMT_TEST(file_that_shrinks_before_it_is_read_is_looked_at_again)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    /* the file becomes shorter at each read, so its size is never right */
    domt_site.shrinks = true;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.shrinks = false;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    ck_assert_uint_lt(strlen(domt_site_body_of_answer()), 10);
    domt_site_close_and_remove();
}

/* --- waits and bounds ------------------------------------------------------------------------- */

DOMT_TEST(file_that_is_not_in_memory_is_waited_for)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site.reads_wait = true;
    domt_site_check_get("/a.txt", "", 200, "0123456789");
    ck_assert_uint_eq(domt_site_get("/sub/", ""), 200);
    ck_assert_uint_eq(domt_site_get("/none", ""), 404);
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    domt_site.looks_wait = 1;
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    domt_site.looks_wait = 1;
    ck_assert_uint_eq(domt_site_get("/sub", ""), 301);
    domt_site.looks_wait = 1;
    ck_assert_uint_eq(domt_site_ask("HEAD", "/large.bin", ""), 200);
    ck_assert_uint_eq(domt_site.looks_wait, 0);
    domt_site.files.compressed = true;
    domt_site_check_get("/a.txt", "Accept-Encoding: gzip\r\n", 200, "packed");
    domt_site_check_get("/index.html", "Accept-Encoding: gzip\r\n", 200, "home");
    domt_site.reads_wait = false;
    domt_site_close_and_remove();
}

DOMT_TEST(request_may_wait_before_it_is_served)
{
    domt_site_make_and_open(NULL, &domt_site_late_service);
    domt_site_check_get("/a.txt", "", 200, "0123456789");
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    domt_site_close_and_remove();
}

DOMT_TEST(open_files_of_many_requests_are_bounded)
{
    domus_config config;

    domt_pipes_make_config(&config);
    config.files.open_max = 2; /* at most two open files, one of which is the root directory */
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    domt_site_make_and_open(&config, &domt_site_service);
    domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
    domus_peer_pause(peer);
    domt_pipes_peer_send(domt_site.kit, peer, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
    ck_assert_uint_eq(domt_site_get("/large.bin", ""), 503);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    domt_site.reads_wait = true;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.reads_wait = false;
    domus_peer_reset(peer);
    check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
    domus_file *root = domt_site.files.root;
    domt_site.files.root = NULL;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.files.root = root;
    domt_site.files.whole_max = 2u << 20;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 500);
    domt_site_close_and_remove();
}

/* Returns how many files are open, including the root directory. */
static uint32_t count_open_files(void)
{
    domus_system *system = domus_testkit_system(domt_site.kit);

    return atomic_load(&system->files->open);
}

/* number of requests that are sent on one connection without waiting for answers */
#define AHEAD 20u
#define PART  70000u

/* Send many requests on one connection without reading an answer: for large files, some with a
 * range, for small files, for a missing one, and a HEAD. Returns the peer. */
static domus_peer *send_many_requests_ahead(void)
{
    domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);

    domus_peer_pause(peer);
    for (uint32_t i = 0; i < AHEAD; i++)
        domt_pipes_peer_send(domt_site.kit, peer,
                             i % 5 == 1   ? "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"
                             : i % 5 == 2 ? "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
                             : i % 5 == 3 ? "HEAD /large.bin HTTP/1.1\r\nHost: a\r\n\r\n"
                                          : "GET /large.bin HTTP/1.1\r\nHost: a\r\n"
                                            "Range: bytes=0-69999\r\n\r\n");
    ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
    return peer;
}

/* Check that the answers to the requests of send_many_requests_ahead() come in their order. */
static void check_answers_come_in_order(domus_peer *peer)
{
    static char answers[AHEAD * (PART + 600)];
    static const char *const begins[] = {"HTTP/1.1 206 ", "HTTP/1.1 200 ", "HTTP/1.1 404 ",
                                         "HTTP/1.1 200 ", "HTTP/1.1 206 "};
    static char part[PART];
    size_t size = 0, got;

    for (uint32_t i = 0; i < PART; i++)
        part[i] = domt_file_byte_at(i);
    domus_peer_resume(peer);
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 100), 0);
        const char *bytes = domus_peer_got(peer, &got);
        ck_assert_uint_lt(size + got, sizeof answers);
        memcpy(answers + size, bytes, got);
        size += got;
        domus_peer_take(peer, got);
    }
    answers[size] = '\0';
    const char *at = answers;
    for (uint32_t i = 0; i < AHEAD; i++) {
        ck_assert_int_eq(strncmp(at, begins[i % 5], strlen(begins[i % 5])), 0);
        const char *body = strstr(at, "\r\n\r\n") + 4;
        const char *length = strstr(at, "Content-Length: ");
        ck_assert(length != NULL && length < body);
        uint32_t skip = i % 5 == 3 ? 0 : (uint32_t)strtoul(length + 16, NULL, 10);
        ck_assert(i % 5 == 1 || i % 5 == 2 || i % 5 == 3 || skip == PART);
        ck_assert(skip != PART || memcmp(body, part, PART) == 0);
        at = body + skip;
    }
    ck_assert_ptr_eq(at, answers + size);
}

DOMT_TEST(requests_that_are_sent_ahead_hold_one_file)
{
    domus_config config;
    domus_peer *peers[3];

    domt_pipes_make_config(&config);
    /* so many files may be open: the root directory, one file for each of three connections, and
     * one for the test */
    config.files.open_max = 1 + 3 + 1;
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int way = 0; way < 4; way++) {
        domt_site_make_and_open(&config, way == 3   ? &domt_site_far_service
                                         : way == 2 ? &domt_site_late_service
                                                    : &domt_site_service);
        domt_site.reads_wait = way == 1;
        for (int i = 0; i < 3; i++)
            peers[i] = send_many_requests_ahead();
        ck_assert_uint_eq(count_open_files(), 1 + 3);
        check_large_file_is_served("", 200, 0, DOMT_SITE_LARGE);
        domus_peer_reset(peers[1]);
        check_answers_come_in_order(peers[0]);
        check_answers_come_in_order(peers[2]);
        domus_peer_close(peers[0]);
        domus_peer_close(peers[2]);
        ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
        ck_assert_uint_eq(count_open_files(), 1);
        domt_site.reads_wait = false;
        domt_site_close_and_remove();
    }
}

static uint32_t count_good_answers_of_peer(const domus_peer *peer)
{
    size_t size = 0;
    const char *got = domus_peer_got(peer, &size);
    uint32_t count = 0;

    for (size_t i = 0; i + 12 <= size; i++)
        count += memcmp(got + i, "HTTP/1.1 200", 12) == 0;
    return count;
}

/* Requests of one client use one helper thread at a time. Each request but the first looks at its
 * file before its turn, which needs no helper, and again when its turn has come. */
DOMT_TEST(requests_that_are_sent_ahead_are_read_one_after_the_other)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site.reads_wait = true;
    domt_site.waits = 0;
    domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
    for (int i = 0; i < 6; i++)
        domt_pipes_peer_send(domt_site.kit, peer, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
    ck_assert_uint_eq(count_good_answers_of_peer(peer), 6);
    ck_assert_uint_eq(domt_site.waits, 1 + 5 * 2);
    domt_site.reads_wait = false;
    domus_peer_close(peer);
    domt_site_close_and_remove();
}

DOMT_TEST(file_answers_survive_failed_allocations)
{
    uint32_t before = domt_count_directory_entries("/proc/self/fd");

    domt_site_make_directory();
    for (int way = 0; way < 4; way++) {
        /* number of rounds without a failed allocation that followed each other */
        uint32_t clean = 0;
        domt_site.reads_wait = way % 2 == 1;
        for (int64_t count = 0; clean < 4; count++) {
            domt_site_open_kit(NULL, &domt_site_service);
            domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
            domt_pipes_peer_send(domt_site.kit, peer,
                                 way < 2 ? "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"
                                         : "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
            domi_memory_fail_allocation_after(count, 0);
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 100), 0);
            domi_memory_fail_allocation_after(-1, 0);
            size_t size;
            const char *got = domus_peer_got(peer, &size);
            bool is_whole = size > 17 && memcmp(got, "HTTP/1.1 200 OK\r\n", 17) == 0 &&
                            size > (way < 2 ? 200 : DOMT_SITE_LARGE);
            clean = is_whole ? clean + 1 : 0;
            ck_assert_int_lt(count, 200);
            domus_peer_reset(peer);
            domt_site_close_kit();
        }
    }
    domt_site.reads_wait = false;
    domt_tree_remove_copy(&domt_site.tree);
    ck_assert_uint_eq(domt_count_directory_entries("/proc/self/fd"), before);
}

DOMT_SUITE(60)
