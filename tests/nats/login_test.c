/* Logins of a client: by token, user, or key; and TLS. A client that nats-server accepts is
 * connected; another client gets an error, and waits before it tries again. */
#include "tests/nats/user.h"
#include "tests/support/process.h"
#include "tests/support/suite.h"

#include <domus/tls.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static domt_nats_server server;

/* Open a client with these options. Returns 0 when messages pass, or the error that the client's
 * events report. */
static int connect_client_and_return_error(const domus_nats_options *options)
{
    domus_nats_options filled = *options;
    domt_nats_user user;
    domus_outside_message message;
    int error = 0;

    filled.servers = server.url;
    domt_nats_user_start_system(&user, &(domus_nats_options){.servers = "127.0.0.1:1"});
    filled.events = domus_outsider_address(user.outsider);
    user.client = domt_nats_user_open_client(&user, &filled);
    for (;;) {
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, 10 * SECOND, &message), 0);
        if (message.type != &domus_nats_event_type)
            continue;
        const domus_nats_event *event = message.payload;
        if (event->happening == DOMUS_NATS_CONNECTED)
            break;
        if (event->happening == DOMUS_NATS_FAILED) {
            error = event->error;
            break;
        }
    }
    if (error == 0)
        domt_nats_user_ask_successfully(&user, &domus_nats_flush_type, NULL);
    else
        ck_assert_uint_eq(domt_nats_user_read_client_status(&user).connects, 0);
    if (error == -EACCES) /* after a refused login the client waits before it tries again */
        ck_assert_int_eq(domus_outside_receive(user.outsider, NULL, SECOND / 2, &message),
                         -ETIMEDOUT);
    domt_nats_user_stop_system(&user);
    return error;
}

DOMT_TEST(login_by_token_is_accepted)
{
    domt_nats_server_start(&server, "authorization { token: \"s3cr3t\" }", 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.token = "s3cr3t"}), 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.token = "wrong"}),
                     -EACCES);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.name = "nobody"}),
                     -EACCES);
    domt_nats_server_stop(&server);
}

DOMT_TEST(login_by_user_is_accepted)
{
    domt_nats_server_start(&server, "authorization { user: \"us\\\"er\", password: \"p\\\\w\" }",
                           0);
    ck_assert_int_eq(connect_client_and_return_error(
                         &(domus_nats_options){.user = "us\"er", .password = "p\\w"}),
                     0);
    ck_assert_int_eq(
        connect_client_and_return_error(&(domus_nats_options){.user = "us\"er", .password = "x"}),
        -EACCES);
    domt_nats_server_stop(&server);
}

#define SEED "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define KEY  "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"

DOMT_TEST(login_by_key_is_accepted)
{
    domt_nats_server_start(&server, "authorization { users: [ { nkey: " KEY " } ] }", 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.nkey_seed = SEED}), 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.token = "x"}), -EACCES);
    domt_nats_server_stop(&server);
    /* This server has no keys and sends no nonce, so the client has nothing to sign. */
    domt_nats_server_start(&server, NULL, 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.nkey_seed = SEED}),
                     -EACCES);
    domt_nats_server_stop(&server);
}

/* --- options ---------------------------------------------------------------------------------- */

static int opened_with;
static domus_nats_options tried;

static int mount_and_check_client_options(domus_stack *stack, void *self)
{
    domus_address client;

    opened_with = domus_nats_open(stack, &tried, &client);
    return 0;
}

/* The check of options finds the same errors as opening does, except those of channel settings, and
 * its words show no secret. */
static void check_options_as_opening_does(int error)
{
    char text[200] = "";

    if (tried.channel != NULL)
        return;
    ck_assert_int_eq(domus_nats_check(&tried, text, sizeof text), error);
    ck_assert_int_eq(domus_nats_check(&tried, NULL, 0), error);
    ck_assert_msg((text[0] != '\0') == (error != 0), "%s", text);
    ck_assert_msg(error == 0 || strchr(text, ':') != NULL, "%s", text);
}

