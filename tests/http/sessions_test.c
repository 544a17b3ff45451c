/* The table of sessions keeps its times and bounds, removes the sessions that were not used for
 * longest, and does not know the old id of a renewed session; the table is tested alone, and in an
 * actor in a test kit. */
#include "tests/http/trace.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/http_sessions.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COST   DOMUS_HTTP_SESSION_COST
#define SECOND UINT64_C(1000000000)

static domus_http_sessions *sessions;

static void open_table_with_options(domus_http_sessions_options options)
{
    ck_assert_int_eq(domus_http_sessions_open(&options, &sessions), 0);
}

static void close_table(void)
{
    ck_assert_ptr_null(domus_http_sessions_close(sessions));
}

static domus_http_session_id begin_session(uint64_t now_ns, const char *value)
{
    domus_http_session_id id;

    ck_assert_int_eq(domus_http_sessions_begin(sessions, now_ns, domt_slice_of_text(value), &id),
                     0);
    return id;
}

/* Returns whether the table has this session at this time, and checks that its value is this
 * one. */
static bool has_table_session(uint64_t now_ns, domus_http_session_id id, const char *value)
{
    domus_slice found;
    int error = domus_http_sessions_find(sessions, now_ns, &id, &found);

    ck_assert(error == 0 || error == -ENOENT);
    if (error == 0)
        ck_assert(domus_slice_equals(found, value, strlen(value)));
    return error == 0;
}

DOMT_TEST(sessions_are_found_changed_and_ended)
{
    open_table_with_options((domus_http_sessions_options){.count_max = 0});
    domus_http_session_id one = begin_session(0, "one"), two = begin_session(0, "two"),
                          none = {{0}};

    ck_assert_mem_ne(&one, &two, sizeof one);
    ck_assert(has_table_session(0, one, "one") && has_table_session(0, two, "two") &&
              !has_table_session(0, none, ""));
    ck_assert_int_eq(domus_http_sessions_put(sessions, 0, &one, domt_slice_of_text("other")), 0);
    ck_assert(has_table_session(0, one, "other") && has_table_session(0, two, "two"));
    ck_assert_uint_eq(domus_http_sessions_bytes(sessions), 5 + 3 + 2 * COST);
    ck_assert_int_eq(domus_http_sessions_end(sessions, 0, &one), 0);
    ck_assert_int_eq(domus_http_sessions_end(sessions, 0, &one), -ENOENT);
    ck_assert_int_eq(domus_http_sessions_put(sessions, 0, &one, (domus_slice){0}), -ENOENT);
    ck_assert(!has_table_session(0, one, "") && has_table_session(0, two, "two"));
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 1);
    ck_assert_uint_eq(domus_http_sessions_bytes(sessions), 3 + COST);
    close_table();
    ck_assert_ptr_null(domus_http_sessions_close(NULL));
}

DOMT_TEST(a_renewed_session_has_another_id)
{
    open_table_with_options((domus_http_sessions_options){.lifetime_ns = 100, .idle_ns = 1000});
    domus_http_session_id one = begin_session(0, "one"), two;

    ck_assert_int_eq(domus_http_sessions_renew(sessions, 50, &one, &two), 0);
    ck_assert_mem_ne(&one, &two, sizeof one);
    ck_assert(!has_table_session(50, one, "") && has_table_session(50, two, "one"));
    ck_assert_int_eq(domus_http_sessions_renew(sessions, 50, &one, &one), -ENOENT);
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 1);
    /* the session's age goes on when its id is renewed */
    ck_assert(has_table_session(99, two, "one"));
    ck_assert(!has_table_session(100, two, "one"));
    close_table();
    /* this table has few buckets, so ids meet in them */
    open_table_with_options((domus_http_sessions_options){.count_max = 3});
    domus_http_session_id ids[3] = {begin_session(0, "0"), begin_session(0, "1"),
                                    begin_session(0, "2")};
    for (unsigned i = 0; i < 60; i++) {
        ck_assert_int_eq(domus_http_sessions_renew(sessions, 0, &ids[i % 3], &ids[i % 3]), 0);
        ck_assert(has_table_session(0, ids[0], "0") && has_table_session(0, ids[1], "1") &&
                  has_table_session(0, ids[2], "2"));
    }
    close_table();
}

DOMT_TEST(sessions_end_after_their_time)
{
    open_table_with_options((domus_http_sessions_options){.idle_ns = 10, .lifetime_ns = 25});
    domus_http_session_id one = begin_session(0, "1"), two = begin_session(1, "2"),
                          three = begin_session(2, "3");

    ck_assert(has_table_session(9, two, "2"));
    ck_assert_uint_eq(domus_http_sessions_sweep(sessions, 9, 10), 10);
    ck_assert(!has_table_session(10, one, "1"));
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 2);
    ck_assert_uint_eq(domus_http_sessions_sweep(sessions, 12, 10), 19);
    ck_assert(!has_table_session(12, three, "3"));
    ck_assert(has_table_session(18, two, "2") && has_table_session(25, two, "2"));
    ck_assert(!has_table_session(26, two, "2")); /* the session's largest age of 25 ns is over */
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 0);
    ck_assert_uint_eq(domus_http_sessions_bytes(sessions), 0);
    ck_assert_uint_eq(domus_http_sessions_sweep(sessions, 99, 10), UINT64_MAX);
    for (int i = 0; i < 20; i++)
        (void)begin_session(100, "");
    ck_assert_uint_eq(domus_http_sessions_sweep(sessions, 200, 3), 110);
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 17);
    /* the table was full, so the begin of this session has removed some others */
    (void)begin_session(200, "");
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 17 - 4 + 1);
    close_table();
}

