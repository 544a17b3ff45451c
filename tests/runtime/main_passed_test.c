/* config/main_inherited.c and config/main_served.c: listeners use the sockets of their names that a
 * supervisor has passed to the program, and errors in these sockets are reported. Each program is a
 * child process; the test is its supervisor, and keeps the sockets open. */
#include <domus/main.h>
#include <domus/observe.h>

#include "tests/runtime/program.h"
#include "tests/runtime/running.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PASSED_MAX 3

/* --- the program ------------------------------------------------------------------------------ */

static const domus_behaviour server = {
    .name = "server", .kind = DOMUS_CHANNELS, .on_read = {domt_on_read_echo, 0}};

static int print_variables_after_start(domus_system *system, void *argument)
{
    printf("variables: %d %d %d\n", getenv("LISTEN_FDS") != NULL, getenv("LISTEN_PID") != NULL,
           getenv("LISTEN_FDNAMES") != NULL);
    int first = domus_main_passed("datagrams"), second = domus_main_passed("datagrams");
    printf("datagrams: %d %d\n", first, second);
    printf("inherited by children: %d\n", first > 0 && (fcntl(first, F_GETFD) & FD_CLOEXEC) == 0);
    return domus_main_serve(system, "echo", &server, NULL);
}

static const domus_program program = {
    .name = "passed", .start = print_variables_after_start, .observe = &domus_observe_front};

/* Write a configuration file with the listener `echo`. Its own address cannot be used on this
 * machine or, if `anywhere` is true, is any port of 127.0.0.1. Returns the file's path. */
static const char *write_configuration_with_listener(bool anywhere)
{
    static char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/tmp/domus-passed-%d.yaml", (int)getpid());
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "listeners:\n- {name: echo, address: %s}\n",
            anywhere ? "'127.0.0.1:0'" : "'192.0.2.1:1'");
    fclose(file);
    return path;
}

/* --- its supervisor --------------------------------------------------------------------------- */

static int passed[PASSED_MAX]; /* descriptors that the test passes to the program; -1: none */
/* values of LISTEN_FDS, LISTEN_PID ("own": the pid of the child) and LISTEN_FDNAMES */
static const char *variables[3];

static void pass_sockets_in_child(void)
{
    static const char *const names[] = {"LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"};
    char own[32];

    for (int i = 0; i < PASSED_MAX; i++)
        passed[i] = passed[i] >= 0 ? fcntl(passed[i], F_DUPFD, 100) : -1;
    for (int i = 0; i < PASSED_MAX; i++) {
        if (passed[i] >= 0)
            dup2(passed[i], 3 + i);
        else
            close(3 + i);
    }
    snprintf(own, sizeof own, "%d", (int)getpid());
    for (int i = 0; i < 3; i++) {
        if (variables[i] != NULL)
            setenv(names[i], strcmp(variables[i], "own") == 0 ? own : variables[i], 1);
    }
}

