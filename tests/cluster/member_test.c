/* The section `cluster` of the configuration: a program of domus_main() is a node of a cluster,
 * either alone on this machine or over a real server with TLS and users; and errors in the section
 * are reported before anything is started. */
#include <domus/cluster.h>
#include <domus/main.h>
#include <domus/tls.h>

#include "tests/nats/user.h"
#include "tests/runtime/program.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static domus_cluster *cluster;
static domt_program own, other;
static char directory[] = "/tmp/domus-member-XXXXXX";

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void print_line(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

/* --- one node --------------------------------------------------------------------------------- */

static domus_node_info info_of_own_node(void)
{
    domus_node_info info = {.name = ""};

    ck_assert_uint_ge(domus_cluster_nodes(cluster, &info, 1), 1);
    return info;
}

static int print_own_info_at_start(domus_system *system, void *argument)
{
    printf("start %s %d\n", info_of_own_node().name, (int)info_of_own_node().state);
    print_line(cluster == domus_cluster_here(cluster).cluster ? "is the cluster" : "");
    domus_main_quit(0);
    return 0;
}

static void print_stop_if_node_is_here(domus_system *system, void *argument)
{
    print_line(info_of_own_node().is_here ? "stop" : "");
}

static void print_at_end(domus_system *system, void *argument)
{
    print_line(domus_cluster_count(cluster).sent == 0 ? "end" : "");
}

static const domus_cluster_options part = {.node = "not this", .heartbeat_ns = 1};
static const domus_cluster_member member = {&domus_cluster_front, &part, &cluster};
static const domus_program alone = {.name = "the.alone",
                                    .start = print_own_info_at_start,
                                    .stop = print_stop_if_node_is_here,
                                    .end = print_at_end,
                                    .cluster = &member};

static int return_error_at_start(domus_system *system, void *argument)
{
    print_line(cluster != NULL ? "there" : "");
    return -EILSEQ;
}

static const domus_program failing = {
    .name = "failing", .start = return_error_at_start, .cluster = &member};

DOMT_TEST(program_without_servers_is_a_cluster_of_one)
{
    const char *arguments[] = {"--set", "cluster.node=n.1", "--set", "profile.atExit=true", NULL};

    ck_assert_int_eq(domt_program_run(&own, &alone, arguments), 0);
    ck_assert_str_eq(own.out_text, "start n.1 1\nis the cluster\nstop\nend\n");
    domt_must_contain(own.err_text, "\n-- cluster: Nodes\n");
    domt_must_contain(own.err_text, "\nn.1                                 up       this node ");
    ck_assert_int_eq(domt_program_run(&own, &alone, domt_no_arguments), 0);
    domt_must_contain(own.out_text, "\nis the cluster\nstop\nend\n");
    ck_assert_ptr_null(strstr(own.out_text, "not this"));
    ck_assert_int_eq(domt_program_run(&own, &failing, domt_no_arguments), 1);
    ck_assert_str_eq(own.out_text, "there\n");
}

/* --- errors ----------------------------------------------------------------------------------- */

static int print_start_that_must_not_be(domus_system *system, void *argument)
{
    print_line("started");
    domus_main_quit(0);
    return 0;
}

static const domus_program without = {.name = "without", .start = print_start_that_must_not_be};
static const domus_program clear = {
    .name = "clear", .start = print_start_that_must_not_be, .cluster = &member};
static const domus_program secure = {.name = "secure",
                                     .start = print_start_that_must_not_be,
                                     .front = &domus_tls_front,
                                     .cluster = &member};

/* Errors in the options that the program itself passes to the joiner. */
static const domus_cluster_export exports[] = {{.name = ""}, {.name = NULL}};
static const domus_cluster_options odd_part = {.exports = exports};
static const domus_cluster_member odd_member = {&domus_cluster_front, &odd_part, NULL};
static const domus_program odd = {
    .name = "odd", .start = print_start_that_must_not_be, .cluster = &odd_member};

static void write_file_in_directory(const char *name, const char *text, size_t size)
{
    char path[100];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void make_temporary_directory(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void remove_temporary_directory(void)
{
    char command[100];

    snprintf(command, sizeof command, "rm -r %s", directory);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
}

/* Check that the program does not start with these settings, in which "~" is the test's directory,
 * and reports this text. */
static void expect_program_refuses_settings(const domus_program *program, const char *settings,
                                            const char *wanted)
{
    char text[512], file[100], line[600];
    const char *arguments[] = {"--config", file, NULL};
    size_t used = 0;

    for (const char *at = settings; *at != '\0'; at++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", *at == '~' ? 64 : 1,
                                 *at == '~' ? directory : at);
    write_file_in_directory("own.yaml", text, used);
    snprintf(file, sizeof file, "%s/own.yaml", directory);
    ck_assert_msg(domt_program_run(&own, program, arguments) == 2, "%s: %s", settings,
                  own.err_text);
    ck_assert_str_eq(own.out_text, "");
    used = (size_t)snprintf(line, sizeof line, "%s: ", program->name);
    for (const char *at = wanted; *at != '\0'; at++)
        used += (size_t)snprintf(line + used, sizeof line - used, "%.*s", *at == '~' ? 64 : 1,
                                 *at == '~' ? directory : at);
    snprintf(line + used, sizeof line - used, "\n");
    ck_assert_str_eq(own.err_text, line);
}

DOMT_TEST(section_that_is_wrong_is_told_before_the_start)
{
    static const struct {
        const domus_program *program;
        const char *settings, *wanted;
    } wrong[] = {
        {&without, "cluster: {servers: [a]}", "cluster.servers: this program is in no cluster"},
        {&without, "cluster: {tls: {enabled: true}}",
         "cluster.tls.enabled: this program is in no cluster"},
        {&odd, "cluster: {}", "cluster.exports: a name is not 1..63 printable bytes without space"},
        {&clear, "cluster: {servers: [a, 'b:x']}",
         "cluster.servers: 'b:x': it has to be HOST, HOST:PORT or [v6]:PORT"},
        {&clear, "cluster: {servers: 'a, ::1:4222'}",
         "cluster.servers: '::1:4222': it has to be HOST, HOST:PORT or [v6]:PORT"},
        {&clear, "cluster: {servers: ['tls://a']}",
         "cluster.servers: 'tls://a': it needs TLS, and there is none"},
        {&clear, "cluster: {servers: ['nats://u:geheim@a']}",
         "cluster.servers: one is empty, or has a user with '@', whose place is not here"},
        {&clear, "cluster: {node: 'a b'}", "cluster.node: 1..63 letters, digits, '-', '_' and '.'"},
        {&clear, "cluster: {tls: {enabled: true}}", "cluster.tls.enabled: this program has no TLS"},
        {&secure, "cluster: {tls: {minVersion: 1.3}}",
         "cluster.tls.minVersion: needs tls.enabled: true"},
        {&secure, "cluster: {tls: {enabled: true, caFile: '~/none'}}",
         "cluster.tls.caFile: ~/none: No such file or directory"},
        {&secure, "cluster: {tls: {enabled: true, keyFile: '~/none'}}",
         "cluster.tls.keyFile: needs certFile"},
        {&secure, "cluster: {tls: {enabled: true, serverName: .a}}",
         "cluster.tls.serverName: not the name of a server"},
        {&clear, "cluster: {servers: a, password: geheim}",
         "cluster.user: there is a password, and no user"},
        {&clear, "cluster: {user: u, password: p, passwordFile: '~/token'}",
         "cluster.passwordFile: the secret stands in the configuration, too"},
        {&clear, "cluster: {user: u, tokenFile: '~/token'}", "cluster.token: there is a user, too"},
        {&clear, "cluster: {tokenFile: '~/none'}",
         "cluster.tokenFile: ~/none: No such file or directory"},
        {&clear, "cluster: {tokenFile: '~/empty'}", "cluster.tokenFile: ~/empty: it is empty"},
        {&clear, "cluster: {tokenFile: '~/large'}", "cluster.tokenFile: ~/large: it is too long"},
        {&clear, "cluster: {tokenFile: '~/lines'}",
         "cluster.tokenFile: ~/lines: it has more than one line, or bytes that are no text"},
        {&clear, "cluster: {servers: a, nkeySeedFile: '~/token'}",
         "cluster.nkeySeedFile: it is not the seed of a user"},
        {&clear, "cluster: {jwtFile: '~/token'}",
         "cluster.nkeySeedFile: there is a JWT, and no seed"},
    };
    char large[300];

    make_temporary_directory();
    memset(large, 'x', sizeof large);
    write_file_in_directory("token", "geheim \r\n", 9);
    write_file_in_directory("empty", "\n", 1);
    write_file_in_directory("large", large, sizeof large);
    write_file_in_directory("lines", "a\nb\n", 4);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_program_refuses_settings(wrong[i].program, wrong[i].settings, wrong[i].wanted);
    remove_temporary_directory();
}

/* --- two nodes -------------------------------------------------------------------------------- */

/* Returns the state of a node as this program's node sees it; -1: the node is not known. */
static int state_of_node(const char *name)
{
    domus_node_info infos[4];
    uint32_t count = domus_cluster_nodes(cluster, infos, 4);

    for (uint32_t i = 0; i < count && i < 4; i++)
        if (strcmp(infos[i].name, name) == 0)
            return (int)infos[i].state;
    return -1;
}

static bool is_node_up(const char *name)
{
    return state_of_node(name) == (int)DOMUS_NODE_UP;
}

/* A node that has ended is forgotten after some time, and a node that is silent is not. */
static bool has_node_ended(const char *name)
{
    return state_of_node(name) == -1 || state_of_node(name) == (int)DOMUS_NODE_ENDED;
}

static void await_state_of_node(const char *name, bool (*is)(const char *name), const char *text)
{
    for (int i = 0; i < 4000 && !is(name); i++)
        sleep_ms(5);
    print_line(is(name) ? text : "in vain");
}

static int await_up_and_end_of_b(domus_system *system, void *argument)
{
    await_state_of_node("b", is_node_up, "met");
    await_state_of_node("b", has_node_ended, "has ended");
    domus_main_quit(0);
    return 0;
}

static int await_up_of_a(domus_system *system, void *argument)
{
    await_state_of_node("a", is_node_up, "met");
    return 0;
}

static const domus_program node_a = {
    .name = "two", .start = await_up_and_end_of_b, .front = &domus_tls_front, .cluster = &member};
static const domus_program node_b = {
    .name = "two", .start = await_up_of_a, .front = &domus_tls_front, .cluster = &member};

static void make_certificate_in_directory(void)
{
    char command[400];

    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
             "-subj /CN=right -addext subjectAltName=DNS:nats.example -keyout %s/key -out %s/cert "
             "2>/dev/null",
             directory, directory);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
}

/* The seed of a user of nats-server (the secret half of a key), and the user's public key. */
#define SEED "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define KEY  "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"

DOMT_TEST(two_programs_meet_over_a_server_with_tls_and_users)
{
    char config[500], text[500], file[100], password[100], seed[100];
    const char *of_a[] = {"--config",       file,     "--set",
                          "cluster.node=a", "--set",  "cluster.user=u",
                          "--set",          password, NULL};
    const char *of_b[] = {"--config", file, "--set", "cluster.node=b", "--set", seed, NULL};
    domt_nats_server server;

    make_temporary_directory();
    make_certificate_in_directory();
    write_file_in_directory("password", "geheim\n", 7);
    write_file_in_directory("seed", SEED "\n", strlen(SEED) + 1);
    snprintf(password, sizeof password, "cluster.passwordFile=%s/password", directory);
    snprintf(seed, sizeof seed, "cluster.nkeySeedFile=%s/seed", directory);
    snprintf(config, sizeof config,
             "tls { cert_file: \"%s/cert\", key_file: \"%s/key\", timeout: 5 }\n"
             "authorization { users: [ {user: u, password: geheim}, {nkey: " KEY "} ] }",
             directory, directory);
    domt_nats_server_start(&server, config, 0);
    snprintf(text, sizeof text,
             "cluster:\n  servers: ['tls://%s']\n  heartbeat: 50ms\n"
             "  tls: {enabled: true, caFile: %s/cert, serverName: nats.example}\n",
             server.url, directory);
    write_file_in_directory("own.yaml", text, strlen(text));
    snprintf(file, sizeof file, "%s/own.yaml", directory);
    domt_program_start(&own, &node_a, of_a, NULL);
    domt_program_start(&other, &node_b, of_b, NULL);
    domt_program_read_stdout_until(&other, "met\n");
    domt_program_read_stdout_until(&own, "met\n");
    domt_program_read_stderr_until(&other, "SIGTERM ends it", 1);
    snprintf(text + strlen(text), sizeof text - strlen(text), "  asksMax: 7\n");
    write_file_in_directory("own.yaml", text, strlen(text));
    ck_assert_int_eq(kill(other.pid, SIGHUP), 0);
    domt_program_read_stderr_until(&other, "SIGHUP: the files of the cluster were read again", 1);
    domt_program_read_stderr_until(
        &other, "these keys count at a start: cluster.asksMax: nothing is changed\n", 1);
    ck_assert_int_eq(kill(other.pid, SIGTERM), 0);
    ck_assert_int_eq(domt_program_read_to_end(&other), 0);
    ck_assert_int_eq(domt_program_read_to_end(&own), 0);
    ck_assert_str_eq(own.out_text, "met\nhas ended\n");
    ck_assert_msg(strstr(other.err_text, "geheim") == NULL, "%s", other.err_text);
    domt_nats_server_stop(&server);
    remove_temporary_directory();
}

DOMT_SUITE(60)
