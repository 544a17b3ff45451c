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

static void start_server_with_options(domus_sql_options options)
{
    options.backoff_min_ns = 10 * MS;
    options.backoff_max_ns = 50 * MS;
    domt_postgres_start(&server, NULL);
    domt_pg_user_start_system(&user, server.url, &options);
}

static void start_server_with_user(void)
{
    start_server_with_options((domus_sql_options){.backoff_min_ns = 0});
}

static void stop_server_and_user(void)
{
    domt_pg_user_stop_system(&user);
    domt_postgres_stop(&server);
}

static int ask_about_channel(domt_pg_user *who, const domus_type *type, const char *channel)
{
    domus_pg_channel named = {.at = who->sql.at};

    memcpy(named.name, channel, strlen(channel));
    return domt_pg_ask_and_wait(who, who->sql.at, type, &named, 0).error;
}

static int subscribe_to_channel(domt_pg_user *who, const char *channel)
{
    return ask_about_channel(who, &domus_pg_listen_type, channel);
}

static const domus_pg_notification *receive_next_notification(domt_pg_user *who)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    static domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(who->outsider, &pattern, 20000 * MS, &message), 0);
    return message.payload;
}

static void expect_notification_with_text(domt_pg_user *who, const char *channel,
                                          const char *payload)
{
    const domus_pg_notification *told = receive_next_notification(who);

    ck_assert_str_eq(told->channel, channel);
    ck_assert_msg(domus_slice_equals(told->payload, payload, strlen(payload)), "%s", payload);
    ck_assert(!told->is_gap && told->lost == 0 && told->pid > 0);
}

DOMT_TEST(notifications_reach_subscribers_in_order)
{
    char text[64];

    start_server_with_user();
    domt_pg_user other = user;
    ck_assert_int_eq(domus_outside_attach(user.system, NULL, &other.outsider), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&other, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "a \"strange\" Name"), 0);
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "NOTIFY news, '%d'", i);
        domt_pg_run_script(&user, text);
        snprintf(text, sizeof text, "%d", i);
        expect_notification_with_text(&user, "news", text);
        expect_notification_with_text(&other, "news", text);
    }
    domt_pg_run_script(&user, "NOTIFY \"a \"\"strange\"\" Name\"");
    expect_notification_with_text(&user, "a \"strange\" Name", "");
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "news"), 0);
    domt_pg_run_script(&user, "NOTIFY news, 'last'; NOTIFY \"a \"\"strange\"\" Name\"");
    expect_notification_with_text(&other, "news", "last");
    expect_notification_with_text(&user, "a \"strange\" Name", "");
    ck_assert_int_eq(domus_outside_detach(other.outsider), 0);
    /* The server gets an UNLISTEN when a channel of notifications has lost its last subscriber. */
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
    stop_server_and_user();
}

DOMT_TEST(subscriptions_survive_server_restart)
{
    start_server_with_user();
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    for (int round = 0; round < 2; round++) {
        domt_postgres_signal_and_wait(&server, SIGINT);
        domt_postgres_start_again(&server);
        const domus_pg_notification *told = receive_next_notification(&user);
        ck_assert(told->is_gap && told->payload.size == 0);
        ck_assert_str_eq(told->channel, "news");
        domt_pg_run_script(&user, "NOTIFY news, 'again'");
        expect_notification_with_text(&user, "news", "again");
    }
    stop_server_and_user();
}

/* A server in recovery refuses to listen. The refusal is not reported as a gap, and the LISTEN is
 * repeated until it succeeds. */
