/* config/sink.c: one thread writes the lines that other threads leave in the sink, in order, and no
 * thread that leaves a line has to wait. */
#include "config/sink.h"

#include "tests/support/death.h"
#include "tests/support/deny.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call that poll() makes: SYS_poll, or SYS_ppoll where that does not exist. */
#ifdef SYS_poll
#define DOMT_POLL SYS_poll
#else
#define DOMT_POLL SYS_ppoll
#endif

#define SECOND_NS UINT64_C(1000000000)
#define PIPE_BYTES                                                                                 \
    16384 /* size of the test's pipe, which takes one write at a time in packet mode */
#define TEXT_BYTES 65536

static domi_sink *sink;
static int reader;
static int writer;
static char text[TEXT_BYTES];

static void open_sink_on_pipe(uint32_t lines_max)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_ge(fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
    reader = ends[0];
    writer = ends[1];
    ck_assert_int_eq(domi_sink_open("test", writer, lines_max, NULL, &sink), 0);
}

/* Fill the pipe, so that the sink can write no line that is left after this call. */
static void fill_pipe(void)
{
    ck_assert_int_eq(fcntl(writer, F_SETFL, O_NONBLOCK), 0);
    while (write(writer, ".", 1) > 0)
        continue;
    ck_assert_int_eq(fcntl(writer, F_SETFL, 0), 0);
}

/* Close the sink, and read everything that it has written to the pipe, without the bytes that
 * filled the pipe. */
static void close_sink_and_read_pipe(void)
{
    size_t length = 0;
    ssize_t got;

    domi_sink_close(sink, 10 * SECOND_NS);
    close(writer);
    while ((got = read(reader, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    domi_sink_free(sink);
    close(reader);
}

DOMT_TEST(sink_writes_lines_and_texts_in_order)
{
    open_sink_on_pipe(16);
    domi_sink_add_log_line(sink, DOMUS_LOG_ERROR, 3, "first");
    domi_sink_add_log_line(sink, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, "second");
    domi_sink_add_text(sink, strdup("a table\nof two lines\n"));
    domi_sink_add_line(sink, "%s", "bytes \x1b[2J\n\xc2\x9b");
    domi_sink_add_log_line(sink, DOMUS_LOG_INFO, 0, "");
    close_sink_and_read_pipe();
    ck_assert_str_eq(text, "test: error: thread 3: first\n"
                           "test: warning: second\n"
                           "a table\nof two lines\n"
                           "test: bytes \\x1b[2J\\n\\xc2\\x9b\n"
                           "test: info: thread 0: \n");
}

DOMT_TEST(sink_writes_longest_line_whole)
{
    char line[DOMUS_LOG_TEXT_MAX + 1];

    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    open_sink_on_pipe(16);
    domi_sink_add_log_line(sink, DOMUS_LOG_WARNING, UINT32_MAX - 1, line);
    domi_sink_add_line(sink, "%s%s", line, "cut");
    close_sink_and_read_pipe();
    ck_assert_ptr_nonnull(strstr(text, "test: warning: thread 4294967294: xxx"));
    ck_assert_uint_eq(strlen(text), strlen("test: warning: thread 4294967294: \ntest: \n") +
                                        2 * (sizeof line - 1));
}

static void *drain_pipe_in_thread(void *length_)
{
    size_t *length = length_;
    ssize_t got;

    while ((got = read(reader, text + *length, sizeof text - 1 - *length)) > 0)
        *length += (size_t)got;
    return NULL;
}

/* The sink keeps as many lines as it has places; where it had to drop lines, the log says so. */
DOMT_TEST(sink_reports_dropped_lines_where_they_miss)
{
    enum { PLACES = 16, LINES = 100 };
    char line[32];
    size_t length = 0;
    pthread_t thread;

    open_sink_on_pipe(PLACES);
    fill_pipe();
    uint64_t began_ns = domt_monotonic_ns();
    for (int i = 0; i < LINES; i++) {
        snprintf(line, sizeof line, "line %d", i);
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, DOMUS_LOG_OUTSIDE, line);
    }
    ck_assert_uint_lt(domt_monotonic_ns() - began_ns, 5 * SECOND_NS);
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), LINES - PLACES);
    ck_assert_int_eq(pthread_create(&thread, NULL, drain_pipe_in_thread, &length), 0);
    uint64_t before;
    do { /* Lines are left until the sink has a free place again. */
        before = domi_sink_count_dropped_lines(sink);
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, DOMUS_LOG_OUTSIDE, "after");
    } while (domi_sink_count_dropped_lines(sink) != before);
    domi_sink_close(sink, 10 * SECOND_NS);
    close(writer);
    pthread_join(thread, NULL);
    text[length] = '\0';
    uint64_t dropped = domi_sink_count_dropped_lines(sink);
    domi_sink_free(sink);
    close(reader);

    const char *at = strchr(text, 't');
    ck_assert_ptr_nonnull(at);
    for (int i = 0; i < PLACES; i++) {
        snprintf(line, sizeof line, "test: info: line %d\n", i);
        ck_assert_msg(strncmp(at, line, strlen(line)) == 0, "line %d: %.60s", i, at);
        at += strlen(line);
    }
    ck_assert_uint_eq(dropped, before);
    /* The sink's thread may report some of the dropped lines while the last ones are still being
     * counted, so there may be two reports. */
    unsigned long long told, all = 0;
    for (; sscanf(at, "test: warning: %llu log lines were dropped", &told) == 1; all += told)
        at = strchr(at, '\n') + 1;
    ck_assert_uint_eq(all, dropped);
    ck_assert_str_eq(at, "test: info: after\n");
}