DOMT_TEST(least_recently_used_sessions_are_ended_at_a_bound)
{
    open_table_with_options((domus_http_sessions_options){
        .count_max = 3, .value_max = 400, .bytes_max = 3 * COST + 100});
    domus_http_session_id one = begin_session(0, "1"), two = begin_session(1, "2"),
                          three = begin_session(2, "3"), four;
    static char text[402];

    ck_assert(has_table_session(3, one, "1"));
    four = begin_session(4, "4");
    ck_assert(!has_table_session(4, two, "2"));
    ck_assert(has_table_session(4, one, "1") && has_table_session(4, three, "3") &&
              has_table_session(4, four, "4"));
    /* 98 bytes and two values of one byte reach the limit of bytes exactly; with one byte more the
     * least used session is removed */
    memset(text, 'x', 98);
    ck_assert_int_eq(domus_http_sessions_put(sessions, 5, &four, domt_slice_of_text(text)), 0);
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 3);
    ck_assert_uint_eq(domus_http_sessions_bytes(sessions), 3 * COST + 100);
    text[98] = 'x';
    ck_assert_int_eq(domus_http_sessions_put(sessions, 5, &four, domt_slice_of_text(text)), 0);
    ck_assert(!has_table_session(5, one, "1") && has_table_session(5, three, "3") &&
              has_table_session(5, four, text));
    memset(text, 'x', COST + 1); /* the space of the removed session is used up, but for one byte */
    ck_assert_int_eq(domus_http_sessions_put(sessions, 5, &three, domt_slice_of_text(text)), 0);
    text[99] = '\0';
    ck_assert(has_table_session(5, four, text));
    text[99] = 'x';
    ck_assert(has_table_session(5, three, text));
    text[COST + 1] = 'x';
    ck_assert_int_eq(domus_http_sessions_put(sessions, 5, &three, domt_slice_of_text(text)), 0);
    ck_assert(!has_table_session(5, four, "") && has_table_session(5, three, text));
    memset(text, 'x', 401);
    domus_slice large = domt_slice_of_text(text);
    ck_assert_int_eq(domus_http_sessions_put(sessions, 5, &three, large), -EMSGSIZE);
    ck_assert_int_eq(domus_http_sessions_begin(sessions, 5, large, &four), -EMSGSIZE);
    domus_slice_free(large);
    ck_assert_uint_eq(domus_http_sessions_count(sessions), 1);
    close_table();
}

DOMT_TEST(new_sessions_may_be_refused_at_a_bound)
{
    open_table_with_options((domus_http_sessions_options){
        .count_max = 2, .value_max = 100, .bytes_max = 2 * COST + 100, .refuses = true});
    domus_http_session_id one = begin_session(0, "1"), two = begin_session(0, "2"), three;
    static char text[100];

    ck_assert_int_eq(domus_http_sessions_begin(sessions, 0, (domus_slice){0}, &three), -ENOBUFS);
    memset(text, 'x', 99);
    ck_assert_int_eq(domus_http_sessions_put(sessions, 0, &one, domt_slice_of_text(text)), 0);
    domus_slice more = domt_slice_of_text("xx");
    ck_assert_int_eq(domus_http_sessions_put(sessions, 0, &two, more), -ENOBUFS);
    domus_slice_free(more);
    ck_assert(has_table_session(0, one, text) && has_table_session(0, two, "2"));
    ck_assert_int_eq(domus_http_sessions_begin(sessions, 3600 * SECOND, (domus_slice){0}, &three),
                     0); /* the other sessions were idle for too long and are removed */
    close_table();
}

static int drawn;

static int draw_predictable_id(void *to, size_t size)
{
    if (drawn < 0)
        return drawn;
    memset(to, drawn / 2, size);
    drawn++;
    return 0;
}

DOMT_TEST(wrong_options_and_failing_random_are_errors)
{
    static const domus_http_sessions_options wrong[] = {
        {.count_max = 1000001},
        {.value_max = (1 << 20) + 1, .bytes_max = 1 << 30},
        {.bytes_max = 4096 + COST - 1},
        {.value_max = 1, .bytes_max = COST},
    };
    domus_http_session_id one, two;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_http_sessions_open(&wrong[i], &sessions), -EINVAL);
    open_table_with_options(
        (domus_http_sessions_options){.draw = draw_predictable_id, .count_max = 1000000});
    one = begin_session(0, "1"); /* the test's random numbers make the same id twice */
    ck_assert_int_eq(domus_http_sessions_begin(sessions, 0, (domus_slice){0}, &two), -EEXIST);
    drawn = 1;
    ck_assert_int_eq(domus_http_sessions_renew(sessions, 0, &one, &two), -EEXIST);
    drawn = -ENOSYS;
    ck_assert_int_eq(domus_http_sessions_begin(sessions, 0, (domus_slice){0}, &two), -ENOSYS);
    ck_assert_int_eq(domus_http_sessions_renew(sessions, 0, &one, &two), -ENOSYS);
    ck_assert(has_table_session(0, one, "1"));
    close_table();
}