DOMT_TEST(refused_listen_is_repeated)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    domus_outside_message message;
    char path[128];

    start_server_with_user();
    snprintf(path, sizeof path, "%s/data/standby.signal", server.directory);
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    domt_postgres_signal_and_wait(&server, SIGINT);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    domt_postgres_start_again(&server);
    ck_assert_int_eq(
        domt_pg_run_text_for_number(&user, user.sql, "SELECT pg_is_in_recovery()::int"), 1);
    ck_assert_int_eq(domus_outside_receive(user.outsider, &pattern, 300 * MS, &message),
                     -ETIMEDOUT);
    domt_postgres_signal_and_wait(&server, SIGINT);
    ck_assert_int_eq(remove(path), 0);
    domt_postgres_start_again(&server);
    ck_assert(receive_next_notification(&user)->is_gap);
    domt_pg_run_script(&user, "NOTIFY news, 'again'");
    expect_notification_with_text(&user, "news", "again");
    stop_server_and_user();
}

/* Wait until this number of the server's sessions listens, as their last statements show. */
static void await_listening_sessions(int64_t count)
{
    static const char *const listeners =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' OR query LIKE "
        "'UNLISTEN %'";

    for (int i = 0; i < 4000 && domt_pg_run_text_for_number(&user, user.sql, listeners) != count;
         i++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, listeners), count);
}

DOMT_TEST(listening_connection_ends_with_last_subscriber)
{
    start_server_with_user();
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "more"), 0);
    await_listening_sessions(1);
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "news"), 0);
    await_listening_sessions(1);
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "more"), 0);
    await_listening_sessions(0);
    /* The next subscription opens a connection for the channel again. */
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    domt_pg_run_script(&user, "NOTIFY news, 'again'");
    expect_notification_with_text(&user, "news", "again");
    stop_server_and_user();
}

/* The server refuses the name of a channel that is not UTF-8, so nobody is subscribed. */
DOMT_TEST(refused_listen_subscribes_nobody)
{
    start_server_with_user();
    ck_assert_int_eq(subscribe_to_channel(&user, "wrong \xff"), -EINVAL);
    /* Without subscribers the listening connection is closed: only the session of the pool is
     * left. */
    static const char *const sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    for (int n = 0; n < 2000 && domt_pg_run_text_for_number(&user, user.sql, sessions) != 1; n++)
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, sessions), 1);
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "wrong \xff"), -EINVAL);
    domt_pg_run_script(&user, "NOTIFY news, 'one'");
    expect_notification_with_text(&user, "news", "one");
    stop_server_and_user();
}

/* An outsider asks the pools of two threads in turn, as an actor that is lent does, so both have
 * its subscription. */
DOMT_TEST(unlisten_reaches_every_pool)
{
    static const domus_type *const types[] = {&domus_pg_notification_type, NULL};
    static const domus_pattern pattern = {.types = types};
    domus_outside_message message;

    domt_postgres_start(&server, NULL);
    domt_pg_user_start_with_threads(&user, server.url, &(domus_sql_options){.connections_max = 2},
                                    2);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    await_listening_sessions(2);
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "news"), 0);
    await_listening_sessions(0);
    domt_pg_run_script(&user, "NOTIFY news");
    ck_assert_int_eq(domus_outside_receive(user.outsider, &pattern, 300 * MS, &message),
                     -ETIMEDOUT);
    stop_server_and_user();
}

/* Notifications come with the longest payload, and many at once, even if the limit of a result is
 * small. */
DOMT_TEST(notifications_may_exceed_result_limit)
{
    char longest[7999], text[16];

    memset(longest, 'x', sizeof longest);
    start_server_with_options((domus_sql_options){.result_max = 1024});
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    for (int i = 0; i < 4; i++) {
        domt_pg_run_script(&user,
                           "DO $$ BEGIN PERFORM pg_notify('news', repeat('x', 7999)); END $$");
        const domus_pg_notification *told = receive_next_notification(&user);
        ck_assert(!told->is_gap);
        ck_assert(domus_slice_equals(told->payload, longest, sizeof longest));
    }
    domt_pg_run_script(&user, "DO $$ BEGIN PERFORM pg_notify('news', i::text) FROM "
                              "generate_series(1, 2000) i; END $$");
    for (int i = 1; i <= 2000; i++) {
        snprintf(text, sizeof text, "%d", i);
        expect_notification_with_text(&user, "news", text);
    }
    stop_server_and_user();
}

