/* Endpoints: text and back, socket addresses and back, what is the same, and hashes. */
#include "io/resources/endpoint.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

static const uint64_t key[2] = {1, 2};

static domus_endpoint of(const char *text)
{
    domus_endpoint endpoint;

    ck_assert_msg(domus_endpoint_parse(text, &endpoint) == 0, "%s", text);
    return endpoint;
}

DOMT_TEST(loopback_is_127_and_1_in_both_families)
{
    static const char *const own[] = {"127.0.0.1:80", "127.255.0.9:1", "[::1]:1",
                                      "[::ffff:127.0.0.1]:1"};
    static const char *const others[] = {"126.0.0.1:80", "0.0.0.0:1",           "[::]:1",
                                         "[::2]:1",      "[::ffff:10.0.0.1]:1", "unix:/run/a.sock"};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        const domus_endpoint endpoint = of(own[i]);
        ck_assert_msg(domus_endpoint_is_loopback(&endpoint), "%s", own[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const domus_endpoint endpoint = of(others[i]);
        ck_assert_msg(!domus_endpoint_is_loopback(&endpoint), "%s", others[i]);
    }
}

DOMT_TEST(texts_are_read_and_written_alike)
{
    static const char *const texts[] = {
        "127.0.0.1:80",     "0.0.0.0:0",        "255.255.255.255:65535",
        "[::1]:7000",       "[fe80::1%2]:8080", "[2001:db8::]:443",
        "unix:/run/a.sock", "unix:@name",       "unix:relative",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[DOMUS_ENDPOINT_TEXT_MAX];
        domus_endpoint endpoint = of(texts[i]);

        ck_assert_uint_eq(domus_endpoint_text(&endpoint, text, sizeof text), strlen(texts[i]));
        ck_assert_str_eq(text, texts[i]);
    }
}

DOMT_TEST(what_is_no_endpoint_is_refused)
{
    static const char *const texts[] = {
        "",
        ":80",
        "1.2.3.4",
        "1.2.3.4:",
        "1.2.3.4:65536",
        "1.2.3.4:-1",
        "1.2.3.4:+1",
        "1.2.3.4: 1",
        "1.2.3:80",
        "1.2.3.4:8x",
        "::1:80",
        "[::1:80",
        "[]:80",
        "[::1]80",
        "[1.2.3.4]:80",
        "[::1%]:80",
        "[::1%x]:80",
        "unix:",
        "unix:@",
        "localhost:80",
        "[::1%1%2]:80",
        "1.2.3.4:80 ",
        "01.2.3.4.5:80",
        "[",
        "]:1",
        "[]",
        "unix",
        "1.2.3.4:0x50",
        "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]:1",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        domus_endpoint endpoint = {.family = 7};

        ck_assert_msg(domus_endpoint_parse(texts[i], &endpoint) == -EINVAL, "%s", texts[i]);
        ck_assert_uint_eq(endpoint.family, 0);
    }
}

/* 108 bytes have room for a path of 107 and its NUL, and for an abstract name of 107 behind its
 * first byte. */
DOMT_TEST(names_of_unix_sockets_have_their_length)
{
    char path[5 + 108 + 1] = "unix:";
    domus_endpoint endpoint;
    struct sockaddr_storage address;

    memset(path + 5, 'a', 107);
    endpoint = of(path);
    ck_assert_uint_eq(endpoint.size, 107);
    ck_assert_int_eq(domi_endpoint_to_socket(&endpoint, &address), sizeof(struct sockaddr_un));
    path[5 + 107] = 'a';
    ck_assert_int_eq(domus_endpoint_parse(path, &endpoint), -ENAMETOOLONG);
    path[5] = '@';
    endpoint = of(path);
    ck_assert_uint_eq(endpoint.size, 108);
    ck_assert_int_eq(domi_endpoint_to_socket(&endpoint, &address), sizeof(struct sockaddr_un));
}

DOMT_TEST(names_are_escaped_and_cut)
{
    domus_endpoint endpoint = {.family = AF_UNIX, .size = 4, .bytes = "\0a\nb"};
    char text[12];

    ck_assert_uint_eq(domus_endpoint_text(&endpoint, text, sizeof text), strlen("unix:@a\\nb"));
    ck_assert_str_eq(text, "unix:@a\\nb");
    ck_assert_uint_eq(domus_endpoint_text(&endpoint, text, 8), strlen("unix:@a\\nb"));
    ck_assert_str_eq(text, "unix:@a");
    ck_assert_uint_eq(domus_endpoint_text(&endpoint, NULL, 0), strlen("unix:@a\\nb"));
    endpoint = (domus_endpoint){0};
    (void)domus_endpoint_text(&endpoint, text, sizeof text);
    ck_assert_str_eq(text, "unnamed");
    endpoint.family = AF_UNIX;
    (void)domus_endpoint_text(&endpoint, text, sizeof text);
    ck_assert_str_eq(text, "unnamed");
    endpoint.size = UINT16_MAX; /* filled in by hand, and wrong: no byte behind it is read */
    char whole[DOMUS_ENDPOINT_TEXT_MAX];
    ck_assert_uint_lt(domus_endpoint_text(&endpoint, whole, sizeof whole), sizeof whole);
}

DOMT_TEST(socket_addresses_are_kept)
{
    static const char *const texts[] = {"127.0.0.1:80", "[fe80::1%2]:8080", "unix:/a", "unix:@a"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sockaddr_storage address;
        domus_endpoint endpoint = of(texts[i]);
        domus_endpoint back;
        int size = domi_endpoint_to_socket(&endpoint, &address);

        ck_assert_int_gt(size, 0);
        domi_endpoint_from_socket(&address, (socklen_t)size, &back);
        ck_assert_mem_eq(&back, &endpoint, sizeof back);
    }
    struct sockaddr_storage address = {.ss_family = AF_INET};
    domus_endpoint endpoint;
    domi_endpoint_from_socket(&address, sizeof(struct sockaddr_in) - 1, &endpoint);
    ck_assert_uint_eq(endpoint.family, 0);
    ck_assert_int_eq(domi_endpoint_to_socket(&endpoint, &address), -EAFNOSUPPORT);
    address.ss_family = AF_UNIX; /* a socket without a name has a family only */
    domi_endpoint_from_socket(&address, sizeof address.ss_family, &endpoint);
    ck_assert_uint_eq(endpoint.family, AF_UNIX);
    ck_assert_uint_eq(endpoint.size, 0);
    ck_assert_int_eq(domi_endpoint_to_socket(&endpoint, &address), -EAFNOSUPPORT);
}

DOMT_TEST(the_same_endpoints_have_the_same_hash)
{
    static const struct {
        const char *one;
        const char *other;
        bool same;
        bool same_host;
    } pairs[] = {
        {"1.2.3.4:80", "1.2.3.4:80", true, true},
        {"1.2.3.4:80", "[::ffff:1.2.3.4]:80", true, true},
        {"1.2.3.4:80", "1.2.3.4:81", false, true},
        {"1.2.3.4:80", "1.2.3.5:80", false, false},
        {"1.2.3.4:80", "[::1.2.3.4]:80", false, false},
        {"[fe80::1%1]:80", "[fe80::1%2]:80", false, false},
        {"unix:/a", "unix:@a", false, false},
        {"unix:/a", "unix:/ab", false, false},
        {"unix:/a", "unix:/a", true, true},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        domus_endpoint one = of(pairs[i].one);
        domus_endpoint other = of(pairs[i].other);

        ck_assert_msg(domus_endpoint_is_same(&one, &other) == pairs[i].same, "%s %s", pairs[i].one,
                      pairs[i].other);
        ck_assert((domus_endpoint_hash(&one, key, true) ==
                   domus_endpoint_hash(&other, key, true)) == pairs[i].same);
        ck_assert((domus_endpoint_hash(&one, key, false) ==
                   domus_endpoint_hash(&other, key, false)) == pairs[i].same_host);
    }
    domus_endpoint one = of("1.2.3.4:80");
    const uint64_t other_key[2] = {1, 3};
    ck_assert_uint_ne(domus_endpoint_hash(&one, key, true),
                      domus_endpoint_hash(&one, other_key, true));
}

DOMT_SUITE(20)
