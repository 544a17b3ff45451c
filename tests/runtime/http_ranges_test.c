/* Several ranges of a static file in one answer: which bytes each part has, which requests are
 * refused, and how much work strangers can cause. */
#include "tests/runtime/sites.h"
#include "tests/support/suite.h"

#include "base/memory.h"
#include "runtime/system/system.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND DOMT_PIPE_SECOND

/* --- a reader of such bodies ------------------------------------------------------------------ */

/* The part of the body that is not yet checked, its size, and the boundary between parts. */
static const char *at;
static size_t left;
static char boundary[128];

/* Check that the rest of the body begins with `text`, and go past it. */
static void expect_and_skip_text(const char *text)
{
    size_t size = strlen(text);

    ck_assert_msg(left >= size && memcmp(at, text, size) == 0, "%.200s instead of %s", at, text);
    at += size;
    left -= size;
}

/* Begin to check the body of the answer, whose Content-Length must be exact. */
static void begin_to_check_body(void)
{
    char line[64];
    const char *type =
        strstr(domt_site.answer, "\r\nContent-Type: multipart/byteranges; boundary=");

    at = domt_site_body_of_answer();
    left = domt_site.answer_size - (size_t)(at - domt_site.answer);
    snprintf(line, sizeof line, "Content-Length: %zu", left);
    ck_assert_msg(domt_site_answer_has_line(line), "%s", domt_site.answer);
    ck_assert(type != NULL && type < at);
    ck_assert_int_eq(
        sscanf(type, "\r\nContent-Type: multipart/byteranges; boundary=%127s", boundary), 1);
    const char *range = strstr(domt_site.answer, "\r\nContent-Range: ");
    /* the head of the whole answer must have no Content-Range, because only the parts have one */
    ck_assert(range != NULL && range > at);
}

/* Check the head of a part, and go past it. */
static void expect_and_skip_head_of_part(const char *media, uint32_t first, uint32_t last,
                                         uint32_t length)
{
    char head[256];

    if (at != domt_site_body_of_answer())
        expect_and_skip_text("\r\n");
    snprintf(head, sizeof head, "--%s\r\nContent-Type: %s\r\nContent-Range: bytes %u-%u/%u\r\n\r\n",
             boundary, media, first, last, length);
    expect_and_skip_text(head);
}

static void expect_end_of_multipart_body(void)
{
    char end[256];

    snprintf(end, sizeof end, "\r\n--%s--\r\n", boundary);
    expect_and_skip_text(end);
    ck_assert_uint_eq(left, 0);
}

/* --- parts ------------------------------------------------------------------------------------ */

DOMT_TEST(parts_come_in_their_order)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    for (uint32_t way = 0; way < 4; way++) {
        domt_site.reads_wait = way % 2 == 1;
        /* in way 1 the file counts as large, so its bytes are sent in pieces */
        domt_site.files.whole_max = way >= 2;
        ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=6-7, -1,0-1,99-\r\n"), 206);
        begin_to_check_body();
        expect_and_skip_head_of_part("text/plain; charset=utf-8", 6, 7, 10);
        expect_and_skip_text("67");
        expect_and_skip_head_of_part("text/plain; charset=utf-8", 9, 9, 10);
        expect_and_skip_text("9");
        expect_and_skip_head_of_part("text/plain; charset=utf-8", 0, 1, 10);
        expect_and_skip_text("01");
        expect_end_of_multipart_body();
        char last[sizeof boundary];
        memcpy(last, boundary, sizeof last);
        ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=0-0,1-1\r\n"), 206);
        begin_to_check_body();
        /* the boundary differs in each answer, so nobody can predict it */
        ck_assert_str_ne(boundary, last);
        expect_and_skip_head_of_part("text/plain; charset=utf-8", 0, 0, 10);
        expect_and_skip_text("0");
        expect_and_skip_head_of_part("text/plain; charset=utf-8", 1, 1, 10);
        expect_and_skip_text("1");
        expect_end_of_multipart_body();
    }
    domt_site.reads_wait = false;
    domt_site_close_and_remove();
}