DOMT_TEST(malformed_server_address_is_named_in_error)
{
    static const char *const wrong[] = {"a:x", "a:0",   "a:65536", "a:100001",
                                        "a:",  "::1:1", "unix:",   ":1"};
    char text[200], wanted[200], list[64];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(list, sizeof list, "b, %s,c", wrong[i]);
        snprintf(wanted, sizeof wanted, "servers: '%s': it has to be HOST, HOST:PORT or [v6]:PORT",
                 wrong[i]);
        ck_assert_int_eq(
            domus_nats_check(&(domus_nats_options){.servers = list}, text, sizeof text), -EINVAL);
        ck_assert_str_eq(text, wanted);
    }
    tried = (domus_nats_options){.servers = "unix:/a, nats://b, [::1]:65535, [::2]"};
    ck_assert_int_eq(domus_nats_check(&tried, text, sizeof text), 0);
    tried.servers = "a:1,,b:1";
    ck_assert_int_eq(domus_nats_check(&tried, text, sizeof text), -EINVAL);
    ck_assert_ptr_nonnull(strstr(text, "servers: one is empty"));
    tried.servers = "a, u:geheim@b";
    ck_assert_int_eq(domus_nats_check(&tried, text, sizeof text), -EINVAL);
    ck_assert_msg(strstr(text, "geheim") == NULL, "%s", text);
}

static char large[9000];
static const domus_behaviour trier = {
    .name = "trier", .kind = DOMUS_STATE, .on_mount = mount_and_check_client_options};
static const domus_pipeline_stage three[] = {{&domus_line_stage, NULL}, {NULL, NULL}};
static const domus_channel_options idle = {.idle_timeout_ns = 1};
static const struct {
    domus_nats_options options;
    int error;
} tries[] = {
    {{.servers = NULL}, -EINVAL},
    {{.servers = ""}, -EINVAL},
    {{.servers = "a:1,,b:1"}, -EINVAL},
    {{.servers = "user@a:1"}, -EINVAL},
    {{.servers = "a b"}, -EINVAL},
    {{.servers = "a:0"}, -EINVAL},
    {{.servers = "a:65536"}, -EINVAL},
    {{.servers = "a:1x"}, -EINVAL},
    {{.servers = "a:"}, -EINVAL},
    {{.servers = ":1"}, -EINVAL},
    {{.servers = "::1"}, -EINVAL},
    {{.servers = "[::1"}, -EINVAL},
    {{.servers = "[]:1"}, -EINVAL},
    {{.servers = "unix:/a"}, 0},
    {{.servers = "a:65535,[::1]:1,[::1],a"}, 0},
    {{.servers = "tls://a:1"}, -EINVAL},
    {{.servers = large}, -E2BIG},
    {{.servers = "a:1", .name = large}, -E2BIG},
    {{.servers = "a:1", .user = "u", .token = "t"}, -EINVAL},
    {{.servers = "a:1", .password = "p"}, -EINVAL},
    {{.servers = "a:1", .jwt = "j"}, -EINVAL},
    {{.servers = "a:1", .name = "\xff"}, -EINVAL},
    {{.servers = "a:1", .user = "u", .password = "\xc3("}, -EINVAL},
    {{.servers = "a:1", .token = "\xff"}, -EINVAL},
    {{.servers = "a:1", .token = "\xc3\xa4"}, 0},
    {{.servers = "a:1", .nkey_seed = "SU"}, -EBADMSG},
    {{.servers = "a:1", .token = large}, -E2BIG},
    {{.servers = "a:1", .nkey_seed = SEED, .jwt = large}, -E2BIG},
    {{.servers = "a:1", .front = three}, -EINVAL},
    {{.servers = "a:1", .tls_first = true}, -EINVAL},
    {{.servers = "a:1", .inflight_max = 65537}, -EINVAL},
    {{.servers = "a:1", .subscriptions_max = 1048577}, -EINVAL},
    {{.servers = "a:1", .payload_max = 1023}, -EINVAL},
    {{.servers = "a:1", .payload_max = DOMUS_NATS_PAYLOAD_LIMIT + 1}, -EINVAL},
    {{.servers = "a:1", .pings_missed_max = 17}, -EINVAL},
    {{.servers = "a:1", .buffer_max = 4095}, -EINVAL},
    {{.servers = "a:1", .buffer_max = (UINT64_C(1) << 30) + 1}, -EINVAL},
    {{.servers = "a:1", .request_timeout_ns = 1}, -EINVAL},
    {{.servers = "a:1", .connect_timeout_ns = 3601 * SECOND}, -EINVAL},
    {{.servers = "a:1", .drain_timeout_ns = 1}, -EINVAL},
    {{.servers = "a:1", .backoff_min_ns = 1}, -EINVAL},
    {{.servers = "a:1", .backoff_min_ns = SECOND, .backoff_max_ns = SECOND / 2}, -EINVAL},
    {{.servers = "a:1", .ping_interval_ns = 1}, -EINVAL},
    {{.servers = "a:1", .channel = &idle}, -EINVAL},
    {{.servers = "a:1", .user = "", .backoff_min_ns = 20 * SECOND}, 0},
};