static void send_listen_without_waiting(const char *channel, uint64_t tag)
{
    domus_pg_channel named = {.at = user.sql.at};

    memcpy(named.name, channel, strlen(channel));
    ck_assert_int_eq(
        domus_outsider_ask_add(user.outsider, user.sql.at, &domus_pg_listen_type, &named, 0, tag),
        0);
}

/* A LISTEN that waits for its connection is not sent if its subscription ends before that: no
 * session listens. */
DOMT_TEST(unlisten_cancels_waiting_listen)
{
    start_server_with_user();
    domt_postgres_signal_and_wait(&server, SIGINT);
    send_listen_without_waiting("news", 0);
    send_listen_without_waiting("more", 1);
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "news"), 0);
    domt_pg_received answer = domt_pg_receive_answer(&user);
    ck_assert_uint_eq(answer.tag, 0);
    ck_assert_int_eq(answer.error, -ECANCELED);
    domt_postgres_start_again(&server);
    answer = domt_pg_receive_answer(&user);
    ck_assert_uint_eq(answer.tag, 1);
    ck_assert_int_eq(answer.error, 0);
    domt_pg_run_script(&user, "NOTIFY news, 'one'; NOTIFY more, 'two'");
    expect_notification_with_text(&user, "more", "two");
    ck_assert_int_eq(
        domt_pg_run_text_for_number(&user, user.sql,
                                    "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN "
                                    "\"news\"'"),
        0);
    stop_server_and_user();
}

/* A LISTEN that reaches its time-out does not end its subscription: another connection listens. */
DOMT_TEST(timed_out_listen_keeps_its_subscription)
{
    start_server_with_options((domus_sql_options){.timeout_ns = 300 * MS});
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    pid_t session = (pid_t)domt_pg_run_text_for_number(
        &user, user.sql, "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %'");
    kill(session, SIGSTOP);
    ck_assert_int_eq(subscribe_to_channel(&user, "more"), -ETIMEDOUT);
    uint64_t began = domt_pg_monotonic_ns();
    for (int i = 0; i < 2; i++)
        ck_assert(receive_next_notification(&user)->is_gap);
    /* both subscribers hear of the gap sooner than the 5 s that a cancel may take */
    ck_assert_uint_lt(domt_pg_monotonic_ns() - began, 4000 * MS);
    kill(session, SIGCONT);
    domt_pg_run_script(&user, "NOTIFY more, 'one'; NOTIFY news, 'two'");
    expect_notification_with_text(&user, "more", "one");
    expect_notification_with_text(&user, "news", "two");
    stop_server_and_user();
}

DOMT_TEST(names_of_channels_are_validated)
{
    domus_pg_channel unended;

    start_server_with_user();
    unended.at = user.sql.at;
    memset(unended.name, 'x', sizeof unended.name);
    ck_assert_int_eq(
        domt_pg_ask_and_wait(&user, user.sql.at, &domus_pg_listen_type, &unended, 0).error,
        -EINVAL);
    unended.name[63] = '\0'; /* this is the longest name that a channel may have */
    ck_assert_int_eq(subscribe_to_channel(&user, unended.name), 0);
    stop_server_and_user();
}

DOMT_TEST(number_of_subscriptions_is_limited)
{
    start_server_with_user();
    for (uint32_t i = 0; i < DOMUS_PG_SUBSCRIPTIONS_MAX; i++)
        ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), -ENOBUFS);
    ck_assert_int_eq(ask_about_channel(&user, &domus_pg_unlisten_type, "news"), 0);
    ck_assert_int_eq(subscribe_to_channel(&user, "news"), 0);
    stop_server_and_user();
}

DOMT_SUITE(120)
