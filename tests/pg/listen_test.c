/* Notifications of a real server: each subscriber of their channel gets them in order, also after
 * the connection was lost and replaced, until it ends its subscription. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MS UINT64_C(1000000)

static domt_postgres server;
static domt_pg_user user;

static void set_up_with(domus_sql_options options)
{
    options.backoff_min_ns = 10 * MS;
    options.backoff_max_ns = 50 * MS;
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, &options);
}

static void set_up(void)
{
    set_up_with((domus_sql_options){.backoff_min_ns = 0});
}

static void tear_down(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static int send_ask(domt_pg_user *who, const domus_type *type, const char *channel)
{
    domus_pg_channel named = {.at = who->sql.at};

    memcpy(named.name, channel, strlen(channel));
    return domt_pg_ask_and_wait(who, who->sql.at, type, &named, 0).error;
}

static int listen_to(domt_pg_user *who, const char *channel)
{
    return send_ask(who, &domus_pg_listen_type, channel);
}

static const domus_pg_notification *receive_notification(domt_pg_user *who)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    static domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(who->outsider, &pattern, 20000 * MS, &message), 0);
    return message.payload;
}

static void expect_notification(domt_pg_user *who, const char *channel, const char *payload)
{
    const domus_pg_notification *told = receive_notification(who);

    ck_assert_str_eq(told->channel, channel);
    ck_assert_msg(domus_slice_equals(told->payload, payload, strlen(payload)), "%s", payload);
    ck_assert(!told->is_gap && told->lost == 0 && told->pid > 0);
}

DOMT_TEST(notifications_come_to_subscribers_in_order)
{
    char text[64];

    set_up();
    domt_pg_user other = user;
    ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    ck_assert_int_eq(listen_to(&other, "news"), 0);
    ck_assert_int_eq(listen_to(&user, "a \"strange\" Name"), 0);
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "NOTIFY news, '%d'", i);
        domt_pg_run_script(&user, text);
        snprintf(text, sizeof text, "%d", i);
        expect_notification(&user, "news", text);
        expect_notification(&other, "news", text);
    }
    domt_pg_run_script(&user, "NOTIFY \"a \"\"strange\"\" Name\"");
    expect_notification(&user, "a \"strange\" Name", "");
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "news"), 0);
    domt_pg_run_script(&user, "NOTIFY news, 'last'; NOTIFY \"a \"\"strange\"\" Name\"");
    expect_notification(&other, "news", "last");
    expect_notification(&user, "a \"strange\" Name", "");
    ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
    /* The server gets an UNLISTEN when a channel has no subscriber left. */
    for (int i = 0; i < 4000; i++) {
        if (domt_pg_run_text_for_number(
                &user, user.sql,
                "SELECT count(*) FROM pg_stat_activity WHERE query = 'UNLISTEN "
                "\"news\"'") == 1)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    }
    ck_assert_int_eq(
        domt_pg_run_text_for_number(&user, user.sql,
                                    "SELECT count(*) FROM pg_stat_activity WHERE query = "
                                    "'UNLISTEN \"news\"'"),
        1);
    tear_down();
}

DOMT_TEST(subscriptions_outlive_the_server)
{
    set_up();
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    for (int round = 0; round < 2; round++) {
        domt_postgres_halt(&server, SIGINT);
        domt_postgres_start_again(&server);
        const domus_pg_notification *told = receive_notification(&user);
        ck_assert(told->is_gap && told->payload.size == 0);
        ck_assert_str_eq(told->channel, "news");
        domt_pg_run_script(&user, "NOTIFY news, 'again'");
        expect_notification(&user, "news", "again");
    }
    tear_down();
}

/* A server in recovery refuses to listen. That is not reported as a gap, and is repeated until it
 * succeeds. */
DOMT_TEST(server_that_refuses_is_asked_again)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    domus_outside_message message;
    char path[128];

    set_up();
    snprintf(path, sizeof path, "%s/data/standby.signal", server.directory);
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    domt_postgres_halt(&server, SIGINT);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    domt_postgres_start_again(&server);
    ck_assert_int_eq(
        domt_pg_run_text_for_number(&user, user.sql, "SELECT pg_is_in_recovery()::int"), 1);
    ck_assert_int_eq(domus_outside_receive(user.outsider, &pattern, 300 * MS, &message),
                     -ETIMEDOUT);
    domt_postgres_halt(&server, SIGINT);
    ck_assert_int_eq(remove(path), 0);
    domt_postgres_start_again(&server);
    ck_assert(receive_notification(&user)->is_gap);
    domt_pg_run_script(&user, "NOTIFY news, 'again'");
    expect_notification(&user, "news", "again");
    tear_down();
}

/* Wait until this number of sessions listens, as their last statements show. */
static void await_listeners(int64_t count)
{
    static const char *const listeners =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' OR query LIKE "
        "'UNLISTEN %'";

    for (int i = 0; i < 4000 && domt_pg_run_text_for_number(&user, user.sql, listeners) != count;
         i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, listeners), count);
}

DOMT_TEST(connection_goes_with_the_last_subscriber)
{
    set_up();
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    ck_assert_int_eq(listen_to(&user, "more"), 0);
    await_listeners(1);
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "news"), 0);
    await_listeners(1);
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "more"), 0);
    await_listeners(0);
    /* the channel gets a connection again with the next subscription */
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    domt_pg_run_script(&user, "NOTIFY news, 'again'");
    expect_notification(&user, "news", "again");
    tear_down();
}