DOMT_TEST(wrong_client_options_are_refused)
{
    char many[33 * 8] = "h:99";
    domt_nats_user user;

    memset(large, 'x', sizeof large - 1);
    domt_nats_user_start_system(&user, &(domus_nats_options){.servers = "127.0.0.1:1"});
    for (size_t i = 0; i <= sizeof tries / sizeof tries[0]; i++) {
        domus_address address;
        int error = -E2BIG;
        if (i < sizeof tries / sizeof tries[0]) {
            tried = tries[i].options;
            error = tries[i].error;
        } else {
            for (int server_number = 1; server_number <= 32; server_number++)
                snprintf(many + strlen(many), sizeof many - strlen(many), ",h:%d", server_number);
            tried = (domus_nats_options){.servers = many};
        }
        opened_with = 1;
        ck_assert_int_eq(domus_outside_spawn(user.system, &trier, NULL, &address), 0);
        (void)domus_outsider_ask(user.outsider, address, &domus_nats_done_type, NULL, SECOND, NULL);
        ck_assert_msg(opened_with == error, "%zu: %d", i, opened_with);
        check_options_as_opening_does(error);
    }
    domt_nats_user_stop_system(&user);
}

/* --- TLS -------------------------------------------------------------------------------------- */

/* Make a certificate for 127.0.0.1, which is its own authority, in a directory. */
static void make_certificate_in_directory(const char *directory, const char *name)
{
    char command[600];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=%s -addext subjectAltName=IP:127.0.0.1 -keyout %s/%s.key -out %s/%s.pem "
             "2>/dev/null",
             name, directory, name, directory, name);
    ck_assert_int_eq(system(command), 0);
}

static domus_tls *make_tls_context(const char *directory, const char *name)
{
    char file[100], error[200];
    const domus_tls_settings settings = {.role = DOMUS_ROLE_CLIENT, .ca_file = file};
    domus_tls *tls;

    snprintf(file, sizeof file, "%s/%s.pem", directory, name);
    ck_assert_msg(domus_tls_new(&settings, error, sizeof error, &tls) == 0, "%s", error);
    return tls;
}

