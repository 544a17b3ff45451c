/* The writer of an access log (domus/http_access.h) on real threads: each line is written to the
 * file or counted as lost, also while the file is moved away. */
#include "tests/runtime/running.h"

#include "protocols/http/access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EACH 500u /* number of lines that each actor puts into the log */

static const domus_type go_type = {.name = "go"};
static const domus_type open_type = {.name = "open"};

static domus_http_access access_log;
static _Atomic int opened[2];
static _Atomic uint32_t put, refused;

static int open_access_log_twice(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&opened[0], domus_http_access_open(stack, &access_log));
    atomic_store(&opened[1], domus_http_access_open(stack, &access_log));
    return 0;
}

static int put_lines_into_access_log(domus_stack *stack, void *self, const void *payload)
{
    for (uint32_t i = 0; i < EACH; i++)
        domi_http_access_put_line(domi_http_access_get_queue(&access_log), "0123456789\n", 11);
    atomic_fetch_add(&put, EACH);
    return 0;
}

static const domus_behaviour logger = {
    .name = "logger",
    .on = (const domus_on[]){
        {&go_type, put_lines_into_access_log, 0}, {&open_type, open_access_log_twice, 0}, {0}}};

static void start_system(domus_system **ret_system)
{
    atomic_store(&put, 0);
    atomic_store(&refused, 0);
    atomic_store(&opened[0], 1);
    atomic_store(&opened[1], 1);
    *ret_system = domt_start_system_of_threads(2);
    domt_send_notice(*ret_system, domt_spawn(*ret_system, 0, &logger, NULL), &open_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&opened[1]) != 1);
    ck_assert_int_eq(atomic_load(&opened[1]), -EALREADY);
}

/* Let the actors of both threads put their lines into the log, and wait until all have. */
static void put_lines_by_both_threads(domus_system *system)
{
    uint32_t before = atomic_load(&put);

    for (uint32_t i = 0; i < 8; i++)
        domt_send_notice(system, domt_spawn(system, i % 2, &logger, NULL), &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&put) == before + 8 * EACH);
}

/* Returns how many whole lines the file has; 0 if there is no such file. */
static uint64_t count_lines_of_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[64];
    uint64_t count = 0;

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        ck_assert_str_eq(line, "0123456789\n");
        count++;
    }
    (void)fclose(file);
    return count;
}

DOMT_TEST(access_log_writes_every_line)
{
    char folder[] = "/tmp/domus-access-XXXXXX";
    char path[64], moved[64];
    domus_system *system;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/log", folder);
    (void)snprintf(moved, sizeof moved, "%s/log.1", folder);
    access_log = (domus_http_access){.path = path, .flush_ns = 10000000};
    start_system(&system);
    ck_assert_int_eq(atomic_load(&opened[0]), 0);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20,
                  count_lines_of_file(path) + domus_http_access_dropped(&access_log) == 8 * EACH);
    ck_assert_int_eq(rename(path, moved), 0);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, count_lines_of_file(path) + count_lines_of_file(moved) +
                              domus_http_access_dropped(&access_log) ==
                          16 * EACH);
    put_lines_by_both_threads(system);
    domt_end_system(system);
    uint64_t dropped = domus_http_access_dropped(&access_log);
    domus_http_access_close(&access_log); /* to close the log writes the rest of its lines */
    ck_assert_uint_eq(count_lines_of_file(path) + count_lines_of_file(moved) + dropped, 24 * EACH);
    (void)unlink(path);
    (void)unlink(moved);
    (void)rmdir(folder);
}

static int refuse_lines_in_writer(void *context, const char *lines, size_t size)
{
    ck_assert_str_eq(context, "context");
    atomic_fetch_add(&refused, 1);
    return -EIO;
}

DOMT_TEST(lines_that_cannot_be_written_are_counted)
{
    domus_system *system;

    access_log = (domus_http_access){
        .write = refuse_lines_in_writer, .context = "context", .flush_ns = 10000000};
    start_system(&system);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, domus_http_access_dropped(&access_log) == 8 * EACH);
    ck_assert_uint_gt(atomic_load(&refused), 0);
    domt_end_system(system);
    domus_http_access_close(&access_log);
    access_log = (domus_http_access){.path = "/none/at/all", .flush_ns = 10000000};
    start_system(&system);
    put_lines_by_both_threads(system);
    DOMT_WAIT_FOR(20, domus_http_access_dropped(&access_log) == 8 * EACH);
    domt_end_system(system);
    domus_http_access_close(&access_log);
}

DOMT_TEST(a_log_without_a_place_is_refused)
{
    access_log = (domus_http_access){.path = NULL};
    atomic_store(&opened[1], 1);
    domus_system *system = domt_start_system_of_threads(1);
    domt_send_notice(system, domt_spawn(system, 0, &logger, NULL), &open_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&opened[1]) != 1);
    ck_assert_int_eq(atomic_load(&opened[0]), -EINVAL);
    domt_end_system(system);
    domus_http_access_close(&access_log);
}

DOMT_SUITE(60)
