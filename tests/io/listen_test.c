/* Listening sockets: what an address may be, and the port that the kernel chose. */
#include "io/acceptor.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

START_TEST(addresses_are_numbers)
{
    static const char *const wrong[] = {
        "",           "7000",          ":7000",        "localhost:7000",  "127.0.0.1",
        "127.0.0.1:", "127.0.0.1:x",   "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:80x",
        "[::1:7000",  "::1]:7000",     "[]:7000",      "[127.0.0.1]:70",  "1.2.3:70",
        "[::1]7000",  "127.0.0.1 :70",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int result = domi_acceptor_listen(wrong[i], 1, NULL);
        ck_assert_msg(result == -EINVAL, "%s: %d", wrong[i], result);
    }
}
END_TEST

START_TEST(a_port_that_the_kernel_chose_is_told_and_may_be_taken_once)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        char text[64];
        uint16_t port = 0;
        uint16_t again = 0;
        snprintf(text, sizeof text, "%s:0", hosts[i]);
        int fd = domi_acceptor_listen(text, 1, &port);
        if (fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT)
            continue; /* a machine without IPv6 */
        ck_assert_int_ge(fd, 0);
        ck_assert_uint_ne(port, 0);
        ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
        snprintf(text, sizeof text, "%s:%u", hosts[i], port);
        ck_assert_int_eq(domi_acceptor_listen(text, 1, &again), -EADDRINUSE);
        ck_assert_uint_eq(again, 0);
        close(fd);
    }
}
END_TEST

DOMT_MAIN("listen", 20, addresses_are_numbers,
          a_port_that_the_kernel_chose_is_told_and_may_be_taken_once)