DOMT_TEST(tls_begins_after_info)
{
    char directory[] = "/tmp/domus-nats-tls-XXXXXX", config[400], command[100];
    ck_assert_ptr_nonnull(mkdtemp(directory));
    make_certificate_in_directory(directory, "right");
    make_certificate_in_directory(directory, "other");
    domus_tls_options right = {.tls = make_tls_context(directory, "right")};
    domus_tls_options other = {.tls = make_tls_context(directory, "other")};
    const domus_pipeline_stage front[] = {{&domus_tls_stage, &right}, {NULL, NULL}};
    const domus_pipeline_stage wrong[] = {{&domus_tls_stage, &other}, {NULL, NULL}};

    snprintf(config, sizeof config,
             "tls { cert_file: \"%s/right.pem\", key_file: \"%s/right.key\", timeout: 5 }\n"
             "authorization { token: t }",
             directory, directory);
    domt_nats_server_start(&server, config, 0);
    ck_assert_int_eq(
        connect_client_and_return_error(&(domus_nats_options){.front = front, .token = "t"}), 0);
    ck_assert_int_eq(
        connect_client_and_return_error(&(domus_nats_options){.front = front, .token = "x"}),
        -EACCES);
    ck_assert_int_eq(
        connect_client_and_return_error(&(domus_nats_options){.front = wrong, .token = "t"}),
        -EACCES);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.token = "t"}),
                     -EPROTONOSUPPORT);
    domt_nats_server_stop(&server);
    /* This server offers no TLS, as if an attacker had removed the offer, so the client refuses
     * it. */
    domt_nats_server_start(&server, NULL, 0);
    ck_assert_int_eq(connect_client_and_return_error(&(domus_nats_options){.front = front}),
                     -EACCES);
    domt_nats_server_stop(&server);
    domus_tls_free(right.tls);
    domus_tls_free(other.tls);
    snprintf(command, sizeof command, "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

/* --- TLS first -------------------------------------------------------------------------------- */

/* openssl's server, which forwards bytes between TLS and a plain connection. */
typedef struct tls_server {
    FILE *in;
    FILE *out;
    pid_t pid;
} tls_server;

static void start_openssl_tls_server(tls_server *tls, const char *directory, unsigned port)
{
    int to[2], from[2];
    char accept[40], cert[100], key[100];

    snprintf(accept, sizeof accept, "127.0.0.1:%u", port);
    snprintf(cert, sizeof cert, "%s/right.pem", directory);
    snprintf(key, sizeof key, "%s/right.key", directory);
    ck_assert(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
    tls->pid = fork();
    ck_assert_int_ge(tls->pid, 0);
    if (tls->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (dup2(to[0], 0) < 0 || dup2(from[1], 1) < 0)
            _exit(1);
        execlp("openssl", "openssl", "s_server", "-quiet", "-accept", accept, "-cert", cert, "-key",
               key, (char *)NULL);
        _exit(1);
    }
    close(to[0]);
    close(from[1]);
    tls->in = fdopen(to[1], "w");
    tls->out = fdopen(from[0], "r");
    setvbuf(tls->in, NULL, _IONBF, 0);
}

static void stop_openssl_tls_server(tls_server *tls)
{
    kill(tls->pid, SIGKILL);
    waitpid(tls->pid, NULL, 0);
    fclose(tls->in);
    fclose(tls->out);
}

/* A server with handshake_first: the whole of NATS, from the first byte, is within TLS. */
DOMT_TEST(tls_may_begin_before_info)
{
    char directory[] = "/tmp/domus-nats-tls-XXXXXX", line[1000], command[100], url[40];
    unsigned port = domt_find_free_port();
    tls_server tls;
    domt_nats_user user;

    ck_assert_ptr_nonnull(mkdtemp(directory));
    make_certificate_in_directory(directory, "right");
    domus_tls_options right = {.tls = make_tls_context(directory, "right")};
    const domus_pipeline_stage front[] = {{&domus_tls_stage, &right}, {NULL, NULL}};
    start_openssl_tls_server(&tls, directory, port);
    snprintf(url, sizeof url, "tls://127.0.0.1:%u", port);
    domt_nats_user_start_system(&user, &(domus_nats_options){.servers = url,
                                                             .front = front,
                                                             .tls_first = true,
                                                             .backoff_max_ns = SECOND / 5});
    fprintf(tls.in, "INFO {\"tls_required\":true}\r\n");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, tls.out));
    ck_assert_int_eq(strncmp(line, "CONNECT {", 9), 0);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, tls.out));
    ck_assert_str_eq(line, "PING\r\n");
    fprintf(tls.in, "PONG\r\n");
    domt_nats_user_await_connection(&user);
    domt_nats_user_stop_system(&user);
    stop_openssl_tls_server(&tls);
    domus_tls_free(right.tls);
    snprintf(command, sizeof command, "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0);
}

DOMT_SUITE(60)