DOMT_TEST(large_parts_leave_in_pieces)
{
    static const uint32_t ranges[][2] = {{0, 199999}, {250000, 299999}, {200001, 200001}};

    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(domt_site_get("/large.bin", "Range: bytes=0-199999,-50000,200001-200001\r\n"),
                      206);
    begin_to_check_body();
    for (uint32_t i = 0; i < 3; i++) {
        expect_and_skip_head_of_part("application/octet-stream", ranges[i][0], ranges[i][1],
                                     DOMT_SITE_LARGE);
        for (uint32_t k = ranges[i][0]; k <= ranges[i][1]; k++, at++, left--)
            ck_assert_int_eq(*at, domt_file_byte_at(k));
    }
    expect_end_of_multipart_body();
    domt_site_close_and_remove();
}

DOMT_TEST(single_satisfiable_range_has_no_multipart)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=20-,2-3,30-40\r\n"), 206);
    ck_assert(domt_site_answer_has_line("Content-Range: bytes 2-3/10"));
    ck_assert_str_eq(domt_site_body_of_answer(), "23");
    ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=20-,30-40\r\n"), 416);
    domt_site_close_and_remove();
}

/* --- what strangers can order ----------------------------------------------------------------- */

/* Send a GET for `count` ranges of one byte each. Returns the status of the answer. */
static unsigned status_of_request_for_ranges(uint32_t count)
{
    char field[2048];
    int size = snprintf(field, sizeof field, "Range: bytes=");

    for (uint32_t i = 0; i < count; i++)
        size += snprintf(field + size, sizeof field - (size_t)size, "%s%u-%u", i != 0 ? "," : "",
                         2 * i, 2 * i);
    snprintf(field + size, sizeof field - (size_t)size, "\r\n");
    return domt_site_get("/large.bin", field);
}

DOMT_TEST(number_of_ranges_is_bounded)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(status_of_request_for_ranges(16), 206);
    begin_to_check_body();
    ck_assert_uint_eq(status_of_request_for_ranges(17), 200);
    ck_assert(domt_site_answer_has_line("Content-Length: 300000"));
    domt_site.files.ranges_max = 1;
    ck_assert_uint_eq(status_of_request_for_ranges(1), 206);
    ck_assert_uint_eq(status_of_request_for_ranges(2), 200);
    domt_site.files.ranges_max = 64;
    ck_assert_uint_eq(status_of_request_for_ranges(64), 206);
    ck_assert_uint_eq(status_of_request_for_ranges(65), 200);
    domt_site.files.ranges_max = 65;
    ck_assert_uint_eq(status_of_request_for_ranges(1), 500);
    domt_site_close_and_remove();
}

DOMT_TEST(overlapping_ranges_are_not_sent_twice)
{
    static const char *const overlapping[] = {"0-,0-",       "0-5,5-6", "5-6,0-5",
                                              "0-0,2-2,0-0", "-3,8-8",  "0-9,3-3,-1"};
    char field[128];

    domt_site_make_and_open(NULL, &domt_site_service);
    for (size_t i = 0; i < sizeof overlapping / sizeof overlapping[0]; i++) {
        snprintf(field, sizeof field, "Range: bytes=%s\r\n", overlapping[i]);
        domt_site_check_get("/a.txt", field, 200, "0123456789");
    }
    domt_site_close_and_remove();
}

/* --- other fields ----------------------------------------------------------------------------- */