DOMT_TEST(sink_reports_dropped_lines_at_the_end)
{
    open_sink_on_pipe(2);
    fill_pipe();
    for (int i = 0; i < 10; i++)
        domi_sink_add_line(sink, "line");
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), 8);
    char bytes[PIPE_BYTES];
    ck_assert_int_eq(read(reader, bytes, sizeof bytes), PIPE_BYTES);
    close_sink_and_read_pipe();
    ck_assert_str_eq(text, "test: line\ntest: line\ntest: warning: 8 log lines were dropped\n");
}

DOMT_TEST(texts_beyond_the_limit_are_dropped_and_counted)
{
    open_sink_on_pipe(16);
    fill_pipe();
    for (uint32_t i = 0; i < DOMI_SINK_TEXTS_MAX + 2; i++)
        domi_sink_add_text(sink, strdup("one\ntwo\nthree\n"));
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), 6);
    char bytes[PIPE_BYTES];
    ck_assert_int_eq(read(reader, bytes, sizeof bytes), PIPE_BYTES);
    close_sink_and_read_pipe();
    ck_assert_ptr_nonnull(strstr(text, "test: warning: 6 log lines were dropped\n"));
    ck_assert_int_eq(strncmp(text, "one\ntwo\nthree\none\n", 18), 0);
}

DOMT_TEST(close_of_sink_waits_up_to_its_timeout)
{
    open_sink_on_pipe(16);
    fill_pipe();
    for (int i = 0; i < 10; i++)
        domi_sink_add_line(sink, "line");
    domi_sink_add_text(sink, strdup("a\nb\n"));
    uint64_t began_ns = domt_monotonic_ns();
    domi_sink_close(sink, SECOND_NS / 5);
    uint64_t took_ns = domt_monotonic_ns() - began_ns;
    ck_assert_uint_ge(took_ns, SECOND_NS / 5);
    ck_assert_uint_lt(took_ns, 5 * SECOND_NS);
    /* The lines that could not be written count as dropped. */
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), 12);
    /* A thread that was not ended in time may still leave a line in the closed sink, without
     * effect. */
    domi_sink_add_line(sink, "too late");
    domi_sink_add_text(sink, strdup("too late\n"));
    domi_sink_free(sink);
    close(reader);
    close(writer);
}

/* SIGPIPE has its default action, and yet the process lives on when the pipe has no reader. */
DOMT_TEST(lines_without_a_reader_count_as_dropped)
{
    open_sink_on_pipe(16);
    close(reader);
    for (int i = 0; i < 5; i++)
        domi_sink_add_line(sink, "line");
    domi_sink_close(sink, 10 * SECOND_NS);
    ck_assert_uint_eq(domi_sink_count_dropped_lines(sink), 5);
    domi_sink_free(sink);
    close(writer);
}

