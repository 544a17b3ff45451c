/* domus/http_files.h in a channel: files that are large, change while they are sent, or are not in
 * the memory of the kernel; bounds; allocations that fail. */
#include "tests/runtime/sites.h"
#include "tests/support/suite.h"

#include "base/memory.h"

#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND

/* --- large files, and files that change ---------------------------------------------------------
 */

static void hold_large(const char *fields, unsigned status, uint32_t first, uint32_t size)
{
    ck_assert_uint_eq(domt_site_get("/large.bin", fields), status);
    const char *bytes = domt_site_body();
    ck_assert_uint_eq(domt_site.answer_size - (size_t)(bytes - domt_site.answer), size);
    for (uint32_t i = 0; i < size; i++)
        ck_assert_int_eq(bytes[i], domt_file_byte(first + i));
}

START_TEST(large_file_is_sent_in_pieces)
{
    domt_site_begin(NULL, &domt_site_service);
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    hold_large("Range: bytes=70000-279999\r\n", 206, 70000, 210000);
    domt_site.files.whole_max = DOMT_SITE_LARGE;
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    hold_large("Range: bytes=-70000\r\n", 206, DOMT_SITE_LARGE - 70000, 70000);
    ck_assert_uint_eq(domt_site_ask("HEAD", "/large.bin", ""), 200);
    ck_assert(domt_site_says("Content-Length: 300000"));
    domt_site_end();
}
END_TEST

START_TEST(file_that_shrinks_or_grows_is_never_sent_wrong)
{
    domus_config config;
    static char text[100000];

    domt_pipes_configure(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    for (int way = 0; way < 2; way++) {
        domt_site_begin(&config, &domt_site_service);
        domus_peer *peer = domt_pipes_peer(domt_site.kit);
        domus_peer_pause(peer);
        domt_pipes_send(domt_site.kit, peer, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
        ck_assert_int_eq(truncate(domt_site_path("large.bin"),
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
            domt_pipes_send(domt_site.kit, peer, "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
            const char *got = domus_peer_got(peer, &size);
            ck_assert_uint_lt(size, sizeof text);
            ck_assert_int_eq(memcmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
            domus_peer_take(peer, size);
        }
        domus_peer_close(peer);
        domt_site_end();
    }
}
END_TEST

START_TEST(file_that_shrinks_before_it_is_read_is_looked_at_again)
{
    domt_site_begin(NULL, &domt_site_service);
    domt_site.shrinks = true; /* at each read: there is no size that is right */
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.shrinks = false;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    ck_assert_uint_lt(strlen(domt_site_body()), 10);
    domt_site_end();
}
END_TEST

/* --- waits and bounds ---------------------------------------------------------------------------
 */

START_TEST(file_that_is_not_in_memory_is_waited_for)
{
    domt_site_begin(NULL, &domt_site_service);
    domt_site.reads_wait = true;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    ck_assert_str_eq(domt_site_body(), "0123456789");
    ck_assert_uint_eq(domt_site_get("/sub/", ""), 200);
    ck_assert_uint_eq(domt_site_get("/none", ""), 404);
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    domt_site.looks_wait = 1;
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    domt_site.looks_wait = 1;
    ck_assert_uint_eq(domt_site_get("/sub", ""), 301);
    domt_site.looks_wait = 1;
    ck_assert_uint_eq(domt_site_ask("HEAD", "/large.bin", ""), 200);
    ck_assert_uint_eq(domt_site.looks_wait, 0);
    domt_site.files.compressed = true;
    ck_assert_uint_eq(domt_site_get("/a.txt", "Accept-Encoding: gzip\r\n"), 200);
    ck_assert_str_eq(domt_site_body(), "packed");
    ck_assert_uint_eq(domt_site_get("/index.html", "Accept-Encoding: gzip\r\n"), 200);
    ck_assert_str_eq(domt_site_body(), "home");
    domt_site.reads_wait = false;
    domt_site_end();
}
END_TEST

START_TEST(request_may_wait_before_it_is_served)
{
    domt_site_begin(NULL, &domt_site_late_service);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    ck_assert_str_eq(domt_site_body(), "0123456789");
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    domt_site_end();
}
END_TEST

START_TEST(open_files_are_bounded)
{
    domus_config config;

    domt_pipes_configure(&config);
    config.files.open_max = 2; /* the root is one of them */
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    domt_site_begin(&config, &domt_site_service);
    domus_peer *peer = domt_pipes_peer(domt_site.kit);
    domus_peer_pause(peer);
    domt_pipes_send(domt_site.kit, peer, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
    ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
    ck_assert_uint_eq(domt_site_get("/large.bin", ""), 503);
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 200);
    domt_site.reads_wait = true;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.reads_wait = false;
    domus_peer_reset(peer);
    hold_large("", 200, 0, DOMT_SITE_LARGE);
    domus_file *root = domt_site.files.root;
    domt_site.files.root = NULL;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 503);
    domt_site.files.root = root;
    domt_site.files.whole_max = 2u << 20;
    ck_assert_uint_eq(domt_site_get("/a.txt", ""), 500);
    domt_site_end();
}
END_TEST

START_TEST(each_allocation_may_fail)
{
    uint32_t before = domt_entries("/proc/self/fd");

    domt_site_make();
    for (int way = 0; way < 4; way++) {
        uint32_t clean = 0; /* runs in a row without a failure */
        domt_site.reads_wait = way % 2 == 1;
        for (int64_t count = 0; clean < 4; count++) {
            domt_site_open(NULL, &domt_site_service);
            domus_peer *peer = domt_pipes_peer(domt_site.kit);
            domt_pipes_send(domt_site.kit, peer,
                            way < 2 ? "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n"
                                    : "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n");
            domi_memory_fail_after(count, 0);
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 100), 0);
            domi_memory_fail_after(-1, 0);
            size_t size;
            const char *got = domus_peer_got(peer, &size);
            bool is_whole = size > 17 && memcmp(got, "HTTP/1.1 200 OK\r\n", 17) == 0 &&
                            size > (way < 2 ? 200 : DOMT_SITE_LARGE);
            clean = is_whole ? clean + 1 : 0;
            ck_assert_int_lt(count, 200);
            domus_peer_reset(peer);
            domt_site_close();
        }
    }
    domt_site.reads_wait = false;
    domt_tree_remove(&domt_site.tree);
    ck_assert_uint_eq(domt_entries("/proc/self/fd"), before);
}
END_TEST

DOMT_MAIN("http_files_send", 60, large_file_is_sent_in_pieces,
          file_that_shrinks_or_grows_is_never_sent_wrong,
          file_that_shrinks_before_it_is_read_is_looked_at_again,
          file_that_is_not_in_memory_is_waited_for, request_may_wait_before_it_is_served,
          open_files_are_bounded, each_allocation_may_fail)