DOMT_TEST(ranges_heed_conditions_and_methods)
{
    char field[256];

    domt_site_make_and_open(NULL, &domt_site_service);
    ck_assert_uint_eq(domt_site_ask("HEAD", "/a.txt", "Range: bytes=0-1,4-5\r\n"), 200);
    ck_assert(domt_site_answer_has_line("Content-Length: 10"));
    snprintf(field, sizeof field, "Range: bytes=0-1,4-5\r\nIf-Range: %s\r\n",
             domt_site_tag_of_answer());
    ck_assert_uint_eq(domt_site_get("/a.txt", field), 206);
    begin_to_check_body();
    ck_assert_uint_eq(domt_site_get("/a.txt", "Range: bytes=0-1,4-5\r\nIf-Range: \"x\"\r\n"), 200);
    snprintf(field, sizeof field, "Range: bytes=0-1,4-5\r\nIf-None-Match: %s\r\n",
             domt_site_tag_of_answer());
    ck_assert_uint_eq(domt_site_get("/a.txt", field), 304);
    domt_site_close_and_remove();
}

DOMT_TEST(ranges_of_a_compressed_file_count_compressed_bytes)
{
    domt_site_make_and_open(NULL, &domt_site_service);
    domt_site.files.compressed = true;
    domt_site_write_file("a.txt.gz", "packed");
    ck_assert_uint_eq(domt_site_get("/a.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-1,4-5\r\n"),
                      206);
    ck_assert(domt_site_answer_has_line("Content-Encoding: gzip"));
    begin_to_check_body();
    expect_and_skip_head_of_part("text/plain; charset=utf-8", 0, 1, 6);
    expect_and_skip_text("pa");
    expect_and_skip_head_of_part("text/plain; charset=utf-8", 4, 5, 6);
    expect_and_skip_text("ed");
    expect_end_of_multipart_body();
    domt_site_close_and_remove();
}

/* --- failures --------------------------------------------------------------------------------- */

DOMT_TEST(a_file_that_shrinks_within_a_part_is_cut)
{
    domus_config config;

    domt_pipes_make_config(&config);
    config.channel.send_high_bytes = 10000;
    config.channel.send_low_bytes = 2000;
    domt_site_make_and_open(&config, &domt_site_service);
    domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
    domus_peer_pause(peer);
    domt_pipes_peer_send(domt_site.kit, peer,
                         "GET /large.bin HTTP/1.1\r\nHost: a\r\n"
                         "Range: bytes=0-149999,299990-299999\r\n\r\n");
    ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 10), 0);
    ck_assert_int_eq(truncate(domt_site_whole_path("large.bin"), DOMT_SITE_LARGE - 1), 0);
    domus_peer_resume(peer);
    ck_assert_int_eq(domus_peer_expect_reset(peer, SECOND), 0);
    domus_peer_close(peer);
    domt_site_close_and_remove();
}

DOMT_TEST(range_answers_survive_failed_allocations)
{
    domt_site_make_directory();
    for (int way = 0; way < 2; way++) {
        /* number of rounds without a failed allocation that followed each other */
        uint32_t clean = 0;
        for (int64_t count = 0; clean < 4; count++) {
            domt_site_open_kit(NULL, &domt_site_service);
            /* in way 1 the file counts as large, so its bytes are sent in pieces */
            domt_site.files.whole_max = way == 0;
            domus_peer *peer = domt_pipes_connect_peer(domt_site.kit);
            domt_pipes_peer_send(domt_site.kit, peer,
                                 "GET /a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,4-5\r\n\r\n");
            domi_memory_fail_allocation_after(count, 0);
            ck_assert_int_eq(domus_testkit_advance(domt_site.kit, SECOND / 100), 0);
            domi_memory_fail_allocation_after(-1, 0);
            size_t size;
            const char *got = domus_peer_got(peer, &size);
            bool is_whole = size > 300 && memcmp(got, "HTTP/1.1 206 ", 13) == 0 &&
                            memcmp(got + size - 4, "--\r\n", 4) == 0;
            clean = is_whole ? clean + 1 : 0;
            ck_assert_int_lt(count, 200);
            domus_peer_reset(peer);
            domt_site_close_kit();
        }
    }
    domt_tree_remove_copy(&domt_site.tree);
}

DOMT_SUITE(60)
