/* Where system calls are refused, as in a container or under qemu-user: which backend is chosen,
 * and by which address a peer counts when the kernel does not give its name
 * (io/resources/socket.h). */
#include "io/backend/choose.h"
#include "io/resources/io.h"
#include "io/resources/socket.h"
#include "tests/support/deny.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const long calls[] = {SYS_io_uring_setup, SYS_io_uring_register, SYS_io_uring_enter};

/* Returns the backend that a process gets for `wanted` if the system call `call` is refused: 'e'
 * for epoll with a reason, 'u' for io_uring without one, 'f' for a failure with that error and a
 * text; '?' for any other outcome. */
static char choose_backend_in_child(domus_io_backend wanted, long call, int error)
{
    pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char reason[256];
        domus_config config;
        const domi_backend *backend = NULL;
        char got = '?';

        domus_config_init(&config);
        config.io.backend = wanted;
        ck_assert_int_eq(domt_deny_system_call(call, error), 0);
        int result = domi_backend_choose(&config, reason, sizeof reason, &backend);
        bool has_reason = reason[0] != '\0' && strchr(reason, '\n') == NULL;
        if (result == 0 && backend == &domi_backend_epoll &&
            has_reason == (wanted == DOMUS_BACKEND_AUTO))
            got = 'e';
        else if (result == 0 && backend == &domi_backend_uring && reason[0] == '\0')
            got = 'u';
        else if (result == -error && backend == NULL && has_reason)
            got = 'f';
        _exit(got);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return (char)WEXITSTATUS(status);
}

DOMT_TEST(a_refused_call_of_io_uring_chooses_epoll)
{
    static const int errors[] = {EPERM, EACCES, ENOSYS, EINVAL};

    for (size_t call = 0; call < sizeof calls / sizeof calls[0]; call++) {
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
            ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, calls[call], errors[i]),
                             'e');
    }
}

/* Where a resource has run out, the choice fails: a service must not change its backend by
 * chance. */
DOMT_TEST(resource_that_has_run_out_is_an_error)
{
    static const int errors[] = {ENOMEM, EMFILE, ENFILE};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_io_uring_setup, errors[i]),
                         'f');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_io_uring_register, ENOMEM),
                     'f');
}

DOMT_TEST(a_named_backend_is_taken_without_a_look)
{
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_URING, SYS_io_uring_setup, EPERM), 'u');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_EPOLL, SYS_io_uring_setup, EPERM), 'e');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_EPOLL, SYS_getppid, EPERM), 'e');
    ck_assert_int_eq(choose_backend_in_child(DOMUS_BACKEND_AUTO, SYS_getppid, EPERM), 'u');
}

/* Make a connection from 127.0.0.9. Returns the end that was accepted. */
static int accept_connection_from_127_0_0_9(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000009u)};
    socklen_t size = sizeof to;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&to, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&to, &size), 0);
    ck_assert_int_eq(bind(peer, (struct sockaddr *)&from, size), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&to, size), 0);
    int accepted = accept(listener, NULL, NULL);
    ck_assert_int_ge(accepted, 0);
    close(listener);
    return accepted;
}

static void check_name_of_socket(int family, uint32_t host, int fd)
{
    const domi_io io = {.backend = &domi_backend_epoll};
    struct sockaddr_storage address;
    struct sockaddr_in inet;

    domi_socket_find_address_of_peer(&io, fd, &address);
    ck_assert_int_eq(address.ss_family, family);
    memcpy(&inet, &address, sizeof inet);
    ck_assert_uint_eq(family == AF_INET ? ntohl(inet.sin_addr.s_addr) : 0, host);
}

DOMT_TEST(address_of_a_peer_is_told)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    check_name_of_socket(AF_INET, 0x7f000009u, accept_connection_from_127_0_0_9());
    check_name_of_socket(AF_UNIX, 0, pair[0]);
    check_name_of_socket(AF_UNSPEC, 0, -1);
}

DOMT_TEST(address_of_a_peer_is_told_without_the_option)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = accept_connection_from_127_0_0_9();
    ck_assert_int_eq(domt_deny_system_call(SYS_getsockopt, EOPNOTSUPP), 0);
    check_name_of_socket(AF_INET, 0x7f000009u, fd);
    check_name_of_socket(AF_UNIX, 0, pair[0]);
    check_name_of_socket(AF_UNSPEC, 0, -1);
}

DOMT_SUITE(20)
