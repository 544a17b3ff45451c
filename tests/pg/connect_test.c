/* protocols/pg: connections by their urls, over TLS, and to a server that answers late; and how
 * these tests start and stop their servers. */
#include "tests/pg/user.h"
#include "tests/support/postgres.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Urls of databases: every url that libpq accepts is accepted, and the error
 * of a wrong url contains no password. */

static const struct {
    const char *url;
    int result;
} rows[] = {
    {"postgresql://", 0},
    {"postgres://user@host:5433/db?sslmode=require", 0},
    {"postgresql://a:secret@one:1,two:2/db?target_session_attrs=any", 0},
    {"postgresql:///db?host=/run/postgresql", 0},
    {"postgresql:db", -EINVAL},
    {"postgresql://a:secret@host/db?wrong=1", -EINVAL},
    {"postgresql://a:secret@host/db?password=secret&=", -EINVAL},
    {"postgresql://a:secret@[::1/db", -EINVAL},
    {"postgresql://a:sec%zzret@host/db", -EINVAL},
    {"postgresql://a:secret@host:x@y/db?secret", -EINVAL},
};

DOMT_TEST(urls_are_validated_without_showing_password)
{
    static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
    static const domus_sql_options options = {.drivers = drivers};
    char error[200];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memset(error, 0, sizeof error);
        int result = domus_sql_check(rows[i].url, &options, error, sizeof error);
        ck_assert_msg(result == rows[i].result, "%s: %d", rows[i].url, result);
        ck_assert_msg((error[0] != '\0') == (result != 0), "%s: %s", rows[i].url, error);
        ck_assert_msg(strstr(error, "sec") == NULL, "%s", error);
    }
}

/* --- tls -------------------------------------------------------------------------------------- */

/* TLS by libpq: the url chooses it, and a server with another name or a certificate of another
 * authority is refused. */

#define MS UINT64_C(1000000)

static domt_postgres server;

/* Run a shell command in the directory of the test's server. */
static void run_shell_in_server_directory(const char *command)
{
    char line[1024];

    snprintf(line, sizeof line, "cd %s && %s >/dev/null 2>&1", server.directory, command);
    ck_assert_msg(system(line) == 0, "%s", line); /* NOLINT: the text is the test's own */
}

static void make_server_own_file(const char *name)
{
    const struct passwd *user = getuid() == 0 ? getpwnam("postgres") : NULL;
    char path[128];

    snprintf(path, sizeof path, "%s/%s", server.directory, name);
    if (user != NULL)
        ck_assert_int_eq(chown(path, user->pw_uid, user->pw_gid), 0);
}

/* Give the server a certificate for "localhost", and put a certificate that is not the server's
 * beside it. */
static void start_server_with_certificates(void)
{
    char text[256];
    domt_pg_user user;

    domt_postgres_start(&server, NULL);
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "umask 077; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                 "-nodes -days 2 -subj /CN=localhost -keyout key%d.pem -out cert%d.pem",
                 i, i);
        run_shell_in_server_directory(text);
    }
    run_shell_in_server_directory("chmod 0644 cert0.pem cert1.pem");
    make_server_own_file("key0.pem");
    make_server_own_file("cert0.pem");
    domt_pg_user_start_system(&user, server.unix_url, NULL);
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
        if (domt_pg_run_text_for_number(&user, user.sql,
                                        "SELECT (current_setting('ssl') = 'on')::int") == 1)
            break;
        nanosleep(&(struct timespec){.tv_nsec = (long)(5 * MS)}, NULL);
    }
    domt_pg_user_stop_system(&user);
}

static const struct {
    const char *host;
    /* parameters of the database's url; "%s" is the directory of the certificates */
    const char *parameters;
    bool has_tls;
    const char *words; /* words in the error of the connection; NULL: it succeeds */
} rows_tls[] = {
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

static void check_tls_of_url(size_t i)
{
    static const domus_sql_options options = {.wait_ns = 3000 * MS, .connections_max = 1};
    char parameters[256], url[512];
    domt_pg_user user;

    snprintf(parameters, sizeof parameters, rows_tls[i].parameters, server.directory); /* NOLINT */
    snprintf(url, sizeof url, "postgresql://postgres@%s:%u/postgres?hostaddr=127.0.0.1&%s",
             rows_tls[i].host, server.port, parameters);
    domt_pg_user_start_system(&user, url, &options);
    domt_pg_answer answer = domt_pg_run_text(
        &user, user.sql, "SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
    if (rows_tls[i].words != NULL) {
        ck_assert_msg(answer.error == -ENOTCONN, "row %zu: %d", i, answer.error);
        ck_assert_msg(strstr(answer.as.failure.message, rows_tls[i].words) != NULL, "row %zu: %s",
                      i, answer.as.failure.message);
    } else {
        int64_t has_tls = -1;
        ck_assert_msg(answer.error == 0, "row %zu: %d %s", i, answer.error,
                      answer.type == &domus_sql_error_type ? answer.as.failure.message : "");
        ck_assert_int_eq(domus_sql_get_int(&answer.as.result, 0, 0, &has_tls), 0);
        ck_assert_msg(has_tls == rows_tls[i].has_tls, "row %zu", i);
        domt_pg_free_answer(&answer);
        ck_assert_int_eq(domt_pg_run_statement(&user, user.sql, &sleeps, NULL, 0).error,
                         -ETIMEDOUT);
        ck_assert_int_eq(domt_pg_run_text_for_number(&user, user.sql, "SELECT 7"), 7);
        /* The cancels of the queries worked over TLS, so no connection was given up. */
        ck_assert_uint_eq(domt_pg_read_database_status(&user).failures, 0);
    }
    domt_pg_user_stop_system(&user);
}

DOMT_TEST(tls_is_used_as_the_url_says)
{
    start_server_with_certificates();
    for (size_t i = 0; i < sizeof rows_tls / sizeof rows_tls[0]; i++)
        check_tls_of_url(i);
    domt_postgres_stop(&server);
}

/* --- far -------------------------------------------------------------------------------------- */

/* A server behind a proxy that delays each new connection: cancels, each of which needs a
 * connection, are sent one after the other, and no connection is given up as long as its cancel
 * comes in the end. */

#define SLEEPERS 3
#define WAIT_MS                                                                                    \
    1800 /* delay of a connection in ms; three delays are longer than the time-out of a cancel */
#define LINES_MAX 32

static domt_pg_user user;

static int listener;
static atomic_uint wait_ms; /* delay in ms that the proxy now gives to each new connection */
static pthread_t lines[LINES_MAX];

static struct sockaddr_in make_loopback_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void sleep_for_ms(uint32_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000 * MS)}, NULL);
}

