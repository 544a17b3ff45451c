/* Long work of the example `kv` is done in pieces: while keys, lists and hashes of a quarter of a
 * million elements are listed, deleted or expire, another client on the same thread waits for at
 * most some milliseconds. And a scan returns all keys that exist the whole time, while the table
 * grows and shrinks. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/redis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ELEMENTS (DOMT_SANITIZED ? 100000u : 250000u)
#define AT_ONCE  1000u
#define STRING   (DOMT_SANITIZED ? 50000000u : 100000000u)

/* CPU time that the service may use before it answers another client. In one piece each of these
 * commands takes 25 ms and more. (Wall-clock time would depend on other programs of the
 * machine.) */
#define CPU_MOST_NS (UINT64_C(1000000) * (DOMT_SANITIZED ? 200 : 25))

static domt_service kv;

static int start_kv_and_connect(const char *setting)
{
    domt_kv_start(&kv, (const char *const[]){"system.threads=1", "kv.maxMemory=0", setting, NULL});
    return domt_connect_to_port(kv.port);
}

/* --- another client --------------------------------------------------------------------------- */

static _Atomic bool is_over;
static _Atomic uint64_t longest_ns;

static uint64_t cpu_time_of_service_ns(clockid_t clock)
{
    struct timespec time;

    ck_assert_int_eq(clock_gettime(clock, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void *measure_pings_until_over(void *argument)
{
    int fd = domt_connect_to_port(kv.port);
    clockid_t clock;
    char reply[16];

    ck_assert_int_eq(clock_getcpuclockid(kv.pid, &clock), 0);

    while (!atomic_load(&is_over)) {
        uint64_t begin = cpu_time_of_service_ns(clock);
        ck_assert_int_eq(send(fd, "PING\r\n", 6, MSG_NOSIGNAL), 6);
        ck_assert_int_eq(recv(fd, reply, 7, MSG_WAITALL), 7);
        uint64_t took = cpu_time_of_service_ns(clock) - begin;
        if (took > atomic_load(&longest_ns))
            atomic_store(&longest_ns, took);
        usleep(200);
    }
    close(fd);
    return argument;
}

/* --- many elements ---------------------------------------------------------------------------- */

/* Send commands that begin with `names` words, and have `words` words for each of many elements. */
static void fill_by_commands(int fd, const char *head, uint32_t names, uint32_t words,
                             const char *format)
{
    size_t room = AT_ONCE * 64 + 256;
    char *bytes = malloc(room), reply[32];

    ck_assert_ptr_nonnull(bytes);
    for (uint32_t i = 0; i < ELEMENTS; i += AT_ONCE) {
        size_t size = (size_t)snprintf(bytes, room, "*%u\r\n%s", AT_ONCE * words + names, head);
        for (uint32_t j = i; j < i + AT_ONCE; j++)
            size += (size_t)snprintf(bytes + size, room - size, format, j, j);
        for (size_t sent = 0; sent < size;) {
            ssize_t some = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
            ck_assert_int_gt(some, 0);
            sent += (size_t)some;
        }
        ssize_t got = recv(fd, reply, sizeof reply, 0);
        ck_assert_int_gt(got, 3);
        ck_assert_msg(reply[0] != '-', "%.*s", (int)got, reply);
    }
    free(bytes);
}

static void fill_keys(int fd)
{
    fill_by_commands(fd, "$4\r\nMSET\r\n", 1, 2, "$10\r\nk%09u\r\n$10\r\nv%09u\r\n");
}

static void fill_list(int fd)
{
    fill_by_commands(fd, "$5\r\nRPUSH\r\n$1\r\nl\r\n", 2, 1, "$10\r\nv%09u\r\n");
}

static void fill_hash(int fd)
{
    fill_by_commands(fd, "$4\r\nHSET\r\n$1\r\nh\r\n", 2, 2, "$10\r\nf%09u\r\n$10\r\nv%09u\r\n");
}

/* Send a command, and skip its reply, which has `bytes` bytes behind its first line. */
static void run_command_and_skip_reply(int fd, const char *command, const char *first_line,
                                       uint64_t bytes)
{
    static char reply[1 << 20];
    size_t line = strlen(first_line);

    domt_resp_send_command(fd, command);
    ck_assert_int_eq(recv(fd, reply, line, MSG_WAITALL), (ssize_t)line);
    ck_assert_msg(memcmp(reply, first_line, line) == 0, "%s: %.*s", command, (int)line, reply);
    while (bytes > 0) {
        ssize_t got = recv(fd, reply, bytes < sizeof reply ? bytes : sizeof reply, 0);
        ck_assert_int_gt(got, 0);
        bytes -= (uint64_t)got;
    }
}

static void await_empty_store(int fd)
{
    char reply[DOMT_REPLY_MAX] = "";

    for (int i = 0; i < 10000 && strcmp(reply, ":0\r\n") != 0; i++) {
        domt_sleep_ms(1);
        (void)domt_resp_ask_for_reply(fd, "DBSIZE", reply);
    }
    ck_assert_str_eq(reply, ":0\r\n");
}

struct piece_of_work {
    const char *name;
    void (*work)(int fd);
};

/* Fill the store, and check that no command of the table (up to one without a name) delays another
 * client. */
static void check_works_delay_nobody(void (*filled)(int fd), const struct piece_of_work *works)
{
    int fd = start_kv_and_connect("kv.shards=1");

    filled(fd);
    for (; works->name != NULL; works++) {
        pthread_t thread;
        atomic_store(&is_over, false);
        atomic_store(&longest_ns, 0);
        ck_assert_int_eq(pthread_create(&thread, NULL, measure_pings_until_over, NULL), 0);
        domt_sleep_ms(5);
        works->work(fd);
        domt_sleep_ms(100); /* the measured time includes the freeing of the values */
        atomic_store(&is_over, true);
        pthread_join(thread, NULL);
        printf("%s: another client waits for %.1f ms of CPU time at most\n", works->name,
               (double)longest_ns / 1e6);
        ck_assert_msg(longest_ns < CPU_MOST_NS, "%s: %.1f ms", works->name,
                      (double)longest_ns / 1e6);
    }
    close(fd);
    domt_service_stop(&kv);
}

static char head[32];

static const char *head_of_reply_with_all_elements(char mark)
{
    snprintf(head, sizeof head, "%c%u\r\n", mark, ELEMENTS);
    return head;
}

static const char *command_with_number_of_elements(const char *format)
{
    static char command[64];

    snprintf(command, sizeof command, format, ELEMENTS);
    return command;
}

static void list_keys(int fd)
{
    run_command_and_skip_reply(fd, "KEYS k*", head_of_reply_with_all_elements('*'),
                               ELEMENTS * UINT64_C(17));
}

static void flush_store(int fd)
{
    run_command_and_skip_reply(fd, "FLUSHALL", "+OK\r\n", 0);
    domt_resp_expect_trace(fd, "DBSIZE", ":0\r\n");
}

static void list_elements(int fd)
{
    run_command_and_skip_reply(fd, "LRANGE l 0 -1", head_of_reply_with_all_elements('*'),
                               ELEMENTS * UINT64_C(17));
}

static void delete_list(int fd)
{
    run_command_and_skip_reply(fd, "DEL l", ":1\r\n", 0);
}

static void overwrite_list(int fd)
{
    run_command_and_skip_reply(fd, "SET m 1", "+OK\r\n", 0);
}

static void get_whole_hash(int fd)
{
    snprintf(head, sizeof head, "*%u\r\n", 2 * ELEMENTS);
    run_command_and_skip_reply(fd, "HGETALL h", head, 2 * ELEMENTS * UINT64_C(17));
}

static void expire_hash(int fd)
{
    run_command_and_skip_reply(fd, "DEL i", ":1\r\n", 0);
    run_command_and_skip_reply(fd, "PEXPIRE h 1", ":1\r\n", 0);
    await_empty_store(fd);
}

static void fill_string(int fd)
{
    char reply[DOMT_REPLY_MAX];

    snprintf(reply, sizeof reply, "SETRANGE s %u x", STRING - 1);
    domt_resp_send_command(fd, reply);
    ck_assert_int_gt(recv(fd, reply, sizeof reply, 0), 3);
    ck_assert_int_eq(reply[0], ':');
}

static void change_string(int fd)
{
    snprintf(head, sizeof head, ":%u\r\n", STRING + 1);
    run_command_and_skip_reply(fd, "APPEND s y", head, 0);
    domt_resp_expect_trace(fd, "SETRANGE s 5 zz", head);
    domt_resp_expect_trace(fd, "GETRANGE s 5 6", "$2\r\nzz\r\n");
}

static void change_list(int fd)
{
    run_command_and_skip_reply(fd, "LPOS l none", "$-1\r\n", 0);
    run_command_and_skip_reply(fd, "LPOS l none RANK -1 COUNT 0", "*0\r\n", 0);
    run_command_and_skip_reply(fd, "LINSERT l BEFORE none x", ":-1\r\n", 0);
    snprintf(head, sizeof head, ":%u\r\n", ELEMENTS + 1);
    run_command_and_skip_reply(fd, "LINSERT l AFTER v000099998 x", head, 0);
    run_command_and_skip_reply(fd, "LREM l 0 none", ":0\r\n", 0);
    run_command_and_skip_reply(fd, "LREM l -5 x", ":1\r\n", 0);
    run_command_and_skip_reply(fd, "LREM l 5 v000000003", ":1\r\n", 0);
}

static void choose_random_fields(int fd)
{
    run_command_and_skip_reply(fd, "HRANDFIELD h 3", "*3\r\n", 3 * UINT64_C(17));
    run_command_and_skip_reply(fd, command_with_number_of_elements("HRANDFIELD h %u"),
                               head_of_reply_with_all_elements('*'), ELEMENTS * UINT64_C(17));
}

static void copy_list(int fd)
{
    run_command_and_skip_reply(fd, "COPY l m", ":1\r\n", 0);
    domt_resp_expect_trace(fd, "LINDEX m 77777", "$10\r\nv000077777\r\n");
    snprintf(head, sizeof head, ":%u\r\n", ELEMENTS);
    domt_resp_expect_trace(fd, "LLEN m", head);
}

static void copy_hash(int fd)
{
    run_command_and_skip_reply(fd, "COPY h i", ":1\r\n", 0);
    domt_resp_expect_trace(fd, "HGET i f000077777", "$10\r\nv000077777\r\n");
    snprintf(head, sizeof head, ":%u\r\n", ELEMENTS);
    domt_resp_expect_trace(fd, "HLEN i", head);
}

DOMT_TEST(work_on_many_keys_lets_nobody_wait)
{
    check_works_delay_nobody(fill_keys, (const struct piece_of_work[]){{"KEYS", list_keys},
                                                                       {"FLUSHALL", flush_store},
                                                                       {NULL, NULL}});
}

DOMT_TEST(work_on_a_long_list_lets_nobody_wait)
{
    check_works_delay_nobody(fill_list,
                             (const struct piece_of_work[]){{"LRANGE", list_elements},
                                                            {"COPY of a list", copy_list},
                                                            {"LPOS, LINSERT, LREM", change_list},
                                                            {"DEL of a list", delete_list},
                                                            {"SET over a list", overwrite_list},
                                                            {NULL, NULL}});
}

DOMT_TEST(work_on_a_large_hash_lets_nobody_wait)
{
    check_works_delay_nobody(fill_hash,
                             (const struct piece_of_work[]){{"HGETALL", get_whole_hash},
                                                            {"HRANDFIELD", choose_random_fields},
                                                            {"COPY of a hash", copy_hash},
                                                            {"expiry of a hash", expire_hash},
                                                            {NULL, NULL}});
}

DOMT_TEST(work_on_a_large_string_lets_nobody_wait)
{
    check_works_delay_nobody(fill_string, (const struct piece_of_work[]){
                                              {"APPEND, SETRANGE", change_string}, {NULL, NULL}});
}

/* Add many keys that expire at the same time. */
static void add_expiring_keys(int fd, uint32_t count)
{
    static char bytes[AT_ONCE * 64], reply[AT_ONCE * 5];

    for (uint32_t i = 0; i < count; i += AT_ONCE) {
        size_t size = 0;
        for (uint32_t j = i; j < i + AT_ONCE; j++)
            size += (size_t)snprintf(bytes + size, sizeof bytes - size, "SET e%u 1 PX 1\r\n", j);
        ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
        ck_assert_int_eq(recv(fd, reply, sizeof reply, MSG_WAITALL), (ssize_t)sizeof reply);
    }
}

/* The table has begun to grow, and each expiring key moves other keys to the larger table: a walk
 * would miss these if keys expired during it. */
DOMT_TEST(keys_are_listed_as_of_one_moment_though_others_expire)
{
    uint32_t buckets = 1;
    int fd = start_kv_and_connect("kv.shards=1");

    fill_keys(fd);
    while (buckets < ELEMENTS)
        buckets *= 2;
    add_expiring_keys(fd, buckets - ELEMENTS + AT_ONCE);
    for (int i = 0; i < 3; i++)
        list_keys(fd);
    close(fd);
    domt_service_stop(&kv);
}

/* --- scans ------------------------------------------------------------------------------------ */

/* number of keys that stay: so few that tables shrink when the others are deleted */
#define STAYING 300u

/* Mark the keys s0 to s299 in a reply to SCAN as seen. Returns the cursor of that reply. */
static uint64_t mark_scanned_keys(const char *reply, bool seen[STAYING])
{
    const char *at = strstr(reply, "\r\n$") + 2;

    uint64_t cursor = strtoull(strchr(at, '\n') + 1, NULL, 10);
    for (at = strstr(at, "\r\n*"); (at = strstr(at, "\r\ns")) != NULL; at++)
        seen[strtoul(at + 3, NULL, 10)] = true;
    return cursor;
}

static const char *const listings[] = {"KEYS *",
                                       "RANDOMKEY",
                                       "SCAN x",
                                       "SCAN 0 MATCH",
                                       "SCAN 0 COUNT 0",
                                       "SCAN 0 COUNT x",
                                       "SCAN 0 WHAT 1",
                                       "SET hello 1",
                                       "KEYS *",
                                       "KEYS h*o",
                                       "KEYS h?llo",
                                       "KEYS h[a-f]llo",
                                       "KEYS h[^e]llo",
                                       "KEYS h[^a]llo",
                                       "KEYS hell",
                                       "KEYS hello*",
                                       "KEYS **",
                                       "KEYS h\\ello",
                                       "KEYS h[e",
                                       "KEYS h[",
                                       "KEYS h[^",
                                       "KEYS *l*l*",
                                       "KEYS *x*",
                                       "KEYS h[\\e]llo",
                                       "KEYS h[z-a]llo",
                                       "KEYS h[-e]llo",
                                       "KEYS h[e-]llo",
                                       "KEYS [",
                                       "KEYS ?",
                                       "KEYS \"\"",
                                       "KEYS *\\",
                                       "KEYS hello\\",
                                       "RANDOMKEY",
                                       "KEYS a b",
                                       "HSET h a 1",
                                       "HSCAN h 0",
                                       "HSCAN h 0 MATCH b*",
                                       "HSCAN h 0 MATCH a* COUNT 100",
                                       "HSCAN h x",
                                       "HSCAN noh 0",
                                       "HSCAN noh 0 WHAT",
                                       "HSCAN hello 0",
                                       "HSCAN h 0 COUNT 0",
                                       "HSCAN h 0 TYPE hash",
                                       "FLUSHALL WHAT",
                                       "FLUSHALL ASYNC",
                                       "FLUSHDB SYNC",
                                       "FLUSHALL SYNC ASYNC",
                                       "DBSIZE",
                                       NULL};

static void compare_listings_with_redis(const char *shards)
{
    int fd = start_kv_and_connect(shards);

    domt_resp_compare_with_new_redis(fd, listings);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_TEST(listings_of_kv_are_those_of_redis)
{
    compare_listings_with_redis("kv.shards=1");
    compare_listings_with_redis("kv.shards=3");
}

/* During a scan so many other keys are added and deleted that the table is resized. */
static void add_and_delete_keys(int fd, uint32_t round)
{
    char commands[50 * 32], reply[DOMT_REPLY_MAX];
    size_t size = 0;

    for (uint32_t i = 0; i < 50; i++) {
        uint32_t number = (round * 50 + i) % 40000;
        size += (size_t)snprintf(commands + size, sizeof commands - size,
                                 number < 20000 ? "SET x%u 1\r\n" : "DEL x%u\r\n", number % 20000);
    }
    ck_assert_int_eq(send(fd, commands, size, MSG_NOSIGNAL), (ssize_t)size);
    (void)domt_resp_ask_for_reply(fd, "ECHO end", reply);
}

DOMT_TEST(a_scan_returns_what_is_there_the_whole_time)
{
    char command[64], reply[DOMT_REPLY_MAX];
    uint32_t round = 0;

    domt_kv_start(&kv, (const char *const[]){"kv.shards=3", NULL});
    int fd = domt_connect_to_port(kv.port);
    for (uint32_t i = 0; i < STAYING; i++) {
        snprintf(command, sizeof command, "SET s%u 1", i);
        domt_resp_expect_trace(fd, command, "+OK\r\n");
    }
    for (int scans = 0; round < 1000; scans++) {
        bool seen[STAYING] = {false};
        uint64_t cursor = 0;
        do {
            snprintf(command, sizeof command, "SCAN %llu COUNT 20", (unsigned long long)cursor);
            (void)domt_resp_ask_for_reply(fd, command, reply);
            cursor = mark_scanned_keys(reply, seen);
            add_and_delete_keys(fd, round++);
        } while (cursor != 0);
        for (uint32_t i = 0; i < STAYING; i++)
            ck_assert_msg(seen[i], "scan %d has not returned s%u", scans, i);
    }
    close(fd);
    domt_service_stop(&kv);
}

/* One call of SCAN returns a bounded number of elements, whatever COUNT is. */
DOMT_TEST(a_scan_is_bounded_at_each_call)
{
    char command[64], reply[DOMT_REPLY_MAX];
    int fd;

    domt_kv_start(&kv, (const char *const[]){"system.threads=1", "kv.scanMax=50", NULL});
    fd = domt_connect_to_port(kv.port);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(command, sizeof command, "HSET h f%u 1", i);
        domt_resp_expect_trace(fd, command, ":1\r\n");
        snprintf(command, sizeof command, "SET s%u 1", i);
        domt_resp_expect_trace(fd, command, "+OK\r\n");
    }
    ck_assert_uint_lt(domt_resp_ask_for_reply(fd, "SCAN 0 COUNT 1000000", reply), 70 * 10);
    ck_assert_uint_lt(domt_resp_ask_for_reply(fd, "HSCAN h 0 COUNT 1000000", reply), 70 * 2 * 10);
    close(fd);
    domt_service_stop(&kv);
}

DOMT_SUITE(120)
