/* The address of a peer (io/resources/socket.h) where the kernel knows SO_PEERNAME, and where it
 * does not, as under qemu-user: connections have to be counted by their address there, too. */
#include "io/resources/io.h"
#include "io/resources/socket.h"

#include "tests/support/deny.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Make a connection from 127.0.0.9. Returns the end that was accepted. */
static int accept_one(void)
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

static void hold_name(int family, uint32_t host, int fd)
{
    const domi_io io = {.backend = &domi_backend_epoll};
    struct sockaddr_storage address;
    struct sockaddr_in inet;

    domi_socket_name_peer(&io, fd, &address);
    ck_assert_int_eq(address.ss_family, family);
    memcpy(&inet, &address, sizeof inet);
    ck_assert_uint_eq(family == AF_INET ? ntohl(inet.sin_addr.s_addr) : 0, host);
}

DOMT_TEST(a_peer_is_named)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    hold_name(AF_INET, 0x7f000009u, accept_one());
    hold_name(AF_UNIX, 0, pair[0]);
    hold_name(AF_UNSPEC, 0, -1);
}

DOMT_TEST(a_peer_is_named_without_the_option)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int fd = accept_one();
    ck_assert_int_eq(domt_deny_call(SYS_getsockopt, EOPNOTSUPP), 0);
    hold_name(AF_INET, 0x7f000009u, fd);
    hold_name(AF_UNIX, 0, pair[0]);
    hold_name(AF_UNSPEC, 0, -1);
}

DOMT_SUITE(10)
