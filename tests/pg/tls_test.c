/* TLS by libpq: the url chooses it, and a server with another name or another certificate is
 * refused. */
#include "tests/pg/user.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static domt_postgres server;

/* Run a shell command in the directory of the server. */
static void run_in_directory(const char *command)
{
    char line[1024];

    snprintf(line, sizeof line, "cd %s && %s >/dev/null 2>&1", server.directory, command);
    ck_assert_msg(system(line) == 0, "%s", line); /* NOLINT: the text is the test's own */
}

static void give_to_server(const char *name)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", server.directory, name);
    if (user != NULL)
        ck_assert_int_eq(chown(path, user->pw_uid, user->pw_gid), 0);
}

/* Give the server a certificate for "localhost", and put another certificate beside it. */
static void set_up(void)
{
    char text[256];
    domt_pg_user user;

    domt_postgres_start(&server, NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                 "-nodes -days 2 -subj /CN=localhost -keyout key%d.pem -out cert%d.pem",
                 i, i);
        run_in_directory(text);
    }
    run_in_directory("chmod 0644 cert0.pem cert1.pem");
    give_to_server("key0.pem");
    give_to_server("cert0.pem");
    domt_pg_user_start(&user, server.unix_url, NULL);
    const char *const settings[][2] = {{"ssl_cert_file", "cert0.pem"},
                                       {"ssl_key_file", "key0.pem"}};
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "ALTER SYSTEM SET %s = '%s/%s'", settings[i][0],
                 server.directory, settings[i][1]);
        domt_pg_run_script(&user, text);
    }
    domt_pg_run_script(&user, "ALTER SYSTEM SET ssl = on");
    domt_pg_run_script(&user, "SELECT pg_reload_conf()");
    for (int i = 0; i < 4000; i++) {
        if (domt_pg_query_number(&user, user.sql, "SELECT (current_setting('ssl') = 'on')::int") ==
            1)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    }
    domt_pg_user_stop(&user);
}

static const struct {
    const char *host;
    const char *parameters; /* parameters of the url; "%s" is the directory of the certificates */
    bool has_tls;
    const char *words; /* words of the error; NULL: no error */
} rows[] = {
    {"localhost", "sslmode=disable", false, NULL},
    {"localhost", "sslmode=require", true, NULL},
    {"localhost", "sslmode=verify-full&sslrootcert=%s/cert0.pem", true, NULL},
    {"other.example", "sslmode=require", true, NULL},
    {"other.example", "sslmode=verify-ca&sslrootcert=%s/cert0.pem", true, NULL},
    {"other.example", "sslmode=verify-full&sslrootcert=%s/cert0.pem", false, "does not match"},
    {"localhost", "sslmode=verify-full&sslrootcert=%s/cert1.pem", false, "verify failed"},
    {"localhost", "sslmode=verify-full&sslrootcert=%s/none.pem", false, "does not exist"},
};

static const domus_sql_statement sleeps = {.text = "SELECT pg_sleep(60)", .timeout_ns = 200 * MS};

static void check_row(size_t i)
{
    static const domus_sql_options options = {.wait_ns = 3000 * MS, .connections_max = 1};
    char parameters[256], url[512];
    domt_pg_user user;

    snprintf(parameters, sizeof parameters, rows[i].parameters, server.directory); /* NOLINT */
    snprintf(url, sizeof url, "postgresql://postgres@%s:%u/postgres?hostaddr=127.0.0.1&%s",
             rows[i].host, server.port, parameters);
    domt_pg_user_start(&user, url, &options);
    domt_pg_answer answer = domt_pg_text(
        &user, user.sql, "SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    if (rows[i].words != NULL) {
        ck_assert_msg(answer.error == -ENOTCONN, "row %zu: %d", i, answer.error);
        ck_assert_msg(strstr(answer.as.failure.message, rows[i].words) != NULL, "row %zu: %s", i,
                      answer.as.failure.message);
    } else {
        int64_t has_tls = -1;
        ck_assert_msg(answer.error == 0, "row %zu: %d %s", i, answer.error,
                      answer.type == &domus_sql_error_type ? answer.as.failure.message : "");
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &has_tls), 0);
        ck_assert_msg(has_tls == rows[i].has_tls, "row %zu", i);
        domt_pg_free(&answer);
        ck_assert_int_eq(domt_pg_query(&user, user.sql, &sleeps, NULL, 0).error, -ETIMEDOUT);
        ck_assert_int_eq(domt_pg_query_number(&user, user.sql, "SELECT 7"), 7);
        ck_assert_uint_eq(domt_pg_read_status(&user).failures, 0); /* cancels also work over TLS */
    }
    domt_pg_user_stop(&user);
}

DOMT_TEST(tls_is_as_the_url_asks)
{
    set_up();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row(i);
    domt_postgres_stop(&server);
}

DOMT_SUITE(120)