/* A table of many sessions agrees with a model, an array of what the table should have. */
DOMT_TEST(many_sessions_are_kept_apart)
{
    enum { MANY = 3000 };
    static domus_http_session_id ids[MANY];
    char text[16];

    open_table_with_options((domus_http_sessions_options){.count_max = MANY / 2});
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%u", i);
        ids[i] = begin_session(i, text);
    }
    ck_assert_uint_eq(domus_http_sessions_count(sessions), MANY / 2);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(text, sizeof text, "%u", i);
        ck_assert_int_eq(has_table_session(MANY, ids[i], text), i >= MANY / 2);
    }
    close_table();
}

/* --- the actor -------------------------------------------------------------------------------- */

static domus_http_session ask_actor_for_session(domus_probe *probe, domus_address store,
                                                const domus_type *type, domus_http_session_id id,
                                                const char *value)
{
    domus_http_session asked = {.id = id, .value = domt_slice_of_text(value)};
    domus_http_session got;

    ck_assert_int_eq(domus_probe_ask(probe, store, type, &asked), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_http_session_type, SECOND, &got), 0);
    return got;
}

static void expect_error_of_actor(domus_probe *probe, domus_address store, const domus_type *type,
                                  domus_http_session_id id, const char *value, int error)
{
    domus_http_session asked = {.id = id, .value = domt_slice_of_text(value)};

    ck_assert_int_eq(domus_probe_ask(probe, store, type, &asked), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, error, SECOND), 0);
}

DOMT_TEST(the_sessions_actor_answers_as_the_table)
{
    static const domus_http_sessions_options options = {.value_max = 10, .idle_ns = 5 * SECOND};
    static const domus_http_sessions_options wrong = {.bytes_max = 1};
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_system *system = domus_testkit_system(kit);
    domus_http_session_id none = {{0}};
    domus_address store;
    domus_probe *probe;

    ck_assert_int_eq(domus_outside_http_sessions_spawn(system, &wrong, &store), -EINVAL);
    ck_assert_int_eq(domus_outside_http_sessions_spawn(system, &options, &store), 0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    domus_http_session one =
        ask_actor_for_session(probe, store, &domus_http_session_begin_type, none, "one");
    ck_assert_uint_eq(one.value.size, 0);
    domus_http_session got =
        ask_actor_for_session(probe, store, &domus_http_session_find_type, one.id, "");
    ck_assert(domus_slice_equals(got.value, "one", 3));
    domus_slice_free(got.value);
    got = ask_actor_for_session(probe, store, &domus_http_session_put_type, one.id, "other");
    ck_assert_mem_eq(&got.id, &one.id, sizeof one.id);
    domus_http_session two =
        ask_actor_for_session(probe, store, &domus_http_session_renew_type, one.id, "");
    ck_assert(domus_slice_equals(two.value, "other", 5));
    domus_slice_free(two.value);
    expect_error_of_actor(probe, store, &domus_http_session_find_type, one.id, "", -ENOENT);
    expect_error_of_actor(probe, store, &domus_http_session_renew_type, one.id, "", -ENOENT);
    expect_error_of_actor(probe, store, &domus_http_session_put_type, one.id, "v", -ENOENT);
    expect_error_of_actor(probe, store, &domus_http_session_put_type, two.id, "12345678901",
                          -EMSGSIZE);
    expect_error_of_actor(probe, store, &domus_http_session_begin_type, none, "12345678901",
                          -EMSGSIZE);
    got = ask_actor_for_session(probe, store, &domus_http_session_end_type, two.id, "");
    expect_error_of_actor(probe, store, &domus_http_session_end_type, two.id, "", -ENOENT);
    one = ask_actor_for_session(probe, store, &domus_http_session_begin_type, none, "one");
    ck_assert_int_eq(domus_testkit_advance(kit, 4 * SECOND), 0);
    got = ask_actor_for_session(probe, store, &domus_http_session_find_type, one.id, "");
    domus_slice_free(got.value);
    ck_assert_uint_ne(domus_testkit_due_ns(kit), UINT64_MAX);
    ck_assert_int_eq(domus_testkit_advance(kit, 30 * SECOND), 0);
    /* without sessions the actor has no timer */
    ck_assert_uint_eq(domus_testkit_due_ns(kit), UINT64_MAX);
    expect_error_of_actor(probe, store, &domus_http_session_find_type, one.id, "", -ENOENT);
    (void)ask_actor_for_session(probe, store, &domus_http_session_begin_type, none, "left");
    domus_testkit_free(kit);
}

DOMT_SUITE(20)
