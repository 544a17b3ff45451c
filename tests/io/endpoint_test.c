/* Addresses: endpoints as texts and as socket addresses, lists of networks, and host names with the
 * order of their addresses. */
#include "io/connectors/name.h"
#include "io/resources/endpoint.h"
#include "io/resources/networks.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const uint64_t hash_key[2] = {1, 2};

static domus_endpoint parse_endpoint(const char *text)
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
        const domus_endpoint endpoint = parse_endpoint(own[i]);
        ck_assert_msg(domus_endpoint_is_loopback(&endpoint), "%s", own[i]);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const domus_endpoint endpoint = parse_endpoint(others[i]);
        ck_assert_msg(!domus_endpoint_is_loopback(&endpoint), "%s", others[i]);
    }
}

DOMT_TEST(endpoints_read_from_text_are_written_alike)
{
    static const char *const texts[] = {
        "127.0.0.1:80",     "0.0.0.0:0",        "255.255.255.255:65535",
        "[::1]:7000",       "[fe80::1%2]:8080", "[2001:db8::]:443",
        "unix:/run/a.sock", "unix:@name",       "unix:relative",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[DOMUS_ENDPOINT_TEXT_MAX];
        domus_endpoint endpoint = parse_endpoint(texts[i]);

        ck_assert_uint_eq(domus_endpoint_text(&endpoint, text, sizeof text), strlen(texts[i]));
        ck_assert_str_eq(text, texts[i]);
    }
}

DOMT_TEST(text_that_is_no_endpoint_is_refused)
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

/* The 108 bytes of a Unix socket's name have room for a path of 107 bytes and its NUL, and for an
 * abstract name of 107 bytes behind its first byte. */
DOMT_TEST(names_of_unix_sockets_have_their_length)
{
    char path[5 + 108 + 1] = "unix:";
    domus_endpoint endpoint;
    struct sockaddr_storage address;

    memset(path + 5, 'a', 107);
    endpoint = parse_endpoint(path);
    ck_assert_uint_eq(endpoint.size, 107);
    ck_assert_int_eq(domi_endpoint_to_socket_address(&endpoint, &address),
                     sizeof(struct sockaddr_un));
    path[5 + 107] = 'a';
    ck_assert_int_eq(domus_endpoint_parse(path, &endpoint), -ENAMETOOLONG);
    path[5] = '@';
    endpoint = parse_endpoint(path);
    ck_assert_uint_eq(endpoint.size, 108);
    ck_assert_int_eq(domi_endpoint_to_socket_address(&endpoint, &address),
                     sizeof(struct sockaddr_un));
}

DOMT_TEST(names_of_unix_sockets_are_escaped_and_cut)
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
    /* an endpoint whose size was set wrongly by hand: no byte behind it is read */
    endpoint.size = UINT16_MAX;
    char whole[DOMUS_ENDPOINT_TEXT_MAX];
    ck_assert_uint_lt(domus_endpoint_text(&endpoint, whole, sizeof whole), sizeof whole);
}

DOMT_TEST(endpoints_survive_way_by_socket_address)
{
    static const char *const texts[] = {"127.0.0.1:80", "[fe80::1%2]:8080", "unix:/a", "unix:@a"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sockaddr_storage address;
        domus_endpoint endpoint = parse_endpoint(texts[i]);
        domus_endpoint back;
        int size = domi_endpoint_to_socket_address(&endpoint, &address);

        ck_assert_int_gt(size, 0);
        domi_endpoint_from_socket_address(&address, (socklen_t)size, &back);
        ck_assert_mem_eq(&back, &endpoint, sizeof back);
    }
    struct sockaddr_storage address = {.ss_family = AF_INET};
    domus_endpoint endpoint;
    domi_endpoint_from_socket_address(&address, sizeof(struct sockaddr_in) - 1, &endpoint);
    ck_assert_uint_eq(endpoint.family, 0);
    ck_assert_int_eq(domi_endpoint_to_socket_address(&endpoint, &address), -EAFNOSUPPORT);
    address.ss_family = AF_UNIX; /* the address of a socket without a name has only a family */
    domi_endpoint_from_socket_address(&address, sizeof address.ss_family, &endpoint);
    ck_assert_uint_eq(endpoint.family, AF_UNIX);
    ck_assert_uint_eq(endpoint.size, 0);
    ck_assert_int_eq(domi_endpoint_to_socket_address(&endpoint, &address), -EAFNOSUPPORT);
}

