/* config/kept_lines.c and config/sink.c: the last lines of a sink of the log can be read, also
 * while nobody reads the descriptor to which they are written. */
#include "config/sink.h"

#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

static domi_sink *sink;
static domus_log_source source;
static domus_log_line line;
static int ends[2];

static void open_sink_with_kept_lines(uint32_t places, bool is_read)
{
    ck_assert_int_eq(pipe(ends), 0);
    if (!is_read) {
        ck_assert_int_eq(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        while (write(ends[1], ".", 1) > 0)
            continue;
    }
    ck_assert_int_eq(domi_sink_open("test", ends[1], places, &source, &sink), 0);
}

static void close_sink_and_pipe(void)
{
    domi_sink_close(sink, 0);
    domi_sink_free(sink);
    close(ends[0]);
    close(ends[1]);
}

/* Wait until the sink has kept the log line with this number. */
static void await_kept_line(uint64_t number)
{
    for (int i = 0; i < 2000 && source.read(source.context, number, &line) != 0; i++)
        domt_sleep_ms(5);
    ck_assert_int_eq(source.read(source.context, number, &line), 0);
}

static void expect_kept_line(uint64_t from, uint64_t number, domus_log_level level, uint32_t thread,
                             const char *text)
{
    await_kept_line(from);
    ck_assert_uint_eq(line.number, number);
    ck_assert_int_eq(line.level, (int)level);
    ck_assert_uint_eq(line.thread, thread);
    ck_assert_str_eq(line.text, text);
}

DOMT_TEST(log_lines_are_kept_with_level_thread_and_time)
{
    uint64_t before = (uint64_t)time(NULL);

    open_sink_with_kept_lines(16, true);
    ck_assert_int_eq(source.read(source.context, 0, &line), -ENOENT);
    domi_sink_add_log_line(sink, DOMUS_LOG_ERROR, 3, "first");
    domi_sink_add_line(sink, "warning: %d \x1b", 7);
    domi_sink_add_text(sink, strdup("a table\nof two lines\n"));
    domi_sink_add_line(sink, "of its own");
    expect_kept_line(1, 1, DOMUS_LOG_ERROR, 3, "first");
    ck_assert_uint_ge(line.utc_ns / SECOND_NS, before);
    ck_assert_uint_le(line.utc_ns / SECOND_NS, (uint64_t)time(NULL));
    expect_kept_line(2, 2, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, "7 \\x1b");
    expect_kept_line(3, 3, DOMUS_LOG_INFO, DOMUS_LOG_OUTSIDE, "of its own");
    expect_kept_line(0, 1, DOMUS_LOG_ERROR, 3, "first");
    ck_assert_int_eq(source.read(source.context, 4, &line), -ENOENT);
    ck_assert_int_eq(source.read(source.context, UINT64_MAX, &line), -ENOENT);
    close_sink_and_pipe();
}

DOMT_TEST(only_the_last_log_lines_are_kept)
{
    char text[32];

    open_sink_with_kept_lines(2048, true);
    for (uint32_t i = 1; i <= DOMUS_LOG_KEPT + 10; i++) {
        snprintf(text, sizeof text, "line %u", i);
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, i, text);
    }
    await_kept_line(DOMUS_LOG_KEPT + 10);
    ck_assert_str_eq(line.text, "line 266");
    expect_kept_line(1, 11, DOMUS_LOG_INFO, 11, "line 11");
    expect_kept_line(11, 11, DOMUS_LOG_INFO, 11, "line 11");
    expect_kept_line(12, 12, DOMUS_LOG_INFO, 12, "line 12");
    close_sink_and_pipe();
}

/* The newest lines of the log can be read from the sink, although nobody reads the output of the
 * program. */
DOMT_TEST(kept_lines_are_read_while_log_pipe_is_full)
{
    open_sink_with_kept_lines(4, false);
    domi_sink_add_log_line(sink, DOMUS_LOG_INFO, 1, "waits");
    await_kept_line(1); /* after this line the sink's thread waits for a reader of the pipe */
    for (uint32_t i = 2; i <= 6; i++)
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, i, "waits");
    expect_kept_line(4, 4, DOMUS_LOG_INFO, 4, "waits");
    ck_assert_int_eq(source.read(source.context, 5, &line), -ENOENT);
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), 2);
    char byte[4096];
    /* Read all the bytes with which the test had filled the pipe of the log. */
    while (read(ends[0], byte, sizeof byte) == (ssize_t)sizeof byte)
        continue;
    for (int i = 0; i < 2000 && source.read(source.context, 6, &line) != 0; i++) {
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, 7, "goes on");
        domt_sleep_ms(5);
    }
    /* The sink's own line says how many lines of the log are missing. */
    expect_kept_line(5, 5, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, line.text);
    ck_assert_ptr_nonnull(strstr(line.text, " log lines were dropped"));
    expect_kept_line(6, 6, DOMUS_LOG_INFO, 7, "goes on");
    close_sink_and_pipe();
}

/* Threads log while viewers read the kept lines; ThreadSanitizer checks this test for races,
 * too. */
DOMT_TEST(viewers_of_kept_lines_see_whole_lines)
{
    char text[DOMUS_LOG_TEXT_MAX + 1];
    uint64_t next = 1;

    open_sink_with_kept_lines(1024, true);
    for (int i = 0; i < 1000; i++) {
        memset(text, 'a' + i % 26, sizeof text - 1);
        text[sizeof text - 1] = '\0';
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, (uint32_t)i, text);
        while (source.read(source.context, next, &line) == 0) {
            ck_assert_uint_ge(line.number, next);
            ck_assert_uint_eq(strspn(line.text, (char[]){line.text[0], '\0'}), sizeof text - 1);
            next = line.number + 1;
        }
        static char taken[4096];
        ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
        (void)!read(ends[0], taken, sizeof taken);
    }
    close_sink_and_pipe();
}

DOMT_SUITE(60)