/* The server refuses a name that is not UTF-8. */
DOMT_TEST(listen_that_is_refused_subscribes_nobody)
{
    set_up();
    ck_assert_int_eq(listen_to(&user, "wrong \xff"), -EINVAL);
    /* Without subscribers the listening connection is closed: only the session of the pool is
     * left. */
    static const char *const sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    for (int n = 0; n < 2000 && domt_pg_run_text_for_number(&user, user.sql, sessions) != 1; n++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, sessions), 1);
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    ck_assert_int_eq(listen_to(&user, "wrong \xff"), -EINVAL);
    domt_pg_run_script(&user, "NOTIFY news, 'one'");
    expect_notification(&user, "news", "one");
    tear_down();
}

/* An outsider uses the pools of two threads in turn, as a lent actor does. */
DOMT_TEST(unlisten_reaches_every_pool)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    domus_outside_message message;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_with_threads(&user, server.url, &(domus_sql_options){.connections_max = 2},
                                    2);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(listen_to(&user, "news"), 0);
    await_listeners(2);
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "news"), 0);
    await_listeners(0);
    domt_pg_run_script(&user, "NOTIFY news");
    ck_assert_int_eq(domus_outside_receive(user.outsider, &pattern, 300 * MS, &message),
                     -ETIMEDOUT);
    tear_down();
}

/* The longest payload, and many payloads at once, come even if the limit of results is small. */
DOMT_TEST(notifications_may_be_larger_than_results)
{
    char longest[7999], text[16];

    memset(longest, 'x', sizeof longest);
    set_up_with((domus_sql_options){.result_max = 1024});
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    for (int i = 0; i < 4; i++) {
        domt_pg_run_script(&user,
                           "DO $$ BEGIN PERFORM pg_notify('news', repeat('x', 7999)); END $$");
        const domus_pg_notification *told = receive_notification(&user);
        ck_assert(!told->is_gap);
        ck_assert(domus_slice_equals(told->payload, longest, sizeof longest));
    }
    domt_pg_run_script(&user, "DO $$ BEGIN PERFORM pg_notify('news', i::text) FROM "
                              "generate_series(1, 2000) i; END $$");
    for (int i = 1; i <= 2000; i++) {
        snprintf(text, sizeof text, "%d", i);
        expect_notification(&user, "news", text);
    }
    tear_down();
}

static void send_listen(const char *channel, uint64_t tag)
{
    domus_pg_channel named = {.at = user.sql.at};

    memcpy(named.name, channel, strlen(channel));
    ck_assert_int_eq(
        domus_outsider_ask_add(user.outsider, user.sql.at, &domus_pg_listen_type, &named, 0, tag),
        0);
}

/* A LISTEN that waits for its connection is not sent if its subscription ends before: no session
 * listens. */
DOMT_TEST(unlisten_ends_a_listen_that_waits)
{
    set_up();
    domt_postgres_halt(&server, SIGINT);
    send_listen("news", 0);
    send_listen("more", 1);
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "news"), 0);
    domt_pg_received answer = domt_pg_receive_answer(&user);
    ck_assert_uint_eq(answer.tag, 0);
    ck_assert_int_eq(answer.error, -ECANCELED);
    domt_postgres_start_again(&server);
    answer = domt_pg_receive_answer(&user);
    ck_assert_uint_eq(answer.tag, 1);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_run_script(&user, "NOTIFY news, 'one'; NOTIFY more, 'two'");
    expect_notification(&user, "more", "two");
    ck_assert_int_eq(
        domt_pg_run_text_for_number(&user, user.sql,
                                    "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN "
                                    "\"news\"'"),
        0);
    tear_down();
}

/* A LISTEN that reaches its time-out keeps its subscription: another connection listens. */
DOMT_TEST(listen_that_is_late_leaves_its_subscription)
{
    set_up_with((domus_sql_options){.timeout_ns = 300 * MS});
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    pid_t session = (pid_t)domt_pg_run_text_for_number(
        &user, user.sql, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %'");
    kill(session, SIGSTOP);
    ck_assert_int_eq(listen_to(&user, "more"), -ETIMEDOUT);
    uint64_t began = domt_pg_monotonic_ns();
    for (int i = 0; i < 2; i++)
        ck_assert(receive_notification(&user)->is_gap);
    ck_assert_uint_lt(domt_pg_monotonic_ns() - began,
                      4000 * MS); /* less than the 5 s of a cancel */
    kill(session, SIGCONT);
    domt_pg_run_script(&user, "NOTIFY more, 'one'; NOTIFY news, 'two'");
    expect_notification(&user, "more", "one");
    expect_notification(&user, "news", "two");
    tear_down();
}

DOMT_TEST(names_of_channels_are_checked)
{
    domus_pg_channel unended;

    set_up();
    unended.at = user.sql.at;
    memset(unended.name, 'x', sizeof unended.name);
    ck_assert_int_eq(
        domt_pg_ask_and_wait(&user, user.sql.at, &domus_pg_listen_type, &unended, 0).error,
        -EINVAL);
    unended.name[63] = '\0'; /* the longest name */
    ck_assert_int_eq(listen_to(&user, unended.name), 0);
    tear_down();
}

DOMT_TEST(subscriptions_are_bounded)
{
    set_up();
    for (uint32_t i = 0; i < DOMUS_PG_SUBSCRIPTIONS_MAX; i++)
        ck_assert_int_eq(listen_to(&user, "news"), 0);
    ck_assert_int_eq(listen_to(&user, "news"), -ENOBUFS);
    ck_assert_int_eq(send_ask(&user, &domus_pg_unlisten_type, "news"), 0);
    ck_assert_int_eq(listen_to(&user, "news"), 0);
    tear_down();
}

DOMT_SUITE(120)
