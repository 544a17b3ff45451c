/* config/notify.c: messages reach a socket at a path or an abstract name, and other values of
 * NOTIFY_SOCKET are refused. config/environment.c: a number in the environment consists of digits
 * only. */
#include "config/environment.h"
#include "config/notify.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int listen_at(const char *address)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t length = strlen(address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(at.sun_path, address, length);
    if (address[0] == '@')
        at.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, size), 0);
    return fd;
}

static void expect_delivery(const char *address)
{
    char text[DOMI_NOTIFY_MAX + 1], big[2 * DOMI_NOTIFY_MAX];
    int fd = listen_at(address);
    domi_notify to;

    ck_assert_int_eq(domi_notify_open(address, &to), 0);
    ck_assert_int_eq(domi_notify_send(&to, true, "READY=%d\nSTATUS=%s", 1, "up"), 0);
    ck_assert_int_eq((int)recv(fd, text, sizeof text, 0), 17);
    ck_assert_int_eq(memcmp(text, "READY=1\nSTATUS=up", 17), 0);
    memset(big, 'x', sizeof big);
    ck_assert_int_eq(domi_notify_send(&to, true, "%.*s", (int)sizeof big, big), 0);
    ck_assert_int_eq((int)recv(fd, text, sizeof text, 0), (int)DOMI_NOTIFY_MAX - 1);
    int result = 0;
    for (int i = 0; result == 0 && i < 10000; i++)
        result = domi_notify_send(&to, false, "WATCHDOG=1");
    ck_assert_int_eq(result, -EAGAIN); /* nobody reads the socket */
    close(fd);
    ck_assert_int_eq(domi_notify_send(&to, true, "STOPPING=1"), -ECONNREFUSED);
    domi_notify_close(&to);
    domi_notify_close(&to);
}

DOMT_TEST(messages_reach_a_path_and_an_abstract_name)
{
    char address[64];

    snprintf(address, sizeof address, "@domus-notify-%d", (int)getpid());
    expect_delivery(address);
    snprintf(address, sizeof address, "/tmp/domus-notify-%d", (int)getpid());
    expect_delivery(address);
    unlink(address);
}

DOMT_TEST(other_addresses_are_refused)
{
    static const char *const wrong[] = {"",           "/",         "@",
                                        "run/notify", "vsock:2:1", "unix:/run/notify"};
    char longest[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
    domi_notify to;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(domi_notify_open(wrong[i], &to), -EINVAL);
        ck_assert_int_eq(to.fd, -1);
    }
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    ck_assert_int_eq(domi_notify_open(longest, &to), -ENAMETOOLONG);
    longest[sizeof longest - 2] = '\0';
    ck_assert_int_eq(domi_notify_open(longest, &to), 0);
    domi_notify_close(&to);
}

DOMT_TEST(numbers_of_the_environment_are_digits)
{
    static const char *const wrong[] = {
        "", " 5", "5 ", "+5", "-5", "0x5", "5s", "11", "99999999999999999999"};
    static const char *const names[] = {"DOMT_A", "DOMT_B", NULL};
    uint64_t number = 77;

    ck_assert_int_eq(domi_environment_number("DOMT_A", 10, &number), -ENOENT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        setenv("DOMT_A", wrong[i], 1);
        ck_assert_int_eq(domi_environment_number("DOMT_A", 10, &number), -EINVAL);
    }
    ck_assert_uint_eq(number, 77);
    setenv("DOMT_A", "10", 1);
    ck_assert_int_eq(domi_environment_number("DOMT_A", 10, &number), 0);
    ck_assert_uint_eq(number, 10);
    ck_assert_int_eq(domi_environment_is_own("DOMT_A"), 0);
    ck_assert_int_eq(domi_environment_is_own("DOMT_B"), -ENOENT);
    domi_environment_forget(names);
    ck_assert_ptr_null(getenv("DOMT_A"));
}

DOMT_SUITE(20)