DOMT_TEST(the_same_endpoints_have_the_same_hash)
{
    static const struct {
        const char *one;
        const char *other;
        bool same;
        bool same_host;
    } pairs[] = {
        {"1.2.3.4:80", "1.2.3.4:81", false, true},         {"unix:/a", "unix:/a", true, true},
        {"1.2.3.4:80", "1.2.3.5:80", false, false},        {"unix:/a", "unix:@a", false, false},
        {"1.2.3.4:80", "[::1.2.3.4]:80", false, false},    {"unix:/a", "unix:/ab", false, false},
        {"1.2.3.4:80", "[::ffff:1.2.3.4]:80", true, true}, {"1.2.3.4:80", "1.2.3.4:80", true, true},
        {"[fe80::1%1]:80", "[fe80::1%2]:80", false, false}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        domus_endpoint one = parse_endpoint(pairs[i].one);
        domus_endpoint other = parse_endpoint(pairs[i].other);

        ck_assert_msg(domus_endpoint_is_same(&one, &other) == pairs[i].same, "%s %s", pairs[i].one,
                      pairs[i].other);
        ck_assert((domus_endpoint_hash(&one, hash_key, true) ==
                   domus_endpoint_hash(&other, hash_key, true)) == pairs[i].same);
        ck_assert((domus_endpoint_hash(&one, hash_key, false) ==
                   domus_endpoint_hash(&other, hash_key, false)) == pairs[i].same_host);
    }
    domus_endpoint one = parse_endpoint("1.2.3.4:80");
    const uint64_t other_key[2] = {1, 3};
    ck_assert_uint_ne(domus_endpoint_hash(&one, hash_key, true),
                      domus_endpoint_hash(&one, other_key, true));
}

static struct sockaddr_storage socket_address_of_text(const char *text)
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

static bool is_address_in_networks(const char *list, const char *text)
{
    const struct sockaddr_storage address = socket_address_of_text(text);
    domi_networks networks;
    char error[128] = "";

    ck_assert_msg(domi_networks_parse_list(list, &networks, error, sizeof error) == 0, "%s", error);
    return domi_networks_contain_address(&networks, &address);
}

DOMT_TEST(addresses_lie_in_their_networks)
{
    ck_assert(is_address_in_networks("10.0.0.0/8", "10.255.0.1"));
    ck_assert(!is_address_in_networks("10.0.0.0/8", "11.0.0.1"));
    ck_assert(!is_address_in_networks("10.0.0.0/8", "::a00:1"));
    /* the form in which a listener of IPv6 sees IPv4 addresses */
    ck_assert(is_address_in_networks("10.0.0.0/8", "::ffff:10.1.2.3"));
    ck_assert(is_address_in_networks("192.0.2.1", "192.0.2.1"));
    ck_assert(!is_address_in_networks("192.0.2.1", "192.0.2.0"));
    ck_assert(is_address_in_networks("192.0.2.128/25", "192.0.2.200"));
    ck_assert(!is_address_in_networks("192.0.2.128/25", "192.0.2.127"));
    ck_assert(is_address_in_networks("fd00::/8, 10.0.0.0/8", "fd12::1"));
    ck_assert(is_address_in_networks("fd00::/8, 10.0.0.0/8", "10.0.0.1"));
    ck_assert(!is_address_in_networks("fd00::/8,10.0.0.0/8", "fe80::1"));
    ck_assert(is_address_in_networks("0.0.0.0/0", "203.0.113.9"));
    ck_assert(!is_address_in_networks("0.0.0.0/0", "2001:db8::1"));
    /* an IPv4 address lies in ::/0, because it is mapped into IPv6 */
    ck_assert(is_address_in_networks("::/0", "203.0.113.9"));
    ck_assert(is_address_in_networks("unix", "unix"));
    ck_assert(!is_address_in_networks("::/0", "unix"));
    ck_assert(!is_address_in_networks("unix", "127.0.0.1"));
    ck_assert(!is_address_in_networks("", "127.0.0.1"));
    ck_assert(!is_address_in_networks("::/0, unix", "what has no address"));
}

DOMT_TEST(wrong_entry_of_a_list_is_named)
{
    static const char *const wrong[] = {
        ",",           "10.0.0.0/8,", ",10.0.0.0/8",          "10.0.0.0/33", "10.0.0.0/",
        "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.1/8",           "10.0.0",      "::1/129",
        "fd00::1/8",   "localhost",   "10.0.0.0/8 192.0.2.1", "unix/1",      "10.0.0.0/8/8"};
    domi_networks networks;
    char error[128], many[DOMI_NETWORKS_TEXT_BYTES + 1] = "";

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(domi_networks_parse_list(wrong[i], &networks, error, sizeof error) == -EINVAL,
                      "%s", wrong[i]);
    ck_assert_int_eq(domi_networks_parse_list("::1, 10.0.0.1/8", &networks, error, sizeof error),
                     -EINVAL);
    ck_assert_str_eq(error, "must be networks such as 10.0.0.0/8, ::1 or unix, has '10.0.0.1/8'");
    ck_assert_int_eq(domi_networks_parse_list("x", &networks, NULL, 0), -EINVAL);
    for (int i = 0; i < 33; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), i == 0 ? "::1" : ",::1");
    ck_assert_int_eq(domi_networks_parse_list(many, &networks, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "must be at most 32 networks");
    many[strlen(many) - 4] = '\0';
    ck_assert_int_eq(domi_networks_parse_list(many, &networks, error, sizeof error), 0);
}