static int listen_at_address(uint32_t address, int type, uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(address)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, size), 0);
    if (type == SOCK_STREAM)
        ck_assert_int_eq(listen(fd, 64), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static void set_sockets_to_pass(int first, int second, int third)
{
    passed[0] = first;
    passed[1] = second;
    passed[2] = third;
}

static void set_variables_to_pass(const char *count, const char *pid, const char *names)
{
    variables[0] = count;
    variables[1] = pid;
    variables[2] = names;
}

static int connect_to_passed_port(uint16_t port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static void expect_byte_is_echoed(int fd)
{
    char byte = 0;

    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    close(fd);
}

/* --- what is served --------------------------------------------------------------------------- */

/* Clients that connect while no program runs wait in the socket for the next program, as when a
 * unit of systemd restarts. */
DOMT_TEST(a_listener_serves_the_socket_of_its_name_over_restarts)
{
    uint16_t port, datagrams;
    char said[128];
    const char *const arguments[] = {"--config", write_configuration_with_listener(false), NULL};
    domt_program own;
    int listening = listen_at_address(INADDR_LOOPBACK, SOCK_STREAM, &port);
    int other = listen_at_address(INADDR_LOOPBACK, SOCK_DGRAM, &datagrams);

    set_variables_to_pass("2", "own", "datagrams:echo");
    for (int round = 0; round < 2; round++) {
        int client = connect_to_passed_port(port);
        set_sockets_to_pass(other, listening, -1);
        domt_program_start(&own, &program, arguments, pass_sockets_in_child);
        snprintf(said, sizeof said,
                 "variables: 0 0 0\ndatagrams: 3 -2\ninherited by children: 0\n"
                 "listening echo 127.0.0.1:%u\n",
                 port);
        domt_program_read_stdout_until(&own, said);
        snprintf(said, sizeof said,
                 "listener echo serves 127.0.0.1:%u, which was passed, and not 192.0.2.1:1\n",
                 port);
        domt_program_read_stderr_until(&own, said, 1);
        expect_byte_is_echoed(client);
        expect_byte_is_echoed(connect_to_passed_port(port));
        domt_program_end_by_signal(&own, SIGTERM, 0);
        ck_assert_ptr_null(strstr(own.err_text, "nothing takes it"));
    }
    close(listening);
    close(other);
    unlink(arguments[1]);
}

/* Send a request for /ready to the observation port. Returns whether the answer says that the
 * program is ready. */
static bool is_program_ready(int fd)
{
    static const char request[] =
        "GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[512] = "";

    ck_assert_int_eq(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    ssize_t got = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    close(fd);
    return got > 0 && strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

DOMT_TEST(the_observation_port_serves_the_socket_of_its_name)
{
    const char *const observed[] = {"--config", write_configuration_with_listener(true), "--set",
                                    "observe.listen=127.0.0.1:1", NULL};
    uint16_t port;
    char said[128];
    domt_program own;

    set_variables_to_pass("1", "own", "observe");
    set_sockets_to_pass(listen_at_address(INADDR_LOOPBACK, SOCK_STREAM, &port), -1, -1);
    domt_program_start(&own, &program, observed, pass_sockets_in_child);
    close(passed[0]);
    snprintf(said, sizeof said, "listening observe 127.0.0.1:%u\n", port);
    domt_program_read_stdout_until(&own, said);
    ck_assert(is_program_ready(connect_to_passed_port(port)));
    domt_program_end_by_signal(&own, SIGTERM, 0);
    domt_must_contain(own.err_text, "listener observe serves 127.0.0.1:");
    set_sockets_to_pass(listen_at_address(INADDR_ANY, SOCK_STREAM, &port), -1, -1);
    domt_program_start(&own, &program, observed, pass_sockets_in_child);
    close(passed[0]);
    ck_assert_int_eq(domt_program_read_to_end(&own), 2);
    domt_must_contain(own.err_text,
                      "observe.listen: the socket that was passed is not of loopback");
    unlink(observed[1]);
}

static int listen_at_unix_path(const char *path, mode_t mode)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    (void)unlink(path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
    return fd;
}

static const struct mode {
    mode_t mode;
    const char *is_public;
    int status; /* exit status of the program; 2: it refuses the socket */
} modes[] = {
    {0666, "observe.public=false", 2}, {0660, "observe.public=false", 2},
    {0602, "observe.public=false", 2}, {0600, "observe.public=false", 0},
    {0666, "observe.public=true", 0},
};

DOMT_TEST(a_unix_socket_of_the_observation_port_is_its_owners)
{
    char path[64];
    domt_program own;

    snprintf(path, sizeof path, "/tmp/domus-passed-%d.sock", (int)getpid());
    set_variables_to_pass("1", "own", "observe");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const char *const observed[] = {"--config", write_configuration_with_listener(true),
                                        "--set",    "observe.listen=127.0.0.1:1",
                                        "--set",    modes[i].is_public,
                                        NULL};
        set_sockets_to_pass(listen_at_unix_path(path, modes[i].mode), -1, -1);
        domt_program_start(&own, &program, observed, pass_sockets_in_child);
        close(passed[0]);
        if (modes[i].status == 0) {
            domt_program_read_stdout_until(&own, "listening observe unix:");
            ck_assert_int_eq(kill(own.pid, SIGTERM), 0);
        }
        ck_assert_int_eq(domt_program_read_to_end(&own), modes[i].status);
        if (modes[i].status != 0)
            domt_must_contain(own.err_text,
                              "observe.listen: the Unix socket that was passed is not only");
        unlink(observed[1]);
    }
    unlink(path);
}

/* Call domus_main() with a passed socket, in a process that cannot make threads. */
static void run_main_that_fails_to_start(void)
{
    char *argv[] = {(char *)(uintptr_t) "program",
                    (char *)(uintptr_t) "--config",
                    (char *)(uintptr_t)write_configuration_with_listener(true),
                    (char *)(uintptr_t) "--set",
                    (char *)(uintptr_t) "observe.listen=127.0.0.1:0",
                    NULL};
    pthread_attr_t attributes;
    size_t usual;

    pass_sockets_in_child();
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &usual);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 46);
    pthread_setattr_default_np(&attributes);
    if (domus_main(5, argv, &program) != 1)
        _exit(99);
    pthread_attr_setstacksize(&attributes, usual);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

DOMT_TEST(a_socket_of_a_start_that_failed_is_forgotten)
{
    const char *const observed[] = {"--config", write_configuration_with_listener(true), "--set",
                                    "observe.listen=127.0.0.1:0", NULL};
    uint16_t port;
    char said[64];
    domt_program own;

    set_variables_to_pass("1", "own", "observe");
    set_sockets_to_pass(listen_at_address(INADDR_LOOPBACK, SOCK_STREAM, &port), -1, -1);
    domt_program_start(&own, &program, observed, run_main_that_fails_to_start);
    close(passed[0]);
    domt_program_read_stdout_until(&own, "listening observe 127.0.0.1:");
    domt_program_end_by_signal(&own, SIGTERM, 0);
    domt_must_contain(own.err_text, "no thread for the log");
    snprintf(said, sizeof said, "listening observe 127.0.0.1:%u\n", port);
    ck_assert_ptr_null(strstr(own.out_text, said));
    unlink(observed[1]);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

static const struct wrong {
    const char *count, *pid, *names;
    /* kind of the first passed descriptor: 's' a listening socket, 'c' a socket that does not
     * listen, 'd' one for datagrams, 'f' a file */
    int kind;
    int status;
    const char *says;
} table[] = {
    /* these variables are meant for another process, so the passed socket is not used */
    {"1", "1", "echo", 's', 1, "listener echo: 192.0.2.1:1: "},
    {"1", NULL, "echo", 's', 1, "listener echo: 192.0.2.1:1: "},
    {NULL, "own", "echo", 's', 1, "listener echo: 192.0.2.1:1: "},
    {"0", "own", NULL, 's', 1, "listener echo: 192.0.2.1:1: "},
    {"one", "own", "echo", 's', 2, "LISTEN_FDS: it is no number of at most 128 descriptors\n"},
    {"129", "own", NULL, 's', 2, "LISTEN_FDS: it is no number of at most 128 descriptors\n"},
    {"1", "me", "echo", 's', 2, "LISTEN_PID: it is no number of a process\n"},
    {"1", "own", "echo:more", 's', 2, "LISTEN_FDNAMES: there are not as many names as desc"},
    {"2", "own", "echo", 's', 2, "LISTEN_FDNAMES: there are not as many names as descriptors\n"},
    {"2", "own", "echo:more", 's', 2, "LISTEN_FDS: so many descriptors are not open\n"},
    {"1", "own", "echo", 'd', 2, "listener echo: descriptor 3, which was passed to it, is no str"},
    {"1", "own", "echo", 'c', 2,
     "listener echo: descriptor 3, which was passed to it, does not li"},
    {"1", "own", "echo", 'f', 2, "listener echo: descriptor 3, which was passed to it, is no sock"},
    {"1", "own", "echo.socket", 's', 1, "listener echo: 192.0.2.1:1: "},
};

static int make_descriptor_of_kind(int kind)
{
    uint16_t port;

    if (kind == 'f')
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (kind == 'c')
        return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return listen_at_address(INADDR_LOOPBACK, kind == 's' ? SOCK_STREAM : SOCK_DGRAM, &port);
}

DOMT_TEST(wrong_listen_variables_are_told)
{
    const char *const arguments[] = {"--config", write_configuration_with_listener(false), NULL};
    domt_program own;

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int fd = make_descriptor_of_kind(table[i].kind);
        set_sockets_to_pass(fd, -1, -1);
        set_variables_to_pass(table[i].count, table[i].pid, table[i].names);
        domt_program_start(&own, &program, arguments, pass_sockets_in_child);
        ck_assert_int_eq(domt_program_read_to_end(&own), table[i].status);
        domt_must_contain(own.err_text, table[i].says);
        close(fd);
    }
    unlink(arguments[1]);
}

DOMT_TEST(a_socket_that_nothing_takes_is_warned_of)
{
    const char *const anywhere[] = {"--config", write_configuration_with_listener(true), NULL};
    char name[80] = "echo:";
    uint16_t port;
    domt_program own;
    int fd = listen_at_address(INADDR_LOOPBACK, SOCK_STREAM, &port);

    memset(name + 5, 'x', 70); /* a name that is longer than the name of any listener */
    set_variables_to_pass("2", "own", name);
    set_sockets_to_pass(fd, fd, -1);
    domt_program_start(&own, &program, anywhere, pass_sockets_in_child);
    domt_program_read_stderr_until(&own, "warning: descriptor 4, named '' (127.0.0.1:", 1);
    domt_program_end_by_signal(&own, SIGTERM, 0);
    set_variables_to_pass("1", "own", NULL);
    set_sockets_to_pass(fd, -1, -1);
    domt_program_start(&own, &program, anywhere, pass_sockets_in_child);
    domt_program_read_stderr_until(&own, "warning: descriptor 3, named 'unknown' (127.0.0.1:", 1);
    domt_program_end_by_signal(&own, SIGTERM, 0);
    close(fd);
    unlink(anywhere[1]);
}

DOMT_SUITE(30)
