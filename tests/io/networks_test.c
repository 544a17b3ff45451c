/* Lists of networks: what is one, and which addresses lie in it. */
#include "io/resources/networks.h"

#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;

    if (strcmp(text, "unix") == 0)
        storage.ss_family = AF_UNIX;
    else if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        storage.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        storage.ss_family = AF_INET6;
    return storage;
}

static bool have(const char *list, const char *text)
{
    const struct sockaddr_storage address = address_of(text);
    domi_networks networks;
    char error[128] = "";

    ck_assert_msg(domi_networks_parse(list, &networks, error, sizeof error) == 0, "%s", error);
    return domi_networks_have(&networks, &address);
}

DOMT_TEST(addresses_lie_in_their_networks)
{
    ck_assert(have("10.0.0.0/8", "10.255.0.1"));
    ck_assert(!have("10.0.0.0/8", "11.0.0.1"));
    ck_assert(!have("10.0.0.0/8", "::a00:1"));
    ck_assert(have("10.0.0.0/8", "::ffff:10.1.2.3")); /* a listener of IPv6 sees IPv4 so */
    ck_assert(have("192.0.2.1", "192.0.2.1"));
    ck_assert(!have("192.0.2.1", "192.0.2.0"));
    ck_assert(have("192.0.2.128/25", "192.0.2.200"));
    ck_assert(!have("192.0.2.128/25", "192.0.2.127"));
    ck_assert(have("fd00::/8, 10.0.0.0/8", "fd12::1"));
    ck_assert(have("fd00::/8, 10.0.0.0/8", "10.0.0.1"));
    ck_assert(!have("fd00::/8,10.0.0.0/8", "fe80::1"));
    ck_assert(have("0.0.0.0/0", "203.0.113.9"));
    ck_assert(!have("0.0.0.0/0", "2001:db8::1"));
    ck_assert(have("::/0", "203.0.113.9")); /* it is mapped into IPv6 */
    ck_assert(have("unix", "unix"));
    ck_assert(!have("::/0", "unix"));
    ck_assert(!have("unix", "127.0.0.1"));
    ck_assert(!have("", "127.0.0.1"));
    ck_assert(!have("::/0, unix", "what has no address"));
}

DOMT_TEST(what_is_no_list_is_named)
{
    static const char *const wrong[] = {
        ",",           "10.0.0.0/8,", ",10.0.0.0/8",          "10.0.0.0/33", "10.0.0.0/",
        "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.1/8",           "10.0.0",      "::1/129",
        "fd00::1/8",   "localhost",   "10.0.0.0/8 192.0.2.1", "unix/1",      "10.0.0.0/8/8"};
    domi_networks networks;
    char error[128], many[DOMI_NETWORKS_TEXT_BYTES + 1] = "";

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(domi_networks_parse(wrong[i], &networks, error, sizeof error) == -EINVAL,
                      "%s", wrong[i]);
    ck_assert_int_eq(domi_networks_parse("::1, 10.0.0.1/8", &networks, error, sizeof error),
                     -EINVAL);
    ck_assert_str_eq(error, "must be networks such as 10.0.0.0/8, ::1 or unix, has '10.0.0.1/8'");
    ck_assert_int_eq(domi_networks_parse("x", &networks, NULL, 0), -EINVAL);
    for (int i = 0; i < 33; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), i == 0 ? "::1" : ",::1");
    ck_assert_int_eq(domi_networks_parse(many, &networks, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "must be at most 32 networks");
    many[strlen(many) - 4] = '\0';
    ck_assert_int_eq(domi_networks_parse(many, &networks, error, sizeof error), 0);
}

DOMT_SUITE(20)