/* Forward the bytes that have come at one end of a connection to the other. Returns whether more
 * bytes may come. */
static bool forward_bytes_of_connection(int from, int to)
{
    char bytes[4096];
    ssize_t size = recv(from, bytes, sizeof bytes, 0);

    return size > 0 && send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

static void *delay_and_forward_connection(void *argument)
{
    int near = (int)(intptr_t)argument;
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = make_loopback_address(server.port);

    sleep_for_ms(atomic_load(&wait_ms));
    bool is_there = connect(far, (struct sockaddr *)&address, sizeof address) == 0;
    while (is_there) {
        struct pollfd ends[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
        (void)poll(ends, 2, -1);
        is_there = (ends[0].revents == 0 || forward_bytes_of_connection(near, far)) &&
                   (ends[1].revents == 0 || forward_bytes_of_connection(far, near));
    }
    close(near);
    close(far);
    return NULL;
}

/* Accept connections to the proxy until its listener is shut down, and join their threads. */
static void *run_delaying_proxy(void *argument)
{
    int count = 0, fd;

    while (count < LINES_MAX && (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        ck_assert_int_eq(pthread_create(&lines[count++], NULL, delay_and_forward_connection,
                                        (void *)(intptr_t)fd),
                         0);
    for (int i = 0; i < count; i++)
        pthread_join(lines[i], NULL);
    return NULL;
}

static uint16_t listen_as_proxy(void)
{
    struct sockaddr_in address = make_loopback_address(0);
    socklen_t size = sizeof address;

    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    return ntohs(address.sin_port);
}

DOMT_TEST(slow_cancels_end_no_connection)
{
    static const domus_sql_statement nap = {.text = "SELECT pg_sleep(0.5)"};
    static const domus_sql_statement sleeping = {.text = "SELECT pg_sleep(60)",
                                                 .timeout_ns = 300 * MS};
    domt_pg_received answers[SLEEPERS];
    pthread_t proxy;
    char url[128];

    domt_postgres_start(&server, NULL);
    snprintf(url, sizeof url, "postgresql://postgres@127.0.0.1:%u/postgres?sslmode=disable",
             listen_as_proxy());
    ck_assert_int_eq(pthread_create(&proxy, NULL, run_delaying_proxy, NULL), 0);
    domt_pg_user_start_system(&user, url, &(domus_sql_options){.connections_max = SLEEPERS});
    while (domt_pg_read_database_status(&user).connections != SLEEPERS) {
        for (uint64_t tag = 0; tag < SLEEPERS; tag++)
            domt_pg_send_query(&user, user.sql, &nap, NULL, 0, tag);
        domt_pg_receive_answers(&user, answers, SLEEPERS);
    }
    atomic_store(&wait_ms, WAIT_MS);
    for (uint64_t tag = 0; tag < SLEEPERS; tag++)
        domt_pg_send_query(&user, user.sql, &sleeping, NULL, 0, tag);
    domt_pg_receive_answers(&user, answers, SLEEPERS);
    for (uint32_t i = 0; i < SLEEPERS; i++)
        ck_assert_int_eq(answers[i].error, -ETIMEDOUT);
    domt_pg_await_idle_connections(&user);
    domus_sql_status status = domt_pg_read_database_status(&user);
    ck_assert_uint_eq(status.failures, 0);
    ck_assert_uint_eq(status.connects, SLEEPERS);
    domt_pg_user_stop_system(&user);
    (void)shutdown(listener, SHUT_RDWR);
    pthread_join(proxy, NULL);
    close(listener);
    domt_postgres_stop(&server);
}

/* --- cluster ---------------------------------------------------------------------------------- */

/* The servers of PostgreSQL that these tests start: if a test is killed, neither its server nor its
 * files are left. */

static bool does_port_accept_connections(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return is_there;
}

/* Start a server, report its directory and port, and wait to be killed. */
static void start_server_and_wait_for_kill(int told)
{
    domt_postgres cluster;

    domt_postgres_start(&cluster, NULL);
    if (write(told, &cluster, sizeof cluster) == sizeof cluster)
        pause();
    _exit(1);
}

DOMT_TEST(killed_test_leaves_no_server_or_files)
{
    domt_postgres cluster;
    int ends[2], status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        start_server_and_wait_for_kill(ends[1]);
    ck_assert_int_eq(read(ends[0], &cluster, sizeof cluster), sizeof cluster);
    ck_assert(access(cluster.directory, F_OK) == 0 && does_port_accept_connections(cluster.port));
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 4000 && access(cluster.directory, F_OK) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_int_ne(access(cluster.directory, F_OK), 0);
    for (int i = 0; i < 4000 && does_port_accept_connections(cluster.port); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert(!does_port_accept_connections(cluster.port));
}

DOMT_SUITE(120)