/* --- many threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, EACH = 20000 };

static void *log_many_lines_in_thread(void *number)
{
    char line[32];

    for (int i = 0; i < EACH; i++) {
        snprintf(line, sizeof line, "line %d", i);
        domi_sink_add_log_line(sink, DOMUS_LOG_INFO, *(const uint32_t *)number, line);
    }
    return NULL;
}

typedef struct heard {
    int next[THREADS]; /* the number that the next line of each thread must have */
    uint64_t lines;
    uint64_t told; /* number of lines that the sink has reported as dropped */
} heard;

static void record_line_of_thread(heard *all, const char *line)
{
    unsigned thread;
    unsigned long long dropped;
    int number;

    if (sscanf(line, "test: warning: %llu log lines were dropped", &dropped) == 1) {
        all->told += dropped;
        return;
    }
    ck_assert_msg(sscanf(line, "test: info: thread %u: line %d", &thread, &number) == 2, "%s",
                  line);
    ck_assert_uint_lt(thread, THREADS);
    ck_assert_int_ge(number, all->next[thread]);
    all->next[thread] = number + 1;
    all->lines++;
}

static void *record_lines_of_pipe_in_thread(void *all)
{
    FILE *file = fdopen(reader, "r");
    char line[256];

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL)
        record_line_of_thread(all, line);
    fclose(file);
    return NULL;
}

/* The lines of each thread come in their order, and each line is written or reported as dropped. */
DOMT_TEST(lines_of_threads_are_written_or_reported)
{
    static heard all;
    pthread_t threads[THREADS], listener;
    uint32_t numbers[THREADS];

    open_sink_on_pipe(64);
    ck_assert_int_eq(pthread_create(&listener, NULL, record_lines_of_pipe_in_thread, &all), 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many_lines_in_thread, &numbers[i]),
                         0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    domi_sink_close(sink, 30 * SECOND_NS);
    uint64_t dropped = domi_sink_count_dropped_lines(sink);
    domi_sink_free(sink);
    close(writer);
    pthread_join(listener, NULL);
    ck_assert_uint_eq(all.told, dropped);
    ck_assert_uint_eq(all.lines + dropped, (uint64_t)THREADS * EACH);
    ck_assert_uint_gt(all.lines, 0);
}

static void use_sink_in_forked_child(void *context)
{
    alarm(20);
    for (int i = 0; i < 100; i++)
        domi_sink_add_line(sink, "from the child");
    domi_sink_close(sink, SECOND_NS);
    domi_sink_free(sink);
    _exit(domi_sink_count_dropped_lines(sink) == 96 ? 0 : 1);
}

static uint64_t read_process_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SECOND_NS + (uint64_t)used.tv_nsec;
}

/* Let a sink wait for the reader of a pipe that the program's parent has made non-blocking, in a
 * process whose filter of system calls refuses poll(). */
static void wait_for_reader_without_poll(void *context)
{
    open_sink_on_pipe(4);
    fill_pipe();
    if (fcntl(writer, F_SETFL, O_NONBLOCK) != 0 || domt_deny_system_call(DOMT_POLL, EPERM) != 0)
        _exit(2);
    /* The thread of the first sink was made before the filter, so it may still call poll(). */
    domi_sink_close(sink, SECOND_NS);
    if (domi_sink_open("test", writer, 4, NULL, &sink) != 0)
        _exit(3);
    uint64_t before_ns = read_process_cpu_ns();
    domi_sink_add_line(sink, "nobody reads it");
    usleep(400000);
    domi_sink_close(sink, SECOND_NS / 10);
    _exit(read_process_cpu_ns() - before_ns < SECOND_NS / 50 ? 0 : 1);
}

DOMT_TEST(waiting_for_reader_without_poll_uses_no_cpu)
{
    static char said[DOMT_SAID_MAX];

    ck_assert_int_eq(domt_run_in_child(wait_for_reader_without_poll, NULL, said), 0);
}

DOMT_TEST(forked_child_may_log_without_effect)
{
    static char said[DOMT_SAID_MAX];

    open_sink_on_pipe(4);
    ck_assert_int_eq(domt_run_in_child(use_sink_in_forked_child, NULL, said), 0);
    domi_sink_add_line(sink, "from the parent");
    close_sink_and_read_pipe();
    ck_assert_str_eq(text, "test: from the parent\n");
}

DOMT_SUITE(60)