DOMT_TEST(names_of_hosts_are_letters_digits_and_dots)
{
    static const struct {
        const char *text;
        int result;
        const char *name;
        uint16_t port;
    } cases[] = {
        {"a:1", 0, "a", 1},
        /* with a final point, the C library does not complete the name */
        {"Example.ORG.:65535", 0, "example.org.", 65535},
        {"a..:1", -EINVAL, "", 0},
        {".:1", -EINVAL, "", 0},
        {"127.1.:1", -EINVAL, "", 0},
        {"1.2.3.4a:0", 0, "1.2.3.4a", 0},
        {"_x-y.z9:80", 0, "_x-y.z9", 80},
        {"a", -EINVAL, "", 0},
        {":1", -EINVAL, "", 0},
        {"a:", -EINVAL, "", 0},
        {"a:65536", -EINVAL, "", 0},
        {"a:1x", -EINVAL, "", 0},
        {"a:-1", -EINVAL, "", 0},
        {"a..b:1", -EINVAL, "", 0},
        {".a:1", -EINVAL, "", 0},
        {"-a:1", -EINVAL, "", 0},
        {"a-.b:1", -EINVAL, "", 0},
        {"a b:1", -EINVAL, "", 0},
        {"a\n:1", -EINVAL, "", 0},
        {"\xc3\xa4:1", -EINVAL, "", 0},
        {"127.1:1", -EINVAL, "", 0},
        {"1:1", -EINVAL, "", 0},
        {"0x7f000001:1", -EINVAL, "", 0},
        {"[::1]x:1", -EINVAL, "", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[DOMI_HOST_MAX + 1];
        uint16_t port = 7;
        int result = domi_name_parse_host_and_port(cases[i].text, name, &port);
        ck_assert_msg(result == cases[i].result, "%s: %d", cases[i].text, result);
        if (result != 0)
            continue;
        ck_assert_str_eq(name, cases[i].name);
        ck_assert_uint_eq(port, cases[i].port);
    }
}

DOMT_TEST(names_and_labels_of_hosts_have_a_largest_length)
{
    char text[400];
    char name[DOMI_HOST_MAX + 1];
    uint16_t port;

    for (int length = 1; length < 300; length++) {
        for (int i = 0; i < length; i++)
            text[i] = (char)(i % 60 == 59 && i + 1 < length ? '.' : 'a');
        (void)snprintf(text + length, sizeof text - (size_t)length, ":9");
        ck_assert_int_eq(domi_name_parse_host_and_port(text, name, &port),
                         length <= 253 ? 0 : -ENAMETOOLONG);
        (void)snprintf(text + length, sizeof text - (size_t)length, ".:9");
        ck_assert_int_eq(domi_name_parse_host_and_port(text, name, &port),
                         length <= 253 ? 0 : -ENAMETOOLONG);
    }
    for (int length = 60; length < 70; length++) {
        memset(text, 'a', (size_t)length);
        (void)snprintf(text + length, sizeof text - (size_t)length, ".b:9");
        ck_assert_int_eq(domi_name_parse_host_and_port(text, name, &port),
                         length <= 63 ? 0 : -EINVAL);
    }
}

DOMT_TEST(families_of_addresses_take_turns_and_keep_their_order)
{
    static const struct {
        const char *before, *after; /* a letter for each address, in order: upper case is IPv6 */
    } cases[] = {
        {"", ""},         {"a", "a"},           {"abc", "abc"},
        {"ABCd", "AdBC"}, {"ABCdef", "AdBeCf"}, {"aBCD", "aBCD"},
        {"abCD", "aCbD"}, {"AbcDEF", "AbDcEF"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_endpoint found[8] = {0};
        char after[9] = "";
        uint32_t count = (uint32_t)strlen(cases[i].before);
        for (uint32_t k = 0; k < count; k++) {
            char letter = cases[i].before[k];
            found[k].family = letter < 'a' ? AF_INET6 : AF_INET;
            found[k].bytes[0] = (unsigned char)letter;
        }
        domi_name_alternate_address_families(found, count);
        for (uint32_t k = 0; k < count; k++)
            after[k] = (char)found[k].bytes[0];
        ck_assert_str_eq(after, cases[i].after);
    }
}

DOMT_SUITE(20)
